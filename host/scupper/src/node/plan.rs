//! `scupper plan`: what a drain would do.

mod answers;
mod json;
mod loosening;
mod volumes;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use scupper_engine::{
    Blocker, Decision, EvictAnswer, HumanDuration, Intent, Outcome, Plan, Pod, PodRef, Trigger, Uid, Verdict,
    Wave, named,
};

use self::answers::answer_text;
use super::args::PlanArgs;
use super::options::Draining;
use super::plan_options::{self, plan_options};
use super::plan_scenario::{self, Made};
use crate::Exit;
use crate::forecast;
use crate::options::OptionsError;
use crate::output::Output;
use crate::output::{fail, failed, inform, inform_of_no_node, print, print_lines, wrong_options};
use scupper_cluster::Recorder;
use scupper_common::text::one_line;
use scupper_driver::OUT_OF_SERVICE;
use scupper_forecast::Learned;
use scupper_policy::EnvironmentFindings;
use scupper_recording::ShadowPlan;
use scupper_report::{
    Format, PodList, finding_lines, group_name, plan_budget_lines, plan_force_lines, surge_lines,
};
use scupper_use_cases::{self as use_cases, PlanOptions, Planned};

/// Plans drains and shows them.
pub(crate) async fn run(args: &PlanArgs, output: Output) -> ExitCode {
    match plan_options::of_plan(args) {
        Ok((target, by, draining)) => {
            match args.save_scenario.as_deref().zip(args.policies.config.as_deref()) {
                Some((folder, config)) => {
                    let options = plan_options(target, draining.clone(), by, &args.policies, &args.cluster);
                    show_and_save(options, &draining, (folder, config), output).await
                }
                None => {
                    let options = plan_options(target, draining, by, &args.policies, &args.cluster);
                    let learned = forecast::learned_if_readable(args.recordings.clone(), &args.policies);
                    show(options, &learned, output).await
                }
            }
        }
        Err(error) => wrong_options(&error),
    }
}

/// Shows what drains would do, and saves each as a scenario in the folder. The policies are those of the configuration.
async fn show_and_save(
    options: PlanOptions,
    draining: &Draining,
    (folder, config): (&Path, &Path),
    output: Output,
) -> ExitCode {
    let recorder = Recorder::default();
    let options = PlanOptions {
        recorder: Some(recorder.clone()),
        ..options
    };
    let plans = match use_cases::plan(options).await {
        Ok(plans) => plans,
        Err(error) => return failed(&error),
    };
    if plans.iter().any(|planned| planned.asked_by.is_partial) {
        let problem =
            "--save-scenario: a scenario cannot express that only the pods leave which a DrainRequest names";
        return wrong_options(&OptionsError(vec![format!("{problem} (drain-requests.partial)")]));
    }
    let exit = report(&plans, &Learned::default(), output);
    let made = Made { config, draining };
    match plan_scenario::save(folder, &made, &plans, &recorder.snapshot()) {
        Ok(scenarios) => {
            for scenario in scenarios {
                inform(&format!("saved {}", scenario.display()));
            }
            exit.into()
        }
        Err(error) => fail(&error, Exit::Config),
    }
}

/// Shows what a drain by command would do, and what the API server says to it.
pub(super) async fn dry_run(options: PlanOptions, ask_server: bool, output: Output) -> ExitCode {
    let options = PlanOptions {
        ask_server,
        ..options
    };
    show(options, &Learned::default(), output).await
}

/// How many nodes with drivers are named.
const NAMED_NODES: usize = 3;

/// Bytes of what a policy has found.
const WORDS: usize = 2_000;

async fn show(options: PlanOptions, learned: &Learned, output: Output) -> ExitCode {
    match use_cases::plan(options).await {
        Ok(plans) => report(&plans, learned, output).into(),
        Err(error) => failed(&error),
    }
}

