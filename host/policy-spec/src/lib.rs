//! The operator's specification of a policy: its name, grants, limits and configuration, and the checks of each.
//!
//! The configuration file, the flags and the loader all read and check a policy's specification here. This crate knows
//! neither wasm nor the network: it defines the rules, and `scupper-policy` enforces them.
#![deny(missing_docs)]

mod annotations;
#[cfg(test)]
mod error_texts;
mod facts;
mod grant;
mod http;
mod limits;
mod name;
mod secret;
mod spec;

pub use annotations::{PrefixError, allows_annotation, check_grant, check_prefix, covers};
pub use facts::{FACTS, Fact};
pub use grant::{Capability, Grant, GrantError};
pub use http::{
    HTTP_METHODS, HTTP_PATH_RULE, HttpGrant, HttpGrantError, HttpRule, HttpRules, HttpTargetError, HttpUrl,
    HttpWant, Networks, Origin, PathPrefix, UrlError, grant_yaml, is_http_path, read_http_origin, shown_url,
};
pub use limits::Limits;
pub use name::{
    NameError, POLICY_NAME_PATTERN, POLICY_NAME_RULE, SECRET_NAME_PATTERN, SECRET_NAME_RULE,
    check_policy_name, is_secret_name,
};
pub use secret::{
    Capture, SecretGrant, SecretGrantError, SecretRule, SecretRules, SecretSource, ValueSource,
};
pub use spec::{FailurePolicy, OnFailure, PolicyMode, PolicySpec, SpecSource};
