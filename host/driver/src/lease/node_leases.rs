//! Takes a node's lease, keeps it, and gives it back.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::holder::Holder;
use super::state::{Judge, Whose};
use scupper_cluster::{Cluster, Lease, ReadError, WriteError};

/// How long a lease lasts without a sign of its holder.
const LENGTH: Duration = Duration::from_secs(30);
/// How often its holder gives one.
const RENEW: Duration = Duration::from_secs(10);
/// How long a holder that cannot give one goes on. The rest of the length is for clocks that run apart.
const GIVE_UP: Duration = Duration::from_secs(20);
/// How often one that is not ours is looked at, and one that cannot be renewed tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long giving back may take.
const FAREWELL: Duration = Duration::from_secs(2);

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
enum Tried {
    Ours(Lease),
    Theirs(Holder),
    /// There is one.
    Exists,
    /// There is none any more.
    Absent,
}

/// Takes leases.
#[derive(Clone)]
pub(crate) struct Seats {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    pub(crate) own: Holder,
    /// How long the API server may refuse (401, 403) a lease before its node is worked at without one.
    pub(crate) forbidden_timeout: Duration,
}

/// A node's lease, held.
pub(super) struct Seat {
    held: Option<Held>,
}

struct Held {
    cluster: Cluster,
    /// The lease as it was written last, and until when it is surely ours.
    kept: watch::Receiver<(Lease, Instant)>,
    keeper: JoinHandle<()>,
}

impl Seats {
    /// The node's lease, as soon as nobody else has it. `stands_by` is told for whom.
    pub(super) async fn take(&self, node: &str, stands_by: impl Fn(&str)) -> Seat {
        let mut judge = Judge::new(self.own.clone());
        let mut told = None;
        let mut forbidden_since = None;
        // As a rule there is none: one write is enough then.
        let mut make = true;
        loop {
            let asked = Instant::now();
            let tried = if make {
                self.make(node).await
            } else {
                self.look(node, &mut judge).await
            };
            if !matches!(&tried, Err(error) if error.is_forbidden()) {
                forbidden_since = None;
            }
            match tried {
                Ok(Tried::Ours(lease)) => return self.hold(lease, asked),
                Ok(Tried::Exists) => {
                    make = false;
                    continue;
                }
                Ok(Tried::Absent) => {
                    make = true;
                    continue;
                }
                Ok(Tried::Theirs(holder)) => {
                    if told.as_ref() != Some(&holder) {
                        stands_by(&holder.words());
                        told = Some(holder);
                    }
                }
                // Beside somebody who was seen to be at it nothing is begun, whatever the reason.
                Err(error) if error.is_temporary() || told.is_some() => {
                    tracing::debug!(node, %error, "could not acquire the Lease yet");
                }
                Err(error) if error.is_forbidden() && self.bears(&mut forbidden_since, asked) => {
                    tracing::debug!(node, %error, "the API server refuses the node's Lease; trying again");
                }
                Err(error) => {
                    let remedy = self.remedy(&error);
                    tracing::warn!(
                        node,
                        %error,
                        "continuing without the node's Lease: a concurrent drain would not be noticed; {remedy}"
                    );
                    return Seat { held: None };
                }
            }
            sleep(RETRY).await;
        }
    }

    /// The lease was refused at `now`, and may be refused for a while yet.
    fn bears(&self, since: &mut Option<Instant>, now: Instant) -> bool {
        if since.is_none() {
            tracing::info!(
                timeout = ?self.forbidden_timeout,
                "the API server refuses the node's Lease: nothing starts until it allows it or the deadline passes"
            );
        }
        now.duration_since(*since.get_or_insert(now)) < self.forbidden_timeout
    }

    async fn make(&self, node: &str) -> Result<Tried, LeaseError> {
        let identity = self.own.identity();
        let made = self.cluster.make_lease(&self.namespace, node, &identity, LENGTH);
        match made.await {
            Ok(lease) => Ok(Tried::Ours(lease)),
            Err(WriteError::Conflict { .. }) => Ok(Tried::Exists),
            Err(error) => Err(LeaseError::Take(error)),
        }
    }

    async fn look(&self, node: &str, judge: &mut Judge) -> Result<Tried, LeaseError> {
        let found = self.cluster.lease(&self.namespace, node).await;
        let Some(found) = found.map_err(LeaseError::Look)? else {
            return Ok(Tried::Absent);
        };
        match judge.judge(&found, Instant::now()) {
            Whose::Theirs(holder) => Ok(Tried::Theirs(holder)),
            Whose::Free => {
                let identity = self.own.identity();
                match self.cluster.take_lease(&found, &identity, LENGTH).await {
                    Ok(lease) => Ok(Tried::Ours(lease)),
                    // Somebody was faster, or its holder lives after all.
                    Err(WriteError::Conflict { .. }) => Ok(Tried::Theirs(Holder::parse(&found.holder))),
                    // It was given back in this very moment.
                    Err(error) if error.is_not_found() => Ok(Tried::Absent),
                    Err(error) => Err(LeaseError::Take(error)),
                }
            }
        }
    }

    /// What somebody can do about an error that stays.
    fn remedy(&self, error: &LeaseError) -> String {
        match error {
            LeaseError::Take(failed) if failed.is_not_found() => format!(
                "there is no namespace {} for it: make it, or name another with --lease-namespace",
                self.namespace
            ),
            LeaseError::Take(_) | LeaseError::Look(_) => {
                "scupper doctor says which right is missing".to_owned()
            }
        }
    }

    fn hold(&self, lease: Lease, asked: Instant) -> Seat {
        let (sender, kept) = watch::channel((lease, asked + GIVE_UP));
        let keeper = tokio::spawn(keep(self.cluster.clone(), sender));
        let cluster = self.cluster.clone();
        let held = Held {
            cluster,
            kept,
            keeper,
        };
        Seat { held: Some(held) }
    }
}

impl Seat {
    /// It is not surely ours any more.
    pub(super) async fn lost(&mut self) {
        let Some(held) = &mut self.held else {
            return std::future::pending().await;
        };
        loop {
            let until = held.kept.borrow_and_update().1;
            // The keeper ends when somebody else has it.
            match timeout_at(until, held.kept.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Gives it back, so that nobody need wait.
    pub(super) async fn release(mut self) {
        let Some(mut held) = self.held.take() else { return };
        held.keeper.abort();
        // What was on its way is either written or not by then.
        let keeper = &mut held.keeper;
        keeper.await.unwrap_or_default();
        let lease = held.kept.borrow().0.clone();
        match timeout(FAREWELL, give_back(&held.cluster, lease)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "could not release the Lease; it expires by itself"),
            Err(_) => tracing::debug!("could not release the Lease in time"),
        }
    }
}

async fn give_back(cluster: &Cluster, lease: Lease) -> Result<(), WriteError> {
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

impl Drop for Held {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Renews it until somebody else has it, or until nobody cares any more.
async fn keep(cluster: Cluster, kept: watch::Sender<(Lease, Instant)>) {
    let mut next = Instant::now() + RENEW;
    loop {
        sleep_until(next).await;
        let lease = kept.borrow().0.clone();
        let asked = Instant::now();
        let renewed = cluster.renew_lease(&lease).await;
        if let Some(found) = still_ours(&cluster, &lease, &renewed).await {
            // A renewal without an answer had been written.
            kept.send_modify(|(lease, _)| *lease = found);
            next = asked;
            continue;
        }
        match renewed {
            Ok(lease) => {
                kept.send_replace((lease, asked + GIVE_UP));
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
