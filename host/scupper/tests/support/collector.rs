//! An OpenTelemetry collector on loopback, over HTTP and over gRPC. It reads messages by their field numbers, as the
//! protocol defines them, and knows nothing of the exporter.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The address for spans.
pub(crate) struct Collector {
    pub(crate) url: String,
    /// Over TLS: the certificate of the authority that signed its own.
    pub(crate) authority: Option<String>,
    seen: Arc<Mutex<ReceivedSpans>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct ReceivedSpans {
    asked: usize,
    turned_away: usize,
    headers: Vec<HeaderMap>,
    resources: Vec<Attributes>,
    spans: Vec<Span>,
}

/// Its reaction to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    /// It reads, and never answers.
    Hangs,
    /// It refuses everything, however often it is retried.
    Refuses,
}

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Self {
        Self::over(None, manner).await
    }

    /// Over TLS, with a certificate signed by an authority of its own.
    pub(crate) async fn secure() -> Self {
        let (acceptor, authority) = signed();
        let collector = Self::over(Some(acceptor), Manner::Takes).await;
        Self {
            url: collector.url.replace("http://", "https://"),
            authority: Some(authority),
            ..collector
        }
    }

    async fn over(tls: Option<TlsAcceptor>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<ReceivedSpans>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, tls, Arc::clone(&seen), manner));
        Self {
            url,
            authority: None,
            seen,
            _tasks: tasks,
        }
    }

    /// The number of requests received.
    pub(crate) fn asked(&self) -> usize {
        self.seen.lock().unwrap().asked
    }

    /// Connections by clients that did not trust its certificate.
    pub(crate) fn turned_away(&self) -> usize {
        self.seen.lock().unwrap().turned_away
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.seen.lock().unwrap().spans.clone()
    }

    /// The spans of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<Span> {
        let spans = self.spans().into_iter();
        spans.filter(|span| span.name == name).collect()
    }

    pub(crate) fn headers(&self) -> Vec<HeaderMap> {
        self.seen.lock().unwrap().headers.clone()
    }

    /// The resource attributes of the last request.
    pub(crate) fn resource(&self) -> Attributes {
        self.seen.lock().unwrap().resources.last().unwrap().clone()
    }
}

pub(crate) type Attributes = BTreeMap<String, String>;

/// A span, as the protocol numbers its fields.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) name: String,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) said: Attributes,
    /// `None`: unset; 1: success; 2: an error. And the message.
    pub(crate) status: Option<(u64, String)>,
}

impl Span {
    fn read(span: &Message) -> Self {
        let status = span.messages(15).pop();
        Self {
            trace: span.bytes(1),
            id: span.bytes(2),
            parent: span.bytes(4),
            name: span.text(5),
            begun: span.number(7),
            ended: span.number(8),
            said: attributes(span, 9),
            status: status.map(|it| (it.number(3), it.text(2))),
        }
    }
}

/// Attributes as text.
fn attributes(of: &Message, field: u64) -> Attributes {
    let pairs = of.messages(field).into_iter().map(|pair| {
        let value = pair.messages(2).pop().unwrap();
        let value = match value.0[..] {
            [(1, _)] => value.text(1),
            [(2, _)] => (value.number(2) != 0).to_string(),
            [(3, _)] => value.number(3).to_string(),
            _ => panic!("{value:?}"),
        };
        (pair.text(1), value)
    });
    pairs.collect()
}

/// The fields of a message.
#[derive(Debug)]
struct Message(Vec<(u64, Field)>);

#[derive(Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, length).to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &Field> {
        self.0.iter().filter(move |it| it.0 == field).map(|it| &it.1)
    }

    fn bytes(&self, field: u64) -> Vec<u8> {
        match self.all(field).last() {
            None => Vec::new(),
            Some(Field::Bytes(bytes)) => bytes.clone(),
            Some(Field::Number(number)) => panic!("{number}"),
        }
    }

    fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes(field)).unwrap()
    }

    fn number(&self, field: u64) -> u64 {
        match self.all(field).last() {
            None => 0,
            Some(Field::Number(number)) => *number,
            Some(Field::Bytes(bytes)) => panic!("{bytes:?}"),
        }
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        let read = |it: &Field| match it {
            Field::Bytes(bytes) => Self::read(bytes),
            Field::Number(number) => panic!("{number}"),
        };
        self.all(field).map(read).collect()
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0.. {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// A server of this address, and the certificate of its authority.
fn signed() -> (TlsAcceptor, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (Arc::new(config).into(), authority)
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    seen: Arc<Mutex<ReceivedSpans>>,
    manner: Manner,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, seen) = (tls.clone(), Arc::clone(&seen));
        connections.spawn(async move {
            match tls {
                None => serve(stream, seen, manner).await,
                // A client that does not trust us disconnects here.
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve(stream, seen, manner).await,
                    Err(_) => seen.lock().unwrap().turned_away += 1,
                },
            }
        });
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Mutex<ReceivedSpans>>,
    manner: Manner,
) {
    let service = service_fn(|request| respond(request, Arc::clone(&seen), manner));
    let builder = auto::Builder::new(TokioExecutor::new());
    // The exporting program was killed in the middle.
    builder.serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn respond(
    request: Request<Incoming>,
    seen: Arc<Mutex<ReceivedSpans>>,
    manner: Manner,
) -> Result<Response<http_body_util::combinators::BoxBody<Bytes, Infallible>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let grpc = head.headers["content-type"] == "application/grpc";
    let expected = match grpc {
        true => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        false => "/v1/traces",
    };
    assert_eq!(head.uri.path(), expected);
    let body = body.collect().await?.to_bytes();
    // gRPC puts a flag and a length before a message.
    let message = if grpc { body.slice(5..) } else { body };
    let message = Message::read(&message);
    seen.lock().unwrap().asked += 1;
    if manner == Manner::Hangs {
        std::future::pending::<()>().await;
    }
    if manner == Manner::Refuses {
        let response = Response::builder().status(400);
        return Ok(response.body(Full::new(Bytes::new()).boxed()).unwrap());
    }
    let mut seen = seen.lock().unwrap();
    seen.headers.push(head.headers);
    for of_resource in message.messages(1) {
        seen.resources.push(attributes(&of_resource.messages(1)[0], 1));
        for of_scope in of_resource.messages(2) {
            assert_eq!(of_scope.messages(1)[0].text(1), "scupper");
            seen.spans.extend(of_scope.messages(2).iter().map(Span::read));
        }
    }
    if !grpc {
        let response = Response::builder().header("content-type", "application/x-protobuf");
        return Ok(response.body(Full::new(Bytes::new()).boxed()).unwrap());
    }
    // An empty message, and the status behind it.
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let body = Full::new(Bytes::from_static(&[0; 5])).with_trailers(async move { Some(Ok(trailers)) });
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(body.boxed()).unwrap())
}
