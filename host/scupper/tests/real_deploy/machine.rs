//! A node as its kubelet manages it: its directories, the volumes of the driver's pod on it, and a kubelet that knows
//! SLM or does not. The testbed's own kubelets know nothing of plugins and start no containers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use scupper_simulator::kubelet::{Kubelet, KubeletHandle, Options, Timing};
use serde_json::{Value, json};

use crate::container::{Container, Image};
use crate::installed::{Installed, ask, until};

/// A node, and its content.
pub(crate) struct Machine<'a> {
    installed: &'a Installed,
    image: &'a Image,
    pub(crate) node: String,
    pub(crate) kubelet: KubeletHandle,
    folder: tempfile::TempDir,
    /// The number of writes of ConfigMaps.
    edition: Cell<usize>,
}

impl<'a> Machine<'a> {
    /// `slm`: its kubelet knows SLM.
    pub(crate) fn up(installed: &'a Installed, image: &'a Image, node: &str, slm: bool) -> Self {
        // The path of a socket has a maximum length.
        let folder = tempfile::Builder::new().prefix("so-").tempdir().unwrap();
        let slash = folder.path().join("slash");
        let timing = Timing {
            registry_tick: Duration::from_millis(100),
            pass_pause: Duration::from_millis(300),
            ..Timing::default()
        };
        let kubelet = Kubelet::start(Options {
            timing,
            slash: slash.clone(),
            gate: slm,
            ..Options::new(installed.admin.clone(), node, slash.join("var/lib/kubelet"))
        });
        Self {
            installed,
            image,
            node: node.to_owned(),
            kubelet: kubelet.unwrap(),
            folder,
            edition: Cell::new(0),
        }
    }

    /// The driver, as the namespace's DaemonSet defines it.
    pub(crate) async fn run(&self, namespace: &str) -> Container {
        let pod = self.pod(namespace).await;
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        for volume in volumes {
            self.provide(&pod, volume).await;
        }
        let place = |name: &str| {
            let volume = volumes.iter().find(|volume| volume["name"] == name);
            self.place(volume.unwrap())
        };
        let log = self.folder.path().join("log");
        Container::start(self.image, &pod, &place, &self.environment(&pod), &log)
    }

    /// A kubelet does this once a minute: it updates the files of ConfigMaps.
    pub(crate) async fn refresh(&self, namespace: &str) {
        let pod = self.pod(namespace).await;
        for volume in pod["spec"]["volumes"].as_array().unwrap() {
            if volume["configMap"].is_object() {
                self.provide(&pod, volume).await;
            }
        }
    }

