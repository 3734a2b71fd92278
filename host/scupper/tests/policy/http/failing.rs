//! All failures of a request, and the policy's view of them: above all, whether the request was sent.

use std::time::{Duration, Instant};

use super::rig::{Loaded, Rig};
use super::server::{Act, Server, ok, response};

/// The policy's view of a server with this behaviour.
async fn reported(answer: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static) -> String {
    let server = Server::start(answer).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec.limits.request_wall = Duration::from_millis(700);
    rig.spec.limits.response_bytes = 1000;
    let loaded = rig.load().await;
    let reported = loaded.step(&[&format!("POST {origin}/"), "send"]).await;
    server.only();
    reported
}

fn respond(text: impl Into<Vec<u8>>) -> Vec<Act> {
    vec![Act::Say(text.into())]
}

fn respond_and_stall(text: &str) -> Vec<Act> {
    vec![Act::Say(text.into()), Act::Stall]
}

#[tokio::test]
async fn an_incomplete_response_is_reported_as_sent() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf",
        "this is no HTTP\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    ] {
        let reported = reported(move |_| respond(text)).await;
        let why = reported.strip_prefix("incomplete response: ");
        assert!(
            why.is_some_and(|why| !why.is_empty() && !why.contains("whole")),
            "said once: {text:?}: {reported}"
        );
    }
}

#[tokio::test]
async fn a_slow_response_is_reported_as_sent() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\nX-",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let reported = reported(move |_| respond_and_stall(text)).await;
        assert_eq!(reported, "timed out: not complete within 0.7 s", "{text:?}");
    }
}

#[tokio::test]
async fn a_long_answer_is_cut_off() {
    let long = "x".repeat(1001);
    let chunks = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n{long}");
    let whole = ok(&long);
    for answer in [respond(chunks.clone()), whole] {
        let bytes: Vec<u8> = answer
            .into_iter()
            .flat_map(|act| match act {
                Act::Say(bytes) => bytes,
                Act::Stall => Vec::new(),
            })
            .collect();
        let reported = reported(move |_| vec![Act::Say(bytes.clone()), Act::Stall]).await;
        assert_eq!(
            reported,
            "the response is too large: the response has more than the 1000 bytes that policy `p` may take; for more add \
             to it in scupper.yaml: `limits: {response: 1Mi}`"
        );
    }
    let fits = "x".repeat(1000);
    assert!(reported(move |_| ok(&fits)).await.starts_with("200 [] [] xxx"));
}

#[tokio::test]
async fn a_long_head_is_cut_off() {
    let many = "X-A: b\r\n".repeat(101);
    let long = format!("X-A: {}\r\n", "b".repeat(200_000));
    for headers in [many, long] {
        let reported = reported(move |_| respond(format!("HTTP/1.1 200 OK\r\n{headers}\r\n"))).await;
        assert!(reported.starts_with("incomplete response: "), "{reported}");
    }
}

#[tokio::test]
async fn a_compressed_response_cannot_be_searched_and_is_refused() {
    let reported = reported(|_| response("200 OK\r\nContent-Encoding: gzip", "packed")).await;
    assert_eq!(
        reported,
        "incomplete response: the response has the content encoding `gzip`, which was not requested"
    );
}

#[tokio::test]
async fn without_a_listener_the_request_is_reported_as_not_sent() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let origin = |name: &str| format!("http://{name}.test:{port}");
    let mut rig = Rig::new()
        .origin(&origin("nobody"))
        .origin(&origin("unknown"))
        .origin(&origin("silent"));
    rig.spec.limits.request_wall = Duration::from_millis(300);
    rig.names.set("unknown.test", &[]);
    rig.names.silence("silent.test");
    let loaded = rig.load().await;
    for (name, wrong) in [
        ("nobody", "unreachable: no answer from http://nobody.test"),
        (
            "unknown",
            "unreachable: unknown.test has no address: the resolver knows none",
        ),
        (
            "silent",
            "unreachable: no connection within 0.3 s; nothing was sent",
        ),
    ] {
        let reported = loaded.step(&[&format!("GET {}/", origin(name)), "send"]).await;
        assert!(reported.starts_with(wrong), "{reported}");
    }
}

#[tokio::test]
async fn a_connection_that_closes_at_once_is_not_reported_as_a_response() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let closing = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let origin = format!("http://jobs.test:{port}");
    let loaded = Rig::new().origin(&origin).load().await;
    let reported = loaded.step(&[&format!("GET {origin}/"), "send"]).await;
    // Either may be true: the two race.
    assert!(
        reported.starts_with("incomplete response: ") || reported.starts_with("unreachable: "),
        "{reported}"
    );
    closing.abort();
}

