//! Accessors of pods and nodes, and constructors of the records that a policy returns.

use std::fmt;

use crate::{
    Call, Condition, Description, Entry, Finding, Grant, Node, Phase, Pod, PodPhase, Problem, Severity, Uid,
    Verdict, Wave, host,
};

impl Pod {
    /// `namespace/name`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }

    /// The condition of this type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == condition_type)
    }

    /// Whether all its containers have ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether its controller is of this kind, such as `DaemonSet`.
    pub fn is_controlled_by(&self, kind: &str) -> bool {
        self.controller
            .as_ref()
            .is_some_and(|controller| controller.kind == kind)
    }
}

impl Call {
    /// The pods that are still to leave, in the order of the plan: before a wave the pods of that wave, in other phases those
    /// of all waves. None in `OnCancel`, `BeforeUncordon` and `AfterUncordon`.
    pub fn leaving(&self) -> Vec<&Pod> {
        let find = |uid: &Uid| self.pods.iter().find(|pod| pod.uid == *uid);
        host::plan::leaving().iter().filter_map(find).collect()
    }

    /// Whether the operator has declared that the machine is off (`--node-is-off`): nothing runs there.
    pub fn machine_is_off(&self) -> bool {
        host::plan::machine_is_off()
    }
}

impl Phase {
    /// Whether the drain runs and its hooks before it have finished, so that what these took out of service is out of
    /// service, unless someone else has put it back since.
    pub const fn follows_before_drain(self) -> bool {
        matches!(self, Self::BeforeWave | Self::BeforeEvict | Self::AfterDrain)
    }
}

impl Node {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        value(&self.labels, key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        value(&self.annotations, key)
    }

    /// The condition of this type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == condition_type)
    }
}

impl Condition {
    /// Whether its status is `True`. `Unknown` is neither true nor false.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether its status is `False`. `Unknown` is neither true nor false.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }
}

impl Verdict {
    /// Whether the pod is gone at the end of the drain.
    pub const fn leaves(self) -> bool {
        matches!(self, Self::Evict | Self::Delete | Self::AwaitCompletion)
    }
}

impl Wave {
    /// A wave of these pods, which leave all at once and without a timeout.
    pub fn new(name: impl Into<String>, pods: Vec<Uid>) -> Self {
        Self {
            name: name.into(),
            pods,
            max_parallel: None,
            timeout: None,
            max_grace_period_seconds: None,
        }
    }
}

impl Grant {
    /// Allows setting and removing annotations of the node whose keys begin with `prefix`.
    pub fn node_annotations(prefix: &str) -> Self {
        Self {
            capability: "node-annotations".to_owned(),
            target: prefix.to_owned(),
        }
    }

    /// Allows setting and removing annotations of the node's pods whose keys begin with `prefix`.
    pub fn pod_annotations(prefix: &str) -> Self {
        Self {
            capability: "pod-annotations".to_owned(),
            target: prefix.to_owned(),
        }
    }
}

impl Grant {
    /// Allows requests with these methods (`GET,POST`) to URLs below `url`: an origin, and whole segments of a path.
    ///
    /// ```
    /// # use scupper_sdk::Grant;
    /// let grant = Grant::http("GET,POST", "https://nova.example.com:8774/v2.1/");
    /// assert_eq!(grant.target, "GET,POST https://nova.example.com:8774/v2.1/");
    /// ```
    pub fn http(methods: &str, url: &str) -> Self {
        Self {
            capability: "http".to_owned(),
            target: format!("{methods} {url}"),
        }
    }

    /// Allows emitting Kubernetes Events for the node.
    pub fn events_of_node() -> Self {
        Self {
            capability: "events".to_owned(),
            target: "node".to_owned(),
        }
    }

    /// Allows emitting Kubernetes Events for the node's pods.
    pub fn events_of_pods() -> Self {
        Self {
            capability: "events".to_owned(),
            target: "pods".to_owned(),
        }
    }

