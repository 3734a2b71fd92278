//! Serves `/metrics`, `/healthz` and `/readyz` over HTTP. Connections are few and short, so that they never delay the
//! drain.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::registry::Metrics;
use scupper_common::health::Health;

/// The content type of the metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Maximum number of connections; further clients wait.
const CONNECTIONS: usize = 8;

/// Time limits for the headers of a request and for a connection.
const HEADERS: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(60);

/// Pause after the system has run out of sockets.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// An error that prevents serving the metrics.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The server cannot listen on the address.
    #[error("cannot listen for metrics on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// Listens on an address; port 0 selects a free port. Returns the address, and what serves it for ever.
pub async fn serve_metrics(
    address: SocketAddr,
    metrics: Metrics,
    health: Health,
) -> Result<(SocketAddr, impl Future<Output = ()> + Send + 'static), MetricsError> {
    let failed = |source| MetricsError::Listen { address, source };
    let listener = listen(address, TcpListener::bind).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tracing::info!(%address, "metrics are served");
    Ok((address, accept(listener, Endpoints { metrics, health })))
}

/// Binds the address. `[::]` means every address of both families; a kernel without IPv6 has those of IPv4 only.
async fn listen<L, F>(address: SocketAddr, bind: impl Fn(SocketAddr) -> F) -> io::Result<L>
where
    F: Future<Output = io::Result<L>>,
{
    match bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != ErrorKind::AddrInUse => {
            let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            bind(all).await.map_err(|_neither| error)
        }
        bound => bound,
    }
}

/// The content of the responses.
#[derive(Clone)]
struct Endpoints {
    metrics: Metrics,
    health: Health,
}

async fn accept(listener: TcpListener, endpoints: Endpoints) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropped with this task, which closes every connection.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        // The semaphore is never closed.
        let seat = Arc::clone(&seats).acquire_owned().await;
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let endpoints = endpoints.clone();
                connections.spawn(async move {
                    let _seat = seat;
                    if timeout(CONNECTION, connection(stream, endpoints)).await.is_err() {
                        tracing::debug!("a connection for metrics lasted too long");
                    }
                });
            }
            Err(error) => {
                tracing::debug!(%error, "accept a connection for metrics");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, endpoints: Endpoints) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &endpoints);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for metrics ended");
    }
}

fn respond<B>(request: &Request<B>, endpoints: &Endpoints) -> Response<String> {
    let path = request.uri().path();
    if !matches!(path, "/metrics" | "/healthz" | "/readyz") {
        let there = "there are /metrics, /healthz and /readyz\n".to_owned();
        return response(StatusCode::NOT_FOUND, PLAIN, there);
    }
    if !matches!(request.method(), &Method::GET | &Method::HEAD) {
        return response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET\n".to_owned());
    }
    match path {
        "/healthz" => probed(endpoints.health.alive()),
        "/readyz" => probed(endpoints.health.ready()),
        _ => response(StatusCode::OK, OPENMETRICS, endpoints.metrics.to_text()),
    }
}

fn probed(state: Result<(), String>) -> Response<String> {
    match state {
        Ok(()) => response(StatusCode::OK, PLAIN, "ok\n".to_owned()),
        Err(words) => response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{words}\n")),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests;
