//! The answers of one plan or step. Each query is answered once, and its answer stays the same; what seldom changes also
//! counts for the next plans of the drain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scupper_api::facts::{FactKind, FactObject, FactQuery, FactType, Place, PodSpec, Selection, Texts};
use scupper_engine::Time;
use scupper_policy_spec::Fact;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::bulk::{NextRead, next_read};
use super::caller::{CallerPod, FactCaller};
use super::peers::KnownPeers;
use crate::FactError;

/// Namespaces that one plan or step may ask for beyond those of its pods. All other facts follow from the pods, whose number is
/// not the guest's choice.
const OTHER_NAMESPACES: usize = 256;

/// Bytes of labels, annotations and other texts that one plan or step may learn in any case. The API server accepts 256 KiB for
/// each object.
const BYTES: usize = 8 * 1024 * 1024;

/// Bytes that it may learn for each of its pods, if that is more.
const BYTES_OF_POD: usize = 64 * 1024;

/// How long one fetch may take. A slow API server holds the plan up once, because a plan without an answer is discarded.
const ONE_FETCH: Duration = Duration::from_secs(10);

/// How long all fetches of a plan or step may take, and a list of many pages, such as one of all pods of a namespace.
const ALL_FETCHES: Duration = Duration::from_secs(30);

/// How long a fact that seldom changes counts for the next plans of the same drain, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// An answer, or why there is none.
pub(crate) type Answer<T> = Result<T, AskError>;

/// The objects of an answer.
pub(super) type Objects = Arc<[FactObject]>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskError {
    /// There is no such object.
    NotFound(String),
    /// It could not be read.
    Unavailable(String),
    /// Too many different facts.
    TooMany,
}

/// The answers of one plan or one step.
#[derive(Debug, Default)]
pub struct Facts {
    /// Nothing is asked, because there is no drain: every object exists and is blank.
    is_blank: bool,
    /// What earlier plans of the drain have learned, and when this plan began.
    kept: Option<(Arc<Mutex<KeptFacts>>, Time)>,
    answers: tokio::sync::Mutex<Answers>,
    /// Why the first fetch failed that did.
    trouble: Mutex<Option<String>>,
}

/// The facts of one drain: those of its current plan, and what lasts longer than one plan.
#[derive(Debug, Default)]
pub struct DrainFacts {
    kept: Arc<Mutex<KeptFacts>>,
    plan: Option<(u64, Arc<Facts>)>,
}

/// What seldom changes, with the time when it was read.
type KeptFacts = BTreeMap<FactQuery, (Time, Objects)>;

#[derive(Debug, Default)]
pub(super) struct Answers {
    known: BTreeMap<FactQuery, Answer<Objects>>,
    other_namespaces: usize,
    bytes: usize,
    /// The answers that are made of several objects, and whose bytes are counted.
    counted: BTreeSet<(Fact, Vec<String>)>,
    /// There is no right to list the objects of all namespaces.
    pub(super) one_namespace_at_a_time: bool,
    spent: Duration,
    /// The lists of peers that were read, for a watch of the same.
    pub(super) known_peers: Vec<KnownPeers>,
}

/// One call that asks, with the answers so far.
pub(super) struct FactReader<'a> {
    facts: &'a Facts,
    pub(super) caller: &'a FactCaller,
    pub(super) answers: tokio::sync::MutexGuard<'a, Answers>,
}

impl DrainFacts {
    /// The facts of the plan that the chain of planners with this number makes.
    pub fn of_plan(&mut self, chain: u64, now: Time) -> Arc<Facts> {
        match &self.plan {
            Some((same, facts)) if *same == chain => Arc::clone(facts),
            _ => {
                let facts = Arc::new(Facts {
                    kept: Some((Arc::clone(&self.kept), now)),
                    ..Facts::default()
                });
                self.plan = Some((chain, Arc::clone(&facts)));
                facts
            }
        }
    }
}

impl Facts {
    /// For calls outside of drains, while a policy is loaded: every object exists, and has no labels.
    pub(crate) fn blank() -> Self {
        Self {
            is_blank: true,
            ..Self::default()
        }
    }