    /// Allows asking who requested the drain, with [`facts::request`](crate::facts::request) and
    /// [`facts::drain_requests`](crate::facts::drain_requests).
    pub fn facts_of_request() -> Self {
        Self::facts("request")
    }

    /// Allows asking for namespaces, with [`facts::namespace`](crate::facts::namespace).
    pub fn facts_of_namespaces() -> Self {
        Self::facts("namespaces")
    }

    /// Allows asking for disruption budgets, with [`facts::budgets`](crate::facts::budgets).
    pub fn facts_of_budgets() -> Self {
        Self::facts("budgets")
    }

    /// Allows asking who owns a pod, with [`facts::owners`](crate::facts::owners).
    pub fn facts_of_owners() -> Self {
        Self::facts("owners")
    }

    /// Allows asking what a pod requests and which devices it has, with
    /// [`facts::resources`](crate::facts::resources).
    pub fn facts_of_resources() -> Self {
        Self::facts("resources")
    }

    /// Allows asking for the volumes of a pod, with [`facts::volumes`](crate::facts::volumes).
    pub fn facts_of_volumes() -> Self {
        Self::facts("volumes")
    }

    /// Allows asking for the pods of the same controller or scheduling group, with
    /// [`facts::controller_peers`](crate::facts::controller_peers) and
    /// [`facts::group_peers`](crate::facts::group_peers).
    pub fn facts_of_peers() -> Self {
        Self::facts("peers")
    }

    fn facts(target: &str) -> Self {
        Self {
            capability: "facts".to_owned(),
            target: target.to_owned(),
        }
    }

    /// Allows requests that contain this secret.
    pub fn secret(name: &str) -> Self {
        Self {
            capability: "secret".to_owned(),
            target: name.to_owned(),
        }
    }
}

impl Finding {
    /// All is well.
    pub fn ok(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, message, "")
    }

    /// Some drains fail, or drains will fail soon.
    pub fn warning(subject: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Severity::Warning, subject, message, fix)
    }

    /// No drain can succeed; `fix` says what to do, ideally as a command.
    pub fn error(subject: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Severity::Error, subject, message, fix)
    }

    fn new(
        severity: Severity,
        subject: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            subject: subject.into(),
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl Problem {
    /// Says what is wrong with the value of `key`, and what would be right.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// The key and what is wrong: for a planner or a hook that fails because of its configuration.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "configuration: {}", self.message),
            key => write!(f, "configuration `{key}`: {}", self.message),
        }
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.to_string()
    }
}

impl Description {
    /// A policy that wants no grants, keeps no state and takes no configuration.
    pub fn new(name: &str, version: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            state_version: 0,
            wants: Vec::new(),
            config_schema: String::new(),
        }
    }

    /// Adds a grant that the policy needs.
    #[must_use]
    pub fn wants(mut self, grant: Grant) -> Self {
        self.wants.push(grant);
        self
    }

    /// The version of its hook state. Change it when this version cannot read what an older one saved.
    #[must_use]
    pub fn state_version(mut self, version: u32) -> Self {
        self.state_version = version;
        self
    }

    /// The JSON schema of its configuration.
    #[must_use]
    pub fn config_schema(mut self, schema: &str) -> Self {
        schema.clone_into(&mut self.config_schema);
        self
    }
}

/// A [`Description`] with the crate's own name and version.
///
/// ```
/// use scupper_sdk::{Grant, description};
///
/// let about = description!("Notifies the load balancer").wants(Grant::node_annotations("lb.example.com/"));
/// assert_eq!(about.summary, "Notifies the load balancer");
/// ```
#[macro_export]
macro_rules! description {
    ($summary:expr) => {
        $crate::Description::new(
            ::core::env!("CARGO_PKG_NAME"),
            ::core::env!("CARGO_PKG_VERSION"),
            $summary,
        )
    };
}

pub(crate) fn value<'a>(entries: &'a [Entry], key: &str) -> Option<&'a str> {
    entries
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| entry.value.as_str())
}
