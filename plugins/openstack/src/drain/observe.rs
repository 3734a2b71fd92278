//! Reads what Nova reports about a host.

use std::collections::{BTreeMap, BTreeSet};

use scupper_sdk::Timestamp;
use scupper_sdk::http::Method;

use crate::clock;
use crate::cloud::Cloud;
use crate::nova::{Migration, Migrations, Server, Servers, Service, State, ask, services, shown};
use crate::step_error::StepError;

/// How often to restart a listing whose marker server is gone.
const RESTARTS: usize = 3;
/// The number of servers whose progress in bytes or whose name is read, with one request each.
const DETAILS: usize = 12;
/// The drain's clock may be slightly ahead of Nova's, whose times have whole seconds.
const MARGIN: u64 = 2_000;
/// For so many pages the list of all migrations needs no more requests than the lists of those in progress, one for each status.
const PLAIN_PAGES: usize = 10;
/// Nova updates the record of a running migration every few seconds, and ends its record soon after the server's task.
const LOST_AFTER: u64 = 60_000;

/// A host with its servers and migrations.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) host: String,
    /// Nova's clock.
    pub(crate) now: Timestamp,
    /// When the drain began, by Nova's clock.
    pub(crate) since: Timestamp,
    pub(crate) servers: Vec<Server>,
    /// The migrations of this host that changed since the drain began, and older ones to it that are in progress.
    pub(crate) migrations: Vec<Migration>,
    /// The migrating servers that no list of the host contains: those that are about to leave, and those that arrive; `None`:
    /// deleted.
    elsewhere: BTreeMap<String, Option<Server>>,
    /// The user as which this policy is logged in.
    pub(crate) user: String,
}

impl Snapshot {
    /// Reads migrations before servers. A migration that ends in between then shows as running with its server gone; in the
    /// other order it would look like a failure.
    ///
    /// `listed_since` is what the previous step saved, `None` in the first one, which also looks for migrations to the host
    /// that have not changed since the drain began.
    pub(crate) fn take(
        cloud: &mut Cloud<'_>,
        host: &str,
        started: Timestamp,
        listed_since: &mut Option<Timestamp>,
    ) -> Result<Self, StepError> {
        let user = cloud.user()?;
        let since = cloud.on_nova_clock(started).saturating_sub(MARGIN);
        let mut migrations = match *listed_since {
            Some(before) => migrations(cloud, host, before.min(since))?,
            None => first_look(cloud, host, since)?,
        };
        let is_incoming = |migration: &Migration| migration.is_to(host) && migration.is_active();
        migrations.retain(|migration| migration.changed() >= since || is_incoming(migration));
        let servers = servers(cloud, host)?;
        details(cloud, &servers, &mut migrations)?;
        let elsewhere = elsewhere(cloud, &servers, &migrations, since)?;
        let mut snapshot = Self {
            host: host.to_owned(),
            now: cloud.now(),
            since,
            servers,
            migrations,
            elsewhere,
            user,
        };
        snapshot.mark_lost();
        *listed_since = Some(snapshot.drop_old());
        Ok(snapshot)
    }

    /// A nova-compute that is killed leaves the records of waiting migrations as they are, for good, and so does a lost
    /// message. The server shows it: it has had no task for some time.
    fn mark_lost(&mut self) {
        let is_lost = |migration: &Migration| {
            let id = &migration.instance_uuid;
            let (server, is_gone) = match self.elsewhere.get(id) {
                Some(server) => (server.as_ref(), server.is_none()),
                None => (self.server(id), false),
            };
            let is_over = is_gone || server.is_some_and(Server::is_at_rest);
            is_over && migration.is_active() && self.now > migration.ended(server) + LOST_AFTER
        };
        let lost: Vec<bool> = self.migrations.iter().map(is_lost).collect();
        for (migration, is_lost) in self.migrations.iter_mut().zip(lost) {
            migration.is_lost = is_lost;
        }
    }

    /// Drops the old migrations to the host that Nova has lost: their servers are not busy. Returns since when migrations are to
    /// be listed, so that the others stay.
    fn drop_old(&mut self) -> Timestamp {
        let mut migrations = std::mem::take(&mut self.migrations);
        migrations.retain(|migration| {
            let id = &migration.instance_uuid;
            let is_busy = |server: &Server| matches!(server.state(), State::Busy(_));
            let elsewhere = self.elsewhere.get(id).and_then(Option::as_ref);
            migration.changed() >= self.since || self.has(id) || elsewhere.is_some_and(is_busy)
        });
        self.migrations = migrations;
        let incoming = self
            .migrations
            .iter()
            .filter(|it| it.is_to(&self.host) && it.is_active());
        incoming.map(Migration::changed).fold(self.since, Timestamp::min)
    }

