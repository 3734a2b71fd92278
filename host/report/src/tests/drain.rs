//! A drain as lines, as JSON lines, in the live display, as conditions and as Events.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scupper_api::{ClaimStatus, LifecycleEvent, NodeCondition};
use scupper_engine::{Condition, Intent, Node, Notice, Outcome, Phase, Reason, Removal, Request, Time, Uid};

use super::super::conditions::{COMPLETED, STARTED};
use super::super::fixture::{mark, node, pod, request, status};
use super::super::{
    BlockedCondition, DrainLines, DrainOutput, DrainStatus, Format, HookStatus, NodeEvent, PodEvents,
    PolicyMessage, ProgressBoard, StatusBuilder, conditions_for, conditions_of_abandoned,
    conditions_of_started, conditions_of_uncordoned, event_for, policy_event_note,
};
use super::accepted;
use super::samples::{NOW, ago, endings, estimate, outcomes, pods, raising_plan, reasons, story, waiting};
use crate::messages::needs_no_report;
use crate::tone_of;
use scupper_screen::{Size, Tone};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn policy_messages() -> [PolicyMessage; 2] {
    [false, true].map(|warning| PolicyMessage {
        policy: "slurm".to_owned(),
        warning,
        reason: "StaysDrained".to_owned(),
        note: "node-1 stays DRAIN: ticket 7".to_owned(),
    })
}

fn unready() -> Node {
    Node {
        conditions: vec![Condition {
            kind: "Ready".to_owned(),
            status: "Unknown".to_owned(),
            reason: "NodeStatusUnknown".to_owned(),
            message: "Kubelet stopped posting node status.".to_owned(),
            since: Some(ago(300)),
        }],
        ..node(mark("command", Phase::Evicting))
    }
}

fn uncordon() -> Request {
    Request {
        intent: Intent::Uncordon,
        name: "uncordon-worker-1".to_owned(),
        deadline: Some(NOW + Duration::from_secs(300)),
        ..request()
    }
}

/// The output of the whole drain, and of each ending as the end of a drain of its own.
fn reported(format: Format) -> String {
    let kept = Kept::default();
    let begin =
        |began: Time, request: &Request| DrainOutput::begin(format, began, request, Box::new(kept.clone()));
    let mut sink = begin(ago(72), &request());
    sink.know(&pods());
    sink.node(ago(71), &unready());
    for words in policy_messages() {
        sink.policy_message(ago(70), &words);
    }
    for notice in story() {
        sink.notice(NOW, &notice);
        if let Notice::PodWaits { .. } = notice {
            // The same notice again, a while later.
            sink.notice(NOW + Duration::from_millis(3400), &notice);
        }
    }
    for ending in endings() {
        let is_uncordon = matches!(
            &ending,
            Notice::Finished {
                outcome: Outcome::Uncordoned { .. },
                ..
            }
        );
        let request = if is_uncordon { uncordon() } else { request() };
        begin(ago(72), &request).notice(NOW, &ending);
    }
    begin(ago(72), &request()).notice(NOW, &Notice::Planned(raising_plan()));
    kept.text()
}

#[test]
fn lines_of_a_drain() {
    accepted("drain-lines", &reported(Format::Human));
}

#[test]
fn json_lines_of_a_drain() {
    accepted("drain-json", &reported(Format::Json));
}

fn driver_status() -> DrainStatus {
    let mut builder = StatusBuilder::default();
    let hooks = story()
        .into_iter()
        .filter(|it| matches!(it, Notice::HookWaiting { .. }));
    for hook in hooks.take(5) {
        builder.notice(NOW, &hook);
    }
    builder.notice(
        NOW,
        &Notice::WaveStarted {
            name: "web".to_owned(),
            number: 1,
            of: 2,
            pods: 3,
        },
    );
    let volumes = story()
        .into_iter()
        .find(|it| matches!(it, Notice::AwaitsVolumes { .. }));
    builder.notice(NOW, &volumes.unwrap());
    builder.build(ago(4), "u-1", waiting(), None)
}

#[test]
fn the_live_display() {
    let board = ProgressBoard::default();
    board.expect(4);
    board.begin("worker-0", ago(72), "waits for its turn");
    board.finish("worker-0");
    board.begin("worker-1", ago(72), "requested");
    board.begin("worker-2", ago(5), "requested");
    let mut shown = status(scupper_engine::Checkpoint {
        id: "u-1".to_owned(),
        deadline: Some(NOW + Duration::from_secs(288)),
        ..mark("LifecycleEvent", Phase::Holding)
    });
    shown.pods = pods();
    shown.driver = Some(driver_status());
    shown.lifecycle_events = vec![LifecycleEvent {
        name: "drain-worker-1".to_owned(),
        transition: "drain.slm.k8s.io".to_owned(),
        claim: ClaimStatus::Claimed,
        ..LifecycleEvent::default()
    }];
    board.observe("drain-worker-1", &Uid::new("u-1"), &shown);
    let mut text = String::new();
    for (columns, rows) in [(150, 80), (90, 30), (50, 12), (30, 4)] {
        text.push_str(&format!("── {columns} columns, {rows} rows\n"));
        for line in board.frame(Size { rows, columns }, NOW) {
            text.push_str(&format!("{line}\n"));
        }
    }
    accepted("live-display", &text);
}

