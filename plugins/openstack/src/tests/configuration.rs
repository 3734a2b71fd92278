//! Valid and invalid configurations.

use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase, Policy};

use super::nova::Cloud;
use super::step;
use crate::OpenStack;

#[test]
fn the_wanted_grants_follow_from_the_configuration() {
    let host = Host::new();
    assert_eq!(OpenStack::describe().wants, []);
    Cloud::new(&host);
    let wants = OpenStack::describe().wants;
    let wants: Vec<String> = wants
        .into_iter()
        .map(|grant| format!("{} {}", grant.capability, grant.target))
        .collect();
    assert_eq!(
        wants,
        [
            "http POST,DELETE http://keystone:5000/v3/auth/tokens",
            "http GET,POST,PUT,DELETE http://nova:8774",
            "secret application-credential-secret",
            "secret token",
            "events node",
        ]
    );
}

#[test]
fn a_wrong_value_is_reported_with_the_valid_ones() {
    for (key, value, words) in [
        ("auth-url", "keystone", "https://"),
        ("auth-url", "https://user@keystone", "https://"),
        ("auth-type", "v2password", "v3applicationcredential"),
        ("interface", "private", "public, internal, admin"),
        ("compute-url", "nova", "https://"),
        ("host-table", "node-1", "must be NODE=NAME"),
        ("parallel", "0", "from 1 to 10"),
        ("attempts", "many", "`many`"),
        ("order", "random", "smallest-first"),
        ("stopped", "move", "leave, cold"),
        ("others", "cold", "fail, ignore"),
        ("on-deadline", "kill", "abort, force-complete, wait"),
        (
            "auth-url",
            "http://keystone:5000/v2.0",
            "only Identity v3 is supported: set http://keystone:5000/v3",
        ),
        ("on-failure", "enable", "follow, undo, keep"),
        ("poll-seconds", "301", "from 1 to 300"),
        ("nova-compute-label", "nova", "application=nova"),
        ("password", "hunter2", "as a secret"),
        ("cacert", "/ca.pem", "beside its grant"),
        ("colour", "red", "no such key"),
    ] {
        let host = Host::new();
        Cloud::new(&host);
        host.config(key, value);
        let problems = OpenStack::check_config();
        assert!(
            problems.len() == 1 && problems[0].key == key && problems[0].message.contains(words),
            "{key}={value}: {problems:?}"
        );
        assert!(
            !problems[0].message.contains("hunter2"),
            "a secret is shown: {problems:?}"
        );
        assert!(matches!(step(&host, Phase::BeforeDrain), Outcome::Failed(_)));
    }
}

#[test]
fn all_missing_keys_are_reported_together() {
    let _host = Host::new();
    let keys: Vec<String> = OpenStack::check_config()
        .into_iter()
        .map(|problem| problem.key)
        .collect();
    assert_eq!(
        keys,
        [
            "auth-url",
            "username",
            "user-domain-name",
            "project-name",
            "project-domain-name",
            "compute-url"
        ]
    );
}

#[test]
fn a_password_or_a_named_credential_is_accepted() {
    for pairs in [
        &[
            ("application-credential-id", ""),
            ("user-id", "u"),
            ("project-id", "p"),
        ][..],
        &[
            ("application-credential-id", ""),
            ("application-credential-name", "n"),
            ("user-id", "u"),
        ],
    ] {
        let host = Host::new();
        Cloud::new(&host);
        for (key, value) in pairs {
            host.config(key, value);
        }
        assert_eq!(OpenStack::check_config(), [], "{pairs:?}");
    }
}

#[test]
fn every_key_is_in_the_schema() {
    let schema = OpenStack::describe().config_schema;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    for key in &keys {
        let host = Host::new();
        Cloud::new(&host);
        host.config(key, "");
        let unknown = OpenStack::check_config()
            .into_iter()
            .any(|problem| problem.message.contains("no such key"));
        assert!(!unknown, "{key}");
    }
    assert!(keys.len() > 30);
}
