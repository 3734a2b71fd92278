//! Tests the policy without wasm and without a cluster.

use std::time::Duration;

use scupper_sdk::{
    Call, Description, Draft, Drain, Hold, Hooks, Node, Outcome, Phase, Planner, Policy, Subject, Verdict,
    description, hold,
    testing::{Host, peer, pod},
};

use super::Gangs;

/// A gang `bert` of two pods here and these on other nodes.
fn host(elsewhere: &[(&str, &str)]) -> Host {
    let host = Host::new();
    host.pods([pod("ml/train-0"), pod("shop/cart"), pod("ml/train-1")]);
    let others = elsewhere.iter().map(|(name, node)| peer(name, node));
    host.group_peers("bert", &["ml/train-0", "ml/train-1"], others);
    host
}

fn step(host: &Host, wave: &str) -> Outcome {
    host.step::<Gangs>(Phase::BeforeWave, Subject::Wave(wave.to_owned()))
}

#[test]
fn the_reason_names_the_pods_on_other_nodes() {
    let nodes = [("a", "n2"), ("b", "n3"), ("c", "n3"), ("d", "n4"), ("e", "n5")];
    let host = host(&nodes);
    let plan = host.plan::<Gangs>().unwrap();
    assert_eq!(plan.waves(), ["all: shop/cart ml/train-0 ml/train-1"]);
    let reason = plan.reason("ml/train-0").unwrap();
    let wanted = "gang bert of 2 pods here and 5 more pods on n2, n3, n4 and 1 more node; ";
    assert!(reason.starts_with(wanted), "{reason}");
    assert!(!plan.reason("shop/cart").unwrap().contains("gang"));
}

#[test]
fn groups_count_unless_they_are_switched_off_and_controllers_only_with_a_mark() {
    let host = host(&[]);
    host.config("scheduling-groups", "false");
    assert_eq!(host.plan::<Gangs>().unwrap().plan(), host.draft().plan());
    let replica = || pod("ml/serve-0").with_label("example.com/gang", "yes");
    host.pods([replica()]);
    host.controller_peers("serve", &["ml/serve-0"], [peer("serve-1", "node-9")]);
    assert_eq!(host.plan::<Gangs>().unwrap().plan(), host.draft().plan());
    host.config("controllers", "example.com/gang = y*");
    let plan = host.plan::<Gangs>().unwrap();
    let reason = plan.reason("ml/serve-0").unwrap();
    assert!(
        reason.contains("of 1 pod here and 1 more pod on node-9"),
        "{reason}"
    );
}

#[test]
fn a_gang_waits_for_its_pods_on_other_nodes_and_no_longer_than_its_time() {
    let host = host(&[("a", "n2")]);
    assert_eq!(Gangs::phases(), []);
    host.config("spanning", "hold 10m");
    assert_eq!(Gangs::phases(), [Phase::BeforeWave]);
    let plan = host.plan::<Gangs>().unwrap();
    assert_eq!(
        plan.waves(),
        ["all: shop/cart", "gangs-after-10m: ml/train-0 ml/train-1"]
    );
    let Outcome::Pending(pending) = step(&host, "gangs-after-10m") else {
        panic!("it does not wait");
    };
    assert_eq!(pending.waiting_for[0].detail, "waits for 1 more pod on n2");
    host.outage(Some("the API server restarts"));
    let wave = Subject::Wave("gangs-after-10m".to_owned());
    let run = host.run_hook::<Gangs>(Phase::BeforeWave, wave, 1_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(600))
    );
}

#[test]
fn peers_that_end_are_not_waited_for() {
    let host = host(&[]);
    host.config("spanning", "hold 10m");
    let mut ending = peer("a", "n2");
    ending.deletion_timestamp = Some(1);
    host.group_peers("bert", &["ml/train-0", "ml/train-1"], [ending]);
    assert_eq!(host.plan::<Gangs>().unwrap().waves().len(), 1);
    assert_eq!(step(&host, "gangs-after-10m"), Outcome::Done);
    assert_eq!(step(&host, "jobs-after-10m"), Outcome::Done);
}

#[test]
fn an_outage_makes_no_plan() {
    let host = host(&[]);
    host.outage(Some("the API server restarts"));
    assert!(host.plan::<Gangs>().unwrap_err().contains("restarts"));
}

#[test]
fn wrong_values_are_problems() {
    for (key, value, words) in [
        ("scheduling-groups", "yes", "must be true or false"),
        ("controllers", "gang", "must be KEY=VALUE"),
        ("controllers", "the gang=true", "must be KEY=VALUE"),
        ("spanning", "hold", "must be evict, or hold and a time"),
        ("spanning", "hold 0s", "not zero"),
        ("groups", "a", "no such key"),
    ] {
        let host = Host::new();
        host.config(key, value);
        let problems = Gangs::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == key && problems[0].message.contains(words),
            "{key}: {problems:?}"
        );
    }
    let _host = Host::new();
    assert_eq!(Gangs::check_config(), []);
}

