//! Connects to the API server with a kubeconfig or a service account.
//!
//! The HTTP stack is our own, not kube's default: that one repeats refused requests (429, 503, 504) up to fifteen
//! times, evictions included, and speaks only HTTP/1.1, which needs a connection for each pending eviction.

use http::{HeaderValue, Request, header};
use kube::config::{InClusterError, KubeconfigError};
use thiserror::Error;
use tower::BoxError;

use super::kubeconfig::{self, FoundConfig};
use super::proxy::ProxyUrlError;
use super::transport::{self, Fault};
use super::{Cluster, ConnectOptions, http_client};
use scupper_common::clock::Clock;

/// The client's name in the API server's audit log.
const USER_AGENT: &str = concat!("scupper/", env!("CARGO_PKG_VERSION"));

/// The reason why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No configuration was found.
    #[error("no cluster configuration found; tried {}; name one with --kubeconfig", tried.join(", "))]
    NoConfig {
        /// The sources that were tried, each with the reason why it failed.
        tried: Vec<String>,
    },
    /// The kubeconfig, or a file that it names, is missing or broken.
    #[error("cannot use the kubeconfig {path}")]
    Kubeconfig {
        /// Its path, or the value of `KUBECONFIG`.
        path: String,
        /// The cause.
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
        /// The missing name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The kubeconfig has contexts, but no current one.
    #[error("the kubeconfig {path} has no current context; {}", choices("context", known))]
    NoCurrentContext {
        /// Its path, or the value of `KUBECONFIG`.
        path: String,
        /// The existing contexts.
        known: Vec<String>,
    },
    /// The pod's service account cannot be used.
    #[error("cannot use the pod's service account")]
    ServiceAccount(#[source] Box<InClusterError>),
    /// The kubeconfig or the environment has an invalid proxy URL.
    #[error(transparent)]
    Proxy(#[from] ProxyUrlError),
    /// Keys, certificates or credentials are invalid.
    #[error("cannot set up the connection to {url} ({origin})")]
    Setup {
        /// The server's URL.
        url: String,
        /// The source of the URL: the kubeconfig and its context.
        origin: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The server does not answer.
    #[error("cannot reach the API server at {url}{}: {message} ({origin})", through(proxy.as_deref()))]
    Unreachable {
        /// The server's URL.
        url: String,
        /// The source of the URL: the kubeconfig and its context.
        origin: String,
        /// The URL of the proxy, if one is used.
        proxy: Option<String>,
        /// The client's error.
        message: String,
    },
    /// 401: the server rejects the credentials.
    #[error("the API server at {url} does not accept our credentials: {message}; renew them ({origin})")]
    Unauthorized {
        /// The server's URL.
        url: String,
        /// The source of the URL and the user: the kubeconfig and its context.
        origin: String,
        /// The server's message.
        message: String,
    },
    /// The answer is not from an API server, or from a broken one.
    #[error("no API server answers at {url}: {message} ({origin})")]
    Unexpected {
        /// The server's URL.
        url: String,
        /// The source of the URL: the kubeconfig and its context.
        origin: String,
        /// The answer.
        message: String,
    },
}

fn through(proxy: Option<&str>) -> String {
    proxy
        .map(|proxy| format!(" through the proxy {proxy}"))
        .unwrap_or_default()
}

/// Suggests what to type instead.
fn choices(what: &str, known: &[String]) -> String {
    if known.is_empty() {
        format!("it has no {what} at all")
    } else {
        format!("choose one with --{what}: {}", known.join(", "))
    }
}

impl Cluster {
    /// Reads the configuration and requests the server's version, so that a wrong address fails at once.
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
            // A refusal of the version still proves that the server knows the user.
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
    let observation = http_client::Observation {
        observer: options.observer.clone(),
        recorder: options.recorder.clone(),
    };
    let client = http_client::client(&config, proxy.as_ref(), observation);
    client.map_err(|source| ConnectError::Setup { url, origin, source })
}
