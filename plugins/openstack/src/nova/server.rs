//! Servers: `GET /servers/detail`, page by page.

use scupper_sdk::Timestamp;
use serde::Deserialize;

use crate::clock;

/// The fields of a server that a drain needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default, rename = "OS-EXT-STS:vm_state")]
    pub(crate) vm_state: Option<String>,
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    pub(crate) task_state: Option<String>,
    #[serde(default, rename = "OS-EXT-SRV-ATTR:host")]
    host: Option<String>,
    #[serde(default)]
    created: String,
    #[serde(default)]
    updated: String,
    #[serde(default)]
    flavor: Flavor,
    #[serde(default)]
    fault: Option<Fault>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Flavor {
    #[serde(default)]
    ram: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Fault {
    #[serde(default)]
    message: String,
}

/// What a drain can do with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Active or paused: it can be migrated live.
    Live,
    /// Shut off.
    Stopped,
    /// Shut off, with a copy of its disk in Glance. Nova can only remove it from the host.
    Shelved,
    /// Nova is working on it.
    Busy(String),
    /// Suspended, in rescue, in error, or resized: it cannot be migrated.
    Other(String),
    /// Its cell does not respond: nothing is known about it.
    Unknown,
}

impl Server {
    pub(crate) fn state(&self) -> State {
        let Some(vm_state) = &self.vm_state else {
            return State::Unknown;
        };
        if self.status == "UNKNOWN" {
            return State::Unknown;
        }
        if let Some(task) = &self.task_state {
            return State::Busy(task.clone());
        }
        match vm_state.as_str() {
            "active" | "paused" => State::Live,
            "stopped" => State::Stopped,
            "shelved" => State::Shelved,
            // A server has no task between two tasks of its build.
            "building" => State::Busy(vm_state.clone()),
            other => State::Other(other.to_owned()),
        }
    }

    /// Whether Nova is working neither on it nor on its migration. A resize is confirmed without a task.
    pub(crate) fn is_at_rest(&self) -> bool {
        match self.state() {
            State::Live | State::Stopped | State::Shelved => true,
            State::Other(state) => state != "resized",
            State::Busy(_) | State::Unknown => false,
        }
    }

    /// Whether Nova has accepted a request to migrate it, live or cold.
    pub(crate) fn is_asked_to_move(&self) -> bool {
        let task = self.task_state.as_deref().unwrap_or_default();
        task.starts_with("migrating") || task.starts_with("resize_")
    }

    /// Whether it is to run, but no nova-compute has accepted it yet.
    pub(crate) fn awaits_host(&self) -> bool {
        let has_none = self.host.as_deref().is_none_or(str::is_empty);
        has_none && (self.status == "BUILD" || self.is_unshelved())
    }

    fn is_unshelved(&self) -> bool {
        self.task_state.as_deref() == Some("unshelving")
    }

    /// When it was requested to run, as far as Nova reports it.
    pub(crate) fn asked_for(&self) -> Timestamp {
        let at = if self.is_unshelved() {
            &self.updated
        } else {
            &self.created
        };
        clock::iso(at).unwrap_or_default()
    }

    /// When Nova last changed it, such as its task.
    pub(crate) fn updated(&self) -> Option<Timestamp> {
        clock::iso(&self.updated)
    }

    /// Its memory in MiB; 0 if Nova does not report it.
    pub(crate) const fn size(&self) -> u64 {
        self.flavor.ram
    }

    /// Why it is in error.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_ref().map(|fault| fault.message.as_str())
    }

    pub(crate) fn title(&self) -> String {
        shown(&self.name, &self.id)
    }
}

/// For people: the name, and the first characters of the id.
pub(crate) fn shown(name: &str, id: &str) -> String {
    if name.is_empty() {
        return format!("server {id}");
    }
    format!("server {name} ({})", id.get(..8).unwrap_or(id))
}

#[derive(Deserialize)]
struct Page {
    servers: Vec<Server>,
    #[serde(default)]
    servers_links: Vec<Link>,
}

#[derive(Deserialize)]
pub(super) struct Link {
    rel: String,
    #[serde(default)]
    href: String,
}

#[derive(Deserialize)]
struct One {
    server: Server,
}

/// A listing in pages.
#[derive(Debug, Default)]
pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Servers {
    /// Adds one page, and returns the marker of the next one.
    pub(crate) fn take(&mut self, body: &[u8]) -> Result<Option<String>, serde_json::Error> {
        let page: Page = serde_json::from_slice(body)?;
        let next = marker(&page.servers_links);
        for server in page.servers {
            // Pages may overlap when servers come and go between them.
            if self.0.iter().all(|known| known.id != server.id) {
                self.0.push(server);
            }
        }
        Ok(next)
    }

    /// `GET /servers/{id}`
    pub(crate) fn one(body: &[u8]) -> Result<Server, serde_json::Error> {
        serde_json::from_slice::<One>(body).map(|one| one.server)
    }
}

/// The marker of the next page. The rest of the link is ignored, because Nova's idea of its own address may be wrong for us.
pub(super) fn marker(links: &[Link]) -> Option<String> {
    let next = links.iter().find(|link| link.rel == "next")?;
    let query = next.href.split_once('?')?.1;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == "marker")
        .map(|(_, value)| value.to_owned())
}
