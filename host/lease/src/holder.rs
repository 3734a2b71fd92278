//! The holder of a Lease: a name for people, and how to find out whether that process is alive.
//!
//! If the holder ran in this PID namespace since this boot, `/proc` shows whether it is alive. If it ran in this pod, its
//! container has ended, because this one replaced it. In every other case this process waits until the Lease expires.

use std::fs;

use scupper_engine::PodRef;

/// The annotation of a node on which a command drains without a Lease: its process.
pub const HOLDER_ANNOTATION: &str = "scupper.dev/drain-holder";

/// Separates the parts of an identity. Names and UIDs of Kubernetes do not contain it.
const SEPARATOR: char = '_';

/// A process that holds a Lease or wants to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderIdentity {
    /// For people: a pod, or a user and a machine.
    name: String,
    /// The pod's UID; empty outside of a pod.
    pod: String,
    process: ProcessIdentity,
}

/// One process of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProcessIdentity {
    boot: String,
    namespace: String,
    pid: u32,
    /// In ticks since the boot: a reused PID has another start.
    started: u64,
}

impl HolderIdentity {
    /// This process.
    pub fn own(pod: Option<&PodRef>) -> Self {
        let plain = |text: String| text.trim().replace(SEPARATOR, "-");
        let read = |path: &str| fs::read_to_string(path).map(plain).unwrap_or_default();
        let pid = std::process::id();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let user = std::env::var("USER").map_or_else(|_| "somebody".to_owned(), plain);
        Self {
            name: match pod {
                Some(pod) => format!("{}/{}", pod.namespace, pod.name),
                None => format!("{user}@{}", read("/proc/sys/kernel/hostname")),
            },
            pod: pod.map(|pod| pod.uid.as_str().to_owned()).unwrap_or_default(),
            process: ProcessIdentity {
                boot: read("/proc/sys/kernel/random/boot_id"),
                namespace: namespace
                    .to_string_lossy()
                    .chars()
                    .filter(char::is_ascii_digit)
                    .collect(),
                pid,
                started: start_of(pid).unwrap_or_default(),
            },
        }
    }

    /// The text in the Lease.
    pub(super) fn identity(&self) -> String {
        let Self { name, pod, process } = self;
        let ProcessIdentity {
            boot,
            namespace,
            pid,
            started,
        } = process;
        format!("{name}{SEPARATOR}{pod}{SEPARATOR}{boot}.{namespace}.{pid}.{started}")
    }

    /// Parses the text of a Lease. A text that Scupper did not write is only a name.
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.rsplitn(3, SEPARATOR);
        let (process, pod, name) = (parts.next(), parts.next(), parts.next());
        match (process.and_then(parse_process), pod, name) {
            (Some(process), Some(pod), Some(name)) => Self {
                name: name.to_owned(),
                pod: pod.to_owned(),
                process,
            },
            _ => Self {
                name: text.to_owned(),
                pod: String::new(),
                process: ProcessIdentity::default(),
            },
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { name, pod, process } = self;
        match (process.pid, pod.is_empty()) {
            (0, _) => name.clone(),
            (_, false) => format!("the driver in pod {name}"),
            (pid, true) => format!("{name} (process {pid})"),
        }
    }

    /// `/proc` of this process shows whether `other` is alive.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let (own, process) = (&self.process, &other.process);
        let is_known = process.pid != 0 && !own.boot.is_empty() && !own.namespace.is_empty();
        is_known && own.boot == process.boot && own.namespace == process.namespace
    }

    /// The process `other` has ended, as far as `self` can know.
    pub(super) fn knows_dead(&self, other: &Self) -> bool {
        let (own, process) = (&self.process, &other.process);
        if process.pid == 0 || own.boot.is_empty() || own.namespace.is_empty() {
            return false;
        }
        if self.is_beside(other) {
            return start_of(process.pid) != Some(process.started);
        }
        !self.pod.is_empty() && self.pod == other.pod
    }
}

fn parse_process(text: &str) -> Option<ProcessIdentity> {
    let mut parts = text.split('.');
    let process = ProcessIdentity {
        boot: parts.next()?.to_owned(),
        namespace: parts.next()?.to_owned(),
        pid: parts.next()?.parse().ok()?,
        started: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(process)
}

/// The start of a process of this namespace; `None`: it does not exist or has ended.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name before it may contain any character.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The 22nd field; two were cut off and one was read.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use scupper_engine::Uid;

    use super::*;

    fn pod(uid: &str) -> PodRef {
        PodRef {
            namespace: "scupper".to_owned(),
            name: "scupper-x7d2p".to_owned(),
            uid: Uid::new(uid),
        }
    }

    #[test]
    fn a_written_value_survives_a_round_trip() {
        for holder in [HolderIdentity::own(None), HolderIdentity::own(Some(&pod("u-1")))] {
            assert_eq!(HolderIdentity::parse(&holder.identity()), holder);
            assert!(!holder.knows_dead(&holder), "we live");
        }
        assert_eq!(
            HolderIdentity::own(Some(&pod("u-1"))).text(),
            "the driver in pod scupper/scupper-x7d2p"
        );
        for text in ["", "a", "somebody_else_x", "a_b_c.d.e.f"] {
            let other = HolderIdentity::parse(text);
            assert_eq!(other.text(), text);
            assert!(!HolderIdentity::own(None).knows_dead(&other), "{text}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_known_to_be_dead_and_one_that_lives_is_not() {
        let own = HolderIdentity::own(None);
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let mut other = own.clone();
        other.process.pid = child.id();
        other.process.started = start_of(child.id()).unwrap();
        assert!(!own.knows_dead(&other));
        let mut reused = other.clone();
        reused.process.started -= 1;
        assert!(own.knows_dead(&reused), "another process has the number now");
        child.kill().unwrap();
        while start_of(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(own.knows_dead(&other), "it waits only for its end to be heard");
        child.wait().unwrap();
        assert!(own.knows_dead(&other));
    }

    #[test]
    fn of_other_machines_only_a_container_of_the_same_pod_is_known() {
        let own = HolderIdentity::own(Some(&pod("u-1")));
        let elsewhere = |uid: &str| {
            let mut other = HolderIdentity::own(Some(&pod(uid)));
            other.process.namespace = "7".to_owned();
            other
        };
        assert!(own.knows_dead(&elsewhere("u-1")), "its container runs again");
        assert!(!own.knows_dead(&elsewhere("u-2")));
        assert!(!HolderIdentity::own(None).knows_dead(&elsewhere("")));
    }
}
