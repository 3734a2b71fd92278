//! Requests as an author writes them, answered by `testing::Host`.

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hooks, Node, Outcome, Phase, Planner, Policy, Subject, config,
    description,
    http::{Error, HeaderValue, Method, Request, Response},
    testing::Host,
};

/// Sends the requests in its configuration.
struct Sender;

scupper_sdk::export!(Sender with planner, hooks);

impl Policy for Sender {
    fn describe() -> Description {
        description!("Sends")
            .wants(Grant::http("GET,POST", "https://jobs.example.com/v1/"))
            .wants(Grant::secret("token"))
    }
}

impl Planner for Sender {
    fn plan(_drain: &Drain, _node: &Node, _draft: &mut Draft<'_>) -> Result<(), String> {
        send().map(drop).map_err(|error| error.to_string())
    }
}

impl Hooks for Sender {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain]
    }

    fn step(_call: &Call) -> Outcome {
        match send() {
            Ok(response) => Outcome::failed(format!("{} {}", response.status, response.text())).into(),
            Err(error) => Outcome::failed(error.to_string()).into(),
        }
    }
}

fn send() -> Result<Response, Error> {
    let url = config::get("url").unwrap_or_default();
    let secret = config::get("secret").unwrap_or_else(|| "token".to_owned());
    Request::post(url)
        .secret_header_after("Authorization", "Bearer ", secret)
        .json_body("{}")
        .send()
}

fn send_message(host: &Host) -> String {
    match host.step::<Sender>(Phase::BeforeDrain, Subject::Node) {
        Outcome::Failed(failure) => failure.message,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_request_is_built_field_by_field() {
    let request = Request::get("https://a.example.com/")
        .header("accept", "text/plain")
        .secret_header("x-token", "token")
        .secret_field("/auth/password", "password")
        .capture("x-subject-token", "token");
    assert_eq!((request.method, request.headers.len()), (Method::Get, 2));
    assert!(
        matches!(&request.headers[1].value, HeaderValue::Secret(text) if text.secret == "token" && text.prefix.is_empty())
    );
    assert_eq!(request.secret_fields[0].pointer, "/auth/password");
    assert_eq!(request.captures[0].header, "x-subject-token");
    let response = Response::new(204, "").with_header("Retry-After", "7");
    assert!(response.is_success());
    assert_eq!(response.header("RETRY-AFTER"), Some("7"));
}

#[test]
fn the_test_server_answers_or_fails() {
    let host = Host::new();
    host.config("url", "https://jobs.example.com/v1/jobs?node=a");
    assert_eq!(
        send_message(&host),
        "unreachable: no server: set one with `on_request`"
    );
    let mut calls = 0;
    host.on_request(move |request| {
        calls += 1;
        match calls {
            1 => Err(Error::Timeout("20 s".to_owned())),
            _ => Ok(Response::new(200, request.body.clone())),
        }
    });
    assert_eq!(send_message(&host), "timed out: 20 s");
    assert_eq!(send_message(&host), "200 {}");
}

#[test]
fn a_request_beyond_the_wanted_grants_is_refused() {
    let host = Host::new();
    host.on_request(|_| Ok(Response::new(200, "")));
    for url in [
        "https://jobs.example.com/v2/",
        "https://jobs.example.com/v1x",
        "http://jobs.example.com/v1/",
        "https://jobs.example.com.evil.example/v1/",
    ] {
        host.config("url", url);
        assert_eq!(send_message(&host), format!("not granted: http POST {url}"));
    }
    host.config("url", "https://jobs.example.com/v1");
    host.config("secret", "password");
    assert_eq!(send_message(&host), "not granted: secret password");
    let refused = host.plan::<Sender>().expect_err("planners send nothing");
    assert_eq!(refused, "not granted: only `step` may send");
}
