//! One request and one response over a connection that serves nothing else.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use scupper_common::error::chain;
use thiserror::Error;

use super::connect::Stream;

/// Bytes of a response's head. Heads of Nova and slurmrestd have less than two thousand; with cookies and policies of
/// some gateways they reach twenty thousand.
const HEAD_BYTES: usize = 64 * 1024;

/// Headers of a response.
const HEADERS: usize = 100;

/// How a request may end without a response.
#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    /// The server closed the connection before anything was written.
    #[error("the connection was closed before the request: {0}")]
    NotSent(String),
    /// The server closed the connection, or answered with invalid HTTP.
    #[error("{0}")]
    Broken(String),
    /// The body has an encoding in which the host cannot search for secrets.
    #[error("the response has the content encoding `{0}`, which was not requested")]
    Encoded(String),
    /// Its body is longer than the limit.
    #[error("the response is too long")]
    TooLarge,
}

/// A complete response.
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Sends the request, and reads a response of at most this many bytes. `sent` becomes true before the first byte
/// leaves.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    limit: usize,
    sent: &AtomicBool,
) -> Result<Whole, ExchangeError> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| ExchangeError::NotSent(chain(&error)))?;
    sent.store(true, Ordering::Relaxed);
    let exchange = async move {
        let response = sender.try_send_request(request).await.map_err(|mut error| {
            let unsent = error.take_message().is_some();
            let reported = chain(error.error());
            if unsent {
                ExchangeError::NotSent(reported)
            } else {
                ExchangeError::Broken(reported)
            }
        })?;
        read(response, limit).await
    };
    // The connection does the work, the exchange yields the result. Both belong to this future, so dropping it leaves
    // nothing behind.
    let connection = async {
        let _ended = connection.await.is_ok();
        pending::<Infallible>().await
    };
    let (exchange, connection) = (pin!(exchange), pin!(connection));
    tokio::select! {
        whole = exchange => whole,
        never = connection => match never {},
    }
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Whole, ExchangeError> {
    let (head, mut incoming) = response.into_parts();
    let encoding = head.headers.get(header::CONTENT_ENCODING);
    if let Some(encoding) = encoding.filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Err(ExchangeError::Encoded(encoding.into_owned()));
    }
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| ExchangeError::Broken(chain(&error)))?;
        // Trailers are not passed on.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if body.len() + data.len() > limit {
            return Err(ExchangeError::TooLarge);
        }
        body.extend_from_slice(&data);
    }
    Ok(Whole {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
    })
}
