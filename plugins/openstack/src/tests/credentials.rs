//! A credential that was accepted and is rejected now, or has lost a permission.

use std::time::Duration;

use scupper_sdk::http::{Error, Request, Response};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};

use super::nova::{AUTH, Cloud, HOST};
use super::{failed, pending, step};
use crate::OpenStack;

/// Keystone has disabled the user: its tokens are worth nothing any more either.
fn rejects(cloud: &Cloud) {
    cloud.with(|state| state.instead = Box::new(|_| Some(Ok(Response::new(401, "disabled")))));
}

fn accepts(cloud: &Cloud) {
    cloud.with(|state| state.instead = Box::new(|_| None));
}

#[test]
fn a_credential_that_was_accepted_is_waited_for_and_the_drain_continues() {
    for (timeout, words, pause) in [
        (None, "until 2027-01-15 08:05 UTC", 75),
        (Some("40s"), "until 2027-01-15 08:00 UTC", 10),
    ] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        if let Some(timeout) = timeout {
            host.config("token-timeout", timeout);
        }
        cloud.server("s1", "active");
        pending(&host);
        rejects(&cloud);
        let waiting = pending(&host);
        assert!(
            waiting
                .progress
                .starts_with("Keystone rejects the credential: disabled; waiting for a valid credential ")
                && waiting.progress.ends_with(words),
            "{waiting:?}"
        );
        assert_eq!(waiting.again_after, pause * 1000, "it must not lock the account");
        assert_eq!(waiting.waiting_for[0].what, "the credential for Nova");
        accepts(&cloud);
        cloud.end_all("completed");
        pending(&host);
        assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
    }
}

#[test]
fn a_credential_that_stays_rejected_ends_the_drain_after_four_more_logins() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    rejects(&cloud);
    let mut logins = 0;
    let logged_in = |cloud: &Cloud| cloud.count("POST /auth/tokens");
    let before = logged_in(&cloud);
    let message = loop {
        logins += 1;
        match step(&host, Phase::BeforeDrain) {
            Outcome::Pending(pending) => host.advance(Duration::from_millis(pending.again_after)),
            Outcome::Failed(failure) => break failure.message,
            Outcome::Done => panic!("it is not done"),
        }
    };
    assert!(
        message.ends_with("; no valid credential within 5m (`token-timeout`)"),
        "{message}"
    );
    assert_eq!((logins, logged_in(&cloud) - before), (5, 5));
}

#[test]
fn under_our_own_cordon_the_credential_was_accepted_before() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.cordon(true);
    rejects(&cloud);
    let waiting = pending(&host);
    assert!(
        waiting.progress.contains("waiting for a valid credential"),
        "{waiting:?}"
    );
    let host = Host::new();
    rejects(&Cloud::new(&host));
    failed(&host, Phase::BeforeDrain);
}

#[test]
fn a_secret_that_is_missing_counts_as_rejected() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    let missing = |request: &Request| {
        let is_login = request.url.starts_with(AUTH);
        is_login.then(|| Err(Error::NoSecret("no such file".to_owned())))
    };
    cloud.with(|state| state.instead = Box::new(missing));
    let message = failed(&host, Phase::BeforeCordon);
    assert!(message.contains("no such file"), "{message}");
    let findings = host.check::<OpenStack>();
    assert_eq!(findings[0].subject, "credential", "{findings:?}");
}

#[test]
fn a_lost_permission_is_waited_for_and_one_that_was_never_there_is_not() {
    let forbids = |cloud: &Cloud, method: &'static str| {
        let forbidden = move |request: &Request| {
            let is_it = request.method.to_string() == method && !request.url.starts_with(AUTH);
            is_it.then(|| Ok(Response::new(403, "Policy doesn't allow it")))
        };
        cloud.with(|state| state.instead = Box::new(forbidden));
    };
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    host.cordon(true);
    forbids(&cloud, "PUT");
    let message = failed(&host, Phase::BeforeDrain);
    assert!(
        message.contains("PUT /os-services/id-of-compute-a: 403"),
        "{message}"
    );
    accepts(&cloud);
    pending(&host);
    forbids(&cloud, "GET");
    let waiting = pending(&host);
    assert!(waiting.progress.contains("403") && waiting.progress.contains("waiting for a valid credential"));
    accepts(&cloud);
    cloud.end_all("completed");
    pending(&host);
    assert_eq!(step(&host, Phase::BeforeDrain), Outcome::Done);
}

#[test]
fn a_cancel_does_not_wait_for_a_credential_and_an_uncordon_does() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    pending(&host);
    rejects(&cloud);
    let message = failed(&host, Phase::OnCancel);
    assert!(
        message.ends_with("; anything that this drain changed in Nova stays until the node is uncordoned"),
        "{message}"
    );
    assert!(matches!(step(&host, Phase::AfterUncordon), Outcome::Pending(_)));
    accepts(&cloud);
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}

#[test]
fn a_credential_that_may_not_read_what_a_drain_needs_fails_before_any_change() {
    for path in [
        "/os-migrations",
        "/servers/s1",
        "/migrations",
        "/os-instance-actions",
    ] {
        for phase in [Phase::BeforeCordon, Phase::BeforeDrain] {
            let host = Host::new();
            let cloud = Cloud::new(&host);
            cloud.server("s1", "active");
            cloud.with(|state| {
                state.instead = Box::new(move |request| {
                    let is_it = request.url.contains(path) && !request.url.contains("/detail");
                    is_it.then(|| Ok(Response::new(403, "Policy doesn't allow it")))
                });
            });
            let message = failed(&host, phase);
            assert!(message.contains(path) && message.contains("403"), "{message}");
            assert_eq!(cloud.count("PUT"), 0, "{path}");
            let findings = host.check::<OpenStack>();
            let found = findings.iter().find(|finding| finding.subject == "rights");
            assert!(
                found.is_some_and(|found| found.message.contains(path)),
                "{path}: {findings:?}"
            );
        }
    }
}
