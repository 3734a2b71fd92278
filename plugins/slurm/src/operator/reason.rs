//! The reason that slurm-operator passes on to Slurm, in an annotation of the node.
//!
//! Slurm keeps the first reason that it gets, so the annotation must be there before the cordon.

use scupper_sdk::{
    Call, Phase,
    cluster::{self, Error},
    log,
};

use crate::reason::one_line;
use crate::settings::Settings;

const ANNOTATION: &str = "nodeset.slinky.slurm.net/node-cordon-reason";
/// By this a person, a monitor and this policy know who wrote the reason.
const PREFIX: &str = "[S] [Scupper] ";

/// Says why the node is about to be cordoned. What another tool wrote stays.
pub(crate) fn set(call: &Call, settings: &Settings) -> Result<(), Error> {
    match call.node.annotation(ANNOTATION) {
        Some(value) if !value.starts_with(PREFIX) => {
            log::info!("keeps the reason that somebody else gave Slurm: {value}");
            Ok(())
        }
        _ => cluster::annotate_node(ANNOTATION, &text(call, settings)),
    }
}

/// The same when the node is cordoned already, unless it has any reason.
pub(crate) fn set_if_missing(call: &Call, settings: &Settings) -> Result<(), Error> {
    if call.node.annotation(ANNOTATION).is_some() {
        return Ok(());
    }
    if !call.node.own_cordon {
        log::warn!(
            "the node was cordoned before it had a reason; Slurm may show another one, it keeps the first"
        );
    }
    cluster::annotate_node(ANNOTATION, &text(call, settings))
}

/// Removes the reason of this very drain. One of a drain before it stays until the node is uncordoned.
pub(crate) fn remove_own(call: &Call) -> Result<(), Error> {
    let head = one_line(&format!("{PREFIX}{}", call.drain.name));
    let with_more = format!("{head}:");
    remove_if(|value| value == head || value.starts_with(&with_more))
}

/// Removes the reason when maintenance is over, whichever drain of ours gave it: the uncordon has another name than
/// the drain had. It stays until the node takes pods again, lest the operator puts another in its place; where the
/// cordon is not ours to lift, that moment is not ours to see.
pub(crate) fn clear(call: &Call) -> Result<(), Error> {
    if call.phase == Phase::BeforeUncordon && call.node.own_cordon {
        return Ok(());
    }
    remove_if(|value| value.starts_with(PREFIX))
}

/// Looks at the node as it is now: what was written a moment ago may not have come back through the watch.
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
