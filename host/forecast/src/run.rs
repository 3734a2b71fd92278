//! One drain of a play: the engine and the cluster model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_cluster_model::{ClusterModel, PodTimes, Replaced};
use scupper_engine::{
    Answer, Command, Deletion, Drain, Event, HookStep, Notice, Outcome, PlanAnswer, Pod, StepOutcome, Task,
    Time, Uid,
};
use scupper_recording::{DrainHistory, HistoryObserver, waits_for_end};

use crate::NO_END;
use crate::play::{Draws, NodePlay};
use crate::services::Absence;

/// A pod that is terminating for so long past its grace period does not end by itself.
const OVERDUE: Duration = Duration::from_secs(30);
/// So often a time is drawn for a hook that has taken longer than that already.
const DRAWS: usize = 10;

/// The drain of a node, before, while and after it runs.
pub(crate) struct NodeRun<'a> {
    pub(crate) play: &'a NodePlay<'a>,
    pub(crate) model: ClusterModel,
    /// Not before it has begun.
    drain: Option<Drain>,
    /// When nothing was due and nothing changed any more.
    changed: Time,
    /// When it is looked at once more, in a cluster that stays as it is.
    again: Option<Time>,
    until: Time,
    /// When the engine wants to be told the time.
    timer: Option<Time>,
    /// It has been told something since it was asked for that.
    has_news: bool,
    end: Option<(Time, Outcome)>,
    /// When the endpoints come back that are still there.
    returns: BTreeMap<Uid, Replaced>,
    absences: BTreeMap<Uid, Absence>,
    /// What its pods wait for, if anybody wants to know, and when that was last looked at.
    observer: Option<HistoryObserver>,
    looked: Time,
}

impl<'a> NodeRun<'a> {
    /// The node before its drain, with times for its pods.
    pub(crate) fn new(play: &'a NodePlay<'a>, draws: &mut Draws<'_>, is_watched: bool) -> Self {
        let situation = play.situation;
        let mut model = ClusterModel::new(situation.at, situation.node.clone());
        let mut returns = BTreeMap::new();
        for budget in &play.budgets {
            model.set_budget((*budget).clone());
        }
        for (pod, (ends, replaced)) in situation.pods.iter().zip(&play.pods) {
            let times = PodTimes {
                ends_after: draws.draw(*ends).unwrap_or_default(),
                replaced: replaced
                    .and_then(|place| draws.draw(place))
                    .map_or(Replaced::Never, |after| {
                        Replaced::by_controller(pod, waits_for_end(pod), after)
                    }),
            };
            model.add_pod(pod.clone(), times);
            if play.serving.contains(&pod.id.uid) {
                returns.insert(pod.id.uid.clone(), times.replaced);
            }
            if let Some(deletion) = &pod.deletion {
                terminating(&mut model, pod, times, deletion);
            }
        }
        Self {
            play,
            model,
            drain: None,
            changed: situation.at,
            again: None,
            until: situation.at,
            timer: None,
            has_news: false,
            end: None,
            returns,
            absences: BTreeMap::new(),
            observer: is_watched.then(HistoryObserver::default),
            looked: situation.at,
        }
    }

    pub(crate) fn start(&mut self, draws: &mut Draws<'_>) {
        let (now, play) = (self.model.now, self.play);
        let request = play.request_at(now);
        let mut checkpoint = play.situation.checkpoint.clone();
        let hooks = checkpoint.iter_mut().flat_map(|checkpoint| &mut checkpoint.hooks);
        for hook in hooks {
            let place = play.hooks.get(&(hook.policy.clone(), hook.phase));
            let ends = place.map_or(now, |place| {
                ends_of_begun(hook.started, now, || draws.draw(*place))
            });
            hook.state = state_of(ends);
        }
        self.drain = Some(match checkpoint {
            Some(checkpoint) => Drain::resume(now, request, checkpoint),
            None => Drain::new(now, request),
        });
        self.changed = now;
        self.again = self.play.again.map(|after| now + after);
        self.until = now + self.play.longest;
        let beginning = self.model.beginning();
        self.tell(beginning);
    }

