//! The operator's grants, parsed.

use std::path::PathBuf;

use http::Method;
use scupper_common::text::one_line;
use thiserror::Error;

use super::url::{HttpUrl, Origin, UrlError, is_plain};
use super::{HTTP_METHODS, HTTP_PATH_RULE, HttpGrant, Networks};

/// The methods without side effects: the default of a grant without methods.
const READING: [Method; 2] = [Method::GET, Method::HEAD];

/// Bytes of a wrong method or path that are shown.
const SHOWN_BYTES: usize = 80;

/// The errors of a grant of `http`.
#[derive(Debug, Error)]
pub enum HttpGrantError {
    /// The origin is invalid.
    #[error("origin")]
    Origin(#[source] UrlError),
    /// The method does not exist, or is never granted.
    #[error("methods: `{}` is not one of {}", .0, HTTP_METHODS.join(", "))]
    Method(String),
    /// The path is invalid.
    #[error("paths: `{}` must be {}", .0, HTTP_PATH_RULE)]
    Path(String),
    /// An origin without TLS has no certificate to verify.
    #[error("ca: the origin is http, which has no certificates; write https, or leave ca out")]
    CaWithoutTls,
}

/// A parsed grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRule {
    /// The origin.
    pub origin: Origin,
    /// Never empty.
    pub methods: Vec<Method>,
    /// Never empty.
    pub paths: Vec<PathPrefix>,
    /// Networks to which the origin's name may resolve, besides public addresses.
    pub networks: Networks,
    /// The additional certificates to trust.
    pub ca: Option<PathBuf>,
}

/// A path prefix: whole segments, without the last slash; empty: every path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPrefix(String);

/// All grants of one policy.
#[derive(Clone, Debug, Default)]
pub struct HttpRules(Vec<HttpRule>);

impl HttpRules {
    /// Parsed grants.
    pub const fn new(rules: Vec<HttpRule>) -> Self {
        Self(rules)
    }

    /// The rule that covers it.
    pub fn covering(&self, method: &Method, origin: &Origin, path: &str) -> Option<&HttpRule> {
        self.of_origin(origin).find(|rule| rule.covers(method, path))
    }

    /// Whether anything of the origin was granted.
    pub fn knows(&self, origin: &Origin) -> bool {
        self.of_origin(origin).next().is_some()
    }

    fn of_origin(&self, origin: &Origin) -> impl Iterator<Item = &HttpRule> {
        self.0.iter().filter(move |rule| rule.origin == *origin)
    }
}

impl HttpRule {
    /// Parses a grant. The file of certificates is not read.
    pub fn of(grant: &HttpGrant) -> Result<Self, HttpGrantError> {
        let origin = Origin::parse(&grant.origin).map_err(HttpGrantError::Origin)?;
        if grant.ca.is_some() && !origin.https {
            return Err(HttpGrantError::CaWithoutTls);
        }
        let methods = grant
            .methods
            .iter()
            .map(|name| method(name).ok_or_else(|| HttpGrantError::Method(one_line(name, SHOWN_BYTES))));
        let paths = grant.paths.iter().map(|path| {
            PathPrefix::parse(path).ok_or_else(|| HttpGrantError::Path(one_line(path, SHOWN_BYTES)))
        });
        let mut methods: Vec<Method> = methods.collect::<Result<_, _>>()?;
        let mut paths: Vec<PathPrefix> = paths.collect::<Result<_, _>>()?;
        if methods.is_empty() {
            methods.extend(READING);
        }
        if paths.is_empty() {
            paths.push(PathPrefix(String::new()));
        }
        Ok(Self {
            origin,
            methods,
            paths,
            networks: grant.networks,
            ca: grant.ca.clone(),
        })
    }

    /// Whether it covers such a request to its origin.
    pub fn covers(&self, method: &Method, path: &str) -> bool {
        self.methods.contains(method) && self.paths.iter().any(|prefix| prefix.covers(path))
    }
}