    /// Begins a question of a call. Questions of one plan wait for each other.
    pub(super) async fn reader<'a>(&'a self, caller: &'a FactCaller) -> FactReader<'a> {
        FactReader {
            facts: self,
            caller,
            answers: self.answers.lock().await,
        }
    }

    /// Why a fact could not be read, if one could not.
    pub fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// What a call has learned of peers. None while it is being made.
    pub fn known_peers(&self) -> Vec<KnownPeers> {
        let answers = self.answers.try_lock();
        answers
            .map(|answers| answers.known_peers.clone())
            .unwrap_or_default()
    }

    /// All objects that a plan or a step has learned of. None while it is being made.
    pub fn objects(&self) -> Vec<FactObject> {
        let Ok(answers) = self.answers.try_lock() else {
            return Vec::new();
        };
        let known = answers.known.values().filter_map(|answer| answer.as_ref().ok());
        known.flat_map(|objects| objects.iter().cloned()).collect()
    }

    /// What an earlier plan of the drain has learned a short time ago.
    fn kept(&self, query: &FactQuery) -> Option<Objects> {
        let (kept, now) = self.kept.as_ref()?;
        let kept = locked(kept);
        let (read, objects) = kept.get(query)?;
        let age = now.as_millis().saturating_sub(read.as_millis());
        (age < KEPT_MS).then(|| Arc::clone(objects))
    }

    fn keep(&self, query: &FactQuery, objects: &Objects) {
        let is_absent = objects.is_empty() && query.is_of_one();
        if let Some((kept, now)) = &self.kept
            && query.kind.seldom_changes()
            && objects.iter().all(FactObject::is_settled)
            && !is_absent
        {
            locked(kept).insert(query.clone(), (*now, Arc::clone(objects)));
        }
    }
}

