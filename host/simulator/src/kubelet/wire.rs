//! One connection to a Unix socket, which reports the first bytes of the other side and the end of the connection.
//!
//! A gRPC channel counts as ready only once the server has sent something, and a test may cut it.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

/// A connection and its events.
pub(super) struct Connection {
    /// For calls. Once the connection has ended, calls fail: there is no reconnect.
    pub channel: Channel,
    /// Cuts the connection.
    pub cut: Cut,
    /// Done when the other side sends something; an error if the connection ends before.
    pub spoke: oneshot::Receiver<()>,
    /// Done, with an error, when the connection has ended.
    pub ended: oneshot::Receiver<()>,
}

/// Cuts a connection for both sides on a signal.
#[derive(Debug)]
pub(super) struct Cut(StdStream);

impl Cut {
    pub(super) fn now(&self) {
        // A connection that has ended is already cut.
        self.0.shutdown(Shutdown::Both).ok();
    }
}

/// Connects to a socket.
pub(super) async fn connect(path: &Path) -> Result<Connection, String> {
    let refused = |error: io::Error| format!("cannot connect to {}: {error}", path.display());
    let stream = UnixStream::connect(path)
        .await
        .map_err(refused)?
        .into_std()
        .map_err(refused)?;
    let cut = Cut(stream.try_clone().map_err(refused)?);
    let (say_spoke, spoke) = oneshot::channel();
    let (say_ended, ended) = oneshot::channel();
    let wire = Wire {
        stream: UnixStream::from_std(stream).map_err(refused)?,
        spoke: Some(say_spoke),
        _ended: say_ended,
    };
    let once = Mutex::new(Some(wire));
    let connector = tower::service_fn(move |_| {
        let wire = once.lock().ok().and_then(|mut wire| wire.take());
        std::future::ready(
            wire.map(TokioIo::new)
                .ok_or_else(|| io::Error::other("the connection has ended")),
        )
    });
    // The name is never resolved: the connector has the path.
    let channel = Endpoint::from_static("http://localhost")
        .connect_with_connector(connector)
        .await
        .map_err(|error| format!("cannot speak HTTP/2 on {}: {error}", path.display()))?;
    Ok(Connection {
        channel,
        cut,
        spoke,
        ended,
    })
}

/// The stream below the HTTP connection.
struct Wire {
    stream: UnixStream,
    spoke: Option<oneshot::Sender<()>>,
    _ended: oneshot::Sender<()>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, room))?;
        if room.filled().len() > before
            && let Some(spoke) = self.spoke.take()
        {
            // The receiver may be gone.
            spoke.send(()).ok();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