#[test]
fn the_live_display_in_each_phase() {
    let mut text = String::new();
    for phase in super::samples::phases() {
        let board = ProgressBoard::default();
        board.begin("worker-1", ago(72), "requested");
        let mut shown = status(mark("LifecycleEvent", phase));
        let view = driver_status();
        let hook = |hook: &HookStatus| Some(hook.clone());
        shown.driver = Some(DrainStatus {
            hooks: view.hooks.first().and_then(hook).into_iter().collect(),
            pods: Vec::new(),
            wave: None,
            ..view
        });
        board.observe("drain-worker-1", &Uid::new("id"), &shown);
        let lines = board.frame(
            Size {
                rows: 9,
                columns: 150,
            },
            NOW,
        );
        text.push_str(&format!("{}\n", lines.join("\n")));
    }
    accepted("live-display-phases", &text);
}

fn change_words(changes: &[NodeCondition]) -> String {
    let words = changes.iter().map(|it| {
        let NodeCondition {
            kind,
            status,
            reason,
            message,
        } = it;
        format!("  {kind}={status} {reason}: {message}\n")
    });
    words.collect()
}

fn event_words(event: &NodeEvent) -> String {
    let kind = if event.warning { "Warning" } else { "Normal" };
    format!("  {kind} {}: {}\n", event.reason, event.note)
}

/// What is written when the end of a drain is known.
fn estimated() -> String {
    let (mut blocked, request) = (BlockedCondition::default(), request());
    let [in_progress, _] = conditions_of_started(&request, None).try_into().unwrap();
    blocked.observe(&with(
        in_progress.kind,
        in_progress.status,
        &in_progress.reason,
        &in_progress.message,
    ));
    blocked.estimated(NOW, &estimate());
    let conditions = blocked.due(NOW, &request, Phase::Evicting, &[]).unwrap();
    let event = estimate().event(NOW, &request).unwrap();
    format!(
        "its end is estimated\n{}{}",
        change_words(&conditions),
        event_words(&event)
    )
}

/// The conditions and Events of each notice; most notices write nothing.
#[test]
fn conditions_and_events_of_notices() {
    let mut text = format!(
        "a drain begins\n{}",
        change_words(&conditions_of_started(&request(), None))
    );
    text.push_str(&estimated());
    for (what, request) in [("drain", request()), ("uncordon", uncordon())] {
        for notice in [story(), endings()].concat() {
            let conditions = conditions_for(&request, &notice).map(|it| change_words(&it));
            let event = event_for(&request, &notice).map(|it| event_words(&it));
            let head = match &notice {
                Notice::Finished { outcome, summary } => {
                    format!("{what}: {}, {} steps", outcome.name(), summary.totals.hook_steps)
                }
                notice => format!("{what}: {}", super::Variants::variant(notice)),
            };
            if conditions.is_some() || event.is_some() {
                let (conditions, event) = (conditions.unwrap_or_default(), event.unwrap_or_default());
                text.push_str(&format!("{head}\n{conditions}{event}"));
            }
        }
    }
    for words in policy_messages() {
        let (reason, warning) = (words.reason, words.warning);
        let note = policy_event_note(&words.policy, &words.note);
        text.push_str(&format!(
            "a policy speaks\n{}",
            event_words(&NodeEvent {
                warning,
                reason,
                note
            })
        ));
    }
    accepted("conditions-and-events", &text);
}

fn with(kind: &str, status: &str, reason: &str, message: &str) -> Node {
    let condition = Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        since: None,
    };
    Node {
        unschedulable: false,
        conditions: vec![condition],
        ..node(mark("command", Phase::Evicting))
    }
}

