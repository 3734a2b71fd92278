//! Headers of a policy's request: the ones it may set, and secrets in place of their names.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use scupper_common::text::one_line;
use scupper_policy_spec::Origin;
use thiserror::Error;

/// Headers of one request.
const HEADERS: usize = 64;

/// Bytes of all headers together: the usual limit of servers.
const HEADER_BYTES: usize = 16 * 1024;

/// Bytes of a wrong name that an error shows.
const SHOWN_BYTES: usize = 80;

/// The default user agent, if the policy sets none.
const USER_AGENT: &str = concat!("scupper/", env!("CARGO_PKG_VERSION"));

/// Headers that only the host sets: they determine the destination, length and connection of a request. The last ones
/// would allow responses in which the host cannot find secrets: compressed or partial.
const OURS: [HeaderName; 12] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    header::ACCEPT_ENCODING,
    header::RANGE,
    header::IF_RANGE,
];

/// The errors of a header.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum HeaderError {
    #[error("`{0}` is not a valid header name")]
    Name(String),
    #[error("only the driver sets the header `{0}`")]
    Ours(String),
    #[error("the value of the header `{0}` has characters other than printable ASCII")]
    Value(String),
    #[error("there are {0} headers; the limit is {HEADERS}")]
    Many(usize),
    #[error("the headers have more than {} KiB", HEADER_BYTES >> 10)]
    Long,
}

/// The headers of a request, added one by one.
pub(super) struct Headers {
    map: HeaderMap,
    bytes: usize,
}

impl Headers {
    /// The headers of every request.
    pub(super) fn to(origin: &Origin, body: Option<usize>) -> Result<Self, HeaderError> {
        let mut map = HeaderMap::new();
        let host = HeaderValue::from_str(&origin.authority());
        map.insert(
            header::HOST,
            host.map_err(|_| HeaderError::Value("host".to_owned()))?,
        );
        map.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        // Always declared and never chunked: slurmrestd refuses chunks.
        if let Some(body) = body {
            map.insert(header::CONTENT_LENGTH, HeaderValue::from(body));
        }
        Ok(Self { map, bytes: 0 })
    }

    /// Adds a header from the policy.
    pub(super) fn text(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        self.add(name, plain(value).ok_or_else(|| HeaderError::Value(shown(name)))?)
    }

    /// Adds a header with a secret in it.
    pub(super) fn secret(&mut self, name: &str, prefix: &str, secret: &str) -> Result<(), HeaderError> {
        let wrong = || HeaderError::Value(shown(name));
        // The prefix follows the rules of a text; a secret may contain anything but control characters.
        plain(prefix).ok_or_else(wrong)?;
        let mut value =
            HeaderValue::from_bytes(format!("{prefix}{secret}").as_bytes()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.add(name, value)
    }

    /// All of them.
    pub(super) fn finish(self) -> Result<HeaderMap, HeaderError> {
        if self.map.len() > HEADERS {
            return Err(HeaderError::Many(self.map.len()));
        }
        if self.bytes > HEADER_BYTES {
            return Err(HeaderError::Long);
        }
        Ok(self.map)
    }

    fn add(&mut self, text: &str, value: HeaderValue) -> Result<(), HeaderError> {
        let name = name(text)?;
        self.bytes += text.len() + value.len();
        if name == header::USER_AGENT {
            self.map.insert(name, value);
        } else {
            self.map
                .try_append(name, value)
                .map_err(|_| HeaderError::Many(self.map.len()))?;
        }
        Ok(())
    }
}

/// Printable ASCII and tabs.
fn plain(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|_| text.is_ascii())
}

fn name(text: &str) -> Result<HeaderName, HeaderError> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| HeaderError::Name(shown(text)))?;
    if OURS.contains(&name) || name.as_str().starts_with("proxy-") {
        return Err(HeaderError::Ours(name.to_string()));
    }
    Ok(name)
}

fn shown(name: &str) -> String {
    one_line(name, SHOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> Headers {
        Headers::to(&Origin::parse("https://example.com:8443").unwrap(), Some(7)).unwrap()
    }

    #[test]
    fn every_request_states_its_host_and_its_length() {
        let map = headers().finish().unwrap();
        assert_eq!(map[header::HOST], "example.com:8443");
        assert_eq!(map[header::CONTENT_LENGTH], "7");
        assert!(map[header::USER_AGENT].to_str().unwrap().starts_with("scupper/"));
    }

    #[test]
    fn the_hosts_own_headers_are_refused_however_they_are_written() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
            "Proxy-Authorization",
            "proxy-connection",
            "Accept-Encoding",
            "Range",
            "If-Range",
        ] {
            let refused = headers().text(name, "x").unwrap_err();
            assert!(matches!(refused, HeaderError::Ours(_)), "{name}");
            let refused = headers().secret(name, "", "x").unwrap_err();
            assert!(matches!(refused, HeaderError::Ours(_)), "{name}");
        }
    }

    #[test]
    fn nothing_is_smuggled_in_by_a_name_or_a_value() {
        for name in ["", "a b", "a:", "a\r\nb", "ä", "a\0", ":path", "(x)"] {
            assert!(
                matches!(headers().text(name, "x"), Err(HeaderError::Name(_))),
                "{name:?}"
            );
        }
        for value in ["a\r\nHost: evil", "a\nb", "a\rb", "a\0b", "ä", "\u{7f}"] {
            let wrong = HeaderError::Value("x-a".to_owned());
            assert_eq!(headers().text("x-a", value), Err(wrong), "{value:?}");
        }
        assert!(headers().secret("x-a", "Bearer\r\n", "word").is_err());
        assert!(headers().secret("x-a", "Bearer ", "wo\nrd").is_err());
        let mut good = headers();
        good.secret("authorization", "Bearer ", "schlüssel").unwrap();
        let map = good.finish().unwrap();
        assert_eq!(
            map[header::AUTHORIZATION].as_bytes(),
            "Bearer schlüssel".as_bytes()
        );
        assert!(!format!("{map:?}").contains("schl"), "{map:?}");
    }

    #[test]
    fn headers_have_a_size_limit() {
        let mut many = headers();
        for number in 0..HEADERS {
            many.text("x-same", &number.to_string()).unwrap();
        }
        assert!(matches!(many.finish(), Err(HeaderError::Many(_))));
        let mut long = headers();
        long.text("x-long", &"x".repeat(HEADER_BYTES)).unwrap();
        assert_eq!(long.finish(), Err(HeaderError::Long));
    }
}
