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

/// All services of the response. If a cell is down, its services lack keys, and the response is invalid.
pub(crate) fn services(body: &[u8]) -> Result<Vec<Service>, serde_json::Error> {
    serde_json::from_slice::<Answer>(body).map(|answer| answer.services)
}

impl Service {
    /// Whether it is up, so that it can migrate servers.
    pub(crate) fn is_up(&self) -> bool {
        self.state == "up" && !self.forced_down
    }

    /// Whether the scheduler may place servers on it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.status == "enabled"
    }

    /// Whether the hypervisor driver has disabled it, which enables it again by itself.
    pub(crate) fn is_disabled_by_nova(&self) -> bool {
        !self.is_enabled() && self.reason().starts_with("AUTO: ")
    }

    /// Why it is disabled; may be empty.
    pub(crate) fn reason(&self) -> &str {
        self.disabled_reason.as_deref().unwrap_or_default()
    }
}
