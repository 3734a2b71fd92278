//! Tests the text of every error in a policy's specification.

use scupper_common::samples::errors;
use scupper_common::variants;

use super::{
    Capability, Grant, GrantError, HttpGrant, HttpGrantError, HttpRule, HttpTargetError, HttpWant, NameError,
    Origin, PrefixError, SecretGrantError, UrlError, check_grant, check_policy_name,
};

variants!(NameError: Form Reserved);
variants!(GrantError: Form Wasi Capability);
variants!(PrefixError: Form Subject Fact Reserved);
variants!(UrlError: Syntax Long Scheme Credentials Fragment Written Host Path Port NotOrigin);
variants!(HttpGrantError: Origin Method Path CaWithoutTls);
variants!(HttpTargetError: Form Query Grant);
variants!(SecretGrantError: Name Twice Nowhere Origin Ungranted CaptureOrigin Header Empty NoSource);

fn prefix(capability: Capability, target: &str) -> PrefixError {
    let target = target.to_owned();
    check_grant(&Grant { capability, target }).unwrap_err()
}

fn origin(text: &str) -> UrlError {
    Origin::parse(text).unwrap_err()
}

fn urls() -> Vec<UrlError> {
    let long = format!("https://example.com/{}", "x".repeat(9000));
    let texts = [
        "example.com",
        &long,
        "ftp://example.com",
        "https://me:password@example.com",
        "https://example.com#top",
        "https://example.com:0443",
        "https://*.example.com",
        "https://example.com/a//b",
        "https://example.com:10250",
        "https://example.com/v3",
    ];
    texts.map(origin).into()
}

fn http() -> Vec<HttpGrantError> {
    let grant = |origin: &str, method: &str, path: &str, ca: bool| HttpGrant {
        origin: origin.to_owned(),
        methods: vec![method.to_owned()],
        paths: vec![path.to_owned()],
        ca: ca.then(|| "ca.pem".into()),
        ..HttpGrant::default()
    };
    let grants = [
        grant("https://example.com/v3", "GET", "/", false),
        grant("https://example.com", "get", "/", false),
        grant("https://example.com", "GET", "v3", false),
        grant("http://example.com", "GET", "/", true),
    ];
    let refused = |grant: &HttpGrant| HttpRule::of(grant).unwrap_err();
    grants.iter().map(refused).collect()
}

fn secrets() -> Vec<SecretGrantError> {
    let url = || origin("example.com");
    vec![
        SecretGrantError::Name("pass word".to_owned()),
        SecretGrantError::Twice,
        SecretGrantError::Nowhere,
        SecretGrantError::Origin(url()),
        SecretGrantError::Ungranted {
            field: "origins",
            origin: "https://example.com".to_owned(),
        },
        SecretGrantError::CaptureOrigin(url()),
        SecretGrantError::Header("X Auth".to_owned()),
        SecretGrantError::Empty("secret.namespace"),
        SecretGrantError::NoSource,
    ]
}

#[test]
fn every_error() {
    let names = ["Slurm", "kubectl"].map(|name| check_policy_name(name).unwrap_err());
    let grants = ["events", "wasi", "sockets:all"].map(|text| text.parse::<Grant>().unwrap_err());
    let prefixes = [
        prefix(Capability::PodAnnotations, "nodes"),
        prefix(Capability::Events, "nodes"),
        prefix(Capability::Facts, "everything"),
        prefix(Capability::NodeAnnotations, "node.kubernetes.io/"),
    ];
    let targets = [
        "https://example.com",
        "GET https://example.com/v3?x",
        "GET example.com",
    ];
    let targets = targets.map(|target| target.parse::<HttpWant>().unwrap_err());
    let all = [
        errors("NameError", &names),
        errors("GrantError", &grants),
        errors("PrefixError", &prefixes),
        errors("UrlError", &urls()),
        errors("HttpGrantError", &http()),
        errors("HttpTargetError", &targets),
        errors("SecretGrantError", &secrets()),
    ];
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("errors", all.concat());
    });
}
