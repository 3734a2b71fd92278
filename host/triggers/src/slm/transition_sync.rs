//! Decides which LifecycleTransitions are ours and what to do to keep them published. It must not know how that is
//! done; the caller supplies the time.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_api::{LifecycleTransition, TransitionNodes};
use scupper_engine::Intent;
use tokio::time::Instant;

use super::call::Identity;
use super::lifecycle::TransitionChange;
use super::options::{SlmOptions, TransitionScope};

/// Delay before a deleted transition is restored, unless the kubelet registers the driver again: a starting kubelet
/// deletes transitions, and should find the driver registered before it finds them.
const AFTER_VANISHING: Duration = Duration::from_secs(5);
/// Time that the watch may need to show a write.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
/// Two drivers that want different versions of one object must not overwrite each other every few seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Maximum delay before a failed write is retried.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TransitionAction {
    Publish(LifecycleTransition),
    Withdraw(String),
}

/// The published transitions, and the wanted ones.
#[derive(Debug)]
pub(super) struct TransitionSync {
    wanted: Vec<LifecycleTransition>,
    /// Names of this node's own transitions that this scope does not want.
    leftovers: Vec<String>,
    seen: BTreeMap<String, LifecycleTransition>,
    /// The watch has delivered its first full list.
    listed: bool,
    /// The kubelet has registered the driver at least once.
    registered: bool,
    backoffs: BTreeMap<String, PublishBackoff>,
}

/// The backoff of a transition's name after failures.
#[derive(Clone, Copy, Debug)]
struct PublishBackoff {
    until: Instant,
    pause: Duration,
    /// The transition was deleted; a new registration ends the wait.
    vanished: bool,
}

/// The transitions of a driver in this scope, with their intents.
fn names(options: &SlmOptions, scope: TransitionScope) -> [(String, Intent); 2] {
    let driver = &options.driver_name;
    let suffix = match scope {
        TransitionScope::AllNodes => String::new(),
        TransitionScope::Node => format!(".{}", options.node_name),
    };
    [
        (format!("{driver}{suffix}"), Intent::Drain),
        (format!("{driver}-uncordon{suffix}"), Intent::Uncordon),
    ]
}

/// The driver's identity: its own names in either scope, so that an event survives a change of scope, and the mapped
/// ones.
pub(super) fn identity(options: &SlmOptions) -> Identity {
    let own = [TransitionScope::AllNodes, TransitionScope::Node]
        .into_iter()
        .flat_map(|scope| names(options, scope));
    let mapped = options.map.iter().map(|(name, intent)| (name.clone(), *intent));
    Identity {
        driver: options.driver_name.clone(),
        node: options.node_name.clone(),
        intents: own.chain(mapped).collect(),
    }
}

/// The time limits of our own transitions, by name.
pub(super) fn slas(options: &SlmOptions) -> BTreeMap<String, Duration> {
    let own = [TransitionScope::AllNodes, TransitionScope::Node]
        .into_iter()
        .flat_map(|scope| names(options, scope));
    own.filter_map(|(name, intent)| Some((name, length(options, intent)?)))
        .collect()
}

fn length(options: &SlmOptions, intent: Intent) -> Option<Duration> {
    match intent {
        Intent::Drain => options.sla,
        Intent::Uncordon => Some(options.uncordon_sla),
    }
}

fn wanted(options: &SlmOptions, name: String, intent: Intent) -> LifecycleTransition {
    let (start, end) = match intent {
        Intent::Drain => ("drain-started", "drain-complete"),
        Intent::Uncordon => ("uncordoning", "maintenance-complete"),
    };
    LifecycleTransition {
        name,
        driver: options.driver_name.clone(),
        start: start.to_owned(),
        end: end.to_owned(),
        nodes: match options.scope {
            TransitionScope::AllNodes => TransitionNodes::AllNodes,
            TransitionScope::Node => TransitionNodes::Node(options.node_name.clone()),
        },
        sla: length(options, intent),
    }
}

