//! Decides when to publish a drain's status on the node: not at each change, and never while nothing holds the drain up,
//! so that a smooth drain costs no extra request. The status of an earlier process of the same drain is replaced as soon as
//! there is a plan.

use std::time::Duration;

use scupper_engine::{Drain, Event, Intent, Notice, Outcome, Phase, PodRef, Reason, Time};

use scupper_forecast::EndTimes;
use scupper_report::{
    DrainStatus, Estimate, STATUS_ANNOTATION, StatusBuilder, status_from_text, status_to_text,
};

/// When to publish first. Most drains have ended by then.
const FIRST: Duration = Duration::from_secs(10);
/// The shortest pause between two writes.
const EVERY: Duration = Duration::from_secs(10);
/// How often to write an unchanged status, so that readers know that the drain is alive.
const ALIVE: Duration = Duration::from_secs(60);
/// The delay of a new plan, wave, hook message or forced pod when a command follows the drain.
const FOLLOWED: Duration = Duration::from_secs(1);

/// Decides what to publish of one drain, and when.
pub(crate) struct StatusPublisher {
    /// The id of the drain.
    drain: String,
    builder: StatusBuilder,
    began: Time,
    written: Option<DrainStatus>,
    /// The node has the annotation, from this drain or an earlier one.
    there: bool,
    /// That one is of an earlier process of this drain: readers take it for ours.
    is_outdated: bool,
    ended: Option<Outcome>,
    /// A command follows it.
    followed: bool,
    end_times: Option<EndTimes>,
}

impl StatusPublisher {
    /// For a drain of this process.
    pub(crate) fn new(now: Time, drain: String) -> Self {
        Self {
            drain,
            builder: StatusBuilder::default(),
            began: now,
            written: None,
            there: false,
            is_outdated: false,
            ended: None,
            followed: false,
            end_times: None,
        }
    }

    /// For one that a command follows.
    pub(crate) fn and_follower(mut self) -> Self {
        self.builder = self.builder.with_plan();
        self.followed = true;
        self
    }

    pub(crate) fn observe(&mut self, event: &Event) {
        let Event::Node(Some(node)) = event else { return };
        let Some(text) = node.annotations.get(STATUS_ANNOTATION) else {
            return;
        };
        // Later ones are our own.
        if !std::mem::replace(&mut self.there, true)
            && let Some(status) = status_from_text(text).filter(|status| status.drain == self.drain)
        {
            self.builder.resume(&status);
            self.is_outdated = true;
        }
    }

    pub(crate) fn notice(&mut self, now: Time, notice: &Notice) {
        self.builder.notice(now, notice);
        match notice {
            Notice::Finished { outcome, .. } => self.ended = Some(outcome.clone()),
            // What was played was a drain that goes on.
            Notice::Phase(Phase::RollingBack) => self.end_times = None,
            _ => {}
        }
    }

    /// The command that follows the drain needs this at once, together with the plan.
    pub(crate) const fn is_urgent(&self, notice: &Notice) -> bool {
        let is_next = matches!(
            notice,
            Notice::WaveStarted { .. }
                | Notice::HookWaiting { .. }
                | Notice::AwaitsVolumes { .. }
                | Notice::Forced { .. }
        );
        self.followed && is_next
    }

    /// The text to write now, if any.
    pub(crate) fn due(&mut self, now: Time, drain: &Drain, pods: Vec<(PodRef, Reason)>) -> Option<String> {
        let since = self.written.as_ref().map_or(self.began, |status| status.at);
        let pause = match self.written {
            None if self.is_outdated && drain.phase() != Phase::Planning => Duration::ZERO,
            None => FIRST,
            Some(_) => EVERY,
        };
        let request = drain.request();
        if self.ended.is_some() || request.intent != Intent::Drain {
            return None;
        }
        let is_time = now.since(since) >= pause;
        if !is_time && !self.followed {
            return None;
        }
        let status = self.status(now, drain, pods);
        let is_next = self.followed && self.is_next_of_story(&status);
        (is_next || is_time && self.is_news(&status)).then(|| self.write(status))
    }

    /// The published status differs or is too old.
    fn is_news(&self, status: &DrainStatus) -> bool {
        match &self.written {
            None => self.is_outdated || status.is_worth_publishing(),
            Some(known) => status.at.since(known.at) >= ALIVE || !known.has_same_content(status),
        }
    }

    /// The command that follows the drain does not know this yet.
    fn is_next_of_story(&self, status: &DrainStatus) -> bool {
        match &self.written {
            None => status.plan.is_some() || !status.hooks.is_empty(),
            Some(known) => status.at.since(known.at) >= FOLLOWED && !status.has_same_story(known),
        }
    }

    /// What to write at the end: nothing, a last status, or the removal of the annotation.
    pub(crate) fn last(&mut self, now: Time, drain: &Drain) -> Option<Option<String>> {
        let request = drain.request();
        match &self.ended {
            // It has changed nothing, or another process continues it.
            None | Some(Outcome::Blocked { .. }) => None,
            Some(outcome) if outcome.is_success() || request.intent != Intent::Drain => {
                self.there.then_some(None)
            }
            Some(_) => {
                let status = self.status(now, drain, drain.waiting());
                Some(Some(self.write(status)))
            }
        }
    }

    /// Takes them, and returns what follows from them now.
    pub(crate) fn set_end_times(&mut self, now: Time, played: EndTimes) -> Option<Estimate> {
        self.end_times = Some(played);
        self.estimate(now)
    }

    /// When the drain will probably end, as far as is known now.
    pub(crate) fn estimate(&self, now: Time) -> Option<Estimate> {
        self.end_times.as_ref()?.estimate(now).map(Estimate)
    }

    fn status(&self, now: Time, drain: &Drain, pods: Vec<(PodRef, Reason)>) -> DrainStatus {
        let request = drain.request();
        DrainStatus {
            machine_is_off: request.settings.machine_is_off,
            estimate: self.estimate(now).filter(|_| self.ended.is_none()),
            ..self.builder.build(now, &request.id, pods, drain.force_ahead())
        }
    }

    fn write(&mut self, status: DrainStatus) -> String {
        let text = status_to_text(&status);
        self.written = Some(status);
        self.there = true;
        text
    }
}
