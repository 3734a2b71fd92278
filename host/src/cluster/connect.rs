//! From a kubeconfig or a service account to a connection.
//!
//! The stack is our own rather than kube's default one: that one repeats refused requests (429, 503, 504) by itself
//! up to fifteen times, evictions included, and speaks HTTP/1.1 only, which costs a connection a pending eviction.

use std::env;
use std::path::{Path, PathBuf};

use http::{HeaderValue, Request, header};
use kube::Config;
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error;
use tower::BoxError;

use super::proxy::{self, Proxy, ProxyError};
use super::requests::RequestObserver;
use super::transport::{self, Fault};
use super::{Cluster, ConnectOptions, stack};
use crate::clock::Clock;

/// How we call ourselves in the API server's audit log.
const USER_AGENT: &str = concat!("scupper/", env!("CARGO_PKG_VERSION"));

/// In place of the proxy that a kubeconfig names, so that the library looks for none in the environment.
const NOT_IN_USE: &str = "http://not-in-use";

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
    /// The service account of the pod cannot be used.
    #[error("cannot use the pod's service account")]
    ServiceAccount(#[source] Box<InClusterError>),
    /// The kubeconfig or the environment name a proxy that there cannot be.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// Keys, certificates or credentials do not work.
    #[error("cannot set up the connection to {url}")]
    Setup {
        /// The server's URL.
        url: String,
        /// What is wrong.
        #[source]
        source: BoxError,
    },
    /// Nobody answers there.
    #[error("cannot reach the API server at {url}{}: {message}", through(proxy.as_deref()))]
    Unreachable {
        /// The server's URL.
        url: String,
        /// The URL of the proxy on the way to it.
        proxy: Option<String>,
        /// What the client says.
        message: String,
    },
    /// 401: the server does not know us.
    #[error("the API server at {url} does not accept our credentials: {message}; renew them")]
    Unauthorized {
        /// The server's URL.
        url: String,
        /// The server's words.
        message: String,
    },
    /// Something answers there that is no API server, or a broken one.
    #[error("no API server answers at {url}: {message}")]
    Unexpected {
        /// The server's URL.
        url: String,
        /// What came.
        message: String,
    },
}

fn through(proxy: Option<&str>) -> String {
    proxy
        .map(|proxy| format!(" through the proxy {proxy}"))
        .unwrap_or_default()
}

impl Cluster {
    /// Reads the configuration and asks the server for its version, so that a wrong address shows at once.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (config, proxy) = config(options.kubeconfig.as_deref()).await?;
        let url = config.cluster_url.to_string();
        let server = server(&config.cluster_url);
        let client = client(config, proxy.as_ref(), options.observer.clone())?;
        let request = Request::get("/version").body(Vec::new());
        let request = request.map_err(|error| ConnectError::Setup {
            url: url.clone(),
            source: error.into(),
        })?;
        match transport::call::<serde_json::Value>(&client, request, options.request_timeout).await {
            // One who may not ask for the version is known all the same.
            Ok(_) | Err(Fault::Refused(403, _)) => {
                Ok(Self::at(server, client, options.clone(), Clock::System))
            }
            Err(Fault::Refused(401, status)) => Err(ConnectError::Unauthorized {
                url,
                message: status.message,
            }),
            Err(Fault::Unreachable(message)) => Err(ConnectError::Unreachable {
                url,
                proxy: proxy.map(|proxy| proxy.to_string()),
                message,
            }),
            Err(Fault::Refused(_, status)) => Err(ConnectError::Unexpected {
                url,
                message: status.message,
            }),
            Err(Fault::Malformed(message)) => Err(ConnectError::Unexpected { url, message }),
        }
    }
}

fn server(url: &http::Uri) -> Option<(String, u16)> {
    let default = if url.scheme_str() == Some("http") { 80 } else { 443 };
    Some((url.host()?.to_owned(), url.port_u16().unwrap_or(default)))
}

/// `--kubeconfig`, else `KUBECONFIG`, else `~/.kube/config`, else the pod's service account. What is named must work:
/// falling back to another cluster would drain the wrong one.
async fn config(flag: Option<&Path>) -> Result<(Config, Option<Proxy>), ConnectError> {
    if let Some(path) = flag {
        return from_file(path).await;
    }
    let mut tried = Vec::new();
    match env::var("KUBECONFIG") {
        Ok(list) if !list.is_empty() => {
            let merged = Kubeconfig::from_env().and_then(|config| config.ok_or(KubeconfigError::FindPath));
            return from_kubeconfig(merged, list).await;
        }
        _ => tried.push("KUBECONFIG (not set)".to_owned()),
    }
    match env::home_dir().map(|home| home.join(".kube/config")) {
        Some(path) if path.exists() => return from_file(&path).await,
        Some(path) => tried.push(format!("{} (no such file)", path.display())),
        None => tried.push("~/.kube/config (no home directory)".to_owned()),
    }
    if env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        tried.push("the pod's service account (KUBERNETES_SERVICE_HOST is not set)".to_owned());
        return Err(ConnectError::NoConfig { tried });
    }
    let config = Config::incluster_env();
    with_proxy(
        config.map_err(|error| ConnectError::ServiceAccount(Box::new(error)))?,
        None,
    )
}

async fn from_file(path: &Path) -> Result<(Config, Option<Proxy>), ConnectError> {
    let path: PathBuf = path.into();
    let name = path.display().to_string();
    from_kubeconfig(Kubeconfig::read_from(path), name).await
}

async fn from_kubeconfig(
    read: Result<Kubeconfig, KubeconfigError>,
    path: String,
) -> Result<(Config, Option<Proxy>), ConnectError> {
    let mut named = None;
    let config = match read {
        Ok(mut kubeconfig) => {
            named = take_proxy(&mut kubeconfig);
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
        }
        Err(error) => Err(error),
    };
    let config = config.map_err(|error| ConnectError::Kubeconfig {
        path,
        source: Box::new(error),
    })?;
    with_proxy(config, named.as_deref())
}

/// The proxy that the current cluster names. The library would look into the environment for one that names none, and
/// compare `NO_PROXY` with the proxy instead of the server.
fn take_proxy(kubeconfig: &mut Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == *current)?;
    let cluster = context.context.as_ref()?.cluster.clone();
    let known = kubeconfig
        .clusters
        .iter_mut()
        .find(|known| known.name == cluster)?;
    known.cluster.as_mut()?.proxy_url.replace(NOT_IN_USE.to_owned())
}

fn with_proxy(mut config: Config, named: Option<&str>) -> Result<(Config, Option<Proxy>), ConnectError> {
    config.proxy_url = None;
    let proxy = proxy::choose(named, &config.cluster_url, |name| env::var(name).ok())?;
    Ok((config, proxy))
}

fn client(
    mut config: Config,
    proxy: Option<&Proxy>,
    observer: Option<RequestObserver>,
) -> Result<kube::Client, ConnectError> {
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    let url = config.cluster_url.to_string();
    stack::client(&config, proxy, observer).map_err(|source| ConnectError::Setup { url, source })
}
