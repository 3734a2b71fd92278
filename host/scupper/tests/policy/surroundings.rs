//! The checks of policies: their findings about the environment.

use scupper_policy::{PolicyFinding, Severity};
use scupper_policy_spec::{HttpGrant, PolicySpec};

use crate::http::rig::{LOOPBACK, Rig};
use crate::http::server::{Server, response};
use crate::support::{grant, load, load_spec, node, short, spec};

/// The guest with this configuration, and no grant of requests.
fn surrounded(config: &[(&str, &str)]) -> PolicySpec {
    let config = config.iter();
    PolicySpec {
        grants: vec![grant("node-annotations:seen.example.com/"), grant("events:node")],
        config: config
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..spec("surrounded")
    }
}

async fn findings(spec: PolicySpec) -> Vec<PolicyFinding> {
    let policies = load_spec(spec).await.unwrap();
    let mut checked = policies.check(Some(&node())).await;
    assert_eq!(checked.len(), 1);
    checked.remove(0).findings
}

#[tokio::test]
async fn findings_come_with_severity_and_fix_cut_to_size() {
    let long = "x".repeat(3000);
    let lines =
        format!("ok|API|v42 is served|\nwarning|token|ends in 2 days|renew it\nerror|{long}|{long}|{long}");
    let found = findings(surrounded(&[("findings", &lines)])).await;
    let reported = |finding: &PolicyFinding| {
        let PolicyFinding {
            severity,
            subject,
            message,
            fix,
        } = finding.clone();
        (severity, subject, message, fix)
    };
    let text = str::to_owned;
    assert_eq!(
        reported(&found[0]),
        (Severity::Ok, text("node"), text("node-1"), text(""))
    );
    assert_eq!(
        reported(&found[1]),
        (Severity::Ok, text("API"), text("v42 is served"), text(""))
    );
    assert_eq!(
        reported(&found[2]),
        (
            Severity::Warning,
            text("token"),
            text("ends in 2 days"),
            text("renew it")
        )
    );
    assert_eq!(found[3].severity, Severity::Error);
    assert!(found[3].subject.len() <= 64 && found[3].message.len() <= 1024 && found[3].fix.len() <= 1024);
    let many = "ok|a|b|\n".repeat(100);
    assert_eq!(findings(surrounded(&[("findings", &many)])).await.len(), 32);
}

#[tokio::test]
async fn without_a_node_it_receives_none() {
    let policies = load_spec(surrounded(&[])).await.unwrap();
    let checked = policies.check(None).await;
    assert_eq!(checked[0].findings[0].message, "none");
}

#[tokio::test]
async fn a_policy_without_surroundings_is_loaded_and_checks_nothing() {
    assert_eq!(load("waves").await.check(Some(&node())).await, []);
}

#[tokio::test]
async fn a_policy_for_other_nodes_is_not_asked_about_this_one() {
    let mut spec = surrounded(&[]);
    spec.node_selector.insert("zone".to_owned(), "b".to_owned());
    let policies = load_spec(spec).await.unwrap();
    assert_eq!(policies.check(Some(&node())).await, []);
    assert_eq!(policies.check(None).await.len(), 1);
}

#[tokio::test]
async fn a_check_that_traps_or_does_not_end_is_an_error() {
    for (config, words) in [
        (&[("do", "trap")][..], "unreachable"),
        (&[("do", "spin")], "CPU time"),
    ] {
        let found = findings(PolicySpec {
            limits: short(),
            ..surrounded(config)
        })
        .await;
        assert_eq!(found[0].severity, Severity::Error);
        assert!(found[0].message.contains(words), "{found:?}");
    }
}

#[tokio::test]
async fn it_asks_servers_and_changes_nothing() {
    let server = Server::start(|_| response("200 OK", "pong")).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let methods = "GET,POST,PUT,PATCH,DELETE";
    for (method, severity, words) in [
        ("GET", Severity::Ok, "pong"),
        ("POST", Severity::Ok, "pong"),
        ("PUT", Severity::Error, "`check` may look and change nothing"),
        ("PATCH", Severity::Error, "`check` may look and change nothing"),
        ("DELETE", Severity::Error, "`check` may look and change nothing"),
    ] {
        let wants = format!("{methods} {origin}");
        let mut rig = Rig::new();
        rig.spec = PolicySpec {
            http: vec![HttpGrant {
                origin: origin.clone(),
                methods: methods.split(',').map(str::to_owned).collect(),
                networks: LOOPBACK,
                ..HttpGrant::default()
            }],
            ..surrounded(&[("wants", &wants), ("url", &origin), ("method", method)])
        };
        let loaded = rig.load().await;
        let found = loaded.policies.check(None).await.remove(0).findings;
        assert_eq!(found[1].severity, severity, "{method}: {found:?}");
        assert!(found[1].message.contains(words), "{method}: {found:?}");
    }
    let touched = findings(surrounded(&[("do", "touch")])).await;
    assert_eq!(touched[0].message.matches("NotGranted").count(), 2, "{touched:?}");
}
