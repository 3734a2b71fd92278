//! Frames of every size.

use std::collections::BTreeMap;

use scupper_engine::{HookPhase, Reason, Subject, WaitingOn};

use super::*;
use crate::drain_status::{Estimate, HookStatus, WaveStatus};
use crate::fixture::pod;
use crate::live::node_progress::WaitsFor;

const NOW: Time = Time::from_millis(1_000_000);

fn node(name: &str, waits_for: Vec<WaitsFor>) -> NodeSnapshot {
    NodeSnapshot {
        node: name.to_owned(),
        phase_text: "evicting".to_owned(),
        began: Time::from_millis(928_400),
        deadline: Some(Time::from_millis(1_288_000)),
        estimate: None,
        pods: Some((3, 8)),
        wave: Some(WaveStatus {
            name: "web".into(),
            number: 1,
            of: 2,
        }),
        waits_for,
        closed: BTreeMap::new(),
    }
}

fn held(name: &str, reason: Reason) -> WaitsFor {
    WaitsFor::Pod(pod(name), reason)
}

fn budget() -> Reason {
    Reason::BudgetExhausted {
        budget: "cart".into(),
        message: "it needs 2 healthy pods and has 2".into(),
    }
}

fn turn() -> Reason {
    Reason::WaveNotStarted { wave: "db".into() }
}

fn hook() -> WaitsFor {
    let view = HookStatus {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        since: Time::from_millis(980_000),
        progress: "2 jobs\nrun".into(),
        waiting_for: vec![WaitingOn {
            what: "job 17".into(),
            detail: "training".into(),
            since: None,
        }],
    };
    WaitsFor::Hook(view, String::new())
}

fn drain() -> NodeSnapshot {
    let ending = Reason::Terminating {
        until: Time::from_millis(1_012_000),
    };
    node(
        "worker-1",
        vec![
            held("db-0", turn()),
            held("db-1", turn()),
            held("ends", ending),
            held("web-74c86df8dc-lbjdr", budget()),
            held("z", Reason::ParallelLimit),
        ],
    )
}

const fn room(columns: usize, rows: usize) -> Size {
    Size { rows, columns }
}

#[track_caller]
fn shows(nodes: &[NodeSnapshot], count: (usize, usize), room: Size, expected: &[&str]) {
    assert_eq!(lines(nodes, count, room, NOW), expected);
}

#[test]
fn the_most_important_blockers_come_first_and_turns_are_counted() {
    shows(
        &[drain()],
        (0, 1),
        room(110, 24),
        &[
            "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, 4m48s left",
            "  budget shop/cart  blocks 1 pod  it needs 2 healthy pods and has 2",
            "  shop/ends         Terminating   terminating, 12s of its grace period left",
            "  and 3 more: 2 WaveNotStarted, 1 ParallelLimit",
        ],
    );
    shows(
        &[node("worker-1", vec![held("db-0", turn()), hook()])],
        (0, 1),
        room(110, 24),
        &[
            "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, 4m48s left",
            "  hook slurm  HookRunning  before-drain for 20s: 2 jobs run; job 17: training",
            "  and 1 more: WaveNotStarted",
        ],
    );
    shows(
        &[node("worker-1", vec![held("db-0", turn()), held("db-1", turn())])],
        (0, 1),
        room(110, 24),
        &[
            "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, 4m48s left",
            "  2 pods: WaveNotStarted",
        ],
    );
}

/// As many rows as there are things to do.
#[test]
fn pods_of_which_the_same_is_to_be_said_have_one_line() {
    let ending = |until| Reason::Terminating {
        until: Time::from_millis(until),
    };
    let waits_for = vec![
        held("cart-57494cd9d7-h2c5m", budget()),
        held("other-0", budget()),
        held("cart-57494cd9d7-v69l9", budget()),
        held("db-0", ending(1_012_000)),
        held("db-1", ending(1_013_000)),
        held("web-0", ending(1_012_000)),
        held("z", turn()),
    ];
    let cart = ("shop".to_owned(), "cart".to_owned());
    let closed = BTreeMap::from([(cart, "minAvailable: 2 -> 1, or 1 more replica".to_owned())]);
    let node = NodeSnapshot {
        closed,
        ..node("worker-1", waits_for)
    };
    shows(
        &[node],
        (0, 1),
        room(130, 24),
        &[
            "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, 4m48s left",
            "  budget shop/cart      blocks 3 pods  minAvailable: 2 -> 1, or 1 more replica opens it; it needs 2 healthy pods and has 2",
            "  shop/db-0 and 1 more  Terminating    terminating, 13s of its grace period left",
            "  shop/web-0            Terminating    terminating, 12s of its grace period left",
            "  and 1 more: WaveNotStarted",
        ],
    );
}

