//! The API server refuses writes of the node with 401 or 403: the drain waits out a short refusal, and a long one ends
//! it.

use std::time::Duration;

use crate::harness::{Host, hooks, pod, request};
use scupper_engine::{
    Answer, Event, HookPhase, Outcome, Phase, Request, Settings, StepOutcome, whole_millis,
};

fn forbidden() -> Answer {
    Answer::Forbidden {
        message: "may not patch nodes".to_owned(),
    }
}

/// Refuses every try of a write until the drain has ended; returns how long that took.
fn refuse(host: &mut Host, write: &str) -> Duration {
    let begun = host.now;
    while host.drain.phase() != Phase::Finished {
        if host.asks(write) {
            host.answer(write, forbidden());
        } else if let Some(timer) = host.drain.poll_timeout() {
            host.wait(whole_millis(timer.since(host.now)));
        } else {
            break;
        }
    }
    host.now.since(begun)
}

#[test]
fn a_short_refusal_of_a_write_is_waited_out() {
    let mut host = Host::new(Request {
        policies: vec![hooks("slurm", &[HookPhase::BeforeDrain])],
        ..request()
    });
    host.begin(&[pod("a")]).answer("cordon", forbidden()).does("");
    host.wait(1_000).written("cordon");
    // In the middle of a hook.
    host.stepped(
        "step",
        StepOutcome::Pending {
            state: b"token-1".to_vec(),
            again_after: Duration::from_secs(1),
            progress: String::new(),
            waiting_for: Vec::new(),
        },
    );
    for millis in [1_000, 2_000, 4_000, 8_000] {
        host.answer("save", forbidden()).does("").wait(millis);
    }
    assert_eq!(host.drain.outcome(), None);
    host.written("save").wait(1_000);
    host.stepped("step", StepOutcome::Done)
        .written("save")
        .does("evict a");
}

#[test]
fn a_refusal_that_lasts_fails_the_drain_when_its_time_is_over() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]);
    assert_eq!(refuse(&mut host, "cordon"), Settings::FORBIDDEN_TIMEOUT);
    host.does("").ends(&Outcome::Failed {
        message: "the API server has refused to cordon the node for 2m00s: may not patch nodes".to_owned(),
    });
}

#[test]
fn an_outage_between_two_refusals_does_not_count_as_one() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).answer("cordon", forbidden());
    for _ in 0..30 {
        let message = "connection refused".to_owned();
        host.wait(15_000)
            .answer("cordon", Answer::Unavailable { message });
    }
    host.wait(15_000).answer("cordon", forbidden());
    assert_eq!(host.drain.outcome(), None);
    host.wait(15_000).written("cordon").does("evict a");
}

#[test]
fn without_patience_the_first_refusal_fails_the_drain() {
    let mut host = Host::new(Request {
        settings: Settings {
            forbidden_timeout: Duration::ZERO,
            ..Settings::default()
        },
        ..request()
    });
    host.begin(&[pod("a")]).answer("cordon", forbidden());
    host.does("").ends(&Outcome::Failed {
        message: "the API server has refused to cordon the node for 0s: may not patch nodes".to_owned(),
    });
}

#[test]
fn the_last_write_of_a_cancelled_drain_waits_for_a_short_refusal_and_ends_without_it_after_a_long_one() {
    let cancel = || Event::Cancel {
        reason: "the event was deleted".to_owned(),
    };
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon").skip();
    host.handle(cancel()).answer("uncordon", forbidden()).does("");
    host.wait(1_000).written("uncordon");
    assert_eq!(host.drain.phase(), Phase::Finished);

    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon").skip();
    host.handle(cancel());
    assert_eq!(refuse(&mut host, "uncordon"), Settings::FORBIDDEN_TIMEOUT);
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Cancelled"));
}
