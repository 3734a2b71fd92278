//! A kubelet with its own root, and a clock that the test sets.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

pub(crate) use crate::limit::LIMIT;
use kube::{Client, Config};
use scupper_simulator::kubelet::{Kubelet, KubeletHandle, Options, Timing};
use tokio::time::advance;

/// Tests in real time run this much faster than a kubelet: a pass each 100 ms, a check of the sockets each 10 ms.
const FASTER: u32 = 100;

pub(crate) struct World {
    pub(crate) kubelet: KubeletHandle,
    folder: tempfile::TempDir,
    _clock: ClockHold,
}

impl World {
    /// A kubelet without an API server, for tests that need none.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let nowhere = Config::new("http://127.0.0.1:1".parse().unwrap());
        Self::on(Client::try_from(nowhere).unwrap(), change).await
    }

    pub(crate) async fn on(client: Client, change: impl FnOnce(&mut Options)) -> Self {
        let clock = ClockHold::begin();
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(client, "worker-1", folder.path());
        options.timing = Timing::faster(FASTER);
        change(&mut options);
        Self {
            kubelet: Kubelet::start(options).unwrap(),
            folder,
            _clock: clock,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the folder of registration sockets.
    pub(crate) fn registry(&self, name: &str) -> PathBuf {
        self.root().join("plugins_registry").join(name)
    }

    /// A path for a service socket.
    pub(crate) fn service(&self, name: &str) -> PathBuf {
        self.root()
            .join("plugins/drain.example")
            .join(format!("{name}.sock"))
    }

    /// Lets the kubelet check its sockets this many times: a socket created now is answered that much later.
    pub(crate) async fn ticks(&self, ticks: u32) {
        tokio::time::sleep(Timing::faster(FASTER).registry_tick * ticks).await;
    }
}

/// While this exists, a paused clock advances only when a test advances it: sockets take real time.
struct ClockHold(#[expect(dead_code, reason = "held, never read")] mpsc::Sender<()>);

impl ClockHold {
    fn begin() -> Self {
        let (end, ended) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || ended.recv());
        Self(end)
    }
}

/// Advances a paused clock, and gives sockets the real time that they need for due work.
pub(crate) async fn step(time: Duration) {
    advance(time).await;
    let settle = || std::thread::sleep(Duration::from_millis(3));
    tokio::task::spawn_blocking(settle).await.unwrap();
}