#[test]
fn in_a_narrow_and_low_terminal_the_word_stays() {
    shows(
        &[drain()],
        (0, 1),
        room(39, 9),
        &[
            "worker-1  3/8 gone  4m48s left",
            "  budget shop/cart  blocks 1 pod",
            "  shop/ends         Terminating",
            "  and 3 more: 2 WaveNotStarted, 1 Pa...",
        ],
    );
    shows(
        &[drain()],
        (0, 1),
        room(39, 3),
        &[
            "worker-1  3/8 gone  4m48s left",
            "  budge...cart  blocks 1 pod and 4 more",
        ],
    );
    shows(
        &[drain()],
        (0, 1),
        room(39, 1),
        &["worker-1  3/8 gone  4m48s left"],
    );
}

#[test]
fn each_of_several_nodes_has_its_share_and_the_rest_are_counted() {
    let short = node("w-2", Vec::new());
    let nodes = [drain(), short, drain()];
    shows(
        &nodes,
        (4, 9),
        room(70, 11),
        &[
            "worker-1  evicting  3/8 gone  wave 1/2  1m11s, 4m48s left",
            "  budget shop/cart  blocks 1 pod  it needs 2 healthy pods and has 2",
            "  and 4 more: 2 WaveNotStarted, 1 ParallelLimit, 1 Terminating",
            "w-2       evicting  3/8 gone  wave 1/2  1m11s, 4m48s left",
            "worker-1  evicting  3/8 gone  wave 1/2  1m11s, 4m48s left",
            "  budget shop/cart  blocks 1 pod  it needs 2 healthy pod... and 4 more",
            "4 of 9 nodes finished",
        ],
    );
    shows(
        &nodes,
        (4, 9),
        room(70, 5),
        &[
            "worker-1  evicting  3/8 gone  wave 1/2  1m11s, 4m48s left",
            "2 more nodes are under way",
            "4 of 9 nodes finished",
        ],
    );
}

#[test]
fn unknown_values_are_not_shown() {
    let without_facts = NodeSnapshot {
        phase_text: "requested".to_owned(),
        deadline: None,
        pods: None,
        wave: None,
        ..node("worker-1", Vec::new())
    };
    shows(
        &[without_facts],
        (0, 1),
        room(80, 24),
        &["worker-1  requested  1m11s"],
    );
    let late = NodeSnapshot {
        deadline: Some(Time::from_millis(997_500)),
        ..node("worker-1", Vec::new())
    };
    let line = lines(&[late], (0, 1), room(100, 24), NOW).concat();
    assert!(line.ends_with("1m11s, overdue by 2s"), "{line}");
    shows(&[], (3, 9), room(80, 24), &[]);
}

#[test]
fn nothing_exceeds_the_screen_whatever_others_wrote() {
    let wild = Reason::EvictionRefused {
        code: 500,
        message: "\u{1b}[2J日本語\n".repeat(50),
    };
    let waits_for = |number: usize| (0..number).map(|pod| held(&format!("日本-{pod}"), wild.clone()));
    for columns in (1..30).chain([39, 59, 79, 119]) {
        for rows in [1, 2, 3, 4, 6, 9, 15, 23] {
            for nodes in 0..5 {
                let nodes: Vec<_> = (0..nodes)
                    .map(|number| node(&"node\u{1b}".repeat(number), waits_for(number * 3).collect()))
                    .collect();
                let lines = lines(&nodes, (0, nodes.len()), room(columns, rows), NOW);
                assert!(lines.len() <= rows, "{columns}x{rows}: {lines:#?}");
                for line in &lines {
                    assert!(width(line) <= columns, "{columns}x{rows}: {line}");
                    assert!(!line.chars().any(char::is_control), "{line:?}");
                }
            }
        }
    }
}

#[test]
fn an_estimate_is_shown_where_there_is_room() {
    let at = |seconds: u64| NOW + Duration::from_secs(seconds);
    let node = NodeSnapshot {
        estimate: Some(Estimate([30, 90, 300].map(at))),
        ..node("worker-1", Vec::new())
    };
    let shown = |columns| lines(std::slice::from_ref(&node), (0, 1), room(columns, 24), NOW);
    let all = [130, 100, 80, 60].map(shown).concat();
    let expected = [
        "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, ends probably in 1m30s (30s to 5m00s), 4m48s left",
        "worker-1  evicting  3/8 gone  wave 1/2  1m11s, ends probably in 1m30s (30s to 5m00s), 4m48s left",
        "worker-1  evicting  3/8 gone  wave 1/2  1m11s, ends in about 1m30s, 4m48s left",
        "worker-1  evicting  3/8 gone  wave 1/2  1m11s, 4m48s left",
    ];
    assert_eq!(all, expected);
}

#[test]
fn of_pods_that_are_overdue_the_longest_counts() {
    let overdue = |name: &str, since| {
        let since = NOW - Duration::from_secs(since);
        let finalizers = String::new();
        held(name, Reason::TerminatingPastGrace { since, finalizers })
    };
    shows(
        &[node("worker-1", vec![overdue("web-0", 5), overdue("web-1", 600)])],
        (0, 1),
        room(130, 24),
        &[
            "worker-1  evicting  [#######-------------] 3/8 gone  wave 1/2 web  1m11s, 4m48s left",
            "  shop/web-0 and 1 more  TerminatingPastGrace  still terminating 10m00s after its grace period",
        ],
    );
}
