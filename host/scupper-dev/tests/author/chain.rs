//! The policies of NVSentinel's world together: what one keeps, the others neither wait for nor ask.

use crate::program::policy;
use crate::scenarios::component;

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
    - {name: jobs after 5m, pods: [ml/train]}
    - {name: namespaces after 10m, pods: [batch/report]}
    - {name: jobs after 4h, pods: [ci/build]}
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
