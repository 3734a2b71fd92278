//! Invalid plans, one row for each fault; and the order in which planners are called.
#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

use std::time::Duration;

use crate::harness::{Host, node, planner, pod, request};
use scupper_engine::{
    Answer, Blocker, Decision, Event, MIRROR_ANNOTATION, Notice, Outcome, Plan, PlanAnswer, PlanFault, Pod,
    Request, Settings, Uid, Verdict, Wave, check, draft,
};

/// The changes of a row to the host's own draft.
type Edit = fn(&mut Plan);

fn uid(name: &str) -> Uid {
    Uid::new(name)
}

fn pods() -> Vec<Pod> {
    let mut mirror = pod("mirror");
    mirror
        .annotations
        .insert(MIRROR_ANNOTATION.to_owned(), String::new());
    vec![pod("a"), pod("b"), pod("own"), mirror]
}

fn settings() -> Settings {
    Settings {
        own_pod: Some(pod("own").id),
        ..Settings::default()
    }
}

fn decide(plan: &mut Plan, pod: &str, verdict: Verdict) {
    let decision = plan
        .decisions
        .iter_mut()
        .find(|decision| decision.pod == uid(pod));
    decision.unwrap().verdict = verdict;
}

fn wave(name: &str, pods: &[&str]) -> Wave {
    let pods = pods.iter().map(|name| uid(name)).collect();
    Wave {
        name: name.to_owned(),
        pods,
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    }
}

#[test]
fn every_fault_is_found() {
    let rows: &[(&str, Edit, Result<(), PlanFault>)] = &[
        ("the host's own", |_| {}, Ok(())),
        (
            "undecided",
            |plan| drop(plan.decisions.remove(3)),
            Err(PlanFault::Undecided(uid("own"))),
        ),
        (
            "twice",
            |plan| plan.decisions.push(plan.decisions[0].clone()),
            Err(PlanFault::DecidedTwice(uid("a"))),
        ),
        (
            "unknown decision",
            |plan| {
                plan.decisions.push(Decision {
                    pod: uid("x"),
                    ..plan.decisions[0].clone()
                })
            },
            Err(PlanFault::Unknown(uid("x"))),
        ),
        (
            "unknown in a wave",
            |plan| plan.waves.push(wave("w", &["x"])),
            Err(PlanFault::Unknown(uid("x"))),
        ),
        (
            "in no wave",
            |plan| plan.waves.clear(),
            Err(PlanFault::InNoWave(uid("a"))),
        ),
        (
            "in two waves",
            |plan| plan.waves.push(wave("w", &["b"])),
            Err(PlanFault::InTwoWaves(uid("b"))),
        ),
        (
            "twice in one",
            |plan| plan.waves = vec![wave("w", &["a", "b", "a"])],
            Err(PlanFault::InTwoWaves(uid("a"))),
        ),
        (
            "stays",
            |plan| decide(plan, "a", Verdict::Keep),
            Err(PlanFault::StaysInWave(uid("a"))),
        ),
        (
            "refused",
            |plan| decide(plan, "a", Verdict::Refuse),
            Err(PlanFault::StaysInWave(uid("a"))),
        ),
        (
            "mirror",
            |plan| decide(plan, "mirror", Verdict::Delete),
            Err(PlanFault::MirrorLeaves(uid("mirror"))),
        ),
        (
            "own pod among others",
            |plan| {
                decide(plan, "own", Verdict::Evict);
                plan.waves = vec![wave("w", &["a", "b", "own"])];
            },
            Err(PlanFault::OwnPodNotLast(uid("own"))),
        ),
        (
            "own pod first",
            |plan| {
                decide(plan, "own", Verdict::Evict);
                plan.waves = vec![wave("driver", &["own"]), wave("w", &["a", "b"])];
            },
            Err(PlanFault::OwnPodNotLast(uid("own"))),
        ),
        (
            "own pod last and alone",
            |plan| {
                decide(plan, "own", Verdict::Evict);
                plan.waves = vec![
                    wave("w", &["a", "b"]),
                    wave("driver", &["own"]),
                    wave("empty", &[]),
                ];
            },
            Ok(()),
        ),
        (
            "same name",
            |plan| plan.waves = vec![wave("w", &["a"]), wave("w", &["b"])],
            Err(PlanFault::WaveName("w".to_owned())),
        ),
        (
            "no name",
            |plan| plan.waves[0].name.clear(),
            Err(PlanFault::WaveName(String::new())),
        ),
        (
            "no parallelism",
            |plan| plan.waves[0].max_parallel = Some(0),
            Err(PlanFault::NoParallelism("all".to_owned())),
        ),
    ];
    for (name, edit, expected) in rows {
        let mut plan = draft(&pods(), &settings(), scupper_engine::Time::from_millis(0));
        edit(&mut plan);
        assert_eq!(check(&plan, &pods(), &settings()), *expected, "{name}");
    }
}

