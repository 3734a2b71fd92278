//! A small proxy in front of Nova, for what Nova itself does not do when it is asked: overload, and cut connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::http;

/// What becomes of a request.
pub(crate) enum Fault {
    Pass,
    /// It is answered by the proxy, with this much more in the head.
    Answer(u16, &'static str),
    /// The connection is cut, and Nova never hears of it.
    CutBefore,
    /// Nova does it, and its answer is lost.
    CutAfter,
}

/// A request that came by.
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) token: String,
}

type Decide = Box<dyn FnMut(&Seen) -> Fault + Send>;

/// Until the process ends; each test has its own.
pub(crate) struct Proxy {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Proxy {
    /// In front of `upstream`, such as `http://127.0.0.1:8774/v2.1`.
    pub(crate) fn start(upstream: &str, decide: impl FnMut(&Seen) -> Fault + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v2.1", listener.local_addr().unwrap());
        let origin = upstream.trim_end_matches("/v2.1").to_owned();
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

    /// How many requests came by whose `METHOD path` begins and ends like this.
    pub(crate) fn count(&self, method: &str, ends: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        let like = |seen: &&Seen| seen.method == method && seen.path.ends_with(ends);
        seen.iter().filter(like).count()
    }

    /// The tokens that came by, each once, the first first.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let mut tokens: Vec<String> = Vec::new();
        for seen in self.seen.lock().unwrap().iter() {
            if !tokens.contains(&seen.token) {
                tokens.push(seen.token.clone());
            }
        }
        tokens
    }
}

fn serve(mut stream: TcpStream, origin: &str, kept: &Mutex<Vec<Seen>>, decide: &Mutex<Decide>) {
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
        .find(|(name, _)| name.eq_ignore_ascii_case("x-auth-token"));
    let seen = Seen {
        method: method.to_owned(),
        path: path.to_owned(),
        token: token.map(|(_, token)| (*token).to_owned()).unwrap_or_default(),
    };
    let fault = (decide.lock().unwrap())(&seen);
    kept.lock().unwrap().push(seen);
    let forward = || http::send(method, &format!("{origin}{path}"), &headers, &body);
    match fault {
        Fault::Pass => {
            if let Ok(answer) = forward() {
                stream.write_all(&answer.raw).ok();
            }
        }
        Fault::Answer(status, more) => {
            let answer =
                format!("HTTP/1.1 {status} Fault\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).ok();
        }
        Fault::CutBefore => {}
        Fault::CutAfter => {
            forward().ok();
        }
    }
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
