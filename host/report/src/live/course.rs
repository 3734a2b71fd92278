//! What is known of one node while something is under way there, whoever does it: from the engine's own mouth, or from
//! what the API server shows of a drain that somebody else carries out.

use std::collections::BTreeSet;

use scupper_engine::{Drain, Duration, HookPhase, Notice, Phase, PodRef, Reason, Subject, Time, Uid};

use crate::status::{NodeStatus, phase_words, subject, subject_words};
use crate::view::{DriverView, HookView, ViewKeeper, WaveView};

/// How often the engine is asked why each pod is still there.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) node: String,
    /// In a few words.
    pub(super) stage: String,
    pub(super) began: Time,
    pub(super) deadline: Option<Time>,
    /// Pods that are gone, of those that are to leave. `None`: it is not known yet.
    pub(super) pods: Option<(usize, usize)>,
    pub(super) wave: Option<WaveView>,
    pub(super) holds: Vec<Hold>,
}

/// Something that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A hook, and of what it is one.
    Hook(HookView, String),
    /// A pod.
    Pod(PodRef, Reason),
}

/// What is known of one node so far.
#[derive(Debug)]
pub(super) struct Course {
    node: String,
    began: Time,
    keeper: ViewKeeper,
    planned: bool,
    /// Pods that are to leave, those that are gone included.
    leaving: BTreeSet<Uid>,
    /// Pods that had gone before they were seen.
    unseen: usize,
    facts: Facts,
}

#[derive(Debug)]
enum Facts {
    /// In a few words.
    Words(String),
    /// By the engine, then.
    Told(Time, Standing),
    /// On the API server, for this LifecycleEvent.
    Seen(String, Uid, Box<NodeStatus>),
}

impl Course {
    pub(super) fn begin(node: &str, began: Time, words: String) -> Self {
        Self {
            node: node.to_owned(),
            began,
            keeper: ViewKeeper::default(),
            planned: false,
            leaving: BTreeSet::new(),
            unseen: 0,
            facts: Facts::Words(words),
        }
    }

    /// The engine tells something.
    pub(super) fn notice(&mut self, now: Time, notice: &Notice) {
        self.keeper.notice(now, notice);
        self.planned |= matches!(notice, Notice::Planned(_));
    }

    /// The engine's loop has turned.
    pub(super) fn turned(&mut self, now: Time, drain: &Drain) {
        if let Facts::Told(looked, _) = &self.facts
            && now.since(*looked) < LOOK_EVERY
        {
            return;
        }
        let waiting = drain.waiting();
        let is_leaving = |(pod, reason): &(PodRef, Reason)| (pod.uid.clone(), Some(!reason.stays()));
        let pods = self.count(waiting.iter().map(is_leaving).collect(), None);
        let view = self.keeper.view(now, "", Vec::new());
        let name = |uid: &Uid| {
            let pod = waiting.iter().find(|(pod, _)| pod.uid == *uid);
            pod.map(|(pod, _)| pod.to_string())
        };
        let hooks = view.hooks.into_iter().map(|hook| {
            let of = subject_words(&hook.subject, name);
            Hold::Hook(hook, of)
        });
        let mut holds: Vec<_> = hooks.collect();
        let held = waiting.into_iter().filter(|(_, reason)| *reason != Reason::Kept);
        holds.extend(held.map(|(pod, reason)| Hold::Pod(pod, reason)));
        let standing = Standing {
            node: self.node.clone(),
            stage: phase_words(drain.phase()).to_owned(),
            began: self.began,
            deadline: drain.request().deadline,
            pods,
            wave: view.wave.filter(|_| drain.phase() == Phase::Evicting),
            holds,
        };
        self.facts = Facts::Told(now, standing);
    }

    /// The API server shows something new.
    pub(super) fn seen(&mut self, event: &str, uid: &Uid, status: NodeStatus) {
        self.facts = Facts::Seen(event.to_owned(), uid.clone(), Box::new(status));
    }

    /// Where it stands now.
    pub(super) fn standing(&mut self, now: Time) -> Standing {
        let facts = std::mem::replace(&mut self.facts, Facts::Words(String::new()));
        let standing = match &facts {
            Facts::Words(words) => self.bare(words.clone()),
            Facts::Told(_, standing) => standing.clone(),
            Facts::Seen(event, uid, status) => self.shown(now, event, uid, status),
        };
        self.facts = facts;
        standing
    }

    fn bare(&self, stage: String) -> Standing {
        Standing {
            node: self.node.clone(),
            stage,
            began: self.began,
            deadline: None,
            pods: None,
            wave: None,
            holds: Vec::new(),
        }
    }

