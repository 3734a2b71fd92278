//! A minimal HTTP client for observers: one request, one connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A status, and the raw response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) raw: Vec<u8>,
}

impl Answer {
    pub(crate) fn body(&self) -> &[u8] {
        let end = self.raw.windows(4).position(|window| window == b"\r\n\r\n");
        &self.raw[end.map_or(self.raw.len(), |end| end + 4)..]
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.raw);
        let head = text.split("\r\n\r\n").next().unwrap();
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

/// The answer ends with its connection, or at its stated length.
pub(crate) fn send(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut head = format!("{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // Some servers take an empty body for one without a type.
    if !body.is_empty() || method != "GET" {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut raw = Vec::new();
    let mut buffer = [0; 8192];
    while !is_whole(&raw) {
        match stream.read(&mut buffer)? {
            0 => break,
            count => raw.extend_from_slice(&buffer[..count]),
        }
    }
    let status = String::from_utf8_lossy(&raw)
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_default();
    Ok(Answer { status, raw })
}

/// Whether the body is complete; `false` if its length is not stated.
fn is_whole(raw: &[u8]) -> bool {
    let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&raw[..end]);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<usize>().ok())?
    });
    length.is_some_and(|length| raw.len() >= end + 4 + length)
}
