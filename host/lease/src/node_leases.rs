//! Takes a node's Lease, renews it, and releases it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::expiry_tracker::{LeaseAvailability, LeaseExpiryTracker, ObservedLease};
use super::holder::{HOLDER_ANNOTATION, HolderIdentity};
use super::lease_record::LeaseRecord;
use scupper_cluster::{Cluster, Lease, ReadError, WriteError};
use scupper_report::LeasedDrain;

/// How long a Lease is valid without a renewal.
pub(super) const DURATION: Duration = Duration::from_secs(30);
/// How often its holder renews it.
const RENEW: Duration = Duration::from_secs(10);
/// How long a holder that cannot renew continues. The rest of the duration allows for clocks that differ in speed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
/// How often to read a Lease that another process holds, and to retry a renewal.
const RETRY: Duration = Duration::from_secs(2);
/// How long the release may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a node's Lease could not be taken.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    /// It could not be read.
    #[error(transparent)]
    Look(ReadError),
    /// It could not be written.
    #[error(transparent)]
    Take(WriteError),
}

impl LeaseError {
    /// The API server refuses. It also does so for a moment after a restart.
    const fn is_forbidden(&self) -> bool {
        match self {
            Self::Look(error) => error.is_forbidden(),
            Self::Take(error) => error.is_forbidden(),
        }
    }

    /// Another attempt may succeed.
    const fn is_temporary(&self) -> bool {
        match self {
            Self::Look(error) => matches!(error, ReadError::Unavailable { .. }),
            Self::Take(error) => error.is_temporary(),
        }
    }
}

/// The result of one attempt.
enum LeaseAcquireResult {
    /// With what it said before.
    Ours(Lease, LeaseRecord),
    HeldBy(HolderIdentity),
    /// The Lease exists.
    Exists,
    /// The Lease was deleted.
    Absent,
}

/// Takes leases.
#[derive(Clone)]
pub struct NodeLeases {
    /// Where they are.
    pub cluster: Cluster,
    /// Their namespace.
    pub namespace: String,
    /// This process.
    pub own: HolderIdentity,
    /// How long the API server may refuse (401, 403) a Lease before the drain runs without one.
    pub forbidden_timeout: Duration,
    /// A person waits: the API server is asked whether it will always refuse.
    pub is_of_a_command: bool,
    /// What this process has observed of the Lease already.
    pub observed: Option<ObservedLease>,
}

/// A node's Lease that this process holds and renews; `None`: it could not be taken, and the drain runs without one.
pub struct HeldLease {
    held: Option<RenewedLease>,
    /// Where this process has left its name instead of in a Lease.
    named: Option<(Cluster, String)>,
    /// The drain that it names.
    drain: LeasedDrain,
    record: LeaseRecord,
}

struct RenewedLease {
    cluster: Cluster,
    /// The Lease as last written, and until when it is certainly ours.
    state: watch::Receiver<(Lease, Instant)>,
    task: JoinHandle<()>,
}

impl NodeLeases {
    /// The node's Lease for this drain, once no other process holds it. Calls `on_wait` with each holder that it waits
    /// for.
    pub async fn take(&self, node: &str, drain: &LeasedDrain, on_wait: impl Fn(&str)) -> HeldLease {
        let mut lease_state = LeaseExpiryTracker::new(self.own.clone(), self.observed.clone());
        let mut reported = None;
        let mut forbidden_since = None;
        // Usually there is none, and one write is enough.
        let mut create = true;
        loop {
            let asked = Instant::now();
            let attempt = if create {
                self.create(node, drain).await
            } else {
                self.read_and_take(node, drain, &mut lease_state).await
            };
            let is_refused = matches!(&attempt, Err(error) if error.is_forbidden());
            if !is_refused {
                forbidden_since = None;
            }
            let is_final = is_refused && self.has_no_right().await;
            match attempt {
                Ok(LeaseAcquireResult::Ours(lease, record)) => {
                    return HeldLease {
                        held: Some(self.start_renewal(lease, asked)),
                        named: None,
                        drain: drain.clone(),
                        record,
                    };
                }
                Ok(LeaseAcquireResult::Exists) => {
                    create = false;
                    continue;
                }
                Ok(LeaseAcquireResult::Absent) => {
                    create = true;
                    continue;
                }
                Ok(LeaseAcquireResult::HeldBy(holder)) => {
                    if reported.as_ref() != Some(&holder) {
                        on_wait(&holder.text());
                        reported = Some(holder);
                    }
                }
                // Never run beside a process that was seen to hold the Lease, whatever the error.
                Err(error) if error.is_temporary() || reported.is_some() => {
                    tracing::debug!(node, %error, "could not acquire the Lease yet");
                }
                Err(error) if is_refused && !is_final && self.may_retry(&mut forbidden_since, asked) => {
                    tracing::debug!(node, %error, "the API server refuses the node's Lease; trying again");
                }
                Err(error) => {
                    let remedy = self.advice(&error);
                    tracing::warn!(
                        node,
                        %error,
                        "continuing without the node's Lease: a concurrent drain would not be noticed; {remedy}"
                    );
                    return HeldLease {
                        held: None,
                        named: self.leave_name(node).await,
                        drain: drain.clone(),
                        record: LeaseRecord::default(),
                    };
                }
            }
            sleep(RETRY).await;
        }
    }

