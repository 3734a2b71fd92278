//! Where pods can come back, in lines and for programs.

use serde_json::{Value, json};

use super::room::{Homeless, NodeRoom};
use super::text::{TEXT, few};
use scupper_common::text::one_line;
use scupper_placement::{Filter, NOT_MODELLED, Refusal};
use scupper_report::count;

/// Names of lines with their texts.
pub(super) fn lines(room: &Result<NodeRoom, String>) -> Vec<(&'static str, String)> {
    let room = match room {
        Ok(room) => room,
        Err(why) => return vec![("room", format!("not looked at: {}", one_line(why, 4 * TEXT)))],
    };
    let nowhere = room.nowhere.iter().map(|one| ("nowhere", nowhere(one)));
    let together = room.together.iter().map(|one| ("together", together(one)));
    let others = few(&room.other_schedulers);
    let others =
        (!others.is_empty()).then(|| format!("not looked at for {others}: another scheduler places them"));
    let volumes = room.volumes_unread.as_ref();
    let volumes = volumes.map(|why| format!("looked at without volumes: {}", one_line(why, 4 * TEXT)));
    let unknown = others.into_iter().chain(volumes).map(|text| ("room", text));
    nowhere.chain(together).chain(unknown).collect()
}

fn nowhere(one: &Homeless) -> String {
    format!("{}: {}: {}", pods(one), no_room(one), reasons(one))
}

fn together(one: &Homeless) -> String {
    let would = match few(&one.fits_on) {
        nodes if one.alone && !nodes.is_empty() => format!("; {nodes} would if not drained"),
        _ => String::new(),
    };
    format!(
        "{}: with all these nodes drained at once, {}{would}: {}",
        pods(one),
        no_room(one),
        reasons(one)
    )
}

/// Of the nodes as they are: more may come.
const fn no_room(one: &Homeless) -> &'static str {
    match one.alone {
        true => "no node has room for it",
        false => "no node has room once the other replacements are placed",
    }
}

/// `shop/cart-0` or `ReplicaSet shop/cart (3 pods)`
fn pods(one: &Homeless) -> String {
    let text = match &one.pods[..] {
        [only] => only.clone(),
        several => format!("{} ({})", one.workload, count(several.len(), "pod")),
    };
    one_line(&text, TEXT)
}

/// Labels, taints and resources have the names that others gave them.
fn reasons(one: &Homeless) -> String {
    one_line(&one.refusals.to_string(), 4 * TEXT)
}

pub(super) fn document(room: &NodeRoom) -> Value {
    let filters = Filter::ALL
        .into_iter()
        .filter(|filter| *filter != Filter::Drained);
    json!({
        "nodes": room.nodes,
        "pods": room.pods,
        "nowhere": room.nowhere.iter().map(homeless).collect::<Vec<_>>(),
        "together": room.together.iter().map(homeless).collect::<Vec<_>>(),
        "otherSchedulers": room.other_schedulers,
        "volumesUnread": room.volumes_unread,
        "filters": filters.map(Filter::name).collect::<Vec<_>>(),
        "notModelled": NOT_MODELLED,
    })
}

fn homeless(one: &Homeless) -> Value {
    let refusal = |(refusal, nodes): (&Refusal, usize)| json!({"filter": refusal.filter.name(), "detail": refusal.detail, "nodes": nodes});
    json!({
        "workload": one.workload.to_string(),
        "pods": one.pods,
        "alone": one.alone,
        "fitsOn": one.fits_on,
        "refusals": one.refusals.sorted().into_iter().map(refusal).collect::<Vec<_>>(),
    })
}
