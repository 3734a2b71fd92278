//! A gate before a server: closing it cuts open connections and refuses new ones until it opens again, like a server
//! that is restarted.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The gate to one server.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Gate {
    /// To `server`, such as `127.0.0.1:6443`.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, opened) = watch::channel(true);
        let task = tokio::spawn(keep(listener, server, opened));
        Self { address, open, task }
    }

    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(first: TcpListener, server: String, mut open: watch::Receiver<bool>) {
    let address = first.local_addr().unwrap();
    let mut listener = first;
    loop {
        let mut ways = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (mut client, _) = accepted.unwrap();
                    let server = server.clone();
                    ways.spawn(async move {
                        if let Ok(mut server) = TcpStream::connect(server).await {
                            // Either end may disconnect.
                            copy_bidirectional(&mut client, &mut server).await.ok();
                        }
                    });
                }
                closed = open.wait_for(|open| !open) => match closed {
                    Ok(_) => break,
                    Err(_) => return,
                },
            }
        }
        drop((listener, ways));
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        listener = TcpListener::bind(address).await.unwrap();
    }
}
