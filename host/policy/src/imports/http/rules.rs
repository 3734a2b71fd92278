//! The operator's grants, with the certificates that they name.

use scupper_common::text::one_line;
use scupper_policy_spec::{HttpGrant, HttpGrantError, HttpRule, HttpRules};
use thiserror::Error;

use super::tls::{Tls, TlsError};

/// Bytes of a wrong origin that an error shows.
const SHOWN_BYTES: usize = 80;

/// The errors of a grant of `http` on this machine.
#[derive(Debug, Error)]
pub enum HttpSetupError {
    /// The grant itself is wrong.
    #[error(transparent)]
    Grant(#[from] HttpGrantError),
    /// The CA certificates are unusable.
    #[error("ca")]
    Ca(#[source] TlsError),
}

/// Reads the operator's grants, and checks the certificates that they name. Wrong grants are left out and returned with
/// their origin.
pub(crate) fn read_grants(grants: &[HttpGrant], tls: &Tls) -> (HttpRules, Vec<(String, HttpSetupError)>) {
    let rule = |grant: &HttpGrant| {
        let rule = HttpRule::of(grant)?;
        if rule.origin.https {
            tls.config(rule.ca.as_deref()).map_err(HttpSetupError::Ca)?;
        }
        Ok(rule)
    };
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for grant in grants {
        match rule(grant) {
            Ok(rule) => rules.push(rule),
            Err(error) => wrong.push((one_line(&grant.origin, SHOWN_BYTES), error)),
        }
    }
    (HttpRules::new(rules), wrong)
}
