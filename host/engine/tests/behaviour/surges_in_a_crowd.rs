//! Drains of other nodes surge the same Deployments: each has its turn, and none is taken for another.

use std::time::Duration;

use crate::harness::{Host, budget, hooks, planner, pod};
use crate::raising::{named, ours, raise, raised, raising, resumed};
use crate::surge::{HOST, cordoned, forbidden, held, surge, surging_by, web};
use scupper_engine::{
    Answer, Budget, Checkpoint, Event, EvictAnswer, HookPhase, Plan, Raised, Request, StepOutcome, Surge,
    SurgeMethod, SurgePlan, surge_mark,
};

const CHOOSE: &str = "choose-surges";

fn busy() -> Answer {
    Answer::Busy {
        message: "the drain of node-2 has raised its replicas".to_owned(),
    }
}

/// Answers each try so for this long.
fn refuse_for(host: &mut Host, seconds: u64, task: &str, answer: &Answer) {
    for _ in 0..seconds {
        if host.asks(task) {
            host.answer(task, answer.clone());
        }
        if host.asks(CHOOSE) {
            host.answer(CHOOSE, Answer::Surges(SurgePlan::default()));
        }
        if host.asks("evict") {
            host.answer(
                "evict",
                Answer::Evict(EvictAnswer::BudgetExhausted {
                    budget: "pdb".to_owned(),
                    message: String::new(),
                }),
            );
        }
        host.wait(1_000);
    }
}

#[test]
fn the_turn_of_another_drain_costs_none_of_the_time() {
    for method in [SurgeMethod::Scale, SurgeMethod::Restart] {
        let (mut host, task) = match method {
            SurgeMethod::Scale => (named(), "raise"),
            SurgeMethod::Restart => (held(surging_by(method)), "surge"),
        };
        refuse_for(&mut host, 600, task, &busy());
        host.waits("ns/a Surging");
        let notices = host.notices();
        assert!(!notices.contains("gave up"), "{method:?}: {notices}");
        for _ in 0..120 {
            if !host.asks(task) {
                refuse_for(&mut host, 1, "none", &busy());
            }
        }
        host.written(task);
        let notices = host.notices();
        let is_whole = |text| notices.contains(text);
        assert!(
            is_whole(", waits 2m00s\n") || is_whole(", waits 1m59s\n"),
            "{method:?}: {notices}"
        );
    }
}

#[test]
fn one_refusal_after_a_long_wait_is_not_final() {
    let mut request = surging_by(SurgeMethod::Restart);
    request.settings.forbidden_timeout = Duration::from_secs(20);
    for before in [busy(), Answer::WriteConflict] {
        let mut host = held(request.clone());
        refuse_for(&mut host, 60, "surge", &before);
        refuse_for(&mut host, 1, "surge", &forbidden());
        refuse_for(&mut host, 15, "surge", &forbidden());
        let notices = host.notices();
        assert!(!notices.contains("gave up"), "after {before:?}: {notices}");
        refuse_for(&mut host, 30, "surge", &forbidden());
        let notices = host.notices();
        assert!(
            notices.contains("gave up: no right\n"),
            "after {before:?}: {notices}"
        );
    }
}

#[test]
fn room_that_others_use_lets_the_time_begin_anew() {
    let mut host = raised();
    host.wait(100_000);
    host.handle(Event::BudgetApplied(budget(1)));
    host.answer(
        "evict",
        Answer::Evict(EvictAnswer::BudgetExhausted {
            budget: "pdb".to_owned(),
            message: String::new(),
        }),
    );
    host.handle(Event::BudgetApplied(budget(0)));
    host.wait(100_000).waits("ns/a Surging");
    assert!(!host.asks("take-back"));
    host.wait(20_000);
    assert!(host.asks("take-back"));
}

/// What the host chooses once `a` is held.
fn chosen(names: &[&str]) -> Answer {
    let mut plan = Plan::default();
    raise(&mut plan, names);
    Answer::Surges(plan.surge)
}

/// A drain of `a` whose plan found its budget open; it has closed since.
fn closed_later() -> Host {
    let mut host = Host::new(raising());
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned(HOST, |plan| plan.surge.method = SurgeMethod::Scale)
        .written("save");
    host.waits("ns/a BudgetExhausted");
    host.notices();
    host
}

#[test]
fn a_budget_that_closes_after_the_plan_gets_its_surge_when_it_is_tried() {
    let mut host = closed_later();
    assert!(!host.asks(CHOOSE), "most budgets only wait for a replacement");
    host.wait(10_000).answer(CHOOSE, chosen(&["a"]));
    host.written("save").written("raise");
    let notices = host.notices();
    assert!(
        notices.contains("Deployment ns/web raised, waits 2m00s\n"),
        "{notices}"
    );
    let saved: Vec<Raised> = host.last_checkpoint().raised;
    assert_eq!(saved, ours());
    host.handle(Event::BudgetApplied(budget(1)));
    host.accepted("evict").gone(&["a"]);
    assert!(host.asks("take-back"));
}

