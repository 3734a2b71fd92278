//! Ctrl-C and SIGTERM, counted: the first asks what is under way to end in order; a second may end the program.

use std::sync::Arc;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use scupper_screen::Screen;

/// The signals since the beginning.
pub(super) struct Signals(watch::Receiver<u32>);

impl Signals {
    /// Begins to listen.
    pub(super) fn new() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(count(sender));
        Self(receiver)
    }

    /// Completes when so many signals have come; never if they cannot be received.
    pub(super) fn came(&self, number: u32) -> impl Future<Output = ()> + use<> {
        let mut count = self.0.clone();
        async move {
            if count.wait_for(|count| *count >= number).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Others write into the terminal while the process is stopped, as Ctrl-Z does it.
pub(super) fn forget_when_stopped(screen: &Arc<Screen>) {
    let screen = Arc::clone(screen);
    tokio::spawn(async move {
        let Ok(mut goes_on) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else {
            return;
        };
        while goes_on.recv().await.is_some() {
            screen.forget();
        }
    });
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
