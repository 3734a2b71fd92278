//! Which DaemonSets exist: one list per drain, and no guess that could do harm.

use scupper_engine::{Answer, Event, Pod, Task};
use serde_json::{Value, json};

use crate::script::{Call, Feed, Lines, Script, cluster, daemon_pod, pod, pods_only};

fn missing(pods: &[Pod]) -> Vec<bool> {
    pods.iter()
        .filter_map(|pod| Some(pod.controller.as_ref()?.missing))
        .collect()
}

async fn list(server: &mut Script) -> Call {
    let call = server.expect("GET", "/apis/apps/v1/daemonsets").await;
    assert!(
        call.accept
            .starts_with("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    );
    assert_eq!(call.query("limit"), Some("500"));
    assert_eq!(
        call.query("resourceVersion"),
        None,
        "an old list would call a new DaemonSet missing"
    );
    call
}

fn sets(names: &[&str]) -> Value {
    let item = |name: &&str| json!({"metadata": {"name": name, "namespace": "ns"}});
    json!({"metadata": {"resourceVersion": "9"}, "items": names.iter().map(item).collect::<Vec<_>>()})
}

async fn begin(server: &mut Script, feed: &mut Feed<Event>, pods: &[Value]) -> (Lines, [Lines; 2]) {
    let (call, others) = pods_only(server, feed).await;
    let lines = call.stream();
    for pod in pods {
        lines.send("ADDED", pod);
    }
    lines.end_of_list("5");
    (lines, others)
}

#[tokio::test(start_paused = true)]
async fn one_list_serves_the_drain_and_unknown_ones_ask_again() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let pods = [daemon_pod("a", "logs"), daemon_pod("b", "gone"), pod("c", "3")];
    let (lines, _others) = begin(&mut server, &mut feed, &pods).await;
    list(&mut server).await.answer(200, sets(&["logs", "other"]));
    let Event::Pods(pods) = feed.next().await else {
        panic!("no pods")
    };
    assert_eq!(missing(&pods), [false, true]);

    // Known DaemonSets, existing or not, are not requested again.
    for (name, set, wanted) in [("a", "logs", false), ("b", "gone", true), ("d", "other", false)] {
        lines.send("MODIFIED", &daemon_pod(name, set));
        assert!(
            matches!(feed.next().await, Event::PodApplied(pod) if missing(std::slice::from_ref(&pod)) == [wanted])
        );
    }
    lines.send("ADDED", &daemon_pod("e", "new"));
    list(&mut server).await.answer(200, sets(&["logs", "new"]));
    assert!(
        matches!(feed.next().await, Event::PodApplied(pod) if missing(std::slice::from_ref(&pod)) == [false])
    );

    // The fresh list of pods at the end does not request them either.
    let (answer, ()) = tokio::join!(cluster.perform("n1", &Task::ListPods), async {
        let items = [daemon_pod("a", "logs"), daemon_pod("e", "new")];
        let page = json!({"metadata": {"resourceVersion": "9"}, "items": items});
        server.expect("GET", "/api/v1/pods").await.answer(200, page);
    });
    assert!(matches!(answer, Answer::Pods(pods) if missing(&pods) == [false, false]));
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_lookup_does_not_mean_missing() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (lines, _others) = begin(&mut server, &mut feed, &[daemon_pod("a", "logs")]).await;
    let first = loop {
        tokio::select! {
            biased;
            event = feed.next() => break event,
            call = list(&mut server) => call.fail(403, "Forbidden", "daemonsets.apps is forbidden"),
        }
    };
    assert!(matches!(first, Event::Pods(pods) if missing(&pods) == [false]));
    // It is not requested again for each pod, but later it is.
    lines.send("MODIFIED", &daemon_pod("a", "logs"));
    assert!(matches!(feed.next().await, Event::PodApplied(_)));
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    lines.send("MODIFIED", &daemon_pod("a", "logs"));
    list(&mut server).await.answer(200, sets(&[]));
    assert!(
        matches!(feed.next().await, Event::PodApplied(pod) if missing(std::slice::from_ref(&pod)) == [true])
    );
    feed.stop().await;
    server.finish(cluster).await;
}

/// A plan that was made without the list would keep the pod for good.
#[tokio::test(start_paused = true)]
async fn a_lookup_that_fails_for_some_seconds_is_repeated_before_the_drain_knows_its_pods() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (_lines, _others) = begin(&mut server, &mut feed, &[daemon_pod("a", "gone")]).await;
    for code in [403, 401, 503, 403, 403] {
        list(&mut server).await.fail(code, "", "starting");
    }
    list(&mut server).await.answer(200, sets(&["logs"]));
    assert!(matches!(feed.next().await, Event::Pods(pods) if missing(&pods) == [true]));
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_drain_asks_again() {
    let (cluster, mut server) = cluster();
    for (present, wanted) in [(true, false), (false, true)] {
        let mut feed = Feed::of(cluster.watch("n1"));
        let (_lines, _others) = begin(&mut server, &mut feed, &[daemon_pod("a", "logs")]).await;
        list(&mut server)
            .await
            .answer(200, if present { sets(&["logs"]) } else { sets(&[]) });
        assert!(matches!(feed.next().await, Event::Pods(pods) if missing(&pods) == [wanted]));
        feed.stop().await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    server.finish(cluster).await;
}
