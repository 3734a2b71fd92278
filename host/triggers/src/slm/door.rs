//! The door's memory: the events of this node, what was asked of the driver, and how it ended. Hears changes and
//! calls, gives answers, demands and warnings; does nothing itself. It must not know sockets, nor read a clock.

mod resume;
mod stale;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use scupper_engine::{Intent, Outcome, Time};

use super::claim::{Act, Call, Identity, Progress, Reply, Verdict, decide};
use super::deadline::{own_deadline, with_margin};
use super::lifecycle::{ClaimStatus, LifecycleChange, LifecycleEvent};
use crate::{Demand, Resume, Standing, Wish};

/// Who asks, in reports.
const TRIGGER: &str = "LifecycleEvent";

/// Something to be passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Demand(Demand),
    Warn {
        reason: &'static str,
        message: String,
    },
    /// The event fails for what it says, before anything is begun.
    Refused {
        event: String,
        why: String,
    },
}

/// The door's memory.
pub(super) struct Door {
    identity: Identity,
    /// `spec.sla` of our own transitions, by name.
    lengths: BTreeMap<String, Duration>,
    events: BTreeMap<String, Known>,
    /// The watch has shown everything once.
    listed: bool,
    active: Option<Active>,
    standing: Standing,
    resume: Option<Resume>,
    /// Another instance of this driver may still be at work, so that nothing is begun yet.
    held: bool,
    /// There is, or was a moment ago, another instance that the kubelet calls.
    beside: bool,
    stopping: bool,
    outputs: VecDeque<Output>,
}

/// An event that we know.
struct Known {
    event: LifecycleEvent,
    /// When we first saw it claimed.
    claimed: Option<Time>,
    /// We were called for it, or a former process of ours was.
    called: bool,
    outcome: Option<Outcome>,
}

/// What the driver was asked for and has not ended.
struct Active {
    id: String,
    deadline: Option<Time>,
    /// The driver has been seen at it.
    taken: bool,
    /// The event is over or taken back, and the driver was told so.
    over: bool,
}

impl Door {
    pub(super) fn new(identity: Identity, lengths: BTreeMap<String, Duration>) -> Self {
        Self {
            identity,
            lengths,
            events: BTreeMap::new(),
            listed: false,
            active: None,
            standing: Standing::Idle,
            resume: None,
            held: false,
            beside: false,
            stopping: false,
            outputs: VecDeque::new(),
        }
    }

    /// The next thing to pass on.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Nothing is begun any more.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    /// An event of ours is claimed, or the driver is at work: connections and transitions are left as they are.
    pub(super) fn is_busy(&self) -> bool {
        self.any(&ClaimStatus::Claimed) || self.active.is_some()
    }

    /// An event of ours waits for the kubelet to take it up.
    pub(super) fn is_awaited(&self) -> bool {
        self.any(&ClaimStatus::Pending)
    }

    fn any(&self, claim: &ClaimStatus) -> bool {
        self.events
            .values()
            .any(|known| known.event.claim == *claim && self.identity.owns(&known.event))
    }

    /// The kubelet calls.
    pub(super) fn handle_call(&mut self, call: &Call, now: Time) -> Verdict {
        let uid = self.uid_of(&call.event);
        let known = uid.as_ref().and_then(|uid| self.events.get(uid));
        let progress = known.map_or(Progress::Fresh, |known| self.progress(known));
        let verdict = decide(&self.identity, call, known.map(|known| &known.event), progress);
        if let (Some(uid), Verdict::Answer(_, act)) = (uid, &verdict) {
            if let Some(known) = self.events.get_mut(&uid) {
                if let (false, Some(why)) = (known.called, refused(&known.event, &verdict)) {
                    let event = known.event.name.clone();
                    self.outputs.push_back(Output::Refused { event, why });
                }
                known.called = true;
            }
            match act {
                Some(Act::Begin(intent)) => self.begin(&uid, *intent),
                Some(Act::Expire) => self.set_deadline(&uid, Some(now)),
                None => {}
            }
        }
        verdict
    }

    /// The watch of events tells something.
    pub(super) fn handle_change(&mut self, change: LifecycleChange, now: Time) {
        match change {
            LifecycleChange::Applied(event) => self.apply(event, now),
            LifecycleChange::Gone { uid } => self.forget(&uid),
            LifecycleChange::Listed(events) => {
                let gone = |uid: &&String| events.iter().all(|event| event.uid != **uid);
                let gone: Vec<_> = self.events.keys().filter(gone).cloned().collect();
                for uid in gone {
                    self.forget(&uid);
                }
                for event in events {
                    self.apply(event, now);
                }
                self.listed = true;
            }
        }
        self.resume_from_nothing();
    }

    /// The driver shows what it is at.
    pub(super) fn handle_standing(&mut self, standing: Standing) {
        match &standing {
            Standing::Idle => {
                self.active.take_if(|active| active.taken || active.over);
            }
            Standing::Working { id } => {
                let other = |active: &mut Active| active.id != *id && (active.taken || active.over);
                self.active.take_if(other);
                if let Some(active) = self.active.as_mut().filter(|active| active.id == *id) {
                    active.taken = true;
                }
            }
            Standing::Ended { id, outcome } => {
                if let Some(known) = self.events.get_mut(id) {
                    known.outcome = Some(outcome.clone());
                }
                self.active
                    .take_if(|active| active.id == *id || active.taken || active.over);
            }
        }
        self.standing = standing;
    }

