//! The live display in a terminal, and plain lines elsewhere.

use std::collections::BTreeSet;

use rustix::process::Signal;

use crate::kubelet_node::{Agent, asks};
use crate::rig::Rig;
use crate::terminal::Terminal;

const WIDE: (u16, u16) = (160, 30);

/// A node with one pod blocked by a budget, and one that is evicted.
fn held() -> Rig {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("web", "worker-1").takes(0.2));
    rig
}

fn lets_go(rig: &Rig) {
    let store = rig.api.store();
    store
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
}

fn at(screen: &[String], text: &str) -> Option<usize> {
    screen.iter().position(|line| line.contains(text))
}

const HEAD: &str = "worker-1  evicting  [##########----------] 1/2 gone  wave 1/1 all";
const POD: &str = "  budget shop/keep-db  blocks 1 pod  minAvailable: 1 -> 0";

#[test]
fn a_terminal_shows_blockers_below_the_lines_and_removes_them_at_the_end() {
    let rig = held();
    let mut drain = Terminal::start(&rig, &["drain", "worker-1", "--timeout", "1h"], WIDE, &[]);
    let screen = drain.until("the pod that is held stands at the bottom", |screen| {
        screen.last().is_some_and(|line| line.starts_with(POD)) && at(screen, HEAD).is_some()
    });
    let (head, pod) = (at(&screen, HEAD).unwrap(), screen.len() - 1);
    assert_eq!(head + 1, pod, "{screen:#?}");
    assert!(
        screen[head].contains("59m5") && screen[head].ends_with(" left"),
        "{screen:#?}"
    );
    assert!(screen[pod].starts_with(POD), "{screen:#?}");
    assert!(
        at(&screen, "gone     shop/web").is_some_and(|line| line < head),
        "{screen:#?}"
    );
    // Time advances although nothing happens.
    drain.until("the time advances", |now| {
        now.last() == screen.last() && at(now, HEAD).is_some_and(|head| now[head] != screen[head])
    });
    lets_go(&rig);
    let left = drain.ended();
    assert_eq!(left.code, Some(0), "{:#?}", left.screen);
    is_the_story_and_nothing_else(&left.screen);
    assert!(!left.cursor_is_hidden);
    assert!(
        !String::from_utf8_lossy(&left.bytes).contains("\u{1b}[?25l"),
        "the cursor was hidden"
    );
}

/// Each line of a drain that was printed, and no other.
#[track_caller]
fn is_the_story_and_nothing_else(lines: &[String]) {
    for words in [
        "drain    node worker-1",
        "plan     2 pods to evict",
        "gone     shop/db",
        "end      Drained in",
    ] {
        let reported = lines.iter().filter(|line| line.contains(words)).count();
        assert_eq!(reported, 1, "{words}: {lines:#?}");
    }
    let is_told = |line: &String| {
        let (time, topic) = line.split_at_checked(11).unwrap_or_default();
        time.trim_end().ends_with('s') && topic.len() > 9 && time.starts_with("   ")
    };
    assert!(lines.iter().all(is_told), "{lines:#?}");
}

#[test]
fn a_narrow_and_low_terminal_also_shows_it() {
    let rig = held();
    for number in 0..12 {
        // Of workloads of their own: those of one have one line.
        let name = format!("stuck-{number:02}-with-a-long-name");
        rig.apply(rig.pod(&name, "worker-1").stuck());
    }
    let mut drain = Terminal::start(&rig, &["drain", "worker-1"], (40, 10), &[]);
    let is_below = |screen: &[String]| {
        let head =
            at(screen, "worker-1  1/14 gone  ").or_else(|| at(screen, "worker-1  evicting  1/14 gone  "));
        head.is_some_and(|head| screen.len() - head == 6)
    };
    let screen = drain.until("six rows are the display", is_below);
    let shown = &screen[screen.len() - 5..];
    assert!(shown[0].starts_with("  budget"), "{screen:#?}");
    assert!(shown[0].contains("  blocks 1 pod"), "{screen:#?}");
    assert!(shown[4].starts_with("  and 9 more: Terminating"), "{screen:#?}");
    // A line wrapped by the terminal would leave remains when it is redrawn.
    drain.until("the time advances", |now| is_below(now) && now != screen);
    drain.until("the time advances", |now| is_below(now) && now != screen);
    let history = drain.history();
    let heads = history.iter().filter(|line| line.contains("/14 gone"));
    assert_eq!(heads.count(), 1, "{history:#?}");
    drain.ctrl_c();
    let left = drain.ended();
    assert_eq!(left.code, Some(5), "{:#?}", left.screen);
    assert_eq!(at(&left.screen, "/14 gone"), None, "{:#?}", left.screen);
}

