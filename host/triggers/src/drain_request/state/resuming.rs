//! The drain that a previous process left on the node goes on for the requests that it was for, and is cancelled if none of
//! them still asks for it.
//! A namespace that cannot be read holds this up only for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Time, digest_of_pods};

use super::{DrainMember, RequestState, new_request};
use crate::{ResumePoint, TriggerRequest};

/// How long the first drain waits for the lists of all namespaces: requests of several become one drain.
const LISTED_WITHIN: Duration = Duration::from_secs(5);
/// After this time without its list a namespace has no request that asks for the drain of a previous process: no refusal
/// that is a hiccup lasts longer.
const UNREADABLE_AFTER: Duration = Duration::from_secs(120);

/// What is known of the drain that a previous process left.
#[derive(Debug, Default)]
pub(super) enum Resuming {
    /// The node was not read yet.
    #[default]
    Unread,
    /// Whether a request asks for it is not known.
    Left { left: ResumePoint, since: Time },
    /// There is none, or it was dealt with. Since then.
    Done { since: Time },
}

impl Resuming {
    pub(super) const fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// A drain was left, and whether it goes on is not known.
    pub(super) const fn is_undecided(&self) -> bool {
        matches!(self, Self::Left { .. })
    }

    /// The lists of all namespaces are known, or one is late.
    pub(super) fn has_waited_for_lists(&self, unlisted: &BTreeSet<String>, now: Time) -> bool {
        match self {
            Self::Done { since } => unlisted.is_empty() || now >= *since + LISTED_WITHIN,
            _ => false,
        }
    }

    /// What holds up every request.
    pub(super) fn why_it_waits(&self, unlisted: &BTreeSet<String>) -> Option<String> {
        let Self::Left { left, .. } = self else {
            return None;
        };
        Some(format!(
            "the drain for {} was under way when the driver stopped; whether it goes on is known once the DrainRequests \
             of {} can be read",
            left.name,
            named(unlisted)
        ))
    }

    /// Why no request asks for the drain.
    pub(super) fn why_withdrawn(&self, unlisted: &BTreeSet<String>) -> String {
        let why = "its DrainRequest was deleted, changed, or answered by another client";
        if unlisted.is_empty() {
            return why.to_owned();
        }
        format!("{why}, or it is in {}, which cannot be read", named(unlisted))
    }
}

fn named(namespaces: &BTreeSet<String>) -> String {
    let names: Vec<_> = namespaces.iter().map(String::as_str).collect();
    format!("namespace {}", names.join(", "))
}

impl RequestState {
    /// The node must be read: it says whether a previous process left a drain.
    pub(in super::super) const fn needs_resume_point(&self) -> bool {
        matches!(self.resuming, Resuming::Unread)
    }

    /// The drain that a previous process left.
    pub(in super::super) fn handle_resume_point(&mut self, left: Option<ResumePoint>, now: Time) {
        self.resuming = match left {
            Some(left) => Resuming::Left { left, since: now },
            None => Resuming::Done { since: now },
        };
    }

    /// Continues the drain of a previous process as soon as a request is known that asks for it, and cancels it once it is
    /// known that none does.
    pub(super) fn resume_when_known(&mut self, now: Time) {
        let Resuming::Left { left, since } = &self.resuming else {
            return;
        };
        let is_known = self.unlisted.is_empty() || now >= *since + UNREADABLE_AFTER;
        let Some(members) = self
            .members_of(left)
            .or_else(|| is_known.then(|| self.successors_of(left)))
        else {
            return;
        };
        let mut requests = members.keys().filter_map(|uid| self.requests.get(uid));
        // All of them name the same.
        let only_pods = requests
            .next()
            .and_then(|tracked| tracked.observed.only_pods.clone());
        let request = TriggerRequest {
            deadline: left.deadline,
            ..new_request(left.id.clone(), left.name.clone(), only_pods)
        };
        // The lists of all namespaces were waited for since then.
        self.resuming = Resuming::Done { since: *since };
        self.send(request, members);
        self.withdraw_if_unwanted();
    }

    /// The requests that the drain was for, and those that ask for the same as one of them; `None`: none is known. Their
    /// status says so, or else the drain's id. Others wait for a drain of their own, as while one process lives: the plan is
    /// made again, but hooks that have finished are not called again, and holds count from the start of the drain.
    fn members_of(&self, left: &ResumePoint) -> Option<BTreeMap<String, DrainMember>> {
        let mut open = self.open_for_digest(left.only_pods);
        let is_served = |uid: &String| {
            let tracked = self.requests.get(uid);
            tracked.is_some_and(|tracked| self.names.draining_since(&tracked.observed).is_some())
        };
        let began_with = |uid: &String| left.id.split('.').next() == Some(uid.as_str());
        let mut served: Vec<_> = open.keys().filter(|uid| is_served(uid)).collect();
        if served.is_empty() {
            served = open.keys().filter(|uid| began_with(uid)).collect();
        }
        let asked = served.iter().filter_map(|uid| open.get(*uid));
        let asked: Vec<_> = asked.map(|member| Arc::clone(&member.joined_with)).collect();
        let served: BTreeSet<_> = served.into_iter().cloned().collect();
        open.retain(|uid, member| {
            let asks_the_same = || {
                asked
                    .iter()
                    .any(|fields| fields.asks_the_same(&member.joined_with))
            };
            served.contains(uid) || asks_the_same()
        });
        (!open.is_empty()).then_some(open)
    }

    /// The requests to which a drain passes that has none of its own any more: those that mean the same pods, and do not wait
    /// for another drain.
    fn successors_of(&self, left: &ResumePoint) -> BTreeMap<String, DrainMember> {
        let mut open = self.open_for_digest(left.only_pods);
        open.retain(|uid, _| {
            let tracked = self.requests.get(uid);
            tracked.is_some_and(|tracked| !self.names.is_waiting(&tracked.observed))
        });
        open
    }

    /// The open requests that mean the pods with this digest; `None`: those that mean all of the node.
    fn open_for_digest(&self, digest: Option<u64>) -> BTreeMap<String, DrainMember> {
        self.open_where(|only_pods| only_pods.map(digest_of_pods) == digest)
    }
}
