//! The policies of NVSentinel's world together: what one keeps, the others neither wait for nor ask.

use crate::program::policy;
use crate::scenarios::component;

/// Pods that one policy protects and another would evict earlier. When the others leave depends on the order: `priority` makes
/// waves behind those that are there.
const PROTECTED: &str = r#"
pods:
  - shop/cart
  - {name: reports/daily, controller: Job/daily}
  - {name: batch/train, controller: Job/train}
  - {name: batch/plain}
  - {name: dev/build, controller: Job/build}
  - {name: long/fit-0, controller: Job/fit, labels: {example.com/gang: "true"}}
  - {name: long/fit-1, controller: Job/fit, labels: {example.com/gang: "true"}}
plan:
  evict: [shop/cart, batch/train, batch/plain, dev/build, long/fit-0, long/fit-1]
  await-completion: [reports/daily]
steps:
  - pass: 9m
  - expect: {here: [reports/daily, batch/train, batch/plain, dev/build, long/fit-0, long/fit-1]}
  - pass: 3h
  - expect: {gone: [batch/plain], here: [reports/daily, batch/train, dev/build, long/fit-0, long/fit-1]}
  - pass: 2h
  - expect: {gone: [batch/train, dev/build], here: [reports/daily, long/fit-0, long/fit-1]}
  - pass: 4h
  - expect: {gone: [long/fit-0, long/fit-1], here: [reports/daily]}
  - pod: {name: reports/daily, phase: Succeeded}
ends: {outcome: Drained, within: 12h}
"#;

const CHAIN: &str = r#"
about: A reset of one GPU with all three policies
policies:
  - name: gpu
    module: GPU
    grants: {facts: [request, resources]}
  - name: namespace-modes
    module: MODES
    config: {rules: batch AllowCompletion 10m}
  - name: jobs
    config: {checkpoints: checkpoint.example.com/, cap: 4h}
    grants: {facts: [owners], pod-annotations: [checkpoint.example.com/]}
drain-requests:
  - checkName: GpuXidError
    recommendedAction: COMPONENT_RESET
    entitiesImpacted: [{type: GPU_UUID, value: GPU-1}]
pods:
  - {name: ml/train, annotations: {DEVICES: GPU-1, checkpoint.example.com/supported: 5m}}
  - {name: ml/kept, annotations: {DEVICES: GPU-2, checkpoint.example.com/supported: 5m}}
  - {name: batch/report, annotations: {DEVICES: GPU-1}}
  - {name: batch/kept, annotations: {DEVICES: GPU-2}}
  - {name: ci/build, controller: Job/build, annotations: {DEVICES: GPU-1}}
  - {name: ci/kept, controller: Job/kept, annotations: {DEVICES: GPU-2}}
plan:
  keep: [ml/kept, batch/kept, ci/kept]
  waves:
    - {name: jobs-after-5m, pods: [ml/train]}
    - {name: namespaces-after-10m, pods: [batch/report]}
    - {name: jobs-after-4h, pods: [ci/build]}
steps:
  - expect:
      hook: before-drain
      done: true
      pods:
        ml/train: {annotations: {checkpoint.example.com/requested: uid-of-maintenance}}
        ml/kept: {annotations: {checkpoint.example.com/requested: null}}
  - pod: {name: ml/train, annotations: {DEVICES: GPU-1, checkpoint.example.com/done: uid-of-maintenance}}
  - pass: 1m
  - expect: {gone: [ml/train], here: [batch/report, ci/build]}
  - pod: {name: batch/report, phase: Succeeded}
  - pass: 1m
  - expect: {gone: [batch/report], here: [ci/build]}
  - pod: {name: ci/build, phase: Succeeded}
ends: {outcome: Drained, within: 3m}
"#;

/// The orders that the READMEs recommend, and others: only the order of the names differs.
#[test]
fn no_order_of_the_policies_loosens_what_one_of_them_decides() {
    let policies = [
        ("priority", "{}", "{}"),
        (
            "namespace-modes",
            "{rules: 'reports AllowCompletion, batch AllowCompletion 10m, long AllowCompletion 8h, dev DeleteAfterTimeout 2m'}",
            "{}",
        ),
        ("jobs", "{cap: 4h}", "{facts: [owners]}"),
        (
            "gangs",
            "{controllers: example.com/gang=true}",
            "{facts: [peers]}",
        ),
    ];
    let built = policies.map(|(name, ..)| component(&format!("plugins/{name}")));
    let policy_at = |at: usize| {
        let (name, config, grants) = policies[at];
        let module = &built[at];
        format!("  - {{name: {name}, module: \"{module}\", config: {config}, grants: {grants}}}\n")
    };
    for order in [
        [0, 1, 2, 3],
        [0, 2, 1, 3],
        [2, 1, 0, 3],
        [3, 2, 1, 0],
        [1, 3, 2, 0],
        [3, 0, 1, 2],
    ] {
        let chain: String = order.into_iter().map(policy_at).collect();
        let folder = tempfile::tempdir().unwrap();
        let text = format!("about: Each order protects as well\npolicies:\n{chain}{PROTECTED}");
        std::fs::write(folder.path().join("chain.yaml"), text).unwrap();
        let reported = policy(folder.path(), &["test", "chain.yaml"]);
        assert!(
            reported.stdout.ends_with("1 scenario: 1 ok, 0 failed\n"),
            "{order:?}: {reported:#?}"
        );
    }
}

