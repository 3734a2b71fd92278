//! Reads the Leases of nodes for commands: which process drains, which drain that is, and whether the process is gone. It
//! takes no Lease.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{Checkpoint, Node};
use tokio::time::Instant;

use super::expiry_tracker::{LeaseAvailability, LeaseExpiryTracker, ObservedLease};
use super::holder::{HOLDER_ANNOTATION, HolderIdentity};
use super::node_leases::DURATION;
use scupper_cluster::{Cluster, Lease, ReadError};
use scupper_common::clock::Clock;
use scupper_report::{LeaseHolder, LeasedDrain};

/// How long a result is reused, however often the nodes change.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Whether the process that holds a Lease is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderLiveness {
    /// It is gone.
    Gone(String),
    /// It has renewed the Lease since the first look, or runs on this machine.
    Alive,
    /// It has not, but the Lease has not expired either.
    Silent(String),
    /// There is no holder, or the Lease cannot be read.
    Unknown,
}

/// Reads Leases.
pub struct LeaseReader {
    cluster: Cluster,
    namespace: String,
    clock: Clock,
    own: HolderIdentity,
    /// All Leases of the namespace, by their names. Only nodes with a drain have one.
    listed: Option<(Instant, BTreeMap<String, Lease>)>,
    /// When a list last failed: the right may be missing.
    unlisted: Option<Instant>,
    /// The nodes are few: without the right to list, also the Leases of those without a drain are read one by one.
    reads_each: bool,
    /// Leases that were read one by one.
    seen: BTreeMap<String, (Instant, Option<Lease>)>,
    watched: BTreeMap<String, WatchedLease>,
}

/// What was observed of a Lease since the first look.
struct WatchedLease {
    expiry: LeaseExpiryTracker,
    was_renewed: bool,
    absent_since: Option<Instant>,
}

impl LeaseReader {
    /// Reads Leases of this namespace.
    pub fn new(cluster: Cluster, namespace: String, clock: Clock) -> Self {
        Self {
            cluster,
            namespace,
            clock,
            own: HolderIdentity::own(None),
            listed: None,
            unlisted: None,
            reads_each: false,
            seen: BTreeMap::new(),
            watched: BTreeMap::new(),
        }
    }

    /// For nodes that are named: without the right to list Leases, that of each is read. It also tells of a drain that only plans,
    /// and of a Node that was made anew.
    #[must_use]
    pub const fn of_named(mut self) -> Self {
        self.reads_each = true;
        self
    }

    /// The holder of the node's Lease, unknown if no drain runs there; and its drain, or the last one that left something to
    /// undo.
    pub async fn holder_of(&mut self, node: &Node) -> (LeaseHolder, Option<LeasedDrain>) {
        let mark = node.checkpoint.as_ref();
        let is_marked = mark.is_some_and(Checkpoint::is_under_way);
        match self.known(&node.name, is_marked).await {
            Ok(lease) => {
                let holder = match lease.as_ref().filter(|lease| !lease.holder.is_empty()) {
                    Some(lease) => self.holder(lease),
                    None if is_marked => self.named_on(node).unwrap_or(LeaseHolder::Free),
                    None => LeaseHolder::Unknown,
                };
                (
                    holder,
                    lease.and_then(|lease| LeasedDrain::from_text(&lease.drain)),
                )
            }
            Err(error) => {
                tracing::debug!(node = node.name, %error, "the node's Lease could not be read");
                let named = self.named_on(node).filter(|_| is_marked);
                (named.unwrap_or_default(), None)
            }
        }
    }

    /// The drain of the process that holds the node's Lease, unless that process is gone.
    pub async fn drain_of(&self, node: &str) -> Result<Option<LeasedDrain>, ReadError> {
        let lease = self.cluster.lease(&self.namespace, node).await?;
        let held = lease.filter(|lease| {
            !lease.holder.is_empty() && matches!(self.holder(lease), LeaseHolder::Held { .. })
        });
        Ok(held.and_then(|lease| LeasedDrain::from_text(&lease.drain)))
    }

    /// The process that drained this node is gone: the Lease has not changed for its duration since the first look, or its
    /// holder is known to be dead, or no Lease has existed for as long. To be asked again and again.
    pub async fn is_abandoned(&mut self, node: &str) -> bool {
        self.abandoned(node, false, true).await.unwrap_or(false)
    }

    /// The same, or the time of the last renewal says so, which comes from another machine's clock: it counts until a renewal is
    /// seen. For people: nothing may be taken over for that. `None`: the Lease cannot be read, or there is none although the drain
    /// need not have one (`has_lease`).
    pub async fn seems_abandoned(&mut self, node: &str, has_lease: bool) -> Option<bool> {
        self.abandoned(node, true, has_lease).await
    }

    async fn abandoned(&mut self, node: &str, by_clock: bool, has_lease: bool) -> Option<bool> {
        let (found, now) = (self.cluster.lease(&self.namespace, node).await, Instant::now());
        match found {
            Ok(Some(lease)) if !lease.holder.is_empty() => {
                let is_old = by_clock && matches!(self.holder(&lease), LeaseHolder::Abandoned { .. });
                let watched = self.watched(node);
                watched.absent_since = None;
                let before = watched.expiry.observed();
                let is_free = watched.expiry.observe(&lease, now) == LeaseAvailability::Free;
                watched.was_renewed |= before.is_some() && before != watched.expiry.observed();
                Some(is_free || is_old && !watched.was_renewed)
            }
            Ok(_) => {
                let watched = self.watched(node);
                let is_long_ago = now.duration_since(*watched.absent_since.get_or_insert(now)) >= DURATION;
                match self.life_of_named(node).await {
                    HolderLiveness::Gone(_) => Some(true),
                    HolderLiveness::Alive => Some(false),
                    HolderLiveness::Silent(_) | HolderLiveness::Unknown => has_lease.then_some(is_long_ago),
                }
            }
            Err(error) => {
                tracing::debug!(node, %error, "the node's Lease could not be read");
                self.watched(node).absent_since = None;
                let is_gone = matches!(self.life_of_named(node).await, HolderLiveness::Gone(_));
                is_gone.then_some(true)
            }
        }
    }

