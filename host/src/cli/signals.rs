//! Ctrl-C and SIGTERM, counted: the first asks what is under way to end in order; a second may end the program.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The signals since the beginning.
pub(super) struct Signals(watch::Receiver<u32>);

impl Signals {
    /// Begins to listen.
    pub(super) fn new() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(count(sender));
        Self(receiver)
    }

    /// So many have come. Never, where none can be heard.
    pub(super) fn came(&self, number: u32) -> impl Future<Output = ()> + use<> {
        let mut count = self.0.clone();
        async move {
            if count.wait_for(|count| *count >= number).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn count(count: watch::Sender<u32>) {
    let listeners = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = listeners else {
        tracing::warn!("cannot listen for signals: Ctrl-C ends the program at once");
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        count.send_modify(|count| *count += 1);
    }
}