    /// The migrations of one server, the newest first.
    pub(crate) fn migrations_of<'p>(&'p self, server: &str) -> Vec<&'p Migration> {
        let mut of: Vec<_> = self
            .migrations
            .iter()
            .filter(|migration| migration.instance_uuid == server)
            .collect();
        of.sort_by_key(|migration| std::cmp::Reverse((migration.created(), migration.id)));
        of
    }

    /// The migrations of one server away from this host since it came here last, the newest first.
    pub(crate) fn attempts(&self, server: &str) -> Vec<&Migration> {
        let of = self.migrations_of(server);
        let back = of
            .iter()
            .filter(|migration| migration.is_to(&self.host) && migration.has_succeeded());
        let back = back.map(|migration| migration.created()).max();
        of.into_iter()
            .filter(|migration| migration.is_from(&self.host) && Some(migration.created()) > back)
            .collect()
    }

    /// Whether the migration is ours. Before 2.80 Nova names no user; `without_a_user` is the answer then.
    pub(crate) fn is_ours(&self, migration: &Migration, without_a_user: bool) -> bool {
        self.is_us(migration.user_id.as_deref(), without_a_user)
    }

    /// Whether this user is the policy's own.
    pub(crate) fn is_us(&self, user: Option<&str>, without_a_user: bool) -> bool {
        match user {
            Some(user) if !self.user.is_empty() => user == self.user,
            _ => without_a_user,
        }
    }

    pub(crate) fn has(&self, server: &str) -> bool {
        self.server(server).is_some()
    }

    /// The server with this id, if it is on the host.
    pub(crate) fn server(&self, id: &str) -> Option<&Server> {
        self.servers.iter().find(|known| known.id == id)
    }

    /// For people: the server's name, if it is known.
    pub(crate) fn title(&self, id: &str) -> String {
        let elsewhere = || self.elsewhere.get(id)?.as_ref();
        let known = self.server(id).or_else(elsewhere);
        known.map_or_else(|| shown("", id), Server::title)
    }
}

/// Compute services: all, or that of one host.
pub(crate) fn compute_services(cloud: &mut Cloud<'_>, host: Option<&str>) -> Result<Vec<Service>, StepError> {
    let body = cloud.get(&ask::services(host))?;
    services(&body).map_err(|error| {
        StepError::retry(format!(
            "Nova's list of compute services cannot be read (a cell may be down): {error}"
        ))
    })
}

/// Servers that were resized away from the host and may still come back: their disks are here. They are on other hosts now, so no
/// list of this host contains them. Only the first page is looked at: an empty host is checked record by record.
pub(crate) fn unconfirmed(cloud: &mut Cloud<'_>, host: &str) -> Result<Vec<Server>, StepError> {
    let unreadable = |error| {
        StepError::retry(format!(
            "Nova's list of unconfirmed resizes cannot be read: {error}"
        ))
    };
    let (waiting, records) = ask::unconfirmed(host);
    let mut servers = Servers::default();
    servers.take(&cloud.get(&waiting)?).map_err(unreadable)?;
    if servers.0.is_empty() {
        return Ok(servers.0);
    }
    let mut migrations = Migrations::default();
    migrations.take(&cloud.get(&records)?).map_err(unreadable)?;
    let from_here = |it: &&Migration| it.is_from(host) && it.is_unconfirmed();
    let records = migrations.0.iter().filter(from_here);
    let ids: BTreeSet<&str> = records.map(|it| it.instance_uuid.as_str()).collect();
    servers.0.retain(|server| ids.contains(server.id.as_str()));
    Ok(servers.0)
}

/// One server, if Nova has it.
pub(crate) fn server(cloud: &mut Cloud<'_>, id: &str) -> Result<Option<Server>, StepError> {
    let answer = cloud.ask(Method::Get, &ask::server(id), None)?;
    if answer.status == 404 {
        return Ok(None);
    }
    let server = Servers::one(&answer.body);
    server
        .map(Some)
        .map_err(|error| StepError::retry(format!("Nova, {}: {error}", shown("", id))))
}

/// The servers of migrations in progress that are not on the host, by id. Those of migrations that have changed since the drain
/// began come first.
fn elsewhere(
    cloud: &mut Cloud<'_>,
    servers: &[Server],
    migrations: &[Migration],
    since: Timestamp,
) -> Result<BTreeMap<String, Option<Server>>, StepError> {
    let under_way = migrations
        .iter()
        .filter(|it| it.is_active() || it.is_unconfirmed());
    let ids: BTreeSet<(bool, &str)> = under_way
        .map(|it| (it.changed() < since, it.instance_uuid.as_str()))
        .collect();
    let absent = |(_, id): &(bool, &str)| servers.iter().all(|server| server.id != *id);
    let read = |(_, id): (bool, &str)| Ok((id.to_owned(), server(cloud, id)?));
    ids.into_iter().filter(absent).take(DETAILS).map(read).collect()
}

