//! The objects, their versions and their history. Every write uses [`Table::put`] or [`Table::take`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::clock::Clock;
use super::fields;
use super::kinds::Kind;

/// The key of an object. Sorted by resource, namespace, name: the order of lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(kind: &Kind, namespace: &str, name: &str) -> Self {
        Self {
            resource: kind.resource(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) key: Key,
    /// The object before; `None` for a creation.
    pub(crate) before: Option<Arc<Value>>,
    /// The object as written, or as it was removed.
    pub(crate) object: Arc<Value>,
    pub(crate) gone: bool,
}

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kinds: Vec<Arc<Kind>>,
    pub(crate) clock: Clock,
    objects: BTreeMap<Key, Arc<Value>>,
    changes: VecDeque<Arc<Change>>,
    /// The version of the last write.
    pub(crate) version: u64,
    /// Watches and lists of older versions are refused.
    pub(crate) oldest: u64,
    /// How many changes are kept.
    keep: usize,
    uids: u64,
}

/// A new server is past its first versions: 1 is too old, as on a real one.
const FIRST_VERSION: u64 = 200;

impl Table {
    pub(crate) fn new(kinds: Vec<Arc<Kind>>, keep: usize) -> Self {
        Self {
            kinds,
            clock: Clock::start(),
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            version: FIRST_VERSION,
            oldest: FIRST_VERSION,
            keep,
            uids: 0,
        }
    }

    /// The kind of a resource name (`pods`, `leases.coordination.k8s.io`).
    pub(crate) fn kind(&self, resource: &str) -> Option<Arc<Kind>> {
        self.kinds.iter().find(|it| it.resource() == resource).cloned()
    }

    /// The kind of an object, by its `apiVersion` and `kind`.
    pub(crate) fn kind_of(&self, object: &Value) -> Option<Arc<Kind>> {
        let (version, kind) = (fields::text(object, "/apiVersion"), fields::text(object, "/kind"));
        self.kinds
            .iter()
            .find(|it| it.kind == kind && it.api_version() == version)
            .cloned()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// The objects of a resource, of one namespace or of all, sorted.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let start = Key {
            resource: resource.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        self.objects.range(start..).take_while(move |(key, _)| {
            key.resource == resource && namespace.is_none_or(|it| it == key.namespace)
        })
    }

    /// The objects of a resource as they were at a version that is not older than the history; `None`: as they are now.
    pub(crate) fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        version: u64,
    ) -> Option<BTreeMap<Key, Arc<Value>>> {
        let is_of_list =
            |key: &Key| key.resource == resource && namespace.is_none_or(|it| it == key.namespace);
        let later = self.changes.iter().rev();
        let later = later.take_while(|it| it.version > version);
        let mut later = later.filter(|it| is_of_list(&it.key)).peekable();
        later.peek()?;
        let mut then: BTreeMap<Key, Arc<Value>> = self
            .list(resource, namespace)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        for change in later {
            match &change.before {
                Some(before) => then.insert(change.key.clone(), Arc::clone(before)),
                None => then.remove(&change.key),
            };
        }
        Some(then)
    }

    /// The changes after `version`; `None` if some of them have been dropped.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        if self
            .changes
            .front()
            .is_some_and(|first| first.version > version + 1)
        {
            return None;
        }
        let from = self.changes.partition_point(|it| it.version <= version);
        Some(self.changes.range(from..))
    }

    /// Writes an object under a new version.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        fields::set(
            &mut object,
            "/metadata/resourceVersion",
            self.version.to_string().into(),
        );
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.record(Change {
            version: self.version,
            key,
            before,
            object: Arc::clone(&object),
            gone: false,
        });
        object
    }

    /// Removes an object. Returns it with the version of its removal.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut object = Value::clone(&before);
        fields::set(
            &mut object,
            "/metadata/resourceVersion",
            self.version.to_string().into(),
        );
        let object = Arc::new(object);
        let key = key.clone();
        self.record(Change {
            version: self.version,
            key,
            before: Some(before),
            object: Arc::clone(&object),
            gone: true,
        });
        Some(object)
    }

    /// Refuses watches from any version before this one.
    pub(crate) fn compact(&mut self) {
        self.oldest = self.version;
    }

    /// A new UID.
    pub(crate) fn new_uid(&mut self) -> String {
        self.uids += 1;
        let (high, low) = (self.uids >> 12, self.uids & 0xfff);
        format!("5c09be00-0000-4{low:03x}-8000-{high:012x}")
    }

    fn record(&mut self, change: Change) {
        if self.changes.len() >= self.keep
            && let Some(dropped) = self.changes.pop_front()
        {
            self.oldest = self.oldest.max(dropped.version);
        }
        self.changes.push_back(Arc::new(change));
    }
}
