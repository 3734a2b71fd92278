//! Migrations: `GET /os-migrations`, and `GET /servers/{id}/migrations` for those in progress.

use scupper_sdk::Timestamp;
use serde::Deserialize;

use super::Version;
use super::server::{Link, Server, marker};
use crate::clock;

/// The fields of a migration that a drain needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Migration {
    pub(crate) id: u64,
    #[serde(default, alias = "server_uuid")]
    pub(crate) instance_uuid: String,
    #[serde(default)]
    pub(crate) source_compute: Option<String>,
    #[serde(default)]
    pub(crate) dest_compute: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    migration_type: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    pub(crate) updated_at: Option<String>,
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    #[serde(default)]
    pub(crate) memory_total_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) memory_processed_bytes: Option<u64>,
    #[serde(default)]
    pub(crate) memory_remaining_bytes: Option<u64>,
    /// Nova no longer carries it out, although its status says so.
    #[serde(skip)]
    pub(crate) is_lost: bool,
}

/// The kind of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Live,
    /// A cold migration by an administrator.
    Cold,
    /// A resize by the server's owner, or an evacuation.
    Other,
}

/// The statuses of unfinished migrations of any kind.
const ACTIVE: [&str; 9] = [
    "accepted",
    "queued",
    "preparing",
    "running",
    "post-migrating",
    "pre-migrating",
    "migrating",
    "confirming",
    "reverting",
];

impl Migration {
    /// The statuses in which a chosen destination may not be recorded yet: of live migrations and evacuations, of cold ones.
    pub(crate) const WITHOUT_DESTINATION: [&str; 2] = ["accepted", "pre-migrating"];

    /// The statuses of migrations that may occupy a host.
    pub(crate) fn occupying() -> impl Iterator<Item = &'static str> {
        ACTIVE.into_iter().chain(["finished"])
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.migration_type.as_deref() {
            // A server's own list contains only live migrations, sometimes without a type.
            Some("live-migration") | None => Kind::Live,
            Some("migration") => Kind::Cold,
            Some(_) => Kind::Other,
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.is_lost && ACTIVE.contains(&self.status.as_str())
    }

    /// Whether Nova accepts a request to abort it.
    pub(crate) fn is_abortable(&self, version: Version) -> bool {
        let queued = matches!(self.status.as_str(), "queued" | "preparing");
        self.kind() == Kind::Live && (self.status == "running" || (queued && version.aborts_queued()))
    }

    /// Whether the server has left by it.
    pub(crate) fn has_succeeded(&self) -> bool {
        matches!(
            (self.kind(), self.status.as_str()),
            (_, "completed" | "confirmed") | (Kind::Cold | Kind::Other, "finished")
        )
    }

    /// Whether it is a cold migration or resize that is neither confirmed nor reverted: its disk is still on the source.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.status == "finished" && self.kind() != Kind::Live
    }

    pub(crate) fn is_from(&self, host: &str) -> bool {
        self.source_compute.as_deref() == Some(host)
    }

    pub(crate) fn is_to(&self, host: &str) -> bool {
        self.dest_compute.as_deref() == Some(host) && !self.is_from(host)
    }

    pub(crate) fn awaits_destination(&self) -> bool {
        let has_none = self.dest_compute.as_deref().is_none_or(str::is_empty);
        has_none && Self::WITHOUT_DESTINATION.contains(&self.status.as_str())
    }

    /// Its memory in MiB, if Nova reports it: total, transferred, remaining.
    pub(crate) fn memory(&self) -> Option<(u64, u64, u64)> {
        const MIB: u64 = 1024 * 1024;
        let total = self.memory_total_bytes.filter(|total| *total > 0)?;
        let moved = self.memory_processed_bytes.unwrap_or_default();
        let left = self.memory_remaining_bytes.unwrap_or_default();
        Some((total / MIB, moved / MIB, left / MIB))
    }

    pub(crate) fn created(&self) -> Timestamp {
        self.created_at
            .as_deref()
            .and_then(clock::iso)
            .unwrap_or_default()
    }

    /// When it was last changed.
    pub(crate) fn changed(&self) -> Timestamp {
        let updated = self.updated_at.as_deref().and_then(clock::iso);
        updated.unwrap_or_else(|| self.created())
    }

    /// When Nova ended it, or last worked on it: one that fails is rolled back after the end of its server's task, and only then
    /// its record changes.
    pub(crate) fn ended(&self, server: Option<&Server>) -> Timestamp {
        let in_progress = ACTIVE.contains(&self.status.as_str());
        let task = server.filter(|_| in_progress).and_then(Server::updated);
        self.changed().max(task.unwrap_or_default())
    }

    /// Its status in words.
    pub(crate) fn status_text(&self) -> String {
        if self.is_lost {
            return format!("{}, but Nova no longer carries it out", self.status);
        }
        self.status.clone()
    }

    /// Its status, with its memory if Nova reports it.
    pub(crate) fn describe(&self) -> String {
        let to = self.dest_compute.as_deref().filter(|dest| !dest.is_empty());
        let to = to.map_or_else(String::new, |dest| format!(" to {dest}"));
        let what = if self.kind() == Kind::Live { "live" } else { "cold" };
        let mut words = format!("{what} migration{to} {}", self.status_text());
        if let Some((total, moved, left)) = self.memory() {
            words.push_str(&format!(": {moved} of {total} MiB transferred, {left} MiB to go"));
        }
        words
    }
}

#[derive(Deserialize)]
struct Page {
    migrations: Vec<Migration>,
    #[serde(default)]
    migrations_links: Vec<Link>,
}

/// A listing in pages.
#[derive(Debug, Default)]
pub(crate) struct Migrations(pub(crate) Vec<Migration>);

impl Migrations {
    /// Adds one page, and returns the marker of the next one.
    pub(crate) fn take(&mut self, body: &[u8]) -> Result<Option<String>, serde_json::Error> {
        let page: Page = serde_json::from_slice(body)?;
        let next = marker(&page.migrations_links);
        for migration in page.migrations {
            if self.0.iter().all(|known| known.id != migration.id) {
                self.0.push(migration);
            }
        }
        Ok(next)
    }
}
