//! The overlay `openstack`: the example's cloud does not exist, so the drain is held before it changes anything; its
//! ConfigMap is edited while the driver runs, to a cloud that exists, and the drain continues. The cloud is a stub of
//! Keystone and Nova that knows one compute service without servers; the real ones are in `real_openstack`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::{Value, json};

use crate::container::Image;
use crate::installed::{Installed, ask, deploy, event, until};
use crate::machine::Machine;
use crate::overlays::{apply, is_drained, kubectl, work};

const SECRET: &str = "the-secret-of-the-application-credential";

/// Nova empties it before its pods are evicted.
pub(crate) async fn drains(installed: &Installed, image: &Image, node: &str) {
    apply(installed, "openstack");
    let literal = format!("--from-literal=application-credential-secret={SECRET}");
    let secret = ["create", "secret", "generic", "openstack", &literal];
    kubectl(installed, &[&["--namespace", "scupper"][..], &secret].concat());
    kubectl(
        installed,
        &["label", "node", node, "openstack-compute-node=enabled"],
    );
    work(installed, node);
    let machine = Machine::up(installed, image, node, false);
    let driver = machine.run("scupper").await;
    let drain_event = event("drain-for-nova", "drain.slm.k8s.io", node);
    installed.create(std::slice::from_ref(&drain_event));
    let holds = async || driver.log().contains("cloud.example.com");
    until(holds, || driver.log()).await;
    let path = format!("/api/v1/nodes/{node}");
    assert!(
        installed.get(&path).await["spec"]["unschedulable"].is_null(),
        "{}",
        driver.log()
    );

    let cloud = Cloud::start(node);
    let config = std::fs::read_to_string(deploy().join("overlays/openstack/scupper.yaml")).unwrap();
    let config = config
        .replace("https://cloud.example.com:5000", &cloud.keystone)
        .replace("https://cloud.example.com:8774", &cloud.nova)
        .replace("[private]", "[loopback]");
    let path = "/api/v1/namespaces/scupper/configmaps/scupper";
    let data = json!({"data": {"scupper.yaml": config}});
    let (code, said) = ask(&installed.admin, Method::PATCH, path, &data).await;
    assert!(code.is_success(), "{said}");
    machine.refresh("scupper").await;
    let disabled = async || cloud.service()["status"] == "disabled";
    until(disabled, || format!("{:?}\n{}", cloud.asked(), driver.log())).await;
    is_drained(installed, &driver, &drain_event).await;
    assert!(!driver.log().contains(SECRET));
}

struct Cloud {
    keystone: String,
    nova: String,
    known: Arc<Mutex<CloudState>>,
}

struct CloudState {
    service: Value,
    /// Nova's address in the catalogue.
    nova: String,
    asked: Vec<String>,
}

impl Cloud {
    /// Two servers until the process ends, as in a cloud.
    fn start(host: &str) -> Self {
        let service = json!({
            "id": "0f5e", "binary": "nova-compute", "host": host, "status": "enabled", "state": "up",
            "disabled_reason": null, "forced_down": false,
        });
        let known = Arc::new(Mutex::new(CloudState {
            service,
            nova: String::new(),
            asked: Vec::new(),
        }));
        let serve = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let known = Arc::clone(&known);
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    // A client that has disconnected does not count.
                    answer(stream.unwrap(), &known).ok();
                }
            });
            url
        };
        let (keystone, nova) = (serve(), serve());
        known.lock().unwrap().nova.clone_from(&nova);
        Self {
            keystone,
            nova,
            known,
        }
    }

    fn service(&self) -> Value {
        self.known.lock().unwrap().service.clone()
    }

    fn asked(&self) -> Vec<String> {
        self.known.lock().unwrap().asked.clone()
    }
}

/// One request, one connection.
fn answer(mut stream: TcpStream, known: &Mutex<CloudState>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length, mut token) = (String::new(), 0, false);
    reader.read_line(&mut head)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.parse().unwrap();
        }
        token |= line == "x-auth-token: captured";
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut known = known.lock().unwrap();
    let (code, answer) = respond(&mut known, &head, token, &body);
    known.asked.push(format!("{} {code}", head.trim()));
    let answer = answer.to_string();
    let date = jiff::Timestamp::now()
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    let head =
        format!("HTTP/1.1 {code} So\r\nX-Subject-Token: captured\r\nDate: {date}\r\nConnection: close");
    write!(
        stream,
        "{head}\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

fn respond(known: &mut CloudState, head: &str, token: bool, body: &Value) -> (u16, Value) {
    let path = head.split(' ').nth(1).unwrap();
    let path = path.split('?').next().unwrap().trim_start_matches("/v2.1");
    match (head.split(' ').next().unwrap(), path) {
        ("POST", "/v3/auth/tokens") => {
            let secret = &body["auth"]["identity"]["application_credential"]["secret"];
            if secret != SECRET {
                return (401, json!({"error": {"message": "wrong secret"}}));
            }
            let url = format!("{}/v2.1", known.nova);
            let endpoint = json!({"interface": "public", "region_id": "RegionOne", "url": url});
            let token = json!({
                "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099-01-01T00:00:00.000000Z",
                "user": {"id": "u1"}, "catalog": [{"type": "compute", "endpoints": [endpoint]}],
            });
            (201, json!({"token": token}))
        }
        _ if !token => (401, json!({})),
        ("GET", "/os-services") => (200, json!({"services": [known.service]})),
        ("PUT", "/os-services/0f5e") => {
            known.service["status"] = body["status"].clone();
            known.service["disabled_reason"] = body["disabled_reason"].clone();
            (200, json!({"service": known.service}))
        }
        ("GET", "/servers/detail") => (200, json!({"servers": []})),
        ("GET", "/os-migrations") => (200, json!({"migrations": []})),
        ("GET", "/") | ("GET", "") => (
            200,
            json!({"version": {"version": "2.100", "min_version": "2.1"}}),
        ),
        _ => (404, json!({})),
    }
}
