//! Pods of one workload of which the same is to be said share a line: a node has hundreds of pods, and few reasons.

use scupper_engine::{Pod, Uid, and_more};

/// How pods are listed for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodList {
    /// Pods of a workload of which the same is to be said share a line.
    #[default]
    ByWorkload,
    /// Each has a line of its own.
    Each,
}

impl PodList {
    /// Groups items about pods, each group at the position of its first one. `pod`: what the item is about; `said`: what
    /// is to be said of it.
    pub fn grouped<'a, T, S: PartialEq>(
        self,
        items: impl IntoIterator<Item = T>,
        pod: impl Fn(&T) -> Option<&'a Pod>,
        said: impl Fn(&T) -> S,
    ) -> Vec<Vec<T>> {
        let mut groups: Vec<(Option<(&'a Uid, S)>, Vec<T>)> = Vec::new();
        for item in items {
            let key = pod(&item)
                .filter(|_| self == Self::ByWorkload)
                .and_then(|pod| pod.controller.as_ref())
                .map(|controller| (&controller.uid, said(&item)));
            match groups
                .iter_mut()
                .find(|(known, _)| key.is_some() && *known == key)
            {
                Some((_, group)) => group.push(item),
                None => groups.push((key, vec![item])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// `shop/web-1 and 3 more`, of this many pods in all.
pub fn name_of_group(first: &str, pods: usize) -> String {
    format!("{first}{}", and_more(pods.saturating_sub(1)))
}