impl TransitionSync {
    pub(super) fn new(options: &SlmOptions) -> Self {
        let leftovers = match options.scope {
            TransitionScope::AllNodes => names(options, TransitionScope::Node)
                .map(|(name, _)| name)
                .to_vec(),
            // Shared transitions may be in use by other nodes.
            TransitionScope::Node => Vec::new(),
        };
        let wanted = names(options, options.scope)
            .map(|(name, intent)| wanted(options, name, intent))
            .to_vec();
        Self {
            wanted,
            leftovers,
            seen: BTreeMap::new(),
            listed: false,
            registered: false,
            backoffs: BTreeMap::new(),
        }
    }

    /// Handles a change from the watch of transitions.
    pub(super) fn handle_change(&mut self, change: TransitionChange, now: Instant) {
        match change {
            TransitionChange::Listed(all) => {
                let before = std::mem::take(&mut self.seen);
                self.seen = all.into_iter().map(|seen| (seen.name.clone(), seen)).collect();
                let gone: Vec<_> = before
                    .into_keys()
                    .filter(|name| !self.seen.contains_key(name))
                    .collect();
                for name in gone {
                    self.vanished(name, now);
                }
                self.listed = true;
            }
            TransitionChange::Applied(seen) => {
                self.seen.insert(seen.name.clone(), seen);
            }
            TransitionChange::Deleted(name) => {
                if self.seen.remove(&name).is_some() {
                    self.vanished(name, now);
                }
            }
        }
    }

    fn vanished(&mut self, name: String, now: Instant) {
        if self.wanted.iter().any(|wanted| wanted.name == name) {
            let backoff = PublishBackoff {
                until: now + AFTER_VANISHING,
                pause: SHORTEST_PAUSE,
                vanished: true,
            };
            self.backoffs.insert(name, backoff);
        }
    }

    /// Handles a registration by the kubelet, possibly repeated.
    pub(super) fn handle_registered(&mut self) {
        self.registered = true;
        self.backoffs.retain(|_, backoff| !backoff.vanished);
    }

    /// Returns the action that is due. `busy`: an event of ours is under way, so no node selection changes.
    pub(super) fn due(&self, now: Instant, busy: bool) -> Option<TransitionAction> {
        if !self.listed || !self.registered {
            return None;
        }
        let rested = |name: &String| self.backoffs.get(name).is_none_or(|backoff| backoff.until <= now);
        for wanted in self.wanted.iter().filter(|wanted| rested(&wanted.name)) {
            match self.seen.get(&wanted.name) {
                Some(seen) if seen == wanted => {}
                Some(seen) if seen.nodes != wanted.nodes => {
                    if !busy {
                        return Some(TransitionAction::Withdraw(wanted.name.clone()));
                    }
                }
                Some(_) | None => return Some(TransitionAction::Publish(wanted.clone())),
            }
        }
        let leftover = |name: &&String| !busy && self.seen.contains_key(*name) && rested(name);
        self.leftovers
            .iter()
            .find(leftover)
            .map(|name| TransitionAction::Withdraw(name.clone()))
    }

    /// Returns when to ask again although nothing has changed.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.backoffs
            .values()
            .map(|backoff| backoff.until)
            .filter(|until| *until > now)
            .min()
    }

    /// Handles a successful action. A transition of ours that was withdrawn is published anew at once.
    pub(super) fn handle_done(&mut self, action: &TransitionAction, now: Instant) {
        match action {
            TransitionAction::Publish(transition) => self.back_off(&transition.name, now, LONGEST_PAUSE),
            TransitionAction::Withdraw(name) => {
                self.seen.remove(name);
                if self.leftovers.contains(name) {
                    self.back_off(name, now, LONGEST_PAUSE);
                }
            }
        }
    }

    /// Handles a failed action.
    pub(super) fn handle_failed(&mut self, action: &TransitionAction, now: Instant) {
        match action {
            TransitionAction::Publish(LifecycleTransition { name, .. })
            | TransitionAction::Withdraw(name) => self.back_off(name, now, LONGEST_RETRY),
        }
    }

    /// Leaves the name alone, longer each time unless the last time was long ago.
    fn back_off(&mut self, name: &str, now: Instant, longest: Duration) {
        let pause = match self.backoffs.get(name) {
            Some(backoff) if now < backoff.until + LONGEST_PAUSE => (backoff.pause * 2).min(longest),
            _ => SHORTEST_PAUSE,
        };
        self.backoffs.insert(
            name.to_owned(),
            PublishBackoff {
                until: now + pause,
                pause,
                vanished: false,
            },
        );
    }
}