fn report(plans: &[Planned], learned: &Learned, output: Output) -> Exit {
    if plans.is_empty() {
        inform_of_no_node();
    }
    inform_of_drivers(plans);
    let mut exit = Exit::Done;
    for planned in plans {
        match output.format() {
            Format::Human => {
                let mut text = plan_for_people(planned, output.pod_list());
                if let Some(probably) = forecast::in_short(planned, learned) {
                    text.push_str(&format!("\n{probably}"));
                }
                print_lines(&text);
            }
            Format::Json => {
                let mut json = json::of(planned);
                if let (Some(fields), Some(probably)) =
                    (json.as_object_mut(), forecast::in_numbers(planned, learned))
                {
                    fields.insert("probably".to_owned(), probably);
                }
                print(&output.document(&json));
            }
        }
        let answers = planned.answers.iter().flatten();
        let refused = answers.filter(|(_, answer)| !is_fine(answer)).count();
        let of_node = match &planned.result {
            Ok(_) if refused > 0 || planned.cannot_end() => Exit::DrainFailed,
            Ok(_) => Exit::Done,
            Err(outcome) => Exit::of(outcome),
        };
        exit = exit.and(of_node);
    }
    exit
}

/// That drivers would carry out some of these drains.
pub(crate) fn inform_of_drivers(plans: &[Planned]) {
    let handed_over = plans.iter().filter(|planned| planned.asked_by.is_handed_over);
    let nodes: Vec<_> = handed_over.map(|planned| planned.node.as_str()).collect();
    if !nodes.is_empty() {
        inform(&format!(
            "a driver would drain {}, and refuse flags that its configuration does not allow; this plan leaves its policies out. To \
             plan with its policies and settings, as for a cordon or a LifecycleEvent: scupper plan {} --as-driver --config \
             scupper.yaml (the driver's); scupper forecast has the same flags",
            named(nodes.iter().copied(), NAMED_NODES),
            nodes.first().copied().unwrap_or_default()
        ));
    }
}

/// That a drain or an uncordon from here leaves out the drivers of these nodes.
pub(super) fn inform_of_drivers_left_out(nodes: &[String], intent: Intent) {
    let what = match intent {
        Intent::Drain => "all pods leave in one wave, and no hook runs",
        Intent::Uncordon => "no hook runs",
    };
    if !nodes.is_empty() {
        inform(&format!(
            "done from here, this leaves out the driver of {}, its policies and its settings: {what}; to apply them from here: \
             --config scupper.yaml (the driver's)",
            named(nodes.iter().map(String::as_str), NAMED_NODES)
        ));
    }
}

/// A plan as text: what becomes of the pods, and why the drain would not begin.
pub fn plan_for_people(planned: &Planned, list: PodList) -> String {
    let node = planned_node(planned);
    match &planned.result {
        Ok(plan) => {
            let goes = how_it_goes(planned);
            let head = format!("A drain of node {node} would {goes}; nothing was changed.");
            let lines = std::iter::once(head).chain(body_lines(planned, plan, list));
            lines.collect::<Vec<_>>().join("\n")
        }
        Err(Outcome::Blocked { pods }) => {
            let mut lines = vec![format!(
                "A drain of node {node} would be refused; nothing was changed."
            )];
            lines.extend(PodLines::of(planned, list).of_blockers(pods));
            lines.extend(with_flags_lines(planned, list));
            lines.join("\n")
        }
        Err(outcome) => {
            format!("A drain of node {node} would end at once; nothing was changed.\n  {outcome}")
        }
    }
}

/// The rest of the sentence before the waves.
fn how_it_goes(planned: &Planned) -> &'static str {
    match planned.cannot_end() {
        true => "begin like this, and could not end",
        false => "go like this",
    }
}

/// The rest of the plan, which pods that only need a flag would hide.
fn with_flags_lines(planned: &Planned, list: PodList) -> Vec<String> {
    let Some((flags, rest)) = &planned.with_flags else {
        return Vec::new();
    };
    let asked_by = &planned.asked_by;
    let flags = match (asked_by.is_as_driver, asked_by.is_handed_over) {
        (true, _) => format!("{} in the driver's configuration", flags.join(" and ")),
        (false, _) => flags.join(" "),
    };
    match &rest.result {
        Ok(plan) => {
            let allowed = match asked_by.is_handed_over {
                true => ", which the driver's configuration must allow,",
                false => "",
            };
            let head = format!("With {flags}{allowed} it would {}:", how_it_goes(rest));
            std::iter::once(head)
                .chain(body_lines(rest, plan, list))
                .collect()
        }
        Err(Outcome::Blocked { .. }) => vec![format!("With {flags} it would be refused as well.")],
        Err(outcome) => vec![format!("With {flags} it would end at once: {outcome}")],
    }
}