/// Holds one pod of the gang for four hours, and awaits the completion of the other.
struct Earlier;

impl Policy for Earlier {
    fn describe() -> Description {
        description!("Protects the pods of a gang")
    }
}

impl Planner for Earlier {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.running() {
            match pod.name.as_str() {
                "train-0" => {
                    draft.hold(
                        "earlier",
                        drain,
                        [(pod, Hold::at_most(Duration::from_secs(4 * 3600)))],
                    );
                }
                "train-1" => {
                    draft.await_completion(pod, "never evicted");
                    draft.move_to_wave(pod, "completion");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[test]
fn a_gang_leaves_no_earlier_than_an_earlier_policy_lets_any_of_its_pods() {
    let host = host(&[("a", "n2")]);
    host.config("spanning", "hold 10m");
    let draft = host.plan::<Earlier>().unwrap();
    let plan = host.plan_after::<Gangs>(&draft).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart",
            "gangs-after-10m+earlier-after-4h: ml/train-0 ml/train-1"
        ]
    );
    assert_eq!(plan.verdict("ml/train-0"), Some(Verdict::Evict));
    assert_eq!(plan.verdict("ml/train-1"), Some(Verdict::AwaitCompletion));
}

impl Hooks for Earlier {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeWave]
    }

    fn step(call: &Call) -> Outcome {
        hold::step("earlier", call, |_| Some("still runs".to_owned()))
    }
}

#[test]
fn a_gang_that_waits_for_longer_still_leaves_no_earlier_than_an_earlier_policy_lets_it() {
    let host = host(&[("a", "n2")]);
    host.config("spanning", "hold 8h");
    let draft = host.plan::<Earlier>().unwrap();
    let plan = host.plan_after::<Gangs>(&draft).unwrap();
    let waves = &plan.plan().waves;
    let wave = waves
        .iter()
        .find(|wave| wave.pods.contains(&pod("ml/train-0").uid))
        .unwrap();
    assert!(
        matches!(step(&host, &wave.name), Outcome::Pending(_)),
        "{}",
        wave.name
    );
    // The pod on the other node ends soon.
    host.group_peers("bert", &["ml/train-0", "ml/train-1"], []);
    assert_eq!(step(&host, &wave.name), Outcome::Done);
    let wave = Subject::Wave(wave.name.clone());
    let run = host.run_hook::<Earlier>(Phase::BeforeWave, wave, 10_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(4 * 3600))
    );
}

/// Two policies, each of which holds another pod of the gang.
struct Two;

impl Policy for Two {
    fn describe() -> Description {
        description!("Holds the pods of a gang")
    }
}

impl Planner for Two {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.running() {
            let (whose, minutes) = match pod.name.as_str() {
                "train-0" => ("one", 20),
                "train-1" => ("other", 10),
                _ => continue,
            };
            let hold = Hold::at_most(Duration::from_secs(60 * minutes));
            draft.hold(whose, drain, [(pod, hold)]);
        }
        Ok(())
    }
}

#[test]
fn all_who_hold_one_of_its_pods_hold_the_gang() {
    let host = host(&[]);
    let draft = host.plan::<Two>().unwrap();
    let plan = host.plan_after::<Gangs>(&draft).unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart",
            "other-after-10m+one-after-20m: ml/train-1 ml/train-0"
        ]
    );
}

/// A plain Deployment may have thousands of pods elsewhere.
#[test]
fn a_pod_without_a_mark_is_not_asked_about() {
    let host = host(&[]);
    host.config("scheduling-groups", "false");
    host.config("controllers", "example.com/gang=yes");
    // Whoever asks gets no plan.
    host.outage(Some("the API server restarts"));
    assert_eq!(host.plan::<Gangs>().unwrap().plan(), host.draft().plan());
}

#[test]
fn a_pod_in_two_groups_makes_them_one_gang() {
    let host = host(&[("a", "n2")]);
    host.group_peers("pair", &["ml/train-1", "shop/cart"], []);
    let plan = host.plan::<Gangs>().unwrap();
    for name in ["ml/train-0", "ml/train-1", "shop/cart"] {
        let reason = plan.reason(name).unwrap();
        assert!(
            reason.starts_with("gang bert of 3 pods here and 1 more pod on n2; "),
            "{reason}"
        );
    }
}

/// The steps of a hook are requests to the API server.
#[test]
fn a_gang_that_waits_asks_at_most_once_a_minute() {
    let host = host(&[("a", "n2")]);
    host.config("spanning", "hold 10m");
    host.plan::<Gangs>().unwrap();
    let wave = Subject::Wave("gangs-after-10m".to_owned());
    let run = host.run_hook::<Gangs>(Phase::BeforeWave, wave, 1_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(600))
    );
    assert!(run.outcomes.len() <= 11, "{} steps", run.outcomes.len());
}