    pub(crate) const fn is_started(&self) -> bool {
        self.drain.is_some()
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.drain.is_some() && self.end.is_none()
    }

    /// Does some of what is due now; `false`: nothing is.
    pub(crate) fn act(&mut self, draws: &mut Draws<'_>) -> bool {
        self.look();
        if !self.is_running() {
            self.take_events();
            if std::mem::take(&mut self.has_news) {
                self.observe();
            }
            return false;
        }
        let drain = self.drain.iter_mut();
        let commands: Vec<_> = drain
            .flat_map(|drain| std::iter::from_fn(|| drain.poll_command()))
            .collect();
        let is_step = |command: &Command| matches!(command.task, Task::Step { .. });
        let mut has_changed = commands.iter().any(is_step);
        let answers = commands.iter().map(|command| self.answer(command, draws));
        let mut news: Vec<_> = answers.collect();
        let events = self.take_events();
        has_changed |= !events.is_empty();
        news.extend(events);
        if has_changed {
            self.changed = self.model.now;
        }
        if news.is_empty() {
            if std::mem::take(&mut self.has_news) {
                self.timer = self.drain.as_ref().and_then(Drain::poll_timeout);
                self.observe();
            }
            return false;
        }
        self.tell(news);
        true
    }

    /// What has changed, which endpoints it concerns noted.
    fn take_events(&mut self) -> Vec<Event> {
        let events = self.model.take_events();
        let now = self.model.now;
        for event in &events {
            match event {
                Event::PodApplied(pod) if pod.deletion.is_some() => self.lose(&pod.id.uid, now),
                Event::PodDeleted(uid) => {
                    self.lose(uid, now);
                    if let Some(absence) = self.absences.get_mut(uid)
                        && let Some(Replaced::AfterEnd(after)) = self.returns.get(uid)
                    {
                        absence.until = Some(now + *after);
                    }
                }
                _ => {}
            }
        }
        events
    }

    fn lose(&mut self, pod: &Uid, now: Time) {
        let Some(returns) = self.returns.get(pod).filter(|_| !self.absences.contains_key(pod)) else {
            return;
        };
        let until = match returns {
            Replaced::AfterRequest(after) => Some(now + *after),
            Replaced::AfterEnd(_) | Replaced::Never => None,
        };
        self.absences.insert(pod.clone(), Absence { from: now, until });
    }

    pub(crate) fn take_absences(&mut self) -> BTreeMap<Uid, Absence> {
        std::mem::take(&mut self.absences)
    }

    /// Carries a command out.
    fn answer(&mut self, command: &Command, draws: &mut Draws<'_>) -> Event {
        let answer = match &command.task {
            Task::Plan { .. } => Answer::Plan(PlanAnswer::Plan(self.play.situation.plan.clone())),
            Task::Step { step, state_version } => Answer::Step {
                outcome: self.step(step, draws),
                state_version: *state_version,
            },
            task => self.model.carry_out(task),
        };
        Event::Answer(command.id, answer)
    }

    /// The first call draws when the hook will have finished, which is its state: the engine asks again at least every five
    /// minutes.
    fn step(&self, step: &HookStep, draws: &mut Draws<'_>) -> StepOutcome {
        let Some(place) = self.play.hooks.get(&(step.policy.clone(), step.phase)) else {
            return StepOutcome::Done;
        };
        let left = match <[u8; 8]>::try_from(step.state.as_slice()) {
            Ok(ends) => Time::from_millis(u64::from_le_bytes(ends)).since(self.model.now),
            Err(_) => draws.draw(*place).unwrap_or_default(),
        };
        if left.is_zero() {
            return StepOutcome::Done;
        }
        StepOutcome::Pending {
            state: state_of(self.model.now + left),
            again_after: left,
            progress: String::new(),
            waiting_for: Vec::new(),
        }
    }

    fn look(&mut self) {
        let drain = self.drain.iter_mut();
        let notices = drain.flat_map(|drain| std::iter::from_fn(|| drain.poll_notice()));
        for notice in notices {
            if let Some(observer) = &mut self.observer {
                observer.notice(self.model.now, &notice);
            }
            if let Notice::Finished { outcome, .. } = notice {
                self.end = Some((self.model.now, outcome));
            }
        }
    }

