//! The table: every key of the file, its shape and its meaning.

use scupper_policy_spec::HTTP_METHODS;

use super::limits::LIMITS;
use super::shape::{Field, Object, Shape};
use super::{overrides, rules};

/// What the file says it is.
pub(super) const VERSION: &str = "scupper.dev/v1alpha1";
pub(super) const KIND: &str = "Configuration";

/// More than an operator can review.
const POLICIES: usize = 64;
const ENTRIES: usize = 64;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// What is said of an `on-failure`.
pub(super) const FAILURE_POLICIES: &[&str] = &["refuse", "ignore", "hold"];

/// The whole file.
pub(super) static CONFIGURATION: Object = Object {
    fields: &[
        Field::required(
            "apiVersion",
            Shape::OneOf(&[VERSION]),
            "The version of this format.",
        ),
        Field::required("kind", Shape::OneOf(&[KIND]), "What this file is."),
        Field::required(
            "policies",
            Shape::List {
                of: &Shape::Object(&POLICY),
                most: POLICIES,
            },
            "The policies in the order of the chain: each planner gets the draft of the one before. An empty list loads \
             none.",
        ),
        Field::new(
            "drain",
            Shape::Object(&DRAIN),
            "How pods are chosen and evicted, as the flags of the same names say it. A flag that is given wins. A \
             change counts for the next drain; that of `sla` when the driver is started again, as it is published.",
        ),
    ],
    one_of: &[],
};

static POLICY: Object = Object {
    fields: &[
        Field::required(
            "name",
            Shape::Text(&rules::NAME),
            "The operator's name for the policy. It stands in plans, reports, metrics and in what survives a crash.",
        ),
        Field::required(
            "module",
            Shape::Text(&rules::PATH),
            "The file of its component. A relative path begins at this file's own directory.",
        ),
        Field::new(
            "sha256",
            Shape::Text(&rules::DIGEST),
            "Only a component with this SHA-256 is loaded.",
        ),
        Field::new(
            "config",
            Shape::Anything,
            "What the policy reads as its configuration. Scalars reach it as they are written here; lists and maps as \
             JSON.",
        ),
        Field::new(
            "grants",
            Shape::Object(&GRANTS),
            "What the policy is given. Without it: nothing.",
        ),
        Field::new("limits", Shape::Object(&LIMITS), "What the policy may use."),
        Field::new(
            "on-failure",
            Shape::Object(&ON_FAILURE),
            "What becomes of a drain when the policy fails: when it traps, overruns its limits, answers nonsense, or \
             when its hook gives up. A planner's refusal is no failure.",
        ),
        Field::new(
            "node-selector",
            Shape::Labels,
            "The policy takes part only on nodes that have all of these labels when a drain begins. Without it: on \
             every node.",
        ),
    ],
    one_of: &[],
};

static GRANTS: Object = Object {
    fields: &[
        Field::new(
            "node-annotations",
            Shape::List {
                of: &Shape::Text(&rules::PREFIX),
                most: ENTRIES,
            },
            "Prefixes of annotations of the node that it may set and remove.",
        ),
        Field::new(
            "pod-annotations",
            Shape::List {
                of: &Shape::Text(&rules::PREFIX),
                most: ENTRIES,
            },
            "Prefixes of annotations of the node's pods that it may set and remove.",
        ),
        Field::new(
            "events",
            Shape::List {
                of: &Shape::OneOf(&["node", "pods"]),
                most: 2,
            },
            "What it may emit Kubernetes Events about.",
        ),
        Field::new(
            "http",
            Shape::List {
                of: &Shape::Object(&HTTP),
                most: ENTRIES,
            },
            "Where it may send requests.",
        ),
        Field::new(
            "secrets",
            Shape::List {
                of: &Shape::Object(&SECRET),
                most: ENTRIES,
            },
            "What the driver puts into its requests. The policy never sees a secret.",
        ),
        Field::new(
            "wasi",
            Shape::Bool,
            "It may import the harmless part of WASI, which a plain standard library asks for. Default false.",
        ),
    ],
    one_of: &[],
};

static HTTP: Object = Object {
    fields: &[
        Field::required(
            "origin",
            Shape::Text(&rules::ORIGIN),
            "Where requests go: https://HOST or https://HOST:PORT, or the same with http.",
        ),
        Field::new(
            "methods",
            Shape::List {
                of: &Shape::OneOf(HTTP_METHODS),
                most: HTTP_METHODS.len(),
            },
            "Default GET and HEAD.",
        ),
        Field::new(
            "paths",
            Shape::List {
                of: &Shape::Text(&rules::URL_PATH),
                most: ENTRIES,
            },
            "How paths begin, by whole segments. Default: every path.",
        ),
        Field::new(
            "networks",
            Shape::List {
                of: &Shape::OneOf(&["private", "loopback"]),
                most: 2,
            },
            "Which addresses the origin's name may resolve to besides public ones. Addresses of metadata services and \
             link-local ones are never allowed.",
        ),
        Field::new(
            "ca",
            Shape::Text(&rules::PATH),
            "A file of additional CA certificates (PEM) to trust for this origin.",
        ),
    ],
    one_of: &[],
};

