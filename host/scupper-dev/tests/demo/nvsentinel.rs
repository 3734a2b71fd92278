//! `make demo-nvsentinel`: only the pods of the GPU that failed leave, each as its namespace says; then the whole node.

use serde_json::Value;

use crate::{built, narrated, play};

/// Those of the demo's configuration.
const POLICIES: [&str; 3] = ["gpu", "namespace-modes", "jobs"];

fn folder() -> String {
    let policy = built(&POLICIES);
    policy.parent().unwrap().to_str().unwrap().to_owned()
}

/// The pods of the node, as the demo lists them.
fn pods(listed: &str) -> Vec<&str> {
    let lines = listed.lines().skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn make_builds_the_policies_of_the_demo() {
    let makefile = include_str!("../../../../Makefile");
    let (_, recipe) = makefile.split_once("\ndemo-nvsentinel:").unwrap();
    let (_, built) = recipe.split_once("$(call demo_programs,").unwrap();
    let (built, _) = built.split_once(')').unwrap();
    assert_eq!(built.split_whitespace().collect::<Vec<_>>(), POLICIES);
}

#[test]
fn the_pods_of_one_gpu_leave_and_then_those_of_the_node() {
    let text = play(&["--nvsentinel", &folder()]);
    let scenes: Vec<_> = text.split("$ kubectl get pods -A").collect();
    let [_, before, after_gpu, after_all] = scenes[..] else {
        panic!("{text}")
    };
    let others = [
        "gpu-operator/device-plugin-x7k2p",
        "research/finetune-0",
        "serving/chat-0",
        "web/dashboard-0",
    ];
    assert_eq!(pods(before).len(), 7, "{text}");
    assert_eq!(pods(after_gpu), others, "{text}");
    assert_eq!(pods(after_all), others[..1], "{text}");

    // In this order: evicted at once, deleted after its time, waited for.
    let at = |what: &str| {
        before
            .find(what)
            .unwrap_or_else(|| panic!("{what} is missing in\n{before}"))
    };
    let order = [
        "gone     serving/search-0",
        "gone     notebooks/alice-0",
        "(training/pretrain-0 has finished)",
    ];
    assert!(order.map(at).is_sorted(), "{before}");
    assert!(at("gone     training/pretrain-0") > at(order[2]), "{before}");
    // A deletion, which no budget stops; the evictions are those of the other two pods.
    let requests = before
        .lines()
        .find(|line| line.contains("API requests of the driver"))
        .unwrap();
    for counted in ["2 create pods/eviction", "1 delete pods"] {
        assert!(requests.contains(counted), "{requests}");
    }
    for ended in [
        "DrainComplete    True   Drained: ",
        "DrainInProgress  False  Drained: ",
    ] {
        assert_eq!(text.matches(ended).count(), 2, "{text}");
    }
    assert!(
        before.contains("(DrainDeferred=True: namespace-modes"),
        "{before}"
    );
    // A pod that stays is asked for nothing.
    assert!(!before.contains("finetune-0 is asked"), "{before}");
    let order = [
        "(research/finetune-0 is asked for a checkpoint)",
        "(DrainDeferred=True: jobs",
        "(research/finetune-0 has saved a checkpoint)",
        "gone     research/finetune-0",
    ];
    let places = order.map(|what| after_gpu.find(what));
    assert!(
        places[0].is_some() && places.is_sorted(),
        "{places:?} {after_gpu}"
    );
    // Only if a driver takes two seconds to begin.
    let is_slow = |line: &&str| line.contains("waits for another drain of the node");
    let others: Vec<_> = text.lines().filter(|line| !is_slow(line)).collect();
    narrated("demo-nvsentinel", &others.join("\n"));
}

#[test]
fn programs_get_one_object_in_each_line() {
    let text = play(&["--nvsentinel", &folder(), "--output", "json"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.len() > 10, "{text}");
    assert_eq!(text.matches("Drained").count(), 2, "{text}");
}
