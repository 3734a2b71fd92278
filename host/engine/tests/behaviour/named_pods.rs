//! A request that names its pods: it is done only when each of them is gone, and it says nothing of the rest of the node.

use std::collections::BTreeSet;
use std::time::Duration;

use scupper_engine::{
    Checkpoint, Event, Node, Outcome, Plan, Pod, PodRef, Request, Settings, Time, Uid, Verdict,
    digest_of_pods,
};

use crate::harness::{Host, PodPhase, START, controller, node, planner, pod, request};

/// A request for these pods of the namespace `ns`.
fn naming(names: &[&str]) -> Request {
    let mut settings = Settings::default();
    let names: BTreeSet<_> = names.iter().map(ToString::to_string).collect();
    settings.filters.only_pods = Some([("ns".to_owned(), names)].into());
    Request {
        settings,
        ..request()
    }
}

fn daemon(name: &str) -> Pod {
    Pod {
        controller: Some(controller("DaemonSet", "agent")),
        ..pod(name)
    }
}

fn blocked(host: &Host) -> String {
    let Some(outcome @ Outcome::Blocked { .. }) = host.drain.outcome() else {
        return format!("{:?}", host.drain.outcome());
    };
    outcome.to_string()
}

#[test]
fn a_named_pod_that_would_stay_blocks_the_drain_before_anything_changes() {
    let mirror = Pod {
        annotations: [(scupper_engine::MIRROR_ANNOTATION.to_owned(), "x".to_owned())].into(),
        ..pod("m")
    };
    for (kept, reason) in [
        (daemon("d"), "ignoring DaemonSet-managed Pods"),
        (mirror, "mirror of a static pod"),
    ] {
        let name = kept.id.name.clone();
        let mut host = Host::new(naming(&["a", &name]));
        host.begin(&[pod("a"), kept, daemon("other")]).does("");
        let said = blocked(&host);
        assert!(
            said.contains(reason) && said.contains(&format!("ns/{name}")),
            "{said}"
        );
        assert!(!said.contains("other"), "{said}");
    }
    let mut own = naming(&["a"]);
    own.settings.own_pod = Some(pod("a").id);
    let mut host = Host::new(own);
    host.begin(&[pod("a")]).does("");
    assert!(
        blocked(&host).contains("the driver's own pod"),
        "{}",
        blocked(&host)
    );
}

#[test]
fn a_policy_that_keeps_a_named_pod_is_named() {
    let mut host = Host::new(Request {
        policies: vec![planner("gpu")],
        ..naming(&["a", "b"])
    });
    host.begin(&[pod("a"), pod("b"), pod("c")])
        .planned("gpu", |plan| {
            let kept = Uid::new("b");
            for decision in plan.decisions.iter_mut().filter(|decision| decision.pod == kept) {
                decision.verdict = Verdict::Keep;
                decision.reason = "its GPU is healthy".to_owned();
            }
            plan.waves[0].pods.retain(|uid| *uid != kept);
        });
    host.does("");
    let said = blocked(&host);
    assert!(
        said.contains("ns/b") && said.contains("its GPU is healthy") && said.contains("[gpu]"),
        "{said}"
    );
}

/// The policy keeps these pods.
fn keep(plan: &mut Plan, uids: &[&str]) {
    let uids: Vec<Uid> = uids.iter().map(|uid| Uid::new(*uid)).collect();
    for decision in &mut plan.decisions {
        if uids.contains(&decision.pod) {
            decision.verdict = Verdict::Keep;
            decision.reason = "it holds none of the GPUs".to_owned();
        }
    }
    for wave in &mut plan.waves {
        wave.pods.retain(|uid| !uids.contains(uid));
    }
}

/// A list of pods is older than the drain, and a pod that has ended holds nothing up.
#[test]
fn a_named_pod_that_has_finished_may_stay() {
    let finished = Pod {
        phase: PodPhase::Succeeded,
        ..pod("a")
    };
    let pods = [finished, pod("b")];
    let of_gpu = || Request {
        policies: vec![planner("gpu")],
        ..naming(&["a", "b"])
    };
    let mut host = Host::new(of_gpu());
    host.begin(&pods).planned("gpu", |plan| keep(plan, &["a"]));
    host.written("cordon")
        .does("evict b")
        .waits("ns/a Kept\nns/b EvictionRequested");
    let mark = host.last_checkpoint();
    // Another process makes the plan again.
    let mut host = Host::resume(of_gpu(), mark.clone());
    host.begin_with(marked(mark, true, "200"), &pods, &[])
        .planned("gpu", |plan| keep(plan, &["a"]));
    host.accepted("evict b").gone(&["b"]);
    assert!(host.asks("list-pods"));
    host.waits("ns/a Kept");
}

/// The request is for the pods that were there: this is another one.
#[test]
fn a_pod_that_comes_later_under_a_named_name_may_stay() {
    let again = Pod {
        id: PodRef {
            uid: Uid::new("second"),
            ..pod("a").id
        },
        created: Time::from_millis(1),
        ..pod("a")
    };
    let mut host = Host::new(Request {
        policies: vec![planner("gpu")],
        ..naming(&["a"])
    });
    host.begin(&[pod("a"), pod("b")]).planned("gpu", |_| {});
    host.written("cordon").accepted("evict a").gone(&["a"]).skip();
    host.handle(Event::PodApplied(again)).wait(1_000);
    host.planned("gpu", |plan| keep(plan, &["second"]))
        .waits("ns/b Kept\nns/a Kept");
}

