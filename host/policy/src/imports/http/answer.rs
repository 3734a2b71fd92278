//! A response, as a policy may see it: without headers that are secrets, and with names where secrets stood.

use std::sync::{Arc, PoisonError};

use http::HeaderMap;
use scupper_policy_spec::Origin;

use super::Requests;
use super::exchange::Whole;
use super::requests::Known;
use crate::imports::secret::{Redaction, SecretString};
use crate::wit::bindings::scupper::drain::http::{Error, Field, Request, Response};

/// Bytes by which a response may grow when names take the place of shorter secrets.
const GROWTH: usize = 64 * 1024;

/// What a response may have at most, whatever the operator says.
const MOST_MIB: usize = 64;
const MIB: usize = 1024 * 1024;

/// Bytes of a captured secret: a shorter one is no token, a longer one fits into no header.
const CAPTURED: std::ops::RangeInclusive<usize> = 4..=16 * 1024;

impl Requests {
    /// Takes the secrets out of a response.
    pub(super) fn answer(&self, request: &Request, origin: &Origin, whole: Whole) -> Result<Response, Error> {
        let Whole {
            status,
            mut headers,
            body,
        } = whole;
        let captured = self.capture(request, origin, &mut headers);
        let redaction = self.redaction()?;
        let limit = self.limits.response_bytes.saturating_add(GROWTH);
        let mut fields = Vec::with_capacity(headers.len());
        for (name, value) in &headers {
            let clean = |bytes: &[u8]| {
                let clean = redaction.apply(bytes.to_vec(), limit);
                clean.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            fields.push(Field {
                name: clean(name.as_str().as_bytes()).ok_or_else(|| self.too_large())?,
                value: clean(value.as_bytes()).ok_or_else(|| self.too_large())?,
            });
        }
        Ok(Response {
            status,
            headers: fields,
            body: redaction.apply(body, limit).ok_or_else(|| self.too_large())?,
            captured,
        })
    }

    /// Says what to write where, so that whoever reads it has not to look for the limit.
    pub(super) fn too_large(&self) -> Error {
        let (policy, limit) = (&self.policy, self.limits.response_bytes);
        let more = limit.saturating_mul(4).div_ceil(MIB).clamp(1, MOST_MIB);
        let told = if limit / MIB >= MOST_MIB {
            format!("the response has more than {MOST_MIB} MiB, and no policy may take more")
        } else {
            format!(
                "the response has more than the {limit} bytes that policy `{policy}` may take; for more add to it in \
                 scupper.yaml: `limits: {{response: {more}Mi}}`"
            )
        };
        Error::TooLarge(told)
    }

    /// Keeps what is to be captured, and takes every header away that is a secret of this origin, whether the policy
    /// asked for it or not. Gives the names of those that were captured.
    fn capture(&self, request: &Request, origin: &Origin, headers: &mut HeaderMap) -> Vec<String> {
        let mut captured = Vec::new();
        for (name, capture) in self.secrets.captures_of(origin) {
            let value = headers.get(&capture.header).and_then(|value| value.to_str().ok());
            let Some(value) = value.filter(|value| CAPTURED.contains(&value.len())) else {
                continue;
            };
            let value = SecretString::new(name, value);
            if request.captures.iter().any(|asked| asked.secret == name) {
                self.memory.capture(&self.policy, capture, value);
                captured.push(name.to_owned());
            } else {
                // It may stand in the body, too.
                self.memory.remember(&self.policy, &value);
            }
        }
        for (_, capture) in self.secrets.captures_of(origin) {
            headers.remove(&capture.header);
        }
        captured
    }

    /// Of every secret the policy has or had lately.
    fn redaction(&self) -> Result<Arc<Redaction>, Error> {
        let secrets = self.reader().known();
        let mut known = self.redaction.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.of == secrets) {
            return Ok(Arc::clone(&known.redaction));
        }
        let made = Redaction::of(&secrets)
            .map_err(|_too_many| Error::Broken("the response cannot be searched for secrets".to_owned()))?;
        let redaction = Arc::new(made);
        *known = Some(Known {
            of: secrets,
            redaction: Arc::clone(&redaction),
        });
        Ok(redaction)
    }
}
