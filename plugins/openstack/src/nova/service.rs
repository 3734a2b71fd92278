//! Compute services: `GET /os-services?binary=nova-compute`.

use serde::Deserialize;

/// One nova-compute.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Service {
    pub(crate) id: String,
    pub(crate) host: String,
    status: String,
    state: String,
    #[serde(default)]
    disabled_reason: Option<String>,
    #[serde(default)]
    forced_down: bool,
}

#[derive(Deserialize)]
struct Answer {
    services: Vec<Service>,
}

/// All services of the answer. One from a cell that is down has few keys; such an answer cannot be relied on.
pub(crate) fn services(body: &[u8]) -> Result<Vec<Service>, serde_json::Error> {
    serde_json::from_slice::<Answer>(body).map(|answer| answer.services)
}

impl Service {
    /// It is heard of, so it can migrate servers.
    pub(crate) fn is_up(&self) -> bool {
        self.state == "up" && !self.forced_down
    }

    /// The scheduler may send servers to it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.status == "enabled"
    }

    /// Why it is disabled; empty when nobody said.
    pub(crate) fn reason(&self) -> &str {
        self.disabled_reason.as_deref().unwrap_or_default()
    }
}