impl FactReader<'_> {
    /// Nothing is asked: see [`Facts::blank`].
    pub(super) const fn is_blank(&self) -> bool {
        self.facts.is_blank
    }

    /// The objects of a query that the caller keeps.
    pub(super) async fn ask(
        &mut self,
        query: FactQuery,
        keeps: impl Fn(&FactObject) -> bool,
    ) -> Answer<Objects> {
        if let Some(known) = self.known(&query) {
            return known;
        }
        let read = self.fetch(&query).await;
        self.learn(
            query,
            read.map(|objects| objects.into_iter().filter(keeps).collect()),
        )
    }

    /// The object at a place, if it exists. It is read by itself, or with others of its kind that the call's pods have.
    pub(super) async fn one<T: FactType + Clone>(
        &mut self,
        kind: FactKind,
        place: Place,
    ) -> Answer<Option<T>> {
        let query = FactQuery::one(kind, place.clone());
        loop {
            if let Some(known) = self.known(&query) {
                return Ok(known?.first().and_then(T::of).cloned());
            }
            match next_read(&self.answers, self.caller, &query.kind, &place) {
                NextRead::One if !self.may_read(&query.kind, &place) => return Err(AskError::TooMany),
                NextRead::One => {
                    let read = self.fetch(&query).await;
                    let answer = self.learn(query, read)?;
                    return Ok(answer.first().and_then(T::of).cloned());
                }
                NextRead::All => {
                    let all = FactQuery::all(query.kind.clone());
                    let read = self.fetch(&all).await;
                    let _learned = self.learn(all, read);
                }
                NextRead::These(list, places) => {
                    let read = match self.fetch(&list).await {
                        Err(FactError::Forbidden(_)) if list.is_of_all_namespaces() => {
                            self.answers.one_namespace_at_a_time = true;
                            continue;
                        }
                        read => read,
                    };
                    self.learn_each(&list.kind, places, read.map_err(AskError::from));
                }
            }
        }
    }

    /// What is known of a query: in this plan, or from a short time ago.
    fn known(&mut self, query: &FactQuery) -> Option<Answer<Objects>> {
        if let Some(known) = self.answers.known(query) {
            return Some(known);
        }
        if self.facts.is_blank {
            return Some(Ok(Objects::default()));
        }
        let all = FactQuery::all(query.kind.clone());
        let from_list = || {
            let found = at(&self.facts.kept(&all)?, query.place()?);
            (!found.is_empty()).then_some(found)
        };
        let kept = self.facts.kept(query).or_else(from_list)?;
        self.answers.known.insert(query.clone(), Ok(Arc::clone(&kept)));
        Some(Ok(kept))
    }

    /// Remembers an answer.
    fn learn(
        &mut self,
        query: FactQuery,
        read: Result<Vec<FactObject>, impl Into<AskError>>,
    ) -> Answer<Objects> {
        let answer = read.map_err(Into::into).and_then(|mut objects| {
            self.admit(objects.iter().map(bytes).sum())?;
            if is_searched(&query.kind) {
                objects.sort_by_cached_key(FactObject::place);
            }
            Ok(Objects::from(objects))
        });
        if let Ok(objects) = &answer {
            self.facts.keep(&query, objects);
        }
        // An error that the guest caused is not kept: the names of namespaces are the guest's.
        if query.kind != FactKind::Namespace || answer != Err(AskError::TooMany) {
            self.answers.known.insert(query, answer.clone());
        }
        answer
    }

    /// Remembers the answers about single objects that a list contains.
    fn learn_each(&mut self, kind: &FactKind, places: BTreeSet<Place>, read: Answer<Vec<FactObject>>) {
        let by_place = |objects: Vec<FactObject>| -> BTreeMap<Place, FactObject> {
            objects
                .into_iter()
                .map(|object| (object.place(), object))
                .collect()
        };
        let mut listed = read.map(by_place);
        for place in places {
            let found = listed
                .as_mut()
                .map(|listed| listed.remove(&place).into_iter().collect());
            let found = found.map_err(|error| error.clone());
            let query = FactQuery::one(kind.clone(), place);
            let answer = self.learn(query.clone(), found);
            self.answers.known.entry(query).or_insert(answer);
        }
    }

    /// Counts the bytes of an answer that is made of several objects, once.
    pub(super) fn count(&mut self, fact: Fact, of: &[&str], bytes: usize) -> Answer<()> {
        let key = (fact, of.iter().map(|text| (*text).to_owned()).collect());
        if !self.answers.counted.contains(&key) {
            self.admit(bytes)?;
            self.answers.counted.insert(key);
        }
        Ok(())
    }

    fn admit(&mut self, bytes: usize) -> Answer<()> {
        let answers = &mut *self.answers;
        answers.bytes = answers.bytes.saturating_add(bytes);
        if answers.bytes > BYTES.max(self.caller.pods.len().saturating_mul(BYTES_OF_POD)) {
            return Err(AskError::TooMany);
        }
        Ok(())
    }

    /// Counts the namespaces that the guest chooses.
    fn may_read(&mut self, kind: &FactKind, (_, name): &Place) -> bool {
        let is_others = *kind == FactKind::Namespace && !self.caller.namespaces().contains(name.as_str());
        self.answers.other_namespaces += usize::from(is_others);
        !is_others || self.answers.other_namespaces <= OTHER_NAMESPACES
    }

    /// Sends a query in a task of its own: what decoding the answer costs is not the guest's CPU time.
    async fn fetch(&mut self, query: &FactQuery) -> Result<Vec<FactObject>, FactError> {
        // The plan is discarded already: the API server need not be asked for the rest.
        if let Some(trouble) = self.facts.trouble() {
            return Err(FactError::Unavailable(trouble));
        }
        let most = match query.selection {
            Selection::These { .. } | Selection::Peers(_) => ALL_FETCHES,
            _ => ONE_FETCH,
        };
        let limit = most.min(ALL_FETCHES.saturating_sub(self.answers.spent));
        let begun = Instant::now();
        let (cluster, asked) = (Arc::clone(&self.caller.cluster), query.clone());
        let reading = async move { cluster.ask(&asked).await };
        // The task ends with the set, should the call be given up.
        let mut task = JoinSet::new();
        task.spawn(tokio::time::timeout(limit, reading).in_current_span());
        let read = task.join_next().await;
        self.answers.spent = self.answers.spent.saturating_add(begun.elapsed());
        let why = match read {
            Some(Ok(Ok(Err(FactError::Forbidden(why))))) if !query.is_of_all_namespaces() => why,
            Some(Ok(Ok(Err(FactError::Unavailable(why))))) => why,
            Some(Ok(Ok(answer))) => return answer,
            Some(Ok(Err(_elapsed))) => {
                format!("the API server did not answer within {} s", limit.as_secs_f32())
            }
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => "the driver is about to stop".to_owned(),
        };
        locked(&self.facts.trouble).get_or_insert_with(|| why.clone());
        Err(FactError::Unavailable(why))
    }
}

