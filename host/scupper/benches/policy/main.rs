//! The cost of policies: a plan natively and through wasm, a hook's step, and loading with and without compiled code.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops at what it did not expect"
)]

mod cluster;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use divan::Bencher;
use scupper_common::clock::Clock;
use scupper_engine::{HookPhase, HookStep, PlanAnswer, Settings, Subject, Time, check, draft};
use scupper_policy::{
    DrainInfo, Network, NoCluster, PlanCall, Policies, Runtime, RuntimeOptions, Secrets, StepCall,
};
use scupper_policy_spec::PolicySpec;
use tempfile::TempDir;

use cluster::{node, pods, slurm_pods};

const SIZES: [usize; 3] = [110, 500, 5_000];
const NOW: Time = Time::from_millis(1_790_000_000_000);

static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
static LOADED: LazyLock<(TempDir, Runtime, Policies)> = LazyLock::new(|| {
    let cache = TempDir::new().unwrap();
    let runtime = runtime(&cache);
    let policies = load(&runtime, &["priority", "slurm"]);
    (cache, runtime, policies)
});

fn main() {
    divan::main();
}

fn runtime(cache: &TempDir) -> Runtime {
    let compiler = PathBuf::from(env!("CARGO_BIN_EXE_scupper"));
    let private = cache.path().join("compiled");
    Runtime::new(RuntimeOptions {
        shipped: None,
        cache: private,
        compiler,
        clock: Clock::System,
        network: Network::default(),
        secrets: Secrets::default(),
    })
    .unwrap()
}

fn load(runtime: &Runtime, names: &[&str]) -> Policies {
    let folder = PathBuf::from(std::env::var("SCUPPER_POLICIES").unwrap());
    let spec = |name: &&str| PolicySpec {
        name: (*name).to_owned(),
        file: folder.join(format!("{name}.wasm")),
        grants: ["node-annotations:nodeset.slinky.slurm.net/".parse().unwrap()].into(),
        ..PolicySpec::default()
    };
    let specs: Vec<_> = names.iter().map(spec).collect();
    TOKIO
        .block_on(Policies::load(
            runtime,
            &specs,
            Arc::new(NoCluster("there is no cluster in a benchmark")),
        ))
        .unwrap()
}

const fn drain() -> DrainInfo<'static> {
    DrainInfo {
        id: "u",
        name: "bench",
        trigger: "bench",
        started: NOW,
        found_drained: false,
        held: false,
        machine_is_off: false,
        deadline: None,
        now: NOW,
        own_pod: None,
        facts: None,
    }
}

/// The host's own draft and its check: the plan of a drain without policies.
#[divan::bench(args = SIZES)]
fn plan_native(bencher: Bencher<'_, '_>, size: usize) {
    let (pods, settings) = (pods(size), Settings::default());
    bencher.bench(|| {
        let plan = draft(&pods, &settings, NOW);
        check(&plan, &pods, &settings).unwrap();
        plan
    });
}

/// The same draft through `priority.wasm`, which sorts it into waves, and the check of the result.
#[divan::bench(args = SIZES)]
fn plan_wasm(bencher: Bencher<'_, '_>, size: usize) {
    let (pods, settings, node) = (pods(size), Settings::default(), node());
    let all: Vec<_> = pods.iter().collect();
    let policies = &LOADED.2;
    bencher.bench(|| {
        let draft = draft(&pods, &settings, NOW);
        let call = PlanCall {
            policy: "priority",
            drain: drain(),
            node: &node,
            pods: &all,
            draft: &draft,
        };
        match TOKIO.block_on(policies.plan(call)) {
            PlanAnswer::Plan(plan) => check(&plan, &pods, &settings).unwrap(),
            other => unreachable!("{other:?}"),
        }
    });
}

/// One step of the hook that waits for Slurm, on a node with three Slurm pods among 110.
#[divan::bench]
fn hook_step(bencher: Bencher<'_, '_>) {
    let (pods, node) = (slurm_pods(3, 110), node());
    let all: Vec<_> = pods.iter().collect();
    let policies = &LOADED.2;
    let step = HookStep {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: Vec::new(),
        leaving: Vec::new(),
    };
    bencher.bench(|| {
        TOKIO.block_on(policies.step(StepCall {
            step: &step,
            drain: drain(),
            node: &node,
            pods: &all,
        }))
    });
}

/// `slurm.wasm` from its file, compiled by the child process.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn load_compiling(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| TempDir::new().unwrap())
        .bench_values(|cache| {
            let policies = load(&runtime(&cache), &["slurm"]);
            (policies, cache)
        });
}

/// `slurm.wasm` from its file, with its compiled code in the cache.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn load_cached(bencher: Bencher<'_, '_>) {
    let runtime = &LOADED.1;
    bencher.bench(|| load(runtime, &["slurm"]));
}
