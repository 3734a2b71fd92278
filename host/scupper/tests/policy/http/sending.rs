//! Requests and responses on the wire.

use super::rig::Rig;
use super::server::{Act, Server, ok, response};

#[tokio::test]
async fn a_request_goes_out_as_it_was_written_and_its_answer_comes_back() {
    let server = Server::start(|_| response("201 Created\r\nX-Job: 7", "made")).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    let reported = loaded
        .step(&[
            &format!("POST {origin}/v1/jobs?all=1&name=a%20b"),
            "header X-One 1",
            "body {\"name\": \"a\"}",
            "send",
        ])
        .await;
    assert_eq!(reported, "201 [x-job=7] [] made");
    let request = server.only();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /v1/jobs?all=1&name=a%20b HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: jobs.test:{}", server.port);
    let agent = concat!("user-agent: scupper/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        lines,
        [
            "content-length: 13",
            "content-type: application/json",
            &host,
            agent,
            "x-one: 1"
        ]
    );
    assert_eq!(body, "{\"name\": \"a\"}");
}

#[tokio::test]
async fn a_post_of_nothing_says_so_and_a_get_says_nothing() {
    let server = Server::echo().await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    let reported = loaded.step(&[&format!("POST {origin}"), "send"]).await;
    assert!(
        reported.contains("POST / HTTP/1.1") && reported.contains("content-length: 0"),
        "{reported}"
    );
    let reported = loaded.step(&[&format!("GET {origin}"), "send"]).await;
    assert!(
        reported.contains("GET / HTTP/1.1") && !reported.contains("content-length"),
        "{reported}"
    );
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let server = Server::start(|_| response("302 Found\r\nLocation: http://jobs.test/elsewhere", "")).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    let reported = loaded.step(&[&format!("GET {origin}/"), "send"]).await;
    assert_eq!(reported, "302 [location=http://jobs.test/elsewhere] [] ");
    server.only();
}

#[tokio::test]
async fn only_a_step_may_send() {
    let server = Server::echo().await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec.config.insert("url".to_owned(), origin);
    let loaded = rig.load().await;
    let answer = crate::support::plan(&loaded.policies, 1).await;
    assert!(
        matches!(&answer, scupper_engine::PlanAnswer::Refused { message } if message.contains("only `step` and `check` may send")),
        "{answer:?}"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_body_may_arrive_in_pieces_and_without_a_length() {
    let server = Server::start(|request| {
        if request.contains("/chunked") {
            let text =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\n two\r\n0\r\n\r\n";
            vec![Act::Say(text.into())]
        } else {
            vec![Act::Say("HTTP/1.0 200 OK\r\n\r\nto the end".into())]
        }
    })
    .await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    let reported = loaded.step(&[&format!("GET {origin}/chunked"), "send"]).await;
    assert_eq!(reported, "200 [transfer-encoding=chunked] [] one two");
    let reported = loaded.step(&[&format!("GET {origin}/old"), "send"]).await;
    assert_eq!(reported, "200 [] [] to the end");
}

#[tokio::test]
async fn a_proxy_in_the_environment_is_not_asked() {
    let server = Server::start(|_| ok("here")).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    // The name exists only for the resolver of this test, so a proxy could not know it either.
    let reported = loaded.step(&[&format!("GET {origin}/"), "send"]).await;
    assert_eq!(reported, "200 [] [] here");
    let request = server.only();
    assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request}");
}
