//! A pod that is to leave: how far its eviction has come, and when it is asked for again.
//!
//! That the pod is terminating, and that it is gone, is read from the watch.

use alloc::string::String;
use core::mem::discriminant;
use core::time::Duration;

use super::backoff::Backoff;
use super::plan_state::owner_of;
use crate::{Deletion, Pod, PodRef, Reason, Removal, Time, Uid, Verdict};

/// How long a watch may take to report that an accepted eviction has begun.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a watch may take to report that a pod is gone.
const LAG: Duration = Duration::from_secs(1);

/// A pod that is to leave.
#[derive(Debug)]
pub(super) struct EvictionTarget {
    pod: PodRef,
    /// Its namespace and controller, under which returns are counted.
    owner: String,
    verdict: Verdict,
    /// The name of its wave.
    wave: Option<String>,
    state: State,
    /// Why the last request failed.
    refusal: Option<Reason>,
    /// How many requests in a row failed for the same reason.
    tries: u32,
    /// The earliest time of the next request.
    not_before: Time,
    /// Since when the API server has been refusing it with 401 or 403, one answer after the other.
    forbidden_since: Option<Time>,
    /// Why no request may be sent now.
    hold: Option<Reason>,
    /// Since when a budget has been holding it up.
    budget_since: Option<Time>,
    /// What was sent last, if no answer has denied it.
    sent: Option<Removal>,
    /// Its deletion shortly before the deadline.
    forced: Option<Forced>,
    /// The number of its latest request.
    request: u32,
    /// The number of the eviction that its forced deletion has overtaken, until that is answered.
    overtaken: Option<u32>,
}

/// A deletion shortly before the deadline.
#[derive(Clone, Debug)]
pub(super) struct Forced {
    pub(super) grace_seconds: u64,
    /// Why the pod still stood.
    pub(super) reason: Reason,
    /// The pod was terminating already.
    pub(super) is_shortened: bool,
    pub(super) is_reported: bool,
    /// What was sent before, and made it terminate or may yet do so.
    pub(super) sent_before: Option<Removal>,
}

/// How far its eviction has come.
#[derive(Debug)]
pub(super) enum State {
    /// No request is under way.
    Waiting,
    /// A request is under way.
    Asked,
    /// Only the watch can report what is missing.
    AwaitingDeletion(AwaitingDeletion),
}

/// The eviction was answered so that the pod should soon be terminating or gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitingDeletion {
    answered: Answered,
    since: Time,
    /// When a list is wanted, should the watch be silent.
    list_at: Time,
    /// How many lists have still shown it.
    lists: u32,
}

/// What the API server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// The pod is terminating.
    Accepted,
    /// There is no such pod.
    NotFound,
    /// Another pod has its name.
    UidMismatch,
    /// Its namespace is being deleted.
    NamespaceTerminating,
}

/// When to ask again.
#[derive(Clone, Copy)]
pub(super) enum Again {
    After(Backoff),
    At(Time),
}

impl EvictionTarget {
    pub(super) fn new(pod: &Pod, verdict: Verdict) -> Self {
        Self {
            pod: pod.id.clone(),
            owner: owner_of(pod),
            verdict,
            wave: None,
            state: State::Waiting,
            refusal: None,
            tries: 0,
            not_before: Time::from_millis(0),
            forbidden_since: None,
            hold: None,
            budget_since: None,
            sent: None,
            forced: None,
            request: 0,
            overtaken: None,
        }
    }

    pub(super) const fn pod(&self) -> &PodRef {
        &self.pod
    }

    pub(super) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    pub(super) const fn wave(&self) -> Option<&String> {
        self.wave.as_ref()
    }

    pub(super) fn join_wave(&mut self, wave: String) {
        self.wave = Some(wave);
    }

    /// Its controller, if we evicted it.
    pub(super) fn evicted_from(self) -> Option<String> {
        self.sent.map(|_| self.owner)
    }

    /// What was sent last, if no answer has denied it.
    pub(super) const fn sent(&self) -> Option<Removal> {
        self.sent
    }