#[tokio::test]
async fn a_policy_may_wait_shorter_but_not_longer() {
    let server = Server::start(|_| vec![Act::Stall]).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec.limits.request_wall = Duration::from_millis(600);
    let loaded = rig.load().await;
    let get = format!("GET {origin}/");
    let reported = loaded.step(&[&get, "timeout 250", "send"]).await;
    assert_eq!(reported, "timed out: not complete within 0.25 s");
    let reported = loaded.step(&[&get, "timeout 60000", "send"]).await;
    assert_eq!(reported, "timed out: not complete within 0.6 s");
    let reported = loaded.step(&[&get, "timeout 0", "send"]).await;
    assert_eq!(reported, "invalid request: a timeout of nothing leaves no time");
}

#[tokio::test]
async fn a_step_that_ends_cancels_its_request() {
    let server = Server::start(|_| vec![Act::Stall]).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec.limits.step_wall = Duration::from_millis(500);
    let loaded = rig.load().await;
    let reported = loaded.step(&[&format!("GET {origin}/"), "send"]).await;
    assert!(
        reported.contains("failed in step: it did not answer within 0.5 s"),
        "{reported}"
    );
    wait(|| server.gone() == 1).await;
}

#[tokio::test]
async fn a_step_sends_a_limited_number_of_requests() {
    let server = Server::start(|_| ok("")).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let mut rig = Rig::new().origin(&origin);
    rig.spec.limits.requests = 3;
    let loaded = rig.load().await;
    let get = format!("GET {origin}/");
    let answers = "200 [] [] ; 200 [] [] ; 200 [] [] ";
    let many = "too many requests in one step: one step may send 3; go on in the next";
    let reported = loaded.step(&[&get, "send 5"]).await;
    assert_eq!(reported, format!("{answers}; {many}; {many}"));
    // Requests that were not sent also count: a policy cannot retry for ever.
    let reported = loaded.step(&["GET nonsense", "send 3", &get, "send"]).await;
    assert!(reported.ends_with(many), "{reported}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_policy_has_a_limited_number_of_requests_in_flight() {
    let server = Server::start(|_| vec![Act::Stall]).await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = std::sync::Arc::new(Rig::new().origin(&origin).load().await);
    let send =
        |loaded: std::sync::Arc<Loaded>, get: String| async move { loaded.step(&[&get, "send"]).await };
    let get = format!("GET {origin}/");
    let waiting: Vec<_> = (0..4)
        .map(|_| tokio::spawn(send(std::sync::Arc::clone(&loaded), get.clone())))
        .collect();
    wait(|| server.requests().len() == 4).await;
    let reported = send(std::sync::Arc::clone(&loaded), get.clone()).await;
    assert_eq!(
        reported,
        "too many requests in one step: others of this policy are still under way"
    );
    for task in waiting {
        task.abort();
    }
    wait(|| server.gone() == 4).await;
}

#[tokio::test]
async fn a_request_has_size_limits() {
    let server = Server::echo().await;
    let origin = format!("http://jobs.test:{}", server.port);
    let loaded = Rig::new().origin(&origin).load().await;
    let post = format!("POST {origin}/");
    for (line, wrong) in [
        (
            "long-body 262145",
            "invalid request: the body has 262145 bytes, and 262144 are the most",
        ),
        (
            "header X-A a\\r\\nHost: evil",
            "invalid request: the value of the header `X-A` has characters other than",
        ),
        (
            "header X-A\\r\\nB b",
            "invalid request: the value of the header `X-A",
        ),
        (
            "header Host evil",
            "invalid request: only the driver sets the header `host`",
        ),
        (
            "header Transfer-Encoding chunked",
            "invalid request: only the driver sets the header `transfer-encoding`",
        ),
        (
            "header Content-Length 3",
            "invalid request: only the driver sets the header `content-length`",
        ),
        (
            "header Connection upgrade",
            "invalid request: only the driver sets the header `connection`",
        ),
        (
            "header Proxy-Authorization x",
            "invalid request: only the driver sets the header `proxy-authorization`",
        ),
        (
            "header Range bytes=0-1",
            "invalid request: only the driver sets the header `range`",
        ),
    ] {
        let reported = loaded.step(&[&post, line, "send"]).await;
        assert!(
            reported.starts_with(wrong) || reported.starts_with("invalid request: `X-A"),
            "{line}: {reported}"
        );
    }
    assert!(server.requests().is_empty());
    let reported = loaded.step(&[&post, "long-body 262144", "length"]).await;
    assert!(
        reported.parse::<usize>().is_ok_and(|bytes| bytes > 262_144),
        "{reported}"
    );
}

/// Waits until the condition holds.
async fn wait(so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(
            begin.elapsed() < Duration::from_secs(300),
            "it never came to that"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