/// Pods that answer a request for a checkpoint, in a namespace whose rule gives them five minutes, and one that the drain
/// only awaits.
const ANSWERED: &str = r#"
pods:
  - shop/cart
  - {name: ml/long, annotations: {checkpoint.example.com/supported: 6m}}
  - {name: ml/short, annotations: {checkpoint.example.com/supported: 3m}}
  - {name: ci/build, controller: Job/build}
  - {name: reports/daily}
plan:
  evict: [shop/cart, ml/long, ml/short, ci/build]
  await-completion: [reports/daily]
  waves:
    - {name: all, pods: [shop/cart]}
    - {name: jobs-after-3m+namespaces-after-5m, pods: [ml/short]}
    - {name: namespaces-after-5m+jobs-after-6m, pods: [ml/long]}
    - {name: jobs-after-4h, pods: [ci/build]}
    - {name: completion, pods: [reports/daily]}
steps:
  - pass: 1m
  - pod: {name: ml/long, annotations: {checkpoint.example.com/done: uid-of-maintenance}}
  - pod: {name: ml/short, annotations: {checkpoint.example.com/done: uid-of-maintenance}}
  - pass: 210s
  - expect: {gone: [shop/cart], here: [ml/long, ml/short, ci/build]}
  - pass: 40s
  - expect: {gone: [ml/long, ml/short], here: [ci/build]}
  - pod: {name: ci/build, phase: Succeeded}
  - pass: 10s
  - expect: {gone: [ci/build], here: [reports/daily]}
  - pod: {name: reports/daily, phase: Succeeded}
ends: {outcome: Drained, within: 7m}
"#;

#[test]
fn a_pod_that_two_policies_hold_leaves_when_both_let_it_and_waits_for_none_that_is_only_awaited() {
    let [modes, jobs] = ["namespace-modes", "jobs"].map(|name| component(&format!("plugins/{name}")));
    let modes = format!(
        "  - {{name: namespace-modes, module: \"{modes}\", config: {{rules: 'ml AllowCompletion 5m, reports AllowCompletion'}}}}\n"
    );
    let jobs = format!(
        "  - {{name: jobs, module: \"{jobs}\", config: {{checkpoints: checkpoint.example.com/}}, \
         grants: {{facts: [owners], pod-annotations: [checkpoint.example.com/]}}}}\n"
    );
    for chain in [format!("{modes}{jobs}"), format!("{jobs}{modes}")] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("about: Both policies hold a pod\npolicies:\n{chain}{ANSWERED}");
        std::fs::write(folder.path().join("chain.yaml"), text).unwrap();
        let reported = policy(folder.path(), &["test", "chain.yaml"]);
        assert!(
            reported.stdout.ends_with("1 scenario: 1 ok, 0 failed\n"),
            "{chain}: {reported:#?}"
        );
    }
}

#[test]
fn a_pod_that_one_policy_keeps_holds_no_wave_of_the_others() {
    let [gpu, modes, jobs] =
        ["gpu", "namespace-modes", "jobs"].map(|name| component(&format!("plugins/{name}")));
    let reported = play(&gpu, &modes, &jobs);
    assert!(reported.ends_with("1 scenario: 1 ok, 0 failed\n"), "{reported}");
}

fn play(gpu: &str, modes: &str, jobs: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    // As NVSentinel's annotation names devices.
    let devices = |gpu: &str| {
        let value = format!(r#"'{{"devices": {{"nvidia.com/gpu": ["{gpu}"]}}}}'"#);
        format!("dgxc.nvidia.com/devices: {value}")
    };
    let text = CHAIN.replace("module: GPU", &format!("module: \"{gpu}\""));
    let text = text.replace("MODES", &format!("\"{modes}\""));
    let text = text
        .replace("DEVICES: GPU-1", &devices("GPU-1"))
        .replace("DEVICES: GPU-2", &devices("GPU-2"));
    std::fs::write(folder.path().join("chain.yaml"), text).unwrap();
    let reported = policy(folder.path(), &["test", "chain.yaml", "--policy", jobs]);
    format!("{}{}", reported.stdout, reported.stderr)
}