    /// No request is under way, and the next one may go out.
    pub(super) fn is_due(&self, now: Time) -> bool {
        matches!(self.state, State::Waiting) && now >= self.not_before && self.overtaken.is_none()
    }

    /// A request is under way, or was answered so that none follows.
    pub(super) const fn is_asked(&self) -> bool {
        match self.state {
            State::Waiting => false,
            State::Asked | State::AwaitingDeletion(_) => true,
        }
    }

    pub(super) const fn not_before(&self) -> Time {
        self.not_before
    }

    pub(super) const fn budget_since(&self) -> Option<Time> {
        self.budget_since
    }

    /// Why the last request failed.
    pub(super) const fn refusal(&self) -> Option<&Reason> {
        self.refusal.as_ref()
    }

    /// Why no request is under way. What the API server answered last stands until the next one may go out, unless
    /// something else holds the pod now. The first deletion of a forced pod may go out whatever was answered before.
    pub(super) fn wait_reason(&self, now: Time, is_forced: bool) -> Option<&Reason> {
        let may_go_out = now >= self.not_before || (is_forced && self.forced.is_none());
        if !may_go_out {
            return self.refusal.as_ref();
        }
        self.hold.as_ref().or(self.refusal.as_ref())
    }

    /// Sets why no request may be sent now; `None`: requests may be sent.
    pub(super) fn hold(&mut self, reason: Option<Reason>) {
        self.hold = reason;
    }

    /// What [`Self::hold`] has set since it was asked last.
    pub(super) const fn held(&self) -> Option<&Reason> {
        self.hold.as_ref()
    }

    /// A budget holds it up.
    pub(super) fn hold_by_budget(&mut self, now: Time) {
        self.budget_since.get_or_insert(now);
    }

    /// It waits for its budget.
    pub(super) fn is_held_by_budget(&self) -> bool {
        self.budget_since.is_some() && matches!(self.state, State::Waiting)
    }

    /// A request goes out. Returns its number.
    pub(super) fn ask(&mut self, by: Removal) -> u32 {
        self.request += 1;
        self.state = State::Asked;
        self.sent = Some(by);
        self.forced = None;
        if matches!(self.hold, Some(Reason::BudgetExhausted { .. })) {
            // A request against what the watch reports: until it is answered, the pod waits for the same as before.
            self.refusal = self.hold.take();
        }
        self.request
    }

    /// The request did not go out.
    pub(super) fn take_back(&mut self) {
        self.state = State::Waiting;
        self.sent = self.forced.take().and_then(|forced| forced.sent_before);
        if let Some(eviction) = self.overtaken.take() {
            self.state = State::Asked;
            self.request = eviction;
        }
    }

    /// Its deletion goes out, although it was not its turn. Returns the request's number.
    pub(super) fn force(&mut self, forced: Forced) -> u32 {
        if matches!(self.state, State::Asked) {
            self.overtaken = Some(self.request);
        }
        let may_end = forced.is_shortened || self.overtaken.is_some();
        let sent_before = self.sent.filter(|_| may_end);
        self.request += 1;
        self.sent = Some(Removal::Delete);
        self.state = State::Asked;
        self.hold = None;
        self.forced = Some(Forced {
            sent_before,
            ..forced
        });
        self.request
    }

    /// An answer is about the eviction that a forced deletion has overtaken: it says nothing about that deletion.
    pub(super) fn is_overtaken(&self, request: u32) -> bool {
        self.overtaken == Some(request)
    }

    /// The overtaken eviction was answered; `may_have_happened`: perhaps the pod ends because of it.
    pub(super) fn end_overtaken(&mut self, may_have_happened: bool) {
        self.overtaken = None;
        let evicted = may_have_happened.then_some(Removal::Evict);
        if matches!(self.state, State::Waiting) {
            self.sent = evicted;
        }
        if let Some(forced) = &mut self.forced {
            forced.sent_before = evicted;
        }
    }

