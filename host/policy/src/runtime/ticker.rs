//! The thread that measures the guests' time. It is a separate thread, because a task of the runtime would stop when
//! guests occupy all workers; it sleeps while no guest runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use wasmtime::EngineWeak;

/// How often the driver interrupts a running guest: no guest occupies a worker thread for longer.
const TICK: Duration = Duration::from_millis(10);

/// Ticks while guests run; ends when dropped, or with its engine.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
}

/// Marks a guest as running while it lives.
pub(crate) struct Running {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    stopped: bool,
}

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: EngineWeak) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("policy-clock".to_owned())
            .spawn(move || tick(&theirs, &engine))?;
        Ok(Self { shared })
    }

    /// Registers a running guest.
    pub(crate) fn running(&self) -> Running {
        self.shared.lock().running += 1;
        self.shared.changed.notify_one();
        Running {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.lock().running -= 1;
    }
}

impl Shared {
    /// The state is two plain values: a panic cannot leave them half written.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tick(shared: &Shared, engine: &EngineWeak) {
    loop {
        let state = shared.lock();
        let idle = shared
            .changed
            .wait_while(state, |state| state.running == 0 && !state.stopped);
        let stopped = idle.unwrap_or_else(PoisonError::into_inner).stopped;
        if stopped {
            return;
        }
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}
