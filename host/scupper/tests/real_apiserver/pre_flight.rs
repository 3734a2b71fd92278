//! Pre-flight findings with the real disruption and Deployment controllers: a budget that never opens is certain, and the
//! change that the finding names opens it.

use serde_json::json;

use super::area::Area;
use super::setup::{Config, scupper};
use super::{node, pods_on, skip};

#[test]
fn a_budget_that_never_opens_is_refused_until_the_named_change_is_made() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (name, shop) = (area.node(0), area.namespace("shop"));
    let web = ["--namespace", &shop, "--name", "web", "--owner", "deployment"];
    area.make_pods(&[&["--node", name, "--count", "1", "--pdb", "1"][..], &web].concat());
    let config = Config::with("{pre-flight: refuse}");
    let run = |args: &[&str]| scupper(&area, args);
    let drain = ["drain", name, "--local", "--config", config.path()];
    let (code, text) = run(&["plan", name]);
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains(&format!(
            "  certain  budget {shop}/web (minAvailable: 1) blocks its pods"
        )),
        "{text}"
    );
    assert!(text.contains("replicas of Deployment web: 1 -> 2"), "{text}");
    let (code, text) = run(&drain);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("[pre-flight check]"), "{text}");
    assert!(node(&area, name)["spec"]["unschedulable"].is_null(), "{text}");
    assert_eq!(pods_on(&area, name), 1);

    let web = format!("/apis/apps/v1/namespaces/{shop}/deployments/web");
    area.patch(&web, &json!({"spec": {"replicas": 2}}));
    let (code, text) = run(&["plan", name]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("  certain  "), "{text}");
    let (code, text) = run(&drain);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(pods_on(&area, name), 0);
}
