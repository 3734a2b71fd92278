//! `scupper plan` and `kubectl drain --dry-run` come to the same verdict on every pod, for all flags that make one.
//!
//! No controller and no kubelet runs here: the pods stay as they were written.

mod matrix;
mod verdicts;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use matrix::{Case, Owner, namespace};
use verdicts::{Verdict, Verdicts, by_kubectl, by_scupper, ways};

use crate::testbed::Testbed;
use crate::{ALONE, skip};

const NODES: usize = 4;
/// `kubectl` reads each DaemonSet pod's DaemonSet, five times a second: most of the time it waits for its own rate
/// limit.
const AT_ONCE: usize = 24;
const SKIP_SECONDS: u64 = 2;

/// Deliberate differences. host/ARCHITECTURE.md justifies each, and each must occur.
struct Exception {
    name: &'static str,
    applies: fn(&Case, &[String], Option<&Verdict>, Option<&Verdict>) -> bool,
}

const FOREIGN: &str = "daemonsets.apps \"foreign\" not found";

const EXCEPTIONS: [Exception; 2] = [
    Exception {
        name: "a DaemonSet of another API group is ignored with --ignore-daemonsets",
        applies: |case, flags, kubectl, ours| {
            is_foreign(case) && has(flags, "--ignore-daemonsets") && is_lost(kubectl) && stays(ours)
        },
    },
    Exception {
        name: "and refused without it, with a DaemonSet's words",
        applies: |case, flags, kubectl, ours| {
            is_foreign(case)
                && !has(flags, "--ignore-daemonsets")
                && is_lost(kubectl)
                && matches!(ours, Some(Verdict::Blocks(message)) if message.starts_with("DaemonSet-managed"))
        },
    },
];

fn is_foreign(case: &Case) -> bool {
    case.owner == Owner::ForeignDaemonSet && !case.is_finished()
}

/// `kubectl` takes it for a pod of a DaemonSet that is gone.
fn is_lost(verdict: Option<&Verdict>) -> bool {
    match verdict {
        Some(Verdict::Blocks(message)) => message == FOREIGN || message.contains("local storage"),
        Some(Verdict::Leaves(_)) | None => true,
        Some(Verdict::Stays(_)) => false,
    }
}

fn stays(verdict: Option<&Verdict>) -> bool {
    matches!(verdict, None | Some(Verdict::Stays(_)))
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.iter().any(|given| given == flag)
}

/// One comparison.
#[derive(Clone, Debug)]
struct Round {
    node: usize,
    flags: Vec<String>,
}

/// Every combination of the three flags, and the additional flags with one of them.
fn combinations() -> Vec<Vec<String>> {
    let three = ["--force", "--ignore-daemonsets", "--delete-emptydir-data"];
    let mut all = Vec::new();
    for bits in 0..8 {
        let chosen = (0..3).filter(|place| bits >> place & 1 == 1);
        all.push(chosen.map(|place| three[place].to_owned()).collect::<Vec<_>>());
    }
    let (none, every) = (all[0].clone(), all[7].clone());
    let skip = format!("--skip-wait-for-delete-timeout={SKIP_SECONDS}");
    let selector = "--pod-selector=case notin (nobody-pod-none-running-none), case".to_owned();
    for more in [&skip, &selector] {
        for base in [&none, &every] {
            all.push([&base[..], std::slice::from_ref(more)].concat());
        }
    }
    all.push([&every[..], &["--disable-eviction".to_owned()]].concat());
    all.push(vec![
        "--force=false".to_owned(),
        "--grace-period=5".to_owned(),
        "--chunk-size=7".to_owned(),
    ]);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verdict_is_kubectls() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let begin = Instant::now();
    let testbed = Testbed::bare(&["--nodes", "4", "--no-kwok", "--no-controllers"]);
    let config = kube::config::Kubeconfig::read_from(testbed.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options)
        .await
        .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let deleted = matrix::write(&client, NODES).await;
    let cases = Case::all();
    assert!(cases.len() * NODES >= 2_000, "{}", cases.len() * NODES);
    eprintln!("{} pods after {:?}", cases.len() * NODES, begin.elapsed());
    // Only then is every ended deletion older than the flag's value, in whole seconds.
    let old_enough = deleted + Duration::from_secs(SKIP_SECONDS + 1);
    while SystemTime::now() < old_enough {
        std::thread::sleep(Duration::from_millis(20));
    }

    let combinations = combinations();
    let rounds: Vec<Round> = combinations
        .iter()
        .enumerate()
        .flat_map(|(number, flags)| {
            [number, number + 1].map(|place| Round {
                node: place % NODES,
                flags: flags.clone(),
            })
        })
        .collect();
    let mut counts = Counts::default();
    let blocked = side_by_side(&testbed, &rounds, &mut counts);
    // Where pods block, `kubectl` does not print the others: once more without the blocking ones.
    let again: Vec<Round> = rounds
        .iter()
        .zip(blocked)
        .filter_map(|(round, blocked)| round.without(&blocked))
        .collect();
    let blocked = side_by_side(&testbed, &again, &mut counts);
    assert!(blocked.iter().all(Vec::is_empty), "{blocked:?}");
    eprintln!("{counts:#?} after {:?}", begin.elapsed());
    assert!(
        counts.verdicts > 10_000 && counts.leave > 1_000 && counts.stay > 1_000 && counts.block > 1_000,
        "{counts:?}"
    );
    for exception in &EXCEPTIONS {
        assert!(
            counts.exceptions.contains_key(exception.name),
            "never met: {}",
            exception.name
        );
    }
    without_evictions(&testbed);
    server_dry_run(&testbed);
}

