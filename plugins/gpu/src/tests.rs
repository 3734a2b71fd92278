//! Tests the policy without wasm and without a cluster.

use scupper_sdk::{
    Pod, PodPhase, Policy, Verdict,
    facts::{DeviceSource, DrainRequest, PodName, Resources},
    testing::{Host, Planned, drain_request, pod, resources},
};

use super::Gpu;

const KEEP: Option<Verdict> = Some(Verdict::Keep);
const EVICT: Option<Verdict> = Some(Verdict::Evict);
const REFUSE: Option<Verdict> = Some(Verdict::Refuse);

/// A request that names these GPUs by their UUIDs.
fn reset(gpus: &[&str]) -> DrainRequest {
    let request = drain_request("reset", "COMPONENT_RESET");
    gpus.iter()
        .fold(request, |request, gpu| request.with_entity("GPU_UUID", gpu))
}

/// As NVSentinel's annotation names it.
fn with(gpus: &[&str]) -> Resources {
    let requested = resources().with_request("nvidia.com/gpu", gpus.len() as u64);
    gpus.iter()
        .fold(requested, |it, gpu| it.with_device("nvidia.com/gpu", gpu))
}

fn claims(driver: &str, name: &str, attributes: &[(&str, &str)]) -> Resources {
    resources().with_claimed("gpu", driver, name, attributes)
}

fn host(requests: impl IntoIterator<Item = DrainRequest>, pods: &[(&str, Resources)]) -> Host {
    let host = Host::new();
    host.config("trusted-annotations", "example.com/devices");
    host.drain_requests(requests);
    host.pods(pods.iter().map(|(name, _)| pod(name)));
    for (name, resources) in pods {
        host.resources(name, resources.clone());
    }
    host
}

fn plan(host: &Host) -> Planned {
    host.plan::<Gpu>().unwrap()
}

/// The verdict on a pod with this, if `named` is to be reset.
fn verdict(named: DrainRequest, has: Resources) -> Option<Verdict> {
    plan(&host([named], &[("ml/a", has)])).verdict("ml/a")
}

#[test]
fn only_the_pods_of_the_named_gpu_leave() {
    let host = host(
        [reset(&["GPU-1"])],
        &[
            ("ml/one", with(&["GPU-1"])),
            ("ml/two", with(&["GPU-2"])),
            ("ml/both", with(&["GPU-2", "GPU-1"])),
            ("shop/cart", resources().with_request("cpu", 500)),
        ],
    );
    let plan = plan(&host);
    assert_eq!(plan.waves(), ["all: ml/one ml/both"]);
    for name in ["ml/two", "shop/cart"] {
        assert_eq!(plan.verdict(name), KEEP);
        assert_eq!(plan.reason(name), Some("holds none of the GPUs to drain: GPU-1"));
    }
    assert!(plan.reason("ml/one").unwrap().starts_with("holds GPU-1; "));
}

#[test]
fn a_drain_that_names_no_gpu_is_untouched() {
    let nic = drain_request("nic", "COMPONENT_RESET").with_entity("NIC", "mlx5_0");
    let reboot = drain_request("reboot", "RESTART_BM").with_entity("GPU_UUID", "GPU-1");
    let actionless = drain_request("odd", "").with_entity("GPU_UUID", "GPU-1");
    let all = [
        vec![],
        vec![nic.clone()],
        vec![reboot],
        vec![actionless],
        vec![reset(&["GPU-1"]), nic],
    ];
    for requests in all {
        let host = host(
            requests,
            &[("ml/one", with(&["GPU-1"])), ("shop/cart", resources())],
        );
        let before = host.plan::<Untouched>().unwrap();
        assert_eq!(plan(&host).plan(), before.plan());
    }
}

struct Untouched;

impl Policy for Untouched {
    fn describe() -> scupper_sdk::Description {
        scupper_sdk::description!("Changes nothing")
    }
}

