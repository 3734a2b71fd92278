//! Reading pods and nodes, and making the records that `about` answers with.

use std::fmt;

use crate::{
    Condition, Description, Entry, Finding, Grant, Node, Pod, PodPhase, Problem, Severity, Uid, Verdict, Wave,
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

    /// A condition, by its type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == condition_type)
    }

    /// All its containers have ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Its controller is of this kind, such as `DaemonSet`.
    pub fn is_controlled_by(&self, kind: &str) -> bool {
        self.controller
            .as_ref()
            .is_some_and(|controller| controller.kind == kind)
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

    /// A condition, by its type.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == condition_type)
    }
}

impl Condition {
    /// Its status is `True`. `Unknown` is neither true nor false.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Its status is `False`. `Unknown` is neither true nor false.
    pub fn is_false(&self) -> bool {
        self.status == "False"
    }
}

impl Verdict {
    /// The pod is to be gone at the end of the drain.
    pub const fn leaves(self) -> bool {
        matches!(self, Self::Evict | Self::Delete | Self::AwaitCompletion)
    }
}

impl Wave {
    /// A wave of these pods, all at once, for as long as it takes.
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
    /// To set and remove annotations of the node whose keys begin with `prefix`.
    pub fn node_annotations(prefix: &str) -> Self {
        Self {
            capability: "node-annotations".to_owned(),
            target: prefix.to_owned(),
        }
    }

    /// To set and remove annotations of the node's pods whose keys begin with `prefix`.
    pub fn pod_annotations(prefix: &str) -> Self {
        Self {
            capability: "pod-annotations".to_owned(),
            target: prefix.to_owned(),
        }
    }
}

impl Grant {
    /// To send requests of these methods (`GET,POST`) to URLs that begin like this: an origin, and whole segments of a
    /// path.
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

    /// To emit Kubernetes Events about the node.
    pub fn events_of_node() -> Self {
        Self {
            capability: "events".to_owned(),
            target: "node".to_owned(),
        }
    }

    /// To emit Kubernetes Events about the node's pods.
    pub fn events_of_pods() -> Self {
        Self {
            capability: "events".to_owned(),
            target: "pods".to_owned(),
        }
    }

    /// To have this secret put into requests.
    pub fn secret(name: &str) -> Self {
        Self {
            capability: "secret".to_owned(),
            target: name.to_owned(),
        }
    }
}

impl Finding {
    /// It is as it should be.
    pub fn ok(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, message, "")
    }

    /// Drains work, but not all of them, or not for long.
    pub fn warning(subject: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Severity::Warning, subject, message, fix)
    }

    /// No drain can succeed like this; `fix` says what to do, best as a command.
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
    /// What is wrong with the value of `key`, and what would be right.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// For a planner that refuses, or a hook that fails, because of its configuration: the key and what is wrong.
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
    /// A policy that wants nothing, keeps no state and takes no configuration.
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

    /// It asks for this, too.
    #[must_use]
    pub fn wants(mut self, grant: Grant) -> Self {
        self.wants.push(grant);
        self
    }

    /// Which form its hook state has. Another number than the version before: it cannot read what that left behind.
    #[must_use]
    pub fn state_version(mut self, version: u32) -> Self {
        self.state_version = version;
        self
    }

    /// A JSON schema of its configuration.
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
/// let about = description!("Tells the load balancer first").wants(Grant::node_annotations("lb.example.com/"));
/// assert_eq!(about.summary, "Tells the load balancer first");
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

fn value<'a>(entries: &'a [Entry], key: &str) -> Option<&'a str> {
    entries
        .iter()
        .find(|entry| entry.key == key)
        .map(|entry| entry.value.as_str())
}
