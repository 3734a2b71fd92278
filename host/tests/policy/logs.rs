//! What the whole process logs, for tests that look for their own lines in it.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Collects what is logged from now on, by all tests of this process.
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn collect() -> Self {
        static LINES: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
        let start = || {
            let lines = Arc::new(Mutex::new(Vec::new()));
            let writer = Arc::clone(&lines);
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_writer(move || Self(Arc::clone(&writer)))
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            lines
        };
        Self(Arc::clone(LINES.get_or_init(start)))
    }

    /// The lines of one policy.
    pub(crate) fn of(&self, policy: &str) -> Vec<String> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
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

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
