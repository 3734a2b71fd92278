//! The registered SLM drivers, each with its endpoints; the most recent one is used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scupper_contract::PLUGIN_VERSION;
use tokio_util::task::AbortOnDropHandle;

use super::channel::Channel;
use super::options::Timing;
use super::record::{Entry, Record};

/// The registered drivers.
#[derive(Debug)]
pub(super) struct Plugins {
    drivers: Mutex<BTreeMap<String, Driver>>,
    timing: Timing,
    record: Record,
}

#[derive(Debug, Default)]
struct Driver {
    /// Oldest first.
    endpoints: Vec<Arc<Registered>>,
    /// The removal of its transitions, running since its last endpoint disappeared.
    cleanup: Option<AbortOnDropHandle<()>>,
}

/// One endpoint of a driver.
#[derive(Debug)]
pub(super) struct Registered {
    /// Its service socket.
    pub endpoint: PathBuf,
    /// The channel to it.
    pub channel: Channel,
}

impl Plugins {
    pub(super) fn new(timing: &Timing, record: &Record) -> Self {
        Self {
            drivers: Mutex::default(),
            timing: timing.clone(),
            record: record.clone(),
        }
    }

    /// Validates a plugin's information.
    pub(super) fn validate(versions: &[String]) -> Result<(), String> {
        if versions.is_empty() {
            return Err("empty list of supported gRPC services (aka supported versions)".to_owned());
        }
        if versions.iter().any(|version| version == PLUGIN_VERSION) {
            return Ok(());
        }
        Err(format!(
            "none of the services supported by the plugin ({}) are supported by the kubelet ({PLUGIN_VERSION})",
            versions.join(", ")
        ))
    }

    /// Adds an endpoint and connects to it.
    pub(super) fn register(&self, driver: &str, endpoint: &Path) -> Result<(), String> {
        let mut drivers = self.lock();
        let known = drivers.entry(driver.to_owned()).or_default();
        if known
            .endpoints
            .iter()
            .any(|registered| registered.endpoint == endpoint)
        {
            let path = endpoint.display();
            return Err(format!(
                "endpoint {path} already registered for SLM driver plugin {driver}"
            ));
        }
        known.cleanup = None;
        let channel = Channel::dial(endpoint, &self.timing);
        known.endpoints.push(Arc::new(Registered {
            endpoint: endpoint.to_owned(),
            channel,
        }));
        self.record.add(Entry::Registered {
            driver: driver.to_owned(),
            endpoint: endpoint.to_owned(),
        });
        Ok(())
    }

    /// Removes an endpoint; after the last one `cleanup` begins, unless another comes in time.
    pub(super) fn deregister(
        &self,
        driver: &str,
        endpoint: &Path,
        cleanup: impl FnOnce() -> AbortOnDropHandle<()>,
    ) {
        let mut drivers = self.lock();
        let Some(known) = drivers.get_mut(driver) else {
            return;
        };
        known
            .endpoints
            .retain(|registered| registered.endpoint != endpoint);
        if known.endpoints.is_empty() {
            known.cleanup = Some(cleanup());
        }
        self.record.add(Entry::Deregistered {
            driver: driver.to_owned(),
            endpoint: endpoint.to_owned(),
        });
    }

    /// The endpoint for calls of a driver.
    pub(super) fn newest(&self, driver: &str) -> Result<Arc<Registered>, String> {
        if driver.is_empty() {
            return Err("SLM driver name is empty".to_owned());
        }
        let newest = self
            .lock()
            .get(driver)
            .and_then(|known| known.endpoints.last().cloned());
        newest.ok_or_else(|| format!("SLM driver {driver} is not registered"))
    }

    /// Each driver with its endpoints, oldest first.
    pub(super) fn all(&self) -> BTreeMap<String, Vec<PathBuf>> {
        let drivers = self.lock();
        let with = drivers.iter().filter(|(_, driver)| !driver.endpoints.is_empty());
        with.map(|(name, driver)| {
            (
                name.clone(),
                driver
                    .endpoints
                    .iter()
                    .map(|registered| registered.endpoint.clone())
                    .collect(),
            )
        })
        .collect()
    }

    /// Cuts every connection to every driver.
    pub(super) fn cut(&self) {
        for driver in self.lock().values() {
            driver
                .endpoints
                .iter()
                .for_each(|registered| registered.channel.cut());
        }
    }

    /// Forgets every driver, with its channels and the removal of its transitions.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Driver>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
