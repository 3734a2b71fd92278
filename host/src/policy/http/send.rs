//! One request of a policy.

use crate::policy::bindings::scupper::drain::http::{Error, Host, Request, Response};
use crate::policy::host::Caller;

impl Host for Caller {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        Err(Error::NotGranted(format!(
            "no origin was granted, so not `{}`",
            request.url
        )))
    }
}
