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
fn hold_of(wave: &str) -> Option<Duration> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// A plan for one pod.
    fn plan(policy: &str, verdict: Verdict, wave: &str) -> Plan {
        let pod = Uid(String::from("a"));
        let decision = Decision {
            pod: pod.clone(),
            verdict,
            reason: String::new(),
            policy: String::from(policy),
        };
        let wave = Wave {
            name: String::from(wave),
            pods: Vec::from([pod]),
            max_parallel: None,
            timeout: None,
            max_grace_seconds: None,
            policy: String::from("holder"),
        };
        Plan {
            decisions: Vec::from([decision]),
            waves: Vec::from([wave]),
            ..Plan::default()
        }
    }

    #[test]
    fn a_looser_verdict_or_a_shorter_hold_is_found() {
        use Verdict::{AwaitCompletion, Delete, Evict, Keep, Refuse};
        for (earlier, later, wanted) in [
            (
                ("modes", AwaitCompletion, "completion"),
                (Evict, "jobs-after-4h"),
                Some("modes: await completion / jobs: evict after 4h00m"),
            ),
            (
                ("modes", Evict, "modes-after-1h-grace-5s"),
                (Evict, "jobs-after-10m"),
                Some("modes: evict after 1h00m / jobs: evict after 10m00s"),
            ),
            // The decision is the host's, and only the hold is a policy's.
            (
                ("kubectl", Evict, "holder-after-90s"),
                (Evict, "all"),
                Some("holder: evict after 1m30s / jobs: evict"),
            ),
            (
                ("modes", Evict, "all"),
                (Delete, "all"),
                Some("modes: evict / jobs: delete"),
            ),
            (
                ("modes", Keep, ""),
                (Evict, "all"),
                Some("modes: keep / jobs: evict"),
            ),
            (
                ("modes", Refuse, ""),
                (Keep, ""),
                Some("modes: refuse / jobs: keep"),
            ),
            (("kubectl", Keep, ""), (Delete, "all"), None),
            (
                ("modes", Delete, "modes-after-2m"),
                (Evict, "jobs-after-4h"),
                None,
            ),
            (
                ("modes", Evict, "modes-after-2m"),
                (AwaitCompletion, "completion"),
                None,
            ),
            (("modes", Evict, "namespaces-after-lunch"), (Evict, "all"), None),
        ] {
            let (policy, verdict, wave) = earlier;
            let draft = plan(policy, verdict, wave);
            let found = loosened(&plan("jobs", later.0, later.1), &draft, "jobs");
            let found = found
                .first()
                .map(|found| format!("{} / {}", found.earlier, found.later));
            assert_eq!(found.as_deref(), wanted, "{earlier:?}, then {later:?}");
        }
    }
}
