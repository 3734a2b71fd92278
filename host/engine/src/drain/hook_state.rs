//! The hooks of a drain: which have begun, how far each has come, and which have finished.

use core::time::Duration;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{HookPhase, HookStep, SavedHook, Subject, Time, Uid, WaitingOn, and_more};

/// Identifies a hook of a drain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HookKey {
    pub(super) phase: HookPhase,
    pub(super) subject: Subject,
    pub(super) policy: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    open: BTreeMap<HookKey, OpenHook>,
    /// Hooks that have finished, and the revision that says so.
    done: BTreeMap<HookKey, u64>,
    /// Policies of hooks that had begun and are forgotten.
    forgotten: BTreeSet<String>,
}

/// A hook that has begun and not finished.
#[derive(Debug)]
pub(super) struct OpenHook {
    state: Vec<u8>,
    /// Which version of the policy's state that is, where it is known.
    state_version: Option<u32>,
    started: Time,
    /// When its next step may be taken.
    due: Time,
    /// Its step has not been answered.
    in_flight: bool,
    /// The leaving pods that its last step was given.
    leaving: Vec<Uid>,
    /// The next step must not wait, because the one that is being taken may have seen too little.
    woken: bool,
    /// The revision of its last change.
    revision: u64,
    /// What was reported last: its progress, and what it waits for.
    reported: Option<(String, Vec<WaitingOn>)>,
    /// It has taken a step that did not end it.
    has_answered: bool,
}

impl Hooks {
    pub(super) fn restore_open(&mut self, key: HookKey, hook: OpenHook) {
        self.open.insert(key, hook);
    }

    pub(super) fn restore_done(&mut self, key: HookKey) {
        self.done.insert(key, 0);
    }

    pub(super) fn open(&self) -> impl Iterator<Item = (&HookKey, &OpenHook)> {
        self.open.iter()
    }

    pub(super) fn open_mut(&mut self, key: &HookKey) -> Option<&mut OpenHook> {
        self.open.get_mut(key)
    }

    pub(super) fn open_or_begin(&mut self, key: HookKey, now: Time) -> &mut OpenHook {
        self.open.entry(key).or_insert_with(|| OpenHook::begun(now))
    }

    pub(super) fn done(&self) -> impl Iterator<Item = &HookKey> {
        self.done.keys()
    }

    /// The revision that says that the hook has finished; `None`: it has not.
    pub(super) fn done_in(&self, key: &HookKey) -> Option<u64> {
        self.done.get(key).copied()
    }

    /// Those that have begun or finished.
    pub(super) fn keys(&self) -> impl Iterator<Item = &HookKey> {
        self.open.keys().chain(self.done.keys())
    }

    /// The policies that have been called to change something.
    pub(super) fn changing_policies(&self) -> impl Iterator<Item = &String> {
        let begun = self.keys().filter(|key| !key.phase.undoes());
        begun.map(|key| &key.policy).chain(&self.forgotten)
    }

    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Any has begun, in this process or an earlier one.
    pub(super) fn any_ran(&self) -> bool {
        self.any_open() || !self.done.is_empty()
    }

    pub(super) fn due(&self) -> impl Iterator<Item = Time> {
        self.open.values().map(|hook| hook.due)
    }

    /// The next steps of a policy's hooks need not wait.
    pub(super) fn wake(&mut self, policy: &str, now: Time) {
        let open = self.open.iter_mut().filter(|(key, _)| key.policy == policy);
        for (_, hook) in open {
            hook.woken = hook.in_flight;
            hook.due = hook.due.min(now);
        }
    }

    /// The hook has finished, as this revision says.
    pub(super) fn finish(&mut self, key: HookKey, revision: u64) {
        self.open.remove(&key);
        self.done.insert(key, revision);
    }

    /// Hooks of the subject that have finished are to run again. Returns whether there are any.
    pub(super) fn reopen(&mut self, phase: HookPhase, subject: &Subject) -> bool {
        let before = self.done.len();
        self.done.retain(|key, _| {
            let stays = key.phase != phase || key.subject != *subject;
            note_forgotten(&mut self.forgotten, key, stays)
        });
        self.done.len() != before
    }

    /// The hook has failed for good. It is over, unless it was to undo something. With its first answer it says that it could
    /// not begin: it has changed nothing.
    pub(super) fn fail(&mut self, key: HookKey, revision: u64) {
        let hook = self.open.remove(&key);
        if hook.is_some_and(|hook| hook.has_answered && !key.phase.undoes()) {
            self.done.insert(key, revision);
        }
    }

    /// Forgets hooks of which the subject does not count any more.
    pub(super) fn retain(&mut self, counts: impl Fn(&Subject) -> bool) {
        self.open
            .retain(|key, _| note_forgotten(&mut self.forgotten, key, counts(&key.subject)));
        self.done
            .retain(|key, _| note_forgotten(&mut self.forgotten, key, counts(&key.subject)));
    }

