//! An administrator's view: the reference for the policy's results.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http;
use crate::limit::LIMIT;

pub(crate) struct Nova {
    url: String,
    token: String,
}

impl Nova {
    pub(crate) fn login(keystone: &str, url: &str, auth: &Value) -> Self {
        let domain = json!({"id": "default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user":
                {"name": auth["username"], "domain": domain, "password": auth["password"]}}},
            "scope": {"project": {"name": auth["project_name"], "domain": domain}},
        }});
        let headers = [("Content-Type", "application/json")];
        let url_of_tokens = format!("{keystone}/auth/tokens");
        let answer = http::send("POST", &url_of_tokens, &headers, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.status, 201, "the looker-on cannot log in");
        Self {
            url: url.to_owned(),
            token: answer.header("X-Subject-Token").unwrap(),
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let headers = [
            ("X-Auth-Token", self.token.as_str()),
            ("OpenStack-API-Version", "compute 2.96"),
            ("Content-Type", "application/json"),
        ];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let url = format!("{}{path}", self.url);
        let answer = http::send(method, &url, &headers, body.as_bytes()).unwrap();
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        assert!(
            matches!(answer.status, 200..300 | 404),
            "{method} {path}: {} {text}",
            answer.status
        );
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    pub(crate) fn service(&self, host: &str) -> Value {
        let path = format!("/os-services?binary=nova-compute&host={host}");
        self.get(&path)["services"][0].clone()
    }

    pub(crate) fn disable(&self, host: &str, reason: &str) {
        let id = self.service(host)["id"].as_str().unwrap().to_owned();
        let body = json!({"status": "disabled", "disabled_reason": reason});
        self.ask("PUT", &format!("/os-services/{id}"), &body);
    }

    pub(crate) fn enable(&self, host: &str) {
        let id = self.service(host)["id"].as_str().unwrap().to_owned();
        self.ask(
            "PUT",
            &format!("/os-services/{id}"),
            &json!({"status": "enabled"}),
        );
    }

    /// Waits until a server has this status.
    pub(crate) async fn until_status(&self, id: &str, status: &str) {
        let is_it = |nova: &Self| nova.server(id)["status"] == status;
        self.until(status, is_it).await;
    }

    /// A server that is shut off.
    pub(crate) async fn stop(&self, id: &str) {
        self.act(id, &json!({"os-stop": null}));
        self.until_status(id, "SHUTOFF").await;
    }

    /// The server runs.
    pub(crate) async fn start(&self, id: &str) {
        self.act(id, &json!({"os-start": null}));
        self.until_status(id, "ACTIVE").await;
    }

    /// The ids of all tenants' servers on a host.
    pub(crate) fn servers(&self, host: &str) -> Vec<String> {
        let all = self.get(&format!("/servers?all_tenants=1&host={host}"));
        let ids = all["servers"].as_array().unwrap().iter();
        ids.map(|server| server["id"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn server(&self, id: &str) -> Value {
        self.get(&format!("/servers/{id}"))["server"].clone()
    }

    pub(crate) fn host_of(&self, id: &str) -> String {
        let server = self.server(id);
        server["OS-EXT-SRV-ATTR:host"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) fn act(&self, id: &str, body: &Value) {
        self.ask("POST", &format!("/servers/{id}/action"), body);
    }

    pub(crate) fn act_on_migration(&self, id: &str, migration: &Value, body: &Value) {
        self.ask(
            "POST",
            &format!("/servers/{id}/migrations/{migration}/action"),
            body,
        );
    }

    /// The result of each migration of a server, oldest first.
    pub(crate) fn migrations(&self, id: &str) -> Vec<String> {
        let all = self.get(&format!("/os-migrations?instance_uuid={id}"));
        let mut all: Vec<(u64, String)> = all["migrations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|migration| {
                (
                    migration["id"].as_u64().unwrap(),
                    migration["status"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, status)| status).collect()
    }

    /// The started actions of this kind on a server.
    pub(crate) fn events(&self, id: &str, action: &str) -> Vec<String> {
        let path = format!("/servers/{id}/os-instance-actions");
        let all = self.get(&path);
        let all = all["instanceActions"].as_array().unwrap().iter();
        let mut requests = all.filter(|one| one["action"] == action);
        // The newest is first.
        let request = requests
            .next()
            .map(|one| one["request_id"].as_str().unwrap().to_owned());
        let Some(request) = request else {
            return Vec::new();
        };
        let one = self.get(&format!("{path}/{request}"));
        let events = one["instanceAction"]["events"].as_array().unwrap().iter();
        events
            .map(|event| event["event"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Requests a small server on a host, without waiting for it. Returns its id.
    pub(crate) fn create(&self, image: &str, host: &str, metadata: &Value) -> String {
        let server = json!({
            "name": "late", "networks": "none", "imageRef": image, "flavorRef": "small", "host": host,
            "metadata": metadata,
        });
        let answer = self.ask("POST", "/servers", &json!({ "server": server }));
        answer["server"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn migrate_live(&self, id: &str) {
        self.act(
            id,
            &json!({"os-migrateLive": {"host": null, "block_migration": "auto"}}),
        );
    }

    /// Repeats the check until it holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < LIMIT, "not in time: {what}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
