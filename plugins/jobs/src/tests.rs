//! Tests the policy without wasm and without a cluster.

use std::time::Duration;

use scupper_sdk::{
    Description, Draft, Drain, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, PodPhase, Policy, Subject,
    Verdict, description,
    facts::{DisruptionAction, Job},
    testing::{Host, job, owner, pod},
};

use super::Jobs;

mod checkpoints;

fn of_kind(kind: &str, full_name: &str) -> Pod {
    let mut pod = pod(full_name);
    if let Some(controller) = &mut pod.controller {
        kind.clone_into(&mut controller.kind);
    }
    pod
}

/// The step of a wave of the plan as it is now.
fn step(host: &Host, wave: &str) -> Outcome {
    host.plan::<Jobs>().unwrap();
    host.step::<Jobs>(Phase::BeforeWave, Subject::Wave(wave.to_owned()))
}

/// What it waits for, as lines.
fn awaited(outcome: &Outcome) -> Vec<String> {
    let Outcome::Pending(pending) = outcome else {
        panic!("{outcome:?}");
    };
    let line = |pod: &scupper_sdk::WaitingOn| format!("{}: {}", pod.what, pod.detail);
    pending.waiting_for.iter().map(line).collect()
}

#[test]
fn pods_of_jobs_get_time_and_others_do_not() {
    let host = Host::new();
    host.pods([
        pod("shop/cart"),
        of_kind("Job", "batch/report"),
        of_kind("Workflow", "ci/build"),
        of_kind("RayCluster", "ml/worker").with_label("ray.io/originated-from-crd", "RayJob"),
        of_kind("RayCluster", "ml/service").with_label("ray.io/originated-from-crd", "RayService"),
        of_kind("StatefulSet", "ml/leader"),
    ]);
    host.owners(
        "ml/leader",
        [
            owner("apps/v1", "StatefulSet", "leader", 1),
            owner("x.io/v1", "TrainJob", "bert", 1),
        ],
    );
    let plan = host.plan::<Jobs>().unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart ml/service",
            "jobs-after-4h: batch/report ci/build ml/worker ml/leader"
        ]
    );
    let reasons = ["batch/report", "ml/worker", "ml/leader"].map(|name| plan.reason(name).unwrap());
    assert_eq!(
        reasons,
        [
            "Job report, evicted after 4h",
            "label ray.io/originated-from-crd=RayJob, evicted after 4h",
            "TrainJob bert, evicted after 4h",
        ]
    );
    assert_eq!(plan.verdict("batch/report"), Some(Verdict::Evict));
}

#[test]
fn a_pod_whose_eviction_fails_its_job_is_awaited_if_that_is_wanted() {
    let host = Host::new();
    let index = |failures| {
        of_kind("Job", "b/index").with_annotation("batch.kubernetes.io/job-index-failure-count", failures)
    };
    let others = ["a/first", "a/last", "a/ignored", "a/strict", "a/gone"];
    host.pods(
        others
            .map(|name| of_kind("Job", name))
            .into_iter()
            .chain([index("2")]),
    );
    host.job("a/first", job("first", 1));
    let failed = |name, on_disruption| Job {
        failed: 1,
        on_disruption,
        ..job(name, 1)
    };
    host.job("a/last", failed("last", DisruptionAction::Count));
    host.job("a/ignored", failed("ignored", DisruptionAction::Ignore));
    host.job("a/strict", failed("strict", DisruptionAction::FailJob));
    host.job(
        "b/index",
        Job {
            failed: 9,
            backoff_limit_per_index: Some(2),
            ..job("index", u32::MAX)
        },
    );
    let all = others.into_iter().chain(["b/index"]);
    let awaited = || {
        let plan = host.plan::<Jobs>().unwrap();
        let of_verdict = |name: &&str| plan.verdict(name) == Some(Verdict::AwaitCompletion);
        let named: Vec<_> = all.clone().filter(of_verdict).collect();
        for name in &named {
            let reason = plan.reason(name).unwrap();
            assert!(reason.starts_with("its eviction would fail Job "), "{reason}");
        }
        named
    };
    assert!(awaited().is_empty(), "not unless it is wanted");
    host.config("fails-job", "wait");
    assert_eq!(awaited(), ["a/last", "a/strict", "b/index"]);
    host.pods([index("1")]);
    assert_eq!(
        host.plan::<Jobs>().unwrap().verdict("b/index"),
        Some(Verdict::Evict)
    );
    host.config("fails-job", "maybe");
    assert_eq!(Jobs::check_config()[0].key, "fails-job");
}

