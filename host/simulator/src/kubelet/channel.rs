//! A gRPC channel that behaves like the kubelet's client library.
//!
//! It connects at once, and retries with growing pauses while it is refused. A ready channel becomes idle when the connection
//! ends or after half an hour without calls; then only a call makes it connect again, waiting for readiness does not.
//!
//! ```text
//!            ┌───── a call ◄───────────────────┐
//!            ▼                                 │
//!   ──► connecting ──► ready ── ended, unused ──► idle
//!            │ ▲
//!    refused ▼ │ pause
//!          failing ── a call fails at once
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::options::Timing;
use super::wire::{self, Cut};

/// The growth of the pause after a refused connection, in tenths.
const GROWTH_TENTHS: u32 = 16;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);
/// The time limit of one attempt to connect, including the server's first bytes.
const ATTEMPT: Duration = Duration::from_secs(20);

/// A channel to one socket. Dropped, its connection ends.
#[derive(Debug)]
pub(super) struct Channel {
    path: PathBuf,
    state: Arc<watch::Sender<State>>,
    usage: Arc<Mutex<Usage>>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
    timing: Timing,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Connecting,
    Ready {
        channel: tonic::transport::Channel,
        cut: Arc<Cut>,
    },
    Failing(String),
}

#[derive(Debug)]
struct Usage {
    last: Instant,
    running: usize,
}

impl Channel {
    /// Starts to connect.
    pub(super) fn dial(path: &Path, timing: &Timing) -> Self {
        let channel = Self {
            path: path.to_owned(),
            state: Arc::new(watch::Sender::new(State::Idle)),
            usage: Arc::new(Mutex::new(Usage {
                last: Instant::now(),
                running: 0,
            })),
            task: Mutex::new(None),
            timing: timing.clone(),
        };
        channel.wake();
        channel
    }

    /// Waits until the channel is ready, without making an idle one connect.
    pub(super) async fn ready(&self, limit: Duration) -> Result<(), String> {
        let mut state = self.state.subscribe();
        let waited = timeout(
            limit,
            state.wait_for(|state| matches!(state, State::Ready { .. })),
        )
        .await;
        match waited {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                let state = match &*self.state.borrow() {
                    State::Idle => "idle".to_owned(),
                    State::Connecting => "connecting".to_owned(),
                    State::Ready { .. } => "ready".to_owned(),
                    State::Failing(why) => why.clone(),
                };
                Err(format!("no connection within {limit:?}: {state}"))
            }
        }
    }

    /// A client for one call. Connects an idle channel; fails at once if the connection is refused.
    pub(super) async fn call(&self) -> Result<Way, Status> {
        let mut state = self.state.subscribe();
        if matches!(*state.borrow(), State::Idle) {
            self.wake();
        }
        let settled = state
            .wait_for(|state| matches!(state, State::Ready { .. } | State::Failing(_)))
            .await
            .map(|s| s.clone());
        match settled {
            Ok(State::Ready { channel, .. }) => Ok(Way::new(channel, Arc::clone(&self.usage))),
            Ok(State::Failing(why)) => Err(Status::unavailable(why)),
            Ok(State::Idle | State::Connecting) | Err(_) => Err(Status::unavailable("the channel is closed")),
        }
    }

    /// Cuts the connection, also a pending one. The channel is idle then.
    pub(super) fn cut(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        *task = None;
        if let State::Ready { cut, .. } = self.state.send_replace(State::Idle) {
            cut.now();
        }
    }

    fn wake(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*self.state.borrow(), State::Idle) {
            return;
        }
        self.state.send_replace(State::Connecting);
        let life = Life {
            path: self.path.clone(),
            state: Arc::clone(&self.state),
            usage: Arc::clone(&self.usage),
            timing: self.timing.clone(),
        };
        *task = Some(AbortOnDropHandle::new(tokio::spawn(life.live())));
    }
}

/// A channel from connecting to idle.
struct Life {
    path: PathBuf,
    state: Arc<watch::Sender<State>>,
    usage: Arc<Mutex<Usage>>,
    timing: Timing,
}

impl Life {
    async fn live(self) {
        let mut pause = self.timing.reconnect;
        loop {
            self.state.send_replace(State::Connecting);
            match self.connect().await {
                Ok(ended) => {
                    tokio::select! {
                        _ = ended => {}
                        () = unused(&self.usage, self.timing.idle) => self.close(),
                    }
                    self.state.send_replace(State::Idle);
                    return;
                }
                Err(why) => {
                    self.state.send_replace(State::Failing(why));
                    sleep(pause).await;
                    pause = (pause * GROWTH_TENTHS / 10).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// A connection counts once the server has sent something: a server that listens without accepting does not.
    async fn connect(&self) -> Result<oneshot::Receiver<()>, String> {
        let attempt = async {
            let connection = wire::connect(&self.path).await?;
            let gone = |_| format!("{} hung up", self.path.display());
            connection.spoke.await.map_err(gone)?;
            Ok::<_, String>((connection.channel, connection.cut, connection.ended))
        };
        let silent = |_| format!("{} does not respond", self.path.display());
        let (channel, cut, ended) = timeout(ATTEMPT, attempt).await.map_err(silent)??;
        lock(&self.usage).last = Instant::now();
        self.state.send_replace(State::Ready {
            channel,
            cut: Arc::new(cut),
        });
        Ok(ended)
    }

    fn close(&self) {
        if let State::Ready { cut, .. } = &*self.state.borrow() {
            cut.now();
        }
    }
}

/// Ends after this long without a call.
async fn unused(usage: &Mutex<Usage>, limit: Duration) {
    loop {
        let (last, running) = {
            let usage = lock(usage);
            (usage.last, usage.running)
        };
        let end = if running > 0 {
            Instant::now() + limit
        } else {
            last + limit
        };
        if end <= Instant::now() {
            return;
        }
        sleep_until(end).await;
    }
}

/// A client for the duration of a call.
#[derive(Debug)]
pub(super) struct Way {
    /// The socket to call.
    pub channel: tonic::transport::Channel,
    usage: Arc<Mutex<Usage>>,
}

impl Way {
    fn new(channel: tonic::transport::Channel, usage: Arc<Mutex<Usage>>) -> Self {
        lock(&usage).running += 1;
        Self { channel, usage }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        let mut usage = lock(&self.usage);
        usage.running = usage.running.saturating_sub(1);
        usage.last = Instant::now();
    }
}

fn lock(usage: &Mutex<Usage>) -> MutexGuard<'_, Usage> {
    usage.lock().unwrap_or_else(PoisonError::into_inner)
}