impl scupper_sdk::Planner for Untouched {
    fn plan(
        _: &scupper_sdk::Drain,
        _: &scupper_sdk::Node,
        _: &mut scupper_sdk::Draft<'_>,
    ) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn all_requests_of_a_drain_count() {
    let pods = [
        ("ml/one", with(&["GPU-1"])),
        ("ml/two", with(&["GPU-2"])),
        ("ml/three", with(&["GPU-3"])),
    ];
    let host = host([reset(&["GPU-2"]), reset(&["GPU-1", "GPU-2"])], &pods);
    let plan = plan(&host);
    assert_eq!(plan.waves(), ["all: ml/one ml/two"]);
    assert_eq!(
        plan.reason("ml/three"),
        Some("holds none of the GPUs to drain: GPU-1, GPU-2")
    );
}

#[test]
fn devices_are_found_by_annotation_by_claim_and_as_parts() {
    for (has, expected) in [
        (with(&["GPU-1::3"]), EVICT),
        (with(&["GPU-12"]), KEEP),
        (resources().with_device("NVIDIA", "GPU-1"), EVICT),
        (claims("gpu.nvidia.com", "gpu-0", &[("uuid", "GPU-1")]), EVICT),
        (claims("gpu.nvidia.com", "gpu-0", &[("uuid", "GPU-2")]), KEEP),
        (claims("nic.example.com", "nic-0", &[("uuid", "GPU-1")]), KEEP),
        (
            claims(
                "gpu.nvidia.com",
                "gpu-0-mig-1",
                &[("uuid", "MIG-7"), ("parentUUID", "GPU-1")],
            ),
            EVICT,
        ),
        (
            claims(
                "gpu.nvidia.com",
                "gpu-0-mig-1",
                &[("uuid", "MIG-7"), ("parentUUID", "GPU-2")],
            ),
            KEEP,
        ),
        // Which GPU the part is of is not known.
        (
            claims("gpu.nvidia.com", "gpu-0-mig-1", &[("uuid", "MIG-7")]),
            REFUSE,
        ),
        (with(&["MIG-7"]), REFUSE),
    ] {
        assert_eq!(verdict(reset(&["GPU-1"]), has.clone()), expected, "{has:?}");
    }
    let mut watched = with(&[]).with_device("nvidia.com/gpu", "GPU-1");
    watched.devices[0].admin_access = true;
    assert_eq!(verdict(reset(&["GPU-1"]), watched), KEEP);
}

#[test]
fn an_index_needs_a_device_with_an_index() {
    let by_index = || drain_request("reset", "COMPONENT_RESET").with_entity("GPU", "1");
    for (has, expected) in [
        (claims("gpu.nvidia.com", "gpu-5", &[("index", "1")]), EVICT),
        (
            claims("gpu.nvidia.com", "gpu-1", &[("index", "0"), ("minor", "1")]),
            KEEP,
        ),
        (
            claims(
                "gpu.nvidia.com",
                "gpu-0-mig-1",
                &[("index", "1"), ("parentIndex", "0")],
            ),
            KEEP,
        ),
        (with(&["GPU-1"]), REFUSE),
        (resources(), KEEP),
    ] {
        assert_eq!(verdict(by_index(), has.clone()), expected, "{has:?}");
    }
    // NVSentinel names one GPU in several ways; the UUID is the most exact.
    let both = by_index()
        .with_entity("PCI", "0000:0f:00")
        .with_entity("GPU_UUID", "GPU-7");
    assert_eq!(verdict(both.clone(), with(&["GPU-7"])), EVICT);
    assert_eq!(verdict(both, with(&["GPU-1"])), KEEP);
    // An entity without a value.
    let odd = drain_request("odd", "COMPONENT_RESET").with_entity("GPU_UUID", "");
    assert_eq!(verdict(odd, with(&["GPU-1"])), REFUSE);
}

#[test]
fn a_pod_with_unknown_gpus_is_refused_or_widens_the_drain_or_stays() {
    let unknown = || {
        resources()
            .with_request("nvidia.com/gpu", 2)
            .with_device("nvidia.com/gpu", "GPU-2")
    };
    let pods = [
        ("ml/one", with(&["GPU-1"])),
        ("ml/unknown", unknown()),
        ("shop/cart", resources()),
    ];
    let count = "requests 2 GPUs, but its ResourceClaims and trusted annotations name 1";
    for (unmapped, expected, waves, reason) in [
        (
            "refuse",
            [EVICT, REFUSE, KEEP],
            "all: ml/one",
            "; it may hold GPU-1",
        ),
        (
            "whole-node",
            [EVICT, EVICT, EVICT],
            "all: ml/one ml/unknown shop/cart",
            ", so the whole node is drained; ",
        ),
        (
            "keep",
            [EVICT, KEEP, KEEP],
            "all: ml/one",
            "; it stays although it may hold GPU-1",
        ),
    ] {
        let host = host([reset(&["GPU-1"])], &pods);
        host.config("unmapped", unmapped);
        let plan = plan(&host);
        let verdicts = ["ml/one", "ml/unknown", "shop/cart"].map(|name| plan.verdict(name));
        assert_eq!(verdicts, expected, "{unmapped}");
        assert_eq!(plan.waves(), [waves], "{unmapped}");
        let why = plan.reason("ml/unknown").unwrap();
        assert!(why.starts_with(&format!("{count}{reason}")), "{why}");
        assert_eq!(host.log().len(), usize::from(unmapped == "whole-node"));
    }
    let mut later = resources();
    later.unallocated_claims.push("gpu".to_owned());
    assert_eq!(verdict(reset(&["GPU-1"]), later), REFUSE);
}

#[test]
fn a_pod_that_has_it_leaves_even_if_its_other_gpus_are_unknown_and_a_finished_one_has_none() {
    let partly = resources()
        .with_request("nvidia.com/gpu", 2)
        .with_device("nvidia.com/gpu", "GPU-1");
    assert_eq!(verdict(reset(&["GPU-1"]), partly), EVICT);
    let finished = Pod {
        phase: PodPhase::Succeeded,
        ..pod("ml/a")
    };
    let host = host([reset(&["GPU-1"])], &[("ml/a", with(&["GPU-1"]))]);
    host.pods([finished.clone()]);
    assert_eq!(plan(&host).verdict("ml/a"), KEEP);
    // A request that names the pod itself is done only when it is gone.
    let mut naming = reset(&["GPU-1"]);
    naming.pods_to_drain = ["a", "b"]
        .map(|name| PodName {
            namespace: "ml".to_owned(),
            name: name.to_owned(),
        })
        .into();
    host.drain_requests([naming]);
    host.pods([finished, pod("ml/b")]);
    let plan = plan(&host);
    assert_eq!([plan.verdict("ml/a"), plan.verdict("ml/b")], [EVICT, KEEP]);
}

/// The claim says nothing of the GPU that a device plugin gave.
#[test]
fn what_a_claim_or_a_second_annotation_names_pays_for_no_other_requested_gpu() {
    let other = |it: Resources| it.with_claimed("gpu", "gpu.nvidia.com", "gpu-5", &[("uuid", "GPU-2")]);
    let requests = |count| resources().with_request("nvidia.com/gpu", count);
    let twice = |it: Resources| {
        let mut it = it
            .with_device("nvidia.com/gpu", "GPU-2")
            .with_device("nvidia.com/gpu", "GPU-2");
        it.devices[1].source = DeviceSource::Annotation("example.com/others".to_owned());
        it
    };
    let of_two_containers = requests(2)
        .with_device("nvidia.com/gpu", "GPU-2")
        .with_device("nvidia.com/gpu", "GPU-2");
    let extended = |it: Resources| it.with_extended_claim("gpu.nvidia.com", "gpu-5", &[("uuid", "GPU-2")]);
    for (has, expected) in [
        (other(requests(1)), REFUSE),
        (other(with(&["GPU-3"])), KEEP),
        // The annotation names what the claim is for.
        (other(with(&["GPU-2"])), REFUSE),
        (extended(requests(1)), KEEP),
        (extended(requests(2)), REFUSE),
        (twice(requests(1)), KEEP),
        (twice(requests(2)), REFUSE),
        (of_two_containers, KEEP),
    ] {
        let host = host([reset(&["GPU-1"])], &[("ml/a", has.clone())]);
        host.config("trusted-annotations", "example.com/*");
        assert_eq!(plan(&host).verdict("ml/a"), expected, "{has:?}");
    }
    let plan = plan(&host([reset(&["GPU-1"])], &[("ml/a", other(requests(1)))]));
    assert_eq!(
        plan.reason("ml/a"),
        Some(
            "requests 1 GPU beside its ResourceClaims, but its trusted annotations name 0; it may hold GPU-1"
        )
    );
}

#[test]
fn other_resources_and_actions_are_a_matter_of_configuration() {
    let host = host(
        [drain_request("odd", "RUN_FIELDDIAG").with_entity("CARD", "GPU-1")],
        &[
            (
                "ml/one",
                resources()
                    .with_request("example.com/card", 1)
                    .with_device("example.com/card", "GPU-1"),
            ),
            ("ml/two", with(&["GPU-1"])),
        ],
    );
    host.config("actions", "RUN_*, COMPONENT_RESET");
    host.config("entities", "CARD");
    host.config("gpus", "example.com/*");
    assert_eq!(plan(&host).waves(), ["all: ml/one"]);
}

#[test]
fn no_plan_is_made_without_answers() {
    let host = host([reset(&["GPU-1"])], &[("ml/one", with(&["GPU-1"]))]);
    host.outage(Some("the API server restarts"));
    assert!(host.plan::<Gpu>().is_err());
}

#[test]
fn wrong_settings_are_problems() {
    let host = Host::new();
    assert_eq!(Gpu::check_config(), []);
    host.config("unmapped", "ignore");
    host.config("gpu", "x");
    let problems = Gpu::check_config();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["gpu", "unmapped"]);
    assert_eq!(
        problems[1].message,
        "`ignore`: must be refuse or whole-node or keep"
    );
}

