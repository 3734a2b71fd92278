//! Sends one batch of spans to the collector, over gRPC or as an HTTP body. Retries are not decided here.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prost::Message as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore, crypto};
use thiserror::Error;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use super::otlp::{ExportRequest, ExportResponse};
use super::settings::{Protocol, TraceSettings};
use super::span::short_line;

/// Maximum size of an answer, which contains a number and a sentence.
const ANSWER: usize = 64 * 1024;

/// The only method of the collector that Scupper calls.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// An error that prevents sending spans at all.
#[derive(Debug, Error)]
pub enum TracesError {
    /// The file of certificates is unusable.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read PEM certificates from {}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: pem::Error,
    },
    /// The file contains no usable certificate.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: {} contains no usable certificate; name a file of PEM certificates", .0.display())]
    NoCertificate(PathBuf),
    /// The platform's cryptography is unsuitable.
    #[error("cannot set up TLS for the collector")]
    Tls(#[source] rustls::Error),
}

/// An error that prevented the delivery of a batch.
#[derive(Debug, Error)]
pub(crate) enum SendError {
    #[error("no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("it could not be reached: {0}")]
    Unreachable(String),
    #[error("{0}; name a file with its CA's certificate in OTEL_EXPORTER_OTLP_CERTIFICATE")]
    NotBelieved(String),
    #[error("it answers {0}")]
    Refused(String, bool),
}

impl SendError {
    /// Whether a retry of the same batch may succeed.
    pub(super) const fn is_passing(&self) -> bool {
        !matches!(self, Self::Refused(_, false))
    }
}

type Body = tonic::body::Body;
type HttpClient = Client<HttpsConnector<HttpConnector>, Body>;

/// The connection to the collector.
pub(super) struct Collector {
    wire: Wire,
    headers: HeaderMap,
    timeout: Duration,
}

enum Wire {
    Grpc(Grpc<HttpClient>),
    Http(HttpClient, Uri),
}

impl Collector {
    /// Prepares the connection; it is opened with the first batch.
    pub(super) fn new(settings: &TraceSettings) -> Result<Self, TracesError> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(settings)?)
            .https_or_http();
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        let uri = settings.endpoint.clone();
        let wire = match settings.protocol {
            Protocol::Grpc => {
                let client = builder.http2_only(true);
                let client = client.build(connector.enable_http2().build());
                Wire::Grpc(Grpc::with_origin(client, uri))
            }
            Protocol::Http => Wire::Http(builder.build(connector.enable_http1().build()), uri),
        };
        let mut headers = settings.headers.clone();
        let name = HeaderValue::from_static(concat!("scupper/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(name);
        Ok(Self {
            wire,
            headers,
            timeout: settings.timeout,
        })
    }

    /// Sends one batch. Returns the number of spans that the collector rejected.
    pub(super) async fn send(&mut self, batch: ExportRequest) -> Result<u64, SendError> {
        let headers = self.headers.clone();
        let sent = async {
            match &mut self.wire {
                Wire::Grpc(client) => over_grpc(client, headers, batch).await,
                Wire::Http(client, uri) => over_http(client, uri, headers, &batch).await,
            }
        };
        let answer = tokio::time::timeout(self.timeout, sent).await;
        let answer = answer.map_err(|_elapsed| SendError::TimedOut(self.timeout))??;
        let unwanted = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(unwanted).unwrap_or_default())
    }
}

async fn over_grpc(
    client: &mut Grpc<HttpClient>,
    headers: HeaderMap,
    batch: ExportRequest,
) -> Result<ExportResponse, SendError> {
    let mut request = tonic::Request::new(batch);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    let path = PathAndQuery::from_static(EXPORT);
    client.ready().await.map_err(|error| unreachable(&error))?;
    let answer: Result<tonic::Response<_>, _> = client.unary(request, path, ProstCodec::default()).await;
    match answer {
        Ok(answer) => Ok(answer.into_inner()),
        Err(status) => Err(refused_by_grpc(&status)),
    }
}

fn refused_by_grpc(status: &Status) -> SendError {
    // An error of the connection, and not of the collector.
    if let Some(source) = status.source() {
        return unreachable(source);
    }
    let passing = matches!(
        status.code(),
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
    );
    let (code, message) = (status.code(), status.message());
    SendError::Refused(short_line(&format!("{code:?}: {message}")), passing)
}

async fn over_http(
    client: &HttpClient,
    uri: &Uri,
    headers: HeaderMap,
    batch: &ExportRequest,
) -> Result<ExportResponse, SendError> {
    let body = Full::new(Bytes::from(batch.encode_to_vec()));
    let mut request = Request::new(Body::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    *request.headers_mut() = headers;
    let kind = HeaderValue::from_static("application/x-protobuf");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    let answer = client
        .request(request)
        .await
        .map_err(|error| unreachable(&error))?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER).collect().await;
    let body = body.map_err(|error| unreachable(error.as_ref()))?.to_bytes();
    if status.is_success() {
        // An unreadable answer does not mean that the spans were rejected.
        return Ok(ExportResponse::decode(body).unwrap_or_default());
    }
    let passing = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    Err(SendError::Refused(status.to_string(), passing))
}

/// The TLS settings for an https collector: trusts the system's certificates, or those that the operator configured.
fn tls(settings: &TraceSettings) -> Result<ClientConfig, TracesError> {
    let mut roots = RootCertStore::empty();
    if settings.endpoint.scheme_str() == Some("https") {
        let believed = match &settings.certificates {
            Some(path) => named(path.clone())?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let (usable, _) = roots.add_parsable_certificates(believed);
        if let Some(path) = settings.certificates.clone().filter(|_| usable == 0) {
            return Err(TracesError::NoCertificate(path));
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TracesError::Tls)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn named(path: PathBuf) -> Result<Vec<CertificateDer<'static>>, TracesError> {
    let listed = CertificateDer::pem_file_iter(&path).and_then(Iterator::collect);
    listed.map_err(|source| TracesError::Certificates { path, source })
}

/// The error of a failed connection. The operator has to fix an untrusted certificate.
fn unreachable(error: &(dyn Error + 'static)) -> SendError {
    let words = causes(error);
    if words.contains("invalid peer certificate") {
        SendError::NotBelieved(words)
    } else {
        SendError::Unreachable(words)
    }
}

/// The text of an error with its causes. Some libraries repeat the cause in their own text.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    short_line(&text)
}
