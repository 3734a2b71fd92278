//! The answers of one plan or step. Each is fetched once and stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use scupper_api::DrainRequestFields;
use scupper_engine::{Budget, Controller, Pod, PodRef, Time, Trigger};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::device_annotations::devices;
use super::owners::KnownOwners;
use super::peers::PeerAnswers;
use super::pod_specs::{KeptPodSpecs, PodSpecs};
use super::resources::{DeviceFact, KeptResources, ResourceAnswers};
use super::source::{BudgetFact, Marks, NamespaceFact, OwnerFact};
use super::volumes::{KeptVolumes, VolumeAnswers};
use crate::{AccessError, ClusterAccess};

/// Namespaces that one plan or step may ask for beyond those of its pods. All other facts follow from the pods, whose number is
/// not the guest's choice.
const OTHER_NAMESPACES: usize = 256;

/// Bytes of labels, annotations and other texts that one plan or step may learn in any case. The API server accepts 256 KiB for
/// each object.
const BYTES: usize = 8 * 1024 * 1024;

/// Bytes that it may learn for each of its pods, if that is more.
const BYTES_OF_POD: usize = 64 * 1024;

/// Budgets that cover pods of one node.
const BUDGETS: usize = 1000;

/// How long one fetch may take. A slow API server holds the plan up once, because a plan without an answer is discarded.
const ONE_FETCH: Duration = Duration::from_secs(10);

/// How long all fetches of a plan or step may take, and a list of many pages, such as one of all pods of a namespace.
pub(super) const ALL_FETCHES: Duration = Duration::from_secs(30);

/// How long a fact that seldom changes counts for the next plans of the same drain, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// Namespaces that are read one by one. If the node's pods have more, the rest comes in one list.
const SINGLE_NAMESPACES: usize = 3;

/// An answer, or why there is none.
pub(crate) type Answer<T> = Result<T, AskError>;

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
    pub(super) is_blank: bool,
    /// What earlier plans of the drain have learned, and when this plan began.
    kept: Option<(Arc<Mutex<Kept>>, Time)>,
    pub(super) answers: tokio::sync::Mutex<Answers>,
    /// Why the first fetch failed that did.
    trouble: Mutex<Option<String>>,
}

/// The facts of one drain: those of its current plan, and what lasts longer than one plan.
#[derive(Debug, Default)]
pub struct DrainFacts {
    kept: Arc<Mutex<Kept>>,
    plan: Option<(u64, Arc<Facts>)>,
}

#[derive(Debug, Default)]
pub(super) struct Answers {
    other_namespaces: usize,
    bytes: usize,
    /// The number of pods of the call.
    pods: usize,
    /// There is no right to list the objects of all namespaces.
    pub(super) one_namespace_at_a_time: bool,
    spent: Duration,
    request: Option<Answer<Marks>>,
    drain_requests: Option<Answer<Vec<Arc<DrainRequestFields>>>>,
    namespaces: BTreeMap<String, Answer<NamespaceFact>>,
    budgets: Option<Answer<Vec<BudgetFact>>>,
    pub(super) owners: KnownOwners<Answer<Option<OwnerFact>>>,
    pub(super) pod_specs: Option<Answer<PodSpecs>>,
    pub(super) resources: ResourceAnswers,
    pub(super) volumes: VolumeAnswers,
    pub(super) peers: PeerAnswers,
}

/// What seldom changes, with the time when it was read.
#[derive(Debug, Default)]
pub(super) struct Kept {
    request: Option<(Time, Marks)>,
    namespaces: BTreeMap<String, (Time, NamespaceFact)>,
    pub(super) owners: KnownOwners<(Time, OwnerFact)>,
    pub(super) pod_specs: KeptPodSpecs,
    pub(super) resources: KeptResources,
    pub(super) volumes: KeptVolumes,
}

/// The drain and the pods that a call is about, and whom to ask.
pub(crate) struct Asker {
    pub(crate) cluster: Arc<dyn ClusterAccess>,
    pub(crate) trigger: String,
    pub(crate) name: String,
    pub(crate) id: String,
    /// The pods shown to the policy.
    pub(crate) pods: Vec<AskedPod>,
}

/// What the answers about a pod depend on.
#[derive(Clone, Debug)]
pub(crate) struct AskedPod {
    pub(crate) id: PodRef,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) controller: Option<Controller>,
    pub(crate) node: String,
    /// Those that its annotations name.
    pub(super) devices: Vec<DeviceFact>,
}

impl Asker {
    /// The namespaces of the pods.
    fn namespaces(&self) -> BTreeSet<&str> {
        self.pods.iter().map(|pod| pod.id.namespace.as_str()).collect()
    }

    /// A pod that the host has shown to the policy.
    pub(crate) fn pod(&self, uid: &str) -> Answer<&AskedPod> {
        let pod = self.pods.iter().find(|pod| pod.id.uid.0 == uid);
        pod.ok_or_else(|| AskError::NotFound("no pod of this call has the UID".to_owned()))
    }
}

