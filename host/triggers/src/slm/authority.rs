//! Connections from a kubelet or any other gRPC client, with the `:authority` header corrected for our HTTP/2 library.
//!
//! A client that dials a socket by its path sends that path as the `:authority` of every request: the kubelet and all
//! of gRPC's C core (Python, C++, Ruby) percent-encode it, Java does not. Our library accepts neither form, nor an
//! empty one, and resets the stream. So this module rewrites all incoming headers with `localhost` as `:authority`, and
//! passes everything else unchanged. It must not know what the requests mean.

mod frames;
mod headers;
mod table;
mod text;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tonic::transport::server::Connected;

use frames::Frames;

/// Number of bytes per read.
const ROOM: usize = 8 * 1024;

/// A connection from a kubelet, or another client.
#[derive(Debug)]
pub(super) struct KubeletStream {
    stream: UnixStream,
    frames: Frames,
}

impl KubeletStream {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            frames: Frames::default(),
        }
    }
}

impl AsyncRead for KubeletStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.frames.give(room) {
            let mut bytes = [0; ROOM];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                // End of the stream; half a frame is useless.
                return Poll::Ready(Ok(()));
            }
            self.frames.take(read.filled());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for KubeletStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connected for KubeletStream {
    type ConnectInfo = <UnixStream as Connected>::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

#[cfg(test)]
mod tests;
