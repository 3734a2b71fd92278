//! A response as the policy sees it: without headers that are secrets, and with names in place of secrets.

use std::sync::{Arc, PoisonError};

use http::HeaderMap;
use scupper_policy_spec::Origin;

use super::Requests;
use super::exchange::Whole;
use super::requests::CachedRedaction;
use crate::imports::secret::{Redaction, SecretString};
use crate::wit::bindings::scupper::drain::http::{Error, Field, Request, Response};

/// Bytes by which a response may grow when names replace shorter secrets.
const GROWTH: usize = 64 * 1024;

/// The largest response, regardless of the operator's limit.
const MOST_MIB: usize = 64;
const MIB: usize = 1024 * 1024;

/// Valid lengths of a captured secret in bytes: a shorter one is not a token, a longer one does not fit into a header.
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

    /// Names the setting to change, so that the reader need not search for the limit.
    pub(super) fn too_large(&self) -> Error {
        let (policy, limit) = (&self.policy, self.limits.response_bytes);
        let more = limit.saturating_mul(4).div_ceil(MIB).clamp(1, MOST_MIB);
        let reported = if limit / MIB >= MOST_MIB {
            format!("the response has more than {MOST_MIB} MiB, and no policy may take more")
        } else {
            format!(
                "the response has more than the {limit} bytes that policy `{policy}` may take; for more add to it in \
                 scupper.yaml: `limits: {{response: {more}Mi}}`"
            )
        };
        Error::TooLarge(reported)
    }

    /// Stores the headers to capture, and removes every header that is a secret of this origin, whether the policy
    /// asked for it or not. Returns the names of the captured secrets.
    fn capture(&self, request: &Request, origin: &Origin, headers: &mut HeaderMap) -> Vec<String> {
        let mut captured = Vec::new();
        for (name, capture) in self.secrets.captures_of(origin) {
            let value = headers.get(&capture.header).and_then(|value| value.to_str().ok());
            let Some(value) = value.filter(|value| CAPTURED.contains(&value.len())) else {
                continue;
            };
            let value = SecretString::new(name, value);
            if request.captures.iter().any(|asked| asked.secret == name) {
                self.memory.capture((&self.policy, &self.node), capture, value);
                captured.push(name.to_owned());
            } else {
                // The body may also contain it.
                self.memory.remember(&self.policy, &value);
            }
        }
        for (_, capture) in self.secrets.captures_of(origin) {
            headers.remove(&capture.header);
        }
        captured
    }

    /// Of every secret that the policy has or recently had.
    fn redaction(&self) -> Result<Arc<Redaction>, Error> {
        let secrets = self.reader().known();
        let mut known = self.redaction.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.of == secrets) {
            return Ok(Arc::clone(&known.redaction));
        }
        let made = Redaction::of(&secrets)
            .map_err(|_too_many| Error::Broken("the response cannot be searched for secrets".to_owned()))?;
        let redaction = Arc::new(made);
        *known = Some(CachedRedaction {
            of: secrets,
            redaction: Arc::clone(&redaction),
        });
        Ok(redaction)
    }
}
