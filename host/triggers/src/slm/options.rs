//! The options of the SLM trigger, checked once before anything is touched.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use scupper_contract::{MAX_SOCKET_PATH, PLUGINS_DIR, REGISTRY_DIR};
use scupper_engine::{Intent, Settings, Time};

use super::Claimant;
use scupper_common::clock::Clock;

/// Maximum length of a driver name: it appears in two socket paths.
const MAX_DRIVER_NAME: usize = 40;
/// Maximum rotation interval: the kubelet's channel goes idle after 30 minutes without a call, and nothing wakes it
/// before a claim.
const LONGEST_ROTATION: Duration = Duration::from_secs(28 * 60);

/// The options of the SLM trigger.
#[derive(Clone, Debug)]
pub struct SlmOptions {
    /// `spec.driver` of our transitions, and the plugin's name.
    pub driver_name: String,
    /// The name of this node.
    pub node_name: String,
    /// The kubelet's root directory.
    pub kubelet_root: PathBuf,
    /// `spec.sla` of the drain transition.
    pub sla: Option<Duration>,
    /// `spec.sla` of the uncordon transition.
    pub uncordon_sla: Duration,
    /// The nodes to which our transitions apply.
    pub scope: TransitionScope,
    /// The current time.
    pub clock: Clock,
    /// An identifier unique to each start of the process, which becomes part of the socket names. Letters, digits and
    /// dots.
    pub instance: String,
    /// A connection unused for this long is replaced while the driver is idle.
    pub rotate_after: Duration,
    /// Time for which the driver still answers after a stop request, unless a successor is running.
    pub stop_grace: Duration,
    /// Names of other transitions that this driver handles, with their intents.
    pub map: BTreeMap<String, Intent>,
    /// Which side claims events: the kubelet or this driver.
    pub claimant: Claimant,
    /// Time for which finished events that this driver claimed are kept; the contract keeps none.
    pub keep_finished: Duration,
    /// Time for which the API server may refuse (401, 403) writes for an event that this driver claimed, before the
    /// event fails.
    pub forbidden_timeout: Duration,
}

/// The nodes to which our transitions apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransitionScope {
    /// One pair of transitions, shared by all nodes.
    #[default]
    AllNodes,
    /// A pair for this node alone.
    Node,
}

/// An invalid option.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The driver name becomes part of object names and of file names.
    #[error(
        "driver name `{name}` is not a DNS subdomain of at most {MAX_DRIVER_NAME} characters: use lower-case letters, digits, `-` and `.`"
    )]
    DriverName {
        /// The name.
        name: String,
    },
    /// The node name is empty.
    #[error("node name is empty: set --node-name or NODE_NAME")]
    NodeName,
    /// The instance becomes part of file names.
    #[error("instance `{instance}` must consist of letters, digits and dots")]
    Instance {
        /// The instance.
        instance: String,
    },
    /// A socket's path is too long.
    #[error(
        "socket path {path} has more than {MAX_SOCKET_PATH} bytes: choose a shorter --driver-name or --kubelet-root"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// The kubelet's connection would go idle.
    #[error("connections must be renewed at least every {} minutes, not every {}", LONGEST_ROTATION.as_secs() / 60, .0.as_secs() / 60)]
    Rotation(Duration),
}

impl SlmOptions {
    /// Returns the driver's defaults for this node.
    pub fn new(driver_name: &str, node_name: &str, instance: String) -> Self {
        Self {
            driver_name: driver_name.to_owned(),
            node_name: node_name.to_owned(),
            kubelet_root: PathBuf::from("/var/lib/kubelet"),
            sla: None,
            uncordon_sla: Duration::from_secs(5 * 60),
            scope: TransitionScope::default(),
            clock: Clock::System,
            instance,
            rotate_after: Duration::from_secs(20 * 60),
            stop_grace: Duration::from_secs(25),
            map: BTreeMap::new(),
            claimant: Claimant::default(),
            keep_finished: Duration::ZERO,
            forbidden_timeout: Settings::FORBIDDEN_TIMEOUT,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !is_dns_subdomain(&self.driver_name) || self.driver_name.len() > MAX_DRIVER_NAME {
            return Err(OptionsError::DriverName {
                name: self.driver_name.clone(),
            });
        }
        if self.node_name.is_empty() {
            return Err(OptionsError::NodeName);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        if self.instance.is_empty() || self.instance.starts_with('.') || !self.instance.chars().all(plain) {
            return Err(OptionsError::Instance {
                instance: self.instance.clone(),
            });
        }
        if self.rotate_after > LONGEST_ROTATION {
            return Err(OptionsError::Rotation(self.rotate_after));
        }
        // Ten thousand renewals at twenty minutes each are half a year.
        let instance = format!("{}.9999", self.instance);
        for path in [
            self.registration_socket(&instance),
            self.service_socket(&instance),
        ] {
            if path.as_os_str().len() > MAX_SOCKET_PATH {
                return Err(OptionsError::TooLong { path });
            }
        }
        Ok(())
    }

    /// The directory in which the kubelet looks for registration sockets.
    pub fn registry_dir(&self) -> PathBuf {
        self.kubelet_root.join(REGISTRY_DIR)
    }

    /// The directory that contains each driver's own directory.
    pub fn plugins_dir(&self) -> PathBuf {
        self.kubelet_root.join(PLUGINS_DIR)
    }

    /// The driver's own directory, for service sockets.
    pub fn driver_dir(&self) -> PathBuf {
        self.plugins_dir().join(&self.driver_name)
    }

    /// The registration socket of an instance.
    pub fn registration_socket(&self, instance: &str) -> PathBuf {
        self.registry_dir()
            .join(format!("{}-{instance}-reg.sock", self.driver_name))
    }

    /// The service socket of an instance.
    pub fn service_socket(&self, instance: &str) -> PathBuf {
        self.driver_dir().join(format!("{instance}.sock"))
    }
}

/// Returns an instance name for a process that starts now.
pub fn unique_instance(now: Time) -> String {
    format!("{:x}.{:x}", now.as_millis(), std::process::id())
}

/// Lower-case letters, digits, `-` and `.`, as object names must be.
fn is_dns_subdomain(name: &str) -> bool {
    let label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_driver_name_fits_below_the_default_root() {
        let instance = format!("{:x}.{:x}", 0xfff_ffff_ffff_u64, 4_194_304);
        let mut options = SlmOptions::new(&"d".repeat(MAX_DRIVER_NAME), "worker-1", instance);
        assert_eq!(options.check(), Ok(()));
        options.kubelet_root.push("x");
        assert!(matches!(options.check(), Err(OptionsError::TooLong { .. })));
    }

    #[test]
    fn every_start_has_an_instance_of_its_own_that_can_stand_in_a_name() {
        let instance = unique_instance(Time::from_millis(1_790_000_000_000));
        assert_eq!(
            SlmOptions::new("drain", "worker-1", instance.clone()).check(),
            Ok(())
        );
        assert_ne!(instance, unique_instance(Time::from_millis(1_790_000_000_001)));
    }

    #[test]
    fn driver_names_are_dns_subdomains() {
        for (name, valid) in [
            ("drain.slm.k8s.io", true),
            ("a", true),
            ("", false),
            ("A", false),
            ("a/b", false),
            ("a..b", false),
            ("-a", false),
            ("a-", false),
            ("../a", false),
        ] {
            let options = SlmOptions::new(name, "worker-1", "one".to_owned());
            assert_eq!(options.check().is_ok(), valid, "{name}");
        }
    }
}
