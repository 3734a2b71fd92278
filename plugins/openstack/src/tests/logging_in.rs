//! Tokens: login, lifetime, secrecy.

use std::time::Duration;

use scupper_sdk::http::{HeaderValue, Response};
use scupper_sdk::testing::Host;
use scupper_sdk::{Outcome, Phase};

use super::nova::Cloud;
use super::{failed, pending, step};

#[test]
fn a_token_serves_many_steps_and_is_renewed_before_it_expires() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    for _ in 0..5 {
        pending(&host);
    }
    assert_eq!(cloud.with(|state| state.logins), 1);
    host.advance(Duration::from_secs(3545));
    pending(&host);
    assert_eq!(cloud.with(|state| state.logins), 2);
}

#[test]
fn a_token_that_nova_rejects_is_replaced_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    pending(&host);
    let mut times = 0;
    cloud.with(|state| {
        state.instead = Box::new(move |request| {
            let asked = request.url.contains("os-services");
            times += usize::from(asked);
            (asked && times == 1).then(|| Ok(Response::new(401, "revoked")))
        });
    });
    pending(&host);
    assert_eq!(cloud.with(|state| state.logins), 2);
}

#[test]
fn a_401_with_a_new_token_is_fatal() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            request
                .url
                .contains("os-services")
                .then(|| Ok(Response::new(401, "")))
        });
    });
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("access rules"), "{message}");
    assert!(cloud.with(|state| state.logins) <= 2);
}

#[test]
fn a_wrong_password_is_tried_once() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            let body = r#"{"error": {"code": 401, "message": "The request you have made requires authentication."}}"#;
            request
                .url
                .contains("keystone")
                .then(|| Ok(Response::new(401, body)))
        });
    });
    let message = failed(&host, Phase::BeforeDrain);
    assert!(
        message.contains("rejects the credential") && message.contains("requires authentication"),
        "{message}"
    );
    assert_eq!(cloud.with(|state| state.asked.len()), 1);
}

#[test]
fn secrets_are_sent_by_name_and_the_token_is_captured() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| {
        state.instead = Box::new(|request| {
            if request.url.contains("keystone") && !request.body.is_empty() {
                assert_eq!(request.secret_fields.len(), 1);
                assert_eq!(request.secret_fields[0].secret, "application-credential-secret");
                assert_eq!(request.captures[0].secret, "token");
            } else {
                let token = request
                    .headers
                    .iter()
                    .find(|header| header.name == "X-Auth-Token");
                assert!(matches!(&token.unwrap().value, HeaderValue::Secret(text) if text.secret == "token"));
            }
            None
        });
    });
    assert_eq!(step(&host, Phase::BeforeCordon), Outcome::Done);
}

#[test]
fn the_token_is_revoked_at_the_end() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    assert_eq!(step(&host, Phase::AfterUncordon), Outcome::Done);
    assert_eq!(cloud.count("DELETE /auth/tokens"), 1);
}

#[test]
fn several_regions_or_a_wrong_one_are_an_error() {
    for (region, words) in [("", "one, two"), ("three", "`three`"), ("two", "compute-url")] {
        let host = Host::new();
        let cloud = Cloud::new(&host);
        host.config("region-name", region);
        let message = failed(&host, Phase::BeforeDrain);
        assert!(message.contains(words), "{region}: {message}");
        assert_eq!(cloud.count("GET"), 0);
    }
}

#[test]
fn an_old_nova_is_refused_with_its_version() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.with(|state| state.newest = "2.42");
    let message = failed(&host, Phase::BeforeDrain);
    assert!(message.contains("2.42") && message.contains("2.53"), "{message}");
}