/// The waves, the pods that stay, and what stands in their way.
fn body_lines(planned: &Planned, plan: &Plan, list: PodList) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(planned.continues.as_ref().map(|drain| {
        format!("It continues the drain for {drain} once no process renews the node's Lease any more.")
    }));
    lines.extend(notice_line(planned));
    let pods = PodLines::of(planned, list);
    lines.extend(plan_lines(plan, &pods));
    lines.extend(planned.settings.machine_is_off.then(|| {
        format!(
            "First the drain taints the node with {OUT_OF_SERVICE}; controllers then also delete the pods that stay, \
             unless those tolerate the taint."
        )
    }));
    lines.extend(volumes::plan_volume_lines(
        plan,
        &planned.pods,
        planned.settings.wait_for_volumes,
    ));
    lines.extend(plan_force_lines(plan, &planned.pods, planned.force()));
    lines.extend(no_deadline_line(planned));
    lines.extend(surge_lines(&plan.surge));
    lines.extend(plan_budget_lines(plan, &planned.pods, planned.budgets.as_deref()));
    lines.extend(finding_lines(&planned.findings));
    lines.extend(environment_lines(&planned.environment));
    lines.extend(loosening::loosened_lines(plan, &planned.pods));
    lines.extend(planned.shadows.iter().map(ShadowPlan::to_string));
    let returning = scupper_report::returning(&planned.pods).collect();
    lines.extend(scupper_report::may_come_back(plan, &returning));
    let answers = planned.answers.as_deref();
    lines.extend(
        answers
            .map(|answers| pods.of_answers(answers))
            .unwrap_or_default(),
    );
    lines
}

/// What policies find wrong with what they depend on. Their words come from servers.
fn environment_lines(environment: &[EnvironmentFindings]) -> impl Iterator<Item = String> {
    environment.iter().flat_map(|of| {
        of.findings.iter().map(|found| {
            let fix = match found.fix.as_str() {
                "" => String::new(),
                fix => format!(" ({fix})"),
            };
            let text = format!("policy {}: {}: {}{fix}", of.policy, found.subject, found.message);
            one_line(&text, WORDS)
        })
    })
}

/// What `drain.notify-before` adds to a plan.
fn notice_line(planned: &Planned) -> Option<String> {
    let before = HumanDuration(planned.settings.notice()?);
    Some(format!(
        "Each workload with pods that leave gets an Event about it {before} before."
    ))
}

/// `drain.at-deadline` is set, and there is no moment before a deadline.
fn no_deadline_line(planned: &Planned) -> Option<String> {
    let is_idle = planned.settings.at_deadline.is_some() && planned.deadline.is_none();
    let setting = match &planned.asked_by {
        by if by.trigger == Trigger::DrainRequest => "drain-requests.timeout",
        by if by.is_as_driver => "drain.sla",
        _ => "--timeout",
    };
    is_idle.then(|| {
        format!(
            "drain.at-deadline deletes nothing, because the drain has no deadline; give it one with {setting}"
        )
    })
}

/// `worker-1 (NotReady: …) for DrainRequest nvsentinel/gpu-0 and 1 more`
fn planned_node(planned: &Planned) -> String {
    let mut node = planned.node.clone();
    if let Some(words) = &planned.not_ready {
        node += &format!(" ({words})");
    }
    match &planned.asked_by.requests[..] {
        [] => node,
        [one] => format!("{node} for DrainRequest {one}"),
        [first, others @ ..] => format!("{node} for DrainRequest {first} and {} more", others.len()),
    }
}

fn plan_lines(plan: &Plan, pods: &PodLines<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, wave) in plan.waves.iter().enumerate() {
        lines.push(wave_line(number + 1, wave));
        let decisions = wave.pods.iter().filter_map(|uid| plan.decision(uid));
        lines.extend(pods.of_decisions(decisions, &Verdict::to_string));
    }
    let rest = plan.decisions.iter();
    let rest = rest.filter(|decision| !decision.verdict.leaves());
    lines.extend(pods.of_decisions(rest, &|verdict| {
        match verdict {
            Verdict::Keep => "stays",
            _ => "may not leave",
        }
        .to_owned()
    }));
    lines
}