    /// The next moment at which something is due.
    pub(crate) fn next(&self) -> Option<Time> {
        let timer = self.timer.filter(|_| self.is_running());
        timer.into_iter().chain(self.model.next_due()).min()
    }

    /// The end of its watch.
    pub(crate) const fn until(&self) -> Time {
        self.until
    }

    /// The cluster has stayed as it is for longer than a drain may take to notice.
    pub(crate) fn is_still(&self) -> bool {
        self.model.next_due().is_none() && self.model.now.since(self.changed) > self.play.patience
    }

    /// When it is to be looked at again, told once.
    pub(crate) fn take_again(&mut self) -> Option<Time> {
        let now = self.model.now;
        self.again.take().filter(|again| *again > now)
    }

    /// Looked at once more, it is given the same time again.
    pub(crate) const fn look_again(&mut self) {
        self.changed = self.model.now;
    }

    /// The engine looks at all of its pods whenever it is told the time, so it is only told when it wants to know.
    pub(crate) fn advance(&mut self, to: Time) {
        self.model.advance(to);
        let now = self.model.now;
        let is_due = self.timer.is_some_and(|timer| timer <= now);
        if is_due
            && self.is_running()
            && let Some(drain) = &mut self.drain
        {
            drain.handle_timeout(now);
            self.has_news = true;
        }
    }

    fn tell(&mut self, events: Vec<Event>) {
        if let Some(drain) = &mut self.drain {
            drain.handle_events(self.model.now, events);
            self.has_news = true;
        }
    }

    /// What its pods wait for from now on, once all that is due has been done.
    fn observe(&mut self) {
        if let (Some(observer), Some(drain)) = (&mut self.observer, &self.drain) {
            self.looked = self.model.now;
            observer.look(self.looked, drain);
        }
    }

    /// What it did, if it was watched.
    pub(crate) fn into_history(self) -> Option<DrainHistory> {
        let (from, request) = (self.play.situation.at, &self.play.request);
        let ended = self.end.map_or(self.looked, |(at, _)| at);
        Some(self.observer?.history(from, ended, request.intent))
    }

    pub(crate) const fn is_drained(&self) -> bool {
        matches!(self.end, Some((_, Outcome::Drained)))
    }

    /// In one word.
    pub(crate) fn end(&self) -> &str {
        self.end.as_ref().map_or(NO_END, |(_, outcome)| outcome.name())
    }

    /// The pods of the plan that are still there.
    pub(crate) fn left(&self) -> BTreeSet<Uid> {
        let left = self.model.pods().map(|pod| &pod.id.uid);
        left.filter(|uid| self.play.leaving.contains(uid))
            .cloned()
            .collect()
    }
}

/// The state of a hook that ends then.
fn state_of(ends: Time) -> Vec<u8> {
    ends.as_millis().to_le_bytes().to_vec()
}

/// When a hook ends that has begun already. What takes longer than all that was drawn may take as long again.
fn ends_of_begun(started: Time, now: Time, mut draw: impl FnMut() -> Option<Duration>) -> Time {
    let mut drawn = std::iter::repeat_with(|| started + draw().unwrap_or_default()).take(DRAWS);
    let ends = drawn.find(|ends| *ends > now);
    ends.unwrap_or_else(|| now + now.since(started))
}

/// A pod that is terminating when the drain begins has been since its grace period began.
fn terminating(model: &mut ClusterModel, pod: &Pod, times: PodTimes, deletion: &Deletion) {
    let (now, asked) = (
        model.now,
        deletion.at - Duration::from_secs(deletion.grace_seconds),
    );
    // What takes longer than it has by now may do so once more.
    let due = |after: Duration| {
        let due = asked + after;
        if due > now { due } else { now + after }
    };
    // One that is long overdue has a finalizer, or its kubelet is silent.
    if now.since(deletion.at) < OVERDUE {
        let ends = due(times.ends_after).min(deletion.at).max(now);
        model.ends_at(&pod.id.uid, ends);
    }
    if let Replaced::AfterRequest(after) = times.replaced {
        model.replaced_at(pod, due(after));
    }
}
