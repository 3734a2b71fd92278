//! Pods that get time to end by themselves. Each leaves after its [`Hold`] at the latest, which counts from the start of
//! the drain and therefore survives a restart of the driver. The hold of a pod that comes during the drain counts from its
//! arrival.
//!
//! A planner puts the pods into waves with [`Draft::hold`](crate::Draft::hold), one wave for each hold. The hook
//! `before-wave` calls [`step`], which holds such a wave until its pods have ended or its time is over. Both take the word
//! that begins the names of these waves, so that a policy holds no wave of another. A pod that several policies hold is in
//! a wave with the words of all of them, and leaves when each of their hooks lets it.
//!
//! ```
//! use std::time::Duration;
//! use scupper_sdk::*;
//!
//! /// Gives batch pods ten minutes.
//! struct TenMinutes;
//!
//! impl Policy for TenMinutes {
//!     fn describe() -> Description {
//!         description!("Gives batch pods ten minutes")
//!     }
//! }
//!
//! impl Planner for TenMinutes {
//!     fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
//!         let batch = draft.leaving().into_iter().filter(|pod| pod.namespace == "batch");
//!         draft.hold("batch", drain, batch.map(|pod| (pod, Hold::at_most(Duration::from_secs(600)))));
//!         Ok(())
//!     }
//! }
//!
//! impl Hooks for TenMinutes {
//!     fn phases() -> Vec<Phase> {
//!         vec![Phase::BeforeWave]
//!     }
//!
//!     fn step(call: &Call) -> Outcome {
//!         hold::step("batch", call, |_| Some("still runs".to_owned()))
//!     }
//! }
//!
//! use scupper_sdk::testing::{Host, pod};
//!
//! let host = Host::new();
//! host.pods([pod("shop/cart"), pod("batch/report")]);
//! let plan = host.plan::<TenMinutes>().unwrap();
//! assert_eq!(plan.waves(), ["all: shop/cart", "batch-after-10m: batch/report"]);
//! let run = host.run_hook::<TenMinutes>(Phase::BeforeWave, Subject::Wave("batch-after-10m".to_owned()), 1000);
//! assert_eq!((run.outcome(), run.took), (Some(&Outcome::Done), Duration::from_secs(600)));
//! ```

use std::{fmt, str::FromStr, time::Duration};

use crate::{
    Call, Drain, Outcome, Pod, Subject, Timestamp, WaitingOn, config, count, held::Held, log,
    outcome::milliseconds,
};

/// The delay between two steps: how long a pod that has ended may wait for the wave.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Pods that come within a tenth of their hold after one another share a wave, and at most within a minute.
const TOGETHER: Duration = Duration::from_secs(60);
/// The delay between two steps that send requests. The host calls the hook sooner if pods change that it asked about.
const ASK_AFTER: Duration = Duration::from_secs(60);
/// The pods that a line of the log names.
const NAMED: usize = 10;

/// How long a pod may stay, and how much grace it gets then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    at_most: Duration,
    max_grace: Option<Duration>,
}

impl Hold {
    /// The pod leaves so long after the start of the drain: whole seconds, at least one.
    pub fn at_most(time: Duration) -> Self {
        Self {
            at_most: whole_seconds(time),
            max_grace: None,
        }
    }

    /// Caps the pod's grace period: whole seconds, at least one.
    #[must_use]
    pub fn max_grace(self, grace: Duration) -> Self {
        Self {
            max_grace: Some(whole_seconds(grace)),
            ..self
        }
    }

    /// The name of its wave: `jobs-after-10m`, or `jobs-after-10m-grace-30s`.
    pub fn wave(&self, whose: &str) -> String {
        let grace = self.max_grace.map(|grace| format!("-grace-{}", short(grace)));
        format!(
            "{whose}-after-{}{}",
            short(self.at_most),
            grace.unwrap_or_default()
        )
    }

    /// The hold of the wave with this name, by whichever policies: the longest of theirs.
    pub fn of_wave(name: &str) -> Option<Self> {
        Held::of_wave(name).map(|held| held.hold())
    }

    /// The hold that gives a pod at least the time and the grace of both.
    pub(crate) fn longest(self, other: Option<Self>) -> Self {
        other.map_or(self, |other| Self {
            at_most: self.at_most.max(other.at_most),
            max_grace: self
                .max_grace
                .zip(other.max_grace)
                .map(|(one, other)| one.max(other)),
        })
    }

    /// Whether it gives a pod more time than another one, or the same time and more grace.
    pub fn outlasts(&self, other: &Self) -> bool {
        let grace = |hold: &Self| hold.max_grace.unwrap_or(Duration::MAX);
        (self.at_most, grace(self)) > (other.at_most, grace(other))
    }

    /// When the pod leaves at the latest, for the reason of its verdict: `after 10m`.
    pub fn when(&self, pod: &Pod, drain: &Drain) -> String {
        self.of_pod(pod, drain).when_over(drain)
    }