    /// The newest event of that name: an older one may not have been seen to go.
    fn uid_of(&self, name: &str) -> Option<String> {
        let named = || self.events.values().filter(|known| known.event.name == name);
        let claimed = named().find(|known| known.event.claim == ClaimStatus::Claimed);
        claimed
            .or_else(|| named().next())
            .map(|known| known.event.uid.clone())
    }

    fn progress<'a>(&self, known: &'a Known) -> Progress<'a> {
        if let Some(outcome) = &known.outcome {
            return Progress::Ended(outcome);
        }
        let uid = &known.event.uid;
        let working = matches!(&self.standing, Standing::Working { id } if id == uid);
        match &self.active {
            _ if self.stopping || self.held => Progress::Handover,
            Some(active) if active.id == *uid => Progress::Working,
            Some(_) => Progress::Busy,
            None if matches!(self.standing, Standing::Working { .. }) && !working => Progress::Busy,
            None => Progress::Fresh,
        }
    }

    fn apply(&mut self, event: LifecycleEvent, now: Time) {
        let uid = event.uid.clone();
        let before = self.events.remove(&uid);
        let remembered = self.resume.as_ref().is_some_and(|resume| resume.id == uid);
        let claimed = match &before {
            Some(Known {
                claimed: Some(first), ..
            }) => Some(*first),
            _ => (event.claim == ClaimStatus::Claimed).then_some(now),
        };
        let was_alive = before
            .as_ref()
            .is_some_and(|known| !known.event.claim.is_terminal());
        let (called, outcome) = before.map_or((false, None), |known| (known.called, known.outcome));
        let known = Known {
            event,
            claimed,
            // As long as there is another one, the kubelet calls that.
            called: called || remembered || self.beside,
            outcome,
        };
        self.notice_stale_end(&known, was_alive);
        self.events.insert(uid.clone(), known);
        self.resume_from(&uid);
        self.follow(&uid);
    }

    /// An event has changed: what does that mean for the work?
    fn follow(&mut self, uid: &str) {
        let Some(known) = self.events.get(uid) else {
            return;
        };
        let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.id == uid && !active.over)
        else {
            return;
        };
        let event = &known.event;
        let id = uid.to_owned();
        if event.claim.is_terminal() {
            active.over = true;
            let reason = format!(
                "LifecycleEvent {} has ended: {}",
                event.name,
                event.claim.as_str()
            );
            self.outputs
                .push_back(Output::Demand(Demand::Lost { id, reason }));
        } else if event.deleting {
            active.over = true;
            let reason = format!("LifecycleEvent {} was deleted", event.name);
            self.outputs
                .push_back(Output::Demand(Demand::Cancel { id, reason }));
        } else {
            let deadline = self.deadline_of(uid);
            self.set_deadline(uid, deadline);
        }
    }

    fn forget(&mut self, uid: &str) {
        let Some(known) = self.events.remove(uid) else {
            return;
        };
        if let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.id == uid && !active.over)
        {
            active.over = true;
            let reason = format!("LifecycleEvent {} is gone", known.event.name);
            self.outputs.push_back(Output::Demand(Demand::Cancel {
                id: uid.to_owned(),
                reason,
            }));
        }
    }

    fn deadline_of(&self, uid: &str) -> Option<Time> {
        let known = self.events.get(uid)?;
        let claimed = known.claimed?;
        let wanted = known.event.flags().and_then(|flags| flags.timeout);
        let length = match wanted {
            Some(wanted) => Some(with_margin(wanted)),
            None => self.lengths.get(&known.event.transition).copied(),
        };
        let given = known.event.sla.map(|sla| own_deadline(sla, length, claimed));
        let wanted = wanted.map(|wanted| claimed + wanted.into());
        given.into_iter().chain(wanted).min()
    }

    fn set_deadline(&mut self, uid: &str, deadline: Option<Time>) {
        let changed = |active: &&mut Active| active.id == uid && active.deadline != deadline;
        let Some(active) = self.active.as_mut().filter(changed) else {
            return;
        };
        active.deadline = deadline;
        self.outputs.push_back(Output::Demand(Demand::Deadline {
            id: uid.to_owned(),
            deadline,
        }));
    }

    fn begin(&mut self, uid: &str, intent: Intent) {
        let deadline = self.deadline_of(uid);
        let Some(known) = self.events.get(uid) else {
            return;
        };
        let wish = Wish {
            id: uid.to_owned(),
            name: known.event.name.clone(),
            trigger: TRIGGER.to_owned(),
            intent,
            deadline,
            flags: known.event.flags().cloned().map(Box::new),
        };
        let taken = matches!(&self.standing, Standing::Working { id } if id == uid);
        self.active = Some(Active {
            id: uid.to_owned(),
            deadline,
            taken,
            over: false,
        });
        self.outputs.push_back(Output::Demand(Demand::Begin(wish)));
    }
}

/// The problem with the event's flags that the verdict tells.
fn refused(event: &LifecycleEvent, verdict: &Verdict) -> Option<String> {
    let Some(Err(problem)) = event.flags.as_deref() else {
        return None;
    };
    let told = matches!(verdict, Verdict::Answer(Reply::Error(why), _) if why == problem);
    told.then(|| problem.clone())
}

#[cfg(test)]
mod tests;