/// A drain of `a` that ends well, beside a pod that it does not name.
fn done() -> Host {
    let mut host = Host::new(naming(&["a"]));
    host.begin(&[pod("a"), pod("b")])
        .written("cordon")
        .accepted("evict a")
        .gone(&["a"])
        .listed(&[pod("b")])
        .written("save");
    host
}

#[test]
fn a_node_of_which_named_pods_are_gone_is_not_drained() {
    let mut host = done();
    host.ends(&Outcome::Drained);
    let mark = host.last_checkpoint();
    assert!(mark.ended_well && !mark.drained, "{mark:?}");
    assert_eq!(
        mark.only_pods,
        naming(&["a"])
            .settings
            .filters
            .only_pods
            .as_ref()
            .map(digest_of_pods)
    );
    let node = Node {
        unschedulable: true,
        checkpoint: Some(mark),
        ..node()
    };
    assert!(!node.is_drained_by_us());
}

#[test]
fn the_cordon_of_a_request_that_was_met_stays_when_a_later_drain_is_cancelled() {
    let mark = done().last_checkpoint();
    let cordoned = marked(mark, true, "200");
    let mut host = Host::new(Request {
        id: "second".to_owned(),
        ..request()
    });
    host.begin_with(cordoned, &[pod("b")], &[]).written("save").skip();
    host.handle(Event::Cancel {
        reason: "no".to_owned(),
    })
    .does("save finished, ours");
}

/// A state of the node with this mark.
fn marked(mark: Checkpoint, unschedulable: bool, version: &str) -> Node {
    Node {
        unschedulable,
        checkpoint: Some(mark),
        resource_version: version.to_owned(),
        ..node()
    }
}

/// The mark of a drain that reached its deadline and keeps its cordon.
fn held() -> Checkpoint {
    let mut host = Host::new(Request {
        id: "first".to_owned(),
        deadline: Some(START + Duration::from_secs(60)),
        ..request()
    });
    host.begin(&[pod("a")]).written("cordon").skip();
    host.wait(60_000).does("save finished, ours");
    host.last_checkpoint()
}

#[test]
fn the_cordon_that_a_failed_drain_has_kept_stays_when_a_later_drain_is_cancelled() {
    let mark = held();
    assert!(
        mark.own_cordon && !mark.drained && !mark.is_under_way(),
        "{mark:?}"
    );
    let cordoned = marked(mark, true, "200");
    let mut host = Host::new(request());
    host.begin_with(cordoned, &[pod("a")], &[]).written("save").skip();
    let mark = host.last_checkpoint();
    assert!(mark.own_cordon && mark.inherited, "{mark:?}");
}

/// The mark of a drain whose process died before its end.
fn unfinished() -> Checkpoint {
    let mut host = Host::new(Request {
        id: "first".to_owned(),
        ..request()
    });
    host.begin(&[pod("a")]).skip();
    host.last_checkpoint()
}

#[test]
fn the_cordon_of_a_drain_that_never_ended_is_taken_over_and_lifted_by_a_cancel() {
    let mark = unfinished();
    assert!(mark.own_cordon && mark.is_under_way(), "{mark:?}");
    let cordoned = marked(mark, true, "200");
    let mut host = Host::new(request());
    host.begin_with(cordoned, &[pod("a")], &[]).written("save").skip();
    let mark = host.last_checkpoint();
    assert!(mark.own_cordon && !mark.inherited, "{mark:?}");
    let saved = marked(mark, true, "201");
    host.handle(Event::Node(Some(saved))).handle(Event::Cancel {
        reason: "no".to_owned(),
    });
    host.does("uncordon at 201");
}

#[test]
fn a_cordon_that_others_make_while_a_drain_plans_is_not_that_of_the_drain_before_it() {
    let state = |unschedulable, version| marked(unfinished(), unschedulable, version);
    let mut host = Host::new(Request {
        policies: Vec::from([planner("first")]),
        ..request()
    });
    host.begin_with(state(true, "200"), &[pod("a")], &[])
        .does("plan first");
    host.handle(Event::Node(Some(state(false, "201"))));
    host.handle(Event::Node(Some(state(true, "202"))));
    host.planned("first", |_| {}).does("save holding, not ours");
    assert!(!host.last_checkpoint().own_cordon);
}

#[test]
fn a_digest_tells_sets_of_pods_apart_however_they_are_cut() {
    let of = |pods: &[(&str, &[&str])]| {
        let pods = pods.iter().map(|(namespace, names)| {
            let names: BTreeSet<_> = names.iter().map(ToString::to_string).collect();
            ((*namespace).to_owned(), names)
        });
        digest_of_pods(&pods.collect())
    };
    assert_eq!(of(&[("a", &["x", "y"])]), of(&[("a", &["y", "x"])]));
    let sets = [
        of(&[]),
        of(&[("a", &[])]),
        of(&[("a", &["x", "y"])]),
        of(&[("a", &["xy"])]),
        of(&[("a", &["x"]), ("y", &[])]),
        of(&[("ax", &["y"])]),
    ];
    let distinct: BTreeSet<_> = sets.iter().collect();
    assert_eq!(distinct.len(), sets.len(), "{sets:?}");
}
