//! The container of a pod, as a container runtime makes it of the pod and of the image: only the image's files, the
//! volumes where they are mounted, the environment, the user, no capability. The network is this machine's.
//!
//! Needs root.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use xtask::policies;
use xtask::workspace::Workspace;

use crate::installed::deploy;

/// Binds the named folders (source, target, whether read-only; `--` ends the list), makes the root read-only, and
/// changes to it.
const ENTER: &str = r#"
root=$1
shift
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    mount --bind "$1" "$root$2"
    if [ "$3" = ro ]; then mount -o remount,bind,ro "$root$2"; fi
    shift 3
done
shift
mount -o remount,bind,ro "$root"
exec /usr/sbin/chroot "$root" "$@"
"#;

/// The files of the image.
pub(crate) struct Image(tempfile::TempDir);

impl Image {
    /// As `make image` gathers them, with the program that was built for the tests, and the tool that drops privileges.
    pub(crate) fn gathered() -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "containers need root (SCUPPER_SKIP=real-apiserver leaves this test out)"
        );
        let folder = tempfile::Builder::new().prefix("so-image-").tempdir().unwrap();
        let image = Self(folder);
        let made = image.0.path().join("policies");
        let workspace = Workspace::read().unwrap();
        policies::build(&workspace, &policies::of_image(&workspace), Some(&made)).unwrap();
        let gather = Command::new(deploy().join("rootfs"))
            .arg(env!("CARGO_BIN_EXE_scupper"))
            .args([&made, &image.root()])
            .status()
            .unwrap();
        assert!(gather.success());
        let setpriv = "set -eu; install -D /usr/bin/setpriv \"$1/.runtime/setpriv\"; mkdir \"$1/proc\" \"$1/dev\"; \
            ldd /usr/bin/setpriv | awk '$2 == \"=>\" {print $3}' | while read -r library; do \
            [ -e \"$1$library\" ] || install -D \"$(readlink -f \"$library\")\" \"$1$library\"; done";
        let added = Command::new("sh")
            .args(["-c", setpriv, "sh"])
            .arg(image.root())
            .status();
        assert!(added.unwrap().success());
        image
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }
}

/// A running container; ended when dropped.
pub(crate) struct Container {
    child: Child,
    log: PathBuf,
}

impl Container {
    /// `volumes`: the place of each volume of the pod on this machine. `environment`: the values of the pod's
    /// environment.
    pub(crate) fn start(
        image: &Image,
        pod: &Value,
        volumes: &dyn Fn(&str) -> PathBuf,
        environment: &[(String, String)],
        log: &Path,
    ) -> Self {
        let container = &pod["spec"]["containers"][0];
        let file = std::fs::File::create(log).unwrap();
        let mut command = Command::new("/usr/bin/unshare");
        command
            .args(["--mount", "sh", "-euc", ENTER, "sh"])
            .arg(image.root());
        for mount in container["volumeMounts"].as_array().unwrap() {
            let target = mount["mountPath"].as_str().unwrap();
            std::fs::create_dir_all(format!("{}{target}", image.root().display())).unwrap();
            let read_only = mount["readOnly"] == true;
            command.arg(volumes(mount["name"].as_str().unwrap()));
            command.args([target, if read_only { "ro" } else { "rw" }]);
        }
        command.arg("--").args(rights(pod)).arg("/usr/bin/scupper");
        let args = container["args"].as_array().unwrap().iter();
        // All containers share this machine's network.
        let args = args.map(|arg| arg.as_str().unwrap().replace("[::]:9090", "127.0.0.1:0"));
        let child = command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Self {
            child,
            log: log.to_owned(),
        }
    }

    /// All its output.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The privileges of the process in it: a line of its status.
    pub(crate) fn status(&self, line: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mut lines = status.lines().filter_map(|it| it.strip_prefix(line));
        lines.next().unwrap().trim().to_owned()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// By the security contexts of the pod and of its container.
fn rights(pod: &Value) -> Vec<String> {
    let (of_pod, own) = (
        &pod["spec"]["securityContext"],
        &pod["spec"]["containers"][0]["securityContext"],
    );
    assert_eq!(own["readOnlyRootFilesystem"], true);
    assert_eq!(own["capabilities"]["drop"][0], "ALL");
    assert_eq!(own["allowPrivilegeEscalation"], false);
    let (user, group) = (&of_pod["runAsUser"], &of_pod["runAsGroup"]);
    assert_eq!(of_pod["runAsNonRoot"], user != 0);
    let groups = match of_pod["fsGroup"].as_u64() {
        Some(group) => format!("--groups={group}"),
        None => "--clear-groups".to_owned(),
    };
    let none = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"];
    let mut rights = vec![
        "/.runtime/setpriv".to_owned(),
        format!("--reuid={user}"),
        format!("--regid={group}"),
        groups,
    ];
    rights.extend(none.map(str::to_owned));
    rights
}
