//! `inspect`, `check` and `bench` of a policy.

use std::path::Path;

use serde_json::Value;

use crate::guests::{guest, wasi_guest};
use crate::program::{policy, repository};

const SNAPSHOT: &str = "examples/clusters/small.yaml";

/// A policy of the repository as a component.
pub(crate) fn component(crate_folder: &str) -> String {
    let built = policy(&repository(), &["--output", "json", "build", crate_folder]);
    let built: Value = serde_json::from_str(built.good()).unwrap();
    built.get("file").unwrap().as_str().unwrap().to_owned()
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn check_reports_all_problems_at_once() {
    let slurm = component("plugins/slurm");
    let reported = policy(
        &repository(),
        &["check", &slurm, "--set", "hold=never", "--set", "colour=red"],
    )
    .ends(3);
    for words in [
        "add under its `grants` in scupper.yaml: node-annotations: [nodeset.slinky.slurm.net/]",
        "its configuration: `hold`",
        "its configuration: `colour`",
    ] {
        assert!(reported.contains(words), "no `{words}` in {reported}");
    }
    let grant = "node-annotations:nodeset.slinky.slurm.net/";
    let reported = policy(&repository(), &["check", &slurm, "--grant", grant]);
    assert!(
        reported.good().contains("a driver would load it: slurm "),
        "{reported:#?}"
    );
}

#[test]
fn check_reads_the_operators_configuration() {
    let slurm = component("plugins/slurm");
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies:\n- name: jobs\n  module: {slurm}\n  \
         grants: {{node-annotations: [nodeset.slinky.slurm.net/]}}\n"
    );
    std::fs::write(dir.path().join("scupper.yaml"), text).unwrap();
    policy(dir.path(), &["check", &slurm, "--config", "scupper.yaml"]).good();
    let reported = policy(
        dir.path(),
        &["check", &slurm, "--config", "scupper.yaml", "--name", "other"],
    )
    .ends(3);
    assert!(reported.contains("it has jobs"), "{reported}");
}

/// A policy that requests two capabilities of `http`.
const WANTS: &str = "wants=http GET https://a.example.com/\nhttp POST https://b.example.com/jobs/";

#[test]
fn only_the_wrong_grant_is_reported() {
    let fetches = guest("fetches");
    let check = |grants: &[&str]| {
        let mut args = vec!["check", path(&fetches), "--set", WANTS];
        args.extend(["--grant", "node-annotations:seen.example.com/"]);
        args.extend(grants.iter().flat_map(|grant| ["--grant", grant]));
        policy(&repository(), &args)
    };
    let good = [
        "http:GET https://a.example.com/",
        "http:POST https://B.example.com/jobs/",
    ];
    check(&good).good();
    for (wrong, words) in [
        ("http:GET https://a.example.com:10250/", "port 10250"),
        ("node-annotations:kubernetes.io/", "steer the cluster"),
        ("secret:token", "--grant cannot name the source of a secret"),
    ] {
        let reported = check(&[good[0], wrong, good[1]]).ends(3);
        assert_eq!(reported.lines().count(), 1, "{reported}");
        assert!(reported.contains(words), "{reported}");
    }
    let reported = check(&["wasi"]).ends(3);
    assert!(
        reported.contains("`wasi: true`") && reported.contains("scupper.yaml"),
        "{reported}"
    );
}

#[test]
fn a_description_that_cannot_be_is_refused_with_its_field() {
    let vague = guest("vague");
    let check = |settings: &[&str]| {
        let mut args = vec!["check", path(&vague)];
        args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        policy(&repository(), &args)
    };
    let said = [
        "name=vague",
        "version=0.1.0",
        "summary=s",
        "progress=p",
        "what=w",
        "detail=d",
    ];
    assert!(check(&said).good().contains("would load it: vague 0.1.0"));
    for (setting, words) in [
        ("name=../../x", "`name`: must be"),
        (
            "name=a\u{1b}[2J",
            r"`name`: must be 1 to 63 letters, digits, '-', '_' and '.', with a letter or a digit first and last, not `a\u{1b}[2J`",
        ),
        ("version=", "`version`: must be"),
        ("summary=two\nlines", "`summary`: must be"),
        ("schema=nonsense", "`config-schema`: is not JSON"),
        (
            "schema={\"type\": \"text\"}",
            "`config-schema`: is not a JSON schema: /type must be",
        ),
        ("progress= ", "`before-drain: pending.progress`: is empty"),
        ("what=", "`before-drain: pending.waiting-for[0].what`: is empty"),
        (
            "detail=",
            "`before-drain: pending.waiting-for[1].detail`: is empty",
        ),
    ] {
        let reported = check(&[&said[..], &[setting]].concat()).ends(3);
        assert!(reported.contains(words), "{setting:?}: {reported}");
        assert!(!reported.contains('\u{1b}'), "{reported:?}");
    }
    // The output does not contain it either.
    let reported = policy(&repository(), &["run", path(&vague), "--on", SNAPSHOT, "--drain"]).ends(0);
    for words in [
        "the policy does not say where it stands",
        "waits for job-2: the policy does not say what it awaits",
        "`pending.progress`: is empty",
    ] {
        assert!(reported.contains(words), "no `{words}` in {reported}");
    }
    assert!(!reported.contains("waits for :"), "{reported}");
}

