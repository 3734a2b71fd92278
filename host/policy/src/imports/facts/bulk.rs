//! Reads many objects of one kind with few requests: one by one, a namespace at once, or those of all namespaces.

use std::collections::BTreeSet;

use scupper_api::facts::{
    FactKind, FactQuery, FactType as _, Owner, PersistentVolumeClaim, Place, PodSpec, Selection,
};
use scupper_engine::Controller;

use super::cache::Answers;
use super::caller::FactCaller;

/// Namespaces that are listed one by one. If objects are wanted from more, those of all namespaces come in one list.
const SINGLE_LISTS: usize = 24;

/// Objects that are read one by one; of owners and claims, in one namespace. If the node's pods have more, they come in one
/// list.
const SINGLE_NAMESPACES: usize = 3;
const SINGLE_OWNERS: usize = 2;
const SINGLE_RESOURCE_CLAIMS: usize = 2;
const SINGLE_VOLUME_CLAIMS: usize = 3;
const SINGLE_VOLUMES: usize = 5;

/// The next request for an object and others of its kind.
#[derive(Debug)]
pub(super) enum NextRead {
    /// Only the object that is asked about.
    One,
    /// All objects of the kind, which are remembered.
    All,
    /// A list, of which these objects are remembered.
    These(FactQuery, BTreeSet<Place>),
}

/// How to read an object and others of its kind that the call's pods have and that are not known yet.
pub(super) fn next_read(answers: &Answers, caller: &FactCaller, kind: &FactKind, place: &Place) -> NextRead {
    let (wanted, singles) = match kind {
        FactKind::PodSpec { .. } => return NextRead::All,
        FactKind::PersistentVolume => return of_volumes(answers, place),
        FactKind::Namespace => return namespaces(answers, caller, place),
        FactKind::Owner { .. } => (owners(answers, caller, kind), SINGLE_OWNERS),
        FactKind::ResourceClaim => {
            let claims = |spec: &PodSpec| {
                let claims = spec.claims.iter();
                claims.filter_map(|claim| claim.claim.clone()).collect()
            };
            (of_specs(answers, caller, claims), SINGLE_RESOURCE_CLAIMS)
        }
        FactKind::PersistentVolumeClaim => {
            let claims = |spec: &PodSpec| {
                let volumes = spec.volumes.iter();
                volumes.filter_map(|volume| volume.claim.clone()).collect()
            };
            (of_specs(answers, caller, claims), SINGLE_VOLUME_CLAIMS)
        }
        _ => return NextRead::One,
    };
    of_namespaces(
        answers,
        kind,
        place,
        unread(answers, kind, place, wanted),
        singles,
    )
}

/// Those of the wanted places, and the one that is asked about, whose objects are not known.
fn unread(answers: &Answers, kind: &FactKind, place: &Place, wanted: BTreeSet<Place>) -> BTreeSet<Place> {
    let known: BTreeSet<&Place> = answers.singles(kind).map(|(place, _)| place).collect();
    let all = wanted.into_iter().chain([place.clone()]);
    all.filter(|place| !known.contains(place)).collect()
}

/// A PersistentVolume, and those of all claims that are known.
fn of_volumes(answers: &Answers, place: &Place) -> NextRead {
    let claims = answers.singles(&FactKind::PersistentVolumeClaim);
    let claims = claims.flat_map(|(_, claim)| claim.iter().flat_map(|found| found.iter()));
    let bound = claims.filter_map(|claim| Some(PersistentVolumeClaim::of(claim)?.volume.as_str()));
    let volumes: BTreeSet<&str> = bound
        .chain([place.1.as_str()])
        .filter(|name| !name.is_empty())
        .collect();
    match volumes.len() > SINGLE_VOLUMES {
        true => NextRead::All,
        false => NextRead::One,
    }
}

/// A namespace, and those of the call's pods.
fn namespaces(answers: &Answers, caller: &FactCaller, place: &Place) -> NextRead {
    let kind = FactKind::Namespace;
    let of_pods = caller.namespaces().into_iter();
    let of_pods: BTreeSet<Place> = of_pods.map(|name| (String::new(), name.to_owned())).collect();
    let is_of_pod = of_pods.contains(place);
    let unread = unread(answers, &kind, place, of_pods);
    let is_many = answers.singles(&kind).count() >= SINGLE_NAMESPACES && unread.len() > SINGLE_NAMESPACES;
    match is_of_pod && is_many {
        true => NextRead::These(FactQuery::all(kind), unread),
        false => NextRead::One,
    }
}

/// `singles`: of a namespace that are read one by one.
fn of_namespaces(
    answers: &Answers,
    kind: &FactKind,
    place: &Place,
    unread: BTreeSet<Place>,
    singles: usize,
) -> NextRead {
    let list = |namespace: Option<String>, places: BTreeSet<Place>| {
        let selection = Selection::These {
            namespace,
            places: places.clone(),
        };
        let kind = kind.clone();
        NextRead::These(FactQuery { kind, selection }, places)
    };
    let namespaces: BTreeSet<&String> = unread.iter().map(|(namespace, _)| namespace).collect();
    if namespaces.len() > SINGLE_LISTS && !answers.one_namespace_at_a_time {
        return list(None, unread);
    }
    let (namespace, _) = place;
    let beside: BTreeSet<Place> = unread.into_iter().filter(|(of, _)| of == namespace).collect();
    if beside.len() > singles {
        return list(Some(namespace.clone()), beside);
    }
    NextRead::One
}

/// The owners of this kind that pods of the call are known to have.
fn owners(answers: &Answers, caller: &FactCaller, kind: &FactKind) -> BTreeSet<Place> {
    let of_pods = caller
        .pods
        .iter()
        .filter_map(|pod| Some((&pod.id.namespace, pod.controller.as_ref()?)));
    let known = answers.all::<Owner>(|kind| matches!(kind, FactKind::Owner { .. }));
    let of_owners = known.filter_map(|owner| Some((&owner.namespace, owner.controller.as_ref()?)));
    let is_like = |(_, reference): &(&String, &Controller)| FactKind::owner(reference) == *kind;
    let all = of_pods.chain(of_owners).filter(is_like);
    all.map(|(namespace, reference)| (namespace.clone(), reference.name.clone()))
        .collect()
}

/// What the specs of the call's pods name, if they were read for this plan.
fn of_specs(
    answers: &Answers,
    caller: &FactCaller,
    names: impl Fn(&PodSpec) -> Vec<String>,
) -> BTreeSet<Place> {
    let of_pod = |pod| {
        let names = answers.listed_spec(pod).map(&names).unwrap_or_default();
        names.into_iter().map(|name| (pod.id.namespace.clone(), name))
    };
    caller.pods.iter().flat_map(of_pod).collect()
}
