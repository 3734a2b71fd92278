//! Takes a node's lease, keeps it, and gives it back.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::holder::HolderIdentity;
use super::state::{Availability, LeaseState};
use scupper_cluster::{Cluster, Lease, ReadError, WriteError};

/// How long a lease lasts without a sign of its holder.
const DURATION: Duration = Duration::from_secs(30);
/// How often its holder gives one.
const RENEW: Duration = Duration::from_secs(10);
/// How long a holder that cannot give one goes on. The rest of the length is for clocks that run apart.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
/// How often one that is not ours is looked at, and one that cannot be renewed tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long giving back may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a node's lease was not had.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    /// It could not be looked at.
    #[error(transparent)]
    Look(ReadError),
    /// It could not be written.
    #[error(transparent)]
    Take(WriteError),
}

impl LeaseError {
    /// The API server answers so for a moment after a restart as well.
    const fn is_forbidden(&self) -> bool {
        match self {
            Self::Look(error) => error.is_forbidden(),
            Self::Take(error) => error.is_forbidden(),
        }
    }

    /// Another time may do.
    const fn is_temporary(&self) -> bool {
        match self {
            Self::Look(error) => matches!(error, ReadError::Unavailable { .. }),
            Self::Take(error) => error.is_temporary(),
        }
    }
}

/// What came of a try.
enum TakeAttempt {
    Ours(Lease),
    HeldBy(HolderIdentity),
    /// There is one.
    Exists,
    /// There is none any more.
    Absent,
}

/// Takes leases.
#[derive(Clone)]
pub(crate) struct NodeLeases {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    pub(crate) own: HolderIdentity,
    /// How long the API server may refuse (401, 403) a lease before its node is worked at without one.
    pub(crate) forbidden_timeout: Duration,
}

/// A node's lease, held.
pub(super) struct HeldLease {
    held: Option<Renewal>,
}

struct Renewal {
    cluster: Cluster,
    /// The lease as it was written last, and until when it is surely ours.
    state: watch::Receiver<(Lease, Instant)>,
    task: JoinHandle<()>,
}

impl NodeLeases {
    /// The node's lease, as soon as nobody else has it. `stands_by` is told for whom.
    pub(super) async fn take(&self, node: &str, on_wait: impl Fn(&str)) -> HeldLease {
        let mut lease_state = LeaseState::new(self.own.clone());
        let mut reported = None;
        let mut forbidden_since = None;
        // As a rule there is none: one write is enough then.
        let mut create = true;
        loop {
            let asked = Instant::now();
            let attempt = if create {
                self.create(node).await
            } else {
                self.read_and_take(node, &mut lease_state).await
            };
            if !matches!(&attempt, Err(error) if error.is_forbidden()) {
                forbidden_since = None;
            }
            match attempt {
                Ok(TakeAttempt::Ours(lease)) => return self.start_renewal(lease, asked),
                Ok(TakeAttempt::Exists) => {
                    create = false;
                    continue;
                }
                Ok(TakeAttempt::Absent) => {
                    create = true;
                    continue;
                }
                Ok(TakeAttempt::HeldBy(holder)) => {
                    if reported.as_ref() != Some(&holder) {
                        on_wait(&holder.words());
                        reported = Some(holder);
                    }
                }
                // Beside somebody who was seen to be at it nothing is begun, whatever the reason.
                Err(error) if error.is_temporary() || reported.is_some() => {
                    tracing::debug!(node, %error, "could not acquire the Lease yet");
                }
                Err(error) if error.is_forbidden() && self.may_retry(&mut forbidden_since, asked) => {
                    tracing::debug!(node, %error, "the API server refuses the node's Lease; trying again");
                }
                Err(error) => {
                    let remedy = self.remedy(&error);
                    tracing::warn!(
                        node,
                        %error,
                        "continuing without the node's Lease: a concurrent drain would not be noticed; {remedy}"
                    );
                    return HeldLease { held: None };
                }
            }
            sleep(RETRY).await;
        }
    }

    /// The lease was refused at `now`, and may be refused for a while yet.
    fn may_retry(&self, since: &mut Option<Instant>, now: Instant) -> bool {
        if since.is_none() {
            tracing::info!(
                timeout = ?self.forbidden_timeout,
                "the API server refuses the node's Lease: nothing starts until it allows it or the deadline passes"
            );
        }
        now.duration_since(*since.get_or_insert(now)) < self.forbidden_timeout
    }