/// The conditions and Events for each reason why pods wait, one by one and all together.
#[test]
fn conditions_and_events_of_blockers() {
    let later = NOW + Duration::from_secs(31);
    let all = waiting();
    let each = all.iter().map(|it| (it.1.name(), std::slice::from_ref(it)));
    let mut text = String::new();
    for (name, waiting) in each.chain([("all of them", all.as_slice())]) {
        text.push_str(&format!("{name}\n"));
        let mut condition = BlockedCondition::default();
        condition.observe(&with("DrainInProgress", "True", STARTED, ""));
        for hook in story().iter().filter(|_| name == "all of them").take(19) {
            condition.notice(hook);
        }
        let (mut stuck, request) = (PodEvents::default(), request());
        for time in [NOW, later] {
            let changes = condition.due(time, &request, Phase::Evicting, waiting);
            text.push_str(&changes.map(|it| change_words(&it)).unwrap_or_default());
            for (pod, event, _) in stuck.due(time, &request, waiting) {
                text.push_str(&format!("  pod {pod}\n  {}", event_words(&event)));
            }
            for (budget, pod, event, _) in stuck.due_of_budgets(time, &request, waiting) {
                text.push_str(&format!("  budget {budget} by {pod}\n  {}", event_words(&event)));
            }
        }
    }
    let uncordoned = conditions_of_uncordoned(&with("Drained", "True", COMPLETED, ""));
    text.push_str(&format!(
        "uncordoned by others\n{}",
        change_words(&uncordoned.unwrap())
    ));
    let abandoned = conditions_of_abandoned(&with("DrainInProgress", "True", STARTED, ""), "gone");
    text.push_str(&format!("abandoned\n{}", change_words(&abandoned.unwrap())));
    accepted("conditions-and-events-of-blockers", &text);
}

/// The table of colours has names as they are printed: one that is renamed must not lose its colour.
#[test]
fn every_blocker_and_every_end_has_a_colour() {
    let tone = |line: &str| tone_of(line).map(|(_, tone)| tone);
    for reason in reasons() {
        // Of one that is gone nothing is to be said.
        let is_plain = needs_no_report(&reason) || reason.name() == "UidDisproved";
        let found = tone(&format!("    shop/web  {:<20}  why", reason.name()));
        assert!(is_plain || found.is_some(), "{reason:?}");
    }
    for outcome in outcomes() {
        let found = tone(&format!("      1.5s  end      {} in 3s: why", outcome.name()));
        assert_eq!(found == Some(Tone::Done), outcome.is_success(), "{outcome:?}");
        assert!(found.is_some(), "{outcome:?}");
    }
}

/// A hook that waits has a colour, one that has finished has none.
#[test]
fn a_hook_that_holds_a_drain_up_has_a_colour() {
    let (mut progress, _) = DrainLines::begin(ago(72), &request());
    for notice in story() {
        let tone = match &notice {
            Notice::HookWaiting { .. } => Some(Tone::Blocks),
            Notice::HookDone { .. } => None,
            _ => continue,
        };
        let lines = progress.lines(NOW, &notice);
        assert_eq!(tone_of(&lines[0]).map(|(_, tone)| tone), tone, "{lines:#?}");
    }
}

/// A budget holds up hundreds of pods: the first three tell why, the others are counted, until one of the three has left.
#[test]
fn pods_that_wait_for_the_same_are_counted_from_the_fourth_on() {
    let (mut progress, _) = DrainLines::begin(NOW, &request());
    let at = |millis| NOW + Duration::from_millis(millis);
    let waits = |number: u32| Notice::PodWaits {
        pod: pod(&format!("web-{number}")),
        reason: Reason::BudgetExhausted {
            budget: "web".to_owned(),
            message: "it needs 8 healthy pods and has 8".to_owned(),
        },
    };
    let why = "budget web blocks it: it needs 8 healthy pods and has 8";
    for number in 0..3 {
        let line = format!("      0.0s  waits    shop/web-{number}: {why}");
        assert_eq!(progress.lines(at(0), &waits(number)), [line]);
    }
    for number in 3..9 {
        assert_eq!(progress.lines(at(100), &waits(number)), [""; 0]);
    }
    let leaves = |number: u32| Notice::PodLeaving {
        pod: pod(&format!("web-{number}")),
        by: Removal::Evict,
    };
    let evict = |number: u32| format!("      0.2s  evict    shop/web-{number} (was held up for 0.1s)");
    assert_eq!(progress.lines(at(200), &leaves(8)), [evict(8)]);
    assert_eq!(progress.turn(at(900)), [""; 0], "more may come");
    let more = format!("      1.1s  waits    and 5 more pods of shop wait for the same: {why}");
    assert_eq!(progress.turn(at(1100)), [more]);
    assert_eq!(progress.turn(at(9000)), [""; 0]);
    // Another has left; what one more waits for is told again.
    assert_eq!(progress.lines(at(9000), &leaves(0)).len(), 1);
    assert_eq!(
        progress.lines(at(9000), &waits(9)),
        [format!("      9.0s  waits    shop/web-9: {why}")]
    );
    // What is left to tell is told before the end.
    assert_eq!(progress.lines(at(9000), &waits(10)), [""; 0]);
    let lines = progress.lines(at(9100), &endings()[0]);
    assert_eq!(
        lines[0],
        format!("      9.1s  waits    and 1 more pod of shop waits for the same: {why}")
    );
}