    fn shown(&mut self, now: Time, event: &str, uid: &Uid, status: &NodeStatus) -> Standing {
        let wish = status.wishes.iter().find(|wish| wish.name == event);
        let state = wish.map_or("", |wish| wish.state.as_str());
        // What stands there of another drain says nothing of this one.
        let Some(mark) = status.node.checkpoint.as_ref().filter(|mark| mark.id == uid.0) else {
            let asked = matches!(state, "" | "Pending");
            return Standing {
                deadline: wish.and_then(|wish| wish.deadline),
                ..self.bare(if asked { "asked for" } else { "taken up" }.to_owned())
            };
        };
        let (view, phase) = (status.fresh(now), status.phase(mark, now));
        let plan = view.and_then(|view| view.plan.as_ref());
        let first = plan.filter(|_| !self.planned).map(|plan| plan.leaving);
        self.planned |= plan.is_some();
        let held = status.held(now);
        let pods = held.iter().map(|held| {
            let is_leaving = is_leaving(view, &held.pod.id.uid, held.reason.as_ref());
            (held.pod.id.uid.clone(), is_leaving)
        });
        let pods = self.count(pods.collect(), first);
        let mut holds = hooks(status, view);
        holds.extend(held.into_iter().filter_map(|held| {
            let reason = held.reason.filter(|reason| *reason != Reason::Kept)?;
            Some(Hold::Pod(held.pod.id.clone(), reason))
        }));
        Standing {
            deadline: mark.deadline.or_else(|| wish.and_then(|wish| wish.deadline)),
            pods,
            wave: view
                .and_then(|view| view.wave.clone())
                .filter(|_| phase == Phase::Evicting),
            holds,
            ..self.bare(phase_words(phase).to_owned())
        }
    }

    /// Gone, and of how many. Of each pod that is here: whether it is to leave, where that is known. `planned`: how many
    /// are to, when that is told for the first time.
    fn count(&mut self, here: Vec<(Uid, Option<bool>)>, planned: Option<u32>) -> Option<(usize, usize)> {
        for (uid, is_leaving) in &here {
            match is_leaving {
                Some(true) => {
                    self.leaving.insert(uid.clone());
                }
                Some(false) => {
                    self.leaving.remove(uid);
                }
                None => {}
            }
        }
        let still = here.iter().filter(|(uid, _)| self.leaving.contains(uid)).count();
        if let Some(planned) = planned {
            let planned = usize::try_from(planned).unwrap_or(usize::MAX);
            self.unseen = planned.saturating_sub(self.leaving.len());
        }
        let of = self.leaving.len() + self.unseen;
        (self.planned && of > 0).then(|| (of - still, of))
    }
}

/// Whether a pod is to leave, as far as the process that drains has told.
fn is_leaving(view: Option<&DriverView>, uid: &Uid, reason: Option<&Reason>) -> Option<bool> {
    let view = view.filter(|view| view.plan.is_some())?;
    if let Some(told) = view.pods.iter().find(|pod| pod.uid == *uid) {
        return Some(!told.reason.stays());
    }
    match reason {
        Some(reason) if reason.stays() => Some(false),
        // Those that do not fit into what it tells are to leave, for all that is known.
        _ => (view.more > 0).then_some(true),
    }
}

/// As the process that drains tells of them, or as the node shows them.
fn hooks(status: &NodeStatus, view: Option<&DriverView>) -> Vec<Hold> {
    let mark = status.node.checkpoint.as_ref();
    let kept = mark.map_or(&[][..], |mark| &mark.hooks);
    let saved = kept.iter().map(|hook| HookView {
        policy: hook.policy.clone(),
        phase: hook.phase,
        subject: hook.subject.clone(),
        since: hook.started,
        progress: String::new(),
        waiting_for: Vec::new(),
    });
    let key = |hook: &HookView| -> (String, HookPhase, Subject) {
        (hook.policy.clone(), hook.phase, hook.subject.clone())
    };
    let told = view.map(|view| view.hooks.as_slice()).unwrap_or_default();
    let done = |hook: &HookView| mark.is_some_and(|mark| mark.done.contains(&key(hook)));
    let untold = saved.filter(|hook| !told.iter().any(|told| key(told) == key(hook)));
    let told = told.iter().filter(|hook| !done(hook)).map(|hook| HookView {
        since: hook.began(kept),
        ..hook.clone()
    });
    let all = told.chain(untold);
    all.map(|hook| {
        let of = subject(status, &hook.subject);
        Hold::Hook(hook, of)
    })
    .collect()
}

#[cfg(test)]
mod tests;
