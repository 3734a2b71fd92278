//! The check of a file and the driver that uses it agree on every grant of `http`: both use one parser.

use scupper_config::{Problem, read_text};
use scupper_policy_spec::HttpGrant;

use crate::{HEAD, good, problems};

/// A policy with one grant of `http`, in line 7.
fn policy(grant: &str) -> String {
    format!("policies:\n- name: a\n  module: a.wasm\n  grants:\n    http: [{grant}]\n")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn grants_that_a_driver_would_refuse_are_refused_with_their_field() {
    let origin = "policies[0].grants.http[0].origin";
    let path = "policies[0].grants.http[0].paths[0]";
    for (grant, field, words) in [
        (
            "origin: \"https://*\"",
            origin,
            "characters that a host name cannot have",
        ),
        (
            "origin: \"https://*.example.com\"",
            origin,
            "characters that a host name cannot have",
        ),
        ("origin: \"https://a.example.com:10250\"", origin, "port 10250"),
        ("origin: \"https://a.example.com:0\"", origin, "port 0"),
        ("origin: \"https://0x7f.1\"", origin, "use https://127.0.0.1"),
        (
            "origin: \"https://a.example.com\", paths: [/a//b]",
            path,
            "a path prefix",
        ),
        (
            "origin: \"https://a.example.com\", paths: [/v3*]",
            path,
            "a path prefix",
        ),
        (
            "origin: \"http://a.example.com\", ca: ca.pem",
            "policies[0].grants.http[0].ca",
            "the origin is http, which has no certificates",
        ),
    ] {
        let reported = problems(&policy(&format!("{{{grant}}}")));
        let [
            Problem {
                line: 7,
                field: at,
                message,
                ..
            },
        ] = reported.as_slice()
        else {
            panic!("{grant}: {reported:?}");
        };
        assert_eq!(at, field, "{grant}");
        assert!(message.contains(words), "{grant}: {message}");
    }
}

#[test]
fn a_host_may_be_written_in_capitals_and_the_usual_port_left_out() {
    for origin in ["https://A.example.com:443", "https://a.example.COM"] {
        let read = good(&policy(&format!("{{origin: {}}}", quoted(origin))));
        assert_eq!(read.policies[0].http[0].origin, "https://a.example.com");
    }
    // A grant may name everything that a request may have.
    good(&policy("{origin: \"https://a.example.com\", paths: [/a%20b/]}"));
}

#[test]
fn the_check_and_the_driver_agree() {
    let hosts = [
        "a.example.com",
        "A.example.com",
        "*",
        "*.a.com",
        "a_b",
        "10.0.0.1",
        "0x7f.1",
        "[::1]",
        "[fd00::1]",
        "[::ffff:1.2.3.4]",
        "u@a",
        "a b",
        "ä.example.com",
        "",
    ];
    let ports = [
        "", ":443", ":80", ":8080", ":0443", ":0", ":10250", ":10255", ":99999", ":",
    ];
    let origins = hosts.iter().flat_map(|host| {
        let of = move |port: &&str| {
            [
                format!("https://{host}{port}"),
                format!("HTTP://{host}{port}"),
                format!("http://{host}{port}/"),
            ]
        };
        ports.iter().flat_map(of)
    });
    let paths = [
        "/", "/v3", "/v3/", "/a//b", "//", "/v3*", "/a/../b", "/a/./b", "/a%20b", "/a%2fb", "/a%", "/a b",
        "/a;b", "/..;/b", "v3", "", "/a?b", "/a#b", "/ä", "/a\\b",
    ];
    let paths = paths
        .iter()
        .map(|path| ("https://a.example.com".to_owned(), vec![(*path).to_owned()]));
    let (mut taken, mut refused) = (0, 0);
    for (origin, paths) in origins.map(|origin| (origin, Vec::new())).chain(paths) {
        let written: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
        let grant = format!("{{origin: {}, paths: [{}]}}", quoted(&origin), written.join(", "));
        let text = format!("{HEAD}{}", policy(&grant));
        let checked = read_text("/etc/scupper/scupper.yaml".as_ref(), &text);
        let driver = HttpGrant {
            origin,
            paths,
            ..HttpGrant::default()
        };
        assert_eq!(
            checked.is_ok(),
            driver.check().is_ok(),
            "{grant}: {:?}",
            driver.check()
        );
        if checked.is_ok() { taken += 1 } else { refused += 1 }
    }
    assert!(taken > 10 && refused > 10, "{taken} taken, {refused} refused");
}
