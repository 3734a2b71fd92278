//! The API server refuses writes of the node or evictions with 401 or 403: the drain waits out a short refusal, and a long
//! one ends it.

use std::time::Duration;

use crate::harness::{Host, ending, hooks, planner, pod, request};
use scupper_engine::{
    Answer, Event, EvictAnswer, ForceAtDeadline, ForcedPods, HookPhase, Outcome, Phase, Request, Settings,
    StepOutcome, Uid, Wave, whole_millis,
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

fn may_not_evict() -> Answer {
    Answer::Evict(EvictAnswer::Forbidden {
        message: "may not create pods/eviction".to_owned(),
    })
}

/// Refuses every eviction of these pods for this long, or until the drain stops; returns how long that took.
fn refuse_evictions(host: &mut Host, pods: &[&str], at_most: Duration) -> Duration {
    let begun = host.now;
    while host.drain.outcome().is_none() && host.now < begun + at_most {
        for pod in pods {
            let evict = format!("evict {pod}");
            if host.asks(&evict) {
                host.answer(&evict, may_not_evict());
            }
        }
        if host.drain.outcome().is_none() {
            host.wait(1_000);
        }
    }
    host.now.since(begun)
}

const HOUR: Duration = Duration::from_secs(3600);

fn refused(text: &str) -> Outcome {
    Outcome::Failed {
        message: format!("the API server has refused to remove {text}: may not create pods/eviction"),
    }
}

#[test]
fn evictions_that_are_refused_for_long_fail_the_drain() {
    let mut host = Host::new(request());
    host.begin(&[pod("a"), pod("b")]).written("cordon");
    host.answer("evict b", may_not_evict());
    // A short refusal is waited out.
    host.wait(60_000).accepted("evict b").gone(&["b"]);
    assert_eq!(
        refuse_evictions(&mut host, &["a"], HOUR),
        Settings::FORBIDDEN_TIMEOUT
    );
    assert_eq!(host.drain.outcome(), Some(&refused("ns/a for 2m00s")));
}

#[test]
fn a_drain_goes_on_while_other_pods_leave_and_fails_after_the_last_of_them() {
    let mut host = Host::new(request());
    host.begin(&[pod("a"), pod("b"), pod("c")]).written("cordon");
    host.accepted("evict c")
        .handle(Event::PodApplied(ending(pod("c"))));
    refuse_evictions(&mut host, &["a", "b"], Duration::from_secs(300));
    assert_eq!(host.drain.outcome(), None);
    host.gone(&["c"]);
    let outcome = host.drain.outcome().map(ToString::to_string).unwrap_or_default();
    assert!(
        outcome.starts_with("the API server has refused to remove ns/a and 1 more for "),
        "{outcome}"
    );
}

#[test]
fn only_refusals_in_a_row_count() {
    let mut host = Host::new(request());
    host.begin(&[pod("a")]).written("cordon");
    for _ in 0..9 {
        refuse_evictions(&mut host, &["a"], Duration::from_secs(60));
        while !host.asks("evict a") {
            host.wait(1_000);
        }
        let message = "connection refused".to_owned();
        host.answer("evict a", Answer::Evict(EvictAnswer::Unreachable { message }));
    }
    assert_eq!(host.drain.outcome(), None);
}

#[test]
fn pods_of_waves_that_wait_for_refused_ones_hold_no_drain_up() {
    let wave = |name: &str, pod: &str, timeout: Option<u64>| Wave {
        name: name.to_owned(),
        pods: vec![Uid::new(pod)],
        max_parallel: None,
        timeout: timeout.map(Duration::from_secs),
        max_grace_seconds: None,
        policy: String::new(),
    };
    let begun = |timeout: Option<u64>| {
        let mut host = Host::new(Request {
            policies: vec![planner("modes")],
            ..request()
        });
        host.begin(&[pod("a"), pod("b")])
            .planned("modes", |plan| {
                plan.waves = vec![wave("one", "a", timeout), wave("two", "b", None)];
            })
            .written("cordon");
        host
    };
    let mut host = begun(None);
    assert_eq!(
        refuse_evictions(&mut host, &["a"], HOUR),
        Settings::FORBIDDEN_TIMEOUT
    );
    assert_eq!(host.drain.outcome(), Some(&refused("ns/a for 2m00s")));
    // The next wave begins all the same, and its pod leaves first.
    let mut host = begun(Some(300));
    assert_eq!(
        refuse_evictions(&mut host, &["a"], Duration::from_secs(301)),
        Duration::from_secs(301)
    );
    host.accepted("evict b").gone(&["b"]);
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Failed"));
}

#[test]
fn a_drain_that_deletes_pods_at_its_deadline_goes_on_until_then() {
    let mut request = request();
    request.deadline = Some(crate::harness::START + HOUR);
    request.settings.at_deadline = Some(ForceAtDeadline {
        pods: ForcedPods::default(),
        grace_seconds: 20,
        within: Duration::from_secs(60),
    });
    let mut host = Host::new(request);
    host.begin(&[pod("a")]).written("cordon");
    refuse_evictions(&mut host, &["a"], Duration::from_secs(3540));
    assert_eq!(host.drain.outcome(), None);
    assert!(host.asks("delete a"));
}
