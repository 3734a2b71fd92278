//! Formats the state of the nodes so that it fits the terminal: a line for each node, and below it its main blockers.
//! The input is facts, a size and a time, nothing else.

use std::time::Duration;

use scupper_engine::{HumanDuration, Time};

use super::blockers::Blockers;
use super::node_progress::NodeSnapshot;
use crate::messages::one_line;
use scupper_screen::{Size, bar, cut, padded, share, width};

/// Returns at most two thirds of the rows, because scrolling output also needs room. `over`: the number of finished
/// nodes and the total.
pub(super) fn lines(nodes: &[NodeSnapshot], over: (usize, usize), room: Size, now: Time) -> Vec<String> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let rows = (room.rows * 2 / 3).max(1);
    let (over, all) = over;
    let sum = (all > 1 && rows > 1).then(|| format!("{over} of {all} nodes finished"));
    let rows = rows - usize::from(sum.is_some());
    let fit = if nodes.len() > rows { rows - 1 } else { nodes.len() };
    let (nodes, unseen) = nodes.split_at_checked(fit).unwrap_or((nodes, &[]));
    let blockers: Vec<Blockers<'_>> = nodes.iter().map(|node| Blockers::of(node, now)).collect();
    let wanted: Vec<usize> = blockers.iter().map(Blockers::rows).collect();
    let taken = nodes.len() + usize::from(!unseen.is_empty());
    let rows = share(rows.saturating_sub(taken), &wanted);
    let names = nodes.iter().map(|node| width(&node.node)).max().unwrap_or(0);
    let mut lines = Vec::new();
    for ((node, blockers), rows) in nodes.iter().zip(&blockers).zip(rows) {
        lines.push(head(node, names, room.columns, now));
        lines.extend(blockers.lines(rows, room.columns));
    }
    if !unseen.is_empty() {
        lines.push(format!("{} more nodes are under way", unseen.len()));
    }
    lines.extend(sum);
    let fitted = lines.iter().map(|line| cut(line, room.columns).into_owned());
    fitted.collect()
}

/// The line of a node, with as many facts as fit.
fn head(node: &NodeSnapshot, name: usize, columns: usize, now: Time) -> String {
    let name = padded(&one_line(&node.node), name);
    let phase_text = one_line(&node.phase_text);
    let gone = node.pods.map(|(gone, of)| format!("{gone}/{of} gone"));
    let barred = node
        .pods
        .map(|(gone, of)| format!("{} {gone}/{of} gone", bar(gone, of)));
    let wave = node
        .wave
        .as_ref()
        .map(|wave| format!("wave {}/{}", wave.number, wave.of));
    let waved = node
        .wave
        .as_ref()
        .map(|it| format!("wave {}/{} {}", it.number, it.of, one_line(&it.name)));
    let [estimated, roughly, time, short] = times(node, now).map(Some);
    let (name, phase_text) = (Some(name), Some(phase_text));
    let nothing = None;
    let choices = [
        [&name, &phase_text, &barred, &waved, &estimated],
        [&name, &phase_text, &barred, &wave, &estimated],
        [&name, &phase_text, &gone, &wave, &estimated],
        [&name, &phase_text, &gone, &wave, &roughly],
        [&name, &phase_text, &barred, &wave, &time],
        [&name, &phase_text, &gone, &wave, &time],
        [&name, &phase_text, &gone, &nothing, &time],
        [&name, &phase_text, &gone, &nothing, &short],
        [&name, &nothing, &gone, &nothing, &short],
    ];
    let joined = choices.iter().map(|parts| {
        let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
        parts.join("  ")
    });
    let mut last = String::new();
    for line in joined {
        if width(&line) <= columns {
            return line;
        }
        last = line;
    }
    last
}

/// How long it has taken and may still take: with the estimate, with a short one, with none, and in few characters.
fn times(node: &NodeSnapshot, now: Time) -> [String; 4] {
    let spent = HumanDuration(Duration::from_secs(now.since(node.began).as_secs())).to_string();
    let left = node.deadline.map(|deadline| time_left(deadline, now));
    let ends = |text: Option<String>| text.map(|text| format!("ends {text}"));
    let joined = |ends: Option<String>| {
        let parts = [Some(spent.clone()), ends, left.clone()].into_iter().flatten();
        parts.collect::<Vec<_>>().join(", ")
    };
    let estimate = node.estimate.as_ref();
    [
        joined(ends(estimate.and_then(|estimate| estimate.text(now)))),
        joined(ends(estimate.and_then(|estimate| estimate.short_text(now)))),
        joined(None),
        left.clone().unwrap_or_else(|| spent.clone()),
    ]
}

fn time_left(deadline: Time, now: Time) -> String {
    let whole = |span: Duration| Duration::from_secs(span.as_secs());
    if deadline > now {
        format!("{} left", HumanDuration(whole(deadline.since(now))))
    } else {
        format!("overdue by {}", HumanDuration(whole(now.since(deadline))))
    }
}

#[cfg(test)]
mod tests;
