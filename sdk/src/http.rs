//! HTTP requests to the origins that the operator granted. Hooks and checks may send; a planner may not.
//!
//! ```
//! use scupper_sdk::{Call, Outcome, http::Request};
//!
//! fn step(_call: &Call) -> Outcome {
//!     let request = Request::post("https://nova.example.com:8774/v2.1/servers/42/action")
//!         .secret_header("X-Auth-Token", "token")
//!         .json_body(r#"{"os-migrateLive": {"host": null}}"#);
//!     match request.send() {
//!         Ok(response) if response.status == 202 => Outcome::Done,
//!         Ok(response) => Outcome::failed(format!("Nova answered {}", response.status)).into(),
//!         Err(error) => Outcome::failed(error.to_string()).into(),
//!     }
//! }
//! ```
//!
//! A policy holds only the names of secrets. The host inserts a secret as it sends the request, and only into requests to
//! the origins that the operator allowed for it.

use std::fmt;
use std::time::Duration;

use crate::bindings::imports::scupper::drain::http as generated;
pub use crate::bindings::imports::scupper::drain::http::{
    Capture, Field, Header, HeaderValue, Method, Request, Response, SecretField, SecretText,
};
use crate::{host, outcome::milliseconds};

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No grant covers the request; the message names the missing grant.
    NotGranted(String),
    /// The request is invalid: its URL, a header, a JSON pointer.
    Invalid(String),
    /// The secret does not exist yet or cannot be read.
    NoSecret(String),
    /// Nothing was sent: the name does not resolve, or the server does not accept connections.
    Unreachable(String),
    /// The request was sent, but the response is incomplete: the request may have taken effect.
    Broken(String),
    /// The request timed out: it may have taken effect.
    Timeout(String),
    /// The response exceeds the limit: the request may have taken effect.
    TooLarge(String),
    /// The step has reached its limit of requests; continue in the next step.
    TooMany(String),
}

impl Request {
    /// A request without headers and without a body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            secret_fields: Vec::new(),
            captures: Vec::new(),
            timeout: None,
        }
    }

    /// `GET`
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::Get, url)
    }

    /// `HEAD`
    pub fn head(url: impl Into<String>) -> Self {
        Self::new(Method::Head, url)
    }

    /// `POST`
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(Method::Post, url)
    }

    /// `PUT`
    pub fn put(url: impl Into<String>) -> Self {
        Self::new(Method::Put, url)
    }

    /// `PATCH`
    pub fn patch(url: impl Into<String>) -> Self {
        Self::new(Method::Patch, url)
    }

    /// `DELETE`
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new(Method::Delete, url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(name.into(), HeaderValue::Text(value.into()))
    }

    /// Adds a header whose value is a secret. Needs [`Grant::secret`](crate::Grant::secret).
    #[must_use]
    pub fn secret_header(self, name: impl Into<String>, secret: impl Into<String>) -> Self {
        self.secret_header_after(name, "", secret)
    }

    /// Adds a header whose value is a secret after a prefix, such as `Bearer ` (with the space).
    #[must_use]
    pub fn secret_header_after(
        self,
        name: impl Into<String>,
        prefix: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        let value = HeaderValue::Secret(SecretText {
            prefix: prefix.into(),
            secret: secret.into(),
        });
        self.with(name.into(), value)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body, and the header `content-type`.
    #[must_use]
    pub fn json_body(self, json: impl Into<Vec<u8>>) -> Self {
        self.header("content-type", "application/json").body(json)
    }

    /// Has the host replace the string at this JSON pointer, such as `/auth/password`, with a secret.
    #[must_use]
    pub fn secret_field(mut self, pointer: impl Into<String>, secret: impl Into<String>) -> Self {
        self.secret_fields.push(SecretField {
            pointer: pointer.into(),
            secret: secret.into(),
        });
        self
    }

    /// Has the host keep a header of the response as the secret of this name, for later requests.
    #[must_use]
    pub fn capture(mut self, header: impl Into<String>, secret: impl Into<String>) -> Self {
        self.captures.push(Capture {
            header: header.into(),
            secret: secret.into(),
        });
        self
    }

    /// Sets a timeout shorter than the operator's.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(milliseconds(timeout));
        self
    }

    /// Sends the request once.
    pub fn send(&self) -> Result<Response, Error> {
        Ok(host::http::send(self)?)
    }

    fn with(mut self, name: String, value: HeaderValue) -> Self {
        self.headers.push(Header { name, value });
        self
    }
}

impl Response {
    /// A response, for tests.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            captured: Vec::new(),
        }
    }

    /// Adds a header, for tests.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(Field {
            name: name.to_ascii_lowercase(),
            value: value.to_owned(),
        });
        self
    }

    /// Whether the status is 200 to 299.
    pub const fn is_success(&self) -> bool {
        matches!(self.status, 200..300)
    }

    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value.as_str())
    }

    /// The body as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Percent-encodes a text as one segment of a path or one value of a query.
///
/// ```
/// # use scupper_sdk::http::escaped;
/// assert_eq!(escaped("a b/c&d"), "a%20b%2Fc%26d");
/// assert_eq!(escaped("2026-11-21T13:49:58Z"), "2026-11-21T13:49:58Z");
/// ```
pub fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(message) => write!(f, "not granted: {message}"),
            Self::Invalid(message) => write!(f, "invalid request: {message}"),
            Self::NoSecret(message) => write!(f, "no secret: {message}"),
            Self::Unreachable(message) => write!(f, "unreachable: {message}"),
            Self::Broken(message) => write!(f, "incomplete response: {message}"),
            Self::Timeout(message) => write!(f, "timed out: {message}"),
            Self::TooLarge(message) => write!(f, "the response is too large: {message}"),
            Self::TooMany(message) => write!(f, "too many requests in one step: {message}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<generated::Error> for Error {
    fn from(error: generated::Error) -> Self {
        match error {
            generated::Error::NotGranted(message) => Self::NotGranted(message),
            generated::Error::Invalid(message) => Self::Invalid(message),
            generated::Error::NoSecret(message) => Self::NoSecret(message),
            generated::Error::Unreachable(message) => Self::Unreachable(message),
            generated::Error::Broken(message) => Self::Broken(message),
            generated::Error::Timeout(message) => Self::Timeout(message),
            generated::Error::TooLarge(message) => Self::TooLarge(message),
            generated::Error::TooMany(message) => Self::TooMany(message),
        }
    }
}

/// For [`testing::Host`](crate::testing::Host), which answers as the host does.
#[cfg(not(target_family = "wasm"))]
impl From<Error> for generated::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotGranted(message) => Self::NotGranted(message),
            Error::Invalid(message) => Self::Invalid(message),
            Error::NoSecret(message) => Self::NoSecret(message),
            Error::Unreachable(message) => Self::Unreachable(message),
            Error::Broken(message) => Self::Broken(message),
            Error::Timeout(message) => Self::Timeout(message),
            Error::TooLarge(message) => Self::TooLarge(message),
            Error::TooMany(message) => Self::TooMany(message),
        }
    }
}
