//! Pre-flight findings with the real disruption and Deployment controllers: a budget that never opens is certain, and the
//! change that the finding names opens it.

use super::setup::{Config, scupper};
use super::testbed::Testbed;
use super::{ALONE, node, pods_on, skip};

const NODE: &str = "node-0";

#[test]
fn a_budget_that_never_opens_is_refused_until_the_named_change_is_made() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    let web = ["--namespace", "shop", "--name", "web", "--owner", "deployment"];
    testbed.make_pods(&[&["--node", NODE, "--count", "1", "--pdb", "1"][..], &web].concat());
    let config = Config::with("{pre-flight: refuse}");
    let run = |args: &[&str]| scupper(&testbed, args);
    let drain = ["drain", NODE, "--local", "--config", config.path()];
    let (code, text) = run(&["plan", NODE]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("  certain  budget shop/web (minAvailable: 1) allows no"),
        "{text}"
    );
    assert!(text.contains("replicas of Deployment web: 1 -> 2"), "{text}");
    let (code, text) = run(&drain);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("[pre-flight check]"), "{text}");
    assert!(node(&testbed, NODE)["spec"]["unschedulable"].is_null(), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 1);

    testbed.kubectl(&[
        "scale",
        "deployment/web",
        "--namespace",
        "shop",
        "--replicas",
        "2",
    ]);
    let (code, text) = run(&["plan", NODE]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("  certain  "), "{text}");
    let (code, text) = run(&drain);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(pods_on(&testbed, NODE), 0);
}