    /// The hold of this pod, counted from the start of the drain. A pod that came later has the same time: its hold ends
    /// that much later, up to a minute more, so that pods that come one after the other need few waves.
    pub fn of_pod(&self, pod: &Pod, drain: &Drain) -> Self {
        let arrived = arrival(pod).min(drain.now);
        let late = Duration::from_millis(arrived.saturating_sub(drain.started)).as_secs();
        let together = whole_seconds(self.at_most / 10).min(TOGETHER).as_secs();
        if late <= together {
            return *self;
        }
        let late = late.div_ceil(together).saturating_mul(together);
        Self {
            at_most: self.at_most.saturating_add(Duration::from_secs(late)),
            ..*self
        }
    }

    fn when_over(&self, drain: &Drain) -> String {
        if drain.deadline.is_some_and(|deadline| deadline <= self.due(drain)) {
            format!("{self}, but the drain's deadline comes first")
        } else {
            self.to_string()
        }
    }

    /// The time until the pod must leave.
    pub fn left(&self, drain: &Drain) -> Duration {
        Duration::from_millis(self.due(drain).saturating_sub(drain.now))
    }

    fn due(&self, drain: &Drain) -> Timestamp {
        drain.started.saturating_add(milliseconds(self.at_most))
    }

    pub(crate) const fn time(&self) -> Duration {
        self.at_most
    }

    pub(crate) const fn grace(&self) -> Option<Duration> {
        self.max_grace
    }
}

impl FromStr for Hold {
    type Err = &'static str;

    /// Reads `10m`, or `1h grace 30s`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = |text| config::duration(text).ok_or("a time must be like 90s, 5m or 1h, and not zero");
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [at_most] => Ok(Self::at_most(time(at_most)?)),
            [at_most, "grace", grace] => Ok(Self::at_most(time(at_most)?).max_grace(time(grace)?)),
            _ => Err("only a time, and then `grace` and a time, may follow"),
        }
    }
}

impl fmt::Display for Hold {
    /// `after 10m`, or `after 10m, grace 30s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {}", short(self.at_most))?;
        match self.max_grace {
            None => Ok(()),
            Some(grace) => write!(f, ", grace {}", short(grace)),
        }
    }
}

/// Takes a step of the hook `before-wave`. It is done if the wave is not of a hold with this word, if each of its pods has
/// ended, is terminating or is no longer awaited, or if the hold of this word is over.
///
/// `awaits` says what a pod still has to do; `None`: it may leave.
pub fn step(whose: &str, call: &Call, awaits: impl Fn(&Pod) -> Option<String>) -> Outcome {
    step_after(AGAIN_AFTER, whose, call, awaits)
}

/// The same if `awaits` asks for [`facts`](crate::facts), which costs requests: at most once a minute, and when pods change
/// that it asked about.
pub fn step_asking(whose: &str, call: &Call, awaits: impl Fn(&Pod) -> Option<String>) -> Outcome {
    step_after(ASK_AFTER, whose, call, awaits)
}

fn step_after(
    again_after: Duration,
    whose: &str,
    call: &Call,
    awaits: impl Fn(&Pod) -> Option<String>,
) -> Outcome {
    let held = match &call.subject {
        Subject::Wave(name) => Held::of_wave(name),
        Subject::Node | Subject::Pod(_) => None,
    };
    let Some(hold) = held.and_then(|held| held.hold_of(whose)) else {
        return Outcome::Done;
    };
    let left = hold.left(&call.drain);
    let leaving = call.leaving().into_iter();
    let running = leaving.filter(|pod| !pod.is_finished() && pod.deletion_timestamp.is_none());
    let waiting_for: Vec<_> = running
        .filter_map(|pod| {
            Some(WaitingOn {
                what: pod.full_name(),
                detail: awaits(pod)?,
                since: Some(call.drain.started),
            })
        })
        .collect();
    if left.is_zero() {
        report_over(hold, &waiting_for);
    }
    if waiting_for.is_empty() || left.is_zero() {
        return Outcome::Done;
    }
    let mut pending = Outcome::pending(format!(
        "{} may end until {} after the start of the drain",
        count(waiting_for.len(), "pod"),
        short(hold.at_most)
    ));
    pending.waiting_for = waiting_for;
    pending.again_after(left.min(again_after)).into()
}

fn report_over(hold: Hold, waiting_for: &[WaitingOn]) {
    if waiting_for.is_empty() {
        return;
    }
    let named = waiting_for.iter().take(NAMED).map(|pod| pod.what.as_str());
    let mut names = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = waiting_for.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push_str(&format!(" and {more} more"));
    }
    log::warn!(
        "{} after the start of the drain these pods must leave: {names}",
        short(hold.at_most)
    );
}

/// When the pod came to the node: the scheduler bound it, perhaps long after its creation.
fn arrival(pod: &Pod) -> Timestamp {
    let bound = pod.condition("PodScheduled").filter(|bound| bound.is_true());
    let bound = bound.and_then(|bound| bound.last_transition_time);
    bound
        .unwrap_or(pod.creation_timestamp)
        .max(pod.creation_timestamp)
}

/// `90s`, `5m` or `2h`, as [`config::duration`] reads it.
pub(crate) fn short(time: Duration) -> String {
    match time.as_secs() {
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}

/// Rounded up, and at least one.
pub(crate) fn whole_seconds(time: Duration) -> Duration {
    let part = u64::from(time.subsec_nanos() > 0);
    Duration::from_secs(time.as_secs().saturating_add(part).max(1))
}
