//! The short form of a grant: `GET,POST https://example.com/api/`, for the flag `--grant` and a policy's requests.
//!
//! The text is only split here. [`HttpRule::of`] parses the parts, as it parses a grant of the configuration file, so
//! that all three have the same meaning.

use std::str::FromStr;

use http::Method;
use scupper_common::text::one_line;
use thiserror::Error;

use super::rules::{HttpGrantError, HttpRule, HttpRules};
use super::url::{Origin, shown_url, split_origin};
use super::{HttpGrant, Networks};

/// Bytes of an invalid target that an error shows.
const SHOWN_BYTES: usize = 120;

/// Why a text is not a target of `http`.
#[derive(Debug, Error)]
pub enum HttpTargetError {
    /// Methods, a space and a URL: a part is missing.
    #[error(
        "`{0}` is not an http target: write methods, a space and a URL prefix, such as GET,POST https://example.com/api/"
    )]
    Form(String),
    /// The URL continues after its path.
    #[error("`{0}` has a query or a fragment; a URL prefix has neither")]
    Query(String),
    /// A part is invalid.
    #[error(transparent)]
    Grant(#[from] HttpGrantError),
}

/// The requests that a policy wants to send.
#[derive(Clone, Debug)]
pub struct HttpWant(HttpRule);

impl FromStr for HttpGrant {
    type Err = HttpTargetError;

    fn from_str(target: &str) -> Result<Self, HttpTargetError> {
        let rule = read(target)?;
        Ok(Self {
            origin: rule.origin.to_string(),
            methods: rule.methods.iter().map(ToString::to_string).collect(),
            paths: rule.paths.iter().map(|path| path.as_str().to_owned()).collect(),
            networks: rule.networks,
            ca: rule.ca,
        })
    }
}

impl FromStr for HttpWant {
    type Err = HttpTargetError;

    fn from_str(target: &str) -> Result<Self, HttpTargetError> {
        read(target).map(Self)
    }
}

fn read(target: &str) -> Result<HttpRule, HttpTargetError> {
    let (methods, url) = target
        .split_once(' ')
        .ok_or_else(|| HttpTargetError::Form(one_line(&shown_url(target), SHOWN_BYTES)))?;
    // An error about a path would show the text after it.
    if url.contains(['?', '#']) {
        return Err(HttpTargetError::Query(shown_url(url)));
    }
    let (origin, path) = split_origin(url);
    let grant = HttpGrant {
        origin: origin.to_owned(),
        methods: methods.split(',').map(str::to_owned).collect(),
        paths: vec![if path.is_empty() { "/" } else { path }.to_owned()],
        networks: Networks::default(),
        ca: None,
    };
    Ok(HttpRule::of(&grant)?)
}

impl HttpWant {
    /// Whether the operator granted all of it.
    pub fn is_granted(&self, rules: &HttpRules) -> bool {
        let HttpRule {
            methods,
            origin,
            paths,
            ..
        } = &self.0;
        let covered = |method, path: &str| rules.covering(method, origin, path).is_some();
        methods
            .iter()
            .all(|method| paths.iter().all(|path| covered(method, path.as_str())))
    }

    /// Whether a request is one of those.
    pub fn covers(&self, method: &Method, origin: &Origin, path: &str) -> bool {
        self.0.origin == *origin && self.0.covers(method, path)
    }

    /// What an operator would add under `http` in the policy's grants, as YAML.
    pub fn to_yaml(&self) -> String {
        let paths: Vec<_> = self.0.paths.iter().map(|path| path.as_str()).collect();
        grant_yaml(&self.0.methods, &self.0.origin, &paths.join("\", \""))
    }
}