/// All servers on the host, of all tenants and from all pages.
pub(crate) fn servers(cloud: &mut Cloud<'_>, host: &str) -> Result<Vec<Server>, StepError> {
    for _ in 0..RESTARTS {
        if let Some(servers) = all_pages(cloud, host)? {
            return Ok(servers);
        }
    }
    Err(StepError::retry(
        "the servers change faster than they can be listed",
    ))
}

/// `None`: the marker server of a page is gone.
fn all_pages(cloud: &mut Cloud<'_>, host: &str) -> Result<Option<Vec<Server>>, StepError> {
    let mut servers = Servers::default();
    let mut marker: Option<String> = None;
    loop {
        let path = ask::servers(host, marker.as_deref());
        let answer = cloud.ask(Method::Get, &path, None)?;
        if answer.status == 400 && marker.is_some() {
            return Ok(None);
        }
        if !answer.is_success() {
            let words = format!("Nova, GET /servers/detail: {} {}", answer.status, answer.message);
            return Err(StepError::Fatal(words));
        }
        marker = servers
            .take(&answer.body)
            .map_err(|error| StepError::retry(format!("Nova's list of servers cannot be read: {error}")))?;
        if marker.is_none() {
            return Ok(Some(servers.0));
        }
    }
}

/// The host's migrations that have changed since then.
fn migrations(cloud: &mut Cloud<'_>, host: &str, since: Timestamp) -> Result<Vec<Migration>, StepError> {
    let mut found = Migrations::default();
    let text = clock::to_iso(since);
    pages(cloud, host, ("changes-since", &text), &mut found)?;
    found.0.retain(|migration| migration.changed() >= since);
    Ok(found.0)
}

/// The host's newest migrations, and all that have changed since then.
fn first_look(cloud: &mut Cloud<'_>, host: &str, since: Timestamp) -> Result<Vec<Migration>, StepError> {
    let mut found = Migrations::default();
    if page(cloud, host, None, None, &mut found)?.is_some() {
        pages(cloud, host, ("changes-since", &clock::to_iso(since)), &mut found)?;
    }
    Ok(found.0)
}

/// The host's migrations that may occupy it, however old they are; perhaps others as well. `many`: there are more than fit
/// into a few pages, so that no later step reads these again.
pub(crate) fn occupying(
    cloud: &mut Cloud<'_>,
    host: &str,
    many: &mut bool,
) -> Result<Vec<Migration>, StepError> {
    let mut found = Migrations::default();
    let mut next = None;
    for _ in 0..if *many { 0 } else { PLAIN_PAGES } {
        next = page(cloud, host, None, next.as_deref(), &mut found)?;
        if next.is_none() {
            return Ok(found.0);
        }
    }
    // Of very many records most are of migrations that have ended. Nova takes one status per request.
    *many = true;
    for status in Migration::occupying() {
        pages(cloud, host, ("status", status), &mut found)?;
    }
    Ok(found.0)
}

/// Adds all pages of the host's migrations with this filter.
fn pages(
    cloud: &mut Cloud<'_>,
    host: &str,
    filter: (&str, &str),
    found: &mut Migrations,
) -> Result<(), StepError> {
    let mut next = page(cloud, host, Some(filter), None, found)?;
    while next.is_some() {
        next = page(cloud, host, Some(filter), next.as_deref(), found)?;
    }
    Ok(())
}

/// Adds one page of the host's migrations, and returns the marker of the next one.
fn page(
    cloud: &mut Cloud<'_>,
    host: &str,
    filter: Option<(&str, &str)>,
    marker: Option<&str>,
    found: &mut Migrations,
) -> Result<Option<String>, StepError> {
    let paged = cloud.version()?.has_changes_since();
    let body = cloud.get(&ask::migrations(host, paged, filter, marker))?;
    found
        .take(&body)
        .map_err(|error| StepError::retry(format!("Nova's list of migrations cannot be read: {error}")))
}

/// Adds the bytes of running migrations, and running migrations that began before the drain.
fn details(
    cloud: &mut Cloud<'_>,
    servers: &[Server],
    migrations: &mut Vec<Migration>,
) -> Result<(), StepError> {
    let moving = servers
        .iter()
        .filter(|server| matches!(server.state(), State::Busy(task) if task == "migrating"));
    for server in moving.take(DETAILS) {
        let answer = cloud.ask(Method::Get, &ask::server_migrations(&server.id), None)?;
        let mut under_way = Migrations::default();
        if !answer.is_success() || under_way.take(&answer.body).is_err() {
            continue;
        }
        for detailed in under_way.0 {
            match migrations.iter_mut().find(|known| known.id == detailed.id) {
                Some(known) => {
                    known.updated_at = detailed.updated_at.or_else(|| known.updated_at.take());
                    known.memory_total_bytes = detailed.memory_total_bytes;
                    known.memory_processed_bytes = detailed.memory_processed_bytes;
                    known.memory_remaining_bytes = detailed.memory_remaining_bytes;
                }
                None => migrations.push(detailed),
            }
        }
    }
    Ok(())
}
