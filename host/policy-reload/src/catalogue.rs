//! The active policies: an immutable generation, swapped as a whole, and the drains that still use older ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use scupper_engine::Time;
use scupper_policy::{CallError, LoadedPolicy};
use scupper_policy_spec::PolicyMode;
use tokio::sync::{mpsc, oneshot};

use super::checks::LastCheck;
use super::notice::ReloadNotice;
use super::revision::Revision;
use super::scan::ConfigText;
use super::session::Session;
use super::status::SlotStatus;

/// The capacity of the queue to the reloader. A fault that does not fit is one of very many.
pub(super) const COMMANDS: usize = 256;

/// The active policies, and their states.
pub struct Catalogue {
    active: ArcSwap<Generation>,
    slots: ArcSwap<Vec<SlotStatus>>,
    /// The text of the active configuration.
    config_text: ArcSwap<Option<ConfigText>>,
    /// The active policies' findings about their surroundings.
    pub(super) checks: ArcSwap<Vec<LastCheck>>,
    /// Revisions that were active once and may still be held by a drain.
    old: Mutex<Vec<Weak<Member>>>,
    commands: mpsc::Sender<Command>,
}

/// All policies of one moment, in chain order.
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) members: Vec<Arc<Member>>,
}

/// One revision of a policy, ready to be called.
pub(super) struct Member {
    pub(super) policy: Arc<LoadedPolicy>,
    pub(super) revision: Revision,
    /// Its generation.
    pub(super) generation: u64,
    /// The time of its activation.
    pub(super) since: Time,
    /// It was rolled back: no drain continues with it.
    withdrawn: AtomicBool,
}

/// A command to the reloader.
pub(super) enum Command {
    /// A call of a revision failed.
    Fault {
        name: String,
        revision: Revision,
        what: String,
    },
    /// An operator rolls the active revision back.
    RollBack {
        name: String,
        answer: oneshot::Sender<Result<String, String>>,
    },
    /// Which revisions besides the active one are available. Answered once those of an earlier process are loaded.
    Kept {
        name: String,
        answer: oneshot::Sender<Vec<Arc<Member>>>,
    },
    /// A drain's report about a policy.
    Notify(ReloadNotice),
    /// Scan all files now, and answer when every finding is loaded or rejected.
    Scan(oneshot::Sender<()>),
}

/// An older revision that a drain still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// The policy.
    pub name: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// Its generation.
    pub generation: u64,
}

