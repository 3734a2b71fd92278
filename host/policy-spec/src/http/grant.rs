//! The origins to which a policy may send requests.

use std::path::PathBuf;

use super::HttpGrantError;
use super::rules::{HttpRule, PathPrefix};
use super::url::{Origin, UrlError};

/// The methods that can be granted. `CONNECT`, `TRACE` and the rest have no use for a policy.
pub const HTTP_METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// The required form of a path prefix, after "must be".
pub const HTTP_PATH_RULE: &str = "a path prefix: whole segments from the first slash, none of them empty or dotted, \
                                  without query, fragment and star, such as /v3/ or /api/jobs";

/// One origin, and the granted requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// `https://HOST[:PORT]`, or `http://…`.
    pub origin: String,
    /// In capitals. Empty: GET and HEAD.
    pub methods: Vec<String>,
    /// Path prefixes, by whole segments. Empty: every path.
    pub paths: Vec<String>,
    /// Networks to which the origin's name may resolve, besides public addresses.
    pub networks: Networks,
    /// The CA certificates (PEM) to trust for this origin, besides those of the system.
    pub ca: Option<PathBuf>,
}

/// Addresses that are refused unless they are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// The node's own.
    pub loopback: bool,
    /// Private ones, such as 10.0.0.0/8.
    pub private: bool,
}

impl HttpGrant {
    /// Whether the driver accepts it. The file of certificates is not read. Fails with the field and its error.
    pub fn check(&self) -> Result<(), HttpGrantError> {
        HttpRule::of(self).map(drop)
    }
}

/// The origin in the form for comparison: the host in lower case, without the default port. Fails if the driver refuses
/// it.
pub fn read_http_origin(text: &str) -> Result<String, UrlError> {
    Origin::parse(text).map(|origin| origin.to_string())
}

/// Whether a grant may name this path prefix.
pub fn is_http_path(text: &str) -> bool {
    PathPrefix::parse(text).is_some()
}