    /// Its deletion was refused, and so did not happen: nothing is left of it if the pod ends all the same. Returns whether
    /// that is so.
    pub(super) fn forget_refused_force(&mut self) -> bool {
        let is_refused = matches!(self.state, State::Waiting) && !self.is_force_unconfirmed();
        is_refused && self.forced.take().is_some()
    }

    pub(super) const fn forced(&self) -> Option<&Forced> {
        self.forced.as_ref()
    }

    /// Its deletion may go out: the first one at once, whatever an eviction was answered, and also if none came. Both
    /// name the same UID, so that the second one does no harm.
    pub(super) fn may_be_forced(&self, now: Time) -> bool {
        let is_first = self.forced.is_none();
        match self.state {
            State::Asked => is_first && self.sent == Some(Removal::Evict),
            State::Waiting => is_first || now >= self.not_before,
            State::AwaitingDeletion(awaiting) => {
                is_first && awaiting.answered == Answered::NamespaceTerminating
            }
        }
    }

    /// It is terminating, and may be deleted again with a shorter grace period.
    pub(super) fn may_be_shortened(&self, now: Time) -> bool {
        let is_accepted = matches!(
            self.state,
            State::AwaitingDeletion(AwaitingDeletion {
                answered: Answered::Accepted,
                ..
            })
        );
        self.may_be_forced(now) || (is_accepted && self.forced.is_none())
    }

    /// No answer came to its deletion, which may have happened all the same.
    pub(super) fn is_force_unconfirmed(&self) -> bool {
        let is_unanswered = matches!(self.refusal, Some(Reason::Unreachable { .. }));
        let is_open = self.forced.as_ref().is_some_and(|forced| !forced.is_reported);
        matches!(self.state, State::Waiting) && is_unanswered && is_open
    }

    /// The forced deletion that is to be reported now, if it was not yet.
    pub(super) fn report_forced(&mut self) -> Option<Forced> {
        let forced = self.forced.as_mut().filter(|forced| !forced.is_reported)?;
        forced.is_reported = true;
        Some(forced.clone())
    }

    /// The pod is gone: its forced deletion, if it may have happened and was not reported.
    pub(super) fn report_forced_gone(&mut self) -> Option<Forced> {
        let may_have_happened = matches!(self.state, State::Asked) || self.is_force_unconfirmed();
        may_have_happened.then(|| self.report_forced()).flatten()
    }

    /// Its deletion. A kubelet begins a shortened grace period when it learns of it, while the API server counts it from
    /// the first deletion.
    pub(super) fn deletion(&self, pod: &Pod) -> Option<Deletion> {
        let deletion = pod.deletion?;
        let ends = match (&self.forced, &self.state) {
            (Some(forced), State::AwaitingDeletion(awaiting)) if forced.is_shortened => deletion
                .at
                .max(awaiting.since + Duration::from_secs(forced.grace_seconds)),
            _ => deletion.at,
        };
        Some(Deletion { at: ends, ..deletion })
    }

    /// The API server has accepted the request.
    pub(super) fn accept(&mut self, now: Time) {
        self.refusal = None;
        self.tries = 0;
        self.budget_since = None;
        self.await_deletion(Answered::Accepted, now);
    }

    /// The API server refuses us: the last try is at the end of the patience.
    pub(super) fn limit_forbidden(&mut self, patience: Duration, now: Time) {
        let end = self.forbidden_since.map(|since| since + patience);
        if let Some(end) = end.filter(|end| *end > now) {
            self.not_before = self.not_before.min(end);
        }
    }

    /// For how long the API server has refused us, and its words, once the patience is over; until the next try.
    pub(super) fn forbidden_for(&self, patience: Duration, now: Time) -> Option<(Duration, &str)> {
        let lasted = now.since(self.forbidden_since?);
        let is_over = lasted >= patience && matches!(self.state, State::Waiting) && now < self.not_before;
        match &self.refusal {
            Some(Reason::Forbidden { message }) if is_over => Some((lasted, message)),
            _ => None,
        }
    }

