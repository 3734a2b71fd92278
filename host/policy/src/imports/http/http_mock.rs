//! Mock answers in place of every server, for tests of policies in which no request may leave the machine. Grants,
//! injected secrets and captured secrets work as with a real server.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::exchange::Whole;
use crate::wit::bindings::scupper::drain::http::{Error, Request};

/// Answers requests.
pub trait HttpMock: Send + Sync {
    /// The answer to a request as the policy wrote it: with the names of secrets, not with their values.
    fn answer(&self, method: &str, url: &str) -> HttpMockAnswer;
}

/// The result of a request.
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
    /// The server is unreachable; nothing was sent.
    Unreachable(String),
    /// The request was sent, but no complete response came.
    Broken(String),
    /// The request timed out.
    Timeout(String),
}

/// Lets the mock answer.
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
