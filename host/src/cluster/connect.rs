//! From a kubeconfig or a service account to a connection.
//!
//! The stack is our own rather than kube's default one: that one repeats refused requests (429, 503, 504) by itself
//! up to fifteen times, evictions included, and speaks HTTP/1.1 only, which costs a connection a pending eviction.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderValue, Request, header};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn, util::option_layer};

use super::requests::{ApiRequest, RequestObserver};
use super::transport::{self, Fault};
use super::{Cluster, ConnectOptions};
use crate::clock::Clock;

/// How we call ourselves in the API server's audit log.
const USER_AGENT: &str = concat!("scupper/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that is silently gone must show while a drain waits on its watches, not after TCP's quarter of an hour.
const KEEPALIVE: Duration = Duration::from_secs(20);

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
    /// The kubeconfig wants a proxy.
    #[error("the kubeconfig wants the proxy {proxy}, which scupper cannot use; remove proxy-url from it")]
    Proxy {
        /// Its URL.
        proxy: String,
    },
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
    #[error("cannot reach the API server at {url}: {message}")]
    Unreachable {
        /// The server's URL.
        url: String,
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

impl Cluster {
    /// Reads the configuration and asks the server for its version, so that a wrong address shows at once.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let config = config(options.kubeconfig.as_deref()).await?;
        let url = config.cluster_url.to_string();
        let server = server(&config.cluster_url);
        let client = client(config, options.observer.clone())?;
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
            Err(Fault::Unreachable(message)) => Err(ConnectError::Unreachable { url, message }),
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
async fn config(flag: Option<&Path>) -> Result<Config, ConnectError> {
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
    Config::incluster_env().map_err(|error| ConnectError::ServiceAccount(Box::new(error)))
}

async fn from_file(path: &Path) -> Result<Config, ConnectError> {
    let path: PathBuf = path.into();
    let name = path.display().to_string();
    from_kubeconfig(Kubeconfig::read_from(path), name).await
}

async fn from_kubeconfig(
    read: Result<Kubeconfig, KubeconfigError>,
    path: String,
) -> Result<Config, ConnectError> {
    let config = match read {
        Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await,
        Err(error) => Err(error),
    };
    config.map_err(|error| ConnectError::Kubeconfig {
        path,
        source: Box::new(error),
    })
}

fn client(mut config: Config, observer: Option<RequestObserver>) -> Result<kube::Client, ConnectError> {
    if let Some(proxy) = &config.proxy_url {
        return Err(ConnectError::Proxy {
            proxy: proxy.to_string(),
        });
    }
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    let url = config.cluster_url.to_string();
    stack(&config, observer).map_err(|source| ConnectError::Setup { url, source })
}

/// Credentials, then our headers, then the server's address, then HTTP/2 where the server speaks it.
fn stack(config: &Config, observer: Option<RequestObserver>) -> Result<kube::Client, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE / 2));
    tcp.set_keepalive_retries(Some(3));

    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into()?));
    }
    let connector = tls.enable_all_versions().wrap_connector(tcp);
    let client: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_keep_alive_timeout(KEEPALIVE)
        .build(connector);

    let service = config
        .extra_headers_layer()?
        .layer(client.map_err(BoxError::from));
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service).boxed_clone();
    let service = service_fn(move |request: Request<Body>| {
        let asked = ApiRequest::of(&request);
        let (observer, answering) = (observer.clone(), service.clone().oneshot(request));
        async move {
            let answered = answering.await;
            if let Some(observer) = observer {
                let code = answered.as_ref().ok().map(|response| response.status().as_u16());
                observer.observe(ApiRequest { code, ..asked });
            }
            answered
        }
    });
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
