//! The drains of all nodes of a forecast, played on one cluster.

use serde_json::{Value, json};

use super::services;
use super::text::{few, line, quantiles};
use scupper_forecast::{Ends, Learned, Situation, Together};

/// More nodes are not played together: each event concerns all of them.
const MOST_NODES: usize = 50;
/// So many pods are played in all plays together, at most.
const PODS: usize = 500_000;

/// What is known of the drains of all nodes.
pub(super) enum All {
    Played(Vec<String>, Box<Together>),
    /// There are too many.
    NotPlayed(usize),
}

impl All {
    /// `None`: there is only one drain.
    pub(super) fn of(situations: &[&Situation], learned: &Learned, plays: usize) -> Option<Self> {
        match situations.len() {
            0 | 1 => None,
            nodes if nodes > MOST_NODES => Some(Self::NotPlayed(nodes)),
            _ => {
                let pods: usize = situations.iter().map(|one| one.pods.len()).sum();
                let plays = plays.min(PODS / pods.max(1)).max(1);
                let nodes = situations.iter().map(|one| one.node.name.clone());
                let together = Box::new(Together::of(situations, learned, plays));
                Some(Self::Played(nodes.collect(), together))
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let (nodes, together) = match self {
            Self::Played(nodes, together) => (nodes, together),
            Self::NotPlayed(nodes) => {
                return format!(
                    "all {nodes} nodes: not played together; that is done for up to {MOST_NODES} nodes"
                );
            }
        };
        let mut lines = vec![format!(
            "{}: all cordoned first, then drained, {} plays",
            few(nodes),
            together.at_once.plays
        )];
        for (name, ends) in [("at once", &together.at_once), ("in turn", &together.one_by_one)] {
            lines.push(line(name, &text_of(ends)));
        }
        let losses = services::lines(&together.at_once.services);
        lines.extend(
            losses
                .iter()
                .map(|loss| line("service", &format!("at once: {loss}"))),
        );
        lines.join("\n")
    }

    pub(super) fn document(&self) -> Option<Value> {
        let Self::Played(nodes, together) = self else {
            return None;
        };
        Some(json!({
            "nodes": nodes,
            "atOnce": ends(&together.at_once),
            "inTurn": ends(&together.one_by_one),
        }))
    }
}

/// `p50 1m10s, p90 2m00s`
fn text_of(ends: &Ends) -> String {
    let quantiles = quantiles(|tenths| ends.quantile(tenths));
    let not = match ends.plays - ends.drained.len() {
        0 => None,
        all if all == ends.plays => Some("no play drains all of them".to_owned()),
        some => Some(format!("{some} of {} plays do not drain all of them", ends.plays)),
    };
    quantiles.into_iter().chain(not).collect::<Vec<_>>().join("; ")
}

/// The same of one drain, and for programs.
pub(super) fn ends(ends: &Ends) -> Value {
    let seconds = |tenths: usize| ends.quantile(tenths).map(|took| took.as_secs_f64());
    json!({
        "plays": ends.plays,
        "drained": ends.drained.len(),
        "p10Seconds": seconds(1),
        "p50Seconds": seconds(5),
        "p90Seconds": seconds(9),
        "services": ends.services.iter().map(services::document).collect::<Vec<_>>(),
    })
}
