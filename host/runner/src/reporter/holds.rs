//! Which policies hold a drain, and what it did, for the trigger that reports it elsewhere than on the node.

use std::collections::BTreeMap;

use scupper_engine::{HookPhase, Notice, Outcome, Subject, WaitingOn};
use scupper_report::drained_text;
use scupper_triggers::{DrainReport, DrainReportSender};

/// What holds: a planner that fails, or a hook.
type HoldKey = (String, Option<(HookPhase, Subject)>);

/// Follows one drain.
pub(super) struct HoldReporter {
    reports: DrainReportSender,
    holds: BTreeMap<HoldKey, String>,
}

impl HoldReporter {
    pub(super) const fn new(reports: DrainReportSender) -> Self {
        Self {
            reports,
            holds: BTreeMap::new(),
        }
    }

    pub(super) fn notice(&mut self, id: &str, notice: &Notice) {
        let before = self.holds.clone();
        match notice {
            Notice::PlannerWaiting { policy, message, .. } => {
                self.holds
                    .insert((policy.clone(), None), format!("{policy}: {message}"));
            }
            Notice::Planned(_) => self.holds.retain(|(_, hook), _| hook.is_some()),
            Notice::HookWaiting {
                policy,
                phase,
                subject,
                progress,
                waiting_for,
                ..
            } if holds_pods(*phase) => {
                let text = format!("{policy} ({phase}): {}", awaited(progress, waiting_for));
                self.holds
                    .insert((policy.clone(), Some((*phase, subject.clone()))), text);
            }
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => {
                self.holds
                    .remove(&(policy.clone(), Some((*phase, subject.clone()))));
            }
            Notice::Finished { outcome, summary } => {
                self.holds.clear();
                if *outcome == Outcome::Drained {
                    self.reports.send(&DrainReport::Summary {
                        id: id.to_owned(),
                        text: drained_text(summary),
                    });
                }
            }
            _ => {}
        }
        if self.holds != before {
            let by = self.holds.values().cloned().collect();
            self.reports.send(&DrainReport::Held {
                id: id.to_owned(),
                by,
            });
        }
    }
}

/// A hook in this phase delays pods.
const fn holds_pods(phase: HookPhase) -> bool {
    !matches!(
        phase,
        HookPhase::OnCancel | HookPhase::BeforeUncordon | HookPhase::AfterUncordon
    )
}

fn awaited(progress: &str, waiting_for: &[WaitingOn]) -> String {
    let awaited = waiting_for.iter().map(|on| format!("{} {}", on.what, on.detail));
    let awaited: Vec<_> = awaited.collect();
    match (progress, awaited.is_empty()) {
        ("", true) => "has not finished".to_owned(),
        (progress, true) => progress.to_owned(),
        ("", false) => format!("waits for {}", awaited.join(", ")),
        (progress, false) => format!("{progress}; waits for {}", awaited.join(", ")),
    }
}