#[test]
fn an_invalid_plan_is_reported_with_the_pods_name() {
    let reported = policy(
        &repository(),
        &["run", path(&guest("decides_twice")), "--on", SNAPSHOT],
    )
    .ends(7);
    assert!(
        reported.contains("(UID ") && reported.contains("has two decisions"),
        "{reported}"
    );
    assert!(
        reported.contains("pod shop/") || reported.contains("pod kube-system/"),
        "{reported}"
    );
}

#[test]
fn a_policy_that_imports_wasi_learns_how_to_build_without_it() {
    for name in ["wasi_polite", "wasi_rude"] {
        let reported = policy(&repository(), &["check", path(&wasi_guest(name))]).ends(3);
        for words in [
            "--target wasm32-unknown-unknown",
            "-target=wasm-unknown",
            "--stub-wasi",
            "--disable clocks http random stdio fetch-event",
            "`wasi: true`",
        ] {
            assert!(reported.contains(words), "{name}: no `{words}` in {reported}");
        }
    }
}

#[test]
fn a_file_that_is_not_a_policy_is_reported_with_the_remedy() {
    for (name, words) in [
        ("other_world", ["it is not a policy"; 2]),
        // On a busy machine the wall-clock limit comes before the CPU limit.
        (
            "spins_in_describe",
            ["it exceeded its limit of", "it did not answer within 5 s"],
        ),
        ("wants_unknown", ["unknown capability `"; 2]),
        // A driver lets it plan for a node without pods before it loads it.
        ("revision_4", ["failed in make-plan"; 2]),
    ] {
        let reported = policy(&repository(), &["check", path(&guest(name))]).ends(3);
        assert!(words.iter().any(|it| reported.contains(it)), "{name}: {reported}");
    }
    let reported = policy(&repository(), &["check", "README.md"]).ends(3);
    assert!(reported.contains("it is not a WebAssembly file"), "{reported}");
    let reported = policy(&repository(), &["inspect", "nowhere.wasm"]).ends(3);
    assert!(reported.contains("it cannot be read"), "{reported}");
}

#[test]
fn inspect_shows_requested_capabilities_that_are_not_granted() {
    let slurm = component("plugins/slurm");
    let reported = policy(&repository(), &["inspect", &slurm]);
    let reported = reported.good();
    for line in [
        "  does     plans; hooks before-cordon, before-drain",
        "  grants:\n    node-annotations: [nodeset.slinky.slurm.net/]\n",
        "scupper:drain/planner@0.1.0",
        "\"poll-seconds\"",
        "of 65536 KiB",
    ] {
        assert!(reported.contains(line), "no `{line}` in {reported}");
    }
    let json = policy(&repository(), &["--output", "json", "inspect", &slurm]);
    let json: Value = serde_json::from_str(json.good()).unwrap();
    assert_eq!(json.pointer("/name").unwrap(), "slurm");
    assert_eq!(
        json.pointer("/wants/0").unwrap(),
        "node-annotations:nodeset.slinky.slurm.net/"
    );
    assert_eq!(json.pointer("/configSchema/type").unwrap(), "object");
    assert_eq!(json.pointer("/sha256").unwrap().as_str().unwrap().len(), 64);
}

#[test]
fn run_shows_a_plan_the_steps_of_a_hook_and_a_whole_drain_on_a_snapshot() {
    let keep = component("examples/policies/keep-labelled");
    let reported = policy(&repository(), &["run", &keep, "--on", SNAPSHOT]);
    assert!(
        reported
            .good()
            .contains("stays            shop/db-0  it has the label example.com/keep [keep-labelled]")
    );
    let reported = policy(&repository(), &["run", &keep, "--on", SNAPSHOT, "--drain"]);
    assert!(reported.good().contains("Drained in 1s"), "{reported:#?}");
    let announce = component("examples/policies/announce");
    let reported = policy(
        &repository(),
        &["run", &announce, "--on", SNAPSHOT, "--phase", "before-drain"],
    );
    assert_eq!(reported.good(), "      0s  before-drain  done\n");
    assert!(
        reported.stderr.contains("BeforeDrain: the mark is correct"),
        "{reported:#?}"
    );
    let reported = policy(
        &repository(),
        &["run", &announce, "--on", SNAPSHOT, "--phase", "during-drain"],
    )
    .ends(2);
    assert!(
        reported.contains("there are before-cordon, before-drain"),
        "{reported}"
    );
}

/// A snapshot of a node with a pod that no controller would create anew.
const WITH_A_BARE_POD: &str = "\
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: worker-1}}
- {kind: Pod, metadata: {namespace: shop, name: bare, uid: uid-of-bare}, spec: {nodeName: worker-1}}
";

