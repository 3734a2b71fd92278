//! Whether a node's kubelet gives a sign of life: its condition `Ready`, its heartbeat, and its Lease. A machine may be
//! off only where there is none of them.
//!
//! Only a kubelet writes `Ready=True` and `Ready=False`; the node controller writes `Unknown` for one that is silent. The
//! times of heartbeats and renewals come from the kubelet's clock, so a Lease that changes between two reads counts
//! whatever its time is.

use std::fmt;
use std::time::Duration;

use scupper_engine::{HumanDuration, Time};
use serde::Deserialize;

use super::leases::Lease;
use super::node::Status;
use super::transport::{Fault, escaped};
use super::wire::{Condition, nullable};
use super::{Cluster, ReadError};

/// The namespace of the kubelets' Leases, which are named after their nodes.
pub const KUBELET_LEASE_NAMESPACE: &str = "kube-node-lease";

/// How long a sign of life counts where no Lease says it: as long as a kubelet's Lease does by default.
const USUAL_LENGTH: Duration = Duration::from_secs(40);

/// What a node's kubelet shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeletState {
    /// No sign of life.
    Silent(KubeletSilence),
    /// It is alive, or nothing is known of it.
    Alive(SignOfLife),
}

/// A kubelet was silent when it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletSilence {
    /// The version of its Lease; `None`: it has none.
    lease: Option<String>,
}

/// Why a machine must not be taken for off. As text, it continues `the kubelet of node worker-1 is alive: it`; without the
/// condition, `node worker-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignOfLife {
    /// There is no condition `Ready`, so the kubelet may never have been watched.
    NoCondition,
    /// The condition `Ready` is not `Unknown`.
    Reported {
        /// `True`, `False`.
        status: String,
        /// The kubelet's reason and message.
        why: String,
        /// When it reported this last.
        at: Option<SeenAt>,
    },
    /// It posted the status of its node.
    Heartbeat(SeenAt),
    /// It renewed its Lease.
    Renewed(SeenAt),
}

/// When a kubelet gave a sign of life, by this machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAt {
    /// So long ago.
    Ago(Duration),
    /// The kubelet's clock is ahead of this machine's.
    Ahead(Duration),
}

impl SeenAt {
    fn of(at: Time, now: Time) -> Self {
        if at > now {
            Self::Ahead(at.since(now))
        } else {
            Self::Ago(now.since(at))
        }
    }
}

impl fmt::Display for SeenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ago(ago) => write!(f, "{} ago", HumanDuration(*ago)),
            Self::Ahead(ahead) => write!(
                f,
                "at a time that is {} ahead of this machine's clock",
                HumanDuration(*ahead)
            ),
        }
    }
}

impl fmt::Display for SignOfLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCondition => write!(f, "has no condition Ready"),
            Self::Reported { status, why, at } => {
                write!(f, "reported Ready={status}")?;
                if !why.is_empty() {
                    write!(f, " ({why})")?;
                }
                at.map_or(Ok(()), |at| write!(f, " {at}"))
            }
            Self::Heartbeat(at) => write!(f, "posted the status of its node {at}"),
            Self::Renewed(at) => write!(f, "renewed its Lease in {KUBELET_LEASE_NAMESPACE} {at}"),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireNode {
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

impl Cluster {
    /// What the kubelet of a node shows now. `before`: as it was silent earlier.
    pub async fn kubelet(
        &self,
        node: &str,
        before: Option<&KubeletSilence>,
    ) -> Result<KubeletState, ReadError> {
        let path = format!("/api/v1/nodes/{}", escaped(node));
        let read = self.get::<WireNode>(&path).await;
        let found = read.map_err(|fault| fault.read(&format!("get node {node}")))?;
        let shown = self.kubelet_of(node, &found.status.conditions, before).await;
        shown.map_err(|fault| fault.read(&lease_text(node)))
    }

    /// The same for a node that was just read with these conditions.
    pub(super) async fn kubelet_of(
        &self,
        node: &str,
        conditions: &[Condition],
        before: Option<&KubeletSilence>,
    ) -> Result<KubeletState, Fault> {
        let lease = self.find_lease(KUBELET_LEASE_NAMESPACE, node).await?;
        Ok(judge(conditions, lease.as_ref(), before, self.now()))
    }
}

/// What is read, for an error.
pub(super) fn lease_text(node: &str) -> String {
    format!("get lease {KUBELET_LEASE_NAMESPACE}/{node}")
}

fn judge(
    conditions: &[Condition],
    lease: Option<&Lease>,
    before: Option<&KubeletSilence>,
    now: Time,
) -> KubeletState {
    match sign_of_life(conditions, lease, before, now) {
        Some(sign) => KubeletState::Alive(sign),
        None => KubeletState::Silent(KubeletSilence {
            lease: lease.map(|lease| lease.version.clone()),
        }),
    }
}

fn sign_of_life(
    conditions: &[Condition],
    lease: Option<&Lease>,
    before: Option<&KubeletSilence>,
    now: Time,
) -> Option<SignOfLife> {
    let Some(ready) = conditions.iter().find(|condition| condition.kind == "Ready") else {
        return Some(SignOfLife::NoCondition);
    };
    let heartbeat = ready.last_heartbeat_time;
    if ready.status != "Unknown" {
        let why = [&ready.reason, &ready.message].map(String::as_str);
        let why = why.into_iter().filter(|text| !text.is_empty());
        return Some(SignOfLife::Reported {
            status: ready.status.clone(),
            why: why.collect::<Vec<_>>().join(": "),
            at: heartbeat
                .or(ready.last_transition_time)
                .map(|at| SeenAt::of(at, now)),
        });
    }
    let length = lease.map(|lease| lease.length).filter(|length| !length.is_zero());
    let length = length.unwrap_or(USUAL_LENGTH);
    let is_fresh = |at: &Time| *at + length > now;
    if let Some(lease) = lease {
        let has_changed = before.is_some_and(|before| before.lease.as_ref() != Some(&lease.version));
        let renewed = lease.renewed.filter(|at| has_changed || is_fresh(at));
        if has_changed || renewed.is_some() {
            return Some(SignOfLife::Renewed(SeenAt::of(renewed.unwrap_or(now), now)));
        }
    }
    let heartbeat = heartbeat.filter(is_fresh);
    heartbeat.map(|at| SignOfLife::Heartbeat(SeenAt::of(at, now)))
}

#[cfg(test)]
mod tests;
