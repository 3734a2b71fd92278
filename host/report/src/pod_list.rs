//! Pods of one workload with the same reason share a line: a node has hundreds of pods, and few reasons.

use std::fmt::Display;

use scupper_engine::{Pod, Uid, and_more};

/// How pods are listed for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodList {
    /// Pods of a workload with the same reason share a line.
    #[default]
    ByWorkload,
    /// Each has a line of its own.
    Each,
}

impl PodList {
    /// Groups items about pods, each group at the position of its first one. `pod`: what the item is about; `said`: its
    /// reason.
    pub fn grouped<'a, T, S: PartialEq>(
        self,
        items: impl IntoIterator<Item = T>,
        pod: impl Fn(&T) -> Option<&'a Pod>,
        said: impl Fn(&T) -> S,
    ) -> Vec<Vec<T>> {
        let items = items.into_iter();
        if self == Self::Each {
            return items.map(|item| vec![item]).collect();
        }
        let mut keys: Vec<Option<(&'a Uid, S)>> = Vec::new();
        let mut groups: Vec<Vec<T>> = Vec::new();
        for item in items {
            let controller = pod(&item).and_then(|pod| pod.controller.as_ref());
            let key = controller.map(|controller| (&controller.uid, said(&item)));
            let known = keys.iter().position(|known| key.is_some() && *known == key);
            match known.and_then(|known| groups.get_mut(known)) {
                Some(group) => group.push(item),
                None => {
                    keys.push(key);
                    groups.push(vec![item]);
                }
            }
        }
        groups
    }
}

/// `shop/web-1 and 3 more`, of this many pods in all.
pub fn group_name(first: impl Display, pods: usize) -> String {
    format!("{first}{}", and_more(pods.saturating_sub(1)))
}
