//! The client's layers, from the socket up: TCP, the proxy if there is one, TLS, HTTP, and headers.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Uri};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use rustls::{ClientConfig, RootCertStore};
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn, util::option_layer};

use super::api_requests::{ApiRequest, RequestObserver};
use super::proxy::{Protocol, Proxy};
use super::recording::{Recorder, RecordingBody};
use super::renewed_credentials::{Layers, RenewedCredentials};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A dead connection must be detected while a drain waits on its watches, not after TCP's quarter of an hour.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// What looks at requests and answers.
#[derive(Clone)]
pub(super) struct Observation {
    /// Counts the requests.
    pub(super) observer: Option<RequestObserver>,
    /// Keeps what is read.
    pub(super) recorder: Option<Recorder>,
}

/// Creates a client of the configured server.
pub(super) fn client(
    config: &Config,
    proxy: Option<&Proxy>,
    observation: Observation,
) -> Result<kube::Client, BoxError> {
    let tcp = tcp();
    let Some(proxy) = proxy else {
        return over(config, tcp, observation);
    };
    let address = proxy.address.clone();
    match proxy.protocol {
        Protocol::Http => {
            let tunnel = Tunnel::new(address, to_proxy(proxy, tcp)?);
            let tunnel = match proxy.authorization() {
                Some(authorization) => tunnel.with_auth(authorization),
                None => tunnel,
            };
            over(config, tunnel, observation)
        }
        Protocol::Socks5 => {
            let socks = SocksV5::new(address, tcp);
            let socks = match proxy.login() {
                Some((user, password)) => socks.with_auth(user.clone(), password.clone()),
                None => socks,
            };
            over(config, socks, observation)
        }
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE / 2));
    tcp.set_keepalive_retries(Some(3));
    tcp
}

/// Connects to an `https://` proxy, verified with the system's certificates: those of the cluster do not apply to it.
fn to_proxy(proxy: &Proxy, tcp: HttpConnector) -> Result<HttpsConnector<HttpConnector>, BoxError> {
    let mut roots = RootCertStore::empty();
    if proxy.address.scheme_str() == Some("https") {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let ring = rustls::crypto::ring::default_provider();
    let tls = ClientConfig::builder_with_provider(ring.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new().with_tls_config(tls);
    Ok(https.https_or_http().enable_http1().wrap_connector(tcp))
}

/// The lower layers, with whatever credentials the configuration yields now.
fn over<C>(config: &Config, connector: C, observation: Observation) -> Result<kube::Client, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let namespace = config.default_namespace.clone();
    let mut config = config.clone();
    if config.cluster_url.scheme_str() == Some("http") {
        // Else the certificates of the system are read and parsed, for nothing.
        config.root_cert = Some(Vec::new());
    }
    let credentials = RenewedCredentials::new(move || layers(&config, connector.clone()))?;
    let service = service_fn(move |request: Request<Body>| {
        let asked = ApiRequest::of(&request);
        let Observation { observer, recorder } = observation.clone();
        let recorder = recorder.filter(|_| request.method() == Method::GET);
        let answering = Arc::clone(&credentials).send(request);
        async move {
            let answered = answering.await;
            if let Some(observer) = observer {
                let code = answered.as_ref().ok().map(|response| response.status().as_u16());
                observer.observe(ApiRequest { code, ..asked });
            }
            answered.map(|response| response.map(|body| RecordingBody::new(body, recorder.as_ref())))
        }
    });
    Ok(kube::Client::new(service, namespace))
}

/// Adds credentials, then our headers, then the server's address, then HTTP/2 if the server supports it.
fn layers<C>(config: &Config, connector: C) -> Result<Layers<Body, Incoming>, BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into()?));
    }
    let connector = tls.enable_all_versions().wrap_connector(connector);
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
    Ok(config.base_uri_layer().layer(service).boxed_clone())
}