    /// Leaves the name of a command's process on the node, so that others on its machine see whether it runs. A driver comes
    /// back.
    async fn leave_name(&self, node: &str) -> Option<(Cluster, String)> {
        if !self.is_of_a_command {
            return None;
        }
        let identity = self.own.identity();
        let left = self
            .cluster
            .set_node_annotation(node, HOLDER_ANNOTATION, &identity)
            .await;
        if let Err(error) = left {
            tracing::debug!(node, %error, "could not name this process on the node");
        }
        Some((self.cluster.clone(), node.to_owned()))
    }

    /// The API server refuses the Lease, and says that the user has no right to it. One that is starting does not say so.
    async fn has_no_right(&self) -> bool {
        self.is_of_a_command && self.cluster.may_make_leases(&self.namespace).await == Some(false)
    }

    /// The API server refused the Lease at `now`, within the time that it may do so.
    fn may_retry(&self, since: &mut Option<Instant>, now: Instant) -> bool {
        if since.is_none() {
            tracing::info!(
                timeout = ?self.forbidden_timeout,
                "the API server refuses the node's Lease: nothing starts until it allows it or the deadline passes"
            );
        }
        now.duration_since(*since.get_or_insert(now)) < self.forbidden_timeout
    }

    async fn create(&self, node: &str, drain: &LeasedDrain) -> Result<LeaseAcquireResult, LeaseError> {
        let holder = (&*self.own.identity(), &*drain.to_text());
        let made = self.cluster.make_lease(&self.namespace, node, holder, DURATION);
        match made.await {
            Ok(lease) => Ok(LeaseAcquireResult::Ours(lease, LeaseRecord::found("", drain))),
            Err(WriteError::Conflict { .. }) => Ok(LeaseAcquireResult::Exists),
            Err(error) => Err(LeaseError::Take(error)),
        }
    }

    async fn read_and_take(
        &self,
        node: &str,
        drain: &LeasedDrain,
        lease_state: &mut LeaseExpiryTracker,
    ) -> Result<LeaseAcquireResult, LeaseError> {
        let found = self.cluster.lease(&self.namespace, node).await;
        let Some(found) = found.map_err(LeaseError::Look)? else {
            return Ok(LeaseAcquireResult::Absent);
        };
        match lease_state.observe(&found, Instant::now()) {
            LeaseAvailability::HeldBy(holder) => Ok(LeaseAcquireResult::HeldBy(holder)),
            LeaseAvailability::Free => {
                let record = LeaseRecord::found(&found.drain, drain);
                let holder = (&*self.own.identity(), &*record.taken(drain));
                let taken = self.cluster.take_lease(&found, holder, DURATION);
                match taken.await {
                    Ok(lease) => Ok(LeaseAcquireResult::Ours(lease, record)),
                    // Another process was faster, or the holder is alive after all.
                    Err(WriteError::Conflict { .. }) => {
                        Ok(LeaseAcquireResult::HeldBy(HolderIdentity::parse(&found.holder)))
                    }
                    // It was released at this moment.
                    Err(error) if error.is_not_found() => Ok(LeaseAcquireResult::Absent),
                    Err(error) => Err(LeaseError::Take(error)),
                }
            }
        }
    }

