//! Prints a drain as lines for people: what happens, what the drain waits for, and since when.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Checkpoint, HumanDuration, Intent, Notice, Outcome, Plan, Pod, PodRef, Reason, Request, Subject, Summary,
    Time, Uid,
};
use scupper_pre_flight::Finding;

use super::PolicyMessage;
use super::drain_status::{
    Estimate, HookKey, HookStatus, PlanSummary, VolumesStatus, WaveStatus, for_so_long, pod_text,
    subject_text,
};
use super::force::{force_ahead_text, forced_summary, forced_text};
use super::messages::{
    CordonLeft, NodeLeft, UNCORDONED, count, deletions_text, end_text, gone_text, may_come_back,
    needs_no_report, not_ready_text, one_line, returning, stayed_text, timed_line, volumes_left_text,
    volumes_settled_text,
};
use super::pre_flight::finding_line;
use super::surge::{step_text, surge_texts, whole_seconds};
use super::undo::{not_undone_texts, typed_flags, undo_command};
use super::waits::{NamedWaits, UntoldWaits};

/// Interval after which a hook that waits without new progress is mentioned again.
const REMIND: Duration = Duration::from_secs(15);

/// The output state of one drain.
#[derive(Debug)]
pub struct DrainLines {
    began: Time,
    intent: Intent,
    node: String,
    /// Lets policies undo what the drain leaves.
    undo_command: String,
    flags: String,
    /// There are policies that may have to.
    has_policies: bool,
    /// The cordon, as far as this drain has told; `None`: it has not.
    cordon: Option<CordonLeft>,
    /// A plan exists, so the counts of pods are meaningful.
    planned: bool,
    /// It continues the drain of another process, of whose requests only those before its last checkpoint are counted.
    is_resumed: bool,
    /// What is deleted shortly before the deadline.
    force: Option<String>,
    /// The plan as it was last printed.
    reported_plan: Vec<String>,
    pods: BTreeMap<Uid, PodRef>,
    /// Names of the pods that may come back in spite of the cordon.
    returning: BTreeMap<Uid, String>,
    /// When the API server accepted the eviction or deletion of each pod.
    leaving: BTreeMap<Uid, Time>,
    blocked: BTreeMap<Uid, Time>,
    named_waits: NamedWaits,
    untold_waits: UntoldWaits,
    /// The hooks as they were last printed, and when.
    hooks: BTreeMap<HookKey, (HookStatus, Time)>,
    /// The printed failures of planners.
    planners: BTreeMap<String, ReportedWait>,
}

/// The last printed line about a planner that waits.
#[derive(Debug)]
struct ReportedWait {
    first: Time,
    reported: Time,
    text: String,
}

impl DrainLines {
    /// Starts the output of a drain; returns it with its first line.
    pub fn begin(now: Time, request: &Request) -> (Self, String) {
        let progress = Self {
            began: now,
            intent: request.intent,
            node: request.node.clone(),
            undo_command: undo_command(&request.trigger, &request.node),
            flags: typed_flags(request),
            has_policies: !request.policies.is_empty(),
            cordon: None,
            planned: false,
            is_resumed: false,
            force: force_ahead_text(request),
            reported_plan: Vec::new(),
            pods: BTreeMap::new(),
            returning: BTreeMap::new(),
            leaving: BTreeMap::new(),
            blocked: BTreeMap::new(),
            named_waits: NamedWaits::default(),
            untold_waits: UntoldWaits::default(),
            hooks: BTreeMap::new(),
            planners: BTreeMap::new(),
        };
        let deadline = match request.deadline {
            Some(deadline) => format!(
                "to end within {}",
                HumanDuration(whole_seconds(deadline.since(now)))
            ),
            None => "without a deadline".to_owned(),
        };
        let what = request.intent.name();
        let line = progress.line(
            now,
            what,
            &format!(
                "node {} for {} {}, {deadline}",
                request.node, request.trigger, request.name
            ),
        );
        (progress, line)
    }

