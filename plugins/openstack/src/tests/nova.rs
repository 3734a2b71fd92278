//! A cloud in memory that responds as real Keystone and Nova do, with their pitfalls.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use scupper_sdk::http::{Error, Method, Request, Response};
use scupper_sdk::testing::Host;
use serde_json::{Value, json};

pub(super) const AUTH: &str = "http://keystone:5000/v3";
pub(super) const COMPUTE: &str = "http://nova:8774/v2.1";
pub(super) const HOST: &str = "compute-a";
/// The cloud's clock is 40 s ahead of the test's, which begins at 2027-01-15T08:00:00Z.
const AHEAD: u64 = 40;

type Instead = Box<dyn FnMut(&Request) -> Option<Result<Response, Error>>>;

/// The state of the cloud, and the requests it received.
pub(super) struct State {
    pub(super) services: Vec<Value>,
    pub(super) servers: Vec<Value>,
    pub(super) migrations: Vec<Value>,
    /// Events of each server's newest action.
    pub(super) events: Value,
    pub(super) newest: &'static str,
    /// Migrations in progress, as in a server's own list.
    pub(super) memory: Value,
    pub(super) asked: Vec<String>,
    pub(super) bodies: Vec<Value>,
    /// Overrides the response while it returns one.
    pub(super) instead: Instead,
    /// Servers per page.
    pub(super) page: usize,
    /// Migrations per page.
    pub(super) records: usize,
    pub(super) seconds: u64,
    pub(super) token: bool,
    pub(super) logins: usize,
}

/// The cloud, shared with the test host.
#[derive(Clone)]
pub(super) struct Cloud(pub(super) Rc<RefCell<State>>);

