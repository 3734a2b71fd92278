//! The import `http`: requests of policies, to the origins that the operator granted and to no other.
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
mod headers;
mod http_mock;
mod network;
mod prepare;
mod requests;
mod rules;
mod send;
mod tls;

pub use http_mock::{HttpMock, HttpMockAnswer};
pub use network::{Endpoint, Network, Resolve};
pub use rules::HttpSetupError;
pub use tls::TlsError;

pub(crate) use requests::{RequestDeps, Requests, WantedRequests};
pub(crate) use rules::read_grants;
pub(crate) use tls::Tls;
