//! Answers in the place of every server, where policies are tried and no request may leave the machine. What is granted,
//! what secrets are put in and what is captured is as with a real one.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::exchange::Whole;
use crate::wit::bindings::scupper::drain::http::{Error, Request};

/// Answers requests.
pub trait HttpMock: Send + Sync {
    /// The answer to a request as the policy wrote it: with the names of secrets, not with secrets.
    fn answer(&self, method: &str, url: &str) -> HttpMockAnswer;
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum HttpMockAnswer {
    /// A response.
    Response {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Vec<u8>,
    },
    /// Nobody is there; nothing was sent.
    Unreachable(String),
    /// It was sent, and no whole answer came.
    Broken(String),
    /// The time was over.
    Timeout(String),
}

/// Asks the stand-in.
pub(super) fn ask(http_mock: &dyn HttpMock, request: &Request, most: usize) -> Result<Whole, Error> {
    let method = super::prepare::method(request.method);
    match http_mock.answer(method.as_str(), &request.url) {
        HttpMockAnswer::Response { body, .. } if body.len() > most => Err(Error::TooLarge(format!(
            "the response has more than {most} bytes"
        ))),
        HttpMockAnswer::Response {
            status,
            headers,
            body,
        } => {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) else {
                    return Err(Error::Broken(format!("`{name}: {value}` is not a valid header")));
                };
                map.append(name, value);
            }
            Ok(Whole {
                status,
                headers: map,
                body,
            })
        }
        HttpMockAnswer::Unreachable(message) => Err(Error::Unreachable(message)),
        HttpMockAnswer::Broken(message) => Err(Error::Broken(message)),
        HttpMockAnswer::Timeout(message) => Err(Error::Timeout(message)),
    }
}