    /// Records the names of pods, because later notices contain only the UID.
    pub fn know<'a>(&mut self, pods: impl IntoIterator<Item = &'a Pod>) {
        for pod in pods {
            self.pods.insert(pod.id.uid.clone(), pod.id.clone());
            self.returning.extend(returning([pod]));
        }
    }

    /// The line about a node that is not ready.
    pub fn not_ready(&self, now: Time, words: &str) -> String {
        self.line(now, "node", &not_ready_text(words))
    }

    /// The line about a policy's message on the node.
    pub fn policy_message(&self, now: Time, words: &PolicyMessage) -> String {
        self.line(now, "policy", &words.line())
    }

    /// The lines about what pre-flight arithmetic has found.
    pub fn findings(&self, now: Time, findings: &[Finding]) -> Vec<String> {
        let lines = findings.iter().map(|finding| {
            let topic = finding.certainty.to_string();
            self.line(now, &topic, &finding_line(finding))
        });
        lines.collect()
    }

    /// The line about when the drain will probably end.
    pub fn estimate(&self, now: Time, estimate: &Estimate) -> Option<String> {
        Some(self.line(now, "ends", &estimate.text(now)?))
    }

    /// The lines for a notice.
    pub fn lines(&mut self, now: Time, notice: &Notice) -> Vec<String> {
        let is_last = matches!(notice, Notice::Finished { .. });
        let mut lines = self.more_waits(now, is_last);
        lines.extend(self.of_notice(now, notice));
        lines
    }

    /// The lines that are due although nothing has happened.
    pub fn turn(&mut self, now: Time) -> Vec<String> {
        self.more_waits(now, false)
    }

    /// It continues a drain that had cordoned the node.
    pub(super) const fn resume(&mut self, mark: &Checkpoint) {
        if mark.phase.needs_cordon() {
            self.is_resumed = true;
            self.cordon = Some(if mark.own_cordon {
                CordonLeft::Ours
            } else {
                CordonLeft::Others
            });
        }
    }

    fn of_notice(&mut self, now: Time, notice: &Notice) -> Vec<String> {
        self.cordon = match notice {
            Notice::Cordoned { ours: true } => Some(CordonLeft::Ours),
            Notice::Cordoned { ours: false } => Some(CordonLeft::Others),
            Notice::Uncordoned => Some(CordonLeft::None),
            Notice::UncordonedByOthers => None,
            _ => self.cordon,
        };
        let (topic, text) = match notice {
            Notice::Phase(_) => return Vec::new(),
            Notice::Planned(plan) => {
                self.planned = true;
                self.planners.clear();
                return self.plan(now, plan);
            }
            Notice::Cordoned { ours: true } => ("cordon", "the node is cordoned".to_owned()),
            Notice::Cordoned { ours: false } => (
                "cordon",
                "the node was already cordoned; Scupper will not lift that cordon".to_owned(),
            ),
            Notice::PlannerWaiting {
                policy,
                message,
                again,
            } => return self.planner_waits(now, policy, message, *again),
            Notice::HookWaiting { .. } => {
                let hook = HookStatus::of(notice);
                return hook.map_or_else(Vec::new, |hook| self.hook_waits(now, hook));
            }
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => {
                let Some((hook, _)) = self.hooks.remove(&(policy.clone(), *phase, subject.clone())) else {
                    return Vec::new();
                };
                ("hook", hook.done_text(&self.subject(subject), now))
            }
            Notice::WaveStarted { pods, .. } => {
                let wave = WaveStatus::of(notice);
                let text = wave.map(|wave| wave.started_text(Some(*pods as usize)));
                ("wave", text.unwrap_or_default())
            }
            Notice::WaveOverdue { name } => (
                "wave",
                format!("{name} exceeded its time limit; the next one begins"),
            ),
            Notice::PodWaits { pod, reason } => return self.pod_waits(now, pod, reason),
            Notice::PodLeaving { pod, by } => {
                self.waits_no_longer(&pod.uid);
                self.leaving.insert(pod.uid.clone(), now);
                let held = self.blocked.remove(&pod.uid);
                let after = held
                    .map(|since| format!(" (was held up for {})", HumanDuration(now.since(since))))
                    .unwrap_or_default();
                (by.name(), format!("{pod}{after}"))
            }
            Notice::Forced { pod, .. } => {
                self.waits_no_longer(&pod.uid);
                self.leaving.insert(pod.uid.clone(), now);
                self.blocked.remove(&pod.uid);
                ("force", forced_text(notice).unwrap_or_default())
            }
            Notice::PodGone { pod, remaining } => {
                self.waits_no_longer(&pod.uid);
                let took = self
                    .leaving
                    .remove(&pod.uid)
                    .map(|since| format!(" after {}", HumanDuration(now.since(since))));
                (
                    "gone",
                    format!("{pod}{}, {remaining} to go", took.unwrap_or_default()),
                )
            }
            Notice::AwaitsVolumes { .. } => {
                let volumes = VolumesStatus::of(notice);
                (
                    "volumes",
                    volumes.map(|volumes| volumes.text(now)).unwrap_or_default(),
                )
            }
            Notice::VolumesSettled { left } => ("volumes", volumes_settled_text(left.as_ref())),
            Notice::Surge { deployment, step } => ("surge", step_text(now, deployment, step)),
            Notice::Newcomer { pod } => (
                "new",
                format!("{pod} came after the plan was made; the policies are asked"),
            ),
            Notice::UncordonedByOthers => ("held", UNCORDONED.to_owned()),
            Notice::Uncordoned => ("uncordon", "the cordon is lifted".to_owned()),
            Notice::Retrying { task, message } => ("retry", format!("{task}: {}", one_line(message))),
            Notice::Finished { outcome, summary } => return self.finished(now, outcome, summary),
        };
        vec![self.line(now, topic, &text)]
    }

    fn line(&self, now: Time, topic: &str, text: &str) -> String {
        timed_line(self.began, now, topic, text)
    }

    /// Prints nothing if the plan reads the same as the last one: only a pod that stays like others, or one that is
    /// gone, has changed.
    fn plan(&mut self, now: Time, plan: &Plan) -> Vec<String> {
        let returning = may_come_back(plan, &self.returning);
        let surges = surge_texts(&plan.surge);
        let plan = PlanSummary::of(plan);
        let groups = plan.groups(|uid| Some(self.name(uid))).into_iter();
        let texts: Vec<String> = std::iter::once(plan.head())
            .chain(groups)
            .chain(self.force.clone())
            .chain(surges)
            .chain(returning)
            .collect();
        if self.reported_plan == texts {
            return Vec::new();
        }
        let topics = std::iter::once("plan").chain(std::iter::repeat(""));
        let lines = topics
            .zip(&texts)
            .map(|(topic, text)| self.line(now, topic, text));
        let lines = lines.collect();
        self.reported_plan = texts;
        lines
    }

    fn planner_waits(&mut self, now: Time, policy: &str, message: &str, again: Time) -> Vec<String> {
        let text = one_line(message);
        let known = self.planners.get(policy);
        if known.is_some_and(|reported| reported.text == text && now.since(reported.reported) < REMIND) {
            return Vec::new();
        }
        let first = known.map_or(now, |reported| reported.first);
        let line = format!(
            "waits for the planner of {policy}{}: {text}; retry in {}",
            for_so_long(now.since(first)),
            HumanDuration(again.since(now))
        );
        let reported = ReportedWait {
            first,
            reported: now,
            text,
        };
        self.planners.insert(policy.to_owned(), reported);
        vec![self.line(now, "plan", &line)]
    }

    fn hook_waits(&mut self, now: Time, hook: HookStatus) -> Vec<String> {
        let is_known = |(known, reported): &(HookStatus, Time)| {
            known.has_same_progress(&hook) && now.since(*reported) < REMIND
        };
        if self.hooks.get(&hook.key()).is_some_and(is_known) {
            return Vec::new();
        }
        let text = hook.running_text(&self.subject(&hook.subject), now);
        let mut lines = vec![self.line(now, "hook", &text)];
        let awaited = hook.awaited(now);
        lines.extend(awaited.map(|on| self.line(now, "", &format!("  waits for {on}"))));
        self.hooks.insert(hook.key(), (hook, now));
        lines
    }

    fn pod_waits(&mut self, now: Time, pod: &PodRef, reason: &Reason) -> Vec<String> {
        // What it waited for before is not told any more.
        self.untold_waits.remove(&pod.uid);
        if needs_no_report(reason) {
            return Vec::new();
        }
        let since = (!reason.stays()).then(|| *self.blocked.entry(pod.uid.clone()).or_insert(now));
        if !reason.stays() && !self.named_waits.names(pod, reason) {
            self.untold_waits.insert(now, pod, reason);
            return Vec::new();
        }
        let (topic, text) = pod_text(pod, reason, since, now);
        vec![self.line(now, topic, &text)]
    }

    fn waits_no_longer(&mut self, pod: &Uid) {
        self.named_waits.forget(pod);
        self.untold_waits.remove(pod);
    }

    /// How many more pods wait for the same as others that have a line each.
    fn more_waits(&mut self, now: Time, is_last: bool) -> Vec<String> {
        let more = self.untold_waits.take(now, is_last);
        let lines = more
            .iter()
            .map(|more| self.line(now, "waits", &one_line(&more.text(now))));
        lines.collect()
    }

    fn finished(&self, now: Time, outcome: &Outcome, summary: &Summary) -> Vec<String> {
        let spent = HumanDuration(summary.ended.since(summary.started));
        let text = end_text(
            outcome.name(),
            &spent.to_string(),
            &one_line(&outcome.to_string()),
        );
        let mut lines = vec![self.line(now, "end", &text)];
        // Without a plan no pods were counted, and a count of 0 would be wrong.
        let counted = self.planned || summary.totals.gone + summary.kept + summary.remaining > 0;
        if self.intent == Intent::Drain && (counted || outcome.is_success()) {
            let text = format!(
                "{} in {}, {} kept, {} remaining; {}{}, {} of them refused by a disruption budget{}",
                gone_text(summary),
                count(summary.totals.waves as usize, "wave"),
                summary.kept,
                summary.remaining,
                if self.is_resumed { "at least " } else { "" },
                count(
                    summary.totals.evictions.saturating_sub(summary.totals.deletions) as usize,
                    "eviction request"
                ),
                summary.totals.budget_refusals,
                deletions_text(summary),
            );
            lines.push(self.line(now, "", &text));
        }
        let left = not_undone_texts(outcome, summary).into_iter();
        let next = format!("next: {}", self.undo_command);
        let left = left.map(|text| format!("attention: {text}; {next}"));
        lines.extend(left.map(|text| self.line(now, "undo", &text)));
        lines.extend(stayed_line(summary).map(|text| self.line(now, "stays", &text)));
        lines.extend(forced_summary(summary).map(|text| self.line(now, "force", &text)));
        let left = volumes_left_text(outcome, summary).map(|text| format!("attention: {text}"));
        lines.extend(left.map(|text| self.line(now, "volumes", &text)));
        if summary.totals.hook_steps > 0 {
            let steps = count(summary.totals.hook_steps as usize, "hook step");
            let took = match summary.totals.hook_wait.as_secs() {
                0 => String::new(),
                _ => format!(", which took {}", HumanDuration(summary.totals.hook_wait)),
            };
            lines.push(self.line(now, "", &format!("{steps}{took}")));
        }
        if summary.totals.budget_wait > Duration::ZERO {
            let text = format!(
                "disruption budgets held pods up for {}",
                HumanDuration(summary.totals.budget_wait)
            );
            lines.push(self.line(now, "", &text));
        }
        if summary.volume_wait > Duration::ZERO {
            let text = format!("waited {} for volumes", HumanDuration(summary.volume_wait));
            lines.push(self.line(now, "", &text));
        }
        lines.extend(
            self.node_left(outcome, summary)
                .map(|text| self.line(now, "", &text)),
        );
        lines
    }

    /// What the end of a drain leaves of the node. Of one that it has lost it does not know.
    fn node_left(&self, outcome: &Outcome, summary: &Summary) -> Option<String> {
        let is_lost = matches!(outcome, Outcome::Lost { .. });
        let cordon = self.cordon.filter(|_| self.intent == Intent::Drain && !is_lost)?;
        let back = match self.has_policies {
            true => self.undo_command.clone(),
            false if self.is_resumed => {
                format!(
                    "scupper uncordon {} (with --local while its driver is gone)",
                    self.node
                )
            }
            false => format!("scupper uncordon {}", self.node),
        };
        let left = NodeLeft {
            node: &self.node,
            is_done: outcome.is_success(),
            cordon,
            kept_by: &summary.kept_by,
            flags: &self.flags,
            back: &back,
        };
        Some(left.text())
    }

    fn name(&self, uid: &Uid) -> String {
        self.pods
            .get(uid)
            .map_or_else(|| uid.to_string(), PodRef::to_string)
    }

    fn subject(&self, subject: &Subject) -> String {
        subject_text(subject, |uid| self.pods.get(uid).map(PodRef::to_string))
    }
}

/// The line about pods that came during the drain and are still on the node.
fn stayed_line(summary: &Summary) -> Option<String> {
    (!summary.stayed.is_empty()).then(|| format!("attention: {}", stayed_text(summary)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::request;

    #[test]
    fn an_unchanged_plan_is_printed_once() {
        let at = Time::from_millis;
        let (mut progress, _) = DrainLines::begin(at(0), &request());
        let plan = |waves: &[&str]| {
            let wave = |name: &&str| scupper_engine::Wave {
                name: (*name).to_owned(),
                pods: Vec::new(),
                max_parallel: None,
                timeout: None,
                max_grace_seconds: None,
                policy: String::new(),
            };
            Notice::Planned(Plan {
                waves: waves.iter().map(wave).collect(),
                ..Plan::default()
            })
        };
        assert!(!progress.lines(at(1), &plan(&["all"])).is_empty());
        assert!(progress.lines(at(2), &plan(&["all"])).is_empty());
        assert!(!progress.lines(at(3), &plan(&["all", "late"])).is_empty());
    }
}
