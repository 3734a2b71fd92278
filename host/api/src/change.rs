//! A change in a stream of objects.

/// A change in a stream of objects. Watches recover from breaks and then send a fresh `Listed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T, D = T> {
    /// All objects, as one consistent list.
    Listed(Vec<T>),
    /// An object that is new or has changed.
    Applied(T),
    /// An object was deleted; its last state, or what names it.
    Deleted(D),
}

impl<T, D> Change<T, D> {
    /// The same change of objects that are made from these.
    pub fn map<U, E>(self, each: impl FnMut(T) -> U, deleted: impl FnOnce(D) -> E) -> Change<U, E> {
        let mut each = each;
        match self {
            Self::Listed(all) => Change::Listed(all.into_iter().map(each).collect()),
            Self::Applied(object) => Change::Applied(each(object)),
            Self::Deleted(object) => Change::Deleted(deleted(object)),
        }
    }
}
