//! The settings of a drain, fixed when it begins: from the command line, else from the configuration file, else the
//! defaults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scupper_engine::Trigger;

use crate::KubeletPluginOptions;
use scupper_config::{Configuration, DrainRequestsFile, DrainSettings, GivenSettings};
use scupper_policy_reload::{Catalogue, ConfigText};

/// Where drains get their settings from.
pub(crate) struct DrainSettingsSource {
    usual: DrainSettings,
    /// The driver's command line, which overrides the file. `None`: there is no file; use `usual`.
    command_line: Option<GivenSettings>,
    catalogue: Arc<Catalogue>,
    parsed: LastParsed,
    /// The time limit of drains since the driver's start. It is published, so a change of the file does not change it.
    sla: Option<Duration>,
    is_reported: AtomicBool,
}

/// The configuration as it was parsed last: many drains, and every change of a LifecycleEvent, ask for the same.
#[derive(Default)]
struct LastParsed(Mutex<Option<(ConfigText, Arc<Configuration>)>>);

impl DrainSettingsSource {
    pub(crate) fn new(options: &KubeletPluginOptions, catalogue: Arc<Catalogue>) -> Self {
        let source = Self {
            usual: options.drain.clone(),
            command_line: options.drain_flags.clone(),
            catalogue,
            parsed: LastParsed::default(),
            sla: None,
            is_reported: AtomicBool::new(false),
        };
        let sla = source.wanted().time_limit;
        Self { sla, ..source }
    }

    /// The time limit of drains.
    pub(crate) const fn sla(&self) -> Option<Duration> {
        self.sla
    }

    /// How DrainRequests are served; `None`: not at all.
    pub(crate) fn drain_requests(&self) -> Option<DrainRequestsFile> {
        self.configuration()?.drain_requests.clone()
    }

    /// The settings of a drain for this trigger that begins now.
    pub(crate) fn now(&self, trigger: Trigger) -> DrainSettings {
        let mut drain = self.wanted();
        let is_off = restrict(&mut drain, self.sla, trigger);
        if is_off && !self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "drain.sla of the configuration has changed, which takes effect when this driver is restarted; until then no \
                 pod is deleted before a deadline (drain.at-deadline)"
            );
        }
        drain
    }

    /// The settings as they are configured now.
    fn wanted(&self) -> DrainSettings {
        let file = self.command_line.as_ref().and_then(|_| self.configuration());
        let (Some(command_line), Some(file)) = (&self.command_line, file) else {
            return self.usual.clone();
        };
        let mut drain = DrainSettings::default().with(&file.drain).with(command_line);
        drain.engine.own_pod.clone_from(&self.usual.engine.own_pod);
        drain
    }

    /// The active configuration, which was valid when it was read.
    fn configuration(&self) -> Option<Arc<Configuration>> {
        let active = self.catalogue.config_text();
        let active = active.as_ref().as_ref()?;
        self.parsed.of(active)
    }
}

/// Without a changed time limit, which is not in force yet, and so without deletions before it: they would be too early.
/// True if there would be such deletions. The deadline of DrainRequests is another one, which has not changed.
fn restrict(drain: &mut DrainSettings, sla: Option<Duration>, trigger: Trigger) -> bool {
    let is_changed = std::mem::replace(&mut drain.time_limit, sla) != sla;
    is_changed && trigger != Trigger::DrainRequest && drain.engine.at_deadline.take().is_some()
}

impl LastParsed {
    fn of(&self, active: &ConfigText) -> Option<Arc<Configuration>> {
        let mut parsed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((text, configuration)) = parsed.as_ref()
            && text == active
        {
            return Some(Arc::clone(configuration));
        }
        let read = scupper_config::read_text(&active.file, &active.text).ok()?;
        let configuration = Arc::new(read);
        *parsed = Some((active.clone(), Arc::clone(&configuration)));
        Some(configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_deleted_before_a_deadline_that_a_changed_file_moves() {
        let text = "{apiVersion: scupper.dev/v1alpha1, kind: Configuration, policies: [], drain: {sla: 12h, \
                    at-deadline: {delete: {everything: true}, within: 60s}}}";
        let read = scupper_config::read_text("scupper.yaml".as_ref(), text).unwrap();
        let drain = DrainSettings::default().with(&read.drain);
        let event = Trigger::LifecycleEvent;
        for (sla, trigger, deletes) in [
            (12 * 3600, event, true),
            (1800, event, false),
            (1800, Trigger::DrainRequest, true),
        ] {
            let sla = Some(Duration::from_secs(sla));
            let mut drain = drain.clone();
            assert_eq!(restrict(&mut drain, sla, trigger), !deletes);
            assert_eq!(
                (drain.time_limit, drain.engine.at_deadline.is_some()),
                (sla, deletes)
            );
        }
    }

    #[test]
    fn a_text_is_parsed_once() {
        let text = |sla: &str| {
            ConfigText {
            file: "scupper.yaml".into(),
            text: format!(
                "{{apiVersion: scupper.dev/v1alpha1, kind: Configuration, policies: [], drain: {{sla: {sla}}}}}"
            )
            .into(),
        }
        };
        let last = LastParsed::default();
        let first = last.of(&text("7m")).unwrap();
        assert!(Arc::ptr_eq(&first, &last.of(&text("7m")).unwrap()));
        let limit = |read: &Configuration| DrainSettings::default().with(&read.drain).time_limit;
        assert_eq!(limit(&first).map(|limit| limit.as_secs()), Some(420));
        let second = last.of(&text("8m")).unwrap();
        assert_eq!(limit(&second).map(|limit| limit.as_secs()), Some(480));
        assert!(last.of(&text("soon")).is_none());
    }
}
