//! Runs a scenario file from its first step to its last.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_api::facts::FactObject;
use scupper_cluster_model::PodTimes;
use scupper_engine::{HumanDuration, Intent, PodRef, Request, Time, whole_millis};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::assertions::{Assertions, Difference, describe};
use super::cluster_access::SharedCluster;
use super::drain_requests;
use super::form::{ExpectForm, ScenarioForm, StepForm};
use super::memory_cluster::MemoryCluster;
use super::offline::{OfflineRuntime, PolicyLoadError};
use super::runner::{ScenarioRunner, Stop, Until};
use super::shorthand::{PodFields, RequestForm, plain_node};
use super::snapshot::{Snapshot, SnapshotError};
use scupper_config::{ConfigError, Configuration, DrainSettings};
use scupper_policy::Policies;
use scupper_policy_reload::Session;

/// The start time of every scenario, as of every test with the SDK: 2027-01-15T08:00:00Z.
pub(super) const BEGINNING: Time = Time::from_millis(1_800_000_000_000);
/// The default time limit of an expectation.
const AT_MOST: Duration = Duration::from_secs(24 * 3600);
/// The age of the pods.
const OLD: u64 = 3600 * 1000;

/// The result of a scenario.
#[derive(Debug)]
pub(crate) struct ScenarioResult {
    /// Its purpose.
    pub about: String,
    /// The differences; empty: none.
    pub differences: Vec<Difference>,
    /// The lines that the drain would have printed.
    pub story: Vec<String>,
    /// The simulated duration of the drain, in milliseconds.
    pub took_ms: u64,
}

