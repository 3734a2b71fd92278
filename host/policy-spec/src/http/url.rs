//! Parses URLs strictly: a URL must be written exactly as it is sent, so that it cannot have two meanings.

use std::fmt;

use scupper_common::text::one_line;
use thiserror::Error;
use url::{Position, Url};

/// Bytes of a URL; servers take eight thousand and rarely more.
const URL_BYTES: usize = 8 * 1024;

/// Bytes of a wrong URL that are shown.
const SHOWN_BYTES: usize = 120;

/// The kubelet's ports, with authentication and without: access to them means control of the node.
const KUBELET_PORTS: [u16; 2] = [10250, 10255];

/// Why a URL cannot be used here. The part after a `?` is never shown.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// It is not a URL.
    #[error("`{shown}` is not a valid URL: {reason}")]
    Syntax {
        /// Its beginning.
        shown: String,
        /// The parser's error.
        reason: String,
    },
    /// It is longer than servers accept.
    #[error("the URL has {0} bytes; the limit is {URL_BYTES}")]
    Long(usize),
    /// Neither `https` nor `http`.
    #[error("`{0}` must begin with https:// or http://")]
    Scheme(String),
    /// A name or a password before the host.
    #[error("the URL contains a user name or a password; send credentials as secrets, in headers")]
    Credentials,
    /// It has a `#`.
    #[error("`{0}` has a fragment, which is never sent")]
    Fragment(String),
    /// It is not canonical: `0x7f.1`, `:0443`, `a/../b`, a space.
    #[error("`{shown}` is a non-canonical URL, use {canonical}")]
    Written {
        /// Its beginning.
        shown: String,
        /// The right way to write it.
        canonical: String,
    },
    /// A pattern, or not a host.
    #[error("the host of `{0}` has characters that a host name cannot have")]
    Host(String),
    /// Servers disagree on what such a path means.
    #[error(
        "the path of `{0}` has an empty or a dotted segment, or an encoded dot, slash or control character"
    )]
    Path(String),
    /// A port that is never granted.
    #[error("port {0} can never be granted: it is the kubelet's, or not a valid port")]
    Port(u16),
    /// It has more parts than an origin.
    #[error("`{0}` is more than an origin: write https://HOST or https://HOST:PORT")]
    NotOrigin(String),
}

impl UrlError {
    /// The same where only an origin is allowed.
    fn of_origin(self) -> Self {
        match self {
            Self::Written { shown, canonical } => Self::Written {
                canonical: canonical.trim_end_matches('/').to_owned(),
                shown,
            },
            other => other,
        }
    }
}

/// A scheme, a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Whether it is `https` rather than `http`.
    pub https: bool,
    /// As in a URL: IPv6 in brackets, a name in lower case.
    pub host: String,
    /// The port, including default ports.
    pub port: u16,
}

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// Scheme, host and port.
    pub origin: Origin,
    /// The path, `/` at least.
    pub path: String,
    /// The part after the `?`.
    pub query: Option<String>,
}

impl Origin {
    /// `https://HOST[:PORT]` and nothing else, as an operator writes it: the host may be in capitals.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let address = HttpUrl::parse(&lower_host(text)).map_err(UrlError::of_origin)?;
        let bare = address.path == "/" && address.query.is_none() && !text.ends_with('/');
        bare.then_some(address.origin)
            .ok_or_else(|| UrlError::NotOrigin(shown_url(text)))
    }

    /// The form in the `Host` header.
    pub fn authority(&self) -> String {
        if self.port == default_port(self.https) {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The host without the brackets of IPv6.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl HttpUrl {
    /// Parses an absolute URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES {
            return Err(UrlError::Long(text.len()));
        }
        let url = Url::parse(text).map_err(|error| UrlError::Syntax {
            shown: shown_url(text),
            reason: error.to_string(),
        })?;
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme(shown_url(text))),
        };
        if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
            return Err(UrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(UrlError::Fragment(shown_url(text)));
        }
        let origin = Origin {
            https,
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port().unwrap_or_else(|| default_port(https)),
        };
        if !is_host(&origin.host) {
            return Err(UrlError::Host(shown_url(text)));
        }
        if origin.port == 0 || KUBELET_PORTS.contains(&origin.port) {
            return Err(UrlError::Port(origin.port));
        }
        if !is_as_written(text, &url, &origin) {
            return Err(UrlError::Written {
                shown: shown_url(text),
                canonical: one_line(&url[..Position::AfterPath], SHOWN_BYTES),
            });
        }
        if !is_plain(url.path()) {
            return Err(UrlError::Path(shown_url(text)));
        }
        Ok(Self {
            origin,
            path: url.path().to_owned(),
            query: url.query().map(str::to_owned),
        })
    }
}

/// A URL's beginning, for messages: without its query, which may contain secrets.
pub fn shown_url(text: &str) -> String {
    let before = text.split_once(['?', '#']).map_or(text, |(before, _)| before);
    // And without the part before an `@`.
    match before.rsplit_once('@') {
        Some((_, after)) => one_line(&format!("…@{after}"), SHOWN_BYTES),
        None => one_line(before, SHOWN_BYTES),
    }
}

/// Whether a path means the same to every server: whole segments, only the last may be empty, no dot segments and no
/// hidden separators.
pub(super) fn is_plain(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else {
        return false;
    };
    path.is_empty()
        || path
            .strip_suffix('/')
            .unwrap_or(path)
            .split('/')
            .all(is_plain_segment)
}

