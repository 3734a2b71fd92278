//! Checks a policy's request as far as possible before any name is resolved, and puts its secrets in.

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::Full;
use scupper_common::text::one_line;
use scupper_policy_spec::{HttpRule, HttpUrl, Origin, SecretRule, ValueSource, grant_yaml};

use super::Requests;
use super::headers::{HeaderError, Headers};
use super::send::line;
use crate::imports::secret::{SecretString, inject};
use crate::wit::bindings::scupper::drain::http as wit;
use crate::wit::bindings::scupper::drain::http::{Error, HeaderValue, Request};

/// Bytes of a request's body: typical API requests have a few hundred.
const BODY_BYTES: usize = 256 * 1024;

/// The most secrets in one body, and the most headers of one response to capture.
const SECRETS: usize = 16;

/// Bytes of a path or a name that an error shows.
const SHOWN_BYTES: usize = 120;

/// A request ready to send.
pub(super) struct Prepared<'a> {
    pub(super) address: HttpUrl,
    pub(super) rule: &'a HttpRule,
    pub(super) message: http::Request<Full<Bytes>>,
}

impl Requests {
    /// Checks everything and puts the secrets in.
    pub(super) async fn prepare(&self, request: &Request) -> Result<Prepared<'_>, Error> {
        let address = HttpUrl::parse(&request.url).map_err(|error| invalid(&error))?;
        let method = method(request.method);
        let rule = self.allowed(&method, &address)?;
        self.check_sizes(request)?;
        for capture in &request.captures {
            self.check_capture(capture, &address.origin)?;
        }
        let body = self.body(request, &address.origin).await?;
        self.reader().read_all().await;
        let headers = self
            .headers(request, &address.origin, length(&method, &body))
            .await?;
        let message = message(method, &address, headers, body)?;
        Ok(Prepared {
            address,
            rule,
            message,
        })
    }

    /// Requires the operator's grant and the policy's own request for it.
    fn allowed(&self, method: &Method, address: &HttpUrl) -> Result<&HttpRule, Error> {
        let HttpUrl { origin, path, .. } = address;
        let what = || format!("{method} {origin}{}", one_line(path, SHOWN_BYTES));
        let Some(rule) = self.rules.covering(method, origin, path) else {
            let yaml = grant_yaml(std::slice::from_ref(method), origin, &one_line(path, SHOWN_BYTES));
            return Err(Error::NotGranted(format!(
                "{} is not granted; to allow it, the operator adds to the policy's grants: http: [{yaml}]",
                what()
            )));
        };
        let wanted = self
            .wants
            .http
            .iter()
            .any(|want| want.covers(method, origin, path));
        if wanted {
            Ok(rule)
        } else {
            Err(Error::NotGranted(format!(
                "{} is granted, but `describe` does not say that the policy wants it",
                what()
            )))
        }
    }

    fn check_sizes(&self, request: &Request) -> Result<(), Error> {
        if request.body.len() > BODY_BYTES {
            let bytes = request.body.len();
            return Err(Error::Invalid(format!(
                "the body has {bytes} bytes, and {BODY_BYTES} are the most"
            )));
        }
        if request.timeout == Some(0) {
            return Err(Error::Invalid("a timeout of nothing leaves no time".to_owned()));
        }
        for (what, count) in [
            ("secret fields", request.secret_fields.len()),
            ("captures", request.captures.len()),
        ] {
            if count > SECRETS {
                return Err(Error::Invalid(format!(
                    "there are {count} {what}, and {SECRETS} are the most"
                )));
            }
        }
        Ok(())
    }

    fn check_capture(&self, capture: &wit::Capture, origin: &Origin) -> Result<(), Error> {
        let rule = self.secret_rule(&capture.secret)?;
        match &rule.source {
            ValueSource::Captured(granted)
                if granted.origin == *origin
                    && capture.header.eq_ignore_ascii_case(granted.header.as_str()) =>
            {
                Ok(())
            }
            _ => Err(Error::NotGranted(format!(
                "the secret `{}` is not captured from the header `{}` of {origin}; its grant says where it comes from",
                rule.name,
                one_line(&capture.header, SHOWN_BYTES)
            ))),
        }
    }

    async fn headers(
        &self,
        request: &Request,
        origin: &Origin,
        length: Option<usize>,
    ) -> Result<HeaderMap, Error> {
        let wrong = |error: HeaderError| Error::Invalid(error.to_string());
        let mut headers = Headers::to(origin, length).map_err(wrong)?;
        for header in &request.headers {
            match &header.value {
                HeaderValue::Text(text) => headers.text(&header.name, text),
                HeaderValue::Secret(text) => {
                    let secret = self.secret(&text.secret, origin).await?;
                    if secret.reveal().chars().any(char::is_control) {
                        return Err(Error::NoSecret(format!(
                            "`{}` has control characters, which no header can carry",
                            secret.name()
                        )));
                    }
                    headers.secret(&header.name, &text.prefix, secret.reveal())
                }
            }
            .map_err(wrong)?;
        }
        headers.finish().map_err(wrong)
    }

    async fn body(&self, request: &Request, origin: &Origin) -> Result<Vec<u8>, Error> {
        let mut fields = Vec::with_capacity(request.secret_fields.len());
        for field in &request.secret_fields {
            let secret = self.secret(&field.secret, origin).await?;
            fields.push((field.pointer.as_str(), secret));
        }
        inject(&request.body, &fields).map_err(|error| invalid(&error))
    }

    /// The value of a secret that this origin may receive.
    async fn secret(&self, name: &str, origin: &Origin) -> Result<SecretString, Error> {
        let rule = self.secret_rule(name)?;
        if !rule.goes_to(origin) {
            return Err(Error::NotGranted(format!(
                "the secret `{name}` may not be sent to {origin}; to allow it, the operator adds that to its origins"
            )));
        }
        let read = self.reader().value(rule).await;
        read.map_err(|error| Error::NoSecret(line(&format!("`{name}`: {error}"))))
    }

    /// Requires that the operator has granted the secret and the policy has asked for it.
    fn secret_rule(&self, name: &str) -> Result<&SecretRule, Error> {
        let shown = || one_line(name, SHOWN_BYTES);
        let rule = self.secrets.get(name).ok_or_else(|| {
            Error::NotGranted(format!(
                "there is no secret `{}`; the operator names secrets under the policy's grants",
                shown()
            ))
        })?;
        if self.wants.secrets.iter().any(|wanted| wanted == name) {
            Ok(rule)
        } else {
            Err(Error::NotGranted(format!(
                "the secret `{}` is granted, but `describe` does not say that the policy wants it",
                shown()
            )))
        }
    }
}

/// The standard requires a length wherever a body is expected, even for an empty one.
fn length(method: &Method, body: &[u8]) -> Option<usize> {
    let expected = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    (expected || !body.is_empty()).then_some(body.len())
}

fn message(
    method: Method,
    address: &HttpUrl,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Result<http::Request<Full<Bytes>>, Error> {
    let target = match &address.query {
        Some(query) => format!("{}?{query}", address.path),
        None => address.path.clone(),
    };
    let mut message = http::Request::builder()
        .method(method)
        .uri(target)
        .body(Full::new(Bytes::from(body)))
        .map_err(|_| {
            Error::Invalid("the path or the query has characters that no request line can have".to_owned())
        })?;
    *message.headers_mut() = headers;
    Ok(message)
}

pub(super) const fn method(method: wit::Method) -> Method {
    match method {
        wit::Method::Get => Method::GET,
        wit::Method::Head => Method::HEAD,
        wit::Method::Post => Method::POST,
        wit::Method::Put => Method::PUT,
        wit::Method::Patch => Method::PATCH,
        wit::Method::Delete => Method::DELETE,
    }
}

fn invalid(error: &dyn std::error::Error) -> Error {
    Error::Invalid(line(&error.to_string()))
}
