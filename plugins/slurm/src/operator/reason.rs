//! The reason that slurm-operator passes on to Slurm, in an annotation of the node.
//!
//! Slurm keeps the first reason that it gets, so the annotation must be set before the cordon.

use scupper_sdk::{
    Call, Outcome, Phase,
    cluster::{self, Error},
    log,
};

use crate::reason::one_line;
use crate::settings::Settings;

const ANNOTATION: &str = "nodeset.slinky.slurm.net/node-cordon-reason";
/// Shows people, monitors and this policy who wrote the reason.
const PREFIX: &str = "[S] [Scupper] ";

/// Sets the reason of the coming cordon. A reason of another tool stays.
pub(crate) fn set(call: &Call, settings: &Settings) -> Result<(), Error> {
    match call.node.annotation(ANNOTATION) {
        Some(value) if !value.starts_with(PREFIX) => {
            log::info!("keeping the reason that someone else gave Slurm: {value}");
            Ok(())
        }
        _ => cluster::annotate_node(ANNOTATION, &text(call, settings)),
    }
}

/// Sets the reason on a node that is already cordoned, unless it has one.
pub(crate) fn set_if_missing(call: &Call, settings: &Settings) -> Result<(), Error> {
    if call.node.annotation(ANNOTATION).is_some() {
        return Ok(());
    }
    if !call.node.own_cordon {
        log::warn!(
            "the node was cordoned before the reason was set; Slurm keeps the first reason and may show another one"
        );
    }
    cluster::annotate_node(ANNOTATION, &text(call, settings))
}

/// Removes the reason of this drain. That of an earlier drain stays until the uncordon.
pub(crate) fn remove_own(call: &Call) -> Result<(), Error> {
    remove_if(is_of(call))
}

/// The cordon is lifted and the reason of this drain stays. If the hook fails, Scupper reports that until an uncordon has
/// removed it.
pub(crate) fn keep_own(call: &Call) -> Outcome {
    match cluster::get_node() {
        Ok(node) if node.annotation(ANNOTATION).is_some_and(is_of(call)) => Outcome::failed(format!(
            "the annotation {ANNOTATION} stays, as configured (`on-failure: keep`)"
        ))
        .into(),
        Ok(_) => Outcome::Done,
        Err(error) => error.into(),
    }
}

/// Whether a reason is that of this drain.
fn is_of(call: &Call) -> impl Fn(&str) -> bool + use<> {
    let head = one_line(&format!("{PREFIX}{}", call.drain.name));
    let with_more = format!("{head}:");
    move |value| value == head || value.starts_with(&with_more)
}

/// Removes the reason of any drain of ours after the maintenance: the uncordon has another name than the drain had. Until
/// the node is schedulable the reason stays, else slurm-operator would set its own; under a foreign cordon we do not see
/// that moment.
pub(crate) fn clear(call: &Call) -> Result<(), Error> {
    if call.phase == Phase::BeforeUncordon && call.node.own_cordon {
        return Ok(());
    }
    remove_if(|value| value.starts_with(PREFIX))
}

/// Reads the node from the API server, because the watch may not show the latest write yet.
fn remove_if(ours: impl Fn(&str) -> bool) -> Result<(), Error> {
    match cluster::get_node()?.annotation(ANNOTATION) {
        Some(value) if ours(value) => cluster::remove_node_annotation(ANNOTATION),
        _ => Ok(()),
    }
}

fn text(call: &Call, settings: &Settings) -> String {
    let head = format!("{PREFIX}{}", call.drain.name);
    one_line(&match &settings.reason {
        Some(reason) => format!("{head}: {reason}"),
        None => head,
    })
}
