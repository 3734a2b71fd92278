//! The last events, as text, and a fingerprint of every command.

use std::collections::VecDeque;

const KEPT: usize = 60;

#[derive(Debug)]
pub(crate) struct Trace {
    on: bool,
    whole: bool,
    lines: VecDeque<String>,
    hash: u64,
}

impl Trace {
    pub(crate) const fn new(on: bool) -> Self {
        Self {
            on,
            whole: false,
            lines: VecDeque::new(),
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Keeps every line, not only the last ones.
    pub(crate) const fn keep_all(&mut self) {
        self.whole = true;
    }

    pub(crate) fn note(&mut self, at: u64, line: impl FnOnce() -> String) {
        if self.on {
            if !self.whole && self.lines.len() == KEPT {
                self.lines.pop_front();
            }
            let mut line = line();
            if line.len() > 600 {
                let end = (0..=600)
                    .rev()
                    .find(|end| line.is_char_boundary(*end))
                    .unwrap_or(0);
                line.truncate(end);
                line.push('…');
            }
            self.lines
                .push_back(format!("{:>7}.{:03} {line}", at / 1000, at % 1000));
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }

    /// Adds to the fingerprint.
    pub(crate) fn stamp(&mut self, text: &str, number: u64) {
        for byte in text.bytes().chain(number.to_le_bytes()) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }
}
