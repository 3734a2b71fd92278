//! Requests in, commands and conditions out.

use scupper_api::{DrainRequestRef, Entity, RequestCondition};
use scupper_engine::{Condition, PodRef};

use super::*;
use crate::ResumePoint;

mod departing;
mod joining;
mod planning;
mod resuming;

const HOUR: Duration = Duration::from_secs(3600);
const NAMESPACE: &str = "nvsentinel";

/// The UID of the request for which the drain of this id was begun.
fn request_of(id: &str) -> &str {
    id.split_once('.').map_or(id, |(uid, _)| uid)
}

/// A trigger, and its time.
struct Rig {
    state: RequestState,
    now: Time,
}

fn request(uid: &str) -> ObservedRequest {
    ObservedRequest {
        reference: DrainRequestRef {
            namespace: NAMESPACE.to_owned(),
            name: format!("drain-{uid}"),
            uid: uid.to_owned(),
        },
        created: None,
        deleting: false,
        problem: None,
        only_pods: None,
        conditions: Vec::new(),
        fields: Arc::new(DrainRequestFields {
            uid: uid.to_owned(),
            ..DrainRequestFields::default()
        }),
    }
}

fn of_gpu(uid: &str, gpu: &str) -> ObservedRequest {
    let entity = Entity {
        kind: "GPU_UUID".to_owned(),
        value: gpu.to_owned(),
    };
    let fields = DrainRequestFields {
        uid: uid.to_owned(),
        entities: [entity].into(),
        ..DrainRequestFields::default()
    };
    ObservedRequest {
        fields: Arc::new(fields),
        ..request(uid)
    }
}

fn with(uid: &str, kind: &str, status: &str, reason: &str, since: Time) -> ObservedRequest {
    let condition = Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: "the driver of node worker-1 drains it".to_owned(),
        since: Some(since),
    };
    ObservedRequest {
        conditions: vec![condition],
        ..request(uid)
    }
}

fn naming(uid: &str, pods: &[&str]) -> ObservedRequest {
    let names = pods.iter().map(ToString::to_string).collect();
    ObservedRequest {
        only_pods: Some([("shop".to_owned(), names)].into()),
        ..request(uid)
    }
}

fn failed() -> UnwrittenConditions {
    UnwrittenConditions::Failed("no answer".to_owned())
}

impl Rig {
    /// It knows these requests, and no process left anything.
    fn with(requests: Vec<ObservedRequest>) -> Self {
        let mut rig = Self::unresumed(requests);
        rig.finds(None);
        rig
    }

    /// It knows these requests, and has not read the node.
    fn unresumed(requests: Vec<ObservedRequest>) -> Self {
        let mut rig = Self::serving(&[NAMESPACE]);
        rig.lists(NAMESPACE, requests);
        assert!(rig.state.needs_resume_point());
        rig
    }

    /// It serves these namespaces, and knows nothing yet.
    fn serving(namespaces: &[&str]) -> Self {
        let names = ConditionNames {
            node: "worker-1".to_owned(),
            ..ConditionNames::default()
        };
        let namespaces: Vec<_> = namespaces.iter().map(ToString::to_string).collect();
        Self {
            state: RequestState::new(&namespaces, names, Some(HOUR)),
            now: Time::from_millis(1_000_000_000),
        }
    }

    fn lists(&mut self, namespace: &str, requests: Vec<ObservedRequest>) {
        let listed = RequestChange::Listed(namespace.to_owned(), requests);
        self.state.handle_change(listed, self.now);
    }

    /// The node says that a former process left this drain.
    fn finds(&mut self, left: Option<ResumePoint>) {
        self.state.handle_resume_point(left, self.now);
    }

