//! A cluster to which an overlay was applied, tokens of its pods, and drivers that have those tokens.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::{Method, Request, StatusCode};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

pub(crate) use crate::limit::LIMIT;
use crate::testbed::Testbed;

/// The prefix of annotations that a policy is granted.
pub(crate) const POD_PREFIX: &str = "checkpoint.example.com/";

/// A control plane with an overlay of `deploy/` and a pod of the DaemonSet on each node.
pub(crate) struct Installed {
    pub(crate) testbed: Testbed,
    pub(crate) admin: kube::Client,
    folder: tempfile::TempDir,
}

impl Installed {
    pub(crate) async fn up(overlay: &str, options: &[&str]) -> Self {
        Self::with(overlay, &[], options).await
    }

    /// The same with components beside the overlay.
    pub(crate) async fn with(overlay: &str, components: &[&str], options: &[&str]) -> Self {
        let installed = Self::bare(options).await;
        let testbed = &installed.testbed;
        let whole = kustomization(overlay, components);
        testbed.kubectl(&["apply", "-k", whole.path().to_str().unwrap()]);
        testbed.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
        let rolled_out = ["rollout", "status", "daemonset/scupper", "--timeout=60s"];
        testbed.kubectl(&[&["--namespace", "scupper"][..], &rolled_out].concat());
        installed.enforces_policies().await;
        installed
    }

    /// The API server enforces a ValidatingAdmissionPolicy some time after its creation, and those that are older not later:
    /// so this creates one, and waits until it is enforced.
    pub(crate) async fn enforces_policies(&self) {
        let name = "enforced";
        let api = "admissionregistration.k8s.io/v1";
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"], "resourceNames": [name]});
        self.create(&[
            json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
                "spec": {"matchConstraints": {"resourceRules": [rule]},
                    "validations": [{"expression": "false", "reason": "Forbidden"}]}}),
            json!({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]}}),
        ]);
        let refused = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
        let is_refused = async || ask(&self.admin, Method::POST, path, &refused).await.0 == 403;
        until(is_refused, || format!("policy {name} is not enforced")).await;
    }

    /// As the operator does for a policy with the grant `pod-annotations`. `pod`: one of the driver's node.
    pub(crate) async fn grants_pod_annotations(&self, driver: &kube::Client, pod: &str) {
        let prefixes = format!("['{POD_PREFIX}']");
        let patch = json!([
            {"op": "test", "path": "/spec/variables/0/name", "value": "prefixes"},
            {"op": "replace", "path": "/spec/variables/0/expression", "value": prefixes},
        ]);
        let policy = "validatingadmissionpolicy/scupper-pods";
        self.testbed
            .kubectl(&["patch", policy, "--type=json", "--patch", &patch.to_string()]);
        let path = format!("/api/v1/namespaces/default/pods/{pod}?dryRun=All");
        let note = json!({"metadata": {"annotations": {format!("{POD_PREFIX}requested"): "1"}}});
        let may = async || ask(driver, Method::PATCH, &path, &note).await.0.is_success();
        until(may, || format!("the driver may not annotate {pod}")).await;
    }

    /// Nothing is installed yet.
    pub(crate) async fn bare(options: &[&str]) -> Self {
        let testbed = Testbed::bare(options);
        let admin = client(&testbed.kubeconfig()).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            testbed,
            admin,
            folder,
        }
    }

    /// The API server's address: host and port.
    pub(crate) fn address(&self) -> (String, String) {
        let config = Kubeconfig::read_from(self.testbed.kubeconfig()).unwrap();
        let server = config.clusters[0]
            .cluster
            .as_ref()
            .unwrap()
            .server
            .clone()
            .unwrap();
        let (host, port) = server.trim_start_matches("https://").split_once(':').unwrap();
        (host.to_owned(), port.to_owned())
    }

    /// A kubeconfig with a token of an account. `pod`: bound to this pod, as a kubelet requests it.
    pub(crate) async fn kubeconfig(&self, account: &str, pod: Option<&str>) -> PathBuf {
        let bound = pod.map(|pod| json!({"apiVersion": "v1", "kind": "Pod", "name": pod}));
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound},
        });
        let path = format!("/api/v1/namespaces/scupper/serviceaccounts/{account}/token");
        let (code, made) = ask(&self.admin, Method::POST, &path, &request).await;
        assert!(code.is_success(), "{made}");
        let mut config = Kubeconfig::read_from(self.testbed.kubeconfig()).unwrap();
        let user = config.auth_infos[0].auth_info.as_mut().unwrap();
        user.token = Some(made["status"]["token"].as_str().unwrap().to_owned().into());
        let file = self
            .folder
            .path()
            .join(format!("{account}-{}", pod.unwrap_or_default()));
        std::fs::write(&file, serde_json::to_string(&config).unwrap()).unwrap();
        file
    }

    /// The environment of the DaemonSet's pod on a node.
    pub(crate) async fn kubeconfig_on(&self, node: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/scupper/pods?fieldSelector=spec.nodeName={node}");
        let pods = self.get(&path).await;
        let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap();
        self.kubeconfig("scupper", Some(pod)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        ask(&self.admin, Method::GET, path, &Value::Null).await.1
    }

    /// Creates objects, as the admin does.
    pub(crate) fn create(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let file = self.folder.path().join("objects.json");
        std::fs::write(&file, list.to_string()).unwrap();
        self.testbed.kubectl(&["create", "-f", file.to_str().unwrap()]);
    }

    pub(crate) async fn condition(&self, node: &str, kind: &str) -> String {
        let node = self.get(&format!("/api/v1/nodes/{node}")).await;
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|condition| condition["type"] == kind);
        found.map_or_else(String::new, |found| found["status"].as_str().unwrap().to_owned())
    }

    /// The number of pods of the namespace on the node.
    pub(crate) async fn pods(&self, namespace: &str, node: &str) -> usize {
        let path = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName={node}");
        self.get(&path).await["items"].as_array().unwrap().len()
    }

    /// Every verb on every resource that the ClusterRoles of the driver grant: verb, group, resource with subresource.
    pub(crate) async fn granted(&self) -> Vec<[String; 3]> {
        let path =
            "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=app.kubernetes.io/name=scupper";
        let roles = self.get(path).await;
        let rules = roles["items"].as_array().unwrap().iter();
        let rules = rules.flat_map(|role| role["rules"].as_array().unwrap());
        rules.flat_map(rights_of).collect()
    }
}

