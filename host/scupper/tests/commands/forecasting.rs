//! How a drain would go: told before it begins, and from the times of recorded drains.

use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::kubelet_node::until;
use crate::rig::Rig;

#[test]
fn a_forecast_knows_the_times_of_recorded_drains_and_changes_nothing() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    let directory = format!("{}/", rig.dir.path().join("recordings").to_str().unwrap());
    let forecast = ["forecast", "worker-1", "--recordings", &directory];
    let unknown = rig.run(&forecast);
    assert_eq!(unknown.code, Some(0), "{unknown:#?}");
    let lines: Vec<_> = unknown.stdout.lines().collect();
    assert_eq!(lines[0], "worker-1: 200 plays of this drain");
    assert!(lines[1].starts_with("  end      p50 "), "{unknown:#?}");
    assert!(lines[2].starts_with("  waits    of "), "{unknown:#?}");
    assert_eq!(lines[3], "  known    nothing: no recorded drain was read");
    let assumed = "  assumed  ReplicaSet shop/web (2 pods): pods end between 1s and their grace period";
    assert_eq!(lines[4..], [assumed]);
    assert!(!rig.is_cordoned("worker-1"));

    let drained = rig.run(&["drain", "worker-1", "--record", &directory]);
    assert_eq!(drained.code, Some(0), "{drained:#?}");
    rig.apply(rig.pod("web", "worker-1"));
    let known = rig.run(&[&forecast[..], &["-o", "json", "--timeout", "1h"]].concat());
    assert_eq!(known.code, Some(0), "{known:#?}");
    let known: Value = serde_json::from_str(&known.stdout).unwrap();
    assert_eq!(known["knownWorkloads"], 1, "{known:#}");
    assert_eq!(known["recordings"], 1, "{known:#}");
    assert_eq!(known["drained"], 200, "{known:#}");
    assert_eq!(known["limitSeconds"], 3600.0, "{known:#}");
    assert_eq!(known["unknownWorkloads"], json!([]), "{known:#}");

    let planned = rig.run(&["plan", "worker-1", "--recordings", &directory]);
    let last = planned.stdout.lines().last().unwrap();
    assert!(last.starts_with("Probably: p50 "), "{planned:#?}");
    assert!(last.ends_with(", from 1 recorded drain."), "{planned:#?}");
    let json = rig.run(&["plan", "worker-1", "--recordings", &directory, "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["probably"]["recordings"], 1, "{json:#}");
    let without = rig.run(&["plan", "worker-1"]);
    assert!(!without.stdout.contains("Probably"), "{without:#?}");
}

#[test]
fn a_drain_that_would_not_end_is_foretold() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let forecast = rig.run(&["forecast", "worker-1"]);
    assert_eq!(forecast.code, Some(5), "{forecast:#?}");
    let lines: Vec<_> = forecast.stdout.lines().collect();
    assert_eq!(
        lines[1], "  end      200 of 200 plays do not end",
        "{forecast:#?}"
    );
    assert_eq!(
        lines[2],
        "  waits    without an end for disruption budget shop/keep-db"
    );
    assert_eq!(lines[3], "  stays    shop/db: still there in every play");
    let unknown = rig.run(&["forecast", "nowhere"]);
    assert_eq!(unknown.code, Some(4), "{unknown:#?}");
}

#[test]
fn nodes_that_share_a_budget_are_named() {
    let rig = Rig::new();
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    rig.apply(rig.pod("other-db", "worker-2").label("app", "db"));
    let forecast = rig.run(&["forecast", "worker-1", "worker-2"]);
    assert_eq!(forecast.code, Some(0), "{forecast:#?}");
    for other in ["worker-2", "worker-1"] {
        let line = format!(
            "  shared   budget shop/keep-db also counts pods of {other}: drained together, they wait for each other"
        );
        assert!(
            forecast.stdout.lines().any(|printed| printed == line),
            "{forecast:#?}"
        );
    }
    let alone = rig.run(&["forecast", "worker-1"]);
    assert!(!alone.stdout.contains("  shared "), "{alone:#?}");
}

#[test]
fn the_drains_of_several_nodes_are_played_together() {
    let rig = Rig::new();
    for (pod, node) in [("web-1", "worker-1"), ("web-2", "worker-2")] {
        rig.apply(rig.pod(pod, node).label("app", "web"));
    }
    rig.service("web");
    let forecast = ["forecast", "worker-1", "worker-2"];
    let both = rig.run(&forecast);
    assert_eq!(both.code, Some(0), "{both:#?}");
    let together: Vec<_> = both.stdout.lines().rev().take(4).collect();
    assert_eq!(
        together[3],
        "worker-1, worker-2: all cordoned first, then drained, 200 plays"
    );
    assert!(together[2].starts_with("  at once  p50 "), "{both:#?}");
    assert!(together[1].starts_with("  in turn  p50 "), "{both:#?}");
    let none = "  service  at once: shop/web: 0 of 2 endpoints ready at worst, none for ";
    assert!(together[0].starts_with(none), "{both:#?}");
    // By itself, either drain leaves one.
    let one = "  service  shop/web: 1 of 2 endpoints ready at worst, fewer than 2 for ";
    let starting = |line: &str| {
        both.stdout
            .lines()
            .filter(|printed| printed.starts_with(line))
            .count()
    };
    assert_eq!(starting(one), 2, "{both:#?}");
    let json = rig.run(&[&forecast[..], &["-o", "json"]].concat());
    let objects: Vec<Value> = serde_json::Deserializer::from_str(&json.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let together = objects.last().unwrap();
    assert_eq!(together["nodes"], json!(["worker-1", "worker-2"]), "{together:#}");
    assert_eq!(together["atOnce"]["drained"], 200, "{together:#}");
    let seconds = |way: &str| together[way]["p50Seconds"].as_f64().unwrap();
    assert!(seconds("inTurn") > seconds("atOnce"), "{together:#}");
}

#[test]
fn a_drain_that_would_be_refused_has_no_forecast() {
    let rig = Rig::new();
    let mut pod = Value::from(rig.pod("cache", "worker-1"));
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    rig.apply(pod);
    let refused = rig.run(&["forecast", "worker-1"]);
    assert_eq!(refused.code, rig.run(&["plan", "worker-1"]).code, "{refused:#?}");
    let first = "worker-1: no drain would begin: ";
    assert!(refused.stdout.starts_with(first), "{refused:#?}");
}

/// Nodes with 4 CPUs each, and a pod of worker-1 that requests so many thousandths.
fn with_cpus(pod: &str, cpu: u32) -> Rig {
    let rig = Rig::new();
    for node in ["worker-1", "worker-2", "worker-3"] {
        let sized = objects::node(node).with("/status/allocatable", json!({"cpu": "4", "pods": "9"}));
        rig.apply(sized);
    }
    rig.apply(requesting(rig.pod(pod, "worker-1"), cpu));
    rig
}

fn requesting(pod: objects::Object, cpu: u32) -> objects::Object {
    let requests = json!({"requests": {"cpu": format!("{cpu}m")}});
    let container = json!({"name": "main", "image": "none", "resources": requests});
    pod.with("/spec/containers", json!([container]))
}

#[track_caller]
fn says(text: &str, line: &str) {
    assert!(text.lines().any(|printed| printed == line), "{line}\n{text}");
}

#[test]
fn pods_that_no_node_has_room_for_are_named() {
    let rig = with_cpus("huge", 4001);
    for name in ["small", "other"] {
        rig.apply(requesting(rig.pod(name, "worker-1"), 3000));
    }
    // It needs no room: nothing makes it again.
    rig.apply(requesting(objects::pod("shop", "bare", "worker-1"), 9000));
    let forecast = ["forecast", "worker-1", "--force"];
    let fits = rig.run(&forecast);
    assert_eq!(fits.code, Some(0), "{fits:#?}");
    let huge = "  nowhere  shop/huge: no node has room for it: of 3 nodes, 3 have too little cpu";
    says(&fits.stdout, huge);
    assert_eq!(fits.stdout.matches("nowhere").count(), 1, "{fits:#?}");

    rig.apply(requesting(rig.pod("third", "worker-1"), 3000));
    let full = rig.run(&forecast);
    let left = "  nowhere  shop/third: no node has room once the other replacements are placed: \
        of 3 nodes, 2 have too little cpu, 1 is to be drained";
    says(&full.stdout, left);
    let json = rig.run(&[&forecast[..], &["-o", "json"]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&json["room"]["nodes"], &json["room"]["pods"]),
        (&json!(3), &json!(4)),
        "{json:#}"
    );
    let nowhere = json["room"]["nowhere"].as_array().unwrap();
    let huge = nowhere.iter().find(|one| one["alone"] == true).unwrap();
    assert_eq!(huge["pods"], json!(["shop/huge"]));
    let refusals = json!([{"filter": "resources", "detail": "cpu", "nodes": 3}]);
    assert_eq!(huge["refusals"], refusals);
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn nodes_that_are_the_only_place_for_each_others_pods_are_named() {
    let rig = with_cpus("db", 1000);
    let select = |name: &str, node: &str| {
        let pod = requesting(rig.pod(name, node), 1000);
        rig.apply(pod.with("/spec/nodeSelector", json!({"pool": "a"})));
    };
    for (node, pool) in [("worker-1", "a"), ("worker-2", "a"), ("worker-3", "b")] {
        let sized = objects::node(node).with("/status/allocatable", json!({"cpu": "4", "pods": "9"}));
        rig.apply(sized.label("pool", pool));
    }
    select("db", "worker-1");
    select("web", "worker-2");
    let alone = rig.run(&["forecast", "worker-1"]);
    assert!(!alone.stdout.contains("together"), "{alone:#?}");
    let both = rig.run(&["forecast", "worker-1", "worker-2"]);
    let why = "of 3 nodes, 2 are to be drained, 1 does not match its node selector or affinity";
    for (pod, other) in [("db", "worker-2"), ("web", "worker-1")] {
        let line = format!(
            "  together shop/{pod}: with all these nodes drained at once, no node has room for it; {other} would if not drained: {why}"
        );
        says(&both.stdout, &line);
    }
    assert!(!both.stdout.contains("nowhere"), "{both:#?}");
    let json = rig.run(&["forecast", "worker-1", "worker-2", "-o", "json"]);
    let first = serde_json::Deserializer::from_str(&json.stdout)
        .into_iter::<Value>()
        .next();
    let first = first.unwrap().unwrap();
    assert_eq!(
        first["room"]["together"][0]["fitsOn"],
        json!(["worker-2"]),
        "{first:#}"
    );
}

#[test]
fn a_volume_that_other_nodes_do_not_reach_holds_its_pod() {
    let rig = Rig::new();
    rig.apply(objects::local_volume("pv-1", "worker-1", "shop", "data"));
    rig.apply(objects::volume_claim("shop", "data", "pv-1"));
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    rig.apply(rig.pod("db", "worker-1").with("/spec/volumes", volumes));
    let forecast = rig.run(&["forecast", "worker-1"]);
    let line = "  nowhere  shop/db: no node has room for it: of 3 nodes, 2 cannot reach its volume, 1 is to be drained";
    says(&forecast.stdout, line);
}

#[test]
fn without_the_right_to_read_it_there_is_a_forecast_without_room() {
    let rig = with_cpus("huge", 9000);
    let rights = [("get", "nodes"), ("get", "pods"), ("list", "pods")];
    rig.act_as("sre");
    rig.api.allow_only(
        "sre",
        &[&rights[..], &[("watch", "nodes"), ("watch", "pods")]].concat(),
    );
    let forecast = rig.run(&["forecast", "worker-1"]);
    assert_eq!(forecast.code, Some(0), "{forecast:#?}");
    let is_room = |line: &&str| line.starts_with("  room     not looked at: no right to list nodes: ");
    assert_eq!(
        forecast.stdout.lines().filter(is_room).count(),
        1,
        "{forecast:#?}"
    );
    assert!(!forecast.stdout.contains("nowhere"), "{forecast:#?}");
    says(
        &forecast.stdout,
        "  assumed  no disruption budgets: they could not be read",
    );
    let json = rig.run(&["forecast", "worker-1", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["budgetsUnread"], true, "{json:#}");
}

#[test]
fn what_a_file_lacks_is_named() {
    let rig = Rig::new();
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    rig.apply(rig.pod("db", "worker-1").with("/spec/volumes", volumes));
    let items = [rig.objects("nodes"), rig.objects("pods")].concat();
    let items: Vec<Value> = items.into_iter().map(with_version).collect();
    let file = rig.dir.path().join("list.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&file, list.to_string()).unwrap();
    let forecast = rig.run(&["forecast", "worker-1", "--from", file.to_str().unwrap()]);
    says(
        &forecast.stdout,
        "  room     looked at without volumes: the file has no persistentvolumeclaims; save them as well: \
            kubectl get ...,persistentvolumeclaims -A -o json",
    );
}

/// The drain is, and in the same words.
#[test]
fn a_drain_that_would_end_before_its_notice_is_foretold_to_be_refused() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let late = ["worker-1", "--notify-before", "2m", "--timeout", "1m"];
    let refused = rig.run(&[&["forecast"], &late[..]].concat());
    let why = "Scupper refused the drain: no pod may leave for 2m00s (drain.notify-before), and the drain's \
        deadline is in 1m00s: give it more time, or notify later";
    assert_eq!(refused.stdout, format!("worker-1: no drain would begin: {why}\n"));
    let drain = rig.run(&[&["drain", "--local"], &late[..]].concat());
    assert_eq!(refused.code, drain.code, "{drain:#?}");
    let begins = "Scupper refused the drain: no pod may leave for 2m00s (drain.notify-before)";
    assert!(drain.stdout.contains(begins), "{drain:#?}");
    let json = rig.run(&[&["forecast", "-o", "json"], &late[..]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json, json!({"node": "worker-1", "refused": why}));
    let fits = rig.run(&["forecast", "worker-1", "--notify-before", "2m", "--timeout", "1h"]);
    assert_eq!(fits.code, Some(0), "{fits:#?}");
    assert!(
        fits.stdout.contains("notice to workloads (--notify-before)"),
        "{fits:#?}"
    );
    // Nobody is to be told, so nothing is waited for.
    let empty = rig.run(&[&["forecast", "worker-2"], &late[1..]].concat());
    assert_eq!(empty.code, Some(0), "{empty:#?}");
    assert!(empty.stdout.contains("  end      p50 "), "{empty:#?}");
    let drain = rig.run(&[&["drain", "worker-2", "--local"], &late[1..]].concat());
    assert_eq!(drain.code, Some(0), "{drain:#?}");
}

/// It ends when the first process has said that it would, and not an hour after the second one has begun.
#[test]
fn a_drain_that_another_process_continues_is_estimated_from_where_it_is() {
    let rig = Rig::new();
    let directory = format!("{}/", rig.dir.path().join("recordings").to_str().unwrap());
    let drain = [
        "drain", "worker-1", "--local", "--record", &directory, "-o", "json",
    ];
    rig.apply(rig.pod("web", "worker-1"));
    let taught = rig.run(&drain);
    assert_eq!(taught.code, Some(0), "{taught:#?}");
    rig.run(&["uncordon", "worker-1", "--local"]);
    rig.apply(rig.pod("web", "worker-1"));
    let slow = [&drain[..], &["--notify-before", "1h", "--timeout", "5h"]].concat();
    let mut first = rig.start(&slow);
    first.prints(r#""kind":"hookWaiting""#);
    first.prints(r#""kind":"estimate""#);
    let known = likely(&first.stdout());
    let left = || known.duration_since(jiff::Timestamp::now());
    let hour = jiff::SignedDuration::from_hours(1);
    until("some of its time is over", || left() < hour - OVER);
    first.kill();
    let mut second = rig.start(&[&slow[..], &["--take-over"]].concat());
    second.prints(r#""kind":"estimate""#);
    let again = likely(&second.stdout());
    second.kill();
    // Pods end a moment sooner or later in the two.
    let apart = known.duration_since(again).abs();
    assert!(apart < OVER / 2, "{known} {again}");
}

/// So much of a drain is over when another process continues it.
const OVER: jiff::SignedDuration = jiff::SignedDuration::from_secs(6);

/// The likely end in the line of a drain that tells it.
fn likely(lines: &str) -> jiff::Timestamp {
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let estimate = lines.into_iter().find(|line| line["kind"] == "estimate").unwrap();
    estimate["estimate"]["likely"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_cluster_in_a_file_is_forecast_without_a_server() {
    let rig = with_cpus("huge", 5000);
    rig.apply(rig.pod("web", "worker-1"));
    rig.service("web");
    let of_server = rig.run(&["forecast", "worker-1"]);
    let items = ["nodes", "pods", "services"]
        .map(|kind| rig.objects(kind))
        .concat();
    let items: Vec<Value> = items.into_iter().map(with_version).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    rig.api.pause();
    for (name, text) in [
        ("list.json", list.to_string()),
        ("list.yaml", serde_saphyr::to_string(&list).unwrap()),
    ] {
        let file = rig.dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let of_file = rig.run(&["forecast", "worker-1", "--from", file.to_str().unwrap()]);
        assert_eq!(of_file.code, Some(0), "{of_file:#?}");
        // It is not known whether there are any.
        let budgets = "  assumed  no disruption budgets: the file has none\n";
        assert_eq!(of_file.stdout, of_server.stdout.clone() + budgets);
        assert_eq!(of_file.stderr, "");
        assert!(of_file.stdout.contains("  nowhere  shop/huge: "), "{of_file:#?}");
    }
    let file = rig.dir.path().join("empty.json");
    std::fs::write(&file, "{}").unwrap();
    let wrong = rig.run(&["forecast", "worker-1", "--from", file.to_str().unwrap()]);
    assert_eq!(wrong.code, Some(3), "{wrong:#?}");
    let unknown = rig.dir.path().join("list.json");
    let unknown = rig.run(&["forecast", "worker-9", "--from", unknown.to_str().unwrap()]);
    assert_eq!(unknown.code, Some(4), "{unknown:#?}");
}

/// Pods that were terminating when the file was saved are not overdue because it is read later.
#[test]
fn a_file_is_played_from_the_moment_it_was_saved() {
    let rig = Rig::new();
    let at = |seconds: i64| (jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds)).to_string();
    let mut node = with_version(rig.node("worker-1"));
    node["metadata"]["creationTimestamp"] = json!(at(9000));
    let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": at(3610)});
    node["status"]["conditions"] = json!([ready]);
    let mut pod = with_version(rig.pod("web", "worker-1").into());
    let metadata = json!({"creationTimestamp": at(8000), "deletionTimestamp": at(3600),
        "deletionGracePeriodSeconds": 30});
    let fields = pod["metadata"].as_object_mut().unwrap();
    fields.extend(metadata.as_object().unwrap().clone());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [node, pod]});
    let file = rig.dir.path().join("list.json");
    std::fs::write(&file, list.to_string()).unwrap();
    let forecast = rig.run(&["forecast", "worker-1", "--from", file.to_str().unwrap()]);
    assert_eq!(forecast.code, Some(0), "{forecast:#?}");
    assert!(forecast.stdout.contains("  end      p50 "), "{forecast:#?}");
    assert!(!forecast.stdout.contains("  stays "), "{forecast:#?}");
}

/// Lists of an API server have it once, for all items.
fn with_version(mut object: Value) -> Value {
    let spec = &object["spec"];
    let kind = if spec["nodeName"].is_string() {
        "Pod"
    } else if spec["selector"].is_object() {
        "Service"
    } else {
        "Node"
    };
    object["apiVersion"] = json!("v1");
    object["kind"] = json!(kind);
    object
}
