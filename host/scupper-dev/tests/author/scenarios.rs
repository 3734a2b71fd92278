//! Scenarios: those of the repository's own policies, and the reports about unexpected results.

use std::path::Path;

use xtask::policies;
use xtask::workspace::Workspace;

use crate::guests::guest;
use crate::program::{policy, repository};

#[test]
fn the_scenarios_of_our_policies_are_played() {
    let root = repository();
    let mut crates: Vec<String> = Vec::new();
    for folder in ["plugins", "examples/policies"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.join("scenarios").is_dir() && path.join("Cargo.toml").is_file() {
                crates.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let plugins = policies::of_image(&Workspace::read().unwrap());
    let examples = ["keep-labelled", "announce", "ask-before-drain"].map(str::to_owned);
    for name in plugins.iter().chain(&examples) {
        assert!(
            crates.iter().any(|path| path.ends_with(name)),
            "{name} has no scenarios"
        );
    }
    let args: Vec<&str> = ["test"]
        .into_iter()
        .chain(crates.iter().map(String::as_str))
        .collect();
    let reported = policy(&root, &args);
    assert!(reported.good().ends_with(" 0 failed\n"), "{reported:#?}");
}

/// The component of a policy of the repository.
pub(crate) fn component(folder: &str) -> String {
    let built = policy(&repository().join(folder), &["--output", "json", "build"]);
    let built: serde_json::Value = serde_json::from_str(built.good()).unwrap();
    built.get("file").unwrap().as_str().unwrap().to_owned()
}

/// Runs one scenario about `keep-labelled`.
fn played(text: &str) -> (i32, String) {
    played_with("keep-labelled", text)
}

/// Runs one scenario about a policy of the examples.
fn played_with(example: &str, text: &str) -> (i32, String) {
    let module = component(&format!("examples/policies/{example}"));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("it.yaml"), text).unwrap();
    let reported = policy(dir.path(), &["test", "it.yaml", "--policy", &module]);
    (
        reported.code.unwrap(),
        format!("{}{}", reported.stdout, reported.stderr),
    )
}

#[test]
fn a_chain_runs_in_order_and_each_planner_gets_the_previous_plan() {
    let priority = component("plugins/priority");
    let chain = |policies: &str| {
        played(&format!(
            "about: One sorts, the other keeps\n\
             policies:\n{policies}\
             pods:\n\
             - shop/cart\n\
             - {{name: shop/db, labels: {{example.com/keep: \"\"}}}}\n\
             - {{name: kube-system/dns, priority: 2000000000}}\n\
             plan:\n  \
               keep: [shop/db]\n  \
               waves:\n  \
               - {{name: priority-0, pods: [shop/cart]}}\n  \
               - {{name: priority-2000000000, pods: [kube-system/dns]}}\n  \
               reasons: {{shop/db: it has the label example.com/keep}}\n\
             ends: Drained\n"
        ))
    };
    // The policy under test is the one without a module; its name may differ from its file's.
    let sorts = format!("- {{name: sorts, module: \"{priority}\"}}\n");
    for policies in [
        format!("{sorts}- {{name: keeps}}\n"),
        format!("- {{name: keeps}}\n{sorts}"),
    ] {
        let (code, reported) = chain(&policies);
        assert_eq!(code, 0, "{reported}");
    }
    // Each policy has its part in the plan: without the first nothing is sorted.
    let (code, reported) = chain("- {name: keeps}\n");
    assert_eq!(code, 7, "{reported}");
    assert!(reported.contains("+ all: "), "{reported}");
    // The configuration of a policy in the middle of a chain is also checked.
    let wrong = format!("- {{name: sorts, module: \"{priority}\", config: {{groups: many}}}}\n- {{}}\n");
    let (code, reported) = chain(&wrong);
    assert_eq!(code, 3, "{reported}");
    assert!(
        reported.contains("sorts") && reported.contains("`groups`"),
        "{reported}"
    );
}

#[test]
fn a_gang_leaves_in_the_last_wave_that_other_policies_gave_one_of_its_pods() {
    let [modes, jobs, gangs] =
        ["namespace-modes", "jobs", "gangs"].map(|name| component(&format!("plugins/{name}")));
    let text = format!(
        "about: A gang of which one pod is a job's, and one in a namespace with a time\n\
         policies:\n\
         - {{name: modes, module: \"{modes}\", config: {{rules: dev AllowCompletion 5m}}}}\n\
         - {{name: jobs, module: \"{jobs}\", config: {{kinds: Job, cap: 10m}}, grants: {{facts: [owners]}}}}\n\
         - {{name: gangs, grants: {{facts: [peers]}}}}\n\
         pods:\n\
         - shop/cart\n\
         - {{name: dev/notebook}}\n\
         - {{name: ml/leader, scheduling-group: bert}}\n\
         - {{name: ml/worker, controller: Job/bert, scheduling-group: bert}}\n\
         plan:\n  \
           waves:\n  \
           - {{name: all, pods: [shop/cart]}}\n  \
           - {{name: namespaces-after-5m, pods: [dev/notebook]}}\n  \
           - {{name: jobs-after-10m, pods: [ml/leader, ml/worker]}}\n  \
           reasons: {{ml/leader: \"gang bert of 2 pods here; *\", ml/worker: \"gang bert of 2 pods here; *\"}}\n\
         steps:\n\
         - pass: 6m\n\
         - expect: {{gone: [shop/cart, dev/notebook], here: [ml/leader, ml/worker]}}\n\
         ends: {{outcome: Drained, within: 11m}}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("it.yaml"), text).unwrap();
    let reported = policy(dir.path(), &["test", "it.yaml", "--policy", &gangs]);
    assert_eq!(reported.code, Some(0), "{reported:#?}");
}

#[test]
fn an_unexpected_plan_is_reported_with_its_line_and_both_sides() {
    let (code, reported) = played(
        "about: The wrong way round\n\
         pods:\n\
         - {name: shop/db, labels: {example.com/keep: \"\"}}\n\
         - shop/cart\n\
         plan:\n  \
           evict: [shop/db]\n  \
           waves: [{name: all, pods: [shop/cart]}]\n  \
           reasons: {shop/db: because}\n",
    );
    assert_eq!(code, 7, "{reported}");
    for line in [
        "FAILED  it.yaml  The wrong way round",
        "  it.yaml:6: evict\n    - shop/db\n    + shop/cart\n",
        "  it.yaml:6: the reason of shop/db\n    - because\n    + it has the label example.com/keep\n",
        "1 scenario: 0 ok, 1 failed\n",
    ] {
        assert!(reported.contains(line), "no `{line}` in {reported}");
    }
    assert!(!reported.contains("waves"), "{reported}");
}

#[test]
fn an_unexpected_drain_is_reported_with_its_history() {
    let (code, reported) = played(
        "pods: [shop/cart]\n\
         budgets: [{name: shop/all, allowed: 0}]\n\
         drain: {sla: 1m}\n\
         steps:\n\
         - pass: 10s\n\
         - expect: {gone: [shop/cart], cordoned: false}\n\
         ends: Drained\n",
    );
    assert_eq!(code, 7, "{reported}");
    assert!(
        reported.contains("  it.yaml:6: the node\n    - not cordoned\n    + cordoned\n"),
        "{reported}"
    );
    assert!(
        reported.contains("  it.yaml:6: shop/cart\n    - gone\n    + here\n"),
        "{reported}"
    );
    assert!(reported.contains("budget all blocks it"), "{reported}");
    let (code, reported) = played(
        "pods: [shop/cart]\nbudgets: [{name: shop/all, allowed: 0}]\ndrain: {sla: 1m}\nends: Drained\n",
    );
    assert_eq!(code, 7, "{reported}");
    assert!(
        reported.contains("  it.yaml:4: the end\n    - Drained\n    + DeadlineExceeded:"),
        "{reported}"
    );
    let (code, reported) = played("pods: [shop/cart]\nsteps:\n- expect: {hook: before-drain, done: true}\n");
    assert_eq!(code, 7, "{reported}");
    assert!(
        reported.contains(
            "  it.yaml:3: before-drain is called\n    - within 24h00m\n    + the drain ended as Drained"
        ),
        "{reported}"
    );
}

#[test]
fn a_pod_with_finalizers_stays_until_they_are_removed_and_pods_of_other_nodes_change_too() {
    let (code, reported) = played(
        "pods:\n\
         - {name: shop/cart, finalizers: [example.com/archive]}\n\
         - {name: shop/job, finalizers: [batch.kubernetes.io/job-tracking]}\n\
         - {name: shop/peer, node: node-2}\n\
         steps:\n\
         - pass: 1m\n\
         - expect: {here: [shop/cart], gone: [shop/job]}\n\
         - pod: {name: shop/peer, ready: false}\n\
         - remove: shop/peer\n\
         - pod: {name: shop/cart, finalizers: []}\n\
         - expect: {gone: [shop/cart]}\n\
         ends: Drained\n",
    );
    assert_eq!(code, 0, "{reported}");
    let (code, reported) = played(
        "pods: [{name: shop/cart, finalizers: [example.com/archive]}]\ndrain: {sla: 5m}\nends: Drained\n",
    );
    assert_eq!(code, 7, "{reported}");
    assert!(
        reported.contains("  it.yaml:3: the end\n    - Drained\n    + DeadlineExceeded:"),
        "{reported}"
    );
    let (code, reported) = played("pods: [shop/cart]\nsteps:\n- remove: shop/peer\n");
    assert_ne!(code, 0, "{reported}");
    assert!(
        reported.contains("line 3: pod shop/peer does not exist"),
        "{reported}"
    );
}

/// The next answer counts, so a hook that has answered before the step seems to be silent.
#[test]
fn a_hook_that_answered_before_the_step_is_reported_with_its_last_answer() {
    let scenario = |steps: &str| {
        played_with(
            "announce",
            &format!(
                "policy: {{grants: {{node-annotations: [example.com/]}}}}\n\
                 pods: [{{name: shop/cart, ends-after: 1h, grace-period: 2h}}]\n\
                 steps:\n{steps}"
            ),
        )
    };
    let (code, reported) = scenario("- pass: 11s\n- expect: {hook: before-drain, within: 1m}\n");
    assert_eq!(code, 7, "{reported}");
    for words in [
        "  it.yaml:5: before-drain is called\n    - within 1m00s\n",
        "; its last answer was before this step, at ",
        ": done\n",
    ] {
        assert!(reported.contains(words), "no `{words}` in {reported}");
    }
    // Another hook has answered nothing.
    let (code, reported) = scenario("- pass: 11s\n- expect: {hook: on-cancel, within: 1m}\n");
    assert_eq!(code, 7, "{reported}");
    assert!(!reported.contains("last answer"), "{reported}");
}

#[test]
fn an_invalid_scenario_is_reported_with_its_place() {
    for (text, words) in [
        ("pods: [shop/cart]\nplans: {}\n", &["line 2", "plans", "plan"][..]),
        ("steps:\n- wait: 10s\n", &["line 2", "wait", "pass"]),
        ("steps:\n- pass: soon\n", &["line 2", "`soon` is not a duration"]),
        (
            "steps:\n- remove: shop/cart\n",
            &["line 2", "pod shop/cart does not exist"],
        ),
        ("pods: [cart]\n", &["`cart` is not of the form namespace/name"]),
        ("policy: {grant: {}}\n", &["policies[0].grant", "grants"]),
        ("cluster: nowhere.yaml\n", &["nowhere.yaml"]),
        ("policy: {config: {a: 1}, sha256: \"00\"}\n", &["sha256"]),
    ] {
        let (code, reported) = played(text);
        assert_eq!(code, 3, "{text}: {reported}");
        for word in words {
            assert!(reported.contains(word), "{text}: no `{word}` in {reported}");
        }
    }
}

#[test]
fn a_folder_without_scenarios_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let reported = policy(dir.path(), &["test"]).ends(3);
    assert!(reported.contains("there are no scenarios in"), "{reported}");
    let reported = policy(Path::new("/"), &["test", "/nowhere"]).ends(3);
    assert!(reported.contains("/nowhere"), "{reported}");
}

/// The guest answers with what it learned.
#[test]
fn scenarios_and_snapshots_say_what_policies_learn_about_the_cluster() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("cluster.yaml"),
        "apiVersion: v1\nkind: List\nitems:\n\
         - {kind: Node, metadata: {name: node-1}}\n\
         - {kind: Namespace, metadata: {name: bank, labels: {team: money}}}\n\
         - {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: cart, uid: \
         uid-of-Deployment-cart, labels: {tier: front}}, spec: {replicas: 3, strategy: {type: Recreate}}, \
         status: {readyReplicas: 2}}\n",
    )
    .unwrap();
    std::fs::write(
        dir.path().join("it.yaml"),
        "about: A policy that asks\n\
         policy:\n  \
           grants: {facts: [request, namespaces, budgets, owners, resources, volumes, peers]}\n  \
           config: {ask: \"request\\nnamespace shop\\nnamespace bank\\nnamespace void\\nbudgets\\nowners\\nresources\\nvolumes\\npeers\"}\n\
         cluster: cluster.yaml\n\
         pods:\n  \
         - name: shop/cart\n    \
             controller: ReplicaSet/cart-1\n    \
             scheduling-group: carts\n    \
             requests: {cpu: 500m, nvidia.com/gpu: 2}\n    \
             annotations: {hami.io/vgpu-devices-allocated: \"GPU-9,NVIDIA,1,1:;\"}\n    \
             resource-claims:\n      \
               gpus: [{driver: gpu.example.com, pool: node-1, name: gpu-0, attributes: {uuid: GPU-0}}]\n      \
               later: []\n    \
             volumes:\n      \
               cache: emptyDir\n      \
               data: {claim: carts, storage-class: fast, access-modes: [ReadWriteOnce], attached-to: [node-1]}\n      \
               disk: {volume: pv-7}\n      \
               soon: {volume: \"\"}\n  \
         - {name: shop/cart-2, node: node-2, scheduling-group: carts, ready: false}\n\
         namespaces: [{name: shop, labels: {team: front}}]\n\
         budgets: [{name: shop/keep, allowed: 0, pods: 1}]\n\
         owners: [{name: shop/ReplicaSet/cart-1, controller: Deployment/cart, replicas: 3}]\n\
         request: {labels: {ticket: \"42\"}}\n\
         ends:\n  \
           outcome: PolicyFailed\n  \
           message: '*test maintenance Some(\"42\"); shop Some(\"front\"); bank Some(\"money\"); not found: there is no \
         namespace void; shop/keep [\"uid-of-shop-cart\"] 1 1 1 0 UnhealthyPodEvictionPolicy::IfHealthyBudget true \
         true; ReplicaSet/cart-1 None Some(3) Some(3) \"\" < Deployment/cart Some(\"front\") Some(3) Some(2) \
         \"Recreate\"; cpu=500, nvidia.com/gpu=2, DeviceSource::Annotation(\"hami.io/vgpu-devices-allocated\") NVIDIA \
         \"\" GPU-9 false None, DeviceSource::ResourceClaim(\"gpus\") gpu.example.com \"node-1\" gpu-0 false \
         Some(\"GPU-0\"), later?; cache emptyDir node-local, data persistentVolumeClaim carts=\"pv-of-carts\" \"csi\" fast \
         ReadWriteOnce [\"node-1\"], disk persistentVolumeClaim disk=\"pv-7\" \"csi\"   [], soon persistentVolumeClaim \
         soon=\"\" \"\"   []; cart-1 *; carts [\"uid-of-shop-cart\"]: cart-2 \"node-2\" PodPhase::Running *'\n",
    )
    .unwrap();
    let guest = guest("asks");
    let reported = policy(
        dir.path(),
        &["test", "it.yaml", "--policy", guest.to_str().unwrap()],
    );
    assert!(reported.good().ends_with(" 0 failed\n"), "{reported:#?}");
}

