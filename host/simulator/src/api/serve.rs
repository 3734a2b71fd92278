//! The HTTP side: connections, headers, faults, the log.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::access::{self, Asker, Rule};
use super::discovery;
use super::failure::Failure;
use super::faults::{Dropped, Faults};
use super::handle::{self, Answer, Asked};
use super::kinds::Kind;
use super::requests::{RequestLog, RequestRecord};
use super::shape::Shape;
use super::store::Store;
use super::target::{Query, Target};
use super::watch::{Setting, Watcher};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long a server that stops waits for the end of its answers.
const CLOSING: Duration = Duration::from_secs(1);

/// The resource by which every user may ask for its permissions.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const OWN_NAME: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The state that all connections share.
pub(crate) struct Service {
    pub(crate) store: Store,
    pub(crate) kinds: Vec<Arc<Kind>>,
    pub(crate) log: RequestLog,
    pub(crate) faults: Faults,
    pub(crate) rules: Mutex<Vec<Rule>>,
    pub(crate) running: watch::Sender<bool>,
    pub(crate) breaker: Mutex<CancellationToken>,
    pub(crate) bookmark_every: Duration,
    pub(crate) watch_list: bool,
}

/// Accepts until the server stops.
pub(crate) async fn accept(listener: TcpListener, service: Arc<Service>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        if let Ok((stream, _)) = accepted {
            tokio::spawn(connection(stream, Arc::clone(&service), stop.clone()));
        }
    }
}

async fn connection(stream: TcpStream, service: Arc<Service>, stop: CancellationToken) {
    // Send small responses at once.
    drop(stream.set_nodelay(true));
    let handler = service_fn(move |request| Arc::clone(&service).respond(request));
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), handler));
    tokio::select! {
        () = stop.cancelled() => {}
        // The client notices a broken connection.
        _done = &mut served => return,
    }
    // As a real API server, it lets watches end, and answers what it has begun.
    served.as_mut().graceful_shutdown();
    let _closed = timeout(CLOSING, served).await;
}

impl Service {
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let query = query(&parts.uri);
        let target = Target::parse(&path, &self.kinds);
        let verb = target
            .as_ref()
            .and_then(|it| handle::verb(parts.method.as_str(), it, &query));
        let header = |name| {
            parts
                .headers
                .get(name)
                .and_then(|it| it.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let asker = Asker {
            user: header(header::AUTHORIZATION)
                .trim_start_matches("Bearer ")
                .to_owned(),
            user_agent: header(header::USER_AGENT),
        };
        let record = self.record(&parts, &asker, target.as_ref(), verb);
        let number = self.log.note(record.clone());
        let mut running = self.running.subscribe();
        // A server whose sender is gone has stopped: the connection ends with it.
        running.wait_for(|it| *it).await.map_err(|_closed| Dropped)?;
        let fault = self.faults.pick(&record);
        if let Some(failure) = fault.before().await? {
            return Ok(self.refuse(number, &failure));
        }
        let body = body
            .collect()
            .await
            .map_err(|_broken| Dropped)?
            .to_bytes()
            .to_vec();
        let done = match (target, verb) {
            (Some(target), Some(verb)) => {
                let shape = Shape::parse(&header(header::ACCEPT));
                let asked = Asked {
                    target,
                    query,
                    verb,
                    shape,
                    content_type: header(header::CONTENT_TYPE),
                    body,
                };
                self.operate(asked, &asker).await
            }
            (Some(_), None) => Err(Failure::method_not_allowed()),
            (None, _) => match path.as_str() {
                "/healthz" | "/livez" | "/readyz" => {
                    self.log.answered(number, 200);
                    return Ok(plain(Full::new(Bytes::from_static(b"ok")).boxed_unsync(), 200));
                }
                REVIEWS => {
                    let asked = serde_json::from_slice(&body).unwrap_or_default();
                    Ok(Answer::Object(201, access::review(&self.rules(), &asker, asked)))
                }
                OWN_NAME => Ok(Answer::Object(201, access::own_name(&asker))),
                path => discovery::answer(path, &self.kinds)
                    .map(|it| Answer::Object(200, it))
                    .ok_or_else(Failure::no_such_path),
            },
        };
        fault.after().await?;
        Ok(match done {
            Ok(Answer::Object(code, object)) => {
                self.log.answered(number, code);
                json(code, &object)
            }
            Ok(Answer::Watch(watcher)) => {
                self.log.answered(number, 200);
                lines(*watcher)
            }
            Err(failure) => self.refuse(number, &failure),
        })
    }

    async fn operate(&self, asked: Asked, asker: &Asker) -> Result<Answer, Failure> {
        access::check(&self.rules(), asker, asked.verb, &asked.target, &asked.query)?;
        let setting = || Setting {
            store: self.store.clone(),
            running: self.running.subscribe(),
            broken: self
                .breaker
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            bookmark_every: self.bookmark_every,
            watch_list: self.watch_list,
        };
        asked.answer(&self.store, setting).await
    }

    fn rules(&self) -> Vec<Rule> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    fn record(
        &self,
        parts: &http::request::Parts,
        asker: &Asker,
        target: Option<&Target>,
        verb: Option<&'static str>,
    ) -> RequestRecord {
        let method = parts.method.as_str().to_owned();
        let headers = |name| {
            let all = parts.headers.get_all(name).into_iter();
            all.filter_map(|it| it.to_str().ok().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        RequestRecord {
            time: self.store.read(|table| table.clock.now()),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            user_agent: asker.user_agent.clone(),
            user: asker.user.clone(),
            impersonated: headers("impersonate-user").concat(),
            impersonated_groups: headers("impersonate-group"),
            verb: verb.map_or_else(|| method.to_lowercase(), str::to_owned),
            resource: target.map(|it| it.kind.resource()).unwrap_or_default(),
            subresource: target.and_then(|it| it.subresource.clone()).unwrap_or_default(),
            method,
            status: None,
        }
    }

    fn refuse(&self, number: usize, failure: &Failure) -> Response<Body> {
        self.log.answered(number, failure.code);
        let mut response = json(failure.code, &failure.body);
        if let Some(seconds) = failure.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

fn query(uri: &http::Uri) -> Query {
    let parsed = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
    Query(parsed.map(|it| it.0).unwrap_or_default())
}

fn plain(body: Body, code: u16) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn json(code: u16, object: &Value) -> Response<Body> {
    let mut text = object.to_string();
    text.push('\n');
    let mut response = plain(Full::new(Bytes::from(text)).boxed_unsync(), code);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

fn lines(watcher: Watcher) -> Response<Body> {
    let stream = stream::unfold(watcher, |mut watcher| async move {
        let line = watcher.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), watcher))
    });
    let mut response = plain(StreamBody::new(stream).boxed_unsync(), 200);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