fn is_plain_segment(segment: &str) -> bool {
    // Some servers drop the text after a semicolon, and then see dots.
    let name = segment.split_once(';').map_or(segment, |(name, _)| name);
    let hides = |part: &str| {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        code.is_none_or(|byte| byte.is_ascii_control() || b"./\\%;".contains(&byte))
    };
    !matches!(name, "" | "." | "..")
        && !segment.contains(['\\', '?', '#'])
        && !segment.chars().any(|char| char.is_control() || char == ' ')
        && !segment.split('%').skip(1).any(hides)
}

/// The standard allows stars and other characters in a host.
fn is_host(host: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => v6.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        None => !host.is_empty() && host.bytes().all(letter),
    }
}

/// The standard allows many forms of a URL; only one is accepted, apart from the default port and the first slash.
fn is_as_written(text: &str, url: &Url, origin: &Origin) -> bool {
    let host_and_port = format!("{}:{}", origin.host, origin.port);
    let written = authority(text);
    let rest = text
        .split_once("://")
        .and_then(|(_, rest)| rest.strip_prefix(written))
        .unwrap_or_default();
    let path_and_query = &url[Position::BeforePath..Position::AfterQuery];
    let scheme = text.starts_with(&url[..Position::BeforeHost]);
    let same_rest =
        rest == path_and_query || (!rest.starts_with('/') && path_and_query.strip_prefix('/') == Some(rest));
    scheme && (written == origin.authority() || written == host_and_port) && same_rest
}

/// The same with the host in lower case, which is equivalent.
fn lower_host(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let (host, rest) = rest.split_at(authority(text).len());
            format!("{scheme}://{}{rest}", host.to_ascii_lowercase())
        }
        None => text.to_owned(),
    }
}

/// The origin, and the rest.
pub(super) fn split_origin(text: &str) -> (&str, &str) {
    let before = text.find("://").map_or(0, |at| at + "://".len());
    text.split_at_checked(before + authority(text).len())
        .unwrap_or((text, ""))
}

/// The part between `://` and the path.
fn authority(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()
}

const fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_it_is_written() {
        let url = HttpUrl::parse("https://nova.example.com:8774/v2.1/servers?host=a%20b&all=1").unwrap();
        assert_eq!(url.origin.to_string(), "https://nova.example.com:8774");
        assert_eq!(url.path, "/v2.1/servers");
        assert_eq!(url.query.as_deref(), Some("host=a%20b&all=1"));
        for (text, path) in [
            ("https://example.com", "/"),
            ("https://example.com:443/a%C3%A4/", "/a%C3%A4/"),
            ("http://[fd00::1]:8080/x", "/x"),
            ("http://10.0.0.1/jobs/3..4/a.b", "/jobs/3..4/a.b"),
            ("https://example.com?x=../", "/"),
        ] {
            assert_eq!(HttpUrl::parse(text).unwrap().path, path, "{text}");
        }
    }

    #[test]
    fn ambiguous_urls_are_refused() {
        for text in [
            "https://EXAMPLE.com/",
            "HTTPS://example.com/",
            "https:/example.com/",
            "https:example.com/",
            "https:///example.com/",
            "https://example.com:/",
            "https://example.com:0443/",
            "https://example.com:00/",
            "https://example.com:99999/",
            "https://example.com:-1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[fe80::1%25eth0]/",
            "http://exam%70le.com/",
            "http://exämple.com/",
            "http://example.com\u{ff0f}/",
            "https://user@example.com/",
            "https://user:word@example.com/",
            "https://@example.com/",
            "https://:@example.com/",
            "https://good.example.com@evil.example/",
            "https://good.example.com\\@evil.example/",
            "https://example.com/#a",
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "//example.com/",
            "/path",
            "",
            " https://example.com/",
            "https://example.com/ ",
            "https://example.com/a b",
            "https://exa\tmple.com/",
            "https://example.com/a\r\nHost: evil",
            "https://example.com/a/../b",
            "https://example.com/a/./b",
            "https://example.com/..",
            "https://example.com/a/%2e%2e/b",
            "https://example.com/a/.%2E/b",
            "https://example.com/a%2fb",
            "https://example.com/a%5cb",
            "https://example.com/a\\..\\b",
            "https://example.com/a%00",
            "https://example.com/a%252e",
            "https://example.com/a%zz",
            "https://example.com/a%2",
            "https://example.com/..;/b",
            "https://example.com/a//b",
            "https://example.com//b",
            "https://example.com//",
            "https://*.example.com/",
            "https://a'b.example.com/",
            "https://example.com:10250/pods",
            "http://example.com:10255/pods",
            "http://example.com:0/",
        ] {
            assert!(HttpUrl::parse(text).is_err(), "{text}");
        }
        let long = format!("https://example.com/{}", "a".repeat(URL_BYTES));
        assert!(matches!(HttpUrl::parse(&long), Err(UrlError::Long(_))));
    }

    #[test]
    fn no_error_shows_a_query_or_a_password() {
        for text in [
            "https://user:hunter2@example.com/?hunter2",
            "https://example.com/../?hunter2",
            "ftp://example.com/?hunter2",
            "https://example.com/?hunter2#hunter2",
            "https://example.com:0443/?hunter2",
            "https://example.com:x/?hunter2",
            "https://a:hunter2@:0/",
        ] {
            let reported = HttpUrl::parse(text).unwrap_err().to_string();
            assert!(!reported.contains("hunter2"), "{reported}");
        }
    }

    #[test]
    fn an_origin_has_no_other_parts() {
        assert_eq!(
            Origin::parse("https://example.com:443").unwrap(),
            Origin::parse("https://example.com").unwrap()
        );
        for text in [
            "https://example.com/",
            "https://example.com/a",
            "https://example.com?a",
        ] {
            assert!(
                matches!(Origin::parse(text), Err(UrlError::NotOrigin(_))),
                "{text}"
            );
        }
    }
}