    /// The commands to the driver, in short.
    fn commands(&mut self) -> Vec<String> {
        self.state.advance(self.now, true);
        let now = self.now;
        let short = |command| match command {
            DrainCommand::Begin(begin) => format!("begin {}", request_of(&begin.id)),
            DrainCommand::Cancel { id, .. } => format!("cancel {}", request_of(&id)),
            DrainCommand::Deadline { id, deadline } => {
                format!(
                    "deadline {} {:?}",
                    request_of(&id),
                    deadline.map(|deadline| deadline.since(now).as_secs())
                )
            }
            DrainCommand::Lost { id, .. } => format!("lost {}", request_of(&id)),
        };
        std::iter::from_fn(|| self.state.poll_command())
            .map(short)
            .collect()
    }

    fn apply(&mut self, request: ObservedRequest) {
        self.state
            .handle_change(RequestChange::Applied(request), self.now);
    }

    fn delete(&mut self, uid: &str) {
        self.state
            .handle_change(RequestChange::Deleted(uid.to_owned()), self.now);
    }

    /// The id of the drain that is under way for this request.
    fn id(&self, uid: &str) -> String {
        let drain = self.state.drain.as_ref();
        let own = drain.filter(|drain| request_of(&drain.id) == uid);
        own.map_or_else(|| uid.to_owned(), |drain| drain.id.clone())
    }

    fn started(&mut self, uid: &str) {
        let id = self.id(uid);
        self.state.handle_report(DrainReport::Started { id }, self.now);
    }

    fn ended(&mut self, uid: &str, outcome: Option<Outcome>) {
        let id = self.id(uid);
        self.state.handle_report(
            DrainReport::Ended {
                id,
                outcome,
                partial: false,
            },
            self.now,
        );
    }

    fn passes(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// The drain, and the UIDs of what policies learn that it serves.
    fn served(&mut self) -> Option<String> {
        self.state.advance(self.now, true);
        let ServedRequests { drain, requests } = self.state.served()?;
        let uids: Vec<_> = requests.iter().map(|fields| fields.uid.as_str()).collect();
        Some(format!("{}: {}", request_of(&drain), uids.join(" ")))
    }

    /// Writes everything that is due, as `UID: TYPE=STATUS REASON, ...`.
    fn written(&mut self) -> Vec<String> {
        self.state.advance(self.now, true);
        let mut all = Vec::new();
        while let Some(write) = self.state.poll_write(self.now) {
            let short = |it: &RequestCondition| {
                format!(
                    "{}={} {}",
                    it.kind.trim_start_matches("Drain"),
                    it.status,
                    it.reason
                )
            };
            let conditions: Vec<_> = write.conditions.iter().map(short).collect();
            all.push(format!("{}: {}", write.reference.uid, conditions.join(", ")));
            self.state.handle_written(&write, &Ok(()), self.now);
        }
        all
    }
}

fn drained() -> Option<Outcome> {
    Some(Outcome::Drained)
}

#[test]
fn a_request_becomes_a_drain_and_gets_its_answer_once() {
    let mut rig = Rig::with(vec![request("a")]);
    assert_eq!(rig.commands(), ["begin a"]);
    assert!(rig.commands().is_empty());
    assert!(rig.written().is_empty(), "nothing is known yet");
    rig.started("a");
    assert_eq!(rig.commands(), ["deadline a Some(3600)"]);
    assert_eq!(rig.written(), ["a: InProgress=true Draining"]);
    rig.ended("a", drained());
    assert_eq!(
        rig.written(),
        ["a: Complete=true Drained, InProgress=false Drained"]
    );
    assert!(rig.commands().is_empty() && rig.written().is_empty());
    assert!(!rig.state.is_busy());
}

#[test]
fn several_requests_become_one_drain_and_each_gets_its_answer() {
    let mut rig = Rig::with(vec![request("a"), request("b")]);
    assert_eq!(rig.commands(), ["begin a"]);
    rig.started("a");
    rig.apply(request("c"));
    assert_eq!(rig.written().len(), 3);
    // The drain goes on for the others.
    rig.delete("a");
    let commands = rig.commands();
    assert!(
        commands.iter().all(|command| command.starts_with("deadline")),
        "{commands:?}"
    );
    rig.ended("a", drained());
    let written = rig.written();
    assert_eq!(written.len(), 3, "{written:?}");
    // Should it still exist, and name another node.
    assert_eq!(written[0], "a: InProgress=false NodeChanged");
    assert!(
        written[1..].iter().all(|write| write.contains("Complete=true")),
        "{written:?}"
    );
}

#[test]
fn the_oldest_request_names_the_drain() {
    let older = ObservedRequest {
        created: Some(Time::from_millis(1)),
        ..request("z")
    };
    let newer = ObservedRequest {
        created: Some(Time::from_millis(2)),
        ..request("a")
    };
    assert_eq!(Rig::with(vec![newer, older]).commands(), ["begin z"]);
}

#[test]
fn without_any_request_left_the_drain_is_cancelled_and_the_next_waits_for_its_end() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.commands();
    rig.delete("a");
    assert_eq!(rig.commands(), ["cancel a"]);
    rig.apply(request("b"));
    assert!(rig.commands().is_empty());
    rig.passes(Duration::from_secs(3));
    assert_eq!(rig.written(), ["b: InProgress=false Waiting"]);
    rig.ended(
        "a",
        Some(Outcome::Cancelled {
            reason: String::new(),
        }),
    );
    assert_eq!(rig.commands(), ["begin b"]);
}

