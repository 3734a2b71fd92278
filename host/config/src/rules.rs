//! Rules for texts: names, origins, prefixes. Each has a description for users, a check, and a pattern for the schema
//! that accepts everything the check accepts.

use scupper_common::label_selector;
use scupper_policy_spec::{
    HTTP_PATH_RULE, NameError, POLICY_NAME_PATTERN, POLICY_NAME_RULE, SECRET_NAME_PATTERN, SECRET_NAME_RULE,
    check_policy_name, check_prefix, is_http_path, is_secret_name, read_http_origin,
};

/// A rule that a text must follow.
#[derive(Debug)]
pub(super) struct Rule {
    /// The required form, after "must be".
    pub(super) what: &'static str,
    /// For the schema. It may accept slightly more than the check.
    pub(super) pattern: &'static str,
    check: fn(&str) -> Result<(), String>,
}

impl Rule {
    /// The error in the text, as a whole sentence.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        (self.check)(text).map_err(|why| match why.as_str() {
            "" => format!("must be {}", self.what),
            why => why.to_owned(),
        })
    }
}

/// The name of a policy, which plans, checkpoints and metrics contain.
pub(super) static NAME: Rule = Rule {
    what: POLICY_NAME_RULE,
    pattern: POLICY_NAME_PATTERN,
    check: |text| match check_policy_name(text) {
        Err(reserved @ NameError::Reserved) => Err(reserved.to_string()),
        checked => require(checked.is_ok()),
    },
};

/// A path of a file.
pub(super) static PATH: Rule = Rule {
    what: "the path of a file",
    pattern: "^[^\\u0000]+$",
    check: |text| require(!text.is_empty() && !text.contains('\0')),
};

/// SHA-256 in hex.
pub(super) static DIGEST: Rule = Rule {
    what: "a SHA-256 in hex, 64 digits, as `sha256sum FILE` prints it",
    pattern: "^[0-9a-fA-F]{64}$",
    check: |text| require(text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())),
};

/// Prefixes of annotation keys.
pub(super) static PREFIX: Rule = Rule {
    what: "how keys of annotations begin: a domain, a slash and perhaps more, such as example.com/",
    pattern: "^[a-z0-9.-]{1,253}/[A-Za-z0-9._-]{0,63}$",
    check: |text| check_prefix(text).map_err(|error| error.to_string()),
};

/// The target of requests.
pub(super) static ORIGIN: Rule = Rule {
    what: "an origin: https://HOST or https://HOST:PORT, or the same with http",
    pattern: "^https?://[^/?#@*\\\\\\s]+$",
    check: |text| {
        read_http_origin(text)
            .map(drop)
            .map_err(|error| error.to_string())
    },
};

/// Prefixes of URL paths.
pub(super) static URL_PATH: Rule = Rule {
    what: HTTP_PATH_RULE,
    pattern: "^/[^?#*\\\\\\s]*$",
    check: |text| require(is_http_path(text)),
};

/// The policy's name for a secret.
pub(super) static SECRET_NAME: Rule = Rule {
    what: SECRET_NAME_RULE,
    pattern: SECRET_NAME_PATTERN,
    check: |text| require(is_secret_name(text)),
};

/// The name of a Kubernetes object.
pub(super) static OBJECT_NAME: Rule = Rule {
    what: "the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
    pattern: "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
    check: |text| {
        let inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        let edges = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = (1..=253).contains(&text.len()) && text.bytes().all(inner);
        require(fits && text.starts_with(edges) && text.ends_with(edges))
    },
};

/// A label selector, as kubectl takes it.
pub(super) static LABEL_SELECTOR: Rule = Rule {
    what: "a valid label selector",
    pattern: "",
    check: |text| require(label_selector::parse(text).is_some()),
};

/// The version of an API.
pub(super) static VERSION: Rule = Rule {
    what: "the version of an API, such as v1alpha1",
    pattern: "^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$",
    check: |text| require(is_version(text)),
};

/// The type of a condition.
pub(super) static CONDITION: Rule = Rule {
    what: "the type of a condition: at most 63 letters, digits, '-', '_' and '.', perhaps after a domain and a slash",
    pattern: "^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
    check: |text| {
        let (domain, name) = match text.split_once('/') {
            Some((domain, name)) => (Some(domain), name),
            None => (None, text),
        };
        let is_domain = |domain: &str| OBJECT_NAME.check(domain).is_ok();
        require(domain.is_none_or(is_domain) && is_label_text(name) && !name.is_empty())
    },
};

/// A key in a Secret's data.
pub(super) static SECRET_KEY: Rule = Rule {
    what: "a key of a Secret's data: 1 to 253 letters, digits, '-', '_' and '.'",
    pattern: "^[A-Za-z0-9._-]{1,253}$",
    check: |text| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        require((1..=253).contains(&text.len()) && text.bytes().all(fits))
    },
};

/// The name of an HTTP header.
pub(super) static HEADER: Rule = Rule {
    what: "the name of an HTTP header, such as X-Subject-Token",
    pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$",
    check: |text| require(text.len() <= 128 && http::HeaderName::from_bytes(text.as_bytes()).is_ok()),
};

/// The error in a label, if any: `DOMAIN/NAME` or `NAME`, and a short value.
pub(super) fn label(key: &str, value: &str) -> Result<(), String> {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let is_domain = |domain: &str| OBJECT_NAME.check(domain).is_ok();
    if !(domain.is_none_or(is_domain) && is_label_text(name) && !name.is_empty()) {
        return Err("no label of a node can have this key".to_owned());
    }
    if is_label_text(value) {
        return Ok(());
    }
    Err(
        "no label of a node can have this value: it is at most 63 letters, digits, '-', '_' and '.'"
            .to_owned(),
    )
}

fn is_version(text: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    let stage = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    stage.map_or_else(
        || is_number(rest),
        |(major, minor)| is_number(major) && is_number(minor),
    )
}

fn is_label_text(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edges = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || (text.len() <= 63 && text.bytes().all(inner) && text.starts_with(edges) && text.ends_with(edges))
}

/// An empty error means the rule's own description.
fn require(fits: bool) -> Result<(), String> {
    fits.then_some(()).ok_or_else(String::new)
}
