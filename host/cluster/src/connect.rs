//! From a kubeconfig or a service account to a connection.
//!
//! The stack is our own rather than kube's default one: that one repeats refused requests (429, 503, 504) by itself
//! up to fifteen times, evictions included, and speaks HTTP/1.1 only, which costs a connection a pending eviction.

use http::{HeaderValue, Request, header};
use kube::config::{InClusterError, KubeconfigError};
use thiserror::Error;
use tower::BoxError;

use super::kubeconfig::{self, FoundConfig};
use super::proxy::ProxyError;
use super::transport::{self, Fault};
use super::{Cluster, ConnectOptions, http_client};
use scupper_common::clock::Clock;

/// How we call ourselves in the API server's audit log.
const USER_AGENT: &str = concat!("scupper/", env!("CARGO_PKG_VERSION"));

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// There is nothing to read it from.
    #[error("no cluster configuration found; tried {}; name one with --kubeconfig", tried.join(", "))]
    NoConfig {
        /// Everything that was tried, and why it did not do.
        tried: Vec<String>,
    },
    /// The kubeconfig is missing, broken, or names files that are.
    #[error("cannot use the kubeconfig {path}")]
    Kubeconfig {
        /// Its path, or the value of `KUBECONFIG`.
        path: String,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The kubeconfig has no such context, cluster or user.
    #[error("the kubeconfig {path} has no {what} {name:?}; {}", choices(what, known))]
    NotThere {
        /// Its path, or the value of `KUBECONFIG`.
        path: String,
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name that it does not have.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The kubeconfig has contexts, and none of them is the current one.
    #[error("the kubeconfig {path} has no current context; {}", choices("context", known))]
    NoCurrentContext {
        /// Its path, or the value of `KUBECONFIG`.
        path: String,
        /// The contexts that it has.
        known: Vec<String>,
    },
    /// The service account of the pod cannot be used.
    #[error("cannot use the pod's service account")]
    ServiceAccount(#[source] Box<InClusterError>),
    /// The kubeconfig or the environment name a proxy that there cannot be.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// Keys, certificates or credentials do not work.
    #[error("cannot set up the connection to {url} ({origin})")]
    Setup {
        /// The server's URL.
        url: String,
        /// What names the server: the kubeconfig and its context.
        origin: String,
        /// What is wrong.
        #[source]
        source: BoxError,
    },
    /// Nobody answers there.
    #[error("cannot reach the API server at {url}{}: {message} ({origin})", through(proxy.as_deref()))]
    Unreachable {
        /// The server's URL.
        url: String,
        /// What names the server: the kubeconfig and its context.
        origin: String,
        /// The URL of the proxy on the way to it.
        proxy: Option<String>,
        /// What the client says.
        message: String,
    },
    /// 401: the server does not know us.
    #[error("the API server at {url} does not accept our credentials: {message}; renew them ({origin})")]
    Unauthorized {
        /// The server's URL.
        url: String,
        /// What names the server and the user: the kubeconfig and its context.
        origin: String,
        /// The server's words.
        message: String,
    },
    /// Something answers there that is no API server, or a broken one.
    #[error("no API server answers at {url}: {message} ({origin})")]
    Unexpected {
        /// The server's URL.
        url: String,
        /// What names the server: the kubeconfig and its context.
        origin: String,
        /// What came.
        message: String,
    },
}

fn through(proxy: Option<&str>) -> String {
    proxy
        .map(|proxy| format!(" through the proxy {proxy}"))
        .unwrap_or_default()
}

/// What to type instead.
fn choices(what: &str, known: &[String]) -> String {
    if known.is_empty() {
        format!("it has no {what} at all")
    } else {
        format!("choose one with --{what}: {}", known.join(", "))
    }
}

impl Cluster {
    /// Reads the configuration and asks the server for its version, so that a wrong address shows at once.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let mut options = options.clone();
        options.request_timeout = options
            .connection
            .request_timeout
            .unwrap_or(options.request_timeout);
        let found = kubeconfig::find(&options.connection).await?;
        let (url, origin) = (found.config.cluster_url.to_string(), found.origin.clone());
        let server = server(&found.config.cluster_url);
        let proxy = found.proxy.as_ref().map(ToString::to_string);
        let client = client(found, &options)?;
        let request = Request::get("/version").body(Vec::new());
        let request = request.map_err(|error| ConnectError::Setup {
            url: url.clone(),
            origin: origin.clone(),
            source: error.into(),
        })?;
        match transport::call::<serde_json::Value>(&client, request, options.request_timeout).await {
            // One who may not ask for the version is known all the same.
            Ok(_) | Err(Fault::Refused(403, _)) => Ok(Self::at(server, client, options, Clock::System)),
            Err(Fault::Refused(401, status)) => Err(ConnectError::Unauthorized {
                url,
                origin,
                message: status.message,
            }),
            Err(Fault::Unreachable(message)) => Err(ConnectError::Unreachable {
                url,
                origin,
                proxy,
                message,
            }),
            Err(Fault::Refused(_, status)) => Err(ConnectError::Unexpected {
                url,
                origin,
                message: status.message,
            }),
            Err(Fault::Malformed(message)) => Err(ConnectError::Unexpected { url, origin, message }),
        }
    }
}

fn server(url: &http::Uri) -> Option<(String, u16)> {
    let default = if url.scheme_str() == Some("http") { 80 } else { 443 };
    Some((url.host()?.to_owned(), url.port_u16().unwrap_or(default)))
}

fn client(found: FoundConfig, options: &ConnectOptions) -> Result<kube::Client, ConnectError> {
    let FoundConfig {
        mut config,
        proxy,
        origin,
    } = found;
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    let url = config.cluster_url.to_string();
    let client = http_client::client(&config, proxy.as_ref(), options.observer.clone());
    client.map_err(|source| ConnectError::Setup { url, origin, source })
}
