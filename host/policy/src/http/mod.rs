//! The import `http`: requests of policies, to the origins that the operator granted and to nobody else.
//!
//! ```text
//!  request ─► url ─► rules, wants ─► headers, secrets ─► resolve ─► addresses ─► connect (TLS) ─► exchange
//!                                                                       every one              one request
//!  response ◄─ captured headers taken out, secrets replaced by their names ◄─────────────────────────┘
//! ```
//!
//! It must not know what a request is for, and it does nothing of its own accord: no redirect, no proxy, no cookie, no
//! second try.

mod address;
mod answer;
mod connect;
mod exchange;
mod grant;
mod headers;
mod network;
mod prepare;
mod requests;
mod rules;
mod send;
mod stand_in;
mod tls;
mod url;
mod wants;

pub use grant::{HTTP_METHODS, HTTP_PATH_RULE, HttpGrant, Networks, is_http_path, read_http_origin};
pub use network::{Endpoint, Network, Resolve};
pub use rules::HttpGrantError;
pub use stand_in::{StandIn, StandInAnswer};
pub use tls::TlsError;
pub use url::UrlError;
pub use wants::HttpWantError;

pub(super) use requests::{Requests, Surroundings, Wanted};
pub(super) use rules::Rules;
pub(super) use tls::Tls;
pub(super) use url::Origin;
pub(super) use wants::{Want, simple_grant};