#[test]
fn run_evicts_a_pod_without_a_controller_only_with_force() {
    let keep = component("examples/policies/keep-labelled");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cluster.yaml"), WITH_A_BARE_POD).unwrap();
    for more in [&[][..], &["--drain"]] {
        let run = [&["run", &keep, "--on", "cluster.yaml"][..], more].concat();
        let refused = policy(dir.path(), &run);
        assert_eq!(refused.code, Some(5), "{refused:#?}");
        assert!(refused.stdout.contains("use --force to override"), "{refused:#?}");
        let forced = policy(dir.path(), &[&run[..], &["--force"]].concat());
        assert!(forced.good().contains("shop/bare"), "{forced:#?}");
        assert!(!forced.stdout.contains("--force"), "{forced:#?}");
    }
}

#[test]
fn run_tells_a_step_which_pods_of_its_wave_leave() {
    let modes = component("plugins/namespace-modes");
    let step = |wave: &str| {
        let run = [
            "run",
            &modes,
            "--on",
            SNAPSHOT,
            "--set",
            "rules=shop AllowCompletion 10m",
        ];
        let hook = ["--phase", "before-wave", "--of", wave, "--steps", "1"];
        let reported = policy(&repository(), &[&run[..], &hook[..]].concat());
        format!("{}{}", reported.stdout, reported.stderr)
    };
    let held = step("namespaces-after-10m");
    assert!(held.contains("waits for shop/cart-6d4cf56db6-8hs7c"), "{held}");
    assert!(!held.contains("kube-system/"), "{held}");
    let other = step("namespaces-after-20m");
    assert!(other.contains("the plan has namespaces-after-10m"), "{other}");
}

/// A driver makes no such call.
#[test]
fn run_calls_a_hook_only_for_what_a_driver_would_call_it_for() {
    let announce = component("examples/policies/announce");
    let slurm = component("plugins/slurm");
    for (policy_file, hook, words) in [
        (
            &announce,
            &["before-wave"][..],
            "policy announce has no before-wave hook; it has before-drain",
        ),
        (
            &announce,
            &["before-drain", "--of", "all"],
            "before-drain is called for the node; leave out --of all",
        ),
        (
            &slurm,
            &["before-evict", "--of", "shop/nobody"],
            "before-evict is called for a pod that leaves",
        ),
        (
            &slurm,
            &["before-wave", "--of", "some"],
            "before-wave is called for a wave; the plan has all",
        ),
    ] {
        let held = match *policy_file == slurm {
            true => &["--set", "hold=slurm-pods"][..],
            false => &[],
        };
        let run = [&["run", policy_file, "--on", SNAPSHOT], held, &["--phase"]].concat();
        let reported = policy(&repository(), &[&run[..], hook].concat()).ends(3);
        assert!(reported.contains(words), "{words}: {reported}");
    }
}

/// The backtrace begins with the function that panicked, and has none of the functions between it and the host.
fn is_of_the_author(reported: &str) -> bool {
    let glue = ["_cabi", "scupper:drain/", "scupper_sdk::export"];
    reported.contains("in panics::look_up_the_impossible") && !glue.iter().any(|name| reported.contains(name))
}

#[test]
fn a_panic_in_a_policy_names_the_policys_own_functions() {
    let guest = guest("panics");
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["run", path(&guest), "--on", SNAPSHOT]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        policy(&repository(), &args).ends(7)
    };
    for reported in [run(&[]), run(&["--phase", "before-drain"])] {
        assert!(is_of_the_author(&reported), "{reported}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("it.yaml"),
        "pods: [shop/cart]\nplan: {evict: [shop/cart]}\n",
    )
    .unwrap();
    let reported = policy(dir.path(), &["test", "it.yaml", "--policy", path(&guest)]).ends(7);
    assert!(is_of_the_author(&reported), "{reported}");
}

#[test]
fn bench_measures_and_reports_the_limits() {
    let announce = component("examples/policies/announce");
    let reported = policy(
        &repository(),
        &[
            "--output", "json", "bench", &announce, "--pods", "20", "--rounds", "5",
        ],
    );
    let reported: Value = serde_json::from_str(reported.good()).unwrap();
    let compiled = |what: &str| reported["compiled"][what].as_u64().unwrap();
    assert!(
        compiled("nativeBytes") > compiled("bytes") && compiled("tookUs") > 0,
        "{reported}"
    );
    assert_eq!(reported.pointer("/figures/0/function").unwrap(), "step");
    let figures = reported["figures"].as_array().unwrap();
    let phases: Vec<_> = figures.iter().map(|it| it["phase"].as_str().unwrap()).collect();
    assert_eq!(
        phases,
        ["before-drain", "on-cancel", "after-uncordon"],
        "{reported}"
    );
    assert!(reported.pointer("/figures/0/medianUs").unwrap().as_u64().unwrap() > 0);
    assert!(reported.pointer("/most/memoryBytes").unwrap().as_u64().unwrap() > 0);
}
