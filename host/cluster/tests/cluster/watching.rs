//! The three watches: one request each, and every way they break.

use std::time::Duration;

use scupper_engine::{Event, Uid};
use serde_json::json;
use tokio::time::Instant;

use crate::script::{Call, Feed, Lines, Script, cluster, node, pod, pods_only, status};

fn budget(version: &str) -> serde_json::Value {
    json!({"metadata": {"name": "b", "namespace": "ns", "resourceVersion": version}, "spec": {"selector": {}}})
}

fn names(event: Event) -> Vec<String> {
    let Event::Pods(pods) = event else {
        panic!("a full list was due, not {event:?}")
    };
    pods.into_iter().map(|pod| pod.id.name).collect()
}

fn assert_lists_by_watch(call: &Call) {
    assert_eq!(
        (call.path.as_str(), call.query("watch")),
        ("/api/v1/pods", Some("1"))
    );
    assert_eq!(call.query("fieldSelector"), Some("spec.nodeName=n1"));
    assert_eq!(call.query("sendInitialEvents"), Some("true"));
    assert_eq!(call.query("resourceVersionMatch"), Some("NotOlderThan"));
    assert_eq!(call.query("allowWatchBookmarks"), Some("true"));
    assert_eq!(
        call.query("resourceVersion"),
        None,
        "as new as the source of truth"
    );
}

