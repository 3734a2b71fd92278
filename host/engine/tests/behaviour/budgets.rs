//! Disruption budgets: as many evictions as they allow, and no more.

use std::time::Duration;

use crate::harness::{Host, PodPhase, budget, node, planner, pod, request};
use scupper_engine::{Answer, Budget, Event, EvictAnswer, Node, Pod, Request, UnhealthyPods, Verdict};

fn cordoned() -> Node {
    Node {
        unschedulable: true,
        ..node()
    }
}

/// A drain of these pods under this budget, on a node that another client cordoned; no command has been taken yet.
fn under(budgets: &[Budget], pods: &[Pod]) -> Host {
    let mut host = Host::new(request());
    host.begin_with(cordoned(), pods, budgets).written("save");
    host
}

fn exhausted() -> Answer {
    let message = "The disruption budget pdb needs 2 healthy pods and has 2 currently".to_owned();
    Answer::Evict(EvictAnswer::BudgetExhausted {
        budget: "pdb".to_owned(),
        message,
    })
}

const SPENT: &str = "budget pdb blocks it: it needs 2 healthy pods and has 4, and what it allows is spent on pods that were asked to leave";

/// What the API server has granted is off what a budget allows before the budget's controller counts its pods again.
#[test]
fn a_budget_with_more_pods_than_it_needs_says_why_it_allows_none() {
    let granted = Budget {
        disruptions_allowed: 0,
        ..budget(2)
    };
    let host = under(&[granted], &[pod("a")]);
    let waits = host.drain.waiting().pop().map(|(_, reason)| reason.to_string());
    assert_eq!(waits.as_deref(), Some(SPENT));
}

#[test]
fn no_more_evictions_are_requested_than_the_budget_allows() {
    let pods = [pod("a"), pod("b"), pod("c")];
    let mut host = under(&[budget(2)], &pods);
    host.does("evict a\nevict b").waits(
        "ns/a EvictionRequested
         ns/b EvictionRequested
         ns/c BudgetExhausted",
    );
    let forecast = host.drain.waiting().pop().map(|(_, reason)| reason.to_string());
    assert_eq!(forecast.as_deref(), Some(SPENT));
    // The watch shows both being counted, before the answers and after them.
    host.handle(Event::BudgetApplied(budget(1)))
        .accepted("evict a")
        .accepted("evict b")
        .does("");
    host.handle(Event::BudgetApplied(budget(0))).does("");
    host.gone(&["a"])
        .handle(Event::BudgetApplied(budget(1)))
        .does("evict c");
}

#[test]
fn a_pod_counted_before_the_answer_is_not_counted_twice() {
    let mut host = under(&[budget(2)], &[pod("a"), pod("b"), pod("c")]);
    host.does("evict a\nevict b");
    host.handle(Event::BudgetApplied(budget(0)))
        .accepted("evict a")
        .accepted("evict b");
    // Room for exactly one more, and no eviction of ours is left to subtract.
    host.handle(Event::BudgetApplied(budget(1))).does("evict c");
}

#[test]
fn a_budget_without_room_is_not_asked_until_it_changes_or_is_doubted() {
    let mut host = under(&[budget(0)], &[pod("a"), pod("b")]);
    host.does("").waits("ns/a BudgetExhausted\nns/b BudgetExhausted");
    host.wait(14_999).does("").wait(1).does("evict a");
    host.answer("evict a", exhausted())
        .wait(14_999)
        .does("")
        .wait(1)
        .does("evict a");
    // One was granted after all: the status is wrong, and the others may be requested.
    host.accepted("evict a").does("evict b");
}

#[test]
fn room_wakes_as_many_as_it_allows_in_their_order() {
    let pods = [pod("a"), pod("b"), pod("c")];
    let mut host = under(&[budget(3)], &pods);
    host.does("evict a\nevict b\nevict c");
    for name in ["evict a", "evict b", "evict c"] {
        host.answer(name, exhausted());
    }
    host.handle(Event::BudgetApplied(budget(0))).does("");
    host.handle(Event::BudgetApplied(budget(2)))
        .does("evict a\nevict b");
}

#[test]
fn a_budget_event_without_a_change_causes_no_eviction() {
    let mut host = under(&[budget(1)], &[pod("a")]);
    host.answer("evict a", exhausted())
        .handle(Event::BudgetApplied(budget(1)))
        .does("");
    host.handle(Event::Budgets(vec![budget(1)])).does("");
    host.handle(Event::Budgets(vec![])).wait(5_000).does("evict a");
}