/// Why a scenario cannot run.
#[derive(Debug, Error)]
pub(crate) enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario")]
    Read(#[source] io::Error),
    /// It is not a valid scenario.
    #[error("{0}")]
    Form(String),
    /// It has an invalid value.
    #[error("line {line}: {message}")]
    Sense {
        /// The line.
        line: u64,
        /// The error.
        message: String,
    },
    /// Its snapshot cannot be read.
    #[error("cannot use the snapshot")]
    Snapshot(#[source] SnapshotError),
    /// Its settings of policies and drains are invalid.
    #[error("{0}")]
    Config(String),
    /// The policy cannot be used.
    #[error(transparent)]
    Load(#[from] PolicyLoadError),
}

/// Runs a scenario file with the policy in `module`.
pub(crate) async fn run_scenario(
    workbench: &OfflineRuntime,
    file: &Path,
    name: &str,
    module: &Path,
) -> Result<ScenarioResult, ScenarioError> {
    let text = std::fs::read_to_string(file).map_err(ScenarioError::Read)?;
    let form: ScenarioForm =
        serde_saphyr::from_str(&text).map_err(|error| ScenarioError::Form(error.to_string()))?;
    let configuration = configuration(&form, file, name, module)?;
    let (cluster, own_pod) = cluster(&form, file)?;
    let cluster = SharedCluster::new(cluster);
    let policies = workbench.load(&configuration.policies, &cluster).await?;
    let request = request(&configuration, &form.request, &cluster, own_pod, &policies);
    let mut run = ScenarioRun {
        runner: ScenarioRunner::begin(cluster, Session::fixed(policies), request),
        heard: 0,
    };
    let differences = run.run(&form).await?;
    let took_ms = whole_millis(run.runner.now().since(beginning(&form)));
    Ok(ScenarioResult {
        about: form.about,
        differences,
        took_ms,
        story: run.runner.story,
    })
}

/// The equivalent `scupper.yaml`.
fn configuration(
    form: &ScenarioForm,
    file: &Path,
    name: &str,
    module: &Path,
) -> Result<Configuration, ScenarioError> {
    let named = |fields: &Map<String, Value>| {
        let mut fields = fields.clone();
        if !fields.contains_key("module") {
            fields.insert("module".to_owned(), module.display().to_string().into());
            fields.entry("name").or_insert_with(|| name.into());
        }
        Value::Object(fields)
    };
    if !form.policies.is_empty() && !form.policy.is_empty() {
        let message = "`policy` and `policies`: name all policies in `policies`".to_owned();
        return Err(ScenarioError::Form(message));
    }
    let all = match &form.policies[..] {
        [] => std::slice::from_ref(&form.policy),
        chain => chain,
    };
    let is_given = !module.as_os_str().is_empty();
    if is_given && all.iter().all(|fields| fields.contains_key("module")) {
        let module = module.display();
        let message = format!(
            "{module} would not be tested: each policy has a `module`; leave out that of the policy under test"
        );
        return Err(ScenarioError::Form(message));
    }
    let policies: Vec<Value> = all.iter().map(named).collect();
    let whole = json!({
        "apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": policies, "drain": form.drain,
    });
    scupper_config::read_text(file, &whole.to_string())
        .map_err(|error| ScenarioError::Config(reported(error)))
}

/// Lines and columns would refer to our own text.
fn reported(error: ConfigError) -> String {
    match error {
        ConfigError::Wrong { problems, .. } => problems
            .iter()
            .map(|problem| format!("{}: {}", problem.field, problem.message))
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    }
}

/// When the drain starts.
fn beginning(form: &ScenarioForm) -> Time {
    form.time.map_or(BEGINNING, |time| time.0)
}

fn cluster(form: &ScenarioForm, file: &Path) -> Result<(MemoryCluster, Option<PodRef>), ScenarioError> {
    let here = |path: &PathBuf| file.parent().unwrap_or_else(|| Path::new("")).join(path);
    let said = &form.node.0;
    let wanted = Some(said.name.as_str()).filter(|name| !name.is_empty());
    let snapshot = form
        .cluster
        .as_ref()
        .map(|path| Snapshot::read(&here(path), wanted));
    let snapshot = snapshot.transpose().map_err(ScenarioError::Snapshot)?;
    let Snapshot {
        mut node,
        pods,
        elsewhere,
        budgets,
        facts,
    } = snapshot.unwrap_or_else(|| Snapshot::of_node(plain_node(wanted.unwrap_or("node-1"))));
    let beginning = beginning(form);
    said.change(&mut node, beginning);
    let mut cluster = MemoryCluster::new(beginning, node);
    cluster.model.keeps_finalizers = true;
    cluster.elsewhere = elsewhere;
    for pod in pods {
        cluster.model.add_pod(pod, PodTimes::ends_after(None));
    }
    for budget in budgets {
        cluster.model.set_budget(budget);
    }
    cluster.facts = facts;
    let mut own_pod = None;
    let before = Time::from_millis(beginning.as_millis().saturating_sub(OLD));
    for form in &form.pods {
        let pod = add_pod(&mut cluster, &form.0, before);
        let pod = pod.map_err(|message| ScenarioError::Form(format!("pods: {message}")))?;
        own_pod = own_pod.or_else(|| form.0.driver.then_some(pod));
    }
    for form in &form.budgets {
        let budget = form.budget();
        let budget = budget.map_err(|message| ScenarioError::Form(format!("budgets: {message}")))?;
        if let Some(pods) = form.pods {
            let key = (budget.namespace.clone(), budget.name.clone());
            cluster.expected_pods.insert(key, pods);
        }
        cluster.model.set_budget(budget);
    }
    for form in &form.owners {
        let owner = form.owner();
        let owner = owner.map_err(|message| ScenarioError::Form(format!("owners: {message}")))?;
        cluster.facts.set(owner);
    }
    for form in &form.namespaces {
        cluster.facts.set(form.namespace(beginning));
    }
    cluster.event = form.request.event();
    let requests = drain_requests::of_specs(&form.drain_requests);
    let requests = requests.map_err(|message| ScenarioError::Form(format!("drain-requests: {message}")))?;
    if !requests.is_empty() {
        cluster.forget_drain_requests();
    }
    for request in requests {
        cluster.facts.add(FactObject::DrainRequest(request));
    }
    for answer in &form.answers {
        cluster.answers.add(answer);
    }
    Ok((cluster, own_pod))
}

/// Adds a pod, here or on another node.
fn add_pod(cluster: &mut MemoryCluster, fields: &PodFields, now: Time) -> Result<PodRef, String> {
    let here = cluster.model.node.name.clone();
    let node = fields.node.as_ref().unwrap_or(&here);
    let pod = fields.pod(node, cluster.model.fresh_uid(&fields.name), now)?;
    let id = pod.id.clone();
    fields.set_facts(&id, &here, &mut cluster.facts)?;
    if *node == here {
        cluster
            .model
            .add_pod(pod, PodTimes::ends_after(fields.ends_after.map(|span| span.0)));
    } else {
        cluster.elsewhere.push(pod);
    }
    Ok(id)
}

fn request(
    configuration: &Configuration,
    form: &RequestForm,
    cluster: &SharedCluster,
    own_pod: Option<PodRef>,
    policies: &Policies,
) -> Request {
    let mut settings = DrainSettings::default().with(&configuration.drain);
    settings.engine.own_pod = own_pod;
    let cluster = cluster.lock();
    Request {
        id: "uid-of-maintenance".to_owned(),
        name: form.name.clone().unwrap_or_else(|| "maintenance".to_owned()),
        trigger: form.trigger.clone().unwrap_or_else(|| cluster.trigger_or("test")),
        intent: Intent::Drain,
        node: cluster.model.node.name.clone(),
        deadline: settings.time_limit.map(|limit| cluster.model.now + limit),
        settings: settings.engine,
        policies: policies.infos(),
    }
}

/// A drain, and the part of its results that has been checked.
struct ScenarioRun {
    runner: ScenarioRunner,
    /// Answers of hooks that an expectation has checked, or that another event followed.
    heard: usize,
}

impl ScenarioRun {
    /// The first unexpected line ends it: later ones would only be confusing.
    async fn run(&mut self, form: &ScenarioForm) -> Result<Vec<Difference>, ScenarioError> {
        let stop = self.runner.go(&Until::Planned, self.runner.now() + AT_MOST).await;
        if let Some(plan) = &form.plan {
            let mut assertions = Assertions::new(plan.referenced.line());
            assertions.plan(&plan.value, &self.runner);
            if !assertions.found.is_empty() {
                return Ok(assertions.found);
            }
        }
        tracing::debug!(?stop, "planned");
        for step in &form.steps {
            let line = step.referenced.line();
            let found = match &step.value {
                StepForm::Expect(expected) => self.expect(expected, line).await?,
                action => self.act(action, line).await?,
            };
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let Some(end) = &form.ends else {
            return Ok(Vec::new());
        };
        let at_most = end.value.0.within.map_or(AT_MOST, |span| span.0);
        let at_most = self.runner.now() + at_most;
        let _stop = self.runner.go(&Until::Ended, at_most).await;
        let mut assertions = Assertions::new(end.referenced.line());
        assertions.end(&end.value, &self.runner);
        Ok(assertions.found)
    }

    async fn expect(&mut self, form: &ExpectForm, line: u64) -> Result<Vec<Difference>, ScenarioError> {
        let mut assertions = Assertions::new(line);
        if form.hook.is_none() && form.is_of_hook() {
            let message = "`expect` says something of a hook, and not of which: add `hook: PHASE`".to_owned();
            return Err(ScenarioError::Sense { line, message });
        }
        if let Some(phase) = &form.hook {
            let wanted = |answer: &super::runner::HookAnswer| {
                answer.phase.to_string() == *phase
                    && form.of.as_ref().is_none_or(|of| *of == answer.subject)
                    && form.policy.as_ref().is_none_or(|policy| *policy == answer.policy)
            };
            let at = match self.runner.answers.iter().skip(self.heard).position(wanted) {
                Some(at) => Some(self.heard + at),
                None => {
                    let within = form.within.map_or(AT_MOST, |span| span.0);
                    let at_most = self.runner.now() + within;
                    let stop = self.runner.go(&Until::Answer(&wanted), at_most).await;
                    let last = self.runner.answers.len().checked_sub(1);
                    if stop != Stop::There {
                        // The next answer counts, and the last one was before.
                        let before = self.runner.answers.iter().take(self.heard);
                        let before = before.rev().find(|answer| wanted(answer)).map(|answer| {
                            let at = HumanDuration(answer.after);
                            format!(
                                "; its last answer was before this step, at {at}: {}",
                                describe(&answer.outcome)
                            )
                        });
                        let actual = self.instead(stop) + &before.unwrap_or_default();
                        assertions.differ(
                            format!("{phase} is called"),
                            format!("within {}", HumanDuration(within)),
                            actual,
                        );
                    }
                    last.filter(|_| stop == Stop::There)
                }
            };
            if let Some(answer) = at.and_then(|at| self.runner.answers.get(at)) {
                assertions.answer(form, answer);
            }
            self.heard = at.map_or(self.heard, |at| at + 1);
        }
        if assertions.found.is_empty() {
            assertions.cluster(form, &self.runner);
        }
        Ok(assertions.found)
    }

    fn instead(&self, stop: Stop) -> String {
        match (&self.runner.outcome, stop) {
            (Some(outcome), _) => format!("the drain ended as {}: {outcome}", outcome.name()),
            (None, Stop::Still) => "nothing more happens by itself".to_owned(),
            (None, Stop::Circles) => "the drain goes round in circles".to_owned(),
            (None, _) => "it was not".to_owned(),
        }
    }

    /// Changes an existing pod. `false`: there is none.
    fn change_pod(&self, fields: &PodFields) -> Result<bool, String> {
        let (now, mut cluster) = (self.runner.now(), self.runner.cluster.lock());
        let ends_after = fields.ends_after.map(|span| span.0);
        let here = cluster.model.pod(&fields.name).map(|pod| pod.id.clone());
        let pod = match (here, cluster.elsewhere_mut(&fields.name)) {
            (Some(pod), _) => pod,
            (None, Some(pod)) => {
                fields.change(pod, now)?;
                pod.id.clone()
            }
            (None, None) => return Ok(false),
        };
        let node = cluster.model.node.name.clone();
        fields.set_facts(&pod, &node, &mut cluster.facts)?;
        cluster
            .model
            .change_pod(&fields.name, ends_after, |pod| fields.change(pod, now))?;
        Ok(true)
    }

    async fn act(&mut self, step: &StepForm, line: u64) -> Result<Vec<Difference>, ScenarioError> {
        let wrong = |message: String| ScenarioError::Sense { line, message };
        let no_pod = |name: &str| format!("pod {name} does not exist");
        let now = self.runner.now();
        match step {
            StepForm::Expect(_) => {}
            StepForm::Pass(span) => {
                let _stop = self.runner.go(&Until::Time, now + span.0).await;
            }
            StepForm::Pod(form) => {
                if !self.change_pod(&form.0).map_err(wrong)? {
                    return Err(wrong(no_pod(&form.0.name)));
                }
            }
            StepForm::Add(form) => {
                let mut cluster = self.runner.cluster.lock();
                let _pod = add_pod(&mut cluster, &form.0, now).map_err(wrong)?;
            }
            StepForm::Remove(name) => {
                if !self.runner.cluster.lock().remove_pod(name) {
                    return Err(wrong(no_pod(name)));
                }
            }
            StepForm::Node(form) => {
                let _version = self
                    .runner
                    .cluster
                    .lock()
                    .model
                    .change_node(|node| form.0.change(node, now));
            }
            StepForm::Budget(form) => {
                let budget = form.budget().map_err(wrong)?;
                self.runner.cluster.lock().model.set_budget(budget);
            }
            StepForm::Namespace(form) => {
                let mut cluster = self.runner.cluster.lock();
                cluster.facts.set(form.namespace(now));
            }
            StepForm::Answer(form) => self.runner.cluster.lock().answers.add(form),
            StepForm::Outage(span) => self.runner.cluster.lock().outage(span.0),
            StepForm::Cancel(reason) => self.runner.cancel(reason),
            StepForm::Restart => self.runner.restart(),
            StepForm::Uncordon => {
                let stop = self.runner.go(&Until::Ended, now + AT_MOST).await;
                if stop != Stop::There {
                    let mut assertions = Assertions::new(line);
                    assertions.differ("the drain", "ends", self.instead(stop));
                    return Ok(assertions.found);
                }
                self.runner.uncordon();
            }
        }
        self.heard = self.runner.answers.len();
        Ok(Vec::new())
    }
}