    /// The DaemonSet's only pod on this node.
    async fn pod(&self, namespace: &str) -> Value {
        let set = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets/scupper");
        let set = self.installed.get(&set).await["metadata"]["uid"].clone();
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName={},status.phase=Running",
            self.node
        );
        let find = async || {
            let pods = self.installed.get(&path).await;
            let mut pods = pods["items"].as_array().unwrap().clone().into_iter();
            pods.find(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == set)
        };
        until(
            async || find().await.is_some(),
            || format!("no pod on {}", self.node),
        )
        .await;
        find().await.unwrap()
    }

    /// The place of a volume on this machine.
    fn place(&self, volume: &Value) -> PathBuf {
        match volume["hostPath"]["path"].as_str() {
            Some(path) => self
                .folder
                .path()
                .join("slash")
                .join(path.trim_start_matches('/')),
            None => self
                .folder
                .path()
                .join("volumes")
                .join(volume["name"].as_str().unwrap()),
        }
    }

    async fn provide(&self, pod: &Value, volume: &Value) {
        let place = self.place(volume);
        if volume["hostPath"]["type"] == "Directory" {
            assert!(place.is_dir(), "the kubelet has no {}", place.display());
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&place)
            .unwrap();
        if volume["emptyDir"].is_object() {
            fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
            if let Some(group) = pod["spec"]["securityContext"]["fsGroup"].as_u64() {
                chown(&place, None, u32::try_from(group).ok()).unwrap();
                fs::set_permissions(&place, fs::Permissions::from_mode(0o2775)).unwrap();
            }
        } else if let Some(named) = volume["configMap"].as_object() {
            let files = self.config_map(pod, &named["name"]).await;
            let optional = named.get("optional") == Some(&true.into());
            assert!(
                files.is_some() || optional,
                "there is no ConfigMap {}",
                named["name"]
            );
            self.write(&place, files.unwrap_or_default());
        } else if let Some(sources) = volume["projected"]["sources"].as_array() {
            let mut files = BTreeMap::new();
            for source in sources {
                files.extend(self.projected(pod, source).await);
            }
            self.write(&place, files);
        } else {
            assert!(volume["hostPath"].is_object(), "{volume}");
        }
    }

    async fn config_map(&self, pod: &Value, name: &Value) -> Option<BTreeMap<String, Vec<u8>>> {
        let (namespace, name) = (
            pod["metadata"]["namespace"].as_str().unwrap(),
            name.as_str().unwrap(),
        );
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let found = self.installed.get(&path).await;
        let mut files = BTreeMap::new();
        for (name, text) in found["data"].as_object().into_iter().flatten() {
            files.insert(name.clone(), text.as_str().unwrap().as_bytes().to_vec());
        }
        for (name, bytes) in found["binaryData"].as_object().into_iter().flatten() {
            files.insert(name.clone(), STANDARD.decode(bytes.as_str().unwrap()).unwrap());
        }
        (found["kind"] == "ConfigMap").then_some(files)
    }

    /// The files of its account in every pod.
    async fn projected(&self, pod: &Value, source: &Value) -> BTreeMap<String, Vec<u8>> {
        let named = |path: &Value, bytes: &str| {
            BTreeMap::from([(path.as_str().unwrap().to_owned(), bytes.as_bytes().to_vec())])
        };
        let meta = &pod["metadata"];
        if let Some(token) = source["serviceAccountToken"].as_object() {
            let account = pod["spec"]["serviceAccountName"].as_str().unwrap();
            let path = format!(
                "/api/v1/namespaces/{}/serviceaccounts/{account}/token",
                meta["namespace"].as_str().unwrap()
            );
            let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]});
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"boundObjectRef": bound, "expirationSeconds": token["expirationSeconds"]},
            });
            let (code, made) = ask(&self.installed.admin, Method::POST, &path, &request).await;
            assert!(code.is_success(), "{made}");
            return named(&token["path"], made["status"]["token"].as_str().unwrap());
        }
        if source["configMap"].is_object() {
            return self.config_map(pod, &source["configMap"]["name"]).await.unwrap();
        }
        let item = &source["downwardAPI"]["items"][0];
        named(&item["path"], of_pod(pod, &item["fieldRef"]))
    }

    /// As a kubelet writes them: a new folder, and one link that is switched to it.
    fn write(&self, place: &Path, files: BTreeMap<String, Vec<u8>>) {
        let edition = format!("..{}", self.edition.replace(self.edition.get() + 1));
        fs::create_dir(place.join(&edition)).unwrap();
        symlink(&edition, place.join("..data_tmp")).unwrap();
        for (name, bytes) in files {
            fs::write(place.join(&edition).join(&name), bytes).unwrap();
            // Left by the previous version.
            symlink(Path::new("..data").join(&name), place.join(&name)).ok();
        }
        fs::rename(place.join("..data_tmp"), place.join("..data")).unwrap();
    }

    fn environment(&self, pod: &Value) -> Vec<(String, String)> {
        let own = pod["spec"]["containers"][0]["env"].as_array().unwrap().iter();
        let own = own.map(|one| {
            let value = one["value"].as_str();
            let value = value.unwrap_or_else(|| of_pod(pod, &one["valueFrom"]["fieldRef"]));
            (one["name"].as_str().unwrap().to_owned(), value.to_owned())
        });
        let (host, port) = self.installed.address();
        let server = [
            ("KUBERNETES_SERVICE_HOST", host),
            ("KUBERNETES_SERVICE_PORT", port),
        ];
        own.chain(server.map(|(name, value)| (name.to_owned(), value)))
            .collect()
    }
}

/// A field of the pod, for the downward API.
fn of_pod<'p>(pod: &'p Value, field: &Value) -> &'p str {
    let path = field["fieldPath"].as_str().unwrap().replace('.', "/");
    pod.pointer(&format!("/{path}")).unwrap().as_str().unwrap()
}