fn with_planners(names: &[&str]) -> Request {
    Request {
        policies: names.iter().map(|name| planner(name)).collect(),
        ..request()
    }
}

#[test]
fn an_explanation_leaves_the_decision_with_its_policy() {
    let mut host = Host::new(with_planners(&["first", "second", "third"]));
    host.begin(&[pod("a"), pod("b")]).does("plan first");
    host.planned("first", |plan| decide_and_explain(plan, "a", "first says so"))
        .does("plan second");
    host.planned("second", |plan| {
        for decision in &mut plan.decisions {
            decision.reason = format!("explained; {}", decision.reason);
        }
    });
    host.planned("third", |plan| {
        decide_and_explain(plan, "b", "not explained; managed by")
    });
    let plan = reported(&mut host);
    let signed = plan.decisions.into_iter().map(|decision| decision.policy);
    assert_eq!(signed.collect::<Vec<_>>(), ["first", "third"]);
}

#[test]
fn each_planner_gets_the_previous_draft_and_signs_its_changes() {
    let mut host = Host::new(with_planners(&["first", "second"]));
    host.begin(&[pod("a"), pod("b")]).does("plan first");
    host.planned("first", |plan| decide_and_explain(plan, "a", "first says so"))
        .does("plan second");
    host.planned("second", |plan| decide_and_explain(plan, "b", "second says so"))
        .does("cordon at 100");
    let plan = reported(&mut host);
    let signed = plan.decisions.into_iter().map(|decision| decision.policy);
    assert_eq!(signed.collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(plan.waves[0].policy, "kubectl", "no planner has changed it");
}

/// The plan that is reported.
fn reported(host: &mut Host) -> Plan {
    let mut plan = None;
    while let Some(notice) = host.next_notice() {
        if let Notice::Planned(planned) = notice {
            plan = Some(planned);
        }
    }
    plan.unwrap()
}

/// The waves of the first planner, the changes of the second, and the resulting owner of each wave.
type Chain = (&'static str, Edit, &'static [(&'static str, &'static str)]);

#[test]
fn a_wave_is_signed_by_the_policy_that_made_it_as_it_is() {
    let chains: &[Chain] = &[
        (
            "nothing",
            |_| {},
            &[("x", "first"), ("y", "first"), ("z", "first")],
        ),
        (
            "a pod that stays",
            |plan| {
                decide(plan, "b", Verdict::Keep);
                plan.waves[1].pods.clear();
            },
            &[("x", "first"), ("y", "first"), ("z", "first")],
        ),
        (
            "its terms",
            |plan| plan.waves[1].max_parallel = Some(1),
            &[("x", "first"), ("y", "second"), ("z", "first")],
        ),
        (
            "its name",
            |plan| plan.waves[0].name = "w".to_owned(),
            &[("w", "second"), ("y", "first"), ("z", "first")],
        ),
        (
            "a pod for another wave",
            |plan| {
                let pod = plan.waves[2].pods.remove(0);
                plan.waves[0].pods.push(pod);
            },
            &[("x", "second"), ("y", "first"), ("z", "second")],
        ),
        (
            "their order",
            |plan| plan.waves.rotate_right(1),
            &[("z", "first"), ("x", "second"), ("y", "second")],
        ),
    ];
    for (what, edit, wanted) in chains {
        let mut host = Host::new(with_planners(&["first", "second"]));
        host.begin(&[pod("a"), pod("b"), pod("c")]).does("plan first");
        host.planned("first", |plan| {
            plan.waves = vec![wave("x", &["a"]), wave("y", &["b"]), wave("z", &["c"])];
        });
        host.does("plan second")
            .planned("second", *edit)
            .does("cordon at 100");
        let plan = reported(&mut host);
        let waves = plan.waves.iter();
        let signed: Vec<_> = waves
            .map(|wave| (wave.name.as_str(), wave.policy.as_str()))
            .collect();
        assert_eq!(signed, *wanted, "the second changed {what}");
    }
}

#[test]
fn a_blocker_names_the_policy_that_refuses() {
    let mut host = Host::new(with_planners(&["first", "second"]));
    host.begin(&[pod("a"), pod("b")]).does("plan first");
    let refuse = |plan: &mut Plan, name: &str| {
        decide(plan, name, Verdict::Refuse);
        decide_and_explain(plan, name, "not now");
        plan.waves[0].pods.retain(|pod| *pod != uid(name));
    };
    host.planned("first", |plan| refuse(plan, "a"))
        .does("plan second");
    host.planned("second", |plan| refuse(plan, "b")).does("");
    let blocker = |name, policy: &str| Blocker {
        pod: pod(name).id,
        reason: "not now".to_owned(),
        policy: policy.to_owned(),
    };
    let outcome = Outcome::Blocked {
        pods: vec![blocker("a", "first"), blocker("b", "second")],
    };
    assert!(
        outcome
            .to_string()
            .ends_with(": not now [first]; ns/b: not now [second]"),
        "{outcome}"
    );
    host.ends(&outcome);
}

fn decide_and_explain(plan: &mut Plan, pod: &str, reason: &str) {
    let decision = plan
        .decisions
        .iter_mut()
        .find(|decision| decision.pod == uid(pod));
    reason.clone_into(&mut decision.unwrap().reason);
}

#[test]
fn an_invalid_plan_ends_the_drain_and_names_the_policy() {
    let mut host = Host::new(with_planners(&["good", "bad"]));
    host.begin(&[pod("a")])
        .planned("good", |_| {})
        .planned("bad", |plan| plan.waves.clear())
        .does("");
    host.ends(&Outcome::PolicyFailed {
        policy: "bad".to_owned(),
        message: "its plan does not hold: pod ns/a (UID a) is to leave and stands in no wave: put it in one"
            .to_owned(),
    });
}

#[test]
fn a_planner_that_refuses_or_fails_ends_the_drain() {
    let message = || "no maintenance on Mondays".to_owned();
    let rows = [
        (
            PlanAnswer::Refused { message: message() },
            "refused the drain: no maintenance on Mondays",
        ),
        (
            PlanAnswer::Failed {
                message: message(),
                retry_after: None,
            },
            "no maintenance on Mondays",
        ),
    ];
    for (answer, reported) in rows {
        let mut host = Host::new(with_planners(&["calendar"]));
        host.begin(&[pod("a")])
            .answer("plan", Answer::Plan(answer))
            .does("");
        host.ends(&Outcome::PolicyFailed {
            policy: "calendar".to_owned(),
            message: reported.to_owned(),
        });
    }
}

#[test]
fn a_retried_planner_blocks_the_drain_and_is_reported() {
    let fails = |retry_after| {
        Answer::Plan(PlanAnswer::Failed {
            message: "the calendar is away".to_owned(),
            retry_after: Some(retry_after),
        })
    };
    let mut host = Host::new(with_planners(&["first", "calendar"]));
    host.begin(&[pod("a")]).planned("first", |_| {});
    host.answer("plan calendar", fails(Duration::from_secs(10)))
        .does("");
    host.reports_last("planner calendar waits 10s: the calendar is away")
        .waits("ns/a PlannerFailed");
    // The chain restarts: pods have arrived and gone.
    host.handle(Event::PodApplied(pod("b"))).wait(9_999).does("");
    host.wait(1)
        .does("plan first")
        .planned("first", |_| {})
        .does("plan calendar");
    // No planner is called continuously, and none is forgotten.
    host.answer("plan calendar", fails(Duration::ZERO))
        .reports_last("planner calendar waits 2s: the calendar is away")
        .wait(2_000)
        .does("plan first")
        .planned("first", |_| {});
    host.answer("plan calendar", fails(Duration::from_secs(100_000)))
        .reports_last("planner calendar waits 5m00s: the calendar is away")
        .wait(300_000)
        .planned("first", |_| {})
        .planned("calendar", |_| {})
        .does("cordon at 100");
    host.waits("ns/a WaveNotStarted\nns/b WaveNotStarted");
}

/// As for a fact that cannot be read: each try is a request to the API server, from every draining node.
#[test]
fn a_planner_that_keeps_failing_is_asked_less_and_less_often() {
    let failed = || {
        Answer::Plan(PlanAnswer::Failed {
            message: "no right".to_owned(),
            retry_after: Some(Duration::from_secs(3)),
        })
    };
    let mut host = Host::new(with_planners(&["p"]));
    host.begin(&[pod("a")]);
    for seconds in [3, 6, 12, 24, 48, 60, 60, 60] {
        host.answer("plan p", failed()).wait(seconds * 1_000 - 1).does("");
        host.wait(1).does("plan p");
    }
    host.planned("p", |_| {}).does("cordon at 100");
    // The next plan begins with a short wait again.
    host.written("cordon")
        .handle(Event::PodApplied(pod("b")))
        .wait(1_000);
    host.answer("plan p", failed()).wait(2_999).does("");
    host.wait(1).does("plan p");
}

#[test]
fn a_drain_that_waits_for_a_planner_is_ended_by_its_deadline_and_by_a_cancel() {
    let failed = || {
        Answer::Plan(PlanAnswer::Failed {
            message: String::new(),
            retry_after: Some(Duration::from_secs(10)),
        })
    };
    let deadline = Some(crate::harness::START + Duration::from_secs(3));
    let mut host = Host::new(Request {
        deadline,
        ..with_planners(&["p"])
    });
    host.begin(&[pod("a")])
        .answer("plan p", failed())
        .wait(2_999)
        .does("");
    let remaining = vec![pod("a").id];
    host.wait(1).does("").ends(&Outcome::DeadlineExceeded {
        remaining,
        held_up: None,
    });
    let mut host = Host::new(with_planners(&["p"]));
    host.begin(&[pod("a")]).answer("plan p", failed());
    let reason = "not today".to_owned();
    host.handle(Event::Cancel {
        reason: reason.clone(),
    })
    .does("");
    host.ends(&Outcome::Cancelled { reason });
}

#[test]
fn all_blockers_are_reported_before_anything_is_changed() {
    let bare = |name| Pod {
        controller: None,
        ..pod(name)
    };
    let mut host = Host::new(request());
    host.begin_with(node(), &[bare("b"), pod("ok"), bare("a")], &[])
        .does("");
    let reason = "Pods that declare no controller (use --force to override)";
    let blocker = |name| Blocker {
        pod: pod(name).id,
        reason: reason.to_owned(),
        policy: "kubectl".to_owned(),
    };
    let blockers = vec![blocker("a"), blocker("b")];
    host.ends(&Outcome::Blocked { pods: blockers });
}

#[test]
fn a_blocker_that_disappears_during_planning_does_not_block() {
    let mut host = Host::new(with_planners(&["slow"]));
    host.begin(&[
        Pod {
            controller: None,
            ..pod("bare")
        },
        pod("a"),
    ])
    .does("plan slow");
    host.gone(&["bare"]).planned("slow", |_| {}).does("cordon at 100");
}