    /// Whether the process that the node names is alive, as far as this machine shows it.
    async fn life_of_named(&self, node: &str) -> HolderLiveness {
        let found = self.cluster.node(node).await.ok().flatten();
        match found.and_then(|node| self.named_on(&node)) {
            Some(LeaseHolder::Abandoned { by, .. }) => HolderLiveness::Gone(by),
            Some(_) => HolderLiveness::Alive,
            None => HolderLiveness::Unknown,
        }
    }

    /// The process that drains without a Lease, and has left its name on the node, if this machine shows whether it is alive.
    fn named_on(&self, node: &Node) -> Option<LeaseHolder> {
        let holder = HolderIdentity::parse(node.annotations.get(HOLDER_ANNOTATION)?);
        let by = holder.text();
        self.own
            .is_beside(&holder)
            .then(|| match self.own.knows_dead(&holder) {
                true => LeaseHolder::Abandoned {
                    by,
                    silent_since: None,
                },
                false => LeaseHolder::Held {
                    by,
                    silent_since: None,
                },
            })
    }

    /// Whether the process that drains this node holds its Lease and is alive, or was a moment ago: another one can wait for
    /// the Lease. One that drains without a Lease cannot be waited for.
    pub async fn is_held(&mut self, node: &str) -> bool {
        matches!(
            self.life_by_lease(node).await,
            Some(HolderLiveness::Alive | HolderLiveness::Silent(_))
        )
    }

    /// Whether the holder of the node's Lease is alive. To be asked again while it is silent.
    pub async fn life_of_holder(&mut self, node: &str) -> HolderLiveness {
        match self.life_by_lease(node).await {
            Some(life) => life,
            None => self.life_of_named(node).await,
        }
    }

    /// `None`: the Lease has no holder, or cannot be read.
    async fn life_by_lease(&mut self, node: &str) -> Option<HolderLiveness> {
        let (found, now) = (self.cluster.lease(&self.namespace, node).await, Instant::now());
        let lease = found.ok().flatten().filter(|lease| !lease.holder.is_empty())?;
        let holder = HolderIdentity::parse(&lease.holder);
        if self.own.is_beside(&holder) && !self.own.knows_dead(&holder) {
            return Some(HolderLiveness::Alive);
        }
        let watched = self.watched(node);
        let before = watched.expiry.observed();
        let availability = watched.expiry.observe(&lease, now);
        let is_renewed = before.is_some() && before != watched.expiry.observed();
        Some(match availability {
            LeaseAvailability::Free => HolderLiveness::Gone(holder.text()),
            LeaseAvailability::HeldBy(_) if is_renewed => HolderLiveness::Alive,
            LeaseAvailability::HeldBy(_) => HolderLiveness::Silent(holder.text()),
        })
    }

    fn watched(&mut self, node: &str) -> &mut WatchedLease {
        let own = &self.own;
        let watched = || WatchedLease {
            expiry: LeaseExpiryTracker::new(own.clone(), None),
            was_renewed: false,
            absent_since: None,
        };
        self.watched.entry(node.to_owned()).or_insert_with(watched)
    }

    /// What was observed of the Lease meanwhile, so that the same process need not wait again to take it.
    pub fn observed(&self, node: &str) -> Option<ObservedLease> {
        self.watched
            .get(node)
            .and_then(|watched| watched.expiry.observed())
    }

    fn holder(&self, lease: &Lease) -> LeaseHolder {
        let holder = HolderIdentity::parse(&lease.holder);
        let is_dead = self.own.knows_dead(&holder);
        LeaseHolder::of(
            holder.text(),
            lease.renewed,
            lease.length,
            is_dead,
            self.clock.wall(),
        )
    }

    /// One list answers for all nodes. Without the right to it, only the Leases of nodes with a drain are read, and of nodes that
    /// are named.
    async fn known(&mut self, node: &str, is_marked: bool) -> Result<Option<Lease>, ReadError> {
        let is_good = |at: &Instant| at.elapsed() < GOOD_FOR;
        if let Some((_, listed)) = self.listed.as_ref().filter(|(at, _)| is_good(at)) {
            return Ok(listed.get(node).cloned());
        }
        if !self.unlisted.as_ref().is_some_and(is_good) {
            match self.cluster.leases(&self.namespace).await {
                Ok(leases) => {
                    let listed: BTreeMap<_, _> = leases
                        .into_iter()
                        .map(|lease| (lease.name.clone(), lease))
                        .collect();
                    let found = listed.get(node).cloned();
                    self.listed = Some((Instant::now(), listed));
                    return Ok(found);
                }
                Err(error) => {
                    tracing::debug!(%error, "the Leases could not be listed");
                    self.unlisted = Some(Instant::now());
                }
            }
        }
        if !is_marked && !self.reads_each {
            return Ok(None);
        }
        if let Some((_, lease)) = self.seen.get(node).filter(|(at, _)| is_good(at)) {
            return Ok(lease.clone());
        }
        let lease = self.cluster.lease(&self.namespace, node).await?;
        self.seen.insert(node.to_owned(), (Instant::now(), lease.clone()));
        Ok(lease)
    }
}