    /// Only the watch can report what is missing.
    pub(super) fn await_deletion(&mut self, answered: Answered, now: Time) {
        self.forbidden_since = None;
        self.state = State::AwaitingDeletion(AwaitingDeletion {
            answered,
            since: now,
            list_at: now + answered.patience(),
            lists: 0,
        });
    }

    /// The request failed.
    pub(super) fn refuse(&mut self, reason: Reason, again: Again, now: Time) {
        let last = self.refusal.as_ref().map(discriminant);
        let is_same = last == Some(discriminant(&reason));
        // Without an answer it may have happened all the same.
        if !matches!(reason, Reason::Unreachable { .. }) {
            self.sent = self.forced.as_ref().and_then(|forced| forced.sent_before);
        }
        self.tries = if is_same { self.tries.saturating_add(1) } else { 0 };
        self.not_before = match again {
            Again::After(backoff) => backoff.after(now, self.tries, self.pod.uid.as_str()),
            Again::At(time) => time,
        };
        match reason {
            Reason::Forbidden { .. } => _ = self.forbidden_since.get_or_insert(now),
            _ => self.forbidden_since = None,
        }
        if is_of_budget(&reason) {
            self.hold_by_budget(now);
        } else if !matches!(reason, Reason::Unreachable { .. } | Reason::Throttled { .. }) {
            self.budget_since = None;
        }
        self.refusal = Some(reason);
        self.state = State::Waiting;
    }

    /// The last request failed for lack of a budget.
    pub(super) fn was_refused_by_budget(&self) -> bool {
        self.refusal.as_ref().is_some_and(is_of_budget)
    }

    /// Its budget has changed: the next request may go out at once.
    pub(super) fn ask_at_once(&mut self, now: Time) {
        self.not_before = self.not_before.min(now);
        self.tries = 0;
    }

    /// When a list is wanted, because the watch should have reported by then that this pod is terminating or gone.
    pub(super) fn list_due(&self, pod: Option<&Pod>) -> Option<Time> {
        match &self.state {
            State::AwaitingDeletion(awaiting) if !pod.is_some_and(|pod| awaiting.expects(pod)) => {
                Some(awaiting.list_at)
            }
            _ => None,
        }
    }

    /// A list that was asked for at `asked` still shows the pod. If it was asked for because of this pod, the API
    /// server's answer does not hold.
    pub(super) fn recheck(&mut self, pod: &Pod, asked: Time, now: Time) {
        let State::AwaitingDeletion(awaiting) = &mut self.state else {
            return;
        };
        if asked < awaiting.list_at || awaiting.expects(pod) {
            return;
        }
        awaiting.lists = awaiting.lists.saturating_add(1);
        let uid: &Uid = &self.pod.uid;
        match awaiting.answered {
            Answered::Accepted | Answered::NotFound => {
                self.not_before = Backoff::RECHECK.after(now, self.tries, uid.as_str());
                self.tries = self.tries.saturating_add(1);
                self.state = State::Waiting;
            }
            Answered::UidMismatch => {
                awaiting.list_at = Backoff::RECHECK.after(now, awaiting.lists, uid.as_str());
            }
            Answered::NamespaceTerminating => awaiting.list_at = now + SILENCE,
        }
    }
}

impl AwaitingDeletion {
    pub(super) const fn answered(&self) -> Answered {
        self.answered
    }

    pub(super) const fn since(&self) -> Time {
        self.since
    }

    /// The pod is as the API server's answer lets expect, and may be so for long.
    const fn expects(&self, pod: &Pod) -> bool {
        matches!(self.answered, Answered::Accepted | Answered::NamespaceTerminating) && pod.deletion.is_some()
    }
}

impl Answered {
    /// How long the watch may take to report it.
    const fn patience(self) -> Duration {
        match self {
            Self::Accepted | Self::NamespaceTerminating => SILENCE,
            Self::NotFound | Self::UidMismatch => LAG,
        }
    }
}

const fn is_of_budget(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::BudgetExhausted { .. } | Reason::BudgetNotObserved { .. }
    )
}
