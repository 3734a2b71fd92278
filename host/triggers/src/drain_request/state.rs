//! Decides which requests become a drain, when it is cancelled, and what answer each request gets. It must not read a
//! clock or do I/O.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use scupper_api::DrainRequestFields;
use scupper_engine::{Intent, Outcome, Time};

use super::TRIGGER;
use super::conditions::{ConditionNames, RequestAnswer, RequestStage};
use super::request::{ObservedRequest, RequestChange, ServedRequests};
use crate::{DrainCommand, DrainReport, NamedPods, TriggerRequest};
use departed::DepartedRequest;
use resuming::Resuming;
use writes::WriteSlot;

mod departed;
mod planned;
mod resuming;
mod writes;

pub use planned::{NoDrain, PlannedDrain, planned_drain};
pub(super) use writes::ConditionWrite;
pub use writes::UnwrittenConditions;

/// Pause before a drain that ended without an outcome is requested again.
const AGAIN: Duration = Duration::from_secs(10);

/// A request, and how far it is.
#[derive(Debug)]
struct TrackedRequest {
    observed: ObservedRequest,
    /// When this process first saw it.
    seen: Time,
    answer: Option<RequestAnswer>,
    write: WriteSlot,
}

/// A drain that the driver was asked for and has not ended.
#[derive(Debug)]
struct ActiveDrain {
    id: String,
    /// Of the request that it began with.
    name: String,
    only_pods: Option<NamedPods>,
    started: bool,
    /// No request asks for it any more.
    withdrawn: bool,
    /// The requests that it is for, by UID.
    members: BTreeMap<String, DrainMember>,
    /// The deadline that the driver knows.
    deadline: Option<Time>,
    /// The hooks that hold it.
    held: Vec<String>,
    /// What it did.
    summary: String,
}

/// A request that a drain is for.
#[derive(Debug)]
struct DrainMember {
    /// Once the drain has started.
    deadline: Option<Time>,
    /// Its fields when it joined: the plan is made for these.
    joined_with: Arc<DrainRequestFields>,
}

/// The trigger's state.
#[derive(Debug)]
pub(super) struct RequestState {
    names: ConditionNames,
    /// Time limit of a request, from the start of its drain.
    timeout: Option<Duration>,
    /// Namespaces whose requests are not known yet.
    unlisted: BTreeSet<String>,
    /// By UID.
    requests: BTreeMap<String, TrackedRequest>,
    /// Requests that are not for this node any more, and whose status says that it is drained for them.
    departed: BTreeMap<String, DepartedRequest>,
    drain: Option<ActiveDrain>,
    resuming: Resuming,
    /// Nothing begins before this time.
    not_before: Time,
    commands: VecDeque<DrainCommand>,
}

impl ActiveDrain {
    fn last_deadline(&self) -> Option<Time> {
        self.members.values().filter_map(|member| member.deadline).max()
    }

    /// Whether the plan is made for this request as well. The verdicts on known pods stand while a drain runs, and
    /// policies may plan by the fields of requests: one with other fields needs a plan of its own.
    fn is_planned_for(&self, uid: &str, fields: &DrainRequestFields) -> bool {
        match self.members.get(uid) {
            Some(member) => member.joined_with.asks_the_same(fields),
            None => {
                let mut members = self.members.values();
                members.any(|member| member.joined_with.asks_the_same(fields))
            }
        }
    }
}

impl RequestState {
    pub(super) fn new(namespaces: &[String], names: ConditionNames, timeout: Option<Duration>) -> Self {
        Self {
            names,
            timeout,
            unlisted: namespaces.iter().cloned().collect(),
            requests: BTreeMap::new(),
            departed: BTreeMap::new(),
            drain: None,
            resuming: Resuming::default(),
            not_before: Time::default(),
            commands: VecDeque::new(),
        }
    }

    pub(super) fn poll_command(&mut self) -> Option<DrainCommand> {
        self.commands.pop_front()
    }