impl Answers {
    /// What this plan knows of a query: by itself, or from a list of all objects.
    fn known(&self, query: &FactQuery) -> Option<Answer<Objects>> {
        if let Some(known) = self.known.get(query) {
            return Some(known.clone());
        }
        let place = query.place()?;
        let all = self.known.get(&FactQuery::all(query.kind.clone()))?;
        Some(match all {
            Ok(all) => Ok(at(all, place)),
            Err(error) => Err(error.clone()),
        })
    }

    /// The answers about single objects of a kind.
    pub(super) fn singles<'a>(
        &'a self,
        kind: &'a FactKind,
    ) -> impl Iterator<Item = (&'a Place, &'a Answer<Objects>)> {
        let of_kind = self.known.iter().filter(move |(query, _)| query.kind == *kind);
        of_kind.filter_map(|(query, answer)| Some((query.place()?, answer)))
    }

    /// The objects of some kinds that this plan knows.
    pub(super) fn all<T: FactType + 'static>(
        &self,
        is_one: impl Fn(&FactKind) -> bool,
    ) -> impl Iterator<Item = &T> {
        let of_kind = self.known.iter().filter(move |(query, _)| is_one(&query.kind));
        let objects = of_kind.flat_map(|(_, answer)| answer.iter().flat_map(|objects| objects.iter()));
        objects.filter_map(T::of)
    }

    /// The spec of a pod, if the specs of the node's pods were read for this plan.
    pub(super) fn listed_spec(&self, pod: &CallerPod) -> Option<&PodSpec> {
        let (kind, place) = spec_of(pod);
        let list = self.known.get(&FactQuery::all(kind))?.as_ref().ok()?;
        placed(list, &place).find_map(PodSpec::of)
    }
}

/// The kind of objects that tell a pod's spec, and the place of the pod's.
pub(super) fn spec_of(pod: &CallerPod) -> (FactKind, Place) {
    let kind = FactKind::PodSpec {
        node: pod.node.clone(),
    };
    (kind, (String::new(), pod.id.uid.as_str().to_owned()))
}

/// Of these kinds a list is searched by place.
const fn is_searched(kind: &FactKind) -> bool {
    matches!(
        kind,
        FactKind::PodSpec { .. } | FactKind::PersistentVolume | FactKind::VolumeAttachment
    )
}

/// Those of these objects that are at a place. They are ordered by it.
fn placed<'a>(objects: &'a [FactObject], place: &Place) -> impl Iterator<Item = &'a FactObject> {
    let begin = objects.partition_point(|object| object.place() < *place);
    let found = objects.iter().skip(begin);
    found.take_while(move |object| object.place() == *place)
}

/// The same, to be kept.
pub(super) fn at(objects: &Objects, place: &Place) -> Objects {
    placed(objects, place).cloned().collect()
}

/// The bytes of what an object tells by itself; of others they are counted with what is made of them.
fn bytes(object: &FactObject) -> usize {
    match object {
        FactObject::LifecycleEvent(metadata) => texts([&metadata.labels, &metadata.annotations]),
        FactObject::Namespace(namespace) => {
            texts([&namespace.metadata.labels, &namespace.metadata.annotations])
        }
        FactObject::Owner(owner) => texts([&owner.labels, &owner.annotations]),
        FactObject::DrainRequest(request) => request.bytes(),
        _ => 0,
    }
}

fn texts(maps: [&Texts; 2]) -> usize {
    let entries = maps.into_iter().flatten();
    entries
        .map(|(key, value)| key.len().saturating_add(value.len()))
        .sum()
}

impl From<FactError> for AskError {
    fn from(error: FactError) -> Self {
        match error {
            FactError::NotFound(what) => Self::NotFound(what),
            FactError::Forbidden(why) | FactError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

/// Plain values: a panic cannot leave them half written.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