impl AskedPod {
    pub(crate) fn of(pod: &Pod) -> Self {
        Self {
            id: pod.id.clone(),
            labels: pod.labels.clone(),
            controller: pod.controller.clone(),
            node: pod.node.clone(),
            devices: devices(&pod.annotations),
        }
    }

    /// Whether the budget covers it.
    pub(crate) fn is_of(&self, budget: &Budget) -> bool {
        budget.namespace == self.id.namespace && budget.selector.matches(&self.labels)
    }
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

    /// The answers so far, for a call with these pods.
    pub(super) async fn answers(&self, asker: &Asker) -> tokio::sync::MutexGuard<'_, Answers> {
        let mut answers = self.answers.lock().await;
        answers.pods = asker.pods.len();
        answers
    }

    /// Why a fact could not be read, if one could not.
    pub(crate) fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// The labels and annotations of the object that requested the drain.
    pub(crate) async fn request(&self, asker: &Asker) -> Answer<Marks> {
        let mut answers = self.answers(asker).await;
        if let Some(known) = &answers.request {
            return known.clone();
        }
        let has_object = Trigger::of(&asker.trigger) == Trigger::LifecycleEvent;
        let kept = self.kept(|kept| kept.request.clone());
        let answer = match kept {
            Some(kept) => Ok(kept),
            None if self.is_blank || !has_object => Ok(Marks::default()),
            None => {
                let (cluster, name, id) = (Arc::clone(&asker.cluster), asker.name.clone(), asker.id.clone());
                let reading = async move { cluster.lifecycle_event(&name, &id).await };
                let answer = self.fetch(&mut answers, reading).await;
                let answer = answers.admit(answer, |marks| marks);
                self.keep(&answer, |kept, answer| kept.request = Some(answer));
                answer
            }
        };
        answers.request = Some(answer.clone());
        answer
    }

    /// The DrainRequests that the drain serves.
    pub(crate) async fn drain_requests(&self, asker: &Asker) -> Answer<Vec<Arc<DrainRequestFields>>> {
        let mut answers = self.answers(asker).await;
        if let Some(known) = &answers.drain_requests {
            return known.clone();
        }
        let answer = if self.is_blank || Trigger::of(&asker.trigger) != Trigger::DrainRequest {
            Ok(Vec::new())
        } else {
            let (cluster, id) = (Arc::clone(&asker.cluster), asker.id.clone());
            let reading = async move { cluster.drain_requests(&id).await };
            self.fetch(&mut answers, reading).await
        };
        let answer = answer.and_then(|all| {
            let bytes = all.iter().map(|request| request.bytes()).sum();
            answers.admit_bytes(bytes).map(|()| all)
        });
        answers.drain_requests = Some(answer.clone());
        answer
    }

    /// A namespace.
    pub(crate) async fn namespace(&self, asker: &Asker, name: &str) -> Answer<NamespaceFact> {
        let mut answers = self.answers(asker).await;
        if let Some(known) = answers.namespaces.get(name) {
            return known.clone();
        }
        let kept = self.kept(|kept| kept.namespaces.get(name).cloned());
        let answer = match kept {
            Some(kept) => Ok(kept),
            None if self.is_blank => Ok(NamespaceFact::default()),
            None if answers.wants_all_namespaces(asker, name) => {
                let cluster = Arc::clone(&asker.cluster);
                let reading = async move { cluster.namespaces().await };
                let listed = self.fetch(&mut answers, reading).await;
                return self.learn_namespaces(&mut answers, asker, name, listed);
            }
            None if !answers.may_read_namespace(asker, name) => Err(AskError::TooMany),
            None => {
                let (cluster, wanted) = (Arc::clone(&asker.cluster), name.to_owned());
                let reading = async move { cluster.namespace(&wanted).await };
                let answer = self.fetch(&mut answers, reading).await;
                let answer = answers.admit(answer, |namespace| &namespace.marks);
                self.keep(&answer, |kept, answer| {
                    kept.namespaces.insert(name.to_owned(), answer);
                });
                answer
            }
        };
        // An error that the guest caused is not kept: the names are the guest's.
        if answer != Err(AskError::TooMany) {
            answers.namespaces.insert(name.to_owned(), answer.clone());
        }
        answer
    }

    /// The disruption budgets that cover a pod of the call.
    pub(crate) async fn budgets(&self, asker: &Asker) -> Answer<Vec<BudgetFact>> {
        let mut answers = self.answers(asker).await;
        if let Some(known) = &answers.budgets {
            return known.clone();
        }
        let answer = if self.is_blank {
            Ok(Vec::new())
        } else {
            let cluster = Arc::clone(&asker.cluster);
            let reading = async move { cluster.budgets().await };
            self.fetch(&mut answers, reading).await
        };
        let covers = |fact: &BudgetFact| asker.pods.iter().any(|pod| pod.is_of(&fact.budget));
        let answer = answer.and_then(|all| {
            let all: Vec<_> = all.into_iter().filter(covers).collect();
            if all.len() > BUDGETS {
                Err(AskError::TooMany)
            } else {
                Ok(all)
            }
        });
        answers.budgets = Some(Result::clone(&answer));
        answer
    }

    /// Remembers the listed namespaces of the node's pods. A pod's namespace that is missing was deleted meanwhile.
    fn learn_namespaces(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        name: &str,
        listed: Answer<BTreeMap<String, NamespaceFact>>,
    ) -> Answer<NamespaceFact> {
        let mut listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                answers.namespaces.insert(name.to_owned(), Err(error.clone()));
                return Err(error);
            }
        };
        for known in asker.namespaces() {
            let answer = listed
                .remove(known)
                .ok_or_else(|| AskError::NotFound(format!("there is no namespace {known}")));
            let answer = answers.admit(answer, |namespace| &namespace.marks);
            self.keep(&answer, |kept, answer| {
                kept.namespaces.insert(known.to_owned(), answer);
            });
            answers.namespaces.entry(known.to_owned()).or_insert(answer);
        }
        let absent = || Err(AskError::NotFound(format!("there is no namespace {name}")));
        answers.namespaces.get(name).cloned().unwrap_or_else(absent)
    }

    /// Reads a fact in a task of its own: what decoding it costs is not the guest's CPU time.
    pub(super) async fn fetch<T: Send + 'static>(
        &self,
        answers: &mut Answers,
        reading: impl Future<Output = Result<T, AccessError>> + Send + 'static,
    ) -> Answer<T> {
        self.fetch_within(ONE_FETCH, answers, reading).await
    }

    /// The same, with another limit.
    pub(super) async fn fetch_within<T: Send + 'static>(
        &self,
        limit: Duration,
        answers: &mut Answers,
        reading: impl Future<Output = Result<T, AccessError>> + Send + 'static,
    ) -> Answer<T> {
        // The plan is discarded already: the API server need not be asked for the rest.
        if let Some(trouble) = self.trouble() {
            return Err(AskError::Unavailable(trouble));
        }
        let limit = limit.min(ALL_FETCHES.saturating_sub(answers.spent));
        let begun = Instant::now();
        // The task ends with the set, should the call be given up.
        let mut task = JoinSet::new();
        task.spawn(tokio::time::timeout(limit, reading).in_current_span());
        let read = task.join_next().await;
        answers.spent = answers.spent.saturating_add(begun.elapsed());
        let why = match read {
            Some(Ok(Ok(Ok(fact)))) => return Ok(fact),
            Some(Ok(Ok(Err(AccessError::NotFound(what))))) => return Err(AskError::NotFound(what)),
            Some(Ok(Ok(Err(AccessError::Unavailable(why))))) => why,
            Some(Ok(Err(_elapsed))) => {
                format!("the API server did not answer within {} s", limit.as_secs_f32())
            }
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) | None => "the driver is about to stop".to_owned(),
        };
        locked(&self.trouble).get_or_insert_with(|| why.clone());
        Err(AskError::Unavailable(why))
    }

    /// What an earlier plan of the drain has learned a short time ago.
    pub(super) fn kept<T>(&self, look: impl FnOnce(&Kept) -> Option<(Time, T)>) -> Option<T> {
        let (kept, now) = self.kept.as_ref()?;
        let (read, fact) = look(&locked(kept))?;
        let age = now.as_millis().saturating_sub(read.as_millis());
        (age < KEPT_MS).then_some(fact)
    }

    pub(super) fn keep<T: Clone>(&self, answer: &Answer<T>, put: impl FnOnce(&mut Kept, (Time, T))) {
        if let (Some((kept, now)), Ok(fact)) = (&self.kept, answer) {
            put(&mut locked(kept), (*now, fact.clone()));
        }
    }
}

