//! The drains of all nodes of a forecast, played on one cluster.

use serde_json::{Value, json};

use super::services;
use super::text::{few, line, quantiles};
use scupper_forecast::{Ends, Learned, Situation, Together};

/// What plays may cost. What happens to a pod concerns all drains, and each of them looks at all its pods: a play costs the square
/// of its pods.
const COST: usize = 10_000_000;
/// Fewer plays say nothing.
const LEAST: usize = 5;

/// What is known of the drains of all nodes.
pub(super) enum All {
    Played(Vec<String>, Box<Together>),
    /// They have too many pods.
    NotPlayed {
        nodes: usize,
        pods: usize,
    },
}

impl All {
    /// `None`: there is only one drain.
    pub(super) fn of(situations: &[&Situation], learned: &Learned, plays: usize) -> Option<Self> {
        if situations.len() < 2 {
            return None;
        }
        let pods: usize = situations.iter().map(|one| one.pods.len()).sum();
        if pods > most_pods() {
            let nodes = situations.len();
            return Some(Self::NotPlayed { nodes, pods });
        }
        let plays = plays.min(COST / (pods * pods).max(1));
        let nodes = situations.iter().map(|one| one.node.name.clone());
        let together = Box::new(Together::of(situations, learned, plays));
        Some(Self::Played(nodes.collect(), together))
    }

    pub(super) fn text(&self) -> String {
        let (nodes, together) = match self {
            Self::Played(nodes, together) => (nodes, together),
            Self::NotPlayed { nodes, pods } => {
                let most = most_pods();
                return format!(
                    "all {nodes} nodes: not played together; that is done for up to {most} pods, and they have {pods}"
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

/// More are not played together.
const fn most_pods() -> usize {
    (COST / LEAST).isqrt()
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
