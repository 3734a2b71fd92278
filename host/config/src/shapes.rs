//! The table: every key of the file, its shape and its meaning.

use scupper_policy_spec::{FACTS, HTTP_METHODS};

use super::limits::LIMITS;
use super::rules;
use super::shape::{Field, Object, Shape};

/// The required version and kind.
pub(super) const VERSION: &str = "scupper.dev/v1alpha1";
pub(super) const KIND: &str = "Configuration";

/// More than an operator can review.
const POLICIES: usize = 64;
const ENTRIES: usize = 64;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// The values of a `mode`.
pub(super) const MODES: &[&str] = &["active", "shadow"];

/// The values of an `on-failure`.
pub(super) const FAILURE_POLICIES: &[&str] = &["refuse", "ignore", "hold"];

/// The whole file.
pub(super) static CONFIGURATION: Object = Object {
    fields: &[
        Field::required(
            "apiVersion",
            Shape::OneOf(&[VERSION]),
            "The version of this format.",
        ),
        Field::required("kind", Shape::OneOf(&[KIND]), "The kind of this file."),
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
            Shape::Drain,
            "Which pods are evicted, and how; the flags of the same names override it. A change applies from the next \
             drain on; a change of `sla`, which is published, when the driver restarts.",
        ),
        Field::new(
            "drain-requests",
            Shape::Object(&DRAIN_REQUESTS),
            "Serves DrainRequests, as NVSentinel's node-drainer creates them; `{}` with NVSentinel's names. Default: \
             they are not served. A change applies when the driver restarts.",
        ),
    ],
    one_of: &[],
};

static DRAIN_REQUESTS: Object = Object {
    fields: &[
        Field::new(
            "group",
            Shape::Text(&rules::OBJECT_NAME),
            "Their API group. Default nvsentinel.nvidia.com.",
        ),
        Field::new(
            "version",
            Shape::Text(&rules::VERSION),
            "Its version. Default v1alpha1.",
        ),
        Field::new(
            "plural",
            Shape::Text(&rules::OBJECT_NAME),
            "The plural name of the resource. Default drainrequests.",
        ),
        Field::new(
            "namespaces",
            Shape::List {
                of: &Shape::Text(&rules::OBJECT_NAME),
                most: ENTRIES,
            },
            "The namespaces whose requests are served. Default: nvsentinel.",
        ),
        Field::new(
            "conditions",
            Shape::Object(&REQUEST_CONDITIONS),
            "The types of the conditions in the status of a request.",
        ),
        Field::new(
            "timeout",
            Shape::Duration {
                least_ms: 0,
                most_ms: 30 * DAY_MS,
            },
            "Time limit of a request, from the start of its drain; 0: no limit. Default 1h.",
        ),
        Field::new(
            "partial",
            Shape::Bool,
            "A request evicts only the pods in its podsToDrain, and is complete when those are gone. Otherwise it \
             drains the whole node. Default false.",
        ),
    ],
    one_of: &[],
};

static REQUEST_CONDITIONS: Object = Object {
    fields: &[
        Field::new(
            "complete",
            Shape::Text(&rules::CONDITION),
            "The pods are gone: node-drainer's statusConditionType. Default DrainComplete.",
        ),
        Field::new(
            "in-progress",
            Shape::Text(&rules::CONDITION),
            "The drain runs. Default DrainInProgress.",
        ),
        Field::new(
            "deferred",
            Shape::Text(&rules::CONDITION),
            "A policy holds the drain. Default DrainDeferred.",
        ),
        Field::new(
            "failed",
            Shape::Text(&rules::CONDITION),
            "The drain ended without success. Default DrainFailed.",
        ),
    ],
    one_of: &[],
};

