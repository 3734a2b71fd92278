//! The label sets. Each label has few values: configured policies, functions of `wit/`, or names of closed lists.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Policy {
    pub(crate) policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Function {
    pub(crate) policy: String,
    pub(crate) function: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Call {
    pub(crate) policy: String,
    pub(crate) function: &'static str,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Request {
    pub(crate) policy: String,
    /// `2xx` and so on, or `none`.
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Event {
    pub(crate) policy: String,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ShadowPlan {
    pub(crate) policy: String,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Fact {
    pub(crate) policy: String,
    pub(crate) fact: &'static str,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Finding {
    pub(crate) concern: &'static str,
    pub(crate) certainty: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reload {
    pub(crate) policy: String,
    pub(crate) result: &'static str,
    /// The failed step; empty if none failed.
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Info {
    pub(crate) policy: String,
    pub(crate) digest: String,
    pub(crate) version: String,
    pub(crate) state: &'static str,
    pub(crate) generation: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Drain {
    pub(crate) intent: &'static str,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Phase {
    pub(crate) phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Surge {
    pub(crate) step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Hook {
    pub(crate) policy: String,
    pub(crate) phase: String,
}

/// Of drains like this one, the share that ends before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Quantile {
    pub(crate) quantile: &'static str,
}

/// Where an end was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Estimated {
    pub(crate) end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ApiRequest {
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) code: String,
}
