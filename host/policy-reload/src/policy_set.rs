//! The configured policies, and the only code that swaps generations: it turns a scan's findings into candidates and
//! loaded candidates into the next generation, and reports each change.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_engine::Time;
use scupper_policy::{LoadFault, LoadedPolicy};
use scupper_policy_spec::{PolicyMode, PolicySpec};
use tokio::sync::mpsc;

use super::candidate::{Material, is_costly, is_transient};
use super::catalogue::{Catalogue, Generation, Member};
use super::notice::ReloadNotice;
use super::policy_revisions::{Decision, PolicyRevisions, Quarantine, Refusal};
use super::revision::Revision;
use super::rules::{ReloadRules, backoff};
use super::scan::{Found, KnownRevisions};
use super::status::{SlotProblem, SlotState};

/// The configured policies.
pub(super) struct PolicySet {
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) clock: Clock,
    pub(super) rules: ReloadRules,
    pub(super) notices: mpsc::UnboundedSender<ReloadNotice>,
    pub(super) entries: BTreeMap<String, Entry>,
    /// The last problem with the configuration as a whole.
    pub(super) configuration: Option<String>,
}

/// One policy.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) slot: PolicyRevisions,
    /// The previous revision, ready to call: a rollback must not depend on a disk.
    pub(super) previous: Option<Arc<LoadedPolicy>>,
    /// The revision before the previous one, if an earlier process had it: a drain of that process may have used it.
    pub(super) older: Option<(Revision, Arc<LoadedPolicy>)>,
    /// Loaded, and waiting for the rest of its configuration.
    pub(super) ready: Option<(Revision, Arc<LoadedPolicy>)>,
    /// Its state, when not simply active.
    pub(super) state: Option<SlotState>,
    pub(super) problem: Option<SlotProblem>,
}

impl Entry {
    /// Another revision is active.
    fn activate(&mut self, revision: Revision, mode: &PolicyMode, before: Option<&Arc<Member>>) {
        self.slot.activate(revision);
        self.previous = before.map(|before| Arc::clone(&before.policy));
        if before.is_some_and(|before| before.mode() != mode) {
            // A rollback must not take a policy out of the chain, or put one into it.
            self.previous = None;
            self.slot.forget_previous();
        }
        self.older = None;
        self.back_to_active();
    }

    /// A revision that is no longer wanted must not be activated later.
    fn drop_ready(&mut self, is_stale: impl Fn(&Revision) -> bool) {
        if self.ready.as_ref().is_some_and(|(ready, _)| is_stale(ready)) {
            self.ready = None;
        }
    }

    /// Whether a loaded revision of this mode waits.
    fn is_ready(&self, mode: &PolicyMode) -> bool {
        let ready = self.ready.as_ref();
        ready.is_some_and(|(_, policy)| policy.description.mode == *mode)
    }

    /// The configured revision is the active one.
    fn back_to_active(&mut self) {
        self.state = None;
        self.problem = None;
    }
}

/// The name and the mode of a configured policy.
pub(super) type WantedPolicy = (String, PolicyMode);

/// A candidate to be loaded.
pub(super) struct Candidate {
    pub(super) spec: PolicySpec,
    pub(super) revision: Revision,
    pub(super) material: Material,
}

/// A candidate after it was loaded or rejected.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) revision: Revision,
    pub(super) result: Result<LoadedPolicy, LoadFault>,
}

/// The work to do after a scan.
#[derive(Default)]
pub(super) struct Diff {
    pub(super) candidates: Vec<Candidate>,
    /// Policies whose files could not be read.
    pub(super) unread: Vec<(String, LoadFault)>,
    /// Policies whose wanted revision was rolled back and stays in quarantine.
    pub(super) away: BTreeMap<String, Quarantine>,
    /// When the next scan is due at the latest.
    pub(super) again: Option<Time>,
}

impl PolicySet {
    pub(super) fn new(
        catalogue: Arc<Catalogue>,
        clock: Clock,
        rules: ReloadRules,
        notices: mpsc::UnboundedSender<ReloadNotice>,
    ) -> Self {
        Self {
            catalogue,
            clock,
            rules,
            notices,
            entries: BTreeMap::new(),
            configuration: None,
        }
    }