/// An entry under `http` that grants this, as YAML.
pub fn grant_yaml(methods: &[Method], origin: &Origin, path: &str) -> String {
    let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let methods = methods.join(", ");
    format!("{{origin: \"{origin}\", methods: [{methods}], paths: [\"{path}\"]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(target: &str) -> HttpWant {
        target.parse().unwrap()
    }

    #[test]
    fn a_want_is_granted_when_all_of_it_is() {
        let granted: HttpGrant = "GET,POST http://example.com/v3/".parse().unwrap();
        let rules = HttpRules::new(vec![HttpRule::of(&granted).unwrap()]);
        for target in [
            "GET http://example.com/v3",
            "POST,GET http://example.com:80/v3/auth/",
        ] {
            assert!(want(target).is_granted(&rules), "{target}");
        }
        for target in [
            "GET http://example.com",
            "GET,DELETE http://example.com/v3/",
            "GET http://example.com/v30/",
            "GET https://example.com/v3/",
            "GET http://example.com:8080/v3/",
        ] {
            assert!(!want(target).is_granted(&rules), "{target}");
        }
    }

    #[test]
    fn a_missing_grant_is_shown_as_the_file_has_it() {
        assert_eq!(
            want("GET,POST https://keystone.example.com:5000/v3/").to_yaml(),
            "{origin: \"https://keystone.example.com:5000\", methods: [GET, POST], paths: [\"/v3\"]}"
        );
    }

    #[test]
    fn an_invalid_target_is_refused_without_its_query() {
        for target in [
            "",
            "https://example.com/",
            "GET",
            "GET example.com",
            "get https://example.com/",
            "GET, POST https://example.com/",
            "GET https://example.com/?a=hunter2",
            "GET https://example.com/#hunter2",
            "GET https://example.com?hunter2",
            "GET https://user:hunter2@example.com/",
            "GET https://example.com/*",
            "GET https://*.example.com/",
            "GET  https://example.com/",
        ] {
            let error = target.parse::<HttpWant>().unwrap_err();
            let shown = format!("{error} {:?}", std::error::Error::source(&error));
            assert!(!shown.contains("hunter2"), "{target}: {shown}");
        }
    }

    /// The configuration file and `--grant` accepted hosts in capitals, and a policy's requests did not: a policy that
    /// requested `https://Nova.example.com/` could not be loaded, whatever the operator granted.
    #[test]
    fn the_file_the_flag_and_a_policys_request_have_the_same_syntax() {
        let hosts = [
            "a.example.com",
            "A.example.com",
            "*.a.com",
            "a_b",
            "10.0.0.1",
            "0x7f.1",
            "[::1]",
            "[FD00::1]",
            "[::ffff:1.2.3.4]",
            "u@a",
            "ä.example.com",
            "",
        ];
        let ports = ["", ":443", ":80", ":8080", ":0443", ":0", ":10250", ":99999", ":"];
        let paths = [
            "/", "/v3", "/v3/", "/a//b", "//", "/v3*", "/a/../b", "/a%20b", "/a%2fb", "/a%", "/a;b",
            "/..;/b", "/a?b", "/a#b", "/ä", "/a\\b",
        ];
        let (mut taken, mut refused) = (0, 0);
        for scheme in ["https", "http", "HTTP", "ftp"] {
            for (host, port) in hosts
                .iter()
                .flat_map(|host| ports.iter().map(move |port| (host, port)))
            {
                for path in paths {
                    let origin = format!("{scheme}://{host}{port}");
                    let file = HttpRule::of(&HttpGrant {
                        origin: origin.clone(),
                        methods: vec!["GET".to_owned(), "POST".to_owned()],
                        paths: vec![path.to_owned()],
                        ..HttpGrant::default()
                    });
                    let target = format!("GET,POST {origin}{path}");
                    let flag = target
                        .parse()
                        .map(|grant: HttpGrant| HttpRule::of(&grant).unwrap());
                    let want = target.parse().map(|want: HttpWant| want.0);
                    assert_eq!(flag.ok(), file.as_ref().ok().cloned(), "--grant {target}");
                    assert_eq!(want.ok(), file.as_ref().ok().cloned(), "a policy wants {target}");
                    if file.is_ok() { taken += 1 } else { refused += 1 }
                }
            }
        }
        assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
    }
}