    /// How to fix an error that stays.
    fn advice(&self, error: &LeaseError) -> String {
        match error {
            LeaseError::Take(failed) if failed.is_not_found() => format!(
                "there is no namespace {} for it: create it, or name another with --lease-namespace",
                self.namespace
            ),
            LeaseError::Take(_) | LeaseError::Look(_) => {
                "scupper doctor says which right is missing".to_owned()
            }
        }
    }

    fn start_renewal(&self, lease: Lease, asked: Instant) -> RenewedLease {
        let (sender, state) = watch::channel((lease, asked + GIVE_UP_AFTER));
        let task = tokio::spawn(renew(self.cluster.clone(), sender));
        let cluster = self.cluster.clone();
        RenewedLease { cluster, state, task }
    }
}

impl HeldLease {
    /// What it says of what policies must undo.
    pub const fn record(&self) -> &LeaseRecord {
        &self.record
    }

    /// Returns once the Lease may have expired or another process has it.
    pub async fn lost(&mut self) {
        let Some(held) = &mut self.held else {
            return std::future::pending().await;
        };
        loop {
            let until = held.state.borrow_and_update().1;
            // The renewal ends when another process has the Lease.
            match timeout_at(until, held.state.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Releases it, so that no other process waits. It stays as a record if policies must still undo something.
    pub async fn release(mut self) {
        if let Some((cluster, node)) = &self.named {
            let removed = cluster.remove_node_annotation(node, HOLDER_ANNOTATION);
            if let Ok(Err(error)) = timeout(RELEASE_TIMEOUT, removed).await {
                tracing::debug!(node, %error, "could not remove the name of this process from the node");
            }
        }
        let Some(mut held) = self.held.take() else { return };
        held.task.abort();
        // After that, no renewal is under way.
        let task = &mut held.task;
        task.await.unwrap_or_default();
        let lease = held.state.borrow().0.clone();
        let left = self.record.released(&self.drain);
        match timeout(RELEASE_TIMEOUT, release(&held.cluster, lease, left.as_deref())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "could not release the Lease; it expires by itself"),
            Err(_) => tracing::debug!("could not release the Lease in time"),
        }
    }
}

async fn release(cluster: &Cluster, lease: Lease, left: Option<&str>) -> Result<(), WriteError> {
    let release = async |lease: &Lease| match left {
        Some(left) => cluster.release_lease(lease, left).await,
        None => cluster.drop_lease(lease).await,
    };
    let released = release(&lease).await;
    // An interrupted renewal may have been written all the same.
    match (&released, still_ours(cluster, &lease, &released).await) {
        (Err(_), Some(lease)) => release(&lease).await,
        _ => released,
    }
}

/// After a conflict: the newest version of the Lease, if it is still ours.
async fn still_ours<T>(cluster: &Cluster, lease: &Lease, written: &Result<T, WriteError>) -> Option<Lease> {
    let Err(WriteError::Conflict { .. }) = written else {
        return None;
    };
    let found = cluster.lease(&lease.namespace, &lease.name).await;
    found.ok().flatten().filter(|found| found.holder == lease.holder)
}

impl Drop for RenewedLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Renews the Lease until another process has it, or until the task is aborted.
async fn renew(cluster: Cluster, state: watch::Sender<(Lease, Instant)>) {
    let mut next = Instant::now() + RENEW;
    loop {
        sleep_until(next).await;
        let lease = state.borrow().0.clone();
        let asked = Instant::now();
        let renewed = cluster.renew_lease(&lease).await;
        if let Some(found) = still_ours(&cluster, &lease, &renewed).await {
            // A renewal whose answer was lost had been written.
            state.send_modify(|(lease, _)| *lease = found);
            next = asked;
            continue;
        }
        match renewed {
            Ok(lease) => {
                state.send_replace((lease, asked + GIVE_UP_AFTER));
                next = asked + RENEW;
            }
            Err(error) if error.is_temporary() || error.is_forbidden() => {
                tracing::debug!(%error, "could not renew the Lease yet");
                next = Instant::now() + RETRY;
            }
            Err(error) => {
                tracing::warn!(%error, "another process took the node's Lease");
                return;
            }
        }
    }
}
