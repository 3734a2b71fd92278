//! Tests the policy without wasm and without a cluster.

use std::time::Duration;

use scupper_sdk::{
    Description, Draft, Drain, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, PodPhase, Policy, Subject,
    Verdict, description,
    facts::{DisruptionAction, Job},
    testing::{Host, job, owner, pod},
};

use super::Jobs;

const REQUESTED: &str = "checkpoint.example.com/requested";

fn of_kind(kind: &str, full_name: &str) -> Pod {
    let mut pod = pod(full_name);
    if let Some(controller) = &mut pod.controller {
        kind.clone_into(&mut controller.kind);
    }
    pod
}

fn saves(time: &str, full_name: &str) -> Pod {
    pod(full_name).with_annotation("checkpoint.example.com/supported", time)
}

/// A host with handshakes.
fn asking(pods: impl IntoIterator<Item = Pod>) -> Host {
    let host = Host::new();
    host.config("checkpoints", "checkpoint.example.com/");
    host.pods(pods);
    host
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
fn a_pod_that_can_is_asked_for_a_checkpoint_and_leaves_when_it_answers() {
    let host = asking([pod("shop/cart"), saves("2m", "ml/train"), saves("9h", "ml/long")]);
    let plan = host.plan::<Jobs>().unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart",
            "jobs-after-2m: ml/train",
            "jobs-after-10m: ml/long"
        ]
    );
    assert_eq!(
        plan.reason("ml/train"),
        Some("saves a checkpoint, evicted after 2m")
    );

    assert_eq!(
        host.step::<Jobs>(Phase::BeforeDrain, Subject::Node),
        Outcome::Done
    );
    let asked = |name: &str| host.pod(name).unwrap().annotation(REQUESTED).map(str::to_owned);
    let id = host.call(Phase::BeforeDrain, Subject::Node).drain.id;
    assert_eq!(
        ["ml/train", "ml/long", "shop/cart"].map(asked),
        [Some(id.clone()), Some(id.clone()), None]
    );

    assert_eq!(
        awaited(&step(&host, "jobs-after-2m")),
        ["ml/train: was asked for a checkpoint"]
    );
    let answers = |id: &str| {
        let train = host.pod("ml/train").unwrap();
        host.pods([train.with_annotation("checkpoint.example.com/done", id)]);
    };
    answers("an earlier drain");
    assert_eq!(awaited(&step(&host, "jobs-after-2m")).len(), 1);
    answers(&id);
    assert_eq!(step(&host, "jobs-after-2m"), Outcome::Done);
}

#[test]
fn a_pod_that_does_not_answer_is_evicted_at_its_cap() {
    let host = asking([saves("2m", "ml/train")]);
    host.plan::<Jobs>().unwrap();
    let wave = Subject::Wave("jobs-after-2m".to_owned());
    let run = host.run_hook::<Jobs>(Phase::BeforeWave, wave, 1_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(120))
    );
    let (_, line) = host.log().pop().unwrap();
    assert_eq!(
        line,
        "2m after the start of the drain these pods must leave: ml/train"
    );
    // It came after the others had been asked.
    assert!(host.pod("ml/train").unwrap().annotation(REQUESTED).is_some());
}

#[test]
fn a_cancelled_drain_withdraws_its_requests() {
    let host = asking([saves("2m", "ml/train")]);
    assert_eq!(
        host.step::<Jobs>(Phase::BeforeDrain, Subject::Node),
        Outcome::Done
    );
    assert_eq!(host.step::<Jobs>(Phase::OnCancel, Subject::Node), Outcome::Done);
    assert_eq!(host.pod("ml/train").unwrap().annotation(REQUESTED), None);
}

/// Another policy, which keeps the pods with this name.
struct Keeps;

impl Policy for Keeps {
    fn describe() -> Description {
        description!("Keeps pods named kept")
    }
}

impl Planner for Keeps {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.pods().iter().filter(|pod| pod.name == "kept") {
            draft.keep(pod, "by its name");
        }
        Ok(())
    }
}

#[test]
fn a_pod_that_stays_is_neither_awaited_nor_asked_for_a_checkpoint() {
    let host = asking([saves("2m", "ml/train"), saves("2m", "ml/kept")]);
    let draft = host.plan::<Keeps>().unwrap();
    host.plan_after::<Jobs>(&draft).unwrap();
    assert_eq!(
        host.step::<Jobs>(Phase::BeforeDrain, Subject::Node),
        Outcome::Done
    );
    let asked = |name: &str| host.pod(name).unwrap().annotation(REQUESTED).is_some();
    assert_eq!(["ml/train", "ml/kept"].map(asked), [true, false]);
    let wave = Subject::Wave("jobs-after-2m".to_owned());
    let outcome = host.step::<Jobs>(Phase::BeforeWave, wave);
    assert_eq!(awaited(&outcome), ["ml/train: was asked for a checkpoint"]);
}

#[test]
fn an_outage_is_retried() {
    let host = asking([saves("2m", "ml/train")]);
    host.outage(Some("the API server restarts"));
    let outcome = host.step::<Jobs>(Phase::BeforeDrain, Subject::Node);
    assert!(matches!(outcome, Outcome::Failed(failure) if failure.retry_after.is_some()));
}

#[test]
fn wrong_values_are_problems() {
    for (key, value, words) in [
        ("cap", "4", "`4`: must be a time such as"),
        ("checkpoint-cap", "0m", "and not zero"),
        ("labels", "batch", "must be LABEL=VALUE"),
        ("checkpoints", "checkpoint.example.com", "a domain and a slash"),
        ("kind", "Job", "no such key; there are kinds"),
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
            "jobs-after-4h: deleted/report shorter/report",
            "earlier-after-8h: longer/report"
        ]
    );
}