impl Answers {
    /// Passes an answer on, unless the call has learned too much by now.
    pub(super) fn admit<T>(&mut self, answer: Answer<T>, marks: impl Fn(&T) -> &Marks) -> Answer<T> {
        let fact = answer?;
        self.admit_bytes(marks(&fact).bytes())?;
        Ok(fact)
    }

    pub(super) fn admit_bytes(&mut self, bytes: usize) -> Answer<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES.max(self.pods.saturating_mul(BYTES_OF_POD)) {
            return Err(AskError::TooMany);
        }
        Ok(())
    }

    /// Counts the namespaces that the guest chooses.
    fn may_read_namespace(&mut self, asker: &Asker, name: &str) -> bool {
        let is_of_pod = asker.pods.iter().any(|pod| pod.id.namespace == name);
        self.other_namespaces += usize::from(!is_of_pod);
        self.other_namespaces <= OTHER_NAMESPACES
    }

    /// Many pods' namespaces have not been read, so a list is cheaper.
    fn wants_all_namespaces(&self, asker: &Asker, name: &str) -> bool {
        let of_pods = asker.namespaces();
        let unread = of_pods
            .iter()
            .filter(|known| !self.namespaces.contains_key(**known));
        self.namespaces.len() >= SINGLE_NAMESPACES
            && of_pods.contains(name)
            && unread.count() > SINGLE_NAMESPACES
    }
}

impl From<AccessError> for AskError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::NotFound(what) => Self::NotFound(what),
            AccessError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

/// Plain values: a panic cannot leave them half written.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
