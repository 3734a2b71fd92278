//! The grants of an operator, the requests of a policy, and the errors for both.

use scupper_policy::MissingGrant;
use scupper_policy_spec::{HttpGrant, SecretGrant, SecretSource};

use super::rig::Rig;
use super::server::Server;
use crate::support::{fault, grant};

/// The error of a policy that is not loaded.
async fn refused(rig: Rig) -> String {
    let Err(error) = rig.try_load().await else {
        panic!("it was loaded")
    };
    fault(error).1
}

fn http(origin: &str) -> HttpGrant {
    HttpGrant {
        origin: origin.to_owned(),
        ..HttpGrant::default()
    }
}

fn secret(name: &str, source: SecretSource, origins: &[&str]) -> SecretGrant {
    SecretGrant {
        name: name.to_owned(),
        source,
        origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
    }
}

fn file() -> SecretSource {
    SecretSource::File("/etc/scupper/password".into())
}

#[tokio::test]
async fn a_wrong_grant_of_requests_names_the_field_and_the_valid_values() {
    let with = |change: fn(&mut HttpGrant)| {
        let mut grant = http("https://a.example.com");
        change(&mut grant);
        grant
    };
    for (grant, reported) in [
        (
            http("a.example.com"),
            "the grant http of `a.example.com`: origin: `a.example.com` is not a valid URL",
        ),
        (
            http("https://a.example.com/v3"),
            "origin: `https://a.example.com/v3` is more than an origin: write https://HOST or https://HOST:PORT",
        ),
        (
            http("https://*.example.com"),
            "has characters that a host name cannot have",
        ),
        (http("https://node.example.com:10250"), "it is the kubelet's"),
        (
            with(|grant| grant.methods = vec!["get".to_owned()]),
            "methods: `get` is not one of GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            with(|grant| grant.paths = vec!["/v3/../".to_owned()]),
            "paths: `/v3/../` must be a path prefix",
        ),
        (
            with(|grant| grant.origin = "http://a.example.com".to_owned()).with_ca(),
            "ca: the origin is http, which has no certificates",
        ),
    ] {
        let text = refused(Rig::new().http(grant)).await;
        assert!(text.contains(reported), "{text}");
    }
}

trait WithCa {
    fn with_ca(self) -> Self;
}

impl WithCa for HttpGrant {
    fn with_ca(mut self) -> Self {
        self.ca = Some("/etc/ca.pem".into());
        self
    }
}

#[tokio::test]
async fn a_wrong_grant_of_a_secret_names_the_field_and_the_valid_values() {
    let a = "https://a.example.com";
    let captured = |origin: &str, header: &str| SecretSource::Captured {
        origin: origin.to_owned(),
        header: header.to_owned(),
    };
    for (grants, reported) in [
        (
            vec![secret("pass word", file(), &[a])],
            "the grant of the secret `pass word`: name: must be 1 to 63 letters",
        ),
        (vec![secret("", file(), &[a])], "name: must be 1 to 63 letters"),
        (
            vec![secret("x", file(), &[a]), secret("x", file(), &[a])],
            "the grant of the secret `x`: name: another secret has the same name",
        ),
        (vec![secret("x", file(), &[])], "origins: there are none"),
        (
            vec![secret("x", file(), &["https://b.example.com"])],
            "origins: https://b.example.com is not among the origins that http grants; add it there first",
        ),
        (
            vec![secret("x", file(), &["https://a.example.com/v3"])],
            "origins: `https://a.example.com/v3` is more than an origin",
        ),
        (
            vec![secret("x", captured("https://b.example.com", "X-Token"), &[a])],
            "captured-from.origin: https://b.example.com is not among",
        ),
        (
            vec![secret("x", captured(a, "X Token"), &[a])],
            "captured-from.header: `X Token` is not a valid header name",
        ),
        (
            vec![secret("x", SecretSource::File("".into()), &[a])],
            "file: must not be empty",
        ),
    ] {
        let mut rig = Rig::new().http(http(a));
        rig.spec.secrets = grants;
        let text = refused(rig).await;
        assert!(text.contains(reported), "{text}");
    }
}

#[tokio::test]
async fn missing_grants_are_reported_as_the_operator_would_write_them() {
    let rig = || {
        Rig::new()
            .wants("http GET,POST https://keystone.example.com:5000/v3/")
            .wants("secret password")
    };
    let text = refused(rig()).await;
    assert!(
        text.contains(
            "add --grant 'p=http:GET,POST https://keystone.example.com:5000/v3/', and under the `grants` of p"
        ),
        "{text}"
    );
    let mut in_file = rig();
    in_file.spec.spec_source = scupper_policy_spec::SpecSource::File;
    let Err(error) = in_file.try_load().await else {
        panic!("it was loaded")
    };
    let scupper_policy::LoadFault::NotGranted(missing) = *error.fault else {
        panic!("{error:?}")
    };
    assert_eq!(
        MissingGrant::yaml(&missing),
        [
            "http: [{origin: \"https://keystone.example.com:5000\", methods: [GET, POST], paths: [\"/v3\"]}]",
            "secrets: [{name: password, file: /PATH/OF/IT, origins: [\"https://WHERE.IT.GOES\"]}]",
        ]
    );
}

#[tokio::test]
async fn a_request_that_cannot_be_granted_reports_the_reason() {
    for (want, reported) in [
        ("http everything", "`everything` is not an http target"),
        ("http GET https://a.example.com/?x", "has a query or a fragment"),
        ("http FETCH https://a.example.com/", "`FETCH` is not one of GET"),
        (
            "http GET https://a.example.com:0443/",
            "is a non-canonical URL, use https://a.example.com",
        ),
        // The file and --grant accept a host in capitals, so a request does too: only its grant is missing.
        (
            "http GET https://A.example.com/",
            "to allow it, add --grant 'p=http:GET https://A.example.com/'",
        ),
        ("secret pass/word", "name: must be 1 to 63 letters"),
    ] {
        let text = refused(Rig::new().wants(want)).await;
        assert!(text.contains(reported), "{text}");
    }
}

#[tokio::test]
async fn grants_that_a_policy_did_not_request_are_not_given() {
    let server = Server::echo().await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec
        .config
        .insert("wants".to_owned(), format!("http GET {origin}/v1/"));
    rig.spec.secrets = vec![secret("password", file(), &[&origin])];
    let loaded = rig.load().await;
    let reported = loaded.step(&[&format!("GET {origin}/v2/"), "send"]).await;
    assert!(
        reported.ends_with("is granted, but `describe` does not say that the policy wants it"),
        "{reported}"
    );
    let reported = loaded
        .step(&[&format!("GET {origin}/v1/"), "bearer password", "send"])
        .await;
    assert_eq!(
        reported,
        "not granted: the secret `password` is granted, but `describe` does not say that the policy wants it"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_command_line_grants_requests_in_short() {
    let mut rig = Rig::new().wants("http GET https://jobs.example.com/v1/");
    rig.spec
        .grants
        .push(grant("http:GET,POST https://jobs.example.com/v1"));
    rig.load().await;
    rig.spec.grants.push(grant("secret:password"));
    let text = refused(rig).await;
    assert!(
        text.contains("--grant cannot name the source of a secret"),
        "{text}"
    );
    let mut wrong = Rig::new();
    wrong.spec.grants.push(grant("http:https://jobs.example.com"));
    let text = refused(wrong).await;
    assert!(
        text.contains("is not an http target: write methods, a space and a URL prefix"),
        "{text}"
    );
}
