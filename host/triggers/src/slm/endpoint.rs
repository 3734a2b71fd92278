//! One pair of sockets and the services on it. It must not know why there are several.

use std::io;
use std::time::Duration;

use futures::{Stream, StreamExt};
use rustix::process::geteuid;
use scupper_contract::registration::registration_server::RegistrationServer;
use scupper_contract::slm::slm_plugin_server::SlmPluginServer;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Server;

use super::authority::KubeletStream;
use super::registration::{RegistrationReport, RegistrationService};
use super::service::{Alias, PendingCall, Plugin};
use super::sockets::{BoundSocket, SocketFile, bind};
use super::{SlmError, SlmOptions};

/// Time limit for calls under way when a server closes; calls are fast.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Channels for the kubelet's calls and reports.
#[derive(Clone, Debug)]
pub(super) struct EndpointChannels {
    pub(super) calls: mpsc::Sender<PendingCall>,
    pub(super) reports: mpsc::UnboundedSender<RegistrationReport>,
}

/// One pair of sockets with its services.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) number: u64,
    pub(super) opened: Instant,
    /// The kubelet has reported a registration status for it.
    pub(super) heard: bool,
    /// The kubelet has registered it.
    pub(super) registered: bool,
    registration: SocketFile,
    service: SocketFile,
    tasks: Vec<JoinHandle<()>>,
    close: DropGuard,
}

impl Endpoint {
    /// Opens the service socket before the registration socket, so that the kubelet finds the service running.
    pub(super) fn open(
        options: &SlmOptions,
        number: u64,
        channels: &EndpointChannels,
    ) -> Result<Self, SlmError> {
        let instance = match number {
            0 => options.instance.clone(),
            _ => format!("{}.{number}", options.instance),
        };
        let hidden = format!(".{instance}");
        let close = CancellationToken::new();

        let service = bind(&options.driver_dir(), &hidden, options.service_socket(&instance))?;
        let plugin = SlmPluginServer::new(Plugin {
            calls: channels.calls.clone(),
        });
        let router = Server::builder()
            .add_service(plugin.clone())
            .add_service(Alias(plugin));
        let (service, incoming) = accept(service);
        let shut = close.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            log_end(router.serve_with_incoming_shutdown(incoming, shut).await);
        });

        let registration = bind(
            &options.registry_dir(),
            &hidden,
            options.registration_socket(&instance),
        );
        let registration = registration.inspect_err(|_| {
            service.remove();
            close.cancel();
        })?;
        let registrar = RegistrationService {
            driver: options.driver_name.clone(),
            service: service.path.display().to_string(),
            endpoint: number,
            reports: channels.reports.clone(),
        };
        let router = Server::builder().add_service(RegistrationServer::new(registrar));
        let (registration, incoming) = accept(registration);
        let shut = close.clone().cancelled_owned();
        let registering = tokio::spawn(async move {
            log_end(router.serve_with_incoming_shutdown(incoming, shut).await);
        });

        tracing::info!(registration = %registration.path.display(), service = %service.path.display(), "listening");
        Ok(Self {
            number,
            opened: Instant::now(),
            heard: false,
            registered: false,
            registration,
            service,
            tasks: vec![serving, registering],
            close: close.drop_guard(),
        })
    }

    /// True if both socket files are still ours.
    pub(super) fn is_intact(&self) -> bool {
        self.registration.is_intact() && self.service.is_intact()
    }

    /// A server on its sockets has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.tasks.iter().any(JoinHandle::is_finished)
    }

    /// One of its servers ends as by a bug.
    #[cfg(test)]
    pub(super) async fn end_server(&self, number: usize) {
        self.tasks[number].abort();
        while !self.tasks[number].is_finished() {
            tokio::task::yield_now().await;
        }
    }

    /// The two socket files.
    pub(super) fn files(&self) -> [&SocketFile; 2] {
        [&self.registration, &self.service]
    }

    /// Removes the registration socket so that the kubelet unregisters it; the service continues.
    pub(super) fn deregister(&self) {
        self.registration.remove();
    }

    /// Closes it after the calls under way.
    pub(super) async fn close(self) {
        self.registration.remove();
        self.service.remove();
        drop(self.close);
        for mut task in self.tasks {
            if timeout(CLOSE_WITHIN, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// The connections to a socket. Only root and the driver's own user may connect: socket files have modes, but a mount
/// may not preserve them.
fn accept(bound: BoundSocket) -> (SocketFile, impl Stream<Item = io::Result<KubeletStream>> + use<>) {
    let own = geteuid().as_raw();
    let incoming = UnixListenerStream::new(bound.listener).filter(move |stream| {
        let peer = stream
            .as_ref()
            .ok()
            .and_then(|stream| stream.peer_cred().ok())
            .map(|peer| peer.uid());
        let welcome = stream.is_err() || peer == Some(0) || peer == Some(own);
        if !welcome {
            tracing::warn!(uid = ?peer, "rejected a call: the caller is not root");
        }
        std::future::ready(welcome)
    });
    (bound.file, incoming.map(|stream| stream.map(KubeletStream::new)))
}

fn log_end(end: Result<(), tonic::transport::Error>) {
    if let Err(error) = end {
        tracing::error!(%error, "a server of the driver broke");
    }
}
