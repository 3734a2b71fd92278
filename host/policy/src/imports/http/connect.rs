//! From an origin to an open connection, after a check of every address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use scupper_policy_spec::{Networks, Origin};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::{self, Refusal};
use super::network::{Endpoint, Network};

/// Time for one address to answer: long enough for a lost packet, short enough to try the next one.
const CONNECT: Duration = Duration::from_secs(5);

/// The most addresses to try; services have two or three.
const TRIED: usize = 6;

/// Why there is no connection. The policy's request was not sent.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    #[error("{host} has no address: {reason}")]
    NoAddress { host: String, reason: String },
    #[error("{host} has the address {address}, and {refusal}")]
    Refused {
        host: String,
        address: IpAddr,
        refusal: Refusal,
    },
    #[error("{0} is the API server, which only the driver talks to")]
    Forbidden(String),
    #[error("no answer from {origin} ({address}): {source}")]
    Tcp {
        origin: String,
        address: IpAddr,
        source: io::Error,
    },
    #[error("TLS with {origin} failed: {source}")]
    Tls { origin: String, source: io::Error },
}

/// A connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to an origin. `tls` is there when the origin is https.
pub(super) async fn connect(
    network: &Network,
    origin: &Origin,
    networks: Networks,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, ConnectError> {
    let addresses = resolve(network, origin, networks).await?;
    let tcp = dial(origin, &addresses).await?;
    let Some(tls) = tls else {
        return Ok(Box::new(tcp));
    };
    let failed = |source| ConnectError::Tls {
        origin: origin.to_string(),
        source,
    };
    let name = ServerName::try_from(origin.host().to_owned())
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let stream = TlsConnector::from(tls).connect(name, tcp).await.map_err(failed)?;
    Ok(Box::new(stream))
}

/// Resolves the addresses once, and accepts them only if all of them are allowed: otherwise an attacker who can add one
/// forbidden address would only have to wait.
async fn resolve(
    network: &Network,
    origin: &Origin,
    networks: Networks,
) -> Result<Vec<IpAddr>, ConnectError> {
    let host = origin.host();
    let addresses = lookup(network, host).await?;
    for &address in &addresses {
        address::check(address, networks).map_err(|refusal| ConnectError::Refused {
            host: host.to_owned(),
            address,
            refusal,
        })?;
    }
    let same_port = network
        .forbidden
        .iter()
        .filter(|endpoint| endpoint.port == origin.port);
    for endpoint in same_port {
        if is_endpoint(network, endpoint, host, &addresses).await {
            return Err(ConnectError::Forbidden(origin.to_string()));
        }
    }
    Ok(addresses)
}

async fn lookup(network: &Network, host: &str) -> Result<Vec<IpAddr>, ConnectError> {
    let no_address = |reason: String| ConnectError::NoAddress {
        host: host.to_owned(),
        reason,
    };
    let found = network.resolver.resolve(host).await;
    let found = found.map_err(|error| no_address(error.to_string()))?;
    if found.is_empty() {
        return Err(no_address("the resolver knows none".to_owned()));
    }
    Ok(found.into_iter().map(canonical).collect())
}

async fn is_endpoint(network: &Network, endpoint: &Endpoint, host: &str, addresses: &[IpAddr]) -> bool {
    let theirs = endpoint.host.trim_start_matches('[').trim_end_matches(']');
    if theirs.eq_ignore_ascii_case(host) {
        return true;
    }
    // A name that does not resolve now shares no address with another name.
    let known = lookup(network, theirs).await.unwrap_or_default();
    known.iter().any(|address| addresses.contains(address))
}

/// `::ffff:10.0.0.1` is 10.0.0.1.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

async fn dial(origin: &Origin, addresses: &[IpAddr]) -> Result<TcpStream, ConnectError> {
    let mut last = None;
    for &address in addresses.iter().take(TRIED) {
        let connected = timeout(CONNECT, TcpStream::connect(SocketAddr::new(address, origin.port))).await;
        match connected.unwrap_or_else(|_elapsed| Err(slow())) {
            Ok(stream) => {
                // Small requests must not wait for more data; without the option they are only slower.
                let _set = stream.set_nodelay(true).is_ok();
                return Ok(stream);
            }
            Err(source) => {
                last = Some(ConnectError::Tcp {
                    origin: origin.to_string(),
                    address,
                    source,
                });
            }
        }
    }
    Err(last.unwrap_or_else(|| ConnectError::NoAddress {
        host: origin.host.clone(),
        reason: "the resolver knows none".to_owned(),
    }))
}

fn slow() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no connection within {} s", CONNECT.as_secs()),
    )
}