impl Cloud {
    /// Two compute services, no servers; the host configured for it.
    pub(super) fn new(host: &Host) -> Self {
        for (key, value) in [
            ("auth-url", "http://keystone:5000"),
            ("application-credential-id", "c1"),
            ("region-name", "one"),
            ("compute-url", "http://nova:8774"),
            ("host-table", "node-1=compute-a"),
        ] {
            host.config(key, value);
        }
        let cloud = Self(Rc::new(RefCell::new(State {
            services: vec![service(HOST), service("compute-b")],
            servers: Vec::new(),
            migrations: Vec::new(),
            events: json!([]),
            newest: "2.100",
            memory: json!([]),
            asked: Vec::new(),
            bodies: Vec::new(),
            instead: Box::new(|_| None),
            page: 100,
            records: 500,
            seconds: AHEAD,
            token: false,
            logins: 0,
        })));
        let answering = cloud.clone();
        host.on_request(move |request| answering.answer(request));
        cloud
    }

    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.borrow_mut())
    }

    pub(super) fn server(&self, id: &str, vm_state: &str) {
        let server = json!({
            "id": id, "name": format!("vm-{id}"), "status": "ACTIVE", "host": HOST,
            "OS-EXT-STS:vm_state": vm_state, "OS-EXT-STS:task_state": null, "flavor": {"ram": 256},
        });
        self.with(|state| state.servers.push(server));
    }

    /// A requested server that no host has accepted yet.
    pub(super) fn building(&self, id: &str, created: &str) {
        let server = json!({
            "id": id, "name": format!("vm-{id}"), "status": "BUILD", "host": null, "created": created,
            "updated": created, "OS-EXT-SRV-ATTR:host": null, "OS-EXT-STS:vm_state": "building",
            "OS-EXT-STS:task_state": null, "flavor": {"ram": 256},
        });
        self.with(|state| state.servers.push(server));
    }

    /// Ends all migrations in progress with this status.
    pub(super) fn end_all(&self, status: &str) {
        let now = self.now();
        self.with(|state| {
            for migration in &mut state.migrations {
                if !matches!(migration["status"].as_str(), Some("running" | "accepted")) {
                    continue;
                }
                migration["status"] = json!(status);
                migration["updated_at"] = json!(now);
                let (id, dest) = (
                    migration["instance_uuid"].clone(),
                    migration["dest_compute"].clone(),
                );
                for server in &mut state.servers {
                    if server["id"] == id {
                        server["OS-EXT-STS:task_state"] = Value::Null;
                        if status == "completed" {
                            server["host"] = dest.clone();
                        }
                    }
                }
            }
        });
    }

    pub(super) fn set(&self, id: &str, key: &str, value: Value) {
        self.with(|state| {
            let mut all = state.servers.iter_mut();
            all.find(|server| server["id"] == id).unwrap()[key] = value;
        });
    }

    pub(super) fn migration(&self, id: u64, server: &str, from: &str, to: &str, status: &str, kind: &str) {
        let now = self.now();
        self.with(|state| {
            state.migrations.push(json!({
                "id": id, "instance_uuid": server, "source_compute": from, "dest_compute": to, "status": status,
                "migration_type": kind, "created_at": now, "updated_at": now, "user_id": "u1",
            }));
        });
    }

    pub(super) fn pass(&self, host: &Host, seconds: u64) {
        host.advance(Duration::from_secs(seconds));
        self.with(|state| state.seconds += seconds);
    }

    pub(super) fn now(&self) -> String {
        let seconds = self.with(|state| state.seconds);
        crate::clock::to_iso((1_800_000_000 + seconds) * 1000).replace('Z', ".000000")
    }

    pub(super) fn service(&self, host: &str) -> Value {
        self.with(|state| {
            let mut all = state.services.iter();
            all.find(|service| service["host"] == host).unwrap().clone()
        })
    }

    /// The number of requests whose `METHOD path` begins like this.
    pub(super) fn count(&self, begins: &str) -> usize {
        self.with(|state| {
            let asked = state.asked.iter();
            asked.filter(|asked| asked.starts_with(begins)).count()
        })
    }

    fn answer(&self, request: &Request) -> Result<Response, Error> {
        let url = request.url.clone();
        let path = url
            .trim_start_matches(AUTH)
            .trim_start_matches(COMPUTE)
            .to_owned();
        self.with(|state| state.asked.push(format!("{} {path}", request.method)));
        let mut instead = self.with(|state| std::mem::replace(&mut state.instead, Box::new(|_| None)));
        let other = instead(request);
        self.with(|state| state.instead = instead);
        if let Some(other) = other
            && !(matches!(&other, Ok(response) if response.status == 403) && self.lacks_the_server(&path))
        {
            return other;
        }
        if url.starts_with(AUTH) {
            return Ok(self.keystone(request));
        }
        if !self.with(|state| state.token) {
            return Err(Error::NoSecret("`token` was not captured yet".to_owned()));
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (status, answer) = self.nova(request.method, &path, &body);
        let seconds = self.with(|state| state.seconds);
        let date = format!("Fri, 15 Jan 2027 08:{:02}:{:02} GMT", seconds / 60, seconds % 60);
        Ok(Response::new(status, answer.to_string()).with_header("Date", &date))
    }

    /// Nova looks a server up before it checks the right to do something with it.
    fn lacks_the_server(&self, path: &str) -> bool {
        let id = path
            .strip_prefix("/servers/")
            .and_then(|rest| rest.split(['/', '?']).next());
        id.is_some_and(|id| id != "detail" && self.one(id).0 == 404)
    }

    fn keystone(&self, request: &Request) -> Response {
        if request.method == Method::Delete {
            return Response::new(204, "");
        }
        self.with(|state| {
            state.token = true;
            state.logins += 1;
        });
        let endpoint =
            |region: &str, url: &str| json!({"interface": "public", "region_id": region, "url": url});
        let token = json!({"token": {
            "issued_at": "2027-01-15T08:00:00.000000Z", "expires_at": "2027-01-15T09:00:00.000000Z",
            "user": {"id": "u1"},
            "catalog": [{"type": "compute", "endpoints": [
                endpoint("one", COMPUTE), endpoint("two", "http://elsewhere:8774/v2.1"),
            ]}],
        }});
        Response::new(201, token.to_string())
    }

    fn nova(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        self.with(|state| state.bodies.push(body.clone()));
        match (method, parts.as_slice()) {
            (Method::Get, [""]) => {
                let newest = self.with(|state| state.newest);
                (200, json!({"version": {"version": newest, "min_version": "2.1"}}))
            }
            (Method::Get, ["os-services"]) => (200, self.services(query)),
            (Method::Put, ["os-services", id]) => self.put_service(id, body),
            (Method::Get, ["servers", "detail"]) => self.page(query),
            (Method::Get, ["os-migrations"]) => (200, self.migrations(query)),
            (Method::Get, ["servers", id]) => self.one(id),
            (Method::Post, ["servers", id, "action"]) => self.action(id, body),
            (Method::Get, ["servers", _, "os-instance-actions"]) => (
                200,
                json!({"instanceActions": [{"action": "live-migration", "request_id": "req-1", "start_time": "1"}]}),
            ),
            (Method::Get, ["servers", _, "os-instance-actions", _]) => {
                let events = self.with(|state| state.events.clone());
                let action = json!({"action": "live-migration", "request_id": "req-1", "events": events});
                (200, json!({"instanceAction": action}))
            }
            (Method::Get, ["servers", _, "migrations"]) => (
                200,
                json!({"migrations": self.with(|state| state.memory.clone())}),
            ),
            (Method::Delete, ["servers", _, "migrations", _]) => {
                self.end_all("cancelled");
                (202, Value::Null)
            }
            (Method::Post, ["servers", _, "migrations", _, "action"]) => (202, Value::Null),
            _ => panic!("{method} {path}"),
        }
    }

    /// With a limit in pages, the newest first; only then Nova knows `changes-since`.
    fn migrations(&self, query: &str) -> Value {
        let (mut migrations, page) = self.with(|state| (state.migrations.clone(), state.records));
        if let Some(status) = value(query, "status") {
            migrations.retain(|migration| migration["status"] == status);
        }
        if value(query, "limit").is_none() {
            return json!({"migrations": migrations});
        }
        if let Some(since) = value(query, "changes-since").map(crate::clock::iso) {
            migrations.retain(|migration| {
                crate::clock::iso(migration["updated_at"].as_str().unwrap_or_default()) >= since
            });
        }
        migrations.reverse();
        migrations.sort_by_key(|migration| std::cmp::Reverse(migration["created_at"].to_string()));
        if let Some(marker) = value(query, "marker") {
            let marker: u64 = marker.parse().unwrap();
            let at = migrations.iter().position(|migration| migration["id"] == marker);
            migrations.drain(..=at.unwrap());
        }
        let is_last = migrations.len() <= page;
        migrations.truncate(page);
        let mut answer = json!({"migrations": migrations});
        if !is_last {
            let last = &migrations[page - 1]["id"];
            answer["migrations_links"] = json!([{"rel": "next", "href": format!("http://n/?marker={last}")}]);
        }
        answer
    }

    fn services(&self, query: &str) -> Value {
        let mut services = self.with(|state| state.services.clone());
        if let Some((_, host)) = query.split_once("host=") {
            services.retain(|service| service["host"] == host);
        }
        json!({"services": services})
    }

    fn put_service(&self, id: &str, body: &Value) -> (u16, Value) {
        self.with(|state| {
            let mut all = state.services.iter_mut();
            let service = all.find(|service| service["id"] == id).unwrap();
            service["status"] = body["status"].clone();
            service["disabled_reason"] = body["disabled_reason"].clone();
            (200, json!({"service": service}))
        })
    }

    /// The list of an unknown host is empty, and so is that of a host with only other tenants' servers.
    fn page(&self, query: &str) -> (u16, Value) {
        let value = |key: &str| value(query, key);
        if value("all_tenants").is_none() {
            return (200, json!({"servers": []}));
        }
        let (mut servers, page) = self.with(|state| (state.servers.clone(), state.page));
        if value("host").is_none() {
            servers.retain(|server| {
                value("status").is_none_or(|status| server["status"] == status)
                    && value("task_state").is_none_or(|task| server["OS-EXT-STS:task_state"] == task)
            });
            return (200, json!({"servers": servers}));
        }
        let here: Vec<Value> = servers
            .into_iter()
            .filter(|server| value("host").is_none_or(|host| server["host"] == host))
            .collect();
        let from = match value("marker") {
            None => 0,
            Some(marker) => match here.iter().position(|server| server["id"] == marker) {
                Some(at) => at + 1,
                None => {
                    return (
                        400,
                        json!({"badRequest": {"message": format!("marker [{marker}] not found")}}),
                    );
                }
            },
        };
        let mut answer = json!({"servers": here.iter().skip(from).take(page).collect::<Vec<_>>()});
        if here.len() > from + page {
            let last = here[from + page - 1]["id"].as_str().unwrap();
            let href =
                format!("http://10.9.9.9:8774/v2.1/servers/detail?all_tenants=1&marker={last}&limit=1");
            answer["servers_links"] = json!([{"rel": "next", "href": href}]);
        }
        (200, answer)
    }

    fn one(&self, id: &str) -> (u16, Value) {
        let found = self.with(|state| {
            let mut all = state.servers.iter();
            all.find(|server| server["id"] == id).cloned()
        });
        found.map_or_else(|| (404, json!({})), |server| (200, json!({"server": server})))
    }

    /// A live migration begins if the server is active and has no task.
    fn action(&self, id: &str, body: &Value) -> (u16, Value) {
        let (status, server) = self.one(id);
        if status == 404 {
            return (404, json!({"itemNotFound": {"message": "no such server"}}));
        }
        if body.get("confirmResize").is_some() {
            self.with(|state| {
                for migration in &mut state.migrations {
                    if migration["instance_uuid"] == id && migration["status"] == "finished" {
                        migration["status"] = json!("confirmed");
                    }
                }
            });
            return (204, Value::Null);
        }
        let server = &server["server"];
        let (vm, task) = (&server["OS-EXT-STS:vm_state"], &server["OS-EXT-STS:task_state"]);
        if !task.is_null() {
            let message = format!("Cannot 'os-migrateLive' instance {id} while it is in task_state {task}");
            return (409, json!({"conflictingRequest": {"message": message}}));
        }
        let live = body.get("os-migrateLive").is_some();
        let kind = if live { "live-migration" } else { "migration" };
        if live && *vm != "active" && *vm != "paused" {
            let message = format!("Cannot 'os-migrateLive' instance {id} while it is in vm_state {vm}");
            return (409, json!({"conflictingRequest": {"message": message}}));
        }
        let next = self.with(|state| state.migrations.len() as u64 + 1);
        self.migration(next, id, HOST, "compute-b", "running", kind);
        self.set(id, "OS-EXT-STS:task_state", json!("migrating"));
        (202, Value::Null)
    }
}

pub(super) fn service(host: &str) -> Value {
    json!({
        "id": format!("id-of-{host}"), "binary": "nova-compute", "host": host, "status": "enabled", "state": "up",
        "disabled_reason": null, "forced_down": false,
    })
}

fn value<'q>(query: &'q str, key: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}
