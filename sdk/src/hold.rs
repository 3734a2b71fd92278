//! Pods that get time to end by themselves. Each leaves after its [`Hold`] at the latest, which counts from the start of
//! the drain and therefore survives a restart of the driver.
//!
//! A planner puts the pods into waves with [`Draft::hold`](crate::Draft::hold), one wave for each hold. The hook
//! `before-wave` calls [`step`], which holds such a wave until its pods have ended or its time is over.
//!
//! ```
//! use std::time::Duration;
//! use scupper_sdk::*;
//!
//! /// Gives batch pods ten minutes.
//! struct TenMinutes;
//!
//! /// The planner and the hook must agree on it.
//! fn hold_of(pod: &Pod) -> Option<Hold> {
//!     (pod.namespace == "batch").then(|| Hold::at_most(Duration::from_secs(600)))
//! }
//!
//! impl Policy for TenMinutes {
//!     fn describe() -> Description {
//!         description!("Gives batch pods ten minutes")
//!     }
//! }
//!
//! impl Planner for TenMinutes {
//!     fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
//!         let leaving = draft.leaving();
//!         draft.hold(drain, leaving.into_iter().filter_map(|pod| Some((pod, hold_of(pod)?))));
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
//!         hold::step(call, |pod| Ok(hold_of(pod)), |_| Some("still runs".to_owned()))
//!     }
//! }
//!
//! use scupper_sdk::testing::{Host, pod};
//!
//! let host = Host::new();
//! host.pods([pod("shop/cart"), pod("batch/report")]);
//! let plan = host.plan::<TenMinutes>().unwrap();
//! assert_eq!(plan.waves(), ["all: shop/cart", "after 10m: batch/report"]);
//! let run = host.run_hook::<TenMinutes>(Phase::BeforeWave, Subject::Wave("after 10m".to_owned()), 1000);
//! assert_eq!((run.outcome(), run.took), (Some(&Outcome::Done), Duration::from_secs(600)));
//! ```

use std::time::Duration;

use crate::{
    Call, Drain, Outcome, Pod, Subject, Timestamp, WaitingOn, config, count, facts, known::Known, log,
    outcome::milliseconds,
};

/// The delay between two steps: how long a pod that has ended may wait for the wave.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
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

    /// The name of its wave: `after 10m`, or `after 10m, grace 30s`.
    pub fn wave(&self) -> String {
        let at_most = short(self.at_most);
        match self.max_grace {
            None => format!("after {at_most}"),
            Some(grace) => format!("after {at_most}, grace {}", short(grace)),
        }
    }

    /// The hold of the wave with this name.
    pub fn of_wave(name: &str) -> Option<Self> {
        let text = name.strip_prefix("after ")?;
        let (at_most, grace) = match text.split_once(", grace ") {
            Some((at_most, grace)) => (at_most, Some(config::duration(grace)?)),
            None => (text, None),
        };
        Some(Self {
            at_most: config::duration(at_most)?,
            max_grace: grace,
        })
    }

    /// When the pod leaves at the latest, for the reason of its verdict: `after 10m`.
    pub fn when(&self, drain: &Drain) -> String {
        let wave = self.wave();
        if drain.deadline.is_some_and(|deadline| deadline <= self.due(drain)) {
            format!("{wave}, but the drain's deadline comes first")
        } else {
            wave
        }
    }

    /// The time until the pod must leave.
    pub fn left(&self, drain: &Drain) -> Duration {
        Duration::from_millis(self.due(drain).saturating_sub(drain.now))
    }

    fn due(&self, drain: &Drain) -> Timestamp {
        drain.started.saturating_add(milliseconds(self.at_most))
    }

    pub(crate) const fn grace(&self) -> Option<Duration> {
        self.max_grace
    }
}

/// Takes a step of the hook `before-wave`. It is done if the wave is no hold's, if each of its pods has ended, is
/// terminating or is no longer awaited, or if the hold is over.
///
/// `hold_of` is the planner's decision: the step does not see the plan. It is called once for each pod and then kept in the
/// hook's state. `awaits` says what a pod still has to do; `None`: it may leave.
pub fn step(
    call: &Call,
    hold_of: impl Fn(&Pod) -> Result<Option<Hold>, facts::Error>,
    awaits: impl Fn(&Pod) -> Option<String>,
) -> Outcome {
    let Subject::Wave(wave) = &call.subject else {
        return Outcome::Done;
    };
    let Some(hold) = Hold::of_wave(wave) else {
        return Outcome::Done;
    };
    let left = hold.left(&call.drain);
    let mut known = Known::read(&call.state);
    let held = if left.is_zero() {
        // No question that cannot be answered now delays the wave any longer.
        held(call, hold, &mut known, |_| Ok(None))
    } else {
        held(call, hold, &mut known, hold_of)
    };
    let held = match held {
        Ok(held) => held,
        Err(error) => return error.into(),
    };
    let running = held
        .into_iter()
        .filter(|pod| !pod.is_finished() && pod.deletion_timestamp.is_none());
    let since = Some(call.drain.started);
    let waiting = running.filter_map(|pod| {
        let (what, detail) = (pod.full_name(), awaits(pod)?);
        Some(WaitingOn { what, detail, since })
    });
    let waiting_for: Vec<_> = waiting.collect();
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
    pending
        .state(known.state())
        .again_after(left.min(AGAIN_AFTER))
        .into()
}

/// The wave's pods: those that the hook's state names, and newer ones with this hold.
///
/// If none has it at the first step, the configuration has changed since the plan was made. Then every pod with a hold
/// counts: none leaves before its time.
fn held<'c>(
    call: &'c Call,
    hold: Hold,
    known: &mut Known,
    hold_of: impl Fn(&Pod) -> Result<Option<Hold>, facts::Error>,
) -> Result<Vec<&'c Pod>, facts::Error> {
    let (mut held, mut unknown) = (Vec::new(), Vec::new());
    // No plan of a policy evicts these.
    let stays = |pod: &&Pod| pod.mirror || pod.driver || pod.is_controlled_by("DaemonSet");
    for pod in call.pods.iter().filter(|pod| !stays(pod)) {
        match known.get(pod) {
            Some(true) => held.push(pod),
            Some(false) => {}
            None => unknown.push((pod, hold_of(pod)?)),
        }
    }
    let is_changed = call.state.is_empty() && unknown.iter().all(|(_, its)| *its != Some(hold));
    for (pod, its) in unknown {
        let is_held = if is_changed {
            its.is_some()
        } else {
            its == Some(hold)
        };
        if known.add(pod, is_held) {
            held.push(pod);
        }
    }
    Ok(held)
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

/// `90s`, `5m` or `2h`, as [`config::duration`] reads it.
fn short(time: Duration) -> String {
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
