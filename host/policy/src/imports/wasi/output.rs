//! Writes a guest's output into the log line by line, within the allowance of log lines.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::imports::store_data::PolicyContext;
use crate::runtime::usage::Counters;
use crate::wit::bindings::scupper::drain::log::Level;

/// A longer line is split into pieces, each of which counts as a line.
const LINE_BYTES: usize = 1024;

/// Bytes accepted at once.
const PERMIT: usize = 4096;

/// One of the guest's two outputs. An unfinished last line is written at the end of the call.
pub(super) struct Output {
    context: Arc<PolicyContext>,
    counters: Arc<Counters>,
    level: Level,
    line: Mutex<Vec<u8>>,
}

impl Output {
    pub(super) const fn new(context: Arc<PolicyContext>, counters: Arc<Counters>, level: Level) -> Self {
        Self {
            context,
            counters,
            level,
            line: Mutex::new(Vec::new()),
        }
    }

    fn print(&self, bytes: &[u8]) {
        // Bytes of a line: a panic cannot leave them half written.
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            for chunk in text.chunks(LINE_BYTES) {
                if line.len() + chunk.len() > LINE_BYTES {
                    self.log(&mut line);
                }
                line.extend_from_slice(chunk);
            }
            if ended {
                self.log(&mut line);
            }
        }
    }

    fn log(&self, line: &mut Vec<u8>) {
        let logged = self.context.log(self.level, &String::from_utf8_lossy(line));
        self.counters.line(logged);
        line.clear();
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let line = std::mem::take(self.line.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !line.is_empty() {
            self.context.log(self.level, &String::from_utf8_lossy(&line));
        }
    }
}

/// A guest may open its output several times; all of them share one buffer.
#[derive(Clone)]
pub(super) struct Stream(Arc<Output>);

impl Stream {
    pub(super) fn new(output: Output) -> Self {
        Self(Arc::new(output))
    }
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.print(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.print(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
