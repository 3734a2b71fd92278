//! The endpoints that Services lose while a drain runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{Time, Uid};

use crate::Situation;

/// A Service with pods that leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// How many endpoints are ready before the drain, in the whole cluster.
    pub ready: usize,
    /// Those of them that are pods of the node.
    pub pods: BTreeSet<Uid>,
}

/// What a Service loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLoss {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// How many endpoints are ready before the drain.
    pub ready: usize,
    /// The fewest ready ones at any moment: at least so many in half of all plays, and in nine of ten.
    pub fewest: [usize; 2],
    /// How long some are missing, at most, in half of all plays and in nine of ten. `None`: some do not come back.
    pub missing: [Option<Duration>; 2],
    /// How long none is ready.
    pub none: [Option<Duration>; 2],
}

/// A pod that serves no more, from its eviction until its replacement is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absence {
    pub(crate) from: Time,
    pub(crate) until: Option<Time>,
}

/// What a Service loses in one play.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loss {
    most: usize,
    missing: Span,
    none: Span,
}

/// A sum of times, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Span {
    Of(Duration),
    ForEver,
}

impl Default for Span {
    fn default() -> Self {
        Self::Of(Duration::ZERO)
    }
}

impl Span {
    fn and(self, from: Time, until: Option<Time>) -> Self {
        match (self, until) {
            (Self::Of(sum), Some(until)) => Self::Of(sum + until.since(from)),
            _ => Self::ForEver,
        }
    }

    const fn finite(self) -> Option<Duration> {
        match self {
            Self::Of(span) => Some(span),
            Self::ForEver => None,
        }
    }
}

/// What Services lose in these plays, those that lose nothing left out; the one that is left with the fewest first.
pub(crate) fn losses<'a>(
    situations: impl IntoIterator<Item = &'a Situation>,
    plays: &[&BTreeMap<Uid, Absence>],
) -> Vec<ServiceLoss> {
    let services = merged(situations);
    let losses = services.into_iter().map(|service| {
        let mut losses: Vec<_> = plays.iter().map(|absences| loss(&service, absences)).collect();
        let ready = service.ready;
        ServiceLoss {
            fewest: middle_and_late(&mut losses, |loss| loss.most).map(|most| ready.saturating_sub(most)),
            missing: middle_and_late(&mut losses, |loss| loss.missing).map(Span::finite),
            none: middle_and_late(&mut losses, |loss| loss.none).map(Span::finite),
            namespace: service.namespace,
            name: service.name,
            ready,
        }
    });
    let mut losses: Vec<_> = losses.filter(|loss| loss.fewest[1] < loss.ready).collect();
    losses.sort_by(|one, other| {
        one.fewest[1]
            .cmp(&other.fewest[1])
            .then_with(|| name(one).cmp(&name(other)))
    });
    losses
}

fn name(loss: &ServiceLoss) -> (&str, &str) {
    (&loss.namespace, &loss.name)
}

/// One Service may have pods on several nodes.
fn merged<'a>(situations: impl IntoIterator<Item = &'a Situation>) -> Vec<Service> {
    let mut merged: BTreeMap<(&str, &str), Service> = BTreeMap::new();
    for service in situations.into_iter().flat_map(|situation| &situation.services) {
        let known = merged.entry((&service.namespace, &service.name));
        let known = known.or_insert_with(|| service.clone());
        known.pods.extend(service.pods.iter().cloned());
    }
    merged.into_values().collect()
}

fn loss(service: &Service, absences: &BTreeMap<Uid, Absence>) -> Loss {
    let absent = service.pods.iter().filter_map(|pod| absences.get(pod));
    let mut changes: Vec<(Time, bool)> = Vec::new();
    for absence in absent {
        changes.push((absence.from, true));
        changes.extend(absence.until.map(|until| (until, false)));
    }
    // One that comes back the moment another one leaves takes its place.
    changes.sort();
    let (mut loss, mut missing) = (Loss::default(), 0_usize);
    let mut after = changes.iter().skip(1).map(|(at, _)| Some(*at)).chain([None]);
    for (at, leaves) in &changes {
        missing = if *leaves {
            missing + 1
        } else {
            missing.saturating_sub(1)
        };
        loss.most = loss.most.max(missing);
        let until = after.next().flatten();
        if missing > 0 {
            loss.missing = loss.missing.and(*at, until);
        }
        if missing > 0 && missing >= service.ready {
            loss.none = loss.none.and(*at, until);
        }
    }
    loss
}

/// What half of all plays do not exceed, and nine of ten.
fn middle_and_late<T: Ord + Copy + Default>(losses: &mut [Loss], of: impl Fn(&Loss) -> T) -> [T; 2] {
    losses.sort_by_key(&of);
    [5, 9].map(|tenths| {
        losses
            .get(crate::place(losses.len(), tenths))
            .map(&of)
            .unwrap_or_default()
    })
}
