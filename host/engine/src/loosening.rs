//! Where a policy protects a pod less than an earlier one of the chain. Drafts are compared here and nowhere else.

use core::fmt;
use core::time::Duration;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::filter::HOST_POLICY;
use crate::{Decision, HumanDuration, Plan, Uid, Verdict, Wave};

/// A pod that a later policy protects less than an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Loosened {
    /// The pod.
    pub pod: Uid,
    /// What the earlier policy decided.
    pub earlier: Ruling,
    /// What the later one decided.
    pub later: Ruling,
}

/// What a policy decided for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ruling {
    /// The policy.
    pub policy: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// How long the pod may stay from the start of the drain, if it is evicted or deleted; `None`: not held.
    pub hold: Option<Duration>,
}

/// The pods that a policy protects less in its plan than earlier policies do in the draft that it was given.
pub fn loosened(plan: &Plan, draft: &Plan, policy: &str) -> Vec<Loosened> {
    let (before, after) = (waves(draft), waves(plan));
    let drafted = draft.decisions.iter();
    let drafted: BTreeMap<&Uid, &Decision> = drafted.map(|decision| (&decision.pod, decision)).collect();
    let looser = plan.decisions.iter().filter_map(|decision| {
        let pod = &decision.pod;
        let earlier = earlier(drafted.get(pod)?, before.get(pod).copied())?;
        let later = Ruling {
            policy: String::from(policy),
            verdict: decision.verdict,
            hold: hold(decision.verdict, after.get(pod).copied()),
        };
        later.is_looser_than(&earlier).then(|| Loosened {
            pod: decision.pod.clone(),
            earlier,
            later,
        })
    });
    looser.collect()
}

/// The wave of each pod.
fn waves(plan: &Plan) -> BTreeMap<&Uid, &Wave> {
    let waves = plan.waves.iter();
    waves
        .flat_map(|wave| wave.pods.iter().map(move |pod| (pod, wave)))
        .collect()
}

/// What a policy has decided for a pod; `None`: only the host's own draft has.
fn earlier(decision: &Decision, wave: Option<&Wave>) -> Option<Ruling> {
    let hold = hold(decision.verdict, wave);
    let policy = match (decision.policy.as_str(), hold.and(wave)) {
        (HOST_POLICY | "", Some(wave)) => &wave.policy,
        (HOST_POLICY | "", None) => return None,
        _ => &decision.policy,
    };
    Some(Ruling {
        policy: policy.clone(),
        verdict: decision.verdict,
        hold,
    })
}

/// How long a pod in this wave is held.
fn hold(verdict: Verdict, wave: Option<&Wave>) -> Option<Duration> {
    let is_removed = matches!(verdict, Verdict::Evict | Verdict::Delete);
    hold_of(&wave.filter(|_| is_removed)?.name)
}

/// The time in the name of a wave that is held: `jobs-after-10m`, or `jobs-after-10m-grace-30s` (see `wit/README.md`).
pub(crate) fn hold_of(wave: &str) -> Option<Duration> {
    let (_, time) = wave.rsplit_once("-after-")?;
    let time = time.split_once("-grace-").map_or(time, |(time, _)| time);
    let (number, unit) = time.split_at_checked(time.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(seconds)
        .map(Duration::from_secs)
}

impl Ruling {
    fn is_looser_than(&self, other: &Self) -> bool {
        let own = strictness(self.verdict);
        let others = strictness(other.verdict);
        let is_removed = matches!(self.verdict, Verdict::Evict | Verdict::Delete);
        own < others || (is_removed && self.hold < other.hold)
    }
}

const fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Delete => 0,
        Verdict::Evict => 1,
        Verdict::AwaitCompletion => 2,
        Verdict::Keep => 3,
        Verdict::Refuse => 4,
    }
}

impl fmt::Display for Ruling {
    /// `namespace-modes: evict after 10m`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            policy,
            verdict,
            hold,
        } = self;
        write!(f, "{policy}: {verdict}")?;
        match hold {
            Some(hold) => write!(f, " after {}", HumanDuration(*hold)),
            None => Ok(()),
        }
    }
}
