//! Drains a node in Slurm first. A `slurmd` that ends kills its jobs, so Slurm stops giving the node jobs, and the pods of
//! `slurmd` leave when the last job has ended.
//!
//! There are two ways to control Slurm: slurm-operator's annotations and conditions, or slurmrestd.

mod operator;
mod reason;
mod settings;
mod slurmrestd;

use scupper_sdk::{
    Call, Description, Draft, Drain, Finding, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    Surroundings, description,
};
use settings::{HeldPods, Settings, Way};
use slurmrestd::naming::Naming;

/// The wave in which the Slurm pods leave.
const WAVE: &str = "slurm";

struct Slurm;

scupper_sdk::export!(Slurm with planner, hooks, surroundings);

impl Policy for Slurm {
    fn describe() -> Description {
        let about =
            description!("Drains the node in Slurm first, and lets Slurm pods go when their jobs have ended")
                .state_version(2)
                .config_schema(include_str!("../config.schema.json"));
        match Settings::read() {
            Ok(settings) if settings.way == Way::Slurmrestd => settings
                .slurmrestd
                .wants()
                .into_iter()
                .fold(about, Description::wants),
            Ok(_) => about.wants(operator::wants()),
            // `check_config` says what is wrong. The grants of the other way are not missing.
            Err(_) if matches!(settings::way(), Ok(Way::Operator)) => about.wants(operator::wants()),
            Err(_) => about,
        }
    }

    fn check_config() -> Vec<Problem> {
        Settings::read().err().unwrap_or_default()
    }
}

impl Planner for Slurm {
    /// Slurm pods leave last, so that the services and storage that jobs may need do not leave before them. A pod that looks
    /// like a Slurm pod but is not selected refuses the drain.
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read().map_err(first_message)?;
        // Otherwise slurmrestd shows the jobs of a node without a selected pod.
        if settings.way == Way::Operator || settings.slurmrestd.naming == Naming::Pods {
            operator::unmatched::refuse(&settings, draft);
        }
        for pod in draft.leaving() {
            if settings.covers(pod) {
                draft.move_to_wave(pod, WAVE);
            }
        }
        Ok(())
    }
}

impl Hooks for Slurm {
    fn phases() -> Vec<Phase> {
        let mut phases = vec![
            Phase::BeforeCordon,
            Phase::BeforeDrain,
            Phase::BeforeWave,
            Phase::AfterDrain,
            Phase::OnCancel,
            Phase::BeforeUncordon,
            Phase::AfterUncordon,
        ];
        // If the jobs end before any pod leaves, a check for each pod would be expensive and useless.
        if Settings::read().is_ok_and(|settings| settings.hold == HeldPods::SlurmPods) {
            phases.push(Phase::BeforeEvict);
        }
        phases
    }

    fn step(call: &Call) -> Outcome {
        let settings = match Settings::read() {
            Ok(settings) => settings,
            Err(problems) => return Outcome::failed(first_message(problems)).into(),
        };
        let workers: Vec<&Pod> = call.pods.iter().filter(|pod| settings.covers(pod)).collect();
        match settings.way {
            Way::Operator => operator::step(call, &settings, &workers),
            Way::Slurmrestd => slurmrestd::step(call, &settings, &workers),
        }
    }
}

impl Surroundings for Slurm {
    /// With slurm-operator there is nothing that a policy could check.
    fn check(node: Option<&Node>) -> Vec<Finding> {
        match Settings::read() {
            Ok(settings) if settings.way == Way::Slurmrestd => slurmrestd::check::check_all(&settings, node),
            Ok(_) => Vec::new(),
            Err(problems) => vec![Finding::error("configuration", first_message(problems), "")],
        }
    }
}

fn first_message(problems: Vec<Problem>) -> String {
    let first = problems.into_iter().next();
    first.map_or_else(String::new, String::from)
}

#[cfg(test)]
mod tests;
