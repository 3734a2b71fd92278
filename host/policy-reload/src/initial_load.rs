//! The first load: the configured policies, or else the last good ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use scupper_policy::{LoadError, LoadFault, WasmFile};
use scupper_policy_spec::PolicySpec;
use tokio::task::spawn_blocking;

use super::candidate::Material;
use super::notice::short;
use super::policy_set::{Candidate, Tried};
use super::reloader::{Reloader, load_all, moving_pause};
use super::revision::Revision;
use super::scan::{ConfigText, PolicySource, Scan};
use super::start_error::StartError;
use super::status::SlotState;
use super::store::{Index, Saved, SavedPolicy, Wire};
use scupper_common::error::chain;

/// Scans of files that change all the time before a start fails: a quarter of a minute.
const FIRST_SCANS: u32 = 7;

/// Why a revision runs that was rolled back.
const LOST_SETTINGS: &str = "the settings to which it was rolled back are not in the state directory, so it has those of \
                             the configuration";

impl Reloader {
    /// Loads everything once.
    pub(super) async fn load_initially(&mut self) -> Result<(), StartError> {
        let saved = self.saved().await;
        self.policy_set.restore(&saved.policies);
        self.good.clone_from(&saved.config_text);
        self.texts = saved.texts;
        let scan = self.scan_at_rest(&self.source).await?;
        let (refused, reason) = match scan.refused {
            Some(reason) => (StartError::Configuration(reason.clone()), reason),
            None => match self.load_scan(scan, &saved.policies).await {
                Err(error) if is_configuration(&error) => {
                    let reason = chain(&error);
                    (error, reason)
                }
                done => return done,
            },
        };
        let Some(scan) = self.fall_back(saved.config_text).await else {
            return Err(refused);
        };
        self.policy_set.degrade_configuration(reason);
        if !matches!(refused, StartError::Configuration(_)) {
            // The text is valid, and the next scan reports it.
            self.policy_set.configuration = None;
        }
        match self.load_scan(scan, &saved.policies).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(target: "scupper::policy", "the last good configuration no longer loads: {error}");
                Err(refused)
            }
        }
    }

    /// Scans until no file changes meanwhile: without the policy that is just being written, the first drains would lack
    /// it to their end.
    async fn scan_at_rest(&self, source: &PolicySource) -> Result<Scan, StartError> {
        let mut file = PathBuf::new();
        for scans in 0..FIRST_SCANS {
            if let Some(before) = scans.checked_sub(1) {
                tokio::time::sleep(moving_pause(before)).await;
            }
            match self.scan_source(source.clone()).await {
                Ok(scan) => return Ok(scan),
                Err(torn) => file = torn.file,
            }
        }
        Err(StartError::Moving {
            file,
            scans: FIRST_SCANS,
        })
    }

    /// The last good configuration, with the current modules.
    async fn fall_back(&self, config_text: Option<ConfigText>) -> Option<Scan> {
        let config_text = config_text?;
        let scan = match (self.source.parse_saved)(&config_text) {
            Ok(wanted) => self
                .scan_at_rest(&self.source.instead(wanted))
                .await
                .map_err(|error| chain(&error)),
            Err(error) => Err(error),
        };
        match scan {
            Ok(scan) => scan.refused.is_none().then_some(scan),
            Err(error) => {
                tracing::warn!(target: "scupper::policy", "the last good configuration can no longer be read: {error}");
                None
            }
        }
    }

    /// Loads the findings of a scan: each policy as configured, or else its last good revision.
    async fn load_scan(&mut self, scan: Scan, index: &Index) -> Result<(), StartError> {
        self.take(&scan);
        self.watch.scanned();
        self.watch.cover(scan.places);
        let mut diff = self.policy_set.diff(scan.found);
        let mut faults: BTreeMap<String, LoadFault> = diff.unread.into_iter().collect();
        let (mut good, mut again) = (Vec::new(), diff.again);
        for tried in load_all(self.loader.clone(), diff.candidates).await {
            match tried.result {
                Ok(_) => good.push(tried),
                Err(fault) => {
                    let retry = self
                        .policy_set
                        .reject_candidate(&tried.name, tried.revision, &fault);
                    again = again.into_iter().chain(retry).min();
                    faults.insert(tried.name, fault);
                }
            }
        }
        let mut instead = Vec::new();
        for spec in self.specs.clone() {
            if good.iter().any(|tried| tried.name == spec.name) {
                continue;
            }
            let away = diff.away.contains_key(&spec.name);
            match self.last_good(&spec, index, away).await {
                Some(tried) => {
                    let reason = faults.get(&spec.name).map(|fault| chain(fault));
                    if self.policy_set.is_away(&spec.name, &tried.revision) {
                        // It is not away: it runs.
                        diff.away.remove(&spec.name);
                        instead.push((spec.name, Some(LOST_SETTINGS.to_owned())));
                    } else if !away {
                        instead.push((spec.name, reason));
                    }
                    good.push(tried);
                }
                None if away => return Err(StartError::RolledBack(spec.name)),
                None => return Err(refused(spec, faults)),
            }
        }
        let later = self.policy_set.apply_results(&self.wanted(), good);
        self.due = again.into_iter().chain(later).min();
        self.publish_config_text();
        self.policy_set.report_away(diff.away);
        self.report_replaced(instead);
        self.former = Some(self.former(index));
        Ok(())
    }

    /// The revisions that were active or previous at the end of an earlier process and are not active now.
    fn former(&self, index: &Index) -> Vec<(PolicySpec, String)> {
        let active = self.policy_set.catalogue.active();
        let mut former = Vec::new();
        for spec in &self.specs {
            let Some(kept) = index.get(&spec.name) else {
                continue;
            };
            let active = active.member(&spec.name).map(|member| &member.revision);
            let mut revisions: Vec<_> = kept
                .revisions()
                .map(|wire| {
                    let spec = self.spec_of(spec, wire);
                    (Revision::of(&spec, &wire.digest), spec)
                })
                .filter(|(revision, _)| Some(revision) != active)
                .filter(|(revision, _)| !self.policy_set.is_away(&spec.name, revision))
                .collect();
            revisions.dedup_by(|(one, _), (other, _)| one == other);
            former.extend(
                revisions
                    .into_iter()
                    .map(|(revision, spec)| (spec, revision.digest)),
            );
        }
        former
    }

    /// The settings of an earlier revision; the current ones if its own are not known.
    fn spec_of(&self, current: &PolicySpec, wire: &Wire) -> PolicySpec {
        let is_it = |spec: &PolicySpec| {
            // A rollback must not take a policy out of the chain, or put one into it.
            spec.name == current.name
                && spec.mode == current.mode
                && Revision::of(spec, "").settings == wire.settings
        };
        let text = self.texts.of(&wire.settings).filter(|_| !is_it(current));
        let parsed = text.and_then(|text| (self.source.parse_saved)(text).ok());
        let found = parsed.and_then(|parsed| parsed.policies.into_iter().find(is_it));
        found.unwrap_or_else(|| current.clone())
    }

    async fn saved(&self) -> Saved {
        let Some(store) = self.loader.store.clone() else {
            return Saved::default();
        };
        spawn_blocking(move || store.saved()).await.unwrap_or_default()
    }

    /// The newest good component that is there, with the current settings, or instead of a revision that was rolled back
    /// (`away`) with its own. If those are not known, the revision that was rolled back runs: without it the driver
    /// would not start.
    async fn last_good(&self, spec: &PolicySpec, index: &Index, away: bool) -> Option<Tried> {
        let (good, wasm) = self.newest_kept(index.get(&spec.name)?).await?;
        let digest = &good.digest;
        let current = Revision::of(spec, digest);
        let spec = match away || self.policy_set.is_away(&spec.name, &current) {
            true => self.spec_of(spec, good),
            false => spec.clone(),
        };
        let candidate = Candidate {
            revision: Revision::of(&spec, digest),
            spec: spec.clone(),
            material: Material::Wasm(wasm),
        };
        let tried = load_all(self.loader.clone(), vec![candidate]).await.pop()?;
        if let Err(fault) = &tried.result {
            let (name, digest) = (&spec.name, short(digest));
            let fault = chain(fault);
            tracing::warn!(target: "scupper::policy", "policy {name}: its last good revision, {digest}, no longer loads: {fault}");
        }
        tried.result.is_ok().then_some(tried)
    }

    /// The component of the last good revision may not have been saved: the disk was full.
    async fn newest_kept<'a>(&self, saved: &'a SavedPolicy) -> Option<(&'a Wire, WasmFile)> {
        for wire in saved.revisions() {
            if let Some(wasm) = self.loader.kept(&wire.digest).await {
                return Some((wire, wasm));
            }
        }
        None
    }

    fn report_replaced(&mut self, instead: Vec<(String, Option<String>)>) {
        for (name, reason) in instead {
            let reason = reason.unwrap_or_else(|| "the revision that is wanted is not there".to_owned());
            self.policy_set
                .degrade(&name, SlotState::Degraded, (None, reason));
        }
    }
}

/// The configuration needs a correction: the host or a policy rejects it. A missing grant or a wrong pin is the
/// operator's decision, and no earlier revision replaces it.
fn is_configuration(error: &StartError) -> bool {
    match error {
        StartError::Configuration(_) => true,
        StartError::Policy(error) => matches!(*error.fault, LoadFault::Config(_)),
        StartError::Moving { .. } | StartError::RolledBack(_) | StartError::Store(_) => false,
    }
}

fn refused(spec: PolicySpec, mut faults: BTreeMap<String, LoadFault>) -> StartError {
    StartError::Policy(LoadError {
        fault: Box::new(faults.remove(&spec.name).unwrap_or(LoadFault::BrokenOff)),
        policy: spec.name,
        file: spec.file,
    })
}