    /// True if the state must be advanced although nothing happens.
    pub(super) fn is_busy(&self) -> bool {
        self.drain.is_some()
            || self.resuming.is_undecided()
            || !self.departed.is_empty()
            || self
                .requests
                .values()
                .any(|tracked| self.is_open(tracked) || tracked.write.is_pending() || self.has_news(tracked))
    }

    /// Handles a change of the requests.
    pub(super) fn handle_change(&mut self, change: RequestChange, now: Time) {
        match change {
            RequestChange::Listed(namespace, listed) => {
                let uids: BTreeSet<_> = listed
                    .iter()
                    .map(|request| request.reference.uid.clone())
                    .collect();
                let tracked = self.requests.iter();
                let gone = tracked.filter(|(uid, tracked)| {
                    tracked.observed.reference.namespace == namespace && !uids.contains(*uid)
                });
                let gone: Vec<_> = gone.map(|(uid, _)| uid.clone()).collect();
                for uid in gone {
                    self.forget(&uid);
                }
                for request in listed {
                    self.observe(request, now);
                }
                self.unlisted.remove(&namespace);
            }
            RequestChange::Applied(request) => self.observe(request, now),
            RequestChange::Deleted(uid) => self.forget(&uid),
        }
    }

    fn observe(&mut self, request: ObservedRequest, now: Time) {
        self.departed.remove(&request.reference.uid);
        match self.requests.get_mut(&request.reference.uid) {
            Some(tracked) => tracked.observed = request,
            None => {
                let tracked = TrackedRequest {
                    seen: now,
                    answer: None,
                    write: WriteSlot::default(),
                    observed: request,
                };
                self.requests
                    .insert(tracked.observed.reference.uid.clone(), tracked);
            }
        }
    }

    /// Handles a report of the driver about a drain.
    pub(super) fn handle_report(&mut self, report: DrainReport, now: Time) {
        let Some(drain) = self.drain.as_mut().filter(|drain| drain.id == report.id()) else {
            return;
        };
        match report {
            DrainReport::Started { .. } => {
                drain.started = true;
                let members: Vec<_> = drain.members.keys().cloned().collect();
                for uid in members {
                    self.set_deadline(&uid, now);
                }
            }
            DrainReport::Held { by, .. } => drain.held = by,
            DrainReport::Summary { text, .. } => drain.summary = text,
            DrainReport::Ended { outcome, .. } => self.ended(outcome.as_ref(), now),
        }
    }

    /// A request that is drained for already keeps the deadline that it had in an earlier process.
    fn set_deadline(&mut self, uid: &str, now: Time) {
        let tracked = self.requests.get(uid);
        let since = tracked.and_then(|tracked| self.names.draining_since(&tracked.observed));
        let deadline = self
            .timeout
            .map(|timeout| since.unwrap_or(now).min(now) + timeout);
        if let Some(member) = self.drain.as_mut().and_then(|drain| drain.members.get_mut(uid)) {
            member.deadline = deadline;
        }
    }

    fn ended(&mut self, outcome: Option<&Outcome>, now: Time) {
        let Some(drain) = self.drain.take() else { return };
        let Some(outcome) = outcome else {
            self.not_before = now + AGAIN;
            return;
        };
        // A drain that was withdrawn has no members.
        for uid in drain.members.keys() {
            if let Some(tracked) = self.requests.get_mut(uid) {
                tracked.answer = Some(RequestAnswer::of(outcome, &drain.summary));
            }
        }
    }

    /// Does what follows from all that is known. `may_begin`: this is the only driver, and it is not stopping.
    pub(super) fn advance(&mut self, now: Time, may_begin: bool) {
        if may_begin {
            self.resume_when_known(now);
        }
        if !self.resuming.is_done() {
            return;
        }
        self.answer_at_once();
        self.expire(now);
        self.update_members(now);
        let is_known = self.resuming.has_waited_for_lists(&self.unlisted, now);
        if may_begin && is_known && self.drain.is_none() && now >= self.not_before {
            self.begin(now);
        }
    }

