//! Finds which of thousands of selectors match, without a look at each: by one of the labels that each requires.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Labels, as of a pod or as `matchLabels`.
type Labels = BTreeMap<String, String>;

/// What each selector stands for, by its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorIndex<T>(BTreeMap<String, OfNamespace<T>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct OfNamespace<T> {
    /// By the key and the value of a label that the selector requires.
    by_label: BTreeMap<String, BTreeMap<String, Vec<T>>>,
    /// Their selectors require no label of one certain value.
    others: Vec<T>,
}

impl<T> Default for SelectorIndex<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Default for OfNamespace<T> {
    fn default() -> Self {
        Self {
            by_label: BTreeMap::new(),
            others: Vec::new(),
        }
    }
}

impl<T> SelectorIndex<T> {
    /// Adds what a selector with these `matchLabels` stands for.
    pub fn insert(&mut self, namespace: &str, required: &Labels, what: T) {
        if !self.0.contains_key(namespace) {
            self.0.insert(String::from(namespace), OfNamespace::default());
        }
        if let Some(of_namespace) = self.0.get_mut(namespace) {
            of_namespace.insert(required, what);
        }
    }

    /// All whose selector may match a pod with these labels, in no particular order: each has one label that the selector
    /// requires, and the rest is to be compared.
    pub fn candidates<'a>(
        &'a self,
        namespace: &str,
        labels: &'a Labels,
    ) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let of_namespace = self.0.get(namespace).into_iter();
        of_namespace.flat_map(move |of_namespace| {
            let own = labels
                .iter()
                .filter_map(move |(key, value)| of_namespace.with(key, value));
            own.flatten().chain(&of_namespace.others)
        })
    }
}

impl<T> OfNamespace<T> {
    fn with(&self, key: &str, value: &str) -> Option<&Vec<T>> {
        self.by_label.get(key)?.get(value)
    }

    /// By the label that the fewest others have been added by.
    fn insert(&mut self, required: &Labels, what: T) {
        let of_label = |(key, value): &(&String, &String)| self.with(key, value).map_or(0, Vec::len);
        match required.iter().min_by_key(of_label) {
            Some((key, value)) => {
                let by_value = self.by_label.entry(key.clone()).or_default();
                by_value.entry(value.clone()).or_default().push(what);
            }
            None => self.others.push(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;

    fn labels(text: &str) -> Labels {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// Of 300 selectors over few labels, against each pod there can be.
    #[test]
    fn every_selector_that_matches_is_a_candidate_once() {
        let value = |number: usize, of: usize| ["", "x", "y"][number / of % 3];
        let some = |number: usize| {
            let text = [("a", 1), ("b", 3), ("c", 9)].map(|(key, of)| match value(number, of) {
                "" => String::new(),
                value => [key, "=", value].concat(),
            });
            (["one", "two"][number / 27 % 2], labels(&text.join(",")))
        };
        let selectors: Vec<_> = (0..300).map(some).collect();
        let mut index = SelectorIndex::default();
        for (place, (namespace, required)) in selectors.iter().enumerate() {
            index.insert(namespace, required, place);
        }
        for (namespace, pod) in (0..54).map(some) {
            let matches = |place: &usize| {
                let (of, required) = &selectors[*place];
                *of == namespace && required.iter().all(|(key, value)| pod.get(key) == Some(value))
            };
            let mut found: Vec<_> = index
                .candidates(namespace, &pod)
                .copied()
                .filter(matches)
                .collect();
            found.sort_unstable();
            let all: Vec<_> = (0..selectors.len()).filter(matches).collect();
            assert_eq!(found, all, "{namespace} {pod:?}");
        }
        assert_eq!(index.candidates("three", &labels("a=x")).count(), 0);
    }

    #[test]
    fn a_label_that_many_require_is_not_what_they_are_found_by() {
        let mut index = SelectorIndex::default();
        for app in ["a", "b", "c"] {
            index.insert(
                "shop",
                &labels(&["app=", app, ",app.kubernetes.io/part-of=shop"].concat()),
                app,
            );
        }
        let pod = labels("app=b,app.kubernetes.io/part-of=shop");
        assert!(index.candidates("shop", &pod).count() < 3);
    }
}