static POLICY: Object = Object {
    fields: &[
        Field::required(
            "name",
            Shape::Text(&rules::NAME),
            "The operator's name for the policy, used in plans, reports, metrics and the saved state of a drain.",
        ),
        Field::required(
            "module",
            Shape::Text(&rules::PATH),
            "The file of its component. A relative path begins at this file's own directory.",
        ),
        Field::new(
            "sha256",
            Shape::Text(&rules::DIGEST),
            "The required SHA-256 of the component.",
        ),
        Field::new(
            "config",
            Shape::Anything,
            "The policy's configuration. It receives scalars as they are written here, and lists and maps as JSON.",
        ),
        Field::new(
            "grants",
            Shape::Object(&GRANTS),
            "The capabilities granted to the policy. Default: none.",
        ),
        Field::new(
            "limits",
            Shape::Object(&LIMITS),
            "Resource limits for the policy.",
        ),
        Field::new(
            "on-failure",
            Shape::Object(&ON_FAILURE),
            "The effect of a failing policy on the drain: one that traps, overruns its limits, returns an invalid \
             answer, or whose hook fails for good. A planner's refusal is not a failure.",
        ),
        Field::new(
            "node-selector",
            Shape::Labels,
            "The policy applies only to nodes that have all of these labels when a drain begins. Default: every node.",
        ),
        Field::new(
            "mode",
            Shape::OneOf(MODES),
            "shadow: the policy plans real drains without effect, and Scupper reports what it would change; its hooks are \
             not called. `scupper policy promote` shows how to make it active. Default active.",
        ),
        Field::new(
            "instead-of",
            Shape::Text(&rules::NAME),
            "Of a shadow: the active policy that it would replace. Default: it would come in addition, at its place in \
             this list.",
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
            "The objects about which it may emit Kubernetes Events.",
        ),
        Field::new(
            "facts",
            Shape::List {
                of: &Shape::OneOf(&FACTS),
                most: FACTS.len(),
            },
            "What it may ask about: request (labels and annotations of the LifecycleEvent, the DrainRequests), \
             namespaces (their labels and annotations), budgets (those of the node's pods), owners (the workloads of \
             the node's pods), resources (what the node's pods request, and their devices), volumes (of the node's \
             pods), peers (pods of the same controller or scheduling group). The driver's account needs the rights to \
             read them.",
        ),
        Field::new(
            "http",
            Shape::List {
                of: &Shape::Object(&HTTP),
                most: ENTRIES,
            },
            "The origins to which it may send requests.",
        ),
        Field::new(
            "secrets",
            Shape::List {
                of: &Shape::Object(&SECRET),
                most: ENTRIES,
            },
            "Secrets that the driver inserts into its requests. The policy never sees a secret.",
        ),
        Field::new(
            "wasi",
            Shape::Bool,
            "Allows the harmless part of WASI, which a language's standard library imports. Default false.",
        ),
    ],
    one_of: &[],
};

static HTTP: Object = Object {
    fields: &[
        Field::required(
            "origin",
            Shape::Text(&rules::ORIGIN),
            "The target of requests: https://HOST or https://HOST:PORT, or the same with http.",
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
            "Allowed path prefixes, matched by whole segments. Default: every path.",
        ),
        Field::new(
            "networks",
            Shape::List {
                of: &Shape::OneOf(&["private", "loopback"]),
                most: 2,
            },
            "Networks to which the origin's name may resolve, besides public addresses. Link-local addresses and \
             those of metadata services are never allowed.",
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
            "The policy's name for it.",
        ),
        Field::new(
            "file",
            Shape::Text(&rules::PATH),
            "A file with the secret, reread when it changes. A final line break is ignored.",
        ),
        Field::new(
            "secret",
            Shape::Object(&KUBERNETES_SECRET),
            "A key of a Kubernetes Secret, reread when it changes.",
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
            "The origins to which it may be sent. Each must also be granted under http.",
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
            "The origin of the responses. It must also be granted under http.",
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
            "refuse: the drain fails. ignore: the draft stays unchanged. hold: the planner is called again until it \
             succeeds or the drain's deadline passes. A planner's refusal is not a failure. Default refuse.",
        ),
        Field::new(
            "hooks",
            Shape::OneOf(FAILURE_POLICIES),
            "refuse: the drain fails. ignore: the hook counts as done. hold: the hook is called again until it \
             succeeds or the drain's deadline passes. Default: hold if it traps or overruns its limits, refuse if it \
             reports a permanent failure.",
        ),
    ],
    one_of: &[],
};
