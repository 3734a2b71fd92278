//! Reads many objects of one kind with few requests: one by one, a namespace at once, or those of all namespaces.

use std::collections::BTreeSet;

use super::answers::Answers;
use super::source::{Place, Wanted};

/// Namespaces that are listed one by one. If objects are wanted from more, those of all namespaces come in one list.
const SINGLE_NAMESPACES: usize = 24;

/// The next request for some of the wanted objects.
#[derive(Debug)]
pub(super) enum NextRead {
    /// Only the object that is asked about.
    One,
    /// These.
    List(Wanted),
}

/// How to read an object and others of its kind that are not known yet. `singles`: of a namespace that are read one by one.
pub(super) fn next_read(
    answers: &Answers,
    place: &Place,
    unread: BTreeSet<Place>,
    singles: usize,
) -> NextRead {
    let namespaces: BTreeSet<&String> = unread.iter().map(|(namespace, _)| namespace).collect();
    if namespaces.len() > SINGLE_NAMESPACES && !answers.one_namespace_at_a_time {
        return NextRead::List(Wanted {
            namespace: None,
            places: unread,
        });
    }
    let (namespace, _) = place;
    let beside: BTreeSet<Place> = unread.into_iter().filter(|(of, _)| of == namespace).collect();
    if beside.len() > singles {
        return NextRead::List(Wanted {
            namespace: Some(namespace.clone()),
            places: beside,
        });
    }
    NextRead::One
}