/// A tenant may write annotations of its own pods: they make a pod leave, and never stay.
#[test]
fn an_annotation_that_is_not_trusted_keeps_no_pod() {
    let claimed = claims("gpu.nvidia.com", "gpu-2", &[("uuid", "GPU-2")]);
    for (has, expected) in [
        (with(&["GPU-2"]), REFUSE),
        (with(&["GPU-1"]), EVICT),
        (claimed.clone(), KEEP),
        (claimed.with_device("nvidia.com/gpu", "GPU-1"), EVICT),
        // Without a request and without a claim it has no GPU, whatever its annotation says.
        (resources().with_device("nvidia.com/gpu", "GPU-2"), KEEP),
    ] {
        let host = host([reset(&["GPU-1"])], &[("ml/a", has.clone())]);
        host.config("trusted-annotations", "");
        assert_eq!(plan(&host).verdict("ml/a"), expected, "{has:?}");
    }
    let host = host([reset(&["GPU-1"])], &[("ml/a", with(&["GPU-2"]))]);
    host.config("trusted-annotations", "dgxc.nvidia.com/*");
    assert_eq!(
        plan(&host).reason("ml/a"),
        Some(
            "requests 1 GPU, but its ResourceClaims and trusted annotations name 0 (example.com/devices is not in \
             trusted-annotations); it may hold GPU-1"
        )
    );
}
