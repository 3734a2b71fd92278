//! Answers the kubelet's questions before a registration, and interprets its verdict. It must not know what follows
//! from the verdict.

use scupper_contract::registration::registration_server::Registration as Service;
use scupper_contract::registration::{
    InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse,
};
use scupper_contract::{PLUGIN_TYPE, PLUGIN_VERSION};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::{Claimant, SlmOptions};

/// The part of the kubelet's message that shows that it has no handler for this type of plugin.
const NO_HANDLER: &str = "no handler registered for plugin type";

/// The state of the registration with the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// The kubelet has not answered yet.
    #[default]
    Waiting,
    /// The kubelet has registered the driver.
    Registered,
    /// The kubelet does not support SLM.
    Unsupported {
        /// The kubelet's message.
        message: String,
    },
    /// The kubelet refuses the driver.
    Refused {
        /// The kubelet's message.
        message: String,
    },
    /// The kubelet has been silent for so long that there may be none, or one with another root directory.
    Silent,
}

impl Registration {
    /// Interprets the kubelet's verdict.
    pub(super) fn from_status(status: RegistrationStatus) -> Self {
        if status.plugin_registered {
            Self::Registered
        } else if status.error.contains(NO_HANDLER) {
            Self::Unsupported {
                message: status.error,
            }
        } else {
            Self::Refused {
                message: status.error,
            }
        }
    }

    /// Logs the state, and what the operator should do.
    pub(super) fn log(&self, options: &SlmOptions) {
        let driver = &options.driver_name;
        match self {
            Self::Waiting => {}
            Self::Registered => tracing::info!(driver, "registered with the kubelet"),
            Self::Unsupported { message } if options.claimant == Claimant::Kubelet => tracing::warn!(
                driver,
                message,
                "this kubelet does not know SLM plugins, so no LifecycleEvent will be claimed: turn on the feature \
                 gate SpecializedLifecycleManagement on the kubelet and the API server, or leave out --claim kubelet"
            ),
            Self::Unsupported { message } => tracing::info!(
                driver,
                message,
                "this kubelet does not know SLM plugins: the driver claims the LifecycleEvents of its node itself"
            ),
            Self::Refused { message } => {
                tracing::warn!(
                    driver,
                    message,
                    "the kubelet refuses this driver; it will try again"
                );
            }
            Self::Silent if options.claimant == Claimant::Driver => tracing::info!(
                driver,
                registry = %options.registry_dir().display(),
                "no kubelet has looked at our registration socket: the driver claims the LifecycleEvents of its node itself"
            ),
            Self::Silent => tracing::warn!(
                driver,
                registry = %options.registry_dir().display(),
                claimant = ?options.claimant,
                "no kubelet has looked at our registration socket: there is none on this node, or --kubelet-root is \
                 not its root directory; with --claim auto no LifecycleEvent is claimed until it does"
            ),
        }
    }
}

/// The kubelet's verdict, and the socket on which it arrived.
#[derive(Debug)]
pub(super) struct RegistrationReport {
    pub(super) endpoint: u64,
    pub(super) registration: Registration,
}

/// The service on one registration socket.
#[derive(Debug)]
pub(super) struct RegistrationService {
    pub(super) driver: String,
    /// The path of the service socket.
    pub(super) service: String,
    /// The number of this socket pair.
    pub(super) endpoint: u64,
    pub(super) reports: mpsc::UnboundedSender<RegistrationReport>,
}

#[tonic::async_trait]
impl Service for RegistrationService {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: PLUGIN_TYPE.to_owned(),
            name: self.driver.clone(),
            endpoint: self.service.clone(),
            supported_versions: vec![PLUGIN_VERSION.to_owned()],
        }))
    }

    /// Answers at once and never with an error, which would undo the registration.
    async fn notify_registration_status(
        &self,
        status: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let registration = Registration::from_status(status.into_inner());
        let report = RegistrationReport {
            endpoint: self.endpoint,
            registration,
        };
        if self.reports.send(report).is_err() {
            tracing::debug!("the kubelet notified a driver that has stopped");
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}