    /// Answers the requests that need no drain.
    fn answer_at_once(&mut self) {
        for tracked in self.requests.values_mut() {
            let is_over = tracked.answer.is_some() || self.names.is_answered(&tracked.observed);
            if is_over || tracked.observed.deleting {
                continue;
            }
            tracked.answer = match &tracked.observed {
                ObservedRequest {
                    problem: Some(problem),
                    ..
                } => Some(RequestAnswer::invalid(problem)),
                ObservedRequest {
                    only_pods: Some(pods),
                    ..
                } if pods.values().all(BTreeSet::is_empty) => Some(RequestAnswer::no_pods()),
                _ => None,
            };
        }
    }

    /// Answers the requests whose deadline has passed while the drain continues for others. The last deadline is the
    /// drain's own.
    fn expire(&mut self, now: Time) {
        let Some(drain) = &self.drain else { return };
        let last = drain.last_deadline();
        for (uid, member) in &drain.members {
            let is_late = member
                .deadline
                .is_some_and(|deadline| deadline <= now && Some(deadline) < last);
            if let Some(tracked) = self.requests.get_mut(uid).filter(|_| is_late) {
                tracked.answer = Some(RequestAnswer::too_late());
            }
        }
    }

    fn update_members(&mut self, now: Time) {
        let Some(drain) = self.drain.as_ref().filter(|drain| !drain.withdrawn) else {
            return;
        };
        let mut open = self.open_for(drain.only_pods.as_ref());
        open.retain(|uid, member| drain.is_planned_for(uid, &member.joined_with));
        let joined: Vec<_> = open
            .keys()
            .filter(|uid| !drain.members.contains_key(*uid))
            .cloned()
            .collect();
        let started = drain.started;
        if let Some(drain) = &mut self.drain {
            drain.members.retain(|uid, _| open.contains_key(uid));
            for (uid, member) in open {
                drain.members.entry(uid).or_insert(member);
            }
        }
        if started {
            for uid in &joined {
                self.set_deadline(uid, now);
            }
        }
        self.withdraw_if_unwanted();
        self.move_deadline();
    }

    fn withdraw_if_unwanted(&mut self) {
        let Some(drain) = &mut self.drain else { return };
        if drain.members.is_empty() && !drain.withdrawn {
            drain.withdrawn = true;
            self.commands.push_back(DrainCommand::Cancel {
                id: drain.id.clone(),
                reason: self.resuming.why_withdrawn(&self.unlisted),
            });
        }
    }

    /// The drain may take as long as the latest of its requests.
    fn move_deadline(&mut self) {
        let Some(drain) = self
            .drain
            .as_mut()
            .filter(|drain| drain.started && !drain.withdrawn)
        else {
            return;
        };
        let deadline = drain.last_deadline();
        if deadline != drain.deadline {
            drain.deadline = deadline;
            self.commands.push_back(DrainCommand::Deadline {
                id: drain.id.clone(),
                deadline,
            });
        }
    }

    /// Requests a drain for the oldest open request, and for all others that mean the same pods.
    fn begin(&mut self, now: Time) {
        let open = self.requests.values().filter(|tracked| self.is_open(tracked));
        let Some(oldest) =
            open.min_by_key(|tracked| (tracked.observed.created, &tracked.observed.reference.uid))
        else {
            return;
        };
        let (mut drain, members) = self.drain_for(&oldest.observed);
        drain.id = new_id(&drain.id, now);
        self.send(drain, members);
    }

    /// The drain for a request, and all open requests that mean the same pods.
    fn drain_for(&self, request: &ObservedRequest) -> (TriggerRequest, BTreeMap<String, DrainMember>) {
        let ObservedRequest {
            reference, only_pods, ..
        } = request;
        let drain = new_request(reference.uid.clone(), reference.name.clone(), only_pods.clone());
        (drain, self.open_for(only_pods.as_ref()))
    }