/// A pod of a Job of several.
fn of_job(job: &str, full_name: &str) -> Pod {
    let mut pod = of_kind("Job", full_name);
    if let Some(controller) = &mut pod.controller {
        (controller.name, controller.uid) = (job.to_owned(), format!("uid-of-{job}"));
    }
    pod
}

#[test]
fn the_evictions_of_a_plan_count_as_failures_of_their_job() {
    let host = Host::new();
    host.config("fails-job", "wait");
    let names = ["a/many-0", "a/many-1", "a/many-2", "a/many-3"];
    let mut pods = names.map(|name| of_job("many", name));
    host.pods(pods.clone());
    for name in names {
        host.job(name, job("many", 2));
    }
    let plan = host.plan::<Jobs>().unwrap();
    let waves = [
        "jobs-after-4h: a/many-0 a/many-1",
        "completion: a/many-2 a/many-3",
    ];
    assert_eq!(plan.waves(), waves);
    // One that leaves anyway has failed already, and one that has ended does not fail.
    pods[0].deletion_timestamp = Some(1);
    pods[1].phase = PodPhase::Succeeded;
    host.pods(pods);
    let plan = host.plan::<Jobs>().unwrap();
    let awaits = |name: &&str| plan.verdict(name) == Some(Verdict::AwaitCompletion);
    assert_eq!(names.into_iter().filter(awaits).count(), 0);
}

/// Sorts pods into a wave for each namespace.
struct Sorting;

impl Policy for Sorting {
    fn describe() -> Description {
        description!("Sorts pods by namespace")
    }
}

impl Planner for Sorting {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.leaving() {
            draft.move_to_wave(pod, &pod.namespace);
        }
        Ok(())
    }
}

#[test]
fn a_pod_that_is_only_awaited_holds_up_no_wave() {
    let host = Host::new();
    host.config("fails-job", "wait");
    host.pods([
        of_kind("Job", "batch/last"),
        pod("shop/db"),
        of_kind("Job", "shop/report"),
    ]);
    host.job("batch/last", job("last", 0));
    let sorted = host.plan::<Sorting>().unwrap();
    let plan = host.plan_after::<Jobs>(&sorted).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "shop: shop/db",
            "jobs-after-4h: shop/report",
            "completion: batch/last"
        ]
    );
}

#[test]
fn a_pod_may_ask_for_less_time_and_not_for_more() {
    let host = Host::new();
    host.config("cap", "1h");
    host.config("cap-annotation", "example.com/cap");
    let asks = |name, time| of_kind("Job", name).with_annotation("example.com/cap", time);
    host.pods([
        asks("a/less", "5m"),
        asks("a/more", "9h"),
        asks("a/wrong", "soon"),
        of_kind("Job", "a/none"),
    ]);
    assert_eq!(
        host.plan::<Jobs>().unwrap().waves(),
        ["jobs-after-5m: a/less", "jobs-after-1h: a/more a/wrong a/none"]
    );
}

#[test]
fn the_reason_says_that_a_pod_asks_for_something_that_is_no_time() {
    let host = Host::new();
    host.config("cap", "1h");
    host.config("cap-annotation", " example.com/cap ");
    let asks = |name, time| of_kind("Job", name).with_annotation("example.com/cap", time);
    host.pods([
        asks("a/less", " 5m"),
        asks("a/odd", "1h30m, or as long as it takes"),
    ]);
    let plan = host.plan::<Jobs>().unwrap();
    assert_eq!(plan.waves(), ["jobs-after-5m: a/less", "jobs-after-1h: a/odd"]);
    assert_eq!(
        plan.reason("a/odd"),
        Some(
            "Job odd, its example.com/cap `1h30m, or as long as` is not a time such as 90s, 5m or 1h, evicted after 1h"
        )
    );
}

