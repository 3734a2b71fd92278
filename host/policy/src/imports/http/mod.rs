//! The import `http`: sends a policy's requests, only to origins that the operator granted.
//!
//! ```text
//!  request ─► parse URL ─► check grants ─► insert secrets ─► resolve ─► check every address ─► connect (TLS) ─► exchange
//!  response ◄─ replace secrets by their names ◄─ remove captured headers ◄───────────────────────────────────────┘
//! ```
//!
//! It must not know the purpose of a request. It never adds a request of its own: no redirect, no proxy, no cookie, no
//! retry.

mod address;
mod answer;
mod connect;
#[cfg(test)]
mod error_texts;
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