/// In a dry run `kubectl` does not print whether it would delete or evict.
fn without_evictions(testbed: &Testbed) {
    let flags = ["--force", "--ignore-daemonsets", "--delete-emptydir-data"].map(str::to_owned);
    let kubeconfig = testbed.kubeconfig();
    assert_eq!(ways(&kubeconfig, "node-0", &flags), ["evict"]);
    let deleting = [&flags[..], &["--disable-eviction".to_owned()]].concat();
    assert_eq!(ways(&kubeconfig, "node-0", &deleting), ["delete"]);
}

/// The API server is asked for each pod, which takes `kubectl` a fifth of a second.
fn server_dry_run(testbed: &Testbed) {
    let owners = "statefulset-pod-none-running-none,job-pod-none-succeeded-none,nobody-pod-none-failed-over,\
                  replicaset-pod-none-pending-begun,custom-pod-none-running-begun,node-mirror-none-running-none";
    let flags = [format!("--pod-selector=case in ({owners})")];
    let theirs = by_kubectl(testbed, "node-0", &flags, "server");
    let mut ours = by_scupper(&testbed.kubeconfig(), "node-0", &flags);
    ours.retain(|_, verdict| matches!(verdict, Verdict::Leaves(_)));
    assert_eq!(theirs.len(), 5, "{theirs:?}");
    assert_eq!(theirs, ours);
}

/// The coverage of the comparisons.
#[derive(Debug, Default)]
struct Counts {
    verdicts: usize,
    leave: usize,
    stay: usize,
    block: usize,
    exceptions: BTreeMap<&'static str, usize>,
}

/// Compares in each round, and returns the cases that either of the two reports as blocking.
fn side_by_side(testbed: &Testbed, rounds: &[Round], counts: &mut Counts) -> Vec<Vec<String>> {
    let mut blocked = Vec::new();
    for some in rounds.chunks(AT_ONCE) {
        let both: Vec<(Verdicts, Verdicts)> = std::thread::scope(|scope| {
            let asked = some.iter().map(|round| scope.spawn(|| round.ask(testbed)));
            let asked: Vec<_> = asked.collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        for (round, (theirs, ours)) in some.iter().zip(both) {
            blocked.push(round.compare(&theirs, &ours, counts));
        }
    }
    blocked
}

impl Round {
    fn ask(&self, testbed: &Testbed) -> (Verdicts, Verdicts) {
        let node = format!("node-{}", self.node);
        let theirs = by_kubectl(testbed, &node, &self.flags, "client");
        let ours = by_scupper(&testbed.kubeconfig(), &node, &self.flags);
        (theirs, ours)
    }

    fn compare(&self, theirs: &Verdicts, ours: &Verdicts, counts: &mut Counts) -> Vec<String> {
        let blocks = |verdict: Option<&Verdict>| matches!(verdict, Some(Verdict::Blocks(_)));
        let is_blocked = theirs
            .values()
            .chain(ours.values())
            .any(|verdict| blocks(Some(verdict)));
        let mut blocked = Vec::new();
        for case in Case::all() {
            let pod = format!("{}/{}", namespace(self.node), case.name());
            // If one program prints nothing about a pod, the pod is kept, or, where others block, it does not block.
            let reported = |verdicts: &Verdicts| {
                verdicts
                    .get(&pod)
                    .filter(|verdict| **verdict != Verdict::Stays(None))
                    .cloned()
            };
            let (theirs, ours) = (reported(theirs), reported(ours));
            if blocks(theirs.as_ref()) || blocks(ours.as_ref()) {
                blocked.push(case.name());
            }
            if theirs != ours {
                let excused = EXCEPTIONS
                    .iter()
                    .find(|known| (known.applies)(&case, &self.flags, theirs.as_ref(), ours.as_ref()));
                let Some(excused) = excused else {
                    panic!(
                        "{pod} with {:?}:\nkubectl {theirs:?}\nscupper {ours:?}",
                        self.flags
                    );
                };
                *counts.exceptions.entry(excused.name).or_default() += 1;
            }
            match ours {
                _ if is_blocked && !blocks(ours.as_ref()) => continue,
                Some(Verdict::Blocks(_)) => counts.block += 1,
                Some(Verdict::Leaves(_)) => counts.leave += 1,
                Some(Verdict::Stays(_)) | None => counts.stay += 1,
            }
            counts.verdicts += 1;
        }
        blocked
    }

    /// The same without the pods that block.
    fn without(&self, blocked: &[String]) -> Option<Self> {
        let mut flags = self.flags.clone();
        let without = format!("case notin ({})", blocked.join(","));
        match flags.iter_mut().find(|flag| flag.starts_with("--pod-selector=")) {
            Some(selector) => *selector = format!("{selector},{without}"),
            None => flags.push(format!("--pod-selector={without}")),
        }
        (!blocked.is_empty()).then_some(Self {
            node: self.node,
            flags,
        })
    }
}
