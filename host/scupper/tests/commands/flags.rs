//! The flags of `kubectl drain`: their defaults, their messages, and their effect on a plan.

use scupper_simulator::api::objects;
use serde_json::Value;

use crate::rig::Rig;

fn plan(rig: &Rig, flags: &[&str]) -> (Option<i32>, Value) {
    let mut args = vec!["plan", "worker-1", "--output", "json"];
    args.extend(flags);
    let run = rig.run(&args);
    let reported = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:#?}"));
    (run.code, reported)
}

#[test]
fn the_defaults_are_kubectls() {
    let rig = Rig::new();
    rig.apply(objects::daemon_set("shop", "agent"));
    rig.apply(objects::pod("shop", "agent-1", "worker-1").daemonset("agent"));
    rig.apply(objects::pod("shop", "bare", "worker-1"));
    rig.apply(rig.pod("local", "worker-1").empty_dir());
    let (code, reported) = plan(&rig, &[]);
    assert_eq!(code, Some(5));
    let blockers = reported["blockers"].as_array().unwrap();
    let mut reasons: Vec<_> = blockers
        .iter()
        .map(|blocker| blocker["reason"].as_str().unwrap())
        .collect();
    // The simulator's DaemonSet controller may have created a pod of its own by now.
    reasons.dedup();
    assert_eq!(
        reasons,
        [
            "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)",
            "Pods that declare no controller (use --force to override)",
            "Pods with local storage (use --delete-emptydir-data to override)",
        ]
    );
    let all = ["--force", "--ignore-daemonsets", "--delete-emptydir-data"];
    assert_eq!(plan(&rig, &all).0, Some(0));
    let (code, reported) = plan(&rig, &[&all[..], &["--force=false"]].concat()[1..]);
    assert_eq!(
        (code, reported["blockers"].as_array().unwrap().len()),
        (Some(5), 1)
    );
}

#[test]
fn a_pod_that_is_not_selected_blocks_nothing() {
    let rig = Rig::new();
    rig.apply(objects::pod("shop", "bare", "worker-1").label("app", "bare"));
    rig.apply(rig.pod("web", "worker-1"));
    assert_eq!(plan(&rig, &[]).0, Some(5));
    let (code, reported) = plan(&rig, &["--pod-selector=app!=bare", "--disable-eviction"]);
    assert_eq!(code, Some(0), "{reported}");
    let decisions = reported["plan"]["decisions"].as_array().unwrap();
    let mut verdicts: Vec<_> = decisions
        .iter()
        .map(|it| it["verdict"].as_str().unwrap())
        .collect();
    verdicts.sort_unstable();
    assert_eq!(verdicts, ["delete", "keep"]);
}

#[test]
fn invalid_flags_are_reported_before_any_request() {
    let rig = Rig::new();
    let mark = rig.api.mark();
    for (flags, code, words) in [
        (
            &["worker-1", "--pod-selector=a=b=c"][..],
            3,
            "--pod-selector=<pod_selector> must be a valid label selector",
        ),
        (
            &["--selector", "a b"],
            3,
            "--selector a b: must be a label selector",
        ),
        // As of a variable that is not set: it would be all nodes.
        (&["--selector", ""], 3, "--selector: is empty"),
        (&["-l", " "], 3, "--selector: is empty"),
        (
            &["--selector="],
            3,
            "to choose all nodes, write --selector kubernetes.io/os",
        ),
        (&["worker-1", "--selector", "a"], 2, "cannot be used with"),
        (&[], 2, "NODE"),
        // As of a variable that is not set: the API server would list all nodes.
        (&[""], 2, "NODE"),
        (&["worker-1", ""], 2, "NODE"),
        (
            &["worker-1", "--timeout", "soon"],
            3,
            "--timeout soon: must be a duration",
        ),
        (
            &["worker-1", "--chunk-size=-1"],
            3,
            "--chunk-size -1: must be 0 or more",
        ),
        (&["worker-1", "--parallel", "0"], 2, "--parallel"),
        (&["worker-1", "--dry-run=perhaps"], 2, "--dry-run"),
    ] {
        let run = rig.run(&[&["drain"], flags].concat());
        assert_eq!(run.code, Some(code), "{run:#?}");
        assert!(run.stderr.contains(words), "{words}: {run:#?}");
    }
    assert!(rig.api.requests_since(mark).is_empty());
}

#[test]
fn an_empty_selector_is_invalid_for_every_command() {
    let rig = Rig::new();
    let mark = rig.api.mark();
    for command in ["uncordon", "cancel", "plan", "forecast", "status"] {
        let run = rig.run(&[command, "-l", ""]);
        assert_eq!(run.code, Some(3), "{run:#?}");
        assert!(run.stderr.contains("--selector: is empty"), "{run:#?}");
    }
    assert!(rig.api.requests_since(mark).is_empty());
}

#[test]
fn a_node_that_does_not_exist_is_named_and_none_is_changed() {
    let rig = Rig::new();
    let long = "n".repeat(300);
    let odd = [
        "worker-9",
        "worker-1/status",
        "../worker-1",
        "..",
        "worker-1?a=b",
        "W\u{f6}rker",
        &long,
    ];
    for command in ["plan", "drain", "uncordon"] {
        for name in odd {
            let run = rig.run(&[command, "worker-1", name]);
            assert_eq!(run.code, Some(4), "{run:#?}");
            assert!(run.stderr.contains(&format!("node {name}")), "{run:#?}");
        }
    }
    let requests = rig.api.requests_since(0);
    assert!(
        requests.iter().all(|request| request.method == "GET"),
        "{requests:#?}"
    );
}

#[test]
fn a_dry_run_changes_nothing_and_a_servers_dry_run_asks_for_each_eviction() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    let before = rig.node("worker-1");
    let run = rig.run(&["drain", "worker-1", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert!(run.stdout.contains("nothing was changed"), "{run:#?}");
    let run = rig.run(&["drain", "worker-1", "--dry-run=server"]);
    assert_eq!(run.code, Some(5), "{run:#?}");
    assert!(run.stdout.contains("would allow 1 of 2 just now"), "{run:#?}");
    // In the words of a drain that waits for it.
    let words = "shop/db  budget keep-db blocks it: it needs 1 healthy pod and has 1";
    assert!(run.stdout.contains(words), "{run:#?}");
    let run = rig.run(&[
        "drain",
        "worker-1",
        "--dry-run=server",
        "--disable-eviction",
        "--output=json",
    ]);
    assert_eq!(run.code, Some(0), "{run:#?}");
    let reported: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reported["answers"][0]["answer"], "Accepted", "{reported}");
    assert_eq!(rig.pods(), ["db", "web"]);
    assert_eq!(rig.node("worker-1"), before);
}