#[tokio::test(start_paused = true)]
async fn one_request_each_lists_and_follows() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let watches = server.watches().await;
    assert_lists_by_watch(&watches.pods);
    assert_eq!(watches.nodes.query("fieldSelector"), Some("metadata.name=n1"));
    assert_eq!(watches.budgets.query("fieldSelector"), None);

    let pods = watches.pods.stream();
    pods.send("ADDED", &pod("a", "3"));
    pods.send("ADDED", &pod("b", "4"));
    pods.end_of_list("5");
    assert_eq!(names(feed.next().await), ["a", "b"]);
    pods.send("ADDED", &pod("c", "6"));
    assert!(matches!(feed.next().await, Event::PodApplied(pod) if pod.id.name == "c"));
    pods.bookmark("7");
    pods.send("MODIFIED", &pod("a", "8"));
    assert!(matches!(feed.next().await, Event::PodApplied(pod) if pod.id.name == "a"));
    pods.send("DELETED", &pod("a", "9"));
    assert_eq!(feed.next().await, Event::PodDeleted(Uid::new("uid-a")));

    let budgets = watches.budgets.stream();
    budgets.end_of_list("5");
    assert_eq!(feed.next().await, Event::Budgets(Vec::new()));
    budgets.send("ADDED", &budget("6"));
    assert!(matches!(feed.next().await, Event::BudgetApplied(budget) if budget.name == "b"));
    budgets.send("DELETED", &budget("7"));
    assert_eq!(
        feed.next().await,
        Event::BudgetDeleted {
            namespace: "ns".into(),
            name: "b".into()
        }
    );

    let nodes = watches.nodes.stream();
    nodes.end_of_list("5");
    assert_eq!(feed.next().await, Event::Node(None));
    nodes.send("ADDED", &node("6"));
    assert!(matches!(feed.next().await, Event::Node(Some(node)) if node.resource_version == "6"));
    nodes.send("DELETED", &node("7"));
    assert_eq!(feed.next().await, Event::Node(None));

    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_resumes_from_its_last_version() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _others) = pods_only(&mut server, &mut feed).await;
    let pods = call.stream();
    pods.end_of_list("5");
    assert!(names(feed.next().await).is_empty());
    pods.send("ADDED", &pod("a", "8"));
    assert!(matches!(feed.next().await, Event::PodApplied(_)));
    drop(pods);

    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(
        (call.query("resourceVersion"), call.query("sendInitialEvents")),
        (Some("8"), None)
    );
    let pods = call.stream();
    pods.bookmark("11");
    drop(pods);
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(call.query("resourceVersion"), Some("11"), "bookmarks count");
    let pods = call.stream();
    pods.send("DELETED", &pod("a", "12"));
    assert_eq!(feed.next().await, Event::PodDeleted(Uid::new("uid-a")));

    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn every_break_is_healed_with_a_full_list() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (mut call, _others) = pods_only(&mut server, &mut feed).await;
    let breaks: [fn(Lines); 4] = [
        |lines| lines.break_off(),
        |lines| {
            lines.send(
                "ERROR",
                &status(410, "Expired", "too old resource version: 1 (292)"),
            )
        },
        |lines| lines.send("ERROR", &status(500, "InternalError", "etcd")),
        |lines| lines.send("ADDED", &json!({"metadata": {"deletionTimestamp": "when?"}})),
    ];
    for (round, break_it) in breaks.into_iter().enumerate() {
        assert_lists_by_watch(&call);
        let pods = call.stream();
        pods.send("ADDED", &pod(&format!("p{round}"), "4"));
        pods.end_of_list("5");
        assert_eq!(names(feed.next().await), [format!("p{round}")]);
        break_it(pods);
        call = server.next().await;
    }
    // Before the list is complete nothing is reported, however often it breaks.
    for _ in 0..3 {
        assert_lists_by_watch(&call);
        let pods = call.stream();
        pods.send("ADDED", &pod("half", "4"));
        pods.break_off();
        call = server.next().await;
    }
    call.break_off();
    server.next().await.fail(503, "", "starting");
    let pods = server.next().await.stream();
    pods.end_of_list("9");
    assert!(names(feed.next().await).is_empty());

    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn silence_is_not_trusted_for_ever() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, others) = pods_only(&mut server, &mut feed).await;
    let pods = call.stream();
    pods.end_of_list("5");
    assert!(names(feed.next().await).is_empty());
    let mut waited = 0;
    while !server.is_waiting().await {
        assert!(waited < 300, "a dead watch would go unnoticed");
        tokio::time::sleep(Duration::from_secs(5)).await;
        waited += 5;
        others.iter().for_each(|lines| lines.bookmark("6"));
    }
    assert!(waited > 120, "bookmarks come every minute or two");
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(call.query("resourceVersion"), Some("5"));
    let _pods = call.stream();
    // Its store was restored from a backup: it knows no version 5 yet, and says nothing until then.
    while !server.is_waiting().await {
        assert!(
            waited < 600,
            "a watch that brings nothing would be resumed for ever"
        );
        tokio::time::sleep(Duration::from_secs(5)).await;
        waited += 5;
        others.iter().for_each(|lines| lines.bookmark("6"));
    }
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(call.query("sendInitialEvents"), Some("true"));
    let _pods = call.stream();
    feed.stop().await;
    server.finish(cluster).await;
}

