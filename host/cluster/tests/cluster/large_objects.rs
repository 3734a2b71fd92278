//! Objects as large as an API server stores: others write them, and the driver must neither fail nor keep them.

use scupper_engine::{Answer, Event, Pod, Selector, Task};
use serde_json::{Value, json};

use crate::script::{Call, Feed, cluster, pod, pods_only};

/// More than an answer may have.
const TOO_LARGE: usize = 17 << 20;

fn page(items: &[Value], token: &str) -> Value {
    json!({"metadata": {"resourceVersion": "9", "continue": token}, "items": items})
}

fn annotated(name: &str, sizes: &[usize]) -> Value {
    let mut pod = pod(name, "5");
    let annotations = sizes.iter().enumerate();
    let annotations =
        annotations.map(|(number, size)| (format!("example.com/{number}"), json!("x".repeat(*size))));
    pod["metadata"]["annotations"] = Value::Object(annotations.collect());
    pod
}

fn kept(pod: &Pod) -> Vec<usize> {
    pod.annotations.values().map(String::len).collect()
}

fn names(answer: Answer) -> Vec<String> {
    let Answer::Pods(pods) = answer else {
        panic!("{answer:?}")
    };
    pods.into_iter().map(|pod| pod.id.name).collect()
}

fn size(call: &Call) -> (&str, Option<&str>) {
    (call.query("limit").unwrap(), call.query("continue"))
}

#[tokio::test(start_paused = true)]
async fn a_page_of_large_objects_is_read_again_with_fewer_of_them() {
    let (cluster, mut server) = cluster();
    let (answer, ()) = tokio::join!(cluster.perform("n1", &Task::ListPods), async {
        let large = annotated("huge", &[TOO_LARGE]);
        let call = server.next().await;
        assert_eq!(size(&call), ("500", None));
        call.answer(200, page(&[pod("a", "1"), large.clone()], ""));
        let call = server.next().await;
        assert_eq!(size(&call), ("62", None));
        call.answer(200, page(&[pod("a", "1")], "more"));
        let call = server.next().await;
        assert_eq!(size(&call), ("62", Some("more")));
        call.answer(200, page(&[large], ""));
        let call = server.next().await;
        assert_eq!(size(&call), ("7", Some("more")));
        call.answer(200, page(&[pod("b", "1")], ""));
    });
    assert_eq!(names(answer), ["a", "b"]);
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn one_object_that_is_too_large_is_an_error_and_not_an_endless_try() {
    let (cluster, mut server) = cluster();
    let (answer, ()) = tokio::join!(cluster.perform("n1", &Task::ListPods), async {
        for limit in ["500", "62", "7", "1"] {
            let call = server.next().await;
            assert_eq!(size(&call), (limit, None));
            call.answer(200, page(&[annotated("huge", &[TOO_LARGE])], ""));
        }
    });
    let words = "it has more than 16 MiB";
    assert!(
        matches!(&answer, Answer::Unavailable { message } if message.contains(words)),
        "{answer:?}"
    );
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn of_a_pod_only_a_bounded_part_is_kept() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let (call, _others) = pods_only(&mut server, &mut feed).await;
    let lines = call.stream();
    // One is too large by itself, and of the others only so many fit.
    lines.send("ADDED", &annotated("a", &[100 << 10, 10, 15 << 10]));
    lines.send("ADDED", &annotated("b", &[15 << 10; 10]));
    let mut many = pod("c", "5");
    many["spec"]["volumes"] = (0..5000)
        .map(|number| json!({"name": format!("v{number}"), "hostPath": {"path": format!("/data/{number}")}}))
        .collect();
    let wordy = json!({"type": "Ready", "status": "True", "message": "x".repeat(100_000)});
    many["status"]["conditions"] = vec![wordy; 500].into();
    lines.send("ADDED", &many);
    lines.end_of_list("8");
    let Event::Pods(pods) = feed.next().await else {
        panic!("no pods")
    };
    assert_eq!(kept(&pods[0]), [10, 15 << 10]);
    assert_eq!(kept(&pods[1]), [15 << 10; 4]);
    assert_eq!((pods[2].host_paths.len(), pods[2].conditions.len()), (512, 64));
    assert!(pods[2].ready);
    assert!(pods[2].conditions.iter().all(|it| it.message.len() <= 4096));
    feed.stop().await;
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_whose_selector_is_too_large_selects_nothing() {
    let (cluster, mut server) = cluster();
    let mut feed = Feed::of(cluster.watch("n1"));
    let watches = server.watches().await;
    let _quiet = [watches.pods.stream(), watches.nodes.stream()];
    let budgets = watches.budgets.stream();
    let values: Vec<String> = (0..50_000).map(|number| format!("value-{number}")).collect();
    for (name, values) in [("small", &values[..3]), ("large", &values[..])] {
        let term = json!({"key": "app", "operator": "In", "values": values});
        let selector = json!({"matchExpressions": [term]});
        budgets.send(
            "ADDED",
            &json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": {"selector": selector}}),
        );
    }
    budgets.end_of_list("8");
    let Event::Budgets(budgets) = feed.next().await else {
        panic!("no budgets")
    };
    assert_eq!(budgets[0].selector.expressions[0].values.len(), 3);
    assert_eq!(budgets[1].selector, Selector::NOTHING);
    feed.stop().await;
    server.finish(cluster).await;
}