#[test]
fn spaces_beside_the_equals_sign_of_a_label_do_not_count() {
    let host = Host::new();
    host.config("labels", "app = trainer");
    host.pods([pod("ml/fit").with_label("app", "trainer")]);
    assert_eq!(host.plan::<Jobs>().unwrap().waves(), ["jobs-after-4h: ml/fit"]);
}

#[test]
fn owners_that_could_not_be_read_make_no_plan() {
    let host = Host::new();
    host.pods([pod("shop/cart")]);
    host.outage(Some("the API server restarts"));
    assert!(host.plan::<Jobs>().unwrap_err().contains("restarts"));
    host.config("kinds", "");
    assert!(host.plan::<Jobs>().is_ok(), "labels need no request");
    assert_eq!(Jobs::describe().wants, []);
}

#[test]
fn a_wave_waits_for_its_jobs_until_their_cap() {
    let host = Host::new();
    host.config("cap", "1h");
    let mut ended = of_kind("Job", "batch/ended");
    ended.phase = PodPhase::Succeeded;
    host.pods([pod("shop/cart"), of_kind("Job", "batch/report"), ended]);
    assert_eq!(Jobs::phases(), [Phase::BeforeWave]);
    assert_eq!(
        awaited(&step(&host, "jobs-after-1h")),
        ["batch/report: still runs"]
    );
    let wave = Subject::Wave("jobs-after-1h".to_owned());
    let run = host.run_hook::<Jobs>(Phase::BeforeWave, wave, 10_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(3600))
    );
}

#[test]
fn wrong_values_are_problems() {
    for (key, value, words) in [
        ("cap", "4", "`4`: must be a time such as"),
        ("checkpoint-cap", "0m", "and not zero"),
        ("labels", "batch", "must be LABEL=VALUE"),
        ("checkpoints", "checkpoint.example.com", "a domain and a slash"),
        ("kind", "Job", "no such key; there are kinds"),
        ("labels", "the app=trainer", "must be LABEL=VALUE"),
        ("labels", "app=the trainer", "must be LABEL=VALUE"),
        (
            "cap-annotation",
            "example.com/the cap",
            "must be the key of an annotation",
        ),
        (
            "checkpoints",
            "the checkpoint.example.com/",
            "a domain and a slash",
        ),
    ] {
        let host = Host::new();
        host.config(key, value);
        let problems = Jobs::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == key && problems[0].message.contains(words),
            "{key}: {problems:?}"
        );
    }
    let _host = Host::new();
    assert_eq!(Jobs::check_config(), []);
}

/// What an earlier policy of the chain says, by namespace.
struct Earlier;

impl Policy for Earlier {
    fn describe() -> Description {
        description!("Protects the pods of some namespaces")
    }
}

impl Planner for Earlier {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.running() {
            let hold = |hours: u64| Hold::at_most(Duration::from_secs(3600 * hours));
            match pod.namespace.as_str() {
                "awaited" => draft.await_completion(pod, "never evicted"),
                "kept" => draft.keep(pod, "stays"),
                "longer" => draft.hold("earlier", drain, [(pod, hold(8))]),
                "shorter" => draft.hold("earlier", drain, [(pod, hold(1))]),
                _ => draft.delete(pod, "deleted"),
            }
        }
        Ok(())
    }
}

#[test]
fn what_an_earlier_policy_protects_is_not_evicted_earlier() {
    let host = Host::new();
    let names = ["awaited", "kept", "longer", "shorter", "deleted"];
    host.pods(names.map(|name| of_kind("Job", &format!("{name}/report"))));
    let draft = host.plan::<Earlier>().unwrap();
    let plan = host.plan_after::<Jobs>(&draft).unwrap();
    let verdicts = names.map(|name| plan.verdict(&format!("{name}/report")).unwrap());
    let wanted = [
        Verdict::AwaitCompletion,
        Verdict::Keep,
        Verdict::Evict,
        Verdict::Evict,
        Verdict::Evict,
    ];
    assert_eq!(verdicts, wanted);
    assert_eq!(
        plan.waves(),
        [
            "all: awaited/report",
            "jobs-after-4h: deleted/report",
            "earlier-after-1h+jobs-after-4h: shorter/report",
            "jobs-after-4h+earlier-after-8h: longer/report"
        ]
    );
}
