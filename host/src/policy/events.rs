//! The import `events`: Kubernetes Events in a policy's name.

use super::bindings::scupper::drain::events::{Error, Host, Kind, Regarding};
use super::host::Caller;

impl Host for Caller {
    async fn emit(&mut self, _: Regarding, _: Kind, reason: String, _: String) -> Result<(), Error> {
        Err(Error::NotGranted(format!(
            "no event was granted, so not `{reason}`"
        )))
    }
}
