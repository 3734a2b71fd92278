//! A server on loopback that reads one request per connection and behaves as the test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The behaviour of a server, in this order; then it closes the connection.
pub(crate) enum Act {
    /// Sends these bytes.
    Say(Vec<u8>),
    /// Nothing, until the client disconnects.
    Stall,
}

/// The reaction to a request, head and body.
pub(crate) type Answer = Arc<dyn Fn(&str) -> Vec<Act> + Send + Sync>;

/// A running server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    gone: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    /// Without TLS.
    pub(crate) async fn start(answer: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::listen(None, Arc::new(answer)).await
    }

    /// With TLS.
    pub(crate) async fn start_tls(
        tls: TlsAcceptor,
        answer: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(tls), Arc::new(answer)).await
    }

    /// Answers everything with 200 and the received request.
    pub(crate) async fn echo() -> Self {
        Self::start(|request| ok(request)).await
    }

    async fn listen(tls: Option<TlsAcceptor>, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let gone = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn({
            let (seen, gone) = (Arc::clone(&seen), Arc::clone(&gone));
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (tls, answer) = (tls.clone(), Arc::clone(&answer));
                    let (seen, gone) = (Arc::clone(&seen), Arc::clone(&gone));
                    tokio::spawn(async move {
                        match tls {
                            None => serve(stream, &answer, &seen).await,
                            Some(tls) => {
                                // A client that does not trust us disconnects here.
                                if let Ok(stream) = tls.accept(stream).await {
                                    serve(stream, &answer, &seen).await;
                                }
                            }
                        }
                        gone.fetch_add(1, Ordering::SeqCst);
                    });
                }
            }
        });
        Self {
            port,
            seen,
            gone,
            task,
        }
    }

    /// All requests so far, as received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The number of closed connections.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::SeqCst)
    }

    /// The only request so far.
    pub(crate) fn only(&self) -> String {
        let seen = self.requests();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.concat()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &Answer, seen: &Mutex<Vec<String>>) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    seen.lock().unwrap().push(request.clone());
    for act in answer(&request) {
        match act {
            Act::Say(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::Stall => {
                let mut rest = Vec::new();
                let _gone = stream.read_to_end(&mut rest).await.is_ok();
            }
        }
    }
    let _closed = stream.shutdown().await.is_ok();
}

/// A head, and as much of a body as it announces.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A response with this head, and a body with its length.
pub(crate) fn response(head: &str, body: impl AsRef<[u8]>) -> Vec<Act> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    vec![Act::Say(bytes)]
}

/// 200 with this body.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<Act> {
    response("200 OK", body)
}
