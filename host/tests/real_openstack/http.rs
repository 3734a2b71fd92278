//! Just enough of a client to look on: one request, one connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A status, and everything as it came.
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

/// Version 1.0, so that the answer ends with its connection.
pub(crate) fn send(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut head = format!("{method} /{path} HTTP/1.0\r\nHost: {host}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw)?;
    let status = String::from_utf8_lossy(&raw)
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_default();
    Ok(Answer { status, raw })
}