#[test]
fn a_policy_learns_of_the_drain_requests_of_a_scenario_and_of_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "cluster.yaml",
        "apiVersion: v1\nkind: List\nitems:\n\
         - {kind: Node, metadata: {name: node-1}}\n\
         - kind: DrainRequest\n  \
           metadata: {namespace: nvsentinel, name: open}\n  \
           spec: {nodeName: node-1, entitiesImpacted: [{type: GPU, value: 0}]}\n\
         - kind: DrainRequest\n  \
           metadata: {namespace: nvsentinel, name: old}\n  \
           spec: {nodeName: node-1}\n  \
           status: {conditions: [{type: DrainComplete, status: \"True\"}]}\n\
         - {kind: DrainRequest, metadata: {namespace: nvsentinel, name: other}, spec: {nodeName: node-2}}\n",
    );
    let scenario = |requests: &str, expected: &str| {
        format!(
            "about: A policy that asks\npolicy:\n  \
               grants: {{facts: [request, namespaces, budgets, owners, resources, volumes, peers]}}\n  \
               config: {{ask: \"request\\ndrain-requests\"}}\n\
             cluster: cluster.yaml\n{requests}\
             ends: {{outcome: PolicyFailed, message: '*DrainRequest maintenance None; {expected}'}}\n"
        )
    };
    write(
        "snapshot.yaml",
        &scenario("", "nvsentinel/open * [\"GPU:0\"] [] []"),
    );
    let given =
        "drain-requests: [{checkName: Xid, recommendedAction: COMPONENT_RESET}, {errorCode: [\"48\"]}]\n";
    write(
        "given.yaml",
        &scenario(
            given,
            "nvsentinel/request-1 * Xid [] COMPONENT_RESET *, nvsentinel/request-2 * [\"48\"] *",
        ),
    );
    let guest = guest("asks");
    let guest = guest.to_str().unwrap();
    for name in ["snapshot.yaml", "given.yaml"] {
        let reported = policy(dir.path(), &["test", name, "--policy", guest]);
        assert!(reported.good().ends_with(" 0 failed\n"), "{reported:#?}");
    }
    write("wrong.yaml", &scenario("drain-requests: [{entities: []}]\n", "*"));
    let reported = policy(dir.path(), &["test", "wrong.yaml", "--policy", guest]);
    assert!(
        format!("{}{}", reported.stdout, reported.stderr).contains(
            "drain-requests: a DrainRequest has no field `entities`; it has checkName, entitiesImpacted"
        ),
        "{reported:#?}"
    );
}
