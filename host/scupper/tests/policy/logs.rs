//! The log of the whole process, for tests that search it for their own lines.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Collects the log of all tests of this process from now on.
pub(crate) struct Lines {
    all: Arc<Mutex<Vec<u8>>>,
    /// Earlier lines belong to other tests.
    from: usize,
}

impl Lines {
    pub(crate) fn collect() -> Self {
        static LINES: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
        let start = || {
            let lines = Arc::new(Mutex::new(Vec::new()));
            let writer = Arc::clone(&lines);
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_writer(move || Self::of_all(&writer))
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            lines
        };
        Self::of_all(LINES.get_or_init(start))
    }

    fn of_all(all: &Arc<Mutex<Vec<u8>>>) -> Self {
        let from = all.lock().unwrap_or_else(PoisonError::into_inner).len();
        Self {
            all: Arc::clone(all),
            from,
        }
    }

    /// The lines of one policy.
    pub(crate) fn of(&self, policy: &str) -> Vec<String> {
        let text = self.all.lock().unwrap_or_else(PoisonError::into_inner)[self.from..].to_vec();
        let marks = [format!("policy=\"{policy}\""), format!("policy={policy} ")];
        String::from_utf8(text)
            .unwrap()
            .lines()
            .filter(|line| {
                marks.iter().any(|mark| line.contains(mark)) || line.ends_with(&format!("policy={policy}"))
            })
            .map(str::to_owned)
            .collect()
    }
}

/// How many lines a policy with the default limits may have written since it was loaded, at the earliest then:
/// fifty at once, and ten for every second, however slow the machine.
pub(crate) fn allowed_since(then: Instant) -> usize {
    50 + 10 * (1 + usize::try_from(then.elapsed().as_secs()).unwrap())
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