#[test]
fn surges_are_chosen_again_while_a_budget_holds_a_pod_ever_more_slowly() {
    let mut host = closed_later();
    let mut asked = Vec::new();
    for second in 0..300 {
        if host.asks(CHOOSE) {
            asked.push(second);
            let message = "no answer".to_owned();
            host.answer(CHOOSE, Answer::Unavailable { message });
        }
        refuse_for(&mut host, 1, "none", &busy());
    }
    assert!((5..9).contains(&asked.len()), "{asked:?}");
    host.handle(Event::BudgetApplied(budget(1)));
    host.accepted("evict").gone(&["a"]).wait(300_000);
    assert!(!host.asks(CHOOSE));
}

#[test]
fn nothing_is_chosen_where_no_surge_is_allowed_or_one_was_planned() {
    let mut elsewhere = raising();
    elsewhere.settings.surge.as_mut().unwrap().namespaces = ["db".to_owned()].into();
    let mut host = Host::new(elsewhere);
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned(HOST, |_| {}).written("save");
    refuse_for(&mut host, 14, "none", &busy());
    assert!(!host.asks(CHOOSE));
    let mut host = raised();
    refuse_for(&mut host, 200, "take-back", &Answer::WriteConflict);
    assert!(!host.asks(CHOOSE), "a Deployment is surged once");
}

#[test]
fn pods_that_came_back_keep_the_raise_of_the_process_before() {
    let mut host = resumed(raised().last_checkpoint(), &["b"]);
    assert!(!host.asks("take-back"));
    host.planned(HOST, |plan| raise(plan, &["b"]));
    host.written("save").written("raise");
    assert!(!host.asks("take-back"));
    host.handle(Event::BudgetApplied(budget(1)));
    host.accepted("evict").gone(&["b"]);
    assert!(host.asks("take-back"));
}

#[test]
fn a_raise_that_was_taken_back_while_planners_worked_is_not_repeated() {
    let mut host = resumed(raised().last_checkpoint(), &["b"]);
    host.wait(120_000).written("take-back");
    host.planned(HOST, |plan| raise(plan, &["b"]));
    host.wait(60_000);
    assert!(!host.asks("raise"));
}

#[test]
fn the_raise_of_another_node_is_not_ours_even_with_the_same_id() {
    let other = surge_mark("node-2", &scupper_engine::Uid::new("other-uid"), "event-uid");
    let checkpoint = Checkpoint {
        raised: vec![Raised {
            drain: other.clone(),
            ..ours().remove(0)
        }],
        ..raised().last_checkpoint()
    };
    let mut host = resumed(checkpoint, &["a"]);
    let take_back = format!("take-back Deployment ns/web for {other}");
    assert!(host.asks(&take_back), "that of another drain is taken back first");
    host.written("take-back");
    host.planned(HOST, |plan| {
        surge(plan, &["a"]);
        plan.surge = SurgePlan {
            method: SurgeMethod::Scale,
            surges: vec![Surge {
                deployment: web(),
                ..plan.surge.surges.remove(0)
            }],
            impossible: Vec::new(),
        };
    });
    host.written("save");
    assert!(host.asks("raise Deployment ns/web for node-1/node-uid/event-uid"));
}

/// The pod is in its hook while its budget has room, and other drains use that room at the end.
fn room_used_after(seconds: u64, elsewhere: bool) -> Host {
    let mut host = Host::new(Request {
        policies: vec![hooks("db", &[HookPhase::BeforeEvict]), planner(HOST)],
        ..raising()
    });
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned(HOST, |plan| raise(plan, &["a"]));
    host.written("save").written("save").written("raise");
    host.handle(Event::BudgetApplied(budget(1)));
    host.stepped(
        "step db before-evict pod a",
        StepOutcome::Pending {
            state: Vec::new(),
            again_after: Duration::from_secs(300),
            progress: String::new(),
            waiting_for: Vec::new(),
        },
    );
    let end = host.now + Duration::from_secs(seconds);
    let is_due = |host: &Host| host.drain.poll_timeout().is_some_and(|timer| timer <= end);
    assert!(!is_due(&host), "nothing is due meanwhile");
    for second in 0..seconds {
        host.now = host.now + Duration::from_secs(1);
        if elsewhere {
            host.handle(Event::BudgetApplied(Budget {
                namespace: "elsewhere".to_owned(),
                ..budget(i32::from(second % 2 == 0))
            }));
        }
    }
    assert!(!is_due(&host), "no timer was left out");
    host.handle(Event::BudgetApplied(budget(0)));
    host
}

#[test]
fn the_time_begins_anew_when_others_use_the_room_although_nothing_was_looked_at() {
    for elsewhere in [false, true] {
        let mut host = room_used_after(110, elsewhere);
        host.wait(60_000);
        assert!(
            !host.asks("take-back"),
            "elsewhere {elsewhere}: given up after 60 of 120 s"
        );
    }
}
