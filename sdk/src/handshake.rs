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
/// The errors after which a step tries no further pod.
const ERRORS: usize = 2;
/// The time between two steps, in milliseconds.
const STEP: u64 = 5_000;

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
        let text = config::get(key).unwrap_or_default();
        let prefix = text.trim();
        if prefix.is_empty() {
            return Ok(None);
        }
        if !prefix.ends_with('/') || prefix.contains(char::is_whitespace) {
            let what = "must be a domain and a slash, such as checkpoint.example.com/";
            return Err(Problem::new(key, format!("`{prefix}`: {what}")));
        }
        let prefix = prefix.to_owned();
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

    /// The handshake's part of a hook's step: [asks](Self::ask), or in `OnCancel` [withdraws](Self::withdraw). The error is
    /// that of a pod that could not be changed; a step that is retried goes on with the others.
    pub fn step(&self, call: &Call) -> Result<(), cluster::Error> {
        if call.phase == Phase::OnCancel {
            return self.withdraw(call);
        }
        let mut unasked = self.ask(call).into_iter();
        unasked.next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Asks the pods that leave and were not asked in this drain. Returns those that could not be asked: an admission
    /// webhook, for example, may deny the change of one pod for ever. A step with errors may leave out some of the others;
    /// the next step goes on with these.
    pub fn ask<'c>(&self, call: &'c Call) -> Vec<(&'c Pod, cluster::Error)> {
        let key = self.key(REQUESTED);
        let is_to_ask = |pod: &&Pod| {
            let runs = !pod.is_finished() && pod.deletion_timestamp.is_none();
            runs && self.time(pod).is_some() && pod.annotation(&key) != Some(&call.drain.id)
        };
        let pods = call.leaving().into_iter().filter(is_to_ask).collect();
        on_each(call, pods, |pod| cluster::annotate_pod(pod, &key, &call.drain.id))
    }

    /// Withdraws the requests, for `OnCancel`. The error is that of a pod whose request could not be withdrawn; a step that is
    /// retried goes on with the others.
    pub fn withdraw(&self, call: &Call) -> Result<(), cluster::Error> {
        let key = self.key(REQUESTED);
        let asked = call.pods.iter().filter(|pod| pod.annotation(&key).is_some());
        let kept = on_each(call, asked.collect(), |pod| {
            cluster::remove_pod_annotation(pod, &key)
        });
        kept.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Returns the pods that could not be changed; those that are gone meanwhile do not count.
///
/// A webhook that hangs takes ten seconds for each pod, and a step has thirty. So a step ends after two errors, and each
/// step begins with another pod: none is left out because of others.
fn on_each<'p>(
    call: &Call,
    mut pods: Vec<&'p Pod>,
    write: impl Fn(&Pod) -> Result<(), cluster::Error>,
) -> Vec<(&'p Pod, cluster::Error)> {
    let turn = usize::try_from(call.drain.now / STEP).unwrap_or_default();
    let first = turn.checked_rem(pods.len()).unwrap_or_default();
    pods.rotate_left(first);
    let mut errors = Vec::new();
    for pod in pods {
        match write(pod) {
            Ok(()) | Err(cluster::Error::NotFound(_)) => {}
            Err(error) => errors.push((pod, error)),
        }
        if errors.len() == ERRORS {
            break;
        }
    }
    errors
}
