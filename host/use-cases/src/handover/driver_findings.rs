//! The pre-flight findings of the driver whose drain a command follows. The driver publishes them as Events only, up to some
//! seconds after the plan, so they are read three times.

use std::collections::BTreeSet;
use std::time::Duration;

use scupper_cluster::{Cluster, ObservedEvent};
use scupper_report::{FINDING_EVENT, FollowEvent};
use tokio::time::Instant;

/// How long after the plan each look is.
const LOOKS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
];

/// The findings that were reported, and when to read again.
#[derive(Default)]
pub(super) struct DriverFindings {
    looks: Vec<Instant>,
    told: BTreeSet<String>,
}

impl DriverFindings {
    /// The driver has published its plan.
    pub(super) fn planned(&mut self) {
        let now = Instant::now();
        self.looks = LOOKS.iter().rev().map(|after| now + *after).collect();
    }

    /// When to look.
    pub(super) fn due(&self) -> Option<Instant> {
        self.looks.last().copied()
    }

    /// Reads those that are new; none, if Events may not be listed.
    pub(super) async fn look(&mut self, cluster: &Cluster, node: &str, event: &str) -> Vec<FollowEvent> {
        self.looks.pop();
        match cluster.events_about_node(node).await {
            Ok(notes) => self.news(event, &notes),
            Err(error) => {
                tracing::debug!(%error, "the Events about what stands in the way cannot be read");
                Vec::new()
            }
        }
    }

    /// Those among these Events that are new.
    pub(super) fn news(&mut self, event: &str, notes: &[ObservedEvent]) -> Vec<FollowEvent> {
        let begins = format!("{event}: ");
        let ours = notes.iter().filter(|note| note.reason == FINDING_EVENT);
        let found = ours.filter_map(|note| {
            let text = note.text.strip_prefix(&begins)?.to_owned();
            let is_certain = note.warning;
            self.told
                .insert(text.clone())
                .then_some(FollowEvent::Finding { is_certain, text })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_of_this_drain_is_told_once() {
        let note = |reason: &str, text: &str| ObservedEvent {
            reason: reason.to_owned(),
            text: text.to_owned(),
            action: "Drain".to_owned(),
            warning: true,
            at: None,
        };
        let notes = [
            note(FINDING_EVENT, "drain-a: will not leave: shop/web"),
            note(FINDING_EVENT, "drain-b: another drain's"),
            note("Blocked", "drain-a: another Event"),
        ];
        let mut findings = DriverFindings::default();
        let found = findings.news("drain-a", &notes);
        let text = "will not leave: shop/web".to_owned();
        assert_eq!(
            found,
            [FollowEvent::Finding {
                is_certain: true,
                text
            }]
        );
        assert_eq!(findings.news("drain-a", &notes), []);
    }
}
