//! A policy's granted secrets, checked against its granted origins.

use std::collections::BTreeMap;

use http::HeaderName;
use scupper_common::text::one_line;
use thiserror::Error;

use super::{SecretGrant, SecretSource};
use crate::http::{HttpRules, Origin, UrlError};
use crate::name::{SECRET_NAME_RULE, is_secret_name};

/// Bytes of an invalid value that are shown.
const SHOWN_BYTES: usize = 120;

/// The errors of a grant of a secret.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SecretGrantError {
    /// The name is invalid: requests contain it, and outputs contain it in place of the value.
    #[error("name: must be {SECRET_NAME_RULE}, not `{0}`")]
    Name(String),
    /// Two secrets have the same name.
    #[error("name: another secret has the same name")]
    Twice,
    /// No origin may receive it.
    #[error("origins: there are none; list the origins to which the secret may be sent")]
    Nowhere,
    /// An origin is invalid.
    #[error("origins")]
    Origin(#[source] UrlError),
    /// The policy has no grant for requests to this origin.
    #[error("{field}: {origin} is not among the origins that http grants; add it there first")]
    Ungranted {
        /// The field of the grant.
        field: &'static str,
        /// The origin.
        origin: String,
    },
    /// The origin of a captured secret is invalid.
    #[error("captured-from.origin")]
    CaptureOrigin(#[source] UrlError),
    /// The header of a captured secret is invalid.
    #[error("captured-from.header: `{0}` is not a valid header name")]
    Header(String),
    /// A Kubernetes Secret needs a namespace, a name and a key.
    #[error("{0}: must not be empty")]
    Empty(&'static str),
    /// The command line has no words for it.
    #[error(
        "--grant cannot name the source of a secret; add the secret under grants.secrets in scupper.yaml"
    )]
    NoSource,
}

/// One secret.
#[derive(Clone, Debug)]
pub struct SecretRule {
    /// The policy's name for it.
    pub name: String,
    /// Its source.
    pub source: ValueSource,
    origins: Vec<Origin>,
}

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A file or a Kubernetes Secret.
    Stored(SecretSource),
    /// A response.
    Captured(Capture),
}

/// A header of an origin's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The origin.
    pub origin: Origin,
    /// The header.
    pub header: HeaderName,
}

/// All secrets of one policy, by name.
#[derive(Clone, Debug, Default)]
pub struct SecretRules(BTreeMap<String, SecretRule>);

impl SecretRules {
    /// Reads the operator's grants. Wrong grants are left out and returned with their name.
    pub fn of(grants: &[SecretGrant], http: &HttpRules) -> (Self, Vec<(String, SecretGrantError)>) {
        let (mut rules, mut wrong) = (BTreeMap::new(), Vec::new());
        for grant in grants {
            let rule =
                SecretRule::of(grant, http).and_then(|rule| match rules.insert(rule.name.clone(), rule) {
                    Some(_) => Err(SecretGrantError::Twice),
                    None => Ok(()),
                });
            if let Err(error) = rule {
                wrong.push((one_line(&grant.name, SHOWN_BYTES), error));
            }
        }
        (Self(rules), wrong)
    }

    /// The secret of this name.
    pub fn get(&self, name: &str) -> Option<&SecretRule> {
        self.0.get(name)
    }

    /// All secrets, by name.
    pub fn iter(&self) -> impl Iterator<Item = &SecretRule> {
        self.0.values()
    }

    /// The headers of an origin's responses that are secrets, whether they are captured or not.
    pub fn captures_of(&self, origin: &Origin) -> impl Iterator<Item = (&str, &Capture)> {
        self.iter().filter_map(move |rule| match &rule.source {
            ValueSource::Captured(capture) if capture.origin == *origin => {
                Some((rule.name.as_str(), capture))
            }
            _ => None,
        })
    }
}

impl SecretRule {
    fn of(grant: &SecretGrant, http: &HttpRules) -> Result<Self, SecretGrantError> {
        if !is_secret_name(&grant.name) {
            return Err(SecretGrantError::Name(one_line(&grant.name, SHOWN_BYTES)));
        }
        if grant.origins.is_empty() {
            return Err(SecretGrantError::Nowhere);
        }
        let origin = |text: &String| {
            let origin = Origin::parse(text).map_err(SecretGrantError::Origin)?;
            granted(http, origin, "origins")
        };
        let origins = grant.origins.iter().map(origin).collect::<Result<_, _>>()?;
        Ok(Self {
            name: grant.name.clone(),
            source: source(&grant.source, http)?,
            origins,
        })
    }

    /// Whether it may be sent to this origin.
    pub fn goes_to(&self, origin: &Origin) -> bool {
        self.origins.contains(origin)
    }
}

fn source(source: &SecretSource, http: &HttpRules) -> Result<ValueSource, SecretGrantError> {
    match source {
        SecretSource::Captured { origin, header } => {
            let origin = Origin::parse(origin).map_err(SecretGrantError::CaptureOrigin)?;
            let name = HeaderName::from_bytes(header.as_bytes())
                .map_err(|_| SecretGrantError::Header(one_line(header, SHOWN_BYTES)))?;
            Ok(ValueSource::Captured(Capture {
                origin: granted(http, origin, "captured-from.origin")?,
                header: name,
            }))
        }
        SecretSource::File(path) if path.as_os_str().is_empty() => Err(SecretGrantError::Empty("file")),
        SecretSource::Kubernetes { namespace, name, key } => {
            let parts = [
                (namespace, "namespace of the Kubernetes Secret"),
                (name, "name of the Kubernetes Secret"),
                (key, "key in the Kubernetes Secret"),
            ];
            match parts.into_iter().find(|(part, _)| part.is_empty()) {
                Some((_, what)) => Err(SecretGrantError::Empty(what)),
                None => Ok(ValueSource::Stored(source.clone())),
            }
        }
        SecretSource::File(_) => Ok(ValueSource::Stored(source.clone())),
    }
}

fn granted(http: &HttpRules, origin: Origin, field: &'static str) -> Result<Origin, SecretGrantError> {
    if http.knows(&origin) {
        Ok(origin)
    } else {
        Err(SecretGrantError::Ungranted {
            field,
            origin: origin.to_string(),
        })
    }
}