/// `wave 2: rest (2 at a time, grace at most 30s) [kubectl]`
fn wave_line(number: usize, wave: &Wave) -> String {
    let mut terms = Vec::new();
    terms.extend(wave.max_parallel.map(|n| format!("{n} at a time")));
    terms.extend(
        wave.max_grace_seconds
            .map(|seconds| format!("grace at most {seconds}s")),
    );
    terms.extend(
        wave.timeout
            .map(|timeout| format!("the next wave after {} at the latest", HumanDuration(timeout))),
    );
    let terms = if terms.is_empty() {
        String::new()
    } else {
        format!(" ({})", terms.join(", "))
    };
    format!("wave {number}: {}{terms} [{}]", wave.name, wave.policy)
}

/// Lists pods of a plan: one line for each, or for each workload and reason.
struct PodLines<'a> {
    pods: BTreeMap<&'a Uid, &'a Pod>,
    list: PodList,
}

impl<'a> PodLines<'a> {
    fn of(planned: &'a Planned, list: PodList) -> Self {
        let pods = planned.pods.iter().map(|pod| (&pod.id.uid, pod));
        Self {
            pods: pods.collect(),
            list,
        }
    }

    /// `line`: of the first item of a group, and how many pods are in the group.
    fn lines<T, S: PartialEq>(
        &self,
        items: impl IntoIterator<Item = T>,
        uid: impl Fn(&T) -> &'a Uid,
        said: impl Fn(&T) -> S,
        line: impl Fn(&T, usize) -> String,
    ) -> Vec<String> {
        let pod = |item: &T| self.pods.get(uid(item)).copied();
        let groups = self.list.grouped(items, pod, said);
        let lines = groups
            .iter()
            .filter_map(|group| Some(line(group.first()?, group.len())));
        lines.collect()
    }

    fn of_decisions(
        &self,
        decisions: impl Iterator<Item = &'a Decision>,
        word: &dyn Fn(&Verdict) -> String,
    ) -> Vec<String> {
        let said = |it: &&'a Decision| (it.verdict, &it.reason, &it.policy);
        self.lines(
            decisions,
            |it| &it.pod,
            said,
            |it, pods| {
                let name = match self.pods.get(&it.pod) {
                    Some(pod) => group_name(&pod.id, pods),
                    None => group_name(&it.pod, pods),
                };
                let Decision { reason, policy, .. } = it;
                format!("  {:<16} {name}  {reason} [{policy}]", word(&it.verdict))
            },
        )
    }

    /// The pods because of which a drain would be refused.
    fn of_blockers(&self, blockers: &'a [Blocker]) -> Vec<String> {
        let said = |it: &&'a Blocker| (&it.reason, &it.policy);
        self.lines(
            blockers,
            |it| &it.pod.uid,
            said,
            |Blocker { pod, reason, policy }, pods| {
                let name = group_name(pod, pods);
                format!("  may not leave  {name}  {reason} [{policy}]")
            },
        )
    }

    /// What the API server would say just now.
    fn of_answers(&self, answers: &'a [(PodRef, EvictAnswer)]) -> Vec<String> {
        let refused: Vec<_> = answers.iter().filter(|(_, answer)| !is_fine(answer)).collect();
        let head = format!(
            "The API server would allow {} of {} just now, each asked by itself.",
            answers.len() - refused.len(),
            answers.len()
        );
        let said = |(_, answer): &&'a (PodRef, EvictAnswer)| answer_text(answer);
        let lines = self.lines(
            refused,
            |(pod, _)| &pod.uid,
            said,
            |(pod, answer), pods| {
                let name = group_name(pod, pods);
                format!("  not allowed      {name}  {}", answer_text(answer))
            },
        );
        std::iter::once(head).chain(lines).collect()
    }
}

/// It may leave, or has left.
const fn is_fine(answer: &EvictAnswer) -> bool {
    matches!(answer, EvictAnswer::Accepted | EvictAnswer::NotFound)
}

#[cfg(test)]
mod texts;