#[test]
fn a_request_that_is_being_deleted_counts_as_deleted() {
    let deleting = ObservedRequest {
        deleting: true,
        ..request("a")
    };
    let mut rig = Rig::with(vec![deleting.clone()]);
    assert!(rig.commands().is_empty() && rig.written().is_empty());
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.apply(deleting);
    assert_eq!(rig.commands(), ["cancel a"]);
    assert!(rig.written().is_empty());
}

#[test]
fn a_request_that_any_process_answered_is_never_a_drain() {
    for (kind, status) in [
        ("DrainComplete", "True"),
        ("DrainComplete", "true"),
        ("DrainFailed", "True"),
    ] {
        let answered = with("a", kind, status, "ByHand", Time::default());
        let mut rig = Rig::with(vec![answered.clone()]);
        assert!(
            rig.commands().is_empty() && rig.written().is_empty(),
            "{kind}={status}"
        );
        let mut rig = Rig::with(vec![request("a")]);
        rig.commands();
        rig.apply(answered);
        assert_eq!(rig.commands(), ["cancel a"]);
    }
    let open = with("a", "DrainComplete", "False", "NotYet", Time::default());
    assert_eq!(Rig::with(vec![open]).commands(), ["begin a"]);
}

#[test]
fn a_drain_that_fails_is_answered_with_its_reason_and_not_tried_again() {
    let remaining = vec![PodRef {
        namespace: "shop".to_owned(),
        name: "cart".to_owned(),
        uid: scupper_engine::Uid::new("u"),
    }];
    for (outcome, reason) in [
        (
            Outcome::DeadlineExceeded {
                remaining,
                held_up: None,
            },
            "DeadlineExceeded",
        ),
        (Outcome::Blocked { pods: Vec::new() }, "Blocked"),
        (
            Outcome::Cancelled {
                reason: "by a person".to_owned(),
            },
            "Cancelled",
        ),
    ] {
        let mut rig = Rig::with(vec![request("a")]);
        rig.commands();
        rig.started("a");
        rig.ended("a", Some(outcome));
        assert_eq!(rig.written(), [format!("a: Failed=true {reason}")]);
        rig.passes(HOUR);
        assert!(rig.commands().is_empty());
    }
}

#[test]
fn a_drain_without_an_outcome_is_requested_again_after_a_pause() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.commands();
    rig.ended("a", None);
    assert!(rig.commands().is_empty());
    rig.passes(AGAIN);
    assert_eq!(rig.commands(), ["begin a"]);
}

