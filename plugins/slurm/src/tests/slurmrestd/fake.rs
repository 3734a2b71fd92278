//! A slurmrestd in memory that behaves like the real one.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use scupper_sdk::{
    Outcome, Pending, Phase, Subject,
    http::{Error, HeaderValue, Method, Request, Response},
    testing::Host,
};
use serde_json::{Value, json};

use crate::Slurm;

/// Its URL.
pub(super) const URL: &str = "http://slurm.example.com:6820";
/// The default name of the node in Slurm: the same as in Kubernetes.
pub(super) const NODE: &str = "node-1";
/// The reason of the test's drain.
pub(super) const OURS: &str =
    "scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance: maintenance";

/// The injected result of a request.
pub(super) type Fault = Box<dyn FnOnce() -> Result<Response, Error>>;

#[derive(Default)]
struct Slurmrestd {
    served: Vec<u32>,
    nodes: Vec<Value>,
    jobs: Vec<Value>,
    /// The number of queued tasks of an array.
    waiting: usize,
    /// How often slurmctld has restarted, and how many seconds later its statistics were reset.
    restarts: u64,
    resets: u64,
    /// Each request in one line.
    requests: Vec<String>,
    timeouts: Vec<Option<u64>>,
    /// For the requests that begin like this, in order. `true`: the request still takes effect.
    faults: VecDeque<(&'static str, bool, Fault)>,
}

/// A test's Slurm and its host.
pub(super) struct Fake {
    pub(super) host: Host,
    slurm: Rc<RefCell<Slurmrestd>>,
}

impl Fake {
    /// Slurm 24.11 with the node, idle, and another one.
    pub(super) fn new() -> Self {
        let slurm = Slurmrestd {
            served: vec![40, 41, 42],
            ..Slurmrestd::default()
        };
        let fake = Self {
            host: Host::new(),
            slurm: Rc::new(RefCell::new(slurm)),
        };
        fake.node(NODE, &["IDLE"], "");
        fake.node("node-2", &["ALLOCATED"], "");
        let slurm = Rc::clone(&fake.slurm);
        fake.host
            .on_request(move |request| slurm.borrow_mut().handle(request));
        fake.host.config("way", "slurmrestd");
        fake.host.config("url", URL);
        fake
    }

    /// The same, with a job on the node.
    pub(super) fn busy() -> Self {
        let fake = Self::new();
        fake.node(NODE, &["MIXED"], "");
        fake.job(4711, &["RUNNING"], NODE);
        fake
    }

    pub(super) fn serves(&self, versions: &[u32]) {
        self.slurm.borrow_mut().served = versions.to_vec();
    }

    /// Sets the state and reason of a node.
    pub(super) fn node(&self, name: &str, state: &[&str], reason: &str) {
        let mut slurm = self.slurm.borrow_mut();
        slurm.nodes.retain(|node| node["name"] != name);
        slurm
            .nodes
            .push(json!({"name": name, "state": state, "reason": reason}));
    }

    /// Adds a job of alice that began with the test and ends an hour later.
    pub(super) fn job(&self, id: u64, state: &[&str], nodes: &str) {
        let began = self.host.now() / 1000;
        let set = |number: u64| json!({"set": true, "infinite": false, "number": number});
        let job = json!({
            "job_id": id, "job_state": state, "nodes": nodes, "name": "train", "user_name": "alice",
            "start_time": set(began), "end_time": set(began + 3600), "requeue": true,
        });
        let mut slurm = self.slurm.borrow_mut();
        slurm.jobs.retain(|other| other["job_id"] != id);
        slurm.jobs.push(job);
    }

    /// Adds a job from JSON.
    pub(super) fn raw_job(&self, job: Value) {
        self.slurm.borrow_mut().jobs.push(job);
    }

    /// Removes all jobs.
    pub(super) fn no_jobs(&self) {
        self.slurm.borrow_mut().jobs.clear();
    }

    /// The number of queued tasks of an array.
    pub(super) fn waiting(&self, tasks: usize) {
        self.slurm.borrow_mut().waiting = tasks;
    }

