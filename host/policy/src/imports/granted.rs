//! What the operator grants and what the policy asks for: a policy has what both name.

use std::sync::Arc;

use scupper_common::text::one_line;
use scupper_policy_spec::{
    Capability, Grant, HttpGrant, HttpRules, HttpTargetError, HttpWant, PolicySpec, SecretGrantError,
    SecretRules, check_grant, covers, is_secret_name,
};

use super::http::{RequestDeps, Requests, Tls, WantedRequests, read_grants};
use crate::load::error::{LoadFault, MissingGrant, WantError};
use crate::wit::bindings::exports::scupper::drain::about;

/// How much a policy may want.
const WANTS: usize = 32;

/// Bytes of a wrong want that are shown.
const SHOWN_BYTES: usize = 256;

/// What the operator gives, checked.
pub(crate) struct GrantedCapabilities {
    http: HttpRules,
    secrets: SecretRules,
    tls: Arc<Tls>,
}

/// What the policy wants.
#[derive(Default)]
pub(crate) struct Wants {
    pub(crate) grants: Vec<Grant>,
    pub(crate) requests: WantedRequests,
}

impl GrantedCapabilities {
    /// Checks the operator's grants, and fails with the first that is wrong. Blocks: it looks at the certificates that
    /// they name.
    pub(crate) fn of(spec: &PolicySpec) -> Result<Self, LoadFault> {
        let (given, faults) = Self::sound(spec);
        faults.into_iter().next().map_or(Ok(given), Err)
    }

    /// The operator's grants without those that are wrong, and what is wrong with each of those. Blocks as [`Self::of`].
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
        // Of a secret for an origin whose own grant is wrong, only that grant is to blame.
        let blamed = wrong_secrets
            .into_iter()
            .filter(|(_, error)| is_http_whole || !matches!(error, SecretGrantError::Ungranted { .. }));
        faults.extend(blamed.map(|(name, source)| LoadFault::Secret { name, source }));
        (Self { http, secrets, tls }, faults)
    }

    /// What the policy wants, if it was granted all of it.
    pub(crate) fn wants(&self, about: &about::Description, spec: &PolicySpec) -> Result<Wants, LoadFault> {
        let wants = Wants::of(about)?;
        let missing = self.missing(&wants, spec);
        if missing.is_empty() {
            Ok(wants)
        } else {
            Err(LoadFault::NotGranted(missing))
        }
    }

    /// What of it was not granted.
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

    /// The policy's requests, before it has said what it wants.
    pub(crate) fn requests(&self, spec: &PolicySpec, surroundings: RequestDeps) -> Requests {
        let rules = (self.http.clone(), self.secrets.clone(), Arc::clone(&self.tls));
        Requests::new(&spec.name, rules, surroundings, &spec.limits)
    }

    fn has(&self, want: &Grant, spec: &PolicySpec) -> bool {
        match want.capability {
            Capability::NodeAnnotations | Capability::PodAnnotations | Capability::Events => {
                spec.grants.iter().any(|grant| covers(grant, want))
            }
            Capability::Http => want
                .target
                .parse()
                .is_ok_and(|want: HttpWant| want.is_granted(&self.http)),
            // A grant that is wrong is reported as wrong, not as missing.
            Capability::Secret => spec.secrets.iter().any(|secret| secret.name == want.target),
        }
    }
}

/// Checks a grant that one line can say; one of `http` goes to the others of `http`.
fn check(grant: &Grant, http: &mut Vec<HttpGrant>) -> Result<(), LoadFault> {
    let wrong = |source: WantError| LoadFault::Grant {
        grant: grant.clone(),
        source,
    };
    match grant.capability {
        Capability::NodeAnnotations | Capability::PodAnnotations | Capability::Events => {
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
    /// What the policy says that it wants, granted or not.
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
            Capability::NodeAnnotations | Capability::PodAnnotations | Capability::Events => {
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
