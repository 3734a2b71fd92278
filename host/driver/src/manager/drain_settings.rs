//! The settings of a drain, fixed when it begins: from the command line, else from the configuration file, else the
//! defaults. The request's flags override them, within what the operator allows.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{
    Filters, ForceAtDeadline, ForcedPods, LocalData, PodRef, Settings, SurgeMethod, SurgeSettings, VolumeWait,
};

use crate::KubeletPluginOptions;
use scupper_config::{
    AtDeadlineFile, Configuration, DrainFile, DrainRequestsFile, Override, OwnCordon, PreFlight,
    StillAttached, SurgeBy,
};
use scupper_policy_reload::{Catalogue, ConfigText};
use scupper_triggers::{NamedPods, RequestedSettings};

/// Where drains get their settings from.
pub(crate) struct DrainSettingsSource {
    usual: DrainSettings,
    /// The driver's command line, which overrides the file. `None`: there is no file; use `usual`.
    command_line: Option<DrainFile>,
    catalogue: Arc<Catalogue>,
}

/// The settings of one drain.
#[derive(Clone)]
pub(crate) struct DrainSettings {
    pub(crate) settings: Settings,
    pub(crate) eviction_timeout: Duration,
    /// How long it may take. The transitions publish it, so a change takes effect with the driver's next start.
    pub(crate) sla: Option<Duration>,
    /// Flags of a request that may widen these settings.
    pub(crate) allowed: Vec<Override>,
}

impl DrainSettingsSource {
    pub(crate) fn new(options: &KubeletPluginOptions, catalogue: Arc<Catalogue>) -> Self {
        let usual = DrainSettings {
            settings: options.settings.clone(),
            eviction_timeout: options.eviction_timeout,
            sla: options.sla,
            allowed: options.allow_overrides.clone(),
        };
        Self {
            usual,
            command_line: options.drain_flags.clone(),
            catalogue,
        }
    }

    /// How DrainRequests are served; `None`: not at all.
    pub(crate) fn drain_requests(&self) -> Option<DrainRequestsFile> {
        let config = self.catalogue.config_text();
        parsed(config.as_ref().as_ref()?)?.drain_requests
    }

    /// The settings of a drain that begins now.
    pub(crate) fn now(&self) -> DrainSettings {
        let config = self.catalogue.config_text();
        let (Some(command_line), Some(config)) = (&self.command_line, config.as_ref()) else {
            return self.usual.clone();
        };
        let Some(file) = parsed(config) else {
            return self.usual.clone();
        };
        let drain = command_line.clone().or(file.drain);
        DrainSettings {
            settings: settings(&drain, self.usual.settings.own_pod.clone(), Filters::default()),
            eviction_timeout: eviction_timeout(&drain),
            sla: sla(&drain),
            allowed: drain.allow_overrides.unwrap_or_default(),
        }
    }
}

/// A configuration, which was valid when it was read.
fn parsed(config: &ConfigText) -> Option<Configuration> {
    scupper_config::read_text(&config.file, &config.text).ok()
}

impl DrainSettings {
    /// The same, with the flags of the request.
    pub(crate) fn with(self, flags: Option<&RequestedSettings>) -> Self {
        let Some(flags) = flags else { return self };
        let at_deadline = self.settings.at_deadline.clone();
        Self {
            settings: Settings {
                at_deadline: at_deadline.filter(|_| self.may_force(flags)),
                filters: flags.filters.clone(),
                grace_seconds: flags.grace_seconds,
                grace_only_longer: flags.grace_only_longer,
                returning_pod_evictions: flags
                    .returning_pod_evictions
                    .unwrap_or(self.settings.returning_pod_evictions),
                local_data: flags.local_data.unwrap_or(self.settings.local_data),
                ..self.settings
            },
            eviction_timeout: flags.eviction_timeout,
            ..self
        }
    }
}

impl DrainSettings {
    /// Whoever may request a drain may shorten it, and so could have pods deleted at once.
    fn may_force(&self, flags: &RequestedSettings) -> bool {
        let is_shorter = |timeout: Duration| self.sla.is_none_or(|sla| timeout < sla);
        !flags.timeout.is_some_and(is_shorter) || self.allowed.contains(&Override::AtDeadline)
    }

    /// The same, for these pods only.
    pub(crate) fn for_pods(mut self, only_pods: Option<NamedPods>) -> Self {
        self.settings.filters.only_pods = only_pods;
        self
    }
}

/// How pods are chosen and evicted. `usual`: the defaults.
pub fn settings(drain: &DrainFile, own_pod: Option<PodRef>, usual: Filters) -> Settings {
    Settings {
        filters: Filters {
            force: drain.force.unwrap_or(usual.force),
            ignore_daemonsets: drain.ignore_daemonsets.unwrap_or(usual.ignore_daemonsets),
            delete_emptydir_data: drain.delete_emptydir_data.unwrap_or(usual.delete_emptydir_data),
            ..usual
        },
        grace_seconds: drain.grace_period.and_then(|seconds| u64::try_from(seconds).ok()),
        own_pod,
        forbidden_timeout: drain.forbidden_timeout.unwrap_or(Settings::FORBIDDEN_TIMEOUT),
        refuse_certain: drain.pre_flight == Some(PreFlight::Refuse),
        local_data: match drain.local_data {
            None => LocalData::Unread,
            Some(PreFlight::Warn) => LocalData::Warn,
            Some(PreFlight::Refuse) => LocalData::Refuse,
        },
        uncordon_on_failure: drain.on_failure == Some(OwnCordon::Rollback),
        returning_pod_evictions: drain
            .returning_pod_evictions
            .unwrap_or_else(|| Settings::default().returning_pod_evictions),
        wait_for_volumes: drain.wait_for_volumes.map(|wait| VolumeWait {
            at_most: wait.at_most,
            or_fail: wait.otherwise == StillAttached::Fail,
        }),
        at_deadline: drain.at_deadline.as_ref().map(at_deadline),
        surge: drain.surge.as_ref().map(|surge| SurgeSettings {
            method: match surge.method {
                SurgeBy::Restart => SurgeMethod::Restart,
                SurgeBy::Scale => SurgeMethod::Scale,
            },
            namespaces: surge.namespaces.iter().cloned().collect(),
            timeout: surge.timeout,
        }),
        ..Settings::default()
    }
}

fn at_deadline(file: &AtDeadlineFile) -> ForceAtDeadline {
    ForceAtDeadline {
        pods: ForcedPods {
            namespaces: file
                .namespaces
                .as_ref()
                .map(|names| names.iter().cloned().collect()),
            priority_below: file.priority_below,
            await_completion: file.await_completion,
        },
        grace_seconds: file.grace_period.as_secs(),
        within: file.within,
    }
}

/// How long one eviction request may take.
pub fn eviction_timeout(drain: &DrainFile) -> Duration {
    let usual = || KubeletPluginOptions::default().eviction_timeout;
    drain.eviction_timeout.unwrap_or_else(usual)
}

/// How long a drain may take; `None`: as long as it takes.
pub fn sla(drain: &DrainFile) -> Option<Duration> {
    let sla = drain.sla.or_else(|| KubeletPluginOptions::default().sla);
    sla.filter(|sla| !sla.is_zero())
}
