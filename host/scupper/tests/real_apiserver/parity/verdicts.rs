//! The verdicts of `kubectl drain` and `scupper plan` on each pod, read from their output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::testbed::Testbed;

/// The verdict on a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is evicted; the warning about it.
    Leaves(Option<String>),
    /// It is kept; the warning about it.
    Stays(Option<String>),
    /// It blocks the drain.
    Blocks(String),
}

/// By `namespace/name`. A pod that is not listed was not printed: it is kept.
pub(super) type Verdicts = BTreeMap<String, Verdict>;

/// The warnings that `kubectl` has; our other reasons have no counterpart.
const WARNINGS: [&str; 4] = [
    "ignoring DaemonSet-managed Pods",
    "deleting Pods with local storage",
    "deleting Pods that declare no controller",
    " not found",
];

/// Runs `kubectl drain` with these flags; `dry_run` is `client` or `server`.
pub(super) fn by_kubectl(testbed: &Testbed, node: &str, flags: &[String], dry_run: &str) -> Verdicts {
    let dry_run = format!("--dry-run={dry_run}");
    let mut args = vec!["drain", node, &dry_run];
    args.extend(flags.iter().map(String::as_str));
    let output = testbed.kubectl_command(&args).output().unwrap();
    let (stdout, stderr) = texts(&output);
    let mut verdicts = Verdicts::new();
    for line in stdout.lines() {
        let gone = line
            .strip_prefix("evicting pod ")
            .or_else(|| line.strip_prefix("deleting pod "));
        if let Some(pod) = gone {
            let pod = pod.split(' ').next().unwrap();
            verdicts.insert(pod.to_owned(), Verdict::Leaves(None));
        }
    }
    for line in stderr.lines() {
        if let Some(warnings) = line.strip_prefix("Warning: ") {
            for (message, pods) in warnings.split("; ").filter_map(group) {
                for pod in pods {
                    let verdict = match verdicts.get(&pod) {
                        Some(_) => Verdict::Leaves(Some(message.clone())),
                        None => Verdict::Stays(Some(message.clone())),
                    };
                    verdicts.insert(pod, verdict);
                }
            }
        }
        if line.starts_with("error: unable to drain node") {
            for (message, pods) in line.split("cannot delete ").skip(1).filter_map(group) {
                let blocks = |pod| (pod, Verdict::Blocks(message.clone()));
                verdicts.extend(pods.into_iter().map(blocks));
            }
        }
    }
    let blocked = verdicts
        .values()
        .any(|verdict| matches!(verdict, Verdict::Blocks(_)));
    assert_eq!(output.status.success(), !blocked, "{flags:?}\n{stdout}\n{stderr}");
    verdicts
}

/// `MESSAGE: ns/pod, ns/pod`, and any text after the last pod.
fn group(text: &str) -> Option<(String, Vec<String>)> {
    let (message, pods) = text.rsplit_once(": ")?;
    let pods = pods.split("], continuing").next()?.split(", ");
    let pods = pods.map(|pod| pod.trim_end_matches(',').trim());
    let pods = pods.filter(|pod| pod.contains('/')).map(str::to_owned).collect();
    Some((message.to_owned(), pods))
}

/// Runs `scupper plan` with these flags.
pub(super) fn by_scupper(kubeconfig: &Path, node: &str, flags: &[String]) -> Verdicts {
    let output = plan(kubeconfig, node, flags);
    let (stdout, stderr) = texts(&output);
    let reported: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    if let Some(blockers) = reported["blockers"].as_array() {
        assert_eq!(output.status.code(), Some(5), "{stderr}");
        let blocks = |blocker: &Value| (text(&blocker["pod"]), Verdict::Blocks(text(&blocker["reason"])));
        return blockers.iter().map(blocks).collect();
    }
    assert!(output.status.success(), "{stdout}{stderr}");
    let decisions = reported["plan"]["decisions"].as_array().unwrap();
    let verdict = |decision: &Value| {
        let pod = text(&reported["pods"][text(&decision["uid"])]);
        let reason = text(&decision["reason"]);
        let is_warning = WARNINGS.iter().any(|warning| reason.ends_with(warning));
        let warning = is_warning.then_some(reason);
        let verdict = match text(&decision["verdict"]).as_str() {
            "evict" | "delete" => Verdict::Leaves(warning),
            "keep" => Verdict::Stays(warning),
            other => panic!("{other} of {pod}"),
        };
        (pod, verdict)
    };
    decisions.iter().map(verdict).collect()
}

/// The ways in which our plan evicts pods.
pub(super) fn ways(kubeconfig: &Path, node: &str, flags: &[String]) -> Vec<String> {
    let reported: Value = serde_json::from_str(&texts(&plan(kubeconfig, node, flags)).0).unwrap();
    let decisions = reported["plan"]["decisions"].as_array().unwrap();
    let ways: BTreeSet<String> = decisions
        .iter()
        .map(|decision| text(&decision["verdict"]))
        .collect();
    ways.into_iter().filter(|way| way != "keep").collect()
}

fn plan(kubeconfig: &Path, node: &str, flags: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(["plan", node, "--output", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .args(flags)
        .output()
        .unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}