fn rights_of(rule: &Value) -> Vec<[String; 3]> {
    let strings = |key: &str| {
        let strings = rule[key].as_array().unwrap().iter();
        strings.map(|one| one.as_str().unwrap().to_owned())
    };
    let pairs =
        strings("apiGroups").flat_map(|group| strings("resources").map(move |one| (group.clone(), one)));
    pairs
        .flat_map(|(group, one)| strings("verbs").map(move |verb| [verb, group.clone(), one.clone()]))
        .collect()
}

pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// A folder with a kustomization of an overlay and the components beside it.
pub(crate) fn kustomization(overlay: &str, components: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let depth = folder.path().canonicalize().unwrap().components().count();
    // Kustomize takes relative paths only.
    let up = "../".repeat(depth - 1);
    let there = deploy().canonicalize().unwrap();
    let there = format!("{up}{}", there.display().to_string().trim_start_matches('/'));
    let components = components.iter().map(|name| format!("{there}/components/{name}"));
    let text = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("{there}/overlays/{overlay}")], "components": components.collect::<Vec<_>>(),
    });
    std::fs::write(folder.path().join("kustomization.yaml"), text.to_string()).unwrap();
    folder
}

pub(crate) async fn client(kubeconfig: &Path) -> kube::Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

/// One request, and the server's answer.
pub(crate) async fn ask(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    ask_as(client, None, method, path, body).await
}

/// The same as another user, by impersonation.
pub(crate) async fn ask_as(
    client: &kube::Client,
    user: Option<&str>,
    method: Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let merge = method == Method::PATCH;
    // A list of conditions or taints is merged, as in the driver's own writes of a node.
    let kind = if merge && path.starts_with("/api/v1/nodes/") {
        "application/strategic-merge-patch+json"
    } else if merge {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let mut request = Request::builder().method(method).uri(path);
    if let Some(user) = user {
        request = request.header("Impersonate-User", user);
    }
    let request = request.header("content-type", kind).body(body.into()).unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status();
    let text = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&text).unwrap())
}

/// A driver as the DaemonSet starts it, except for the parts of a container that this machine lacks.
pub(crate) struct Driver {
    child: Child,
    folder: tempfile::TempDir,
}

impl Driver {
    pub(crate) async fn start(installed: &Installed, node: &str, kubeconfig: &Path, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for directory in ["plugins", "plugins_registry"] {
            std::fs::create_dir(folder.path().join(directory)).unwrap();
        }
        let set = installed
            .get("/apis/apps/v1/namespaces/scupper/daemonsets/scupper")
            .await;
        let args = set["spec"]["template"]["spec"]["containers"][0]["args"]
            .as_array()
            .unwrap();
        let has_own_config = more.iter().any(|arg| arg.starts_with("--config="));
        let args = args.iter().map(|arg| arg.as_str().unwrap());
        let args = args
            .filter(|arg| !(has_own_config && arg.starts_with("--config=")))
            .map(here);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_scupper"))
            .args(args)
            .args(more)
            .arg("--kubelet-root")
            .arg(folder.path())
            .env("KUBECONFIG", kubeconfig)
            .env("NODE_NAME", node)
            .env("SCUPPER_CACHE_DIR", folder.path().join("cache"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    /// All its output.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// No kubelet here reports whether it claims events, and the configuration is not mounted.
fn here(arg: &str) -> String {
    match arg {
        "--config=/etc/scupper/config/scupper.yaml" => {
            format!("--config={}", deploy().join("base/scupper.yaml").display())
        }
        "--metrics-address=[::]:9090" => "--metrics-address=127.0.0.1:0".to_owned(),
        "--claim=auto" => "--claim=self".to_owned(),
        other => other.to_owned(),
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits until the condition holds. `tell`: the message if it never does.
pub(crate) async fn until<F: Future<Output = bool>>(so: impl Fn() -> F, tell: impl Fn() -> String) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < LIMIT, "{}", tell());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A LifecycleEvent for the driver.
pub(crate) fn event(name: &str, transition: &str, node: &str) -> Value {
    json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": name},
        "spec": {"transitionName": transition, "bindingNode": node},
    })
}

/// A LifecycleTransition of the driver. `nodes`: its nodes.
pub(crate) fn transition(name: &str, nodes: &Value, sla: &str) -> Value {
    let mut spec = json!({"driver": "drain.slm.k8s.io", "start": "drain-started", "end": "drain-complete"});
    if !sla.is_empty() {
        spec["sla"] = sla.into();
    }
    spec.as_object_mut()
        .unwrap()
        .extend(nodes.as_object().unwrap().clone());
    json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition", "metadata": {"name": name},
        "spec": spec,
    })
}