/// What is read at night is not torn within words, and each sentence goes on below its beginning.
#[test]
fn lines_fold_between_words_at_the_width_of_the_terminal() {
    let rig = held();
    let mut drain = Terminal::start(&rig, &["drain", "worker-1", "--progress", "plain"], (60, 40), &[]);
    // While the other pod is ending, `status` lists it, so that two runs of it would differ.
    let screen = drain.until("a pod waits and the other is gone", |screen| {
        at(screen, "  waits    shop/db: ").is_some() && at(screen, "  gone     shop/web").is_some()
    });
    let waits = at(&screen, "  waits    shop/db: ").unwrap();
    let below = &screen[waits + 1];
    assert_eq!(below.len() - below.trim_start().len(), 21, "{screen:#?}");
    drain.ctrl_c();
    assert_eq!(drain.ended().code, Some(5));
    let plain = plain(&rig);
    let words = words(plain.split_whitespace());
    for command in [&["plan", "worker-1"][..], &["status", "worker-1"]] {
        let folded = Terminal::start(&rig, command, (60, 40), &[]).ended();
        let shown = self::words(folded.screen.iter().flat_map(|line| line.split_whitespace()));
        let torn: Vec<_> = shown.difference(&words).collect();
        assert!(torn.is_empty(), "{command:?}: {torn:?}: {:#?}", folded.screen);
    }
    // A program reads each object from one line.
    let json = Terminal::start(&rig, &["plan", "worker-1", "-o", "json"], (60, 40), &[]).ended();
    let text = String::from_utf8(json.bytes).unwrap();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}

/// The log of a driver is read elsewhere, and later.
#[test]
fn a_person_reads_the_log_without_times_and_modules() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let screen = |log| {
        rig.leased_to("someone@elsewhere", 1);
        let drain = ["drain", "worker-1"];
        Terminal::start(&rig, &drain, (160, 40), &[("SCUPPER_LOG", log)])
            .ended()
            .screen
    };
    let warned = "WARN node worker-1: waiting for the node's Lease, which ";
    let default = screen("warn,scupper=info");
    assert!(
        default.iter().any(|line| line.trim_start().starts_with(warned)),
        "{default:#?}"
    );
    let asked = screen("warn,scupper=debug");
    assert!(
        asked.iter().any(|line| line.contains(" WARN scupper_driver")),
        "{asked:#?}"
    );
}

/// Without times, which go on: between two runs `0.9s:` becomes `1s:`.
fn words<'a>(all: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let is_time = |word: &str| {
        word.trim_start_matches('(')
            .starts_with(|first: char| first.is_ascii_digit())
    };
    all.filter(|word| !is_time(word)).collect()
}

/// What these commands print where no terminal is.
fn plain(rig: &Rig) -> String {
    let runs = ["plan", "status"].map(|command| rig.run(&[command, "worker-1"]).stdout);
    runs.concat()
}

#[test]
fn a_drain_that_the_driver_carries_out_is_shown_as_well() {
    let rig = held();
    let _agent = Agent::start(&rig, false);
    let mut drain = Terminal::start(&rig, &asks("drain", &[]), WIDE, &[]);
    drain.until("the pod that is held stands at the bottom", |screen| {
        screen.last().is_some_and(|line| line.starts_with(POD)) && at(screen, HEAD).is_some()
    });
    lets_go(&rig);
    let left = drain.ended();
    assert_eq!(left.code, Some(0), "{:#?}", left.screen);
    assert_eq!(at(&left.screen, "gone  wave"), None, "{:#?}", left.screen);
    assert_eq!(
        at(&left.screen, "  budget shop/keep-db  blocks"),
        None,
        "{:#?}",
        left.screen
    );
    let [.., end, next] = left.screen.as_slice() else {
        panic!("{:#?}", left.screen)
    };
    assert!(end.contains("end      Drained in"), "{:#?}", left.screen);
    assert!(next.contains("the node stays cordoned"), "{:#?}", left.screen);
}