    fn send(&mut self, request: TriggerRequest, members: BTreeMap<String, DrainMember>) {
        self.drain = Some(ActiveDrain {
            id: request.id.clone(),
            name: request.name.clone(),
            only_pods: request.only_pods.clone(),
            started: false,
            withdrawn: false,
            members,
            deadline: request.deadline,
            held: Vec::new(),
            summary: String::new(),
        });
        self.commands.push_back(DrainCommand::Begin(request));
    }

    /// It asks for a drain.
    fn is_open(&self, tracked: &TrackedRequest) -> bool {
        let TrackedRequest { observed, answer, .. } = tracked;
        answer.is_none()
            && !observed.deleting
            && observed.problem.is_none()
            && !self.names.is_answered(observed)
    }

    /// The open requests that mean these pods; `None`: those that mean all of the node.
    fn open_for(&self, only_pods: Option<&NamedPods>) -> BTreeMap<String, DrainMember> {
        self.open_where(|named| named == only_pods)
    }

    fn open_where(&self, means: impl Fn(Option<&NamedPods>) -> bool) -> BTreeMap<String, DrainMember> {
        let open = self
            .requests
            .iter()
            .filter(|(_, tracked)| self.is_open(tracked) && means(tracked.observed.only_pods.as_ref()));
        let member = |tracked: &TrackedRequest| DrainMember {
            deadline: None,
            joined_with: Arc::clone(&tracked.observed.fields),
        };
        open.map(|(uid, tracked)| (uid.clone(), member(tracked)))
            .collect()
    }

    /// The requests that the current drain serves; `None`: nothing new. A drain that was withdrawn keeps its last ones:
    /// without any, its policies would plan for the whole node until it is cancelled.
    pub(super) fn served(&self) -> Option<ServedRequests> {
        let drain = self.drain.as_ref().filter(|drain| !drain.withdrawn)?;
        let members = drain.members.keys().filter_map(|uid| self.requests.get(uid));
        let requests = members.map(|tracked| Arc::clone(&tracked.observed.fields));
        Some(ServedRequests::of(&drain.id, requests))
    }

    /// How far a request is, as its status should say; `None`: there is nothing to say.
    fn stage<'a>(&'a self, tracked: &'a TrackedRequest) -> Option<RequestStage<'a>> {
        if tracked.observed.deleting {
            return None;
        }
        if let Some(answer) = &tracked.answer {
            return Some(RequestStage::Answered(answer));
        }
        if !self.is_open(tracked) {
            return None;
        }
        let uid = &tracked.observed.reference.uid;
        let own = self
            .drain
            .as_ref()
            .filter(|drain| drain.started && drain.members.contains_key(uid));
        let waits = || RequestStage::Waiting(self.why_it_waits(uid));
        Some(own.map_or_else(waits, |drain| RequestStage::Draining(&drain.held)))
    }

    /// What an open request waits for whose drain has not started.
    fn why_it_waits(&self, uid: &str) -> String {
        if let Some(why) = self.resuming.why_it_waits(&self.unlisted) {
            return why;
        }
        match &self.drain {
            Some(drain) if drain.members.contains_key(uid) => {
                "waits for another drain of the node to end".to_owned()
            }
            Some(drain) => format!(
                "asks for another drain than the one for DrainRequest {}, and waits for its end",
                drain.name
            ),
            None => "its drain begins as soon as the driver can".to_owned(),
        }
    }
}

/// The id of a drain that begins for this request. One request may get more than one, such as after a change.
fn new_id(uid: &str, now: Time) -> String {
    format!("{uid}.{:x}", now.as_millis())
}

fn new_request(id: String, name: String, only_pods: Option<NamedPods>) -> TriggerRequest {
    TriggerRequest {
        id,
        name,
        trigger: TRIGGER.to_owned(),
        intent: Intent::Drain,
        deadline: None,
        flags: None,
        only_pods,
    }
}

#[cfg(test)]
mod tests;