    /// The revisions that a scan need not read.
    pub(super) fn known(&self) -> KnownRevisions {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let mut known = KnownRevisions::default();
        for (name, entry) in &self.entries {
            let revisions = entry.slot.known(now).cloned();
            known
                .revisions
                .extend(revisions.map(|revision| (name.clone(), revision)));
        }
        for member in &active.members {
            let previous = self.entries.get(member.name());
            let previous = previous.and_then(|entry| entry.previous.as_ref());
            for policy in previous.into_iter().chain([&member.policy]) {
                let digest = policy.description.digest.clone();
                known.digests.insert((member.name().to_owned(), digest));
            }
        }
        known
    }

    /// Which of the scan's findings must be loaded.
    pub(super) fn diff(&mut self, found: Vec<Found>) -> Diff {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let mut diff = Diff::default();
        for Found { spec, module } in found {
            let module = match module {
                Ok(module) => module,
                Err(error) => {
                    let fault = LoadFault::Source(error);
                    self.reject(&spec.name, &fault);
                    let settings = Revision::of(&spec, "").settings;
                    let entry = self.entries.entry(spec.name.clone()).or_default();
                    entry.drop_ready(|ready| ready.settings != settings);
                    diff.unread.push((spec.name, fault));
                    continue;
                }
            };
            let revision = Revision::of(&spec, &module.digest);
            let entry = self.entries.entry(spec.name.clone()).or_default();
            entry.drop_ready(|ready| *ready != revision);
            if entry.ready.is_some() {
                continue;
            }
            let previous = entry.previous.as_ref();
            let at_hand = active.member(&spec.name).map(|member| &member.policy);
            let at_hand = at_hand
                .into_iter()
                .chain(previous)
                .find(|policy| policy.description.digest == revision.digest);
            let material = match (module.wasm, at_hand) {
                (Some(wasm), _) => Some(Material::Wasm(wasm)),
                (None, at_hand) => at_hand.cloned().map(Material::Same),
            };
            let again = match (entry.slot.decide(now, &revision, &self.rules, random()), material) {
                (Decision::Try, Some(material)) => {
                    diff.candidates.push(Candidate {
                        spec,
                        revision,
                        material,
                    });
                    None
                }
                // It was active when the scan began: scan again for its bytes.
                (Decision::Try, None) => Some(now),
                (Decision::TooSoon(next), _) => Some(next),
                (Decision::Quarantined(quarantine), _) => {
                    let until = quarantine.until;
                    diff.away.insert(spec.name, quarantine);
                    until
                }
                (Decision::Same, _) => {
                    // A revision that was rolled back and runs nevertheless stays reported.
                    if entry.slot.quarantine(now, &revision).is_none() {
                        entry.back_to_active();
                    }
                    None
                }
                (Decision::Refused(Refusal { step, reason }), _) => {
                    self.refuse(&spec.name, Some(revision.digest), step, reason);
                    None
                }
            };
            diff.again = diff.again.into_iter().chain(again).min();
        }
        diff
    }

    /// All candidates are loaded or rejected: activates the next generation, if there is one. `wanted` are the configured
    /// policies.
    pub(super) fn apply_results(&mut self, wanted: &[WantedPolicy], tried: Vec<Tried>) -> Option<Time> {
        let mut again = None;
        let now = self.clock.now();
        for Tried {
            name,
            revision,
            result,
        } in tried
        {
            self.entries.entry(name.clone()).or_default().slot.through(now);
            match result {
                Ok(loaded) => {
                    self.entries.entry(name).or_default().ready = Some((revision, Arc::new(loaded)));
                }
                Err(fault) => {
                    let retry = self.reject_candidate(&name, revision, &fault);
                    again = again.into_iter().chain(retry).min();
                }
            }
        }
        self.advance(wanted);
        again
    }

    /// Rejects a candidate. Returns when to retry it, if a retry could help.
    pub(super) fn reject_candidate(
        &mut self,
        name: &str,
        revision: Revision,
        fault: &LoadFault,
    ) -> Option<Time> {
        let (now, rules) = (self.clock.now(), &self.rules);
        let entry = self.entries.entry(name.to_owned()).or_default();
        let before = entry.slot.refusals(&revision);
        let times = before.map_or(0, |(times, _)| times);
        let is_same = before.is_some_and(|(_, refusal)| refusal.step == fault.step());
        let retry = is_transient(fault).then(|| match is_costly(fault) {
            true => now + backoff(rules.retry, rules.quarantine, times, random()),
            false => now + rules.retry,
        });
        let refusal = Refusal::of(fault);
        entry.slot.refuse(&revision, retry, refusal.clone());
        let digest = Some(revision.digest);
        match &mut entry.problem {
            // A retry with the same end is not reported again, even where its figures are others.
            Some(problem) if retry.is_some() && is_same && problem.digest == digest => {
                problem.reason = refusal.reason;
            }
            _ => self.refuse(name, digest, refusal.step, refusal.reason),
        }
        retry
    }

