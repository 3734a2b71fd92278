//! The facts of a drain as text: lines of a local and of a followed drain, `status` and the live display use the same
//! words.

use std::time::Duration;

use scupper_engine::{HumanDuration, PodRef, Reason, Subject, Time, Uid, WaitingOn};

use super::{HookStatus, WaveStatus};
use crate::messages::{count, one_line};

/// What a hook does that has not finished.
pub(crate) const HOOK_RUNS: &str = ", running";

impl WaveStatus {
    /// `1 of 2, web`
    pub(crate) fn text(&self) -> String {
        format!("{} of {}, {}", self.number, self.of, one_line(&self.name))
    }

    /// `1 of 2, web: 3 pods to evict`; `pods`: if known.
    pub(crate) fn started_text(&self, pods: Option<usize>) -> String {
        let pods = pods.map(|pods| format!(": {} to evict", count(pods, "pod")));
        format!("{}{}", self.text(), pods.unwrap_or_default())
    }
}

impl HookStatus {
    /// `slurm before-wave of web`; `of`: the subject as text.
    fn title(&self, of: &str) -> String {
        format!("{} {}{of}", self.policy, self.phase)
    }

    /// `slurm before-drain, running for 12s: 2 jobs run`
    pub(crate) fn running_text(&self, of: &str, now: Time) -> String {
        let so_long = for_so_long(now.since(self.since));
        format!("{}{HOOK_RUNS}{so_long}{}", self.title(of), self.progress_text())
    }

    /// `slurm finished before-drain after 12s`
    pub(crate) fn done_text(&self, of: &str, now: Time) -> String {
        let Self { policy, phase, .. } = self;
        format!(
            "{policy} finished {phase}{of} after {}",
            HumanDuration(now.since(self.since))
        )
    }

    /// The text of a hook that outlived its drain.
    pub(crate) fn unfinished_text(&self, of: &str, ended: Time) -> String {
        let Self { policy, phase, .. } = self;
        let after = HumanDuration(ended.since(self.since));
        let progress = self.progress_text();
        format!("{policy} had not finished {phase}{of} when the drain ended, after {after}{progress}")
    }

    /// `before-drain for 12s: 2 jobs run; job 17: training`
    pub(crate) fn short_text(&self, of: &str, now: Time) -> String {
        let since = HumanDuration(Duration::from_secs(now.since(self.since).as_secs()));
        let waiting_for = self.waiting_for.iter().map(|on| format!("; {}", awaited(on)));
        let waiting_for: String = waiting_for.collect();
        format!(
            "{}{of} for {since}{}{waiting_for}",
            self.phase,
            self.progress_text()
        )
    }

    /// What it waits for, each with how long: `job 17: training, for 12s`.
    pub(crate) fn awaited(&self, now: Time) -> impl Iterator<Item = String> {
        self.waiting_for.iter().map(move |on| {
            let since = on.since.map(|since| for_so_long(now.since(since)));
            let since = since.filter(|text| !text.is_empty());
            let since = since.map(|text| format!(",{text}"));
            format!("{}{}", awaited(on), since.unwrap_or_default())
        })
    }

    fn progress_text(&self) -> String {
        match one_line(&self.progress) {
            progress if progress.is_empty() => progress,
            progress => format!(": {progress}"),
        }
    }
}

fn awaited(on: &WaitingOn) -> String {
    let text = format!("{}: {}", one_line(&on.what), one_line(&on.detail));
    text.trim_end_matches(": ").to_owned()
}

/// The topic and the text of a pod that waits or stays: `waits`, `shop/web-1 for 12s: …`.
pub(crate) fn pod_text(
    pod: &PodRef,
    reason: &Reason,
    since: Option<Time>,
    now: Time,
) -> (&'static str, String) {
    let text = one_line(&reason_text(reason, now));
    if reason.stays() {
        return ("stays", format!("{pod}: {text}"));
    }
    let since = since.filter(|_| !contains_duration(reason));
    let so_long = since.map(|since| for_so_long(now.since(since)));
    ("waits", format!("{pod}{}: {text}", so_long.unwrap_or_default()))
}

/// The text of the reason contains a time of its own.
pub(crate) const fn contains_duration(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Terminating { .. } | Reason::TerminatingPastGrace { .. }
    )
}

/// The text of a reason, with the facts that change over time.
pub(crate) fn reason_text(reason: &Reason, now: Time) -> String {
    match reason {
        Reason::Terminating { until } => format!(
            "{reason}, {} of its grace period left",
            HumanDuration(until.since(now))
        ),
        Reason::TerminatingPastGrace { since, finalizers } => {
            let mut words = format!(
                "still terminating {} after its grace period",
                HumanDuration(now.since(*since))
            );
            if !finalizers.is_empty() {
                words.push_str(&format!("; finalizers: {finalizers}"));
            }
            words
        }
        _ => reason.to_string(),
    }
}

/// The subject of a hook. `name`: the name of a pod, if known.
pub fn subject_text(subject: &Subject, name: impl Fn(&Uid) -> Option<String>) -> String {
    match subject {
        Subject::Node => String::new(),
        // The hook's phase says that it is a wave.
        Subject::Wave(wave) => format!(" of {wave}"),
        Subject::Pod(uid) => match name(uid) {
            Some(pod) => format!(" of {pod}"),
            None => format!(" of pod {uid}"),
        },
    }
}

/// ` for 12s`; nothing within the first second.
pub(crate) fn for_so_long(waited: Duration) -> String {
    if waited.as_secs() > 0 {
        format!(" for {}", HumanDuration(waited))
    } else {
        String::new()
    }
}