static SECRET: Object = Object {
    fields: &[
        Field::required(
            "name",
            Shape::Text(&rules::SECRET_NAME),
            "What the policy calls it.",
        ),
        Field::new(
            "file",
            Shape::Text(&rules::PATH),
            "A file that holds it, read again when it changes. One line break at its end is ignored.",
        ),
        Field::new(
            "secret",
            Shape::Object(&KUBERNETES_SECRET),
            "A key of a Kubernetes Secret, read again when it changes.",
        ),
        Field::new(
            "captured-from",
            Shape::Object(&CAPTURED),
            "A header of a response, captured on its way to the policy.",
        ),
        Field::required(
            "origins",
            Shape::List {
                of: &Shape::Text(&rules::ORIGIN),
                most: ENTRIES,
            },
            "Where it may be sent. Each must also be granted under http.",
        ),
    ],
    one_of: &["file", "secret", "captured-from"],
};

static KUBERNETES_SECRET: Object = Object {
    fields: &[
        Field::required(
            "namespace",
            Shape::Text(&rules::OBJECT_NAME),
            "Its metadata.namespace.",
        ),
        Field::required("name", Shape::Text(&rules::OBJECT_NAME), "Its metadata.name."),
        Field::required("key", Shape::Text(&rules::SECRET_KEY), "The key in its data."),
    ],
    one_of: &[],
};

static CAPTURED: Object = Object {
    fields: &[
        Field::required(
            "origin",
            Shape::Text(&rules::ORIGIN),
            "Whose responses. It must also be granted under http.",
        ),
        Field::required("header", Shape::Text(&rules::HEADER), "The header's name."),
    ],
    one_of: &[],
};

static ON_FAILURE: Object = Object {
    fields: &[
        Field::new(
            "planner",
            Shape::OneOf(FAILURE_POLICIES),
            "refuse: the drain ends as failed. ignore: the draft stays as it was. hold: it is asked again until it \
             succeeds or the drain's deadline passes. A planner's refusal is no failure. Default refuse.",
        ),
        Field::new(
            "hooks",
            Shape::OneOf(FAILURE_POLICIES),
            "refuse: the drain ends as failed. ignore: the hook counts as done. hold: it is called again until it \
             succeeds or the drain's deadline passes. Default: hold where it traps or overruns its limits, refuse where \
             it says itself that it will never work.",
        ),
    ],
    one_of: &[],
};

static DRAIN: Object = Object {
    fields: &[
        Field::new(
            "sla",
            Shape::Duration {
                least_ms: 0,
                most_ms: 30 * DAY_MS,
            },
            "How long a drain may take, from the moment the kubelet claims it; 0: as long as it takes. Default 5m.",
        ),
        Field::new(
            "eviction-timeout",
            Shape::Duration {
                least_ms: 1,
                most_ms: DAY_MS,
            },
            "How long one eviction request may take before it is given up and asked again. Default 30s.",
        ),
        Field::new(
            "forbidden-timeout",
            Shape::Duration {
                least_ms: 0,
                most_ms: DAY_MS,
            },
            "How long the API server may refuse (401, 403) the node's lease, the writes of the node and of its \
             LifecycleEvents, as it does for seconds after a restart, before the drain fails, or goes on without the \
             lease; 0: not at all. Default 2m.",
        ),
        Field::new(
            "grace-period",
            Shape::Whole {
                least: -1,
                most: 30 * 24 * 3600,
            },
            "Overrides the pods' own grace period, in seconds; -1: their own. Default -1.",
        ),
        Field::new(
            "force",
            Shape::Bool,
            "Also evict pods without a controller. Default false.",
        ),
        Field::new(
            "delete-emptydir-data",
            Shape::Bool,
            "Also evict pods with an emptyDir volume; its contents are lost. Default true.",
        ),
        Field::new(
            "ignore-daemonsets",
            Shape::Bool,
            "Leave DaemonSet pods where they are instead of refusing the drain. Default true.",
        ),
        Field::new(
            "returning-pod-evictions",
            Shape::Whole { least: 1, most: 100 },
            "How often pods of one controller are evicted that come back to the cordoned node, for instance because they \
             tolerate the cordon; after that they stay, and the drain ends without them and names them. Default 1, as for \
             kubectl drain.",
        ),
        Field::new(
            "on-failure",
            Shape::OneOf(&["keep", "rollback"]),
            "What becomes of our own cordon when a drain fails, passes its deadline or is lost. Default keep. What \
             policies changed follows it: with keep it stays and the uncordon undoes it, with rollback the policies undo \
             it at once.",
        ),
        Field::new(
            "allow-overrides",
            Shape::List {
                of: &Shape::OneOf(overrides::NAMES),
                most: overrides::NAMES.len(),
            },
            "Flags of `scupper drain` that the driver obeys although they widen what this file allows. Anyone who may \
             create LifecycleEvents may give them. What narrows is always obeyed: a longer grace period, a shorter \
             timeout, a selector of pods. Default: none.",
        ),
    ],
    one_of: &[],
};
