//! Writes the output of a drain to standard output, in the requested format.

use std::io::{self, Write};

use scupper_engine::{Checkpoint, Node, Notice, Pod, Request, Time};
use scupper_pre_flight::Finding;
use serde_json::json;

use super::json::record;
use super::pre_flight::findings_record;
use super::{DrainLines, Estimate, PolicyMessage, not_ready, notice_to_json};

/// The format of notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    #[default]
    Human,
    /// One JSON object per line.
    Json,
}

/// Writes the output of one drain.
pub struct DrainOutput {
    format: Format,
    request: Request,
    progress: DrainLines,
    /// The node was not ready in its last known state.
    reported_not_ready: bool,
    out: Box<dyn Write + Send>,
}

impl DrainOutput {
    /// Starts the output on `out`.
    pub fn begin(format: Format, now: Time, request: &Request, mut out: Box<dyn Write + Send>) -> Self {
        let (progress, line) = DrainLines::begin(now, request);
        if format == Format::Human {
            write_lines(&mut out, &[line]);
        }
        Self {
            format,
            request: request.clone(),
            progress,
            reported_not_ready: false,
            out,
        }
    }

    /// Records that it continues a drain of another process.
    pub const fn resume(&mut self, mark: &Checkpoint) {
        self.progress.resume(mark);
    }

    /// Records the names of pods, because later notices contain only the UID.
    pub fn know<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>) {
        self.progress.know(pods);
    }

    /// Records the node, and reports once that it is not ready: its pods may never terminate.
    pub fn node(&mut self, now: Time, node: &Node) {
        let words = not_ready(node, now);
        let changed = words.filter(|_| !self.reported_not_ready);
        self.reported_not_ready = not_ready(node, now).is_some();
        let Some(words) = changed else { return };
        let line = match self.format {
            Format::Human => self.progress.not_ready(now, &words),
            Format::Json => {
                let fields = json!({ "kind": "nodeNotReady", "message": words });
                record(now, &self.request, fields).to_string()
            }
        };
        write_lines(&mut self.out, &[line]);
    }

    /// Writes a policy's message from a Kubernetes Event of the node.
    pub fn policy_message(&mut self, now: Time, words: &PolicyMessage) {
        let line = match self.format {
            Format::Human => self.progress.policy_message(now, words),
            Format::Json => record(now, &self.request, words.to_json()).to_string(),
        };
        write_lines(&mut self.out, &[line]);
    }

    /// Writes what pre-flight arithmetic has found.
    pub fn findings(&mut self, now: Time, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        let lines = match self.format {
            Format::Human => self.progress.findings(now, findings),
            Format::Json => vec![findings_record(now, &self.request, findings).to_string()],
        };
        write_lines(&mut self.out, &lines);
    }

    /// Writes when the drain will probably end.
    pub fn estimate(&mut self, now: Time, estimate: &Estimate) {
        let line = match self.format {
            Format::Human => self.progress.estimate(now, estimate),
            Format::Json => {
                let fields = json!({ "kind": "estimate", "estimate": estimate.to_json() });
                Some(record(now, &self.request, fields).to_string())
            }
        };
        write_lines(&mut self.out, line.as_slice());
    }

    /// Writes what is due although nothing has happened.
    pub fn turn(&mut self, now: Time) {
        if self.format == Format::Human {
            let lines = self.progress.turn(now);
            write_lines(&mut self.out, &lines);
        }
    }

    /// Writes one notice.
    pub fn notice(&mut self, now: Time, notice: &Notice) {
        let lines = match self.format {
            Format::Human => self.progress.lines(now, notice),
            Format::Json => vec![notice_to_json(now, &self.request, notice).to_string()],
        };
        write_lines(&mut self.out, &lines);
    }
}

/// Ignores errors: a closed pipe must not stop a drain.
fn write_lines(out: &mut dyn Write, lines: &[String]) {
    let written: io::Result<()> = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    if let Err(error) = written.and_then(|()| out.flush()) {
        tracing::debug!(%error, "standard output is gone");
    }
}
