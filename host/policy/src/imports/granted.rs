//! The operator's grants and the policy's requests: a policy has the capabilities that both name.

use std::sync::Arc;

use scupper_common::text::one_line;
use scupper_policy_spec::{
    Capability, Grant, HttpGrant, HttpRules, HttpTargetError, HttpWant, PolicySpec, SecretGrantError,
    SecretRules, check_grant, covers, is_secret_name,
};

use super::http::{RequestDeps, Requests, Tls, WantedRequests, read_grants};
use crate::load::error::{LoadFault, MissingGrant, WantError};
use crate::wit::bindings::exports::scupper::drain::about;

/// The most capabilities that a policy may request.
const WANTS: usize = 32;

/// Bytes of a wrong request that an error shows.
const SHOWN_BYTES: usize = 256;

/// The operator's grants, checked.
pub(crate) struct GrantedCapabilities {
    http: HttpRules,
    secrets: SecretRules,
    tls: Arc<Tls>,
}

/// The capabilities that the policy requests.
#[derive(Default)]
pub(crate) struct Wants {
    pub(crate) grants: Vec<Grant>,
    pub(crate) requests: WantedRequests,
}

impl GrantedCapabilities {
    /// Checks the operator's grants, and fails with the first wrong one. Blocks: it reads the certificates that they
    /// name.
    pub(crate) fn of(spec: &PolicySpec) -> Result<Self, LoadFault> {
        let (given, faults) = Self::sound(spec);
        faults.into_iter().next().map_or(Ok(given), Err)
    }

    /// The operator's valid grants, and the error of each other one. Blocks as [`Self::of`].
    pub(crate) fn sound(spec: &PolicySpec) -> (Self, Vec<LoadFault>) {
        let (mut http, mut faults) = (spec.http.clone(), Vec::new());
        for grant in &spec.grants {
            if let Err(fault) = check(grant, &mut http) {
                faults.push(fault);
            }
        }
        let tls = Arc::new(Tls::default());
        let (http, wrong_http) = read_grants(&http, &tls);
        let (secrets, wrong_secrets) = SecretRules::of(&spec.secrets, &http);
        let is_http_whole = wrong_http.is_empty();
        faults.extend(
            wrong_http
                .into_iter()
                .map(|(origin, source)| LoadFault::Http { origin, source }),
        );
        // If a secret is for an origin whose own grant is wrong, only that grant is reported.
        let blamed = wrong_secrets
            .into_iter()
            .filter(|(_, error)| is_http_whole || !matches!(error, SecretGrantError::Ungranted { .. }));
        faults.extend(blamed.map(|(name, source)| LoadFault::Secret { name, source }));
        (Self { http, secrets, tls }, faults)
    }

    /// The policy's requested capabilities, if all of them are granted.
    pub(crate) fn wants(&self, about: &about::Description, spec: &PolicySpec) -> Result<Wants, LoadFault> {
        let wants = Wants::of(about)?;
        let missing = self.missing(&wants, spec);
        if missing.is_empty() {
            Ok(wants)
        } else {
            Err(LoadFault::NotGranted(missing))
        }
    }

    /// The requested capabilities that are not granted.
    pub(crate) fn missing(&self, wants: &Wants, spec: &PolicySpec) -> Vec<MissingGrant> {
        let missing = wants.grants.iter().filter(|grant| !self.has(grant, spec));
        missing
            .map(|grant| MissingGrant {
                policy: spec.name.clone(),
                grant: grant.clone(),
                spec_source: spec.spec_source,
            })
            .collect()
    }

    /// The policy's requests, before the policy has named the capabilities it needs.
    pub(crate) fn requests(&self, spec: &PolicySpec, surroundings: RequestDeps) -> Requests {
        let rules = (self.http.clone(), self.secrets.clone(), Arc::clone(&self.tls));
        Requests::new(&spec.name, rules, surroundings, &spec.limits)
    }

    fn has(&self, want: &Grant, spec: &PolicySpec) -> bool {
        match want.capability {
            Capability::NodeAnnotations
            | Capability::PodAnnotations
            | Capability::Events
            | Capability::Facts => spec.grants.iter().any(|grant| covers(grant, want)),
            Capability::Http => want
                .target
                .parse()
                .is_ok_and(|want: HttpWant| want.is_granted(&self.http)),
            // A wrong grant is reported as wrong, not as missing.
            Capability::Secret => spec.secrets.iter().any(|secret| secret.name == want.target),
        }
    }
}

/// Checks a grant of one line; a grant of `http` is added to the others of `http`.
fn check(grant: &Grant, http: &mut Vec<HttpGrant>) -> Result<(), LoadFault> {
    let wrong = |source: WantError| LoadFault::Grant {
        grant: grant.clone(),
        source,
    };
    match grant.capability {
        Capability::NodeAnnotations | Capability::PodAnnotations | Capability::Events | Capability::Facts => {
            check_grant(grant).map_err(|error| wrong(error.into()))
        }
        Capability::Http => {
            http.push(
                grant
                    .target
                    .parse()
                    .map_err(|error: HttpTargetError| wrong(error.into()))?,
            );
            Ok(())
        }
        Capability::Secret => Err(LoadFault::Secret {
            name: one_line(&grant.target, SHOWN_BYTES),
            source: SecretGrantError::NoSource,
        }),
    }
}

impl Wants {
    /// The capabilities that the policy asks for, granted or not.
    pub(crate) fn of(about: &about::Description) -> Result<Self, LoadFault> {
        if about.wants.len() > WANTS {
            return Err(LoadFault::TooManyWants {
                wants: about.wants.len(),
                limit: WANTS,
            });
        }
        let mut wants = Self::default();
        for want in &about.wants {
            wants.add(want).map_err(|source| LoadFault::Want {
                capability: one_line(&want.capability, SHOWN_BYTES),
                target: one_line(&want.target, SHOWN_BYTES),
                source,
            })?;
        }
        Ok(wants)
    }

    fn add(&mut self, want: &about::Grant) -> Result<(), WantError> {
        let grant = Grant {
            capability: want.capability.parse()?,
            target: want.target.clone(),
        };
        match grant.capability {
            Capability::NodeAnnotations
            | Capability::PodAnnotations
            | Capability::Events
            | Capability::Facts => {
                check_grant(&grant)?;
            }
            Capability::Http => self.requests.http.push(grant.target.parse()?),
            Capability::Secret if is_secret_name(&grant.target) => {
                self.requests.secrets.push(grant.target.clone())
            }
            Capability::Secret => {
                let name = one_line(&grant.target, SHOWN_BYTES);
                return Err(SecretGrantError::Name(name).into());
            }
        }
        self.grants.push(grant);
        Ok(())
    }
}