    /// A hook of this pod has begun and not finished, or has finished in a revision that does not count as saved.
    pub(super) fn is_in_hook(&self, pod: &Uid, is_saved: impl Fn(u64) -> bool) -> bool {
        let first = HookKey {
            phase: HookPhase::BeforeEvict,
            subject: Subject::Pod(pod.clone()),
            policy: String::new(),
        };
        let is_of_pod = |key: &HookKey| key.subject == first.subject;
        let next_open = self.open.range(&first..).next();
        let done = self.done.range(&first..);
        let mut done = done.take_while(|(key, _)| is_of_pod(key));
        next_open.is_some_and(|(key, _)| is_of_pod(key)) || done.any(|(_, revision)| !is_saved(*revision))
    }
}

/// Passes on whether the hook stays; the policy of one that does not is remembered.
fn note_forgotten(forgotten: &mut BTreeSet<String>, key: &HookKey, stays: bool) -> bool {
    if !stays {
        forgotten.insert(key.policy.clone());
    }
    stays
}

impl OpenHook {
    const fn begun(now: Time) -> Self {
        Self {
            state: Vec::new(),
            state_version: None,
            started: now,
            due: now,
            in_flight: false,
            leaving: Vec::new(),
            woken: false,
            revision: 0,
            reported: None,
            has_answered: false,
        }
    }

    pub(super) fn resumed(saved: SavedHook, now: Time) -> Self {
        Self {
            state: saved.state,
            state_version: saved.state_version,
            started: saved.started,
            has_answered: true,
            ..Self::begun(now)
        }
    }

    pub(super) fn saved(&self, key: &HookKey) -> SavedHook {
        SavedHook {
            policy: key.policy.clone(),
            phase: key.phase,
            subject: key.subject.clone(),
            state: self.state.clone(),
            state_version: self.state_version,
            started: self.started,
        }
    }

    pub(super) const fn started(&self) -> Time {
        self.started
    }

    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Its last step was answered, and the next may be taken.
    pub(super) fn is_due(&self, now: Time) -> bool {
        !self.in_flight && self.due <= now
    }

    /// A step is taken: what the policy is given, and which version of its state that is.
    pub(super) fn take_step(&mut self, key: &HookKey, leaving: Vec<Uid>) -> (HookStep, Option<u32>) {
        self.in_flight = true;
        self.leaving.clone_from(&leaving);
        let step = HookStep {
            policy: key.policy.clone(),
            phase: key.phase,
            subject: key.subject.clone(),
            state: self.state.clone(),
            leaving,
        };
        (step, self.state_version)
    }

    /// Its last step was given all of these pods.
    pub(super) fn covers(&self, pods: &[Uid]) -> bool {
        pods.iter().all(|pod| self.leaving.contains(pod))
    }

    /// An answer has come that says that something was or may have been done.
    pub(super) const fn note_answer(&mut self) {
        self.has_answered = true;
    }

    /// The step was answered, or not taken after all.
    pub(super) const fn end_step(&mut self) {
        self.in_flight = false;
    }

    /// The next step may be taken after this time, or at once if the hook was woken meanwhile.
    pub(super) fn wait(&mut self, now: Time, wait: Duration) {
        self.due = match core::mem::take(&mut self.woken) {
            true => now,
            false => now + wait,
        };
    }

    /// The step's answer leaves this state; whether that is another one.
    pub(super) fn keep_state(&mut self, state: Vec<u8>, state_version: Option<u32>) -> bool {
        // No state is no version's.
        let state_version = state_version.filter(|_| !state.is_empty());
        let is_changed = self.state != state || self.state_version != state_version;
        self.state = state;
        self.state_version = state_version;
        is_changed
    }

    pub(super) const fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// What it said last, in one text; `None`: nothing.
    pub(super) fn said(&self) -> Option<String> {
        let (progress, waiting_for) = self.reported.as_ref()?;
        let awaited = waiting_for.first().map(|first| {
            let detail = match first.detail.as_str() {
                "" => String::new(),
                detail => format!(" ({detail})"),
            };
            let more = and_more(waiting_for.len() - 1);
            format!("waits for {}{detail}{more}", first.what)
        });
        match (progress.as_str(), awaited) {
            ("", awaited) => awaited,
            (progress, None) => Some(String::from(progress)),
            (progress, Some(awaited)) => Some(format!("{progress}; {awaited}")),
        }
    }

    /// Takes what is to be reported; whether that is news.
    pub(super) fn report(&mut self, news: &(String, Vec<WaitingOn>)) -> bool {
        let is_news = self.reported.as_ref() != Some(news);
        if is_news {
            self.reported = Some(news.clone());
        }
        is_news
    }
}
