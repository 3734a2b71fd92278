//! What a watch keeps of objects that strangers can create: it looks at each as it arrives, so that neither many objects
//! nor large ones fill the memory.

use super::wire::Object;

/// Objects on one page of a list: as large as the API server accepts them, they stay below some 20 MiB.
const PAGE: u32 = 10;

/// Decides on the objects of one watch.
pub(super) trait Sieve<T>: Send + 'static {
    /// The selector for a server that cannot select by the usual field; `None`: it sends the objects of all nodes.
    fn other_selector(&self) -> Option<String> {
        None
    }

    /// How many objects a page of a list may have; `None`: the usual number.
    fn page_size(&self) -> Option<u32> {
        Some(PAGE)
    }

    /// A full list begins.
    fn begin_list(&mut self) {}

    /// Whether the object is kept. It may lose what nothing needs.
    fn keeps(&mut self, object: &mut T) -> bool;

    /// The object is gone.
    fn forget(&mut self, _object: &T) {}
}

/// Keeps everything: the server selects, and only trusted clients create such objects.
pub(super) struct KeepAll;

impl<T: Object> Sieve<T> for KeepAll {
    fn page_size(&self) -> Option<u32> {
        None
    }

    fn keeps(&mut self, _object: &mut T) -> bool {
        true
    }
}
