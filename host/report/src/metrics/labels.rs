//! The label sets. Each label has few values: configured policies, functions of `wit/`, or names of closed lists.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Policy {
    pub(super) policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Function {
    pub(super) policy: String,
    pub(super) function: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Call {
    pub(super) policy: String,
    pub(super) function: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Request {
    pub(super) policy: String,
    /// `2xx` and so on, or `none`.
    pub(super) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Event {
    pub(super) policy: String,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Fact {
    pub(super) policy: String,
    pub(super) fact: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Finding {
    pub(super) concern: &'static str,
    pub(super) certainty: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reload {
    pub(super) policy: String,
    pub(super) result: &'static str,
    /// The failed step; empty if none failed.
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Info {
    pub(super) policy: String,
    pub(super) digest: String,
    pub(super) version: String,
    pub(super) state: &'static str,
    pub(super) generation: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Drain {
    pub(super) intent: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Phase {
    pub(super) phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Surge {
    pub(super) step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Hook {
    pub(super) policy: String,
    pub(super) phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiRequest {
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) code: String,
}
