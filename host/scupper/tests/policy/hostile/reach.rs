//! Rows 11 and 12: guests that ask for capabilities that are not theirs. The tables of addresses, names, redirects and
//! secrets are with the tests of `http`; here are the answers to a guest without any grant.

use scupper_engine::{HookPhase, StepOutcome};

use super::beside;
use crate::support::{FakeCluster, grant, runtime, spec, step};

/// The answers to these lines of a guest without a grant.
async fn reported(lines: &str) -> String {
    let mut spec = spec("fetches");
    spec.grants = vec![grant("node-annotations:seen.example.com/")];
    let cluster = std::sync::Arc::new(FakeCluster::default());
    let loaded = scupper_policy::Policies::load(&runtime(), &[spec], cluster).await;
    let policies = loaded.unwrap();
    let attack = async || step(&policies, HookPhase::BeforeDrain, lines.as_bytes()).await;
    let (outcomes, _) = beside(1, attack).await;
    let [StepOutcome::Failed { message, .. }] = outcomes.as_slice() else {
        panic!("{outcomes:?}")
    };
    assert_eq!(policies.usage()[0].total.response_bytes, 0);
    message.clone()
}

pub(super) async fn row_11_requests_to_where_nobody_sent_it() {
    let targets = [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "https://kubernetes.default.svc/api/v1/secrets",
        "https://127.0.0.1:10250/pods",
        "http://localhost:9090/metrics",
        "https://user:password@example.com/",
        "file:///etc/passwd",
    ];
    for target in targets {
        let message = reported(&format!("GET {target}\nsend")).await;
        assert!(
            message.contains("not granted") || message.contains("invalid"),
            "{target}: {message}"
        );
    }
}

pub(super) async fn row_12_a_secret_by_its_name() {
    let message = reported("GET https://example.com/\nsecret-header authorization token\nsend").await;
    assert!(message.contains("not granted"), "{message}");
}
