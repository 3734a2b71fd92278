//! Tests the policy without wasm and without a cluster.

use std::time::Duration;

use scupper_sdk::{
    Description, Draft, Drain, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, PodPhase, Policy, Subject,
    Verdict, description,
    testing::{Host, namespace, pod},
};

use super::NamespaceModes;

const TEN_MINUTES: Duration = Duration::from_secs(600);

/// A host with these rules.
fn host(rules: &str, pods: &[&str]) -> Host {
    let host = Host::new();
    host.config("rules", rules);
    host.pods(pods.iter().map(|name| pod(name)));
    host
}

/// The same, with a plan.
fn planned(rules: &str, pods: &[&str]) -> Host {
    let host = host(rules, pods);
    host.plan::<NamespaceModes>().unwrap();
    host
}

fn finished(mut pod: Pod) -> Pod {
    pod.phase = PodPhase::Succeeded;
    pod
}

fn wave(name: &str) -> Subject {
    Subject::Wave(name.to_owned())
}

fn step(host: &Host, name: &str) -> Outcome {
    host.step::<NamespaceModes>(Phase::BeforeWave, wave(name))
}

#[test]
fn each_mode_has_its_verdict_and_its_wave() {
    let rules = "db Immediate, batch AllowCompletion 24h, logs AllowCompletion\n\
                 team-* DeleteAfterTimeout 1h grace 30s, cache Keep";
    let pods = [
        "shop/cart",
        "db/main",
        "batch/report",
        "logs/index",
        "team-a/web",
        "cache/redis",
    ];
    let plan = host(rules, &pods).plan::<NamespaceModes>().unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart db/main",
            "namespaces-after-1h-grace-30s: team-a/web",
            "namespaces-after-24h: batch/report",
            "completion: logs/index",
        ]
    );
    let verdicts = pods.map(|pod| plan.verdict(pod).unwrap());
    let [normal, at_once, capped, uncapped, timeout, kept] = verdicts;
    assert_eq!([normal, at_once, capped], [Verdict::Evict; 3]);
    assert_eq!(
        [uncapped, timeout, kept],
        [Verdict::AwaitCompletion, Verdict::Delete, Verdict::Keep]
    );
    let reasons = ["batch/report", "team-a/web"].map(|pod| plan.reason(pod).unwrap());
    assert_eq!(
        reasons,
        [
            "namespace batch: AllowCompletion, evicted after 24h",
            "namespace team-a: DeleteAfterTimeout, deleted after 1h, grace 30s",
        ]
    );
    let timeouts = plan.plan().waves.iter().map(|wave| wave.timeout);
    assert_eq!(
        timeouts.collect::<Vec<_>>(),
        [Some(3_600_000), Some(23 * 3_600_000), None, None]
    );
    assert_eq!(plan.plan().waves[1].max_grace_period_seconds, Some(30));
}

#[test]
fn pods_that_no_rule_names_are_evicted_as_before() {
    let host = host("batch AllowCompletion", &["shop/cart"]);
    assert_eq!(host.plan::<NamespaceModes>().unwrap().plan(), host.draft().plan());
}

#[test]
fn the_first_rule_that_matches_applies() {
    let host = host("frontend AllowCompletion, * Immediate", &["frontend/web"]);
    let plan = host.plan::<NamespaceModes>().unwrap();
    assert_eq!(plan.verdict("frontend/web"), Some(Verdict::AwaitCompletion));
}

#[test]
fn system_namespaces_stay_unless_the_operator_names_others() {
    let host = host(
        "* Immediate",
        &[
            "kube-system/dns",
            "kube-node-lease/x",
            "nvsentinel/api",
            "shop/cart",
        ],
    );
    let plan = host.plan::<NamespaceModes>().unwrap();
    for name in ["kube-system/dns", "kube-node-lease/x", "nvsentinel/api"] {
        assert_eq!(plan.verdict(name), Some(Verdict::Keep), "{name}");
    }
    assert_eq!(
        plan.reason("kube-system/dns"),
        Some("namespace kube-system: a system namespace, whose pods stay")
    );
    host.config("system-namespaces", "shop");
    let plan = host.plan::<NamespaceModes>().unwrap();
    let verdicts = ["kube-system/dns", "shop/cart"].map(|name| plan.verdict(name));
    assert_eq!(verdicts, [Some(Verdict::Evict), Some(Verdict::Keep)]);
}

