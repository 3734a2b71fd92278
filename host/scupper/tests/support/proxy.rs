//! A small proxy in front of a server, for faults that the server cannot produce on request: overload, cut connections,
//! and responses that repeat the request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http;

/// Headers with credentials.
const TOKENS: [&str; 2] = ["X-Auth-Token", "X-SLURM-USER-TOKEN"];
/// The place of the secret in a login.
const PASSWORDS: [&str; 2] = [
    "/auth/identity/application_credential/secret",
    "/auth/identity/password/user/password",
];

/// The fate of a request.
pub(crate) enum Fault {
    Pass,
    /// The proxy answers it, with these additional headers.
    Answer(u16, &'static str),
    /// The server's answer, with an additional header that contains the token, in every form that a server may write it
    /// in.
    Gossip,
    /// Overload, with an answer that contains the whole request, in every form that a server may write it in.
    Echo,
    /// The connection is cut before the server receives the request.
    CutBefore,
    /// The server carries it out, and its answer is lost.
    CutAfter,
    /// Its answer is changed in transit, to one of the same length.
    Change(fn(&str) -> String),
}

/// An observed request.
pub(crate) struct ProxiedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) token: String,
    /// The status of the answer; 0: none.
    pub(crate) status: u16,
}

type Decide = Box<dyn FnMut(&ProxiedRequest) -> Fault + Send>;

/// Until the process ends; each test has its own.
pub(crate) struct Proxy {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<ProxiedRequest>>>,
}

impl Proxy {
    /// In front of `upstream`, such as `http://127.0.0.1:8774/v2.1`. The path is the same.
    pub(crate) fn start(
        upstream: &str,
        decide: impl FnMut(&ProxiedRequest) -> Fault + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (host, path) = match upstream.trim_start_matches("http://").split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (upstream.trim_start_matches("http://"), String::new()),
        };
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let origin = format!("http://{host}");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let decide: Arc<Mutex<Decide>> = Arc::new(Mutex::new(Box::new(decide)));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (origin, kept, decide) = (origin.clone(), Arc::clone(&kept), Arc::clone(&decide));
                std::thread::spawn(move || serve(stream, &origin, &kept, &decide));
            }
        });
        Self { url, seen }
    }

    /// The number of requests whose `METHOD path` begins and ends like this.
    pub(crate) fn count(&self, method: &str, ends: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        let like = |seen: &&ProxiedRequest| seen.method == method && seen.path.ends_with(ends);
        seen.iter().filter(like).count()
    }

    /// The requested paths of this method, with repetitions, without their queries.
    pub(crate) fn paths(&self, method: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let seen = seen.iter().filter(|seen| seen.method == method);
        let path = |seen: &ProxiedRequest| seen.path.split('?').next().unwrap_or_default().to_owned();
        seen.map(path).collect()
    }

    /// The number of requests with this answer.
    pub(crate) fn answered(&self, status: u16) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.status == status).count()
    }

    /// The tokens seen, each once, oldest first.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let mut tokens: Vec<String> = Vec::new();
        for seen in self.seen.lock().unwrap().iter() {
            if !seen.token.is_empty() && !tokens.contains(&seen.token) {
                tokens.push(seen.token.clone());
            }
        }
        tokens
    }
}

fn serve(mut stream: TcpStream, origin: &str, kept: &Mutex<Vec<ProxiedRequest>>, decide: &Mutex<Decide>) {
    let Some((head, body)) = read(&mut stream) else {
        return;
    };
    let mut first = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Vec<(&str, &str)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| {
            !["host", "content-length", "connection"].contains(&name.to_ascii_lowercase().as_str())
        })
        .collect();
    let token = headers
        .iter()
        .find(|(name, _)| TOKENS.iter().any(|header| name.eq_ignore_ascii_case(header)));
    let seen = ProxiedRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        token: token.map(|(_, token)| (*token).to_owned()).unwrap_or_default(),
        status: 0,
    };
    let fault = (decide.lock().unwrap())(&seen);
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(seen);
        kept.len() - 1
    };
    let forward = || http::send(method, &format!("{origin}{path}"), &headers, &body);
    let answer = match fault {
        Fault::Pass => forward().ok().map(|answer| (answer.status, answer.raw)),
        Fault::Gossip => forward().ok().map(|answer| {
            let text = String::from_utf8(answer.raw).unwrap();
            let reported = echo(&head, "").lines().take(3).collect::<Vec<_>>().join(" ");
            let (first, rest) = text.split_once("\r\n").unwrap();
            (
                answer.status,
                format!("{first}\r\nX-Reported: {reported}\r\n{rest}").into_bytes(),
            )
        }),
        Fault::Change(change) => forward().ok().map(|answer| {
            let text = String::from_utf8(answer.raw).unwrap();
            (answer.status, change(&text).into_bytes())
        }),
        Fault::Answer(status, more) => Some((status, overload(status, more, ""))),
        Fault::Echo => {
            let reported = echo(&head, &String::from_utf8_lossy(&body));
            Some((503, overload(503, "Retry-After: 1\r\n", &reported)))
        }
        Fault::CutBefore => None,
        Fault::CutAfter => {
            forward().ok();
            None
        }
    };
    if let Some((status, raw)) = answer {
        kept.lock().unwrap()[number].status = status;
        stream.write_all(&raw).ok();
    }
}

fn overload(status: u16, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Fault\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// Everything that was sent: raw, in JSON, and every value of it in base64 and URL-encoded. The values come first, as
/// only the beginning of an answer is shown.
fn echo(head: &str, body: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let mut values: Vec<String> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| TOKENS.iter().any(|header| name.eq_ignore_ascii_case(header)))
        .map(|(_, value)| value.to_owned())
        .collect();
    for pointer in PASSWORDS {
        values.extend(
            json.pointer(pointer)
                .and_then(|value| value.as_str().map(str::to_owned)),
        );
    }
    let percent = |value: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        value
            .bytes()
            .map(|byte| match plain(byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect()
    };
    let mut reported = values.join(" ");
    for value in &values {
        reported.push_str(&format!("\n{} {}", STANDARD.encode(value), percent(value)));
    }
    reported.push_str(&format!("\n{}\n{head}\n\n{body}", serde_json::json!(values)));
    reported
}

fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse::<usize>().ok())?
        });
        if bytes.len() >= end + 4 + length.unwrap_or_default() {
            return Some((head, bytes[end + 4..].to_vec()));
        }
    }
}
