//! What the driver tells its triggers. What it does now is a level, of which only the newest counts; the end of a drain
//! is an answer, which must reach every trigger even if the next drain begins at the same moment.

use std::iter;

use tokio::sync::{mpsc, watch};

use crate::{DrainReport, DriverState};

/// Sends reports to every trigger.
#[derive(Clone, Debug, Default)]
pub struct DrainReportSender {
    queues: Vec<mpsc::UnboundedSender<DrainReport>>,
}

impl DrainReportSender {
    /// One more queue, for what this sender and its later clones report.
    pub fn subscribe(&mut self) -> mpsc::UnboundedReceiver<DrainReport> {
        let (queue, reports) = mpsc::unbounded_channel();
        self.queues.push(queue);
        reports
    }

    /// A trigger may have ended before the drain.
    pub fn send(&self, report: &DrainReport) {
        for queue in &self.queues {
            queue.send(report.clone()).unwrap_or_default();
        }
    }
}

/// News for a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverChange {
    /// Of one drain.
    Report(DrainReport),
    /// What the driver does now.
    State(DriverState),
}

/// Both in one order: no state comes before the end of a drain that it follows.
#[derive(Debug)]
pub struct DriverChanges {
    reports: mpsc::UnboundedReceiver<DrainReport>,
    state: watch::Receiver<DriverState>,
}

impl DriverChanges {
    /// The driver sends a report before the state that follows from it.
    pub const fn new(
        reports: mpsc::UnboundedReceiver<DrainReport>,
        state: watch::Receiver<DriverState>,
    ) -> Self {
        Self { reports, state }
    }

    /// Waits for changes; `None`: the driver has ended. It may be dropped at any time without losing one.
    pub async fn next(&mut self) -> Option<Vec<DriverChange>> {
        tokio::select! {
            biased;
            Some(report) = self.reports.recv() => Some(vec![DriverChange::Report(report)]),
            changed = self.state.changed() => changed.ok().map(|()| self.so_far()),
        }
    }

    /// All changes so far, the last of them the current state, whether or not it has changed.
    pub fn so_far(&mut self) -> Vec<DriverChange> {
        // Read before the reports: every end that led to it is among them.
        let state = self.state.borrow_and_update().clone();
        let reports = iter::from_fn(|| self.reports.try_recv().ok());
        let changes = reports.map(DriverChange::Report);
        changes.chain([DriverChange::State(state)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scupper_engine::Outcome;

    #[tokio::test]
    async fn every_end_reaches_every_trigger_before_the_state_that_follows_it() {
        let mut sender = DrainReportSender::default();
        let (state, states) = watch::channel(DriverState::Idle);
        let first = DriverChanges::new(sender.subscribe(), states.clone());
        let second = DriverChanges::new(sender.subscribe(), states);
        let end = |id: &str| DrainReport::Ended {
            id: id.to_owned(),
            outcome: Some(Outcome::Drained),
            partial: false,
        };
        let running = |id: &str| DriverState::Running {
            id: id.to_owned(),
            what: String::new(),
        };
        state.send_replace(running("a"));
        sender.send(&end("a"));
        state.send_replace(running("b"));
        sender.send(&end("b"));
        state.send_replace(running("c"));
        let expected = [
            DriverChange::Report(end("a")),
            DriverChange::Report(end("b")),
            DriverChange::State(running("c")),
        ];
        for mut changes in [first, second] {
            let mut seen = Vec::new();
            while seen.len() < expected.len() {
                seen.extend(changes.next().await.unwrap());
            }
            assert_eq!(seen, expected);
            assert_eq!(changes.so_far(), [DriverChange::State(running("c"))]);
        }
    }
}
