//! An engine whose drain is recorded: whoever tells it something or takes a command from it does so here, so that nothing
//! is missing in the recording.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_engine::{Answer, Checkpoint, Command, Drain, Event, Notice, Request, Time, ToUndo};
use scupper_policy_reload::Session;
use scupper_recording::{
    End, FactLog, Header, RecordedPolicy, Recorder, RecordingTarget, ShadowPlan, StartEstimate,
};

pub(super) struct RecordedDrain {
    drain: Drain,
    recorder: Recorder,
    facts: FactLog,
    policies: Arc<Session>,
    /// Those that the recording names.
    named: Vec<RecordedPolicy>,
    /// One of them has answered in this turn: it may be another revision than before.
    has_answered: bool,
    end: Option<End>,
}

impl RecordedDrain {
    pub(super) fn begin(
        clock: &Clock,
        place: &RecordingTarget,
        request: Request,
        resume: Option<Checkpoint>,
        policies: Arc<Session>,
    ) -> Self {
        let now = clock.now();
        let named = named(&policies);
        let recorder = place.begin(|| Header {
            format: scupper_recording::FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            at: now,
            wall: clock.wall(),
            request: request.clone(),
            checkpoint: resume.clone(),
            policies: named.clone(),
        });
        let drain = match resume {
            Some(checkpoint) => Drain::resume(now, request, checkpoint),
            None => Drain::new(now, request),
        };
        Self {
            drain,
            facts: recorder.facts(),
            recorder,
            policies,
            named,
            has_answered: false,
            end: None,
        }
    }

    pub(super) fn handle_event(&mut self, now: Time, event: Event) {
        self.recorder.event(now, &event);
        self.has_answered |= matches!(event, Event::Answer(_, Answer::Plan(_) | Answer::Step { .. }));
        self.drain.handle_event(now, event);
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.recorder.timeout(now);
        self.drain.handle_timeout(now);
    }

    pub(super) fn recall_to_undo(&mut self, now: Time, left: ToUndo, own: BTreeSet<String>) {
        self.recorder.recall(now, &left, &own);
        self.drain.recall_to_undo(left, own);
    }

    pub(super) fn poll_command(&mut self) -> Option<Command> {
        let command = self.drain.poll_command()?;
        self.recorder.command(&command);
        Some(command)
    }

    /// Records what policies learn.
    pub(super) const fn facts(&self) -> &FactLog {
        &self.facts
    }

    /// Records what shadow policies would have made of the drain.
    pub(super) fn shadows(&mut self, plans: Vec<ShadowPlan>) {
        self.recorder.shadows(plans);
    }

    /// Records when the drain will probably end.
    pub(super) fn estimate(&mut self, estimate: StartEstimate) {
        self.recorder.estimate(estimate);
    }

    /// Notices follow from what is recorded, and are not.
    pub(super) fn poll_notice(&mut self, now: Time) -> Option<Notice> {
        let notice = self.drain.poll_notice()?;
        if let Notice::Finished { outcome, .. } = &notice {
            self.end = Some(End {
                at: now,
                outcome: outcome.name().to_owned(),
                text: outcome.to_string(),
            });
        }
        Some(notice)
    }

    /// The engine has nothing more to say for now.
    pub(super) fn end_turn(&mut self) {
        if std::mem::take(&mut self.has_answered) {
            let named = named(&self.policies);
            if named != self.named {
                self.recorder.policies(named.clone());
                self.named = named;
            }
        }
        self.recorder.end_turn();
    }

    /// All that follows from the end is done. A recording without this ends before its drain.
    pub(super) async fn end(&mut self) {
        if let Some(end) = self.end.take() {
            std::mem::take(&mut self.recorder).end(end).await;
        }
    }
}

impl Deref for RecordedDrain {
    type Target = Drain;

    fn deref(&self) -> &Drain {
        &self.drain
    }
}

fn named(policies: &Session) -> Vec<RecordedPolicy> {
    let revisions = policies.revisions().into_iter();
    revisions
        .map(|(name, [digest, settings])| RecordedPolicy {
            name,
            digest,
            settings,
        })
        .collect()
}