    async fn create(&self, node: &str) -> Result<TakeAttempt, LeaseError> {
        let identity = self.own.identity();
        let made = self
            .cluster
            .make_lease(&self.namespace, node, &identity, DURATION);
        match made.await {
            Ok(lease) => Ok(TakeAttempt::Ours(lease)),
            Err(WriteError::Conflict { .. }) => Ok(TakeAttempt::Exists),
            Err(error) => Err(LeaseError::Take(error)),
        }
    }

    async fn read_and_take(
        &self,
        node: &str,
        lease_state: &mut LeaseState,
    ) -> Result<TakeAttempt, LeaseError> {
        let found = self.cluster.lease(&self.namespace, node).await;
        let Some(found) = found.map_err(LeaseError::Look)? else {
            return Ok(TakeAttempt::Absent);
        };
        match lease_state.observe(&found, Instant::now()) {
            Availability::HeldBy(holder) => Ok(TakeAttempt::HeldBy(holder)),
            Availability::Free => {
                let identity = self.own.identity();
                match self.cluster.take_lease(&found, &identity, DURATION).await {
                    Ok(lease) => Ok(TakeAttempt::Ours(lease)),
                    // Somebody was faster, or its holder lives after all.
                    Err(WriteError::Conflict { .. }) => {
                        Ok(TakeAttempt::HeldBy(HolderIdentity::parse(&found.holder)))
                    }
                    // It was given back in this very moment.
                    Err(error) if error.is_not_found() => Ok(TakeAttempt::Absent),
                    Err(error) => Err(LeaseError::Take(error)),
                }
            }
        }
    }

    /// What somebody can do about an error that stays.
    fn remedy(&self, error: &LeaseError) -> String {
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

    fn start_renewal(&self, lease: Lease, asked: Instant) -> HeldLease {
        let (sender, state) = watch::channel((lease, asked + GIVE_UP_AFTER));
        let task = tokio::spawn(renew(self.cluster.clone(), sender));
        let cluster = self.cluster.clone();
        let held = Renewal { cluster, state, task };
        HeldLease { held: Some(held) }
    }
}

impl HeldLease {
    /// It is not surely ours any more.
    pub(super) async fn lost(&mut self) {
        let Some(held) = &mut self.held else {
            return std::future::pending().await;
        };
        loop {
            let until = held.state.borrow_and_update().1;
            // The keeper ends when somebody else has it.
            match timeout_at(until, held.state.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Gives it back, so that nobody need wait.
    pub(super) async fn release(mut self) {
        let Some(mut held) = self.held.take() else { return };
        held.task.abort();
        // What was on its way is either written or not by then.
        let task = &mut held.task;
        task.await.unwrap_or_default();
        let lease = held.state.borrow().0.clone();
        match timeout(RELEASE_TIMEOUT, release(&held.cluster, lease)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "could not release the Lease; it expires by itself"),
            Err(_) => tracing::debug!("could not release the Lease in time"),
        }
    }
}

async fn release(cluster: &Cluster, lease: Lease) -> Result<(), WriteError> {
    let dropped = cluster.drop_lease(&lease).await;
    // A renewal that nobody waited for may have been written all the same.
    match (&dropped, still_ours(cluster, &lease, &dropped).await) {
        (Err(_), Some(lease)) => cluster.drop_lease(&lease).await,
        _ => dropped,
    }
}

/// After a conflict: the lease in its newest version, if it has our name.
async fn still_ours<T>(cluster: &Cluster, lease: &Lease, written: &Result<T, WriteError>) -> Option<Lease> {
    let Err(WriteError::Conflict { .. }) = written else {
        return None;
    };
    let found = cluster.lease(&lease.namespace, &lease.name).await;
    found.ok().flatten().filter(|found| found.holder == lease.holder)
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Renews it until somebody else has it, or until nobody cares any more.
async fn renew(cluster: Cluster, state: watch::Sender<(Lease, Instant)>) {
    let mut next = Instant::now() + RENEW;
    loop {
        sleep_until(next).await;
        let lease = state.borrow().0.clone();
        let asked = Instant::now();
        let renewed = cluster.renew_lease(&lease).await;
        if let Some(found) = still_ours(&cluster, &lease, &renewed).await {
            // A renewal without an answer had been written.
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
