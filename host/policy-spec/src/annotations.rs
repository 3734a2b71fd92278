//! Which annotations a policy may set: those below a prefix that the operator granted and the policy requested.

use scupper_common::text::one_line;
use thiserror::Error;

use super::{Capability, FACTS, Grant};

/// Domains whose annotations control the cluster or this driver. They and their subdomains are never granted.
const RESERVED: [&str; 3] = ["kubernetes.io", "k8s.io", "scupper.dev"];

/// The longest domain and the longest name in an annotation's key.
const DOMAIN_BYTES: usize = 253;
const NAME_BYTES: usize = 63;

/// Bytes of a wrong prefix that are shown.
const SHOWN_BYTES: usize = 100;

/// Why a prefix of annotations cannot be granted.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PrefixError {
    /// No key can begin with it, or keys of many domains can.
    #[error(
        "`{0}` is not an annotation prefix: a domain, a slash and the beginning of a name, such as example.com/"
    )]
    Form(String),
    /// No Events are emitted about it.
    #[error("`{0}` is not a target of Events; write node or pods")]
    Subject(String),
    /// The fact does not exist.
    #[error("`{0}` is not a target of facts; write one of {facts}", facts = FACTS.join(", "))]
    Fact(String),
    /// The domain is the cluster's or the driver's own.
    #[error("annotations of `{0}` steer the cluster or this driver and are never granted")]
    Reserved(String),
}

/// Checks an operator's grant or a policy's request.
pub fn check_grant(grant: &Grant) -> Result<(), PrefixError> {
    match grant.capability {
        Capability::NodeAnnotations | Capability::PodAnnotations => check_prefix(&grant.target),
        Capability::Events if matches!(grant.target.as_str(), "node" | "pods") => Ok(()),
        Capability::Facts if FACTS.contains(&grant.target.as_str()) => Ok(()),
        // These have their own errors.
        Capability::Http | Capability::Secret => Ok(()),
        Capability::Events => Err(PrefixError::Subject(one_line(&grant.target, SHOWN_BYTES))),
        Capability::Facts => Err(PrefixError::Fact(one_line(&grant.target, SHOWN_BYTES))),
    }
}

/// Checks a prefix of annotation keys.
pub fn check_prefix(prefix: &str) -> Result<(), PrefixError> {
    let parts = prefix
        .split_once('/')
        .filter(|(domain, name)| is_domain(domain) && begins_name(name));
    let (domain, _) = parts.ok_or_else(|| PrefixError::Form(one_line(prefix, SHOWN_BYTES)))?;
    let below = |reserved: &str| {
        domain
            .strip_suffix(reserved)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match RESERVED.into_iter().find(|reserved| below(reserved)) {
        Some(reserved) => Err(PrefixError::Reserved(reserved.to_owned())),
        None => Ok(()),
    }
}

/// Whether the policy may set an annotation with this key. Grants cover `wants`: otherwise the policy would not be
/// loaded.
pub fn allows_annotation(wants: &[Grant], capability: Capability, key: &str) -> bool {
    let wanted = wants
        .iter()
        .any(|want| want.capability == capability && key.starts_with(&want.target));
    wanted && is_annotation_key(key) && check_prefix(key).is_ok()
}

/// Whether the grant covers the request.
pub fn covers(grant: &Grant, want: &Grant) -> bool {
    grant.capability == want.capability && want.target.starts_with(&grant.target)
}

/// `DOMAIN/NAME`, as the API server requires it.
fn is_annotation_key(key: &str) -> bool {
    key.split_once('/')
        .is_some_and(|(domain, name)| is_domain(domain) && is_name(name))
}

fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= DOMAIN_BYTES && text.split('.').all(label)
}

fn is_name(text: &str) -> bool {
    begins_name(text)
        && text
            .bytes()
            .next_back()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a name can begin like this; an empty prefix fits every name.
fn begins_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= NAME_BYTES
        && text.bytes().all(inner)
        && text
            .bytes()
            .next()
            .is_none_or(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_has_a_domain_of_its_own() {
        for good in [
            "example.com/",
            "slurm.example.com/drain-",
            "example/",
            "myscupper.dev/",
        ] {
            assert_eq!(check_prefix(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "/",
            "Example.com/",
            "a..b/",
            "-a/",
            "a-/",
            "exa mple.com/",
            "example.com/a b",
            "example.com/-a",
            "example.com/a/b",
        ] {
            assert_eq!(check_prefix(bad), Err(PrefixError::Form(bad.to_owned())));
        }
        for own in [
            "kubernetes.io/",
            "node.kubernetes.io/x",
            "scupper.dev/",
            "a.scupper.dev/",
            "k8s.io/",
        ] {
            assert!(
                matches!(check_prefix(own), Err(PrefixError::Reserved(_))),
                "{own}"
            );
        }
    }

    #[test]
    fn a_request_needs_a_grant_of_its_kind_that_is_at_least_as_wide() {
        let granted = grant("node-annotations:example.com/a");
        let wants = ["node-annotations:example.com/ab", "node-annotations:example.com/"].map(grant);
        assert_eq!(wants.map(|want| covers(&granted, &want)), [true, false]);
        assert!(!covers(&granted, &grant("pod-annotations:example.com/ab")));
    }

    #[test]
    fn a_key_must_be_wanted_and_valid() {
        let wants = [grant("node-annotations:example.com/drain-")];
        assert!(allows_annotation(
            &wants,
            Capability::NodeAnnotations,
            "example.com/drain-state"
        ));
        assert!(!allows_annotation(
            &wants,
            Capability::PodAnnotations,
            "example.com/drain-state"
        ));
        for key in [
            "example.com/other",
            "example.com/drain-",
            "example.com/drain-a/b",
            "example.com/drain-\n",
        ] {
            assert!(
                !allows_annotation(&wants, Capability::NodeAnnotations, key),
                "{key:?}"
            );
        }
        let long = format!("example.com/drain-{}", "x".repeat(80));
        assert!(!allows_annotation(&wants, Capability::NodeAnnotations, &long));
    }
}