#[test]
fn a_label_of_the_namespace_selects_and_needs_a_grant() {
    let host = host("tier=batch* AllowCompletion", &["shop/cart", "reports/daily"]);
    host.namespaces([namespace("reports").with_label("tier", "batch-low")]);
    assert_eq!(NamespaceModes::describe().wants.len(), 1);
    let plan = host.plan::<NamespaceModes>().unwrap();
    let verdicts = ["shop/cart", "reports/daily"].map(|name| plan.verdict(name));
    assert_eq!(verdicts, [Some(Verdict::Evict), Some(Verdict::AwaitCompletion)]);
    // Evicting what could not be looked up would lose work.
    host.outage(Some("the API server restarts"));
    assert!(host.plan::<NamespaceModes>().unwrap_err().contains("restarts"));
    host.config("rules", "reports AllowCompletion");
    assert_eq!(NamespaceModes::describe().wants, []);
    assert!(host.plan::<NamespaceModes>().is_ok(), "names need no lookup");
}

#[test]
fn pods_that_stay_finished_pods_and_the_driver_are_left_alone() {
    let host = Host::new();
    host.config("rules", "* DeleteAfterTimeout");
    let mut driver = pod("scupper/driver");
    driver.driver = true;
    host.pods([
        pod("shop/agent").of_daemon_set(),
        finished(pod("shop/job")),
        driver,
    ]);
    assert_eq!(host.plan::<NamespaceModes>().unwrap().plan(), host.draft().plan());
}

#[test]
fn the_plan_names_a_time_that_the_deadline_comes_before() {
    let host = host("batch AllowCompletion 10m", &["batch/report"]);
    for (deadline, reason) in [
        (601, "namespace batch: AllowCompletion, evicted after 10m"),
        (
            600,
            "namespace batch: AllowCompletion, evicted after 10m, but the drain's deadline comes first",
        ),
    ] {
        host.deadline_in(Duration::from_secs(deadline));
        let plan = host.plan::<NamespaceModes>().unwrap();
        assert_eq!(plan.reason("batch/report"), Some(reason));
    }
}

#[test]
fn a_wave_begins_at_its_time_and_not_before() {
    let host = planned(
        "batch AllowCompletion 10m",
        &["shop/cart", "batch/report", "batch/train"],
    );
    let Outcome::Pending(pending) = step(&host, "namespaces-after-10m") else {
        panic!("it does not wait");
    };
    assert_eq!(
        pending.progress,
        "2 pods may end until 10m after the start of the drain"
    );
    let awaited: Vec<_> = pending.waiting_for.iter().map(|pod| pod.what.as_str()).collect();
    assert_eq!(awaited, ["batch/report", "batch/train"]);
    let run = host.run_hook::<NamespaceModes>(Phase::BeforeWave, wave("namespaces-after-10m"), 1_000);
    assert_eq!((run.outcome(), run.took), (Some(&Outcome::Done), TEN_MINUTES));
    let (_, line) = host.log().pop().unwrap();
    assert_eq!(
        line,
        "10m after the start of the drain these pods must leave: batch/report, batch/train"
    );
}

#[test]
fn a_wave_begins_as_soon_as_its_pods_have_ended() {
    let host = planned(
        "batch AllowCompletion 10m",
        &["shop/cart", "batch/report", "batch/train"],
    );
    assert!(matches!(step(&host, "namespaces-after-10m"), Outcome::Pending(_)));
    host.pods([pod("shop/cart"), finished(pod("batch/report"))]);
    assert_eq!(step(&host, "namespaces-after-10m"), Outcome::Done);
    assert_eq!(host.log(), []);
}

#[test]
fn the_time_counts_from_the_start_of_the_drain() {
    let host = planned("batch AllowCompletion 10m", &["batch/report"]);
    host.advance(TEN_MINUTES);
    assert_eq!(step(&host, "namespaces-after-10m"), Outcome::Done);
}

#[test]
fn a_changed_time_makes_no_wave_of_a_running_drain_begin_earlier() {
    for rules in ["batch AllowCompletion 1h", "batch AllowCompletion 5m"] {
        let host = planned("batch AllowCompletion 10m", &["shop/cart", "batch/report"]);
        host.config("rules", rules);
        let run = host.run_hook::<NamespaceModes>(Phase::BeforeWave, wave("namespaces-after-10m"), 1_000);
        assert_eq!(
            (run.outcome(), run.took),
            (Some(&Outcome::Done), TEN_MINUTES),
            "{rules}"
        );
    }
}

#[test]
fn a_finished_pod_of_a_wave_does_not_make_it_wait_for_others() {
    let rules = "batch AllowCompletion 10m, logs AllowCompletion 1h";
    let host = planned(rules, &["batch/report", "logs/index"]);
    host.pods([finished(pod("batch/report")), pod("logs/index")]);
    assert_eq!(step(&host, "namespaces-after-10m"), Outcome::Done);
    assert!(matches!(step(&host, "namespaces-after-1h"), Outcome::Pending(_)));
}