    /// Restarts slurmctld without a loss of state.
    pub(super) fn restart(&self) {
        self.slurm.borrow_mut().restarts += 1;
    }

    /// `sdiag --reset`
    pub(super) fn reset_statistics(&self) {
        self.slurm.borrow_mut().resets += 30;
    }

    pub(super) fn state(&self, name: &str) -> Vec<String> {
        let slurm = self.slurm.borrow();
        let node = slurm.nodes.iter().find(|node| node["name"] == name).unwrap();
        let words = node["state"].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn reason(&self, name: &str) -> String {
        let slurm = self.slurm.borrow();
        let node = slurm.nodes.iter().find(|node| node["name"] == name).unwrap();
        node["reason"].as_str().unwrap().to_owned()
    }

    /// Injects a result for the next request that begins like this, with or without its effect.
    pub(super) fn fault(
        &self,
        begins: &'static str,
        has_effect: bool,
        answer: impl FnOnce() -> Result<Response, Error> + 'static,
    ) {
        let fault = (begins, has_effect, Box::new(answer) as Fault);
        self.slurm.borrow_mut().faults.push_back(fault);
    }

    /// The requests since the last call.
    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.slurm.borrow_mut().requests)
    }

    pub(super) fn timeouts(&self) -> Vec<Option<u64>> {
        self.slurm.borrow().timeouts.clone()
    }

    pub(super) fn step(&self, phase: Phase) -> Outcome {
        self.host.step::<Slurm>(phase, Subject::Node)
    }

    /// Takes steps of `before-drain` until the requests no longer change.
    #[track_caller]
    pub(super) fn run_until_stable(&self) -> Outcome {
        for _ in 0..20 {
            match self.step(Phase::BeforeDrain) {
                Outcome::Pending(pending) if pending.again_after < 1_000 => {}
                outcome => return outcome,
            }
        }
        panic!("it does not become stable: {:#?}", self.requests())
    }

