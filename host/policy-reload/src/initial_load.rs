//! The first load: the configured policies, or else the last good ones.

use std::collections::BTreeMap;

use scupper_policy::{LoadError, LoadFault};
use scupper_policy_spec::PolicySpec;
use tokio::task::spawn_blocking;

use super::candidate::Material;
use super::notice::short;
use super::policy_set::{Candidate, Tried};
use super::reloader::{Reloader, StartError, load_all};
use super::revision::Revision;
use super::scan::{ConfigText, Scan};
use super::status::SlotState;
use super::store::{Index, Saved};
use scupper_common::error::chain;

impl Reloader {
    /// Loads everything once.
    pub(super) async fn load_initially(&mut self) -> Result<(), StartError> {
        let saved = self.saved().await;
        self.policy_set.restore(&saved.policies);
        self.good.clone_from(&saved.config_text);
        let scan = self.scan().await;
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

    /// The last good configuration, with the current modules.
    async fn fall_back(&self, config_text: Option<ConfigText>) -> Option<Scan> {
        let config_text = config_text?;
        match (self.source.parse_saved)(&config_text) {
            Ok(wanted) => {
                let scan = self.scan_source(self.source.instead(wanted)).await;
                scan.refused.is_none().then_some(scan)
            }
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
        let diff = self.policy_set.diff(scan.found);
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
            let away = diff.away.contains(&spec.name);
            match self.last_good(&spec, index).await {
                Some(tried) => {
                    let reason = faults.get(&spec.name).map(|fault| chain(fault));
                    instead.push((spec.name, away, reason));
                    good.push(tried);
                }
                None => return Err(refused(spec, faults)),
            }
        }
        let later = self.policy_set.apply_results(&self.wanted(), good);
        self.due = again.into_iter().chain(later).min();
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
            let active = active.member(&spec.name).map(|member| &member.revision.digest);
            let mut digests: Vec<&String> = [Some(&kept.good), kept.previous.as_ref()]
                .into_iter()
                .flatten()
                .map(|wire| &wire.digest)
                .filter(|digest| Some(*digest) != active)
                .collect();
            digests.dedup();
            former.extend(digests.into_iter().map(|digest| (spec.clone(), digest.clone())));
        }
        former
    }

    async fn saved(&self) -> Saved {
        let Some(store) = self.loader.store.clone() else {
            return Saved::default();
        };
        spawn_blocking(move || store.saved()).await.unwrap_or_default()
    }

    /// The last good component, with its current settings.
    async fn last_good(&self, spec: &PolicySpec, index: &Index) -> Option<Tried> {
        let digest = &index.get(&spec.name)?.good.digest;
        let wasm = self.loader.kept(digest).await?;
        let candidate = Candidate {
            revision: Revision::of(spec, digest),
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

    fn report_replaced(&mut self, instead: Vec<(String, bool, Option<String>)>) {
        for (name, away, reason) in instead {
            let (state, reason) = match reason {
                _ if away => (
                    SlotState::RolledBack,
                    "the revision that is wanted was rolled back before the driver was restarted".to_owned(),
                ),
                Some(reason) => (SlotState::Degraded, reason),
                None => (
                    SlotState::Degraded,
                    "the revision that is wanted is not there".to_owned(),
                ),
            };
            self.policy_set.degrade(&name, state, reason);
        }
    }
}

/// The configuration needs a correction: the host or a policy rejects it. A missing grant or a wrong pin is the
/// operator's decision, and no earlier revision replaces it.
fn is_configuration(error: &StartError) -> bool {
    match error {
        StartError::Configuration(_) => true,
        StartError::Policy(error) => matches!(*error.fault, LoadFault::Config(_)),
        StartError::Store(_) => false,
    }
}

fn refused(spec: PolicySpec, mut faults: BTreeMap<String, LoadFault>) -> StartError {
    StartError::Policy(LoadError {
        fault: Box::new(faults.remove(&spec.name).unwrap_or(LoadFault::BrokenOff)),
        policy: spec.name,
        file: spec.file,
    })
}
