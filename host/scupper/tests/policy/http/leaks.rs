//! A policy that tries hard to learn a secret, and a server that helps it: no output contains the secret.

use std::io::Write;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use scupper_policy_spec::SecretSource;
use tracing::level_filters::LevelFilter;

use super::rig::{Rig, secret_file};
use super::server::{Act, Server, response};

const PASSWORD: &str = "correct-horse\"battery/staple ü";
const TOKEN: &str = "gAAAAABtoken-that-opens-everything";

/// Everything that this thread logs, down to the trace level of every library.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<u8>>>);

impl Write for Ear {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Sends the token, and repeats every answer in every encoding.
fn traitor(request: &str) -> Vec<Act> {
    if request.starts_with("POST /tokens") {
        return response(
            &format!("201 Created\r\nX-Subject-Token: {TOKEN}\r\nX-Copy: {TOKEN}"),
            format!("the token is {TOKEN}"),
        );
    }
    let percent: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let body = format!(
        "{request}\n{PASSWORD}\n{}\n{}\n{}\n{percent}\n{}",
        serde_json::json!({ "password": PASSWORD, "token": TOKEN }),
        STANDARD.encode(PASSWORD),
        STANDARD.encode(format!("user:{PASSWORD}")),
        STANDARD.encode(TOKEN),
    );
    response("200 OK\r\nX-Reported: gAAAAABtoken-that-opens-everything", body)
}

/// The query inverted, so that the search does not find itself.
fn hidden(text: &str) -> String {
    text.bytes().map(|byte| format!("{:02x}", byte ^ 0xff)).collect()
}

fn rig(origin: &str) -> Rig {
    let captured = SecretSource::Captured {
        origin: origin.to_owned(),
        header: "x-subject-token".to_owned(),
    };
    Rig::new()
        .origin(origin)
        .file("password", &secret_file(PASSWORD), &[origin])
        .secret("token", captured, &[origin])
}

#[tokio::test]
async fn no_output_contains_a_secret() {
    let ear = Ear::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(LevelFilter::TRACE)
        .with_writer({
            let ear = ear.clone();
            move || ear.clone()
        })
        .finish();
    let listening = tracing::subscriber::set_default(subscriber);
    let server = Server::start(traitor).await;
    let origin = format!("http://traitor.test:{}", server.port);
    let rig = rig(&origin);
    let loaded = rig.load().await;
    let (post, get) = (
        format!("POST {origin}/tokens"),
        format!("GET {origin}/?probe=query-word"),
    );
    let searches = [PASSWORD, &PASSWORD[..12], TOKEN, &TOKEN[..12], "traitor.test"];
    let searches: Vec<String> = searches
        .iter()
        .map(|text| format!("search {}", hidden(text)))
        .collect();
    let mut script: Vec<&str> = vec![
        &post,
        "body {\"password\": \"\"}",
        "field /password password",
        "capture X-Subject-Token token",
        "send",
        &get,
        "secret-header X-Auth-Token token",
        "bearer password",
        "send",
        // A header that cannot contain it, a place where it is not allowed, a server that does not exist.
        "header x y\u{7}z",
        "send",
        "GET http://traitor.test:1/",
        "bearer password",
        "send",
    ];
    script.push("shout");
    let first = loaded.step(&script).await;
    script.extend(searches.iter().map(String::as_str));
    let reported = loaded.step(&script).await;
    drop(listening);

    // It really was sent, and really came back.
    let seen = server.requests().join("\n");
    assert!(seen.contains(&serde_json::to_string(PASSWORD).unwrap()), "{seen}");
    assert!(seen.contains(TOKEN), "{seen}");

    let logged = String::from_utf8_lossy(&ear.0.lock().unwrap()).into_owned();
    let written = loaded.cluster.writes.lock().unwrap().join("\n");
    assert!(
        written.contains("[secret token]") && written.contains("[secret password]"),
        "{written}"
    );
    assert!(
        logged.contains("request policy=\"p\""),
        "the request is traced: {logged}"
    );
    // Except the policy's own line, in which it repeats the server's answer.
    let ours = logged.lines().filter(|line| !line.contains(" INFO "));
    assert_eq!(
        ours.filter(|line| line.contains("query-word")).count(),
        0,
        "{logged}"
    );
    let debugged = format!("{:?} {:?}", rig.memory, rig.spec);
    for (place, text) in [
        ("what it reported", &reported),
        ("what it reported before", &first),
        ("what it wrote", &written),
        ("the log", &logged),
        ("what is printed of it", &debugged),
    ] {
        for secret in forms() {
            assert!(!text.contains(&secret), "{place} shows {secret}: {text}");
        }
    }
}

#[tokio::test]
async fn no_secret_is_in_the_memory_of_a_policy() {
    let server = Server::start(traitor).await;
    let origin = format!("http://traitor.test:{}", server.port);
    let loaded = rig(&origin).load().await;
    let (post, get) = (format!("POST {origin}/tokens"), format!("GET {origin}/"));
    let questions = [
        (PASSWORD.to_owned(), false),
        (TOKEN.to_owned(), false),
        // Halves, in case it arrived in pieces.
        (PASSWORD[..14].to_owned(), false),
        (TOKEN[8..].to_owned(), false),
        (STANDARD.encode(TOKEN), false),
        // The search works: it finds text that must be there.
        (format!("traitor.test:{}", server.port), true),
        ("[secret token]".to_owned(), true),
        ("[secret password]".to_owned(), true),
    ];
    let searches: Vec<String> = questions
        .iter()
        .map(|(text, _)| format!("search {}", hidden(text)))
        .collect();
    let mut script = vec![
        post.as_str(),
        "body {\"password\": \"\"}",
        "field /password password",
        "capture X-Subject-Token token",
        "length",
        &get,
        "secret-header X-Auth-Token token",
        "bearer password",
        "length",
    ];
    script.extend(searches.iter().map(String::as_str));
    let reported = loaded.step(&script).await;
    let found: Vec<&str> = reported.split("; ").skip(2).collect();
    let expected: Vec<String> = questions
        .iter()
        .map(|(_, found)| format!("found {found}"))
        .collect();
    assert_eq!(found, expected, "{reported}");
}

/// The forms of the secrets.
fn forms() -> Vec<String> {
    vec![
        PASSWORD.to_owned(),
        "correct-horse".to_owned(),
        "battery".to_owned(),
        TOKEN.to_owned(),
        "gAAAA".to_owned(),
        STANDARD.encode(PASSWORD),
        STANDARD.encode(TOKEN),
    ]
}