#[test]
fn an_outage_delays_no_wave() {
    let host = host("tier=batch AllowCompletion 10m", &["reports/daily", "shop/cart"]);
    host.namespaces([namespace("reports").with_label("tier", "batch")]);
    host.plan::<NamespaceModes>().unwrap();
    host.outage(Some("the API server restarts"));
    let Outcome::Pending(pending) = step(&host, "namespaces-after-10m") else {
        panic!("it asks the API server");
    };
    assert_eq!(pending.waiting_for.len(), 1, "{pending:?}");
    host.pods([finished(pod("reports/daily")), pod("shop/cart")]);
    assert_eq!(step(&host, "namespaces-after-10m"), Outcome::Done);
}

#[test]
fn only_waves_with_a_time_are_held() {
    let host = planned("batch AllowCompletion 10m", &["batch/report"]);
    assert_eq!(NamespaceModes::phases(), [Phase::BeforeWave]);
    for name in ["all", "completion", "namespaces after lunch"] {
        assert_eq!(step(&host, name), Outcome::Done, "{name}");
    }
    host.config("rules", "db Immediate, batch AllowCompletion");
    assert_eq!(NamespaceModes::phases(), []);
}

#[test]
fn the_problem_with_a_wrong_rule_says_what_is_right() {
    for (rules, words) in [
        (
            "shop",
            "`shop`: must have a mode after the selector; an example is team-*",
        ),
        ("shop Delete", "the modes are Immediate, AllowCompletion"),
        ("shop immediate", "the modes are Immediate"),
        (
            "shop Immediate 5m",
            "only AllowCompletion and DeleteAfterTimeout have times",
        ),
        ("shop AllowCompletion soon", "a time must be like 90s, 5m or 1h"),
        (
            "shop DeleteAfterTimeout 0s",
            "a time must be like 90s, 5m or 1h, and not zero",
        ),
        ("shop DeleteAfterTimeout 5m 30s", "only a time, and then `grace`"),
        ("shop DeleteAfterTimeout 5m grace 0s", "and not zero"),
        ("Shop Immediate", "a namespace has only a-z"),
        ("shop-[ab] Immediate", "a pattern also * and ?"),
        ("=batch Immediate", "must be LABEL=VALUE"),
        (
            "* Immediate, shop AllowCompletion",
            "`* Immediate`: must be the last rule",
        ),
    ] {
        let host = host(rules, &["shop/cart"]);
        let problems = NamespaceModes::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == "rules" && problems[0].message.contains(words),
            "{rules}: {problems:?}"
        );
        assert!(host.plan::<NamespaceModes>().is_err(), "{rules}");
    }
    let host = Host::new();
    host.config("system-namespaces", "^kube-");
    host.config("rule", "");
    let problems = NamespaceModes::check_config();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["rule", "system-namespaces"], "{problems:?}");
}

#[test]
fn the_default_is_valid() {
    let _host = Host::new();
    assert_eq!(NamespaceModes::check_config(), []);
}

/// Holds every pod for an hour, but awaits the completion of those of `batch`.
struct Earlier;

impl Policy for Earlier {
    fn describe() -> Description {
        description!("Protects pods")
    }
}

impl Planner for Earlier {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.running() {
            match pod.namespace.as_str() {
                "batch" => draft.await_completion(pod, "never evicted"),
                _ => {
                    draft.evict(pod, "evicted after 1h");
                    draft.hold("earlier", drain, [(pod, Hold::at_most(6 * TEN_MINUTES))]);
                }
            }
        }
        Ok(())
    }
}

#[test]
fn no_mode_loosens_what_an_earlier_policy_decided() {
    let rules = "now Immediate, soon DeleteAfterTimeout 2m grace 5s, late DeleteAfterTimeout 2h, mild AllowCompletion, \
                 batch Immediate, stays Keep";
    let host = host(
        rules,
        &["now/a", "soon/b", "late/c", "mild/d", "batch/e", "stays/f"],
    );
    let draft = host.plan::<Earlier>().unwrap();
    let plan = host.plan_after::<NamespaceModes>(&draft).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: batch/e",
            "earlier-after-1h: now/a",
            "namespaces-after-2m+earlier-after-1h: soon/b",
            "earlier-after-1h+namespaces-after-2h: late/c",
            "completion: mild/d"
        ]
    );
    for (name, verdict) in [
        ("soon/b", Verdict::Evict),
        ("late/c", Verdict::Evict),
        ("mild/d", Verdict::AwaitCompletion),
        ("batch/e", Verdict::AwaitCompletion),
        ("stays/f", Verdict::Keep),
    ] {
        assert_eq!(plan.verdict(name), Some(verdict), "{name}");
    }
    assert_eq!(
        plan.reason("late/c").unwrap(),
        "evicted after 2h: evicted after 1h; namespace late: DeleteAfterTimeout, deleted after 2h"
    );
}
