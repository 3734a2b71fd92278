//! How names are resolved, and which addresses no policy may reach.

use std::net::IpAddr;
use std::sync::Arc;
use std::{fmt, io};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::HttpMock;

/// Turns names into addresses.
pub trait Resolve: Send + Sync {
    /// All addresses of a name; an address resolves to itself.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The network as policies reach it.
#[derive(Clone)]
pub struct Network {
    /// Resolves names.
    pub resolver: Arc<dyn Resolve>,
    /// Endpoints that no policy may talk to, whatever it was granted: the API server's.
    pub forbidden: Vec<Endpoint>,
    /// Mock answers in place of every server; `None`: real servers answer.
    pub http_mock: Option<Arc<dyn HttpMock>>,
}

/// The machine's own resolver.
struct System;

/// Resolves nothing.
struct Closed;

impl Network {
    /// A network without servers, for dry runs.
    pub fn closed() -> Self {
        Self {
            resolver: Arc::new(Closed),
            forbidden: Vec::new(),
            http_mock: None,
        }
    }
}

impl Resolve for Closed {
    fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async { Err(io::Error::other("there is no network here")) }.boxed()
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            resolver: Arc::new(System),
            forbidden: Vec::new(),
            http_mock: None,
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("forbidden", &self.forbidden)
            .finish_non_exhaustive()
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}