    /// Takes a step, which must be pending.
    #[track_caller]
    pub(super) fn waits(&self) -> Pending {
        match self.run_until_stable() {
            Outcome::Pending(pending) => pending,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a step, which must fail, for good or not, with this text.
    #[track_caller]
    pub(super) fn fails(&self, phase: Phase, for_good: bool, words: &str) {
        match self.step(phase) {
            Outcome::Failed(failure) => {
                assert_eq!(failure.retry_after.is_none(), for_good, "{failure:?}");
                assert!(failure.message.contains(words), "{words}: {failure:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Slurmrestd {
    fn handle(&mut self, request: &Request) -> Result<Response, Error> {
        check(request);
        let rest = request.url.strip_prefix(&format!("{URL}/slurm/v0.0.")).unwrap();
        let (version, path) = rest.split_once('/').unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut line = format!("{} {path}", request.method);
        if request.method == Method::Post {
            line.push_str(&format!(" {} {}", body["state"][0], body["reason"]).replace('"', ""));
        }
        self.requests.push(line.clone());
        self.timeouts.push(request.timeout);
        let at = self
            .faults
            .iter()
            .position(|(begins, _, _)| line.starts_with(begins));
        if let Some((_, has_effect, answer)) = at.and_then(|at| self.faults.remove(at)) {
            if has_effect {
                self.answer(request.method, version, path, &body);
            }
            return answer();
        }
        Ok(self.answer(request.method, version, path, &body))
    }

    fn started(&self) -> u64 {
        1_800_000_000 + 60 * self.restarts
    }

    fn answer(&mut self, method: Method, version: &str, path: &str, body: &Value) -> Response {
        if !self.served.iter().any(|served| served.to_string() == version) {
            return not_found();
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (what, name) = path.split_once('/').unwrap_or((path, ""));
        match (method, what, name) {
            (Method::Get, "nodes", "") => ok(json!({"nodes": in_form(version, &self.nodes)})),
            (Method::Get, "jobs", "") => ok(json!({"jobs": in_form(version, &self.jobs)})),
            (Method::Get, "jobs", "state/") if version != "39" => self.states(query),
            (Method::Get, "diag", "") => {
                let number = self.started() + self.resets;
                let began = json!({"set": true, "infinite": false, "number": number});
                ok(json!({"statistics": {"req_time_start": began}}))
            }
            (Method::Get, "conf", "") if version == "45" => {
                ok(json!({"slurm_conf_meta": {"BOOT_TIME": self.started()}}))
            }
            (Method::Get, "partitions", "") if version >= "42" => {
                let since: u64 = query.strip_prefix("update_time=").unwrap().parse().unwrap();
                // slurmctld loads its partitions when it starts.
                match self.started() > since {
                    true => ok(json!({"partitions": []})),
                    false => Response::new(304, ""),
                }
            }
            // Older versions cannot read the time.
            (Method::Get, "partitions", "") => Response::new(500, ""),
            (Method::Get, "ping", "") => ok(json!({"pings": [{"pinged": "UP"}]})),
            (Method::Post, "node", name) => self.update(name, body),
            (Method::Delete, "job", address) => self.cancel(address, query),
            (Method::Get, "job", id) => match id.strip_suffix("/requeue") {
                None => self.one(id),
                Some(address) if version == "45" => self.requeue(address),
                Some(_) => not_found(),
            },
            _ => not_found(),
        }
    }

    /// The short list of all or of these jobs, with each queued task as an entry.
    fn states(&self, query: &str) -> Response {
        let one = |job: &Value| json!({"job_id": job["job_id"].to_string(), "state": job["job_state"]});
        if query.is_empty() {
            let waiting =
                (0..self.waiting).map(|task| json!({"job_id": format!("1_{task}"), "state": ["PENDING"]}));
            let all: Vec<Value> = self.jobs.iter().map(one).chain(waiting).collect();
            return ok(json!({"jobs": all}));
        }
        let find = |part: &str| {
            let id = part.strip_prefix("job_id=").unwrap();
            self.jobs.iter().find(|job| is(job, id)).map(one)
        };
        let found: Vec<Value> = query.split('&').filter_map(find).collect();
        ok(json!({"jobs": found}))
    }

    fn one(&self, id: &str) -> Response {
        let found: Vec<&Value> = self.jobs.iter().filter(|job| is(job, id)).collect();
        if found.is_empty() {
            return error(404, 2017, "Invalid job id specified");
        }
        ok(json!({"jobs": found}))
    }

    fn update(&mut self, name: &str, body: &Value) -> Response {
        let Some(node) = self.nodes.iter_mut().find(|node| node["name"] == name) else {
            return error(500, 2018, "Invalid node name specified");
        };
        if body == &json!({}) {
            return ok(json!({}));
        }
        // Like the real one, it changes the reason even if it refuses the state.
        if let Some(reason) = body.get("reason") {
            node["reason"] = reason.clone();
        }
        let state = node["state"].as_array_mut().unwrap();
        match body["state"][0].as_str() {
            Some("DRAIN") if !state.contains(&json!("DRAIN")) => state.push(json!("DRAIN")),
            Some("DRAIN") => {}
            Some("UNDRAIN") => state.retain(|word| word != "DRAIN"),
            Some("DOWN") => {
                state.retain(|word| word == "DRAIN");
                state.insert(0, json!("DOWN"));
                self.jobs.clear();
            }
            Some("RESUME") if state.contains(&json!("DRAIN")) || state.contains(&json!("DOWN")) => {
                *state = vec![json!("IDLE")];
            }
            _ => return error(500, 2028, "Invalid node state specified"),
        }
        ok(json!({}))
    }

    /// Like the real one, it takes the number of an array for all its tasks, and the number of the first part of a
    /// heterogeneous job for all its parts.
    fn cancel(&mut self, address: &str, query: &str) -> Response {
        let mut reached = 0;
        for job in self.jobs.iter_mut().filter(|job| is_meant(job, address)) {
            reached += 1;
            if query.is_empty() {
                job["job_state"] = json!(["CANCELLED", "COMPLETING"]);
            }
        }
        match reached {
            0 => ok(json!({"status": [{"error": {"code": 2017, "message": "Invalid job id specified"}}]})),
            _ => ok(json!({"status": []})),
        }
    }

    /// It takes numbers in the same way, but not that of a later part of a heterogeneous job.
    fn requeue(&mut self, address: &str) -> Response {
        let meant = |job: &&mut Value| is_meant(job, address);
        let mut meant: Vec<&mut Value> = self.jobs.iter_mut().filter(meant).collect();
        let Some(first) = meant.first() else {
            return error(422, 2017, "Invalid job id specified");
        };
        if number(first, "het_job_id") != 0 && first["job_id"] != first["het_job_id"]["number"] {
            return error(422, 2107, "Job not heterogeneous job leader");
        }
        if first["job_state"][0] == "PENDING" {
            return error(422, 2024, "Job is pending execution");
        }
        for job in &mut meant {
            job["job_state"] = json!(["PENDING"]);
            job["nodes"] = json!("");
        }
        ok(json!({"status": [{"error": "No error", "error_code": 0}]}))
    }
}

/// The form of this version. v0.0.40 to v0.0.42 have the form used here; v0.0.39 has single words for jobs and plain numbers
/// for times, and newer versions may have more fields.
fn in_form(version: &str, objects: &[Value]) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        match version {
            "39" => {
                for key in ["start_time", "end_time"] {
                    if let Some(number) = object.get(key).map(|time| time["number"].clone()) {
                        object.insert(key.to_owned(), number);
                    }
                }
                if let Some(word) = object.get("job_state").map(|words| words[0].clone()) {
                    object.insert("job_state".to_owned(), word);
                }
            }
            "43" | "44" | "45" => {
                object.insert("topology".to_owned(), json!({"default": "rack-1"}));
                if let Some(words) = object.get_mut("state").and_then(Value::as_array_mut) {
                    words.push(json!("A_FLAG_OF_TOMORROW"));
                }
            }
            _ => {}
        }
    }
    objects
}

fn number(job: &Value, key: &str) -> u64 {
    job[key]["number"].as_u64().unwrap_or_default()
}

/// Whether a change with this address reaches the job.
fn is_meant(job: &Value, address: &str) -> bool {
    let (id, task) = address
        .split_once('_')
        .map_or((address, None), |(id, task)| (id, Some(task)));
    let id: u64 = id.parse().unwrap();
    match task {
        Some(task) => number(job, "array_job_id") == id && number(job, "array_task_id").to_string() == task,
        None => job["job_id"] == id || number(job, "array_job_id") == id || number(job, "het_job_id") == id,
    }
}

/// Whether it is the job with this number.
fn is(job: &Value, id: &str) -> bool {
    id.parse().is_ok_and(|id: u64| job["job_id"] == id)
}

/// Checks every request.
fn check(request: &Request) {
    let mut tokens = 0;
    for header in &request.headers {
        match (&*header.name.to_ascii_lowercase(), &header.value) {
            ("x-slurm-user-token", HeaderValue::Secret(secret)) => {
                assert_eq!((secret.secret.as_str(), secret.prefix.as_str()), ("token", ""));
                tokens += 1;
            }
            ("x-slurm-user-name", HeaderValue::Text(_)) => {}
            ("content-type", HeaderValue::Text(kind)) => assert_eq!(kind, "application/json"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tokens, 1, "{request:?}");
    let is_json = request
        .headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case("content-type"));
    assert_eq!(is_json, !request.body.is_empty(), "{request:?}");
}

pub(super) fn ok(mut body: Value) -> Response {
    let fields = body.as_object_mut().unwrap();
    for empty in ["errors", "warnings"] {
        fields.entry(empty).or_insert_with(|| json!([]));
    }
    Response::new(200, body.to_string())
}

pub(super) fn error(status: u16, number: i64, text: &str) -> Response {
    let body = json!({"errors": [{"description": "", "error_number": number, "error": text, "source": ""}]});
    Response::new(status, body.to_string())
}

pub(super) fn not_found() -> Response {
    Response::new(
        404,
        "Unable find requested URL. Please view /openapi/v3 for API reference.",
    )
}