#[test]
fn each_request_has_its_own_deadline_and_the_drain_the_last_one() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.commands();
    rig.written();
    rig.passes(HOUR / 2);
    rig.apply(request("b"));
    assert_eq!(rig.commands(), ["deadline a Some(3600)"]);
    rig.passes(HOUR / 2);
    assert!(rig.commands().is_empty(), "the drain continues for b");
    let written = rig.written();
    assert!(
        written[0].starts_with("a: Failed=true DeadlineExceeded"),
        "{written:?}"
    );
    assert!(written[1].starts_with("b: InProgress=true"), "{written:?}");
    rig.ended("a", drained());
    assert_eq!(
        rig.written(),
        ["b: Complete=true Drained, InProgress=false Drained"]
    );
}

#[test]
fn a_policy_that_holds_the_drain_is_reported_and_its_words_seldom() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    rig.written();
    let id = rig.id("a");
    let held = |text: &str| DrainReport::Held {
        id: id.clone(),
        by: vec![text.to_owned()],
    };
    let now = rig.now;
    rig.state.handle_report(held("slurm: 2 jobs"), now);
    assert_eq!(
        rig.written(),
        ["a: InProgress=true Draining, Deferred=true PolicyHolds"]
    );
    rig.state.handle_report(held("slurm: 1 job"), now);
    assert!(rig.written().is_empty(), "only its words have changed");
    rig.passes(Duration::from_secs(10));
    assert_eq!(rig.written().len(), 1);
    let free = DrainReport::Held {
        id: id.clone(),
        by: Vec::new(),
    };
    rig.state.handle_report(free, now);
    assert_eq!(
        rig.written(),
        ["a: InProgress=true Draining, Deferred=false NotHeld"]
    );
}

#[test]
fn a_request_that_cannot_be_served_is_refused_and_keeps_no_other_from_being_served() {
    let broken = ObservedRequest {
        problem: Some("spec.nodeName is missing".to_owned()),
        ..request("a")
    };
    let mut rig = Rig::with(vec![broken, request("b")]);
    assert_eq!(rig.commands(), ["begin b"]);
    assert_eq!(rig.written(), ["a: Failed=true InvalidRequest"]);
}

#[test]
fn a_write_that_fails_is_tried_again_later_and_later() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        let write = rig.state.poll_write(rig.now).unwrap();
        assert_eq!(rig.state.poll_write(rig.now), None, "one at a time");
        rig.state.handle_written(&write, &Err(failed()), rig.now);
        rig.passes(Duration::from_secs(pause) - Duration::from_millis(1));
        assert_eq!(rig.state.poll_write(rig.now), None);
        rig.passes(Duration::from_millis(1));
    }
    assert_eq!(rig.written().len(), 1);
}

#[test]
fn a_new_list_of_a_namespace_replaces_the_old_one() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    let listed = RequestChange::Listed(NAMESPACE.to_owned(), vec![request("b")]);
    rig.state.handle_change(listed, rig.now);
    assert!(rig.commands().is_empty(), "b takes the place of a");
    let listed = RequestChange::Listed("elsewhere".to_owned(), Vec::new());
    rig.state.handle_change(listed, rig.now);
    assert!(rig.commands().is_empty());
    rig.delete("b");
    assert_eq!(rig.commands(), ["cancel a"]);
}

#[test]
fn a_second_drain_for_a_request_is_another_drain_which_a_restart_still_finds() {
    let mut rig = Rig::with(vec![request("a")]);
    rig.commands();
    rig.started("a");
    let first = rig.id("a");
    rig.ended("a", None);
    rig.passes(Duration::from_secs(10));
    assert_eq!(rig.commands(), ["begin a"]);
    let second = rig.id("a");
    assert_ne!(first, second);
    // A process that continues it keeps its id.
    let mut next = Rig::unresumed(vec![request("a")]);
    next.finds(Some(resuming::left(&second)));
    assert_eq!(next.commands(), ["begin a"]);
    assert_eq!(next.id("a"), second);
}
