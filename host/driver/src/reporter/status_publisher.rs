//! When a drain's own view of itself is written on the node: not at each change, and not at all while nothing holds the
//! drain up, so that a drain that goes well costs no request more.

use scupper_engine::{Drain, Duration, Event, Intent, Notice, Outcome, PodRef, Reason, Time};

use scupper_report::{DrainStatus, STATUS_ANNOTATION, StatusBuilder, status_from_text, status_to_text};

/// Most drains are over by then, or have nothing to tell.
const FIRST: Duration = Duration::from_secs(10);
/// What changes faster is told with the next.
const EVERY: Duration = Duration::from_secs(10);
/// Nothing has changed: told again all the same, so that readers know that somebody is at it.
const ALIVE: Duration = Duration::from_secs(60);
/// Where somebody follows the drain: a new plan, another wave and another word of a hook are told after so long.
const FOLLOWED: Duration = Duration::from_secs(1);

/// Decides what is to be written of one drain, and when.
pub(crate) struct StatusPublisher {
    /// The id of the drain.
    drain: String,
    keeper: StatusBuilder,
    began: Time,
    written: Option<DrainStatus>,
    /// The node has the annotation, of this drain or a former one.
    there: bool,
    ended: Option<Outcome>,
    /// Somebody follows it.
    followed: bool,
}

impl StatusPublisher {
    /// For a drain that this process is at from now on.
    pub(crate) fn new(now: Time, drain: String) -> Self {
        Self {
            drain,
            keeper: StatusBuilder::default(),
            began: now,
            written: None,
            there: false,
            ended: None,
            followed: false,
        }
    }

    /// For one that somebody follows.
    pub(crate) fn and_follower(mut self) -> Self {
        self.keeper = self.keeper.with_plan();
        self.followed = true;
        self
    }

    pub(crate) fn heard(&mut self, event: &Event) {
        let Event::Node(Some(node)) = event else { return };
        let Some(text) = node.annotations.get(STATUS_ANNOTATION) else {
            return;
        };
        // What this process has written itself is known already.
        if !std::mem::replace(&mut self.there, true)
            && let Some(view) = status_from_text(text).filter(|view| view.drain == self.drain)
        {
            self.keeper.resume(&view);
        }
    }

    pub(crate) fn notice(&mut self, now: Time, notice: &Notice) {
        self.keeper.notice(now, notice);
        if let Notice::Finished { outcome, .. } = notice {
            self.ended = Some(outcome.clone());
        }
    }

    /// Whoever follows the drain is to hear of it at once, together with the plan.
    pub(crate) const fn is_urgent(&self, notice: &Notice) -> bool {
        self.followed && matches!(notice, Notice::WaveStarted { .. } | Notice::HookWaiting { .. })
    }

    /// What is to be written now, if anything is.
    pub(crate) fn due(&mut self, now: Time, drain: &Drain, pods: Vec<(PodRef, Reason)>) -> Option<String> {
        let since = self.written.as_ref().map_or(self.began, |view| view.at);
        let pause = if self.written.is_none() { FIRST } else { EVERY };
        let request = drain.request();
        if self.ended.is_some() || request.intent != Intent::Drain {
            return None;
        }
        let is_time = now.since(since) >= pause;
        if !is_time && !self.followed {
            return None;
        }
        let view = self.keeper.build(now, &request.id, pods);
        let is_next = self.followed && self.is_next_of_story(&view);
        (is_next || is_time && self.is_news(&view)).then(|| self.write(view))
    }

    /// Readers do not know that yet, or not that it is still so.
    fn is_news(&self, view: &DrainStatus) -> bool {
        match &self.written {
            None => view.is_worth_publishing(),
            Some(known) => view.at.since(known.at) >= ALIVE || !known.has_same_content(view),
        }
    }

    /// Whoever follows it has not heard that yet.
    fn is_next_of_story(&self, view: &DrainStatus) -> bool {
        match &self.written {
            None => view.plan.is_some() || !view.hooks.is_empty(),
            Some(known) => view.at.since(known.at) >= FOLLOWED && !view.has_same_story(known),
        }
    }

    /// What is to be written at the end: nothing, or a text in the place of what is there, or none in its place.
    pub(crate) fn last(&mut self, now: Time, drain: &Drain) -> Option<Option<String>> {
        let request = drain.request();
        match &self.ended {
            // It has changed nothing. Or it goes on in another process.
            None | Some(Outcome::Blocked { .. }) => None,
            Some(outcome) if outcome.is_success() || request.intent != Intent::Drain => {
                self.there.then_some(None)
            }
            Some(_) => {
                let view = self.keeper.build(now, &request.id, drain.waiting());
                Some(Some(self.write(view)))
            }
        }
    }

    fn write(&mut self, view: DrainStatus) -> String {
        let text = status_to_text(&view);
        self.written = Some(view);
        self.there = true;
        text
    }
}
