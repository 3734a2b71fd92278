//! What a policy wants of `http`: `GET,POST https://example.com/api/`.

use http::Method;
use scupper_common::text::one_line;
use thiserror::Error;

use super::rules::{HttpRules, PathPrefix, method};
use super::url::{HttpUrl, Origin, UrlError, lower_host, shown_url};
use super::{HTTP_METHODS, HttpGrant, Networks};

/// Bytes of a wrong want that are shown.
const SHOWN_BYTES: usize = 120;

/// Why a target is none of `http`.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum HttpWantError {
    /// Methods, a space and a URL: something is missing.
    #[error(
        "`{0}` is not an http target: write methods, a space and how URLs begin, such as GET,POST https://example.com/api/"
    )]
    Form(String),
    /// There is no such method.
    #[error("`{}` is none of {}", .0, HTTP_METHODS.join(", "))]
    Method(String),
    /// The URL is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The URL has a query, which a beginning cannot have.
    #[error("`{0}` has a query or a star: a beginning of URLs ends with its path")]
    Query(String),
}

/// Something a policy wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpWant {
    methods: Vec<Method>,
    origin: Origin,
    path: PathPrefix,
}

impl HttpWant {
    /// Reads a target.
    pub fn parse(target: &str) -> Result<Self, HttpWantError> {
        let (methods, url) = target
            .split_once(' ')
            .ok_or_else(|| HttpWantError::Form(one_line(&shown_url(target), SHOWN_BYTES)))?;
        let method =
            |name: &str| method(name).ok_or_else(|| HttpWantError::Method(one_line(name, SHOWN_BYTES)));
        let methods = methods.split(',').map(method).collect::<Result<_, _>>()?;
        let address = HttpUrl::parse(url)?;
        let path = PathPrefix::parse(&address.path).filter(|_| address.query.is_none());
        Ok(Self {
            methods,
            origin: address.origin,
            path: path.ok_or_else(|| HttpWantError::Query(shown_url(url)))?,
        })
    }

    /// Whether the operator granted all of it.
    pub fn is_granted(&self, rules: &HttpRules) -> bool {
        let path = self.path.as_str();
        self.methods
            .iter()
            .all(|method| rules.covering(method, &self.origin, path).is_some())
    }

    /// Whether a request is one of those that it wants.
    pub fn covers(&self, method: &Method, origin: &Origin, path: &str) -> bool {
        self.methods.contains(method) && self.origin == *origin && self.path.covers(path)
    }

    /// What an operator would add under `http` in the policy's grants, as YAML.
    pub fn to_yaml(&self) -> String {
        grant_yaml(&self.methods, &self.origin, self.path.as_str())
    }
}

/// An entry under `http` that grants this, as YAML.
pub fn grant_yaml(methods: &[Method], origin: &Origin, path: &str) -> String {
    let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let methods = methods.join(", ");
    format!("{{origin: \"{origin}\", methods: [{methods}], paths: [\"{path}\"]}}")
}

/// A grant in the short form of the command line, which is that of wants, but for capitals in the host.
pub fn simple_grant(target: &str) -> Result<HttpGrant, HttpWantError> {
    let want = HttpWant::parse(&lower_host(target))?;
    Ok(HttpGrant {
        origin: want.origin.to_string(),
        methods: want.methods.iter().map(ToString::to_string).collect(),
        paths: vec![want.path.as_str().to_owned()],
        networks: Networks::default(),
        ca: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpRule;

    #[test]
    fn a_want_is_granted_when_all_of_it_is() {
        let granted = simple_grant("GET,POST http://example.com/v3/").unwrap();
        let rules = HttpRules::new(vec![HttpRule::of(&granted).unwrap()]);
        let is_granted = |target: &str| HttpWant::parse(target).unwrap().is_granted(&rules);
        for target in [
            "GET http://example.com/v3",
            "POST,GET http://example.com:80/v3/auth/",
        ] {
            assert!(is_granted(target), "{target}");
        }
        for target in [
            "GET http://example.com",
            "GET,DELETE http://example.com/v3/",
            "GET http://example.com/v30/",
            "GET https://example.com/v3/",
            "GET http://example.com:8080/v3/",
        ] {
            assert!(!is_granted(target), "{target}");
        }
    }

    #[test]
    fn a_missing_grant_is_told_as_the_file_has_it() {
        let want = HttpWant::parse("GET,POST https://keystone.example.com:5000/v3/").unwrap();
        assert_eq!(
            want.to_yaml(),
            "{origin: \"https://keystone.example.com:5000\", methods: [GET, POST], paths: [\"/v3\"]}"
        );
    }

    #[test]
    fn a_wrong_want_is_none() {
        for target in [
            "",
            "https://example.com/",
            "GET",
            "GET example.com",
            "get https://example.com/",
            "GET, POST https://example.com/",
            "GET https://example.com/?a=b",
            "GET https://example.com/*",
            "GET https://*.example.com/",
            "GET  https://example.com/",
        ] {
            assert!(HttpWant::parse(target).is_err(), "{target}");
        }
    }
}
