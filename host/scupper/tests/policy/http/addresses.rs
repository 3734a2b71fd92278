//! The addresses of a request: only granted ones, whatever a name resolves to.

use scupper_policy::Endpoint;
use scupper_policy_spec::{HttpGrant, Networks};

use super::rig::Rig;
use super::server::Server;

const PRIVATE: Networks = Networks {
    loopback: false,
    private: true,
};

/// A policy that may send to any address of this name, if its networks allow it.
fn granted(origin: &str, networks: Networks) -> Rig {
    let grant = HttpGrant {
        origin: origin.to_owned(),
        networks,
        ..HttpGrant::default()
    };
    Rig::new().http(grant).wants(&format!("http GET {origin}"))
}

#[tokio::test]
async fn every_address_of_a_name_is_checked_before_one_is_used() {
    let server = Server::echo().await;
    let origin = format!("http://name.test:{}", server.port);
    let rig = Rig::new().origin(&origin);
    let loaded = rig.load().await;
    let get = format!("GET {origin}/");
    for addresses in [
        &["127.0.0.1", "169.254.169.254"][..],
        &["169.254.169.254", "127.0.0.1"],
        &["127.0.0.1", "10.0.0.1"],
        &["127.0.0.1", "::ffff:10.0.0.1"],
        &["127.0.0.1", "fe80::1"],
        &["127.0.0.1", "0.0.0.0"],
        &["::127.0.0.1"],
        &["2002:7f00:1::"],
        &["64:ff9b:1::7f00:1"],
        &["fd00:ec2::254"],
        &["0.0.0.0"],
        &["::"],
    ] {
        rig.names.set("name.test", addresses);
        let reported = loaded.step(&[&get, "send"]).await;
        assert!(
            reported.starts_with("not granted: name.test has the address "),
            "{addresses:?}: {reported}"
        );
    }
    assert!(server.requests().is_empty());
    // The name was granted all the time; now its addresses are.
    rig.names.set("name.test", &["127.0.0.1", "::ffff:127.0.0.1"]);
    assert!(loaded.step(&[&get, "send"]).await.starts_with("200 "));
}

#[tokio::test]
async fn loopback_and_private_addresses_need_a_grant_each() {
    let server = Server::echo().await;
    for (host, networks, wrong) in [
        (
            "a.test",
            Networks::default(),
            "not granted: a.test has the address 127.0.0.1, and it is a loopback address; the grant would need \
             networks: [loopback]",
        ),
        (
            "127.0.0.1",
            PRIVATE,
            "not granted: 127.0.0.1 has the address 127.0.0.1, and it is a loopback address",
        ),
        (
            "[::1]",
            PRIVATE,
            "not granted: ::1 has the address ::1, and it is a loopback",
        ),
        (
            "[::ffff:7f00:1]",
            PRIVATE,
            "not granted: ::ffff:7f00:1 has the address 127.0.0.1, and it is a loopback address",
        ),
        (
            "10.1.2.3",
            super::rig::LOOPBACK,
            "not granted: 10.1.2.3 has the address 10.1.2.3, and it is a private address; the grant would need \
             networks: [private]",
        ),
    ] {
        let origin = format!("http://{host}:{}", server.port);
        let loaded = granted(&origin, networks).load().await;
        let reported = loaded.step(&[&format!("GET {origin}/"), "send"]).await;
        assert!(reported.starts_with(wrong), "{reported}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn the_api_server_is_closed_under_every_name() {
    let server = Server::echo().await;
    let origin = format!("http://jobs.test:{}", server.port);
    let endpoint = |host: &str, port: u16| Endpoint {
        host: host.to_owned(),
        port,
    };
    let get = format!("GET {origin}/");
    for (host, port, open) in [
        ("jobs.test", server.port, false),
        ("JOBS.test", server.port, false),
        ("127.0.0.1", server.port, false),
        // By its address, under another name.
        ("kubernetes.test", server.port, false),
        // Another server on the same machine.
        ("127.0.0.1", 6443, true),
        ("10.0.0.1", server.port, true),
    ] {
        let mut rig = Rig::new().origin(&origin);
        rig.forbidden = vec![endpoint("192.168.0.1", 1), endpoint(host, port)];
        let reported = rig.load().await.step(&[&get, "send"]).await;
        let closed = format!("not granted: {origin} is the API server, which only the driver talks to");
        assert_eq!(reported == closed, !open, "{host}:{port}: {reported}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_request_line_is_unambiguous() {
    let server = Server::echo().await;
    let port = server.port;
    let origin = format!("http://jobs.test:{port}");
    let http = HttpGrant {
        origin: origin.clone(),
        paths: vec!["/v1/".to_owned()],
        networks: super::rig::LOOPBACK,
        ..HttpGrant::default()
    };
    let loaded = Rig::new()
        .http(http)
        .wants(&format!("http GET {origin}/v1/"))
        .load()
        .await;
    for (path, wrong) in [
        ("/v1/../admin", "invalid request: "),
        ("/v1/%2e%2e/admin", "invalid request: "),
        ("/v1/..%2fadmin", "invalid request: "),
        ("/v1/..;/admin", "invalid request: "),
        ("/v1\\..\\admin", "invalid request: "),
        ("/v1//admin", "invalid request: "),
        ("/v1/ HTTP/1.1", "invalid request: "),
        ("/v1/#x", "invalid request: "),
        ("/v10", "not granted: GET http://jobs.test"),
        ("/", "not granted: GET http://jobs.test"),
        ("/http://evil.test/v1/", "invalid request: "),
        ("@127.0.0.1/v1/", "invalid request: "),
    ] {
        let reported = loaded.step(&[&format!("GET {origin}{path}"), "send"]).await;
        assert!(reported.starts_with(wrong), "{path}: {reported}");
    }
    for url in [
        format!("http://JOBS.test:{port}/v1/"),
        format!("http://jobs.test.:{port}/v1/"),
        format!("http://jobs.test:0{port}/v1/"),
        format!("http://2130706433:{port}/v1/"),
        format!("http://0177.0.0.1:{port}/v1/"),
        format!("http://0x7f000001:{port}/v1/"),
        format!("http://127.1:{port}/v1/"),
        format!("http://127.0.0.1:{port}/v1/"),
        format!("https://jobs.test:{port}/v1/"),
        "http://jobs.test/v1/".to_owned(),
    ] {
        let reported = loaded.step(&[&format!("GET {url}"), "send"]).await;
        assert!(
            reported.starts_with("invalid request: ") || reported.starts_with("not granted: "),
            "{url}: {reported}"
        );
    }
    for method in ["HEAD", "POST", "PUT", "PATCH", "DELETE"] {
        let reported = loaded.step(&[&format!("{method} {origin}/v1/"), "send"]).await;
        assert!(
            reported.starts_with(&format!("not granted: {method} {origin}/v1/ is ")),
            "{reported}"
        );
    }
    assert!(server.requests().is_empty());
}