#[test]
fn ctrl_c_removes_the_display_and_the_log_does_not_break_it() {
    let rig = held();
    let args = ["drain", "worker-1", "--log", "scupper=trace"];
    let mut drain = Terminal::start(&rig, &args, WIDE, &[]);
    drain.until("the pod that is held stands at the bottom", |screen| {
        screen.last().is_some_and(|line| line.starts_with(POD))
    });
    drain.ctrl_c();
    let left = drain.ended();
    assert_eq!(left.code, Some(5), "{:#?}", left.screen);
    assert!(!left.cursor_is_hidden);
    let logged = left.screen.iter().filter(|line| line.contains("DEBUG")).count();
    assert!(logged > 5, "{:#?}", left.screen);
    for remnant in ["  budget shop/keep-db  blocks", "/2 gone", "^C"] {
        assert_eq!(at(&left.screen, remnant), None, "{remnant}: {:#?}", left.screen);
    }
    assert!(
        at(&left.screen, "end      Cancelled").is_some(),
        "{:#?}",
        left.screen
    );
}

#[test]
fn several_nodes_are_shown_below_one_another() {
    let rig = held();
    rig.apply(rig.pod("stuck", "worker-2").stuck());
    let args = ["drain", "worker-1", "worker-2", "worker-3", "--parallel", "3"];
    let mut drain = Terminal::start(&rig, &args, WIDE, &[]);
    drain.until("each has its line", |screen| {
        let (one, two) = (
            at(screen, "worker-1  evicting  [#"),
            at(screen, "worker-2  evicting  [-"),
        );
        one.is_some() && one < two && screen.last().is_some_and(|line| line == "1 of 3 nodes finished")
    });
    drain.ctrl_c();
    let left = drain.ended();
    assert_eq!(left.code, Some(5), "{:#?}", left.screen);
    assert_eq!(at(&left.screen, "nodes finished"), None, "{:#?}", left.screen);
    assert!(
        left.screen.last().unwrap().starts_with("not done: "),
        "{:#?}",
        left.screen
    );
}

#[test]
fn outside_a_terminal_output_is_plain_lines_without_escapes() {
    let rig = held();
    let mut piped = rig.start(&["drain", "worker-1"]);
    piped.prints("waits    shop/db");
    piped.signal(Signal::INT);
    let run = piped.ended();
    assert!(
        !format!("{}{}", run.stdout, run.stderr).contains('\u{1b}'),
        "{run:#?}"
    );
    for (number, (more, env)) in [
        (&[][..], &[("TERM", "dumb")][..]),
        (&["--progress", "plain"], &[("NO_COLOR", "1")]),
        (&["--output", "json"], &[]),
    ]
    .into_iter()
    .enumerate()
    {
        // While this one ends there is time to draw.
        let name = format!("slow-{number}");
        rig.apply(rig.pod(&name, "worker-1").takes(1.0));
        let args = [&["drain", "worker-1"][..], more].concat();
        let mut drain = Terminal::start(&rig, &args, WIDE, env);
        drain.until("it is gone", |screen| {
            at(screen, &format!("gone     shop/{name}")).is_some() || at(screen, "podGone").is_some()
        });
        drain.ctrl_c();
        let left = drain.ended();
        assert!(!left.bytes.contains(&0x1b), "{args:?}: {:#?}", left.screen);
        assert_eq!(
            at(&left.screen, "gone  wave"),
            None,
            "{args:?}: {:#?}",
            left.screen
        );
    }
}

#[test]
fn a_status_that_is_watched_stays_in_its_place() {
    let rig = held();
    let mut watch = Terminal::start(&rig, &["status", "worker-1", "--watch"], WIDE, &[]);
    let heads = |lines: &[String]| {
        lines
            .iter()
            .filter(|line| line.starts_with("node worker-1: "))
            .count()
    };
    watch.until("the node takes pods", |screen| {
        at(screen, "node worker-1: takes pods") == Some(0)
    });
    let drain = rig.start(&["drain", "worker-1"]);
    let screen = watch.until("the pod's blocker is shown", |screen| {
        at(screen, "node worker-1: cordoned by Scupper") == Some(0)
            && at(screen, "    shop/db  BudgetExhausted").is_some()
            && at(screen, "      next: kubectl -n shop describe pdb keep-db").is_some()
            && at(screen, "shop/web").is_none()
    });
    // The display shows how long ago that was, and that advances.
    watch.until("the time advances", |now| {
        at(now, "shop/db").is_some() && now != screen && heads(now) == 1
    });
    assert_eq!(heads(&watch.history()), 1, "{:#?}", watch.history());
    watch.ctrl_c();
    let left = watch.ended();
    assert_eq!(left.code, Some(0), "{:#?}", left.screen);
    assert_eq!(
        at(&left.screen, "node worker-1: cordoned by Scupper"),
        Some(0),
        "{:#?}",
        left.screen
    );
    assert_eq!(heads(&left.screen), 1, "{:#?}", left.screen);
    assert!(!left.cursor_is_hidden);
    drain.kill();
}