impl Member {
    pub(super) const fn new(
        policy: Arc<LoadedPolicy>,
        revision: Revision,
        generation: u64,
        since: Time,
    ) -> Self {
        Self {
            policy,
            revision,
            generation,
            since,
            withdrawn: AtomicBool::new(false),
        }
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// The version of hooks' state that it writes and reads.
    pub(super) fn reads(&self) -> u32 {
        self.policy.description.state_version
    }

    pub(super) fn name(&self) -> &str {
        &self.policy.description.name
    }

    pub(super) fn mode(&self) -> &PolicyMode {
        &self.policy.description.mode
    }
}

impl Generation {
    pub(super) fn member(&self, name: &str) -> Option<&Arc<Member>> {
        self.members.iter().find(|member| member.name() == name)
    }
}

impl Catalogue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Command>) {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let empty = Generation {
            number: 0,
            members: Vec::new(),
        };
        let catalogue = Self {
            active: ArcSwap::from_pointee(empty),
            slots: ArcSwap::default(),
            config_text: ArcSwap::default(),
            checks: ArcSwap::default(),
            old: Mutex::default(),
            commands,
        };
        (catalogue, inbox)
    }

    /// The policies for one drain.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }

    /// The number of the active generation.
    pub fn generation(&self) -> u64 {
        self.active.load().number
    }

    /// The state of each policy, in chain order.
    pub fn slots(&self) -> Arc<Vec<SlotStatus>> {
        self.slots.load_full()
    }

    /// The text of the active configuration; `None` if it cannot change.
    pub fn config_text(&self) -> Arc<Option<ConfigText>> {
        self.config_text.load_full()
    }

    /// Older revisions that drains still hold.
    pub fn stragglers(&self) -> Vec<Straggler> {
        let active = self.active();
        let is_active = |member: &Arc<Member>| active.members.iter().any(|other| Arc::ptr_eq(other, member));
        let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        old.retain(|member| member.strong_count() > 0);
        let held = old
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|member| !is_active(member));
        held.map(|member| Straggler {
            name: member.name().to_owned(),
            digest: member.revision.digest.clone(),
            generation: member.generation,
        })
        .collect()
    }

    /// Scans all files now, and returns when every finding is loaded or rejected. `false`: the reloader has ended.
    pub async fn rescan(&self) -> bool {
        let (done, answer) = oneshot::channel();
        self.commands.send(Command::Scan(done)).await.is_ok() && answer.await.is_ok()
    }

    /// Makes the previous revision active again. Returns what it did, or the reason for not doing it.
    pub async fn roll_back(&self, name: &str) -> Result<String, String> {
        let (answer, reported) = oneshot::channel();
        let command = Command::RollBack {
            name: name.to_owned(),
            answer,
        };
        let gone = || "the driver is about to end".to_owned();
        self.commands.send(command).await.map_err(|_closed| gone())?;
        reported.await.map_err(|_dropped| gone())?
    }

    /// The available revisions of a policy besides the active one, the newest first.
    pub(super) async fn kept(&self, name: &str) -> Vec<Arc<Member>> {
        let (answer, reported) = oneshot::channel();
        let command = Command::Kept {
            name: name.to_owned(),
            answer,
        };
        match self.commands.send(command).await {
            Ok(()) => reported.await.unwrap_or_default(),
            Err(_closed) => Vec::new(),
        }
    }

    /// Reports something of a policy. The caller does not wait.
    pub(super) fn notify(&self, notice: ReloadNotice) {
        let _sent = self.commands.try_send(Command::Notify(notice)).is_ok();
    }

    /// Marks this revision as rolled back: drains that use it switch to another one.
    pub(super) fn withdraw(&self, name: &str, revision: &Revision) {
        let active = self.active();
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        let old = old.iter().filter_map(Weak::upgrade);
        for member in old.chain(active.members.iter().cloned()) {
            if member.name() == name && member.revision == *revision {
                member.withdrawn.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn active(&self) -> Arc<Generation> {
        self.active.load_full()
    }

    pub(super) fn swap(&self, generation: Generation) {
        let before = self.active.swap(Arc::new(generation));
        self.remember(&before.members);
    }

    /// Records revisions that a drain may still use although they are not active.
    pub(super) fn remember(&self, members: &[Arc<Member>]) {
        let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        old.retain(|member| member.strong_count() > 0);
        for member in members {
            let member = Arc::downgrade(member);
            if !old.iter().any(|known| known.ptr_eq(&member)) {
                old.push(member);
            }
        }
    }

    pub(super) fn set_config_text(&self, config_text: Option<ConfigText>) {
        self.config_text.store(Arc::new(config_text));
    }

    pub(super) fn publish(&self, slots: Vec<SlotStatus>) {
        self.slots.store(Arc::new(slots));
    }

    /// Reports a failed call. Failures of the driver itself, or of a server that the policy waited for, do not count: a
    /// rollback would not help.
    pub(super) fn failed(&self, member: &Member, error: &CallError) {
        if error.fault.is_the_policys() {
            self.fault(member, format!("{}: {}", error.function, error.fault));
        }
    }

    /// Reports a failure of the policy itself.
    pub(super) fn fault(&self, member: &Member, what: String) {
        let fault = Command::Fault {
            name: member.name().to_owned(),
            revision: member.revision.clone(),
            what,
        };
        // The caller does not wait for this.
        let _sent = self.commands.try_send(fault).is_ok();
    }
}