async fn falls_back_to_list_and_watch(refuse: impl FnOnce(Call) -> Option<Lines>) {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _others) = pods_only(&mut server, &mut feed).await;
    let _held = refuse(call);
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!((call.query("watch"), call.query("limit")), (None, Some("500")));
    assert_eq!(call.query("fieldSelector"), Some("spec.nodeName=n1"));
    call.answer(
        200,
        json!({"metadata": {"resourceVersion": "9"}, "items": [pod("a", "1")]}),
    );
    assert_eq!(names(feed.next().await), ["a"]);
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(
        (call.query("watch"), call.query("resourceVersion")),
        (Some("1"), Some("9"))
    );
    assert_eq!(call.query("sendInitialEvents"), None);
    let pods = call.stream();
    pods.send("ERROR", &status(410, "Expired", "too old"));
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(call.query("limit"), Some("500"), "it has learned");
    call.answer(200, json!({"metadata": {"resourceVersion": "19"}, "items": null}));
    assert!(names(feed.next().await).is_empty());
    let _pods = server.next().await.stream();
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn servers_that_refuse_to_list_through_a_watch() {
    let words = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden \
                 for watch unless the WatchList feature gate is enabled";
    falls_back_to_list_and_watch(|call| {
        call.fail(422, "Invalid", words);
        None
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn servers_that_do_not_know_of_lists_through_watches() {
    falls_back_to_list_and_watch(|call| {
        let lines = call.stream();
        lines.send("ADDED", &pod("a", "1"));
        Some(lines)
    })
    .await;
}

const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";

/// The watch of budgets, while those of pods and nodes stay open.
async fn budgets_only(server: &mut Script, feed: &mut Feed<Event>) -> (Call, [Lines; 2]) {
    let watches = server.watches().await;
    let quiet = [watches.pods.stream(), watches.nodes.stream()];
    for lines in &quiet {
        lines.end_of_list("1");
        assert!(matches!(feed.next().await, Event::Pods(_) | Event::Node(None)));
    }
    (watches.budgets, quiet)
}

fn forbid(call: Call) {
    assert_eq!(call.path, BUDGETS);
    call.fail(403, "Forbidden", "poddisruptionbudgets.policy is forbidden");
}

/// A list that is answered, and the watch after it.
async fn granted(server: &mut Script, version: &str) -> Lines {
    let call = server.expect("GET", BUDGETS).await;
    assert_eq!(call.query("watch"), None);
    call.answer(
        200,
        json!({"metadata": {"resourceVersion": version}, "items": [budget(version)]}),
    );
    let call = server.expect("GET", BUDGETS).await;
    assert_eq!(
        (call.query("watch"), call.query("resourceVersion")),
        (Some("1"), Some(version))
    );
    call.stream()
}

/// Refuses all requests until the stream says something.
async fn refused(server: &mut Script, feed: &mut Feed<Event>) -> Event {
    loop {
        tokio::select! {
            biased;
            event = feed.next() => return event,
            call = server.next() => forbid(call),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn budgets_that_are_refused_for_a_moment_stay_as_they_were() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _quiet) = budgets_only(&mut server, &mut feed).await;
    // An API server that has just restarted, when nothing is known yet.
    forbid(call);
    forbid(server.next().await);
    let (event, budgets) = tokio::join!(feed.next(), granted(&mut server, "6"));
    assert!(matches!(event, Event::Budgets(budgets) if budgets.len() == 1));
    // The same when they are known: for five seconds none of them is forgotten.
    budgets.break_off();
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(5) {
        forbid(server.next().await);
    }
    let (event, _budgets) = tokio::join!(feed.next(), granted(&mut server, "7"));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(matches!(event, Event::Budgets(budgets) if budgets.len() == 1));
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn budgets_stay_as_they_were_while_an_api_server_is_restarted_again_and_again() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _quiet) = budgets_only(&mut server, &mut feed).await;
    forbid(call);
    let (event, budgets) = tokio::join!(feed.next(), granted(&mut server, "6"));
    assert!(matches!(event, Event::Budgets(budgets) if budgets.len() == 1));
    budgets.break_off();
    let start = Instant::now();
    for _ in 0..4 {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            forbid(server.next().await);
        }
        server.next().await.fail(500, "InternalError", "shutting down");
    }
    let (event, _budgets) = tokio::join!(feed.next(), granted(&mut server, "7"));
    assert!(
        matches!(&event, Event::Budgets(budgets) if budgets.len() == 1),
        "{event:?}"
    );
    assert!(start.elapsed() > Duration::from_secs(20), "{:?}", start.elapsed());
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn budgets_that_we_may_not_read_count_as_none() {
    let (cluster, mut server) = cluster();
    let since = Instant::now();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, quiet) = budgets_only(&mut server, &mut feed).await;
    forbid(call);
    assert_eq!(refused(&mut server, &mut feed).await, Event::Budgets(Vec::new()));
    assert!(since.elapsed() > Duration::from_secs(9), "it may be a hiccup");
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    let mut waits = Vec::new();
    for _ in 0..6 {
        let since = Instant::now();
        while !server.is_waiting().await {
            tokio::time::sleep(Duration::from_millis(500)).await;
            quiet.iter().for_each(|lines| lines.bookmark("2"));
        }
        waits.push(since.elapsed().as_secs());
        forbid(server.next().await);
    }
    assert!(
        waits[0] <= 6,
        "soon enough for a server that starts slowly: {waits:?}"
    );
    assert!(waits[5] >= 60, "rights are granted by people: {waits:?}");
    assert!(cluster.broken_watches().is_empty(), "the drain does without them");

    // The next drain knows that.
    let mut second = Feed::of(cluster.watch_pods("n1"));
    let mut calls = [server.next().await, server.next().await];
    calls.sort_by(|one, other| one.path.cmp(&other.path));
    let [pods, budgets] = calls;
    forbid(budgets);
    assert_eq!(
        refused(&mut server, &mut second).await,
        Event::Budgets(Vec::new())
    );
    drop(pods);
    second.stop().await;

    while !server.is_waiting().await {
        tokio::time::sleep(Duration::from_secs(5)).await;
        quiet.iter().for_each(|lines| lines.bookmark("2"));
    }
    let (event, _budgets) = tokio::join!(feed.next(), granted(&mut server, "6"));
    assert!(
        matches!(event, Event::Budgets(budgets) if budgets.len() == 1),
        "granted later"
    );
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_we_may_not_read_do_not_count_as_none() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _others) = pods_only(&mut server, &mut feed).await;
    call.fail(403, "Forbidden", "pods is forbidden");
    server
        .expect("GET", "/api/v1/pods")
        .await
        .fail(403, "Forbidden", "pods is forbidden");
    let call = server.expect("GET", "/api/v1/pods").await;
    call.answer(200, pods_listed("5", &["a"]));
    assert_eq!(names(feed.next().await), ["a"]);
    let _pods = server.expect("GET", "/api/v1/pods").await.stream();
    feed.stop().await;
    server.finish(cluster).await;
}

fn pods_listed(version: &str, names: &[&str]) -> serde_json::Value {
    let pods: Vec<_> = names.iter().map(|name| pod(name, "1")).collect();
    json!({"metadata": {"resourceVersion": version}, "items": pods})
}

/// What `kubectl drain` needs: to list them.
#[tokio::test(start_paused = true)]
async fn pods_that_we_may_list_and_not_watch_are_listed_again_until_we_may() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, others) = pods_only(&mut server, &mut feed).await;
    let begun = Instant::now();
    call.fail(403, "Forbidden", "may not watch");
    for (round, pods) in [&["a", "b"][..], &["b"], &[]].into_iter().enumerate() {
        let call = server.expect("GET", "/api/v1/pods").await;
        assert_eq!(
            (call.query("watch"), call.query("fieldSelector")),
            (None, Some("spec.nodeName=n1"))
        );
        let version = format!("{round}");
        call.answer(200, pods_listed(&version, pods));
        assert_eq!(names(feed.next().await), pods);
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        let call = server.expect("GET", "/api/v1/pods").await;
        assert_eq!(
            (call.query("watch"), call.query("resourceVersion")),
            (Some("1"), Some(version.as_str()))
        );
        call.fail(403, "Forbidden", "may not watch");
        others.iter().for_each(|lines| lines.bookmark("6"));
    }
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_eq!(cluster.broken_watches(), ["/api/v1/pods: may not watch"]);
    call.answer(200, pods_listed("9", &["c"]));
    assert_eq!(names(feed.next().await), ["c"]);
    // From here on it is a watch like any other, and a break lists through it.
    let pods = server.expect("GET", "/api/v1/pods").await.stream();
    pods.send("ADDED", &pod("d", "10"));
    assert!(matches!(feed.next().await, Event::PodApplied(pod) if pod.id.name == "d"));
    assert!(cluster.broken_watches().is_empty());
    pods.break_off();
    let call = server.expect("GET", "/api/v1/pods").await;
    assert_lists_by_watch(&call);
    feed.stop().await;
    server.finish(cluster).await;
}