    /// Whether exactly the configured policies are active, with the configured settings. Their components may be
    /// earlier ones.
    pub(super) fn matches_configuration(&self, specs: &[PolicySpec]) -> bool {
        self.runs(specs, |_, _| false)
    }

    /// The same, where a policy may also have been rolled back from the configured settings.
    pub(super) fn follows_configuration(&self, specs: &[PolicySpec]) -> bool {
        self.runs(specs, |name, settings| {
            let entry = self.entries.get(name);
            let mut away = entry.into_iter().flat_map(|entry| entry.slot.quarantined());
            away.any(|away| away.revision.settings == settings)
        })
    }

    fn runs(&self, specs: &[PolicySpec], may_differ: impl Fn(&str, &str) -> bool) -> bool {
        let active = self.catalogue.active();
        let is = |(spec, member): (&PolicySpec, &Arc<Member>)| {
            let wanted = Revision::of(spec, "").settings;
            member.name() == spec.name
                && (member.revision.settings == wanted || may_differ(&spec.name, &wanted))
        };
        active.members.len() == specs.len() && specs.iter().zip(&active.members).all(is)
    }

    /// Builds the next generation of the policies that are ready. A chain with other names or modes is only activated
    /// when all of its policies are ready: half a configuration could evict pods that a missing policy would keep.
    fn advance(&mut self, wanted: &[WantedPolicy]) {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let before: Vec<String> = active
            .members
            .iter()
            .map(|member| member.name().to_owned())
            .collect();
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|(name, mode)| {
                let ready = self.entries.get(name).is_some_and(|entry| entry.is_ready(mode));
                !ready && active.member(name).is_none_or(|member| member.mode() != mode)
            })
            .map(|(name, _)| name)
            .collect();
        let chain = if missing.is_empty() {
            wanted.iter().map(|(name, _)| name.clone()).collect()
        } else {
            before.clone()
        };
        for name in &missing {
            if self
                .entries
                .get(*name)
                .is_none_or(|entry| entry.problem.is_none())
            {
                self.refuse(name, None, "not-loaded", "it is not loaded yet".to_owned());
            }
        }
        let number = active.number + 1;
        let mut members = Vec::with_capacity(chain.len());
        let mut activated = Vec::new();
        for name in &chain {
            let entry = self.entries.entry(name.clone()).or_default();
            let may_join = |policy: &LoadedPolicy| {
                let mode = &policy.description.mode;
                let is_wanted = wanted.iter().any(|(other, of)| other == name && of == mode);
                let before = active.member(name).map(|member| member.mode());
                is_wanted && (missing.is_empty() || before == Some(mode))
            };
            if let Some((revision, policy)) = entry.ready.take_if(|(_, policy)| may_join(policy)) {
                let before = active.member(name);
                let mode = &policy.description.mode;
                entry.activate(revision.clone(), mode, before);
                activated.push(ReloadNotice::Activated {
                    name: name.clone(),
                    digest: revision.digest.clone(),
                    version: policy.description.version.clone(),
                    generation: number,
                    is_shadow: mode.is_shadow(),
                });
                members.push(Arc::new(Member::new(policy, revision, number, now)));
            } else {
                members.extend(active.member(name).cloned());
            }
        }
        if !activated.is_empty() || chain != before {
            self.catalogue.swap(Generation { number, members });
            let removed = before.into_iter().filter(|name| !chain.contains(name));
            let removed: Vec<_> = removed.map(|name| ReloadNotice::Removed { name }).collect();
            for notice in activated.into_iter().chain(removed) {
                self.notify(notice);
            }
        }
        if missing.is_empty() {
            self.entries.retain(|name, _| chain.contains(name));
        }
        self.publish();
    }
}

/// An unpredictable number.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
