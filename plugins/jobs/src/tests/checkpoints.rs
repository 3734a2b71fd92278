//! Pods that are asked for a checkpoint, and those that cannot be asked.

use std::time::Duration;

use scupper_sdk::{
    Description, Draft, Drain, Node, Outcome, Phase, Planner, Pod, Policy, Subject, description,
    testing::{Host, pod},
};

use super::{Jobs, awaited, step};

const REQUESTED: &str = "checkpoint.example.com/requested";

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
    assert_eq!(awaited(&outcome), ["ml/train: the API server restarts"]);
    host.outage(None);
    let outcome = host.step::<Jobs>(Phase::BeforeDrain, Subject::Node);
    assert_eq!(outcome, Outcome::Done);
    assert!(host.pod("ml/train").unwrap().annotation(REQUESTED).is_some());
}

const DENIED: &str = "admission webhook \"pods.example.com\" denied the request";

#[test]
fn a_pod_that_cannot_be_asked_keeps_no_other_from_being_asked_and_delays_the_drain_by_a_minute() {
    let names = ["ml/a", "ml/b", "ml/c", "ml/d", "ml/e"];
    let host = asking(names.map(|name| saves("5m", name)));
    for name in ["ml/a", "ml/b", "ml/c"] {
        host.deny_changes(name, Some(DENIED));
    }
    host.plan::<Jobs>().unwrap();
    let run = host.run_hook::<Jobs>(Phase::BeforeDrain, Subject::Node, 1_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(60))
    );
    let asked = |name: &&str| host.pod(name).unwrap().annotation(REQUESTED).is_some();
    let asked: Vec<_> = names.into_iter().filter(asked).collect();
    assert_eq!(asked, ["ml/d", "ml/e"]);
    let (_, line) = host.log().pop().unwrap();
    assert!(
        line.ends_with(&format!("cannot be asked for a checkpoint: {DENIED}")),
        "{line}"
    );
}

#[test]
fn a_pod_that_cannot_be_asked_leaves_at_its_cap() {
    let host = asking([saves("5m", "ml/train")]);
    host.deny_changes("ml/train", Some(DENIED));
    let outcome = step(&host, "jobs-after-5m");
    let wanted = format!("ml/train: cannot be asked for a checkpoint: {DENIED}");
    assert_eq!(awaited(&outcome), [wanted]);
    let wave = Subject::Wave("jobs-after-5m".to_owned());
    let run = host.run_hook::<Jobs>(Phase::BeforeWave, wave, 1_000);
    assert_eq!(
        (run.outcome(), run.took),
        (Some(&Outcome::Done), Duration::from_secs(300))
    );
}

#[test]
fn a_request_that_cannot_be_withdrawn_keeps_no_other() {
    let names = ["ml/a", "ml/b", "ml/c", "ml/d"];
    let host = asking(names.map(|name| saves("5m", name)));
    assert_eq!(
        host.step::<Jobs>(Phase::BeforeDrain, Subject::Node),
        Outcome::Done
    );
    host.deny_changes("ml/a", Some(DENIED));
    let outcome = host.step::<Jobs>(Phase::OnCancel, Subject::Node);
    assert!(matches!(outcome, Outcome::Failed(failure) if failure.retry_after.is_some()));
    let asked = |name: &&str| host.pod(name).unwrap().annotation(REQUESTED).is_some();
    let asked: Vec<_> = names.into_iter().filter(asked).collect();
    assert_eq!(asked, ["ml/a"]);
}