#[test]
fn pods_that_the_api_server_does_not_count_are_evicted_at_once() {
    let unready = |policy| {
        (
            Pod {
                ready: false,
                ..pod("a")
            },
            Budget {
                unhealthy_pods: policy,
                ..budget(0)
            },
        )
    };
    let unhealthy = |healthy| Budget {
        current_healthy: healthy,
        ..budget(0)
    };
    let rows = [
        ("running", pod("a"), budget(0), ""),
        (
            "pending",
            Pod {
                phase: PodPhase::Pending,
                ..pod("a")
            },
            budget(0),
            "evict a",
        ),
        (
            "finished",
            Pod {
                phase: PodPhase::Succeeded,
                ..pod("a")
            },
            budget(0),
            "evict a",
        ),
        (
            "unready",
            unready(UnhealthyPods::IfHealthyBudget).0,
            budget(0),
            "evict a",
        ),
        (
            "unready, budget not met",
            unready(UnhealthyPods::IfHealthyBudget).0,
            unhealthy(1),
            "",
        ),
        (
            "unready, always",
            unready(UnhealthyPods::AlwaysAllow).0,
            unready(UnhealthyPods::AlwaysAllow).1,
            "evict a",
        ),
        (
            "ready, always",
            pod("a"),
            unready(UnhealthyPods::AlwaysAllow).1,
            "",
        ),
        (
            "status behind",
            pod("a"),
            Budget {
                observed: false,
                ..budget(0)
            },
            "evict a",
        ),
        (
            "another namespace",
            pod("a"),
            Budget {
                namespace: "other".to_owned(),
                ..budget(0)
            },
            "evict a",
        ),
    ];
    for (name, pod, budget, expected) in rows {
        let mut host = under(&[budget], &[pod]);
        let does = host.next_command().map_or("", |_| "evict a");
        assert_eq!(does, expected, "{name}");
    }
}

#[test]
fn two_budgets_are_the_api_servers_business() {
    let second = Budget {
        name: "second".to_owned(),
        ..budget(0)
    };
    under(&[budget(0), second], &[pod("a")]).does("evict a");
}

#[test]
fn deletion_goes_past_budgets() {
    let mut host = Host::new(Request {
        policies: vec![planner("p")],
        ..request()
    });
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned("p", |plan| plan.decisions[0].verdict = Verdict::Delete)
        .written("save")
        .does("delete a");
}

#[test]
fn refusals_by_budgets_are_summed_up() {
    let mut host = under(&[budget(1)], &[pod("a")]);
    host.answer("evict a", exhausted())
        .wait(3_000)
        .handle(Event::BudgetApplied(budget(2)))
        .accepted("evict a");
    host.gone(&["a"]).listed(&[]).written("forget");
    let mut summary = None;
    while let Some(notice) = host.next_notice() {
        if let scupper_engine::Notice::Finished { summary: last, .. } = notice {
            summary = Some(last);
        }
    }
    let summary = summary.unwrap();
    assert_eq!(
        (
            summary.totals.evictions,
            summary.totals.budget_refusals,
            summary.totals.gone
        ),
        (2, 1, 1)
    );
    assert_eq!(summary.totals.budget_wait.as_secs(), 3);
}

/// Such events pass by. But the driver does not tell the time again that has come with one: what is due by then is done.
#[test]
fn a_budget_of_other_nodes_swallows_no_timer() {
    let mut host = under(&[], &[pod("a")]);
    let message = "no right to evict".to_owned();
    host.does("evict a")
        .answer("evict a", Answer::Evict(EvictAnswer::Forbidden { message }))
        .does("");
    let timer = host.drain.poll_timeout().unwrap();
    host.now = timer + Duration::from_secs(1);
    let elsewhere = Budget {
        namespace: "elsewhere".to_owned(),
        ..budget(1)
    };
    host.handle(Event::BudgetApplied(elsewhere)).does("evict a");
}

/// Refused by its budget so often that it waits for most of a minute.
fn refused(host: &mut Host, answer: &Answer) {
    for _ in 0..4 {
        host.answer("evict a", answer.clone()).wait(60_000);
    }
    host.answer("evict a", answer.clone()).wait(1_000).does("");
}

#[test]
fn a_budget_that_no_longer_holds_a_pod_wakes_it() {
    let unready = Pod {
        ready: false,
        ..pod("a")
    };
    let spares_unready = Budget {
        unhealthy_pods: UnhealthyPods::AlwaysAllow,
        ..budget(0)
    };
    let of_others = Budget {
        selector: scupper_engine::Selector::NOTHING,
        ..budget(0)
    };
    let deleted = Event::BudgetDeleted {
        namespace: "ns".to_owned(),
        name: "pdb".to_owned(),
    };
    let rows = [
        (pod("a"), deleted),
        (pod("a"), Event::Budgets(Vec::new())),
        (pod("a"), Event::BudgetApplied(of_others)),
        (unready, Event::BudgetApplied(spares_unready)),
    ];
    for (pod, event) in rows {
        let unmet = Budget {
            current_healthy: 1,
            ..budget(0)
        };
        let mut host = under(&[unmet], &[pod]);
        host.wait(60_000);
        refused(&mut host, &exhausted());
        host.handle(event.clone());
        host.does("evict a");
        // Whatever the API server says then, the same news do not wake it again.
        host.answer("evict a", exhausted()).handle(event).does("");
    }
}

#[test]
fn a_pod_of_several_budgets_is_woken_when_one_of_them_goes() {
    let other = Budget {
        name: "other".to_owned(),
        ..budget(5)
    };
    let several = Answer::Evict(EvictAnswer::MoreThanOneBudget {
        message: "more than one".to_owned(),
    });
    let mut host = under(&[budget(5), other.clone()], &[pod("a")]);
    refused(&mut host, &several);
    // Each time that it changes otherwise it still selects the pod.
    host.handle(Event::BudgetApplied(budget(4))).does("");
    host.handle(Event::BudgetDeleted {
        namespace: "ns".to_owned(),
        name: other.name,
    });
    host.does("evict a");
}
