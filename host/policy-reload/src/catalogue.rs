//! The active policies: an immutable generation, swapped as a whole, and the drains that hold on to older ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use scupper_engine::Time;
use scupper_policy::{CallError, LoadedPolicy};
use tokio::sync::{mpsc, oneshot};

use super::checks::LastCheck;
use super::notice::ReloadNotice;
use super::revision::Edition;
use super::scan::SourceText;
use super::session::Session;
use super::status::SlotStatus;

/// Orders that may wait for the reloader. A fault that finds no room is one of very many.
pub(super) const ORDERS: usize = 256;

/// The active policies, and how they stand.
pub struct Catalogue {
    active: ArcSwap<Generation>,
    slots: ArcSwap<Vec<SlotStatus>>,
    /// The words of the configuration that counts now.
    said: ArcSwap<Option<SourceText>>,
    /// What the active policies found in their surroundings.
    pub(super) checks: ArcSwap<Vec<LastCheck>>,
    /// Editions that were active once and may still be held by a drain.
    old: Mutex<Vec<Weak<Member>>>,
    orders: mpsc::Sender<Order>,
}

/// All policies of one moment, in chain order.
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) members: Vec<Arc<Member>>,
}

/// One edition of a policy, ready to be called.
pub(super) struct Member {
    pub(super) policy: Arc<LoadedPolicy>,
    pub(super) edition: Edition,
    /// The generation it came with.
    pub(super) generation: u64,
    /// When that was.
    pub(super) since: Time,
    /// It was rolled back: nobody goes on with it.
    withdrawn: AtomicBool,
}

/// Something for the reloader to do.
pub(super) enum Order {
    /// A call of an edition failed.
    Fault {
        name: String,
        edition: Edition,
        what: String,
    },
    /// Somebody does not want what is active.
    RollBack {
        name: String,
        answer: oneshot::Sender<Result<String, String>>,
    },
    /// Which editions besides the active one are at hand. Answered when those of a former process are loaded.
    Kept {
        name: String,
        answer: oneshot::Sender<Vec<Arc<Member>>>,
    },
    /// A drain has something to tell of a policy.
    Tell(ReloadNotice),
    /// Look at all files now, and say when everything that was found is done.
    Look(oneshot::Sender<()>),
}

/// An older edition that a drain still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// The policy.
    pub name: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// The generation it came with.
    pub generation: u64,
}

impl Member {
    pub(super) const fn new(
        policy: Arc<LoadedPolicy>,
        edition: Edition,
        generation: u64,
        since: Time,
    ) -> Self {
        Self {
            policy,
            edition,
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
}

impl Generation {
    pub(super) fn member(&self, name: &str) -> Option<&Arc<Member>> {
        self.members.iter().find(|member| member.name() == name)
    }
}

impl Catalogue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Order>) {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let empty = Generation {
            number: 0,
            members: Vec::new(),
        };
        let catalogue = Self {
            active: ArcSwap::from_pointee(empty),
            slots: ArcSwap::default(),
            said: ArcSwap::default(),
            checks: ArcSwap::default(),
            old: Mutex::default(),
            orders,
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

    /// How each policy stands, in chain order.
    pub fn slots(&self) -> Arc<Vec<SlotStatus>> {
        self.slots.load_full()
    }

    /// The words of the configuration that counts now; nothing where it cannot change.
    pub fn said(&self) -> Arc<Option<SourceText>> {
        self.said.load_full()
    }

    /// Older editions that drains still hold.
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
            digest: member.edition.digest.clone(),
            generation: member.generation,
        })
        .collect()
    }

    /// Looks at all files now, and returns when everything that was found is done. `false`: nobody reloads any more.
    pub async fn look(&self) -> bool {
        let (done, answer) = oneshot::channel();
        self.orders.send(Order::Look(done)).await.is_ok() && answer.await.is_ok()
    }

    /// Makes the edition before the active one active again. Answers what was done, or why nothing was.
    pub async fn roll_back(&self, name: &str) -> Result<String, String> {
        let (answer, told) = oneshot::channel();
        let order = Order::RollBack {
            name: name.to_owned(),
            answer,
        };
        let gone = || "the driver is about to end".to_owned();
        self.orders.send(order).await.map_err(|_closed| gone())?;
        told.await.map_err(|_dropped| gone())?
    }

    /// Editions of a policy that are at hand besides the active one, the newest first.
    pub(super) async fn kept(&self, name: &str) -> Vec<Arc<Member>> {
        let (answer, told) = oneshot::channel();
        let order = Order::Kept {
            name: name.to_owned(),
            answer,
        };
        match self.orders.send(order).await {
            Ok(()) => told.await.unwrap_or_default(),
            Err(_closed) => Vec::new(),
        }
    }

    /// Has something told of a policy. Whoever tells it does not wait.
    pub(super) fn tell(&self, notice: ReloadNotice) {
        let _sent = self.orders.try_send(Order::Tell(notice)).is_ok();
    }

    /// This edition was rolled back: drains that are on it leave it.
    pub(super) fn withdraw(&self, name: &str, edition: &Edition) {
        let active = self.active();
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        let old = old.iter().filter_map(Weak::upgrade);
        for member in old.chain(active.members.iter().cloned()) {
            if member.name() == name && member.edition == *edition {
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

    /// These editions may be held by a drain without being active.
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

    pub(super) fn say(&self, said: Option<SourceText>) {
        self.said.store(Arc::new(said));
    }

    pub(super) fn publish(&self, slots: Vec<SlotStatus>) {
        self.slots.store(Arc::new(slots));
    }

    /// A call failed. A failure of the driver itself is not the policy's, nor that of a server that the policy waited
    /// for: to go back to the edition before would not help.
    pub(super) fn failed(&self, member: &Member, error: &CallError) {
        if !error.fault.is_the_policys() {
            return;
        }
        let fault = Order::Fault {
            name: member.name().to_owned(),
            edition: member.edition.clone(),
            what: format!("{}: {}", error.function, error.fault),
        };
        // Whoever calls does not wait for this.
        let _sent = self.orders.try_send(fault).is_ok();
    }
}
