//! Asks pods to save their work before they leave, by annotations with a common prefix: a pod says that it can
//! (`supported`), the policy asks with the drain's id (`requested`), and the pod answers with the same id (`done`). So
//! an answer to an earlier drain does not count.
//!
//! ```
//! use std::time::Duration;
//! use scupper_sdk::*;
//! use scupper_sdk::handshake::Handshake;
//!
//! struct Saves;
//!
//! fn handshake() -> Result<Option<Handshake>, Problem> {
//!     Handshake::read("checkpoints", Duration::from_secs(600))
//! }
//!
//! impl Policy for Saves {
//!     fn describe() -> Description {
//!         let description = description!("Asks pods to save their work");
//!         match handshake() {
//!             Ok(Some(handshake)) => description.wants(handshake.grant()),
//!             _ => description,
//!         }
//!     }
//! }
//!
//! impl Hooks for Saves {
//!     fn phases() -> Vec<Phase> {
//!         vec![Phase::BeforeDrain, Phase::OnCancel]
//!     }
//!
//!     fn step(call: &Call) -> Outcome {
//!         match handshake() {
//!             Ok(Some(handshake)) => handshake.step(call).map_or_else(Outcome::from, |()| Outcome::Done),
//!             Ok(None) => Outcome::Done,
//!             Err(problem) => problem.into(),
//!         }
//!     }
//! }
//!
//! use scupper_sdk::testing::{Host, pod};
//!
//! let host = Host::new();
//! host.config("checkpoints", "example.com/");
//! host.pods([pod("ml/train").with_annotation("example.com/supported", "5m"), pod("shop/cart")]);
//! assert_eq!(host.step::<Saves>(Phase::BeforeDrain, Subject::Node), Outcome::Done);
//! let asked = |name: &str| host.pod(name).unwrap().annotation("example.com/requested").is_some();
//! assert!(asked("ml/train") && !asked("shop/cart"));
//! assert_eq!(host.step::<Saves>(Phase::OnCancel, Subject::Node), Outcome::Done);
//! assert!(!asked("ml/train"));
//! ```

use std::time::Duration;

use crate::{Call, Drain, Grant, Phase, Pod, Problem, cluster, config};

/// Set by the pod's owner: how long it takes.
const SUPPORTED: &str = "supported";
/// Set by the policy.
const REQUESTED: &str = "requested";
/// Set by the pod, or by the program that saves its work.
const DONE: &str = "done";

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    prefix: String,
    cap: Duration,
}

impl Handshake {
    /// Reads the prefix, such as `checkpoint.example.com/`, from this key of the configuration; `None` if the key is
    /// not set. No pod gets more time than `cap`.
    pub fn read(key: &str, cap: Duration) -> Result<Option<Self>, Problem> {
        let Some(prefix) = config::get(key).filter(|prefix| !prefix.is_empty()) else {
            return Ok(None);
        };
        if !prefix.ends_with('/') {
            let what = "must be a domain and a slash, such as checkpoint.example.com/";
            return Err(Problem::new(key, format!("`{prefix}`: {what}")));
        }
        Ok(Some(Self { prefix, cap }))
    }

    /// The grant that the policy needs; pass it to `Description::wants`.
    pub fn grant(&self) -> Grant {
        Grant::pod_annotations(&self.prefix)
    }

    /// How long the pod may take; `None`: it does not take part.
    pub fn time(&self, pod: &Pod) -> Option<Duration> {
        let wanted = config::duration(pod.annotation(&self.key(SUPPORTED))?);
        // A value that is no time still says that the pod can.
        Some(wanted.map_or(self.cap, |wanted| wanted.min(self.cap)))
    }

    /// Whether the pod has answered in this drain.
    pub fn is_done(&self, pod: &Pod, drain: &Drain) -> bool {
        pod.annotation(&self.key(DONE)) == Some(&drain.id)
    }

    /// The handshake's part of a hook's step: asks the pods that leave and were not asked in this drain; in `OnCancel`
    /// withdraws its requests.
    pub fn step(&self, call: &Call) -> Result<(), cluster::Error> {
        let key = self.key(REQUESTED);
        if call.phase == Phase::OnCancel {
            let asked = call.pods.iter().filter(|pod| pod.annotation(&key).is_some());
            return on_each(asked, |pod| cluster::remove_pod_annotation(pod, &key));
        }
        let is_to_ask = |pod: &&Pod| {
            let runs = !pod.is_finished() && pod.deletion_timestamp.is_none();
            runs && self.time(pod).is_some() && pod.annotation(&key) != Some(&call.drain.id)
        };
        on_each(call.leaving().into_iter().filter(is_to_ask), |pod| {
            cluster::annotate_pod(pod, &key, &call.drain.id)
        })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Skips pods that are gone meanwhile.
fn on_each<'p>(
    mut pods: impl Iterator<Item = &'p Pod>,
    write: impl Fn(&Pod) -> Result<(), cluster::Error>,
) -> Result<(), cluster::Error> {
    pods.try_for_each(|pod| match write(pod) {
        Err(cluster::Error::NotFound(_)) => Ok(()),
        result => result,
    })
}
