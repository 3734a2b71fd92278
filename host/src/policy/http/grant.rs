//! Where a policy may send requests.

use std::path::PathBuf;

/// One origin, and what of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// `https://HOST[:PORT]`, or `http://…`.
    pub origin: String,
    /// In capitals. Empty: GET and HEAD.
    pub methods: Vec<String>,
    /// How paths begin: whole segments. Empty: every path.
    pub paths: Vec<String>,
    /// Which addresses the origin's name may have besides public ones.
    pub networks: Networks,
    /// The certificates (PEM) that the origin is believed by, besides those of the system.
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
