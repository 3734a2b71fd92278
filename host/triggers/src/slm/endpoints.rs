//! The socket pairs of this process: the current one, and those that the kubelet should unregister. It must not know
//! which calls arrive on them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::endpoint::{Endpoint, EndpointChannels};
use super::registration::{Registration, RegistrationReport};
use super::service::PendingCall;
use super::sockets::{self, SocketFile};
use super::{SlmError, SlmOptions};

/// Time after which a kubelet without a report counts as silent. It looks for new sockets every second.
const SILENT_AFTER: Duration = Duration::from_secs(30);
/// Time for which a retired pair still answers: a claim under way may wait for its connection.
const LINGER: Duration = Duration::from_secs(60);

/// The socket pairs of this process.
pub(super) struct Endpoints {
    options: SlmOptions,
    channels: EndpointChannels,
    /// The newest pair, for the kubelet to use.
    current: Endpoint,
    /// Pairs that stay until the newest is registered.
    former: Vec<Endpoint>,
    /// Unregistered pairs, which still answer until the given time.
    retired: Vec<(Instant, Endpoint)>,
    next: u64,
    /// The time since which the kubelet's directories are missing.
    missing: Option<Instant>,
    /// Another instance of the driver was running when this one started.
    predecessor: bool,
    /// The kubelet's last report.
    registration: Registration,
}

impl Endpoints {
    /// Opens the first pair.
    pub(super) async fn open(
        options: &SlmOptions,
        calls: mpsc::Sender<PendingCall>,
        reports: mpsc::UnboundedSender<RegistrationReport>,
    ) -> Result<Self, SlmError> {
        sockets::prepare_directories(options).await?;
        let found = sockets::sweep(options, &[]).await;
        for path in &found.removed {
            tracing::info!(path = %path.display(), "removed a stale socket");
        }
        for path in &found.alive {
            tracing::warn!(path = %path.display(), "another instance of this driver uses this socket; the socket stays");
        }
        let channels = EndpointChannels { calls, reports };
        let current = Endpoint::open(options, 0, &channels)?;
        Ok(Self {
            options: options.clone(),
            channels,
            current,
            former: Vec::new(),
            retired: Vec::new(),
            next: 1,
            missing: None,
            predecessor: !found.alive.is_empty(),
            registration: Registration::Waiting,
        })
    }

    /// The state of the registration with the kubelet.
    pub(super) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Handles a report of the kubelet. Returns true if the kubelet registered the newest pair, even repeatedly.
    pub(super) fn handle_report(&mut self, report: RegistrationReport) -> bool {
        let registered = report.registration == Registration::Registered;
        for former in &mut self.former {
            if former.number == report.endpoint {
                former.registered = registered;
            }
        }
        if self.current.number != report.endpoint {
            return false;
        }
        self.current.heard = true;
        self.current.registered = registered;
        if report.registration != self.registration {
            report.registration.log(&self.options);
            self.registration = report.registration;
        }
        registered
    }

    /// Opens a new pair; the old one is retired once the kubelet has registered the new one.
    pub(super) fn renew(&mut self, why: &'static str) -> Result<(), SlmError> {
        tracing::info!(why, "making new sockets");
        let new = Endpoint::open(&self.options, self.next, &self.channels)?;
        self.next += 1;
        self.former.push(std::mem::replace(&mut self.current, new));
        Ok(())
    }

    /// True if the newest pair is registered, so that its connection is awake.
    pub(super) fn is_settled(&self) -> bool {
        self.current.registered && self.former.is_empty()
    }

    /// Maintains the pairs. `busy`: a call may arrive at any moment, so nothing is removed.
    pub(super) async fn maintain(&mut self, now: Instant, busy: bool) -> Result<(), SlmError> {
        if self.all().any(Endpoint::has_ended) {
            return Err(SlmError::Wire {
                what: "server on the kubelet's sockets",
            });
        }
        if self.current.is_intact() {
            self.missing = None;
        } else {
            self.replace_removed(now)?;
        }
        if self.current.registered && !busy {
            for former in self.former.drain(..) {
                former.deregister();
                self.retired.push((now + LINGER, former));
            }
        }
        while let Some(at) = self.retired.iter().position(|(until, _)| *until <= now) {
            let (_, retired) = self.retired.swap_remove(at);
            retired.close().await;
        }
        let silent = !self.current.heard && now.duration_since(self.current.opened) >= SILENT_AFTER;
        if silent && self.registration == Registration::Waiting {
            self.registration = Registration::Silent;
            self.registration.log(&self.options);
        }
        Ok(())
    }

    /// Replaces a removed socket under a new name, because the kubelet backs off per name.
    fn replace_removed(&mut self, now: Instant) -> Result<(), SlmError> {
        if self.registration == Registration::Registered {
            self.registration = Registration::Waiting;
        }
        if let Some(path) = sockets::missing_directory(&self.options) {
            let since = *self.missing.get_or_insert(now);
            return if now.duration_since(since) < sockets::DIRECTORIES_WITHIN {
                Ok(())
            } else {
                Err(SlmError::NoDirectory { path })
            };
        }
        sockets::make_driver_directory(&self.options)?;
        self.renew("a socket of ours was removed")
    }

    /// True if another instance of the driver was running when this one started.
    pub(super) fn has_predecessor(&self) -> bool {
        self.predecessor
    }

    /// True if another instance of the driver is running.
    pub(super) async fn has_other_instance(&self) -> bool {
        let own: Vec<&SocketFile> = self.all().flat_map(Endpoint::files).collect();
        !sockets::live_instances(&self.options, &own).await.is_empty()
    }

    /// Makes the kubelet unregister the driver; calls are still answered.
    pub(super) fn deregister(&self) {
        self.all().for_each(Endpoint::deregister);
    }

    /// Closes all pairs.
    pub(super) async fn close(self) {
        let retired = self.retired.into_iter().map(|(_, endpoint)| endpoint);
        for endpoint in self.former.into_iter().chain(retired).chain([self.current]) {
            endpoint.close().await;
        }
    }

    fn all(&self) -> impl Iterator<Item = &Endpoint> {
        let retired = self.retired.iter().map(|(_, endpoint)| endpoint);
        self.former.iter().chain(retired).chain([&self.current])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_ends_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        for dir in ["plugins", "plugins_registry"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        let options = SlmOptions {
            kubelet_root: root.path().to_owned(),
            ..SlmOptions::new("drain.slm.k8s.io", "worker-1", "one".to_owned())
        };
        for number in 0..2 {
            let (calls, _) = mpsc::channel(1);
            let (reports, _) = mpsc::unbounded_channel();
            let mut endpoints = Endpoints::open(&options, calls, reports).await.unwrap();
            endpoints.maintain(Instant::now(), false).await.unwrap();
            endpoints.current.end_server(number).await;
            let error = endpoints.maintain(Instant::now(), false).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                "the server on the kubelet's sockets ended while the driver runs"
            );
            endpoints.close().await;
        }
    }
}