impl PathPrefix {
    /// `/v3/`, `/v3`, `/`
    pub fn parse(text: &str) -> Option<Self> {
        // A request's path is in the URL's canonical form, so no request has a path that a URL would write differently.
        let address = HttpUrl::parse(&format!("https://example.com{text}")).ok()?;
        // A star would look like a pattern, which it is not.
        let same = is_plain(text) && address.path == text && address.query.is_none() && !text.contains('*');
        same.then(|| Self(text.trim_end_matches('/').to_owned()))
    }

    /// Whether a path begins like this.
    pub fn covers(&self, path: &str) -> bool {
        path.strip_prefix(&self.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The form in a grant.
    pub fn as_str(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }
}

/// A method that can be granted.
pub(super) fn method(name: &str) -> Option<Method> {
    let name = HTTP_METHODS.iter().find(|method| **method == name)?;
    Method::from_bytes(name.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(grants: &[HttpGrant]) -> HttpRules {
        HttpRules::new(grants.iter().map(|grant| HttpRule::of(grant).unwrap()).collect())
    }

    fn grant(origin: &str, methods: &[&str], paths: &[&str]) -> HttpGrant {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        HttpGrant {
            origin: origin.to_owned(),
            methods: owned(methods),
            paths: owned(paths),
            ..HttpGrant::default()
        }
    }

    fn covers(rules: &HttpRules, method: Method, url: &str) -> bool {
        let address = HttpUrl::parse(url).unwrap();
        rules.covering(&method, &address.origin, &address.path).is_some()
    }

    #[test]
    fn a_rule_covers_whole_segments_of_its_origin() {
        let rules = rules(&[
            grant("http://a.example.com:8080", &["GET", "POST"], &["/v3/", "/jobs"]),
            grant("http://b.example.com", &[], &[]),
        ]);
        for url in ["/v3", "/v3/", "/v3/auth/tokens", "/jobs/1", "/v3?x=/v4"] {
            assert!(
                covers(&rules, Method::POST, &format!("http://a.example.com:8080{url}")),
                "{url}"
            );
        }
        for url in ["/", "/v3x", "/v", "/jobsx/1", "/V3", "/v4/v3/"] {
            assert!(
                !covers(&rules, Method::GET, &format!("http://a.example.com:8080{url}")),
                "{url}"
            );
        }
        for url in [
            "http://a.example.com/v3",
            "https://a.example.com:8080/v3",
            "http://ba.example.com/",
        ] {
            assert!(!covers(&rules, Method::GET, url), "{url}");
        }
        assert!(!covers(&rules, Method::DELETE, "http://a.example.com:8080/v3"));
        assert!(covers(&rules, Method::HEAD, "http://b.example.com:80/any/thing"));
        assert!(!covers(&rules, Method::POST, "http://b.example.com/"));
    }

    #[test]
    fn a_wrong_grant_names_the_field_and_the_valid_values() {
        let refused = |grant: HttpGrant| HttpRule::of(&grant).unwrap_err();
        let origin = "https://example.com";
        assert!(matches!(
            refused(grant("https://example.com/v3", &[], &[])),
            HttpGrantError::Origin(UrlError::NotOrigin(_))
        ));
        for method in ["get", "CONNECT", "TRACE", "*", ""] {
            assert!(matches!(
                refused(grant(origin, &[method], &[])),
                HttpGrantError::Method(_)
            ));
        }
        for path in [
            "v3", "", "/v3/../", "/a b", "/a?b", "/%2e%2e", "//", "/v3*", "/a#b",
        ] {
            assert!(
                matches!(
                    refused(grant("http://example.com", &[], &[path])),
                    HttpGrantError::Path(_)
                ),
                "{path}"
            );
        }
        let ca = HttpGrant {
            ca: Some("/etc/ca.pem".into()),
            ..grant("http://example.com", &[], &[])
        };
        assert!(matches!(refused(ca), HttpGrantError::CaWithoutTls));
    }
}
