//! All policies' places, and the only one who swaps: what was found becomes candidates, what was loaded becomes the
//! next generation, and everything that happens is told.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use scupper_common::clock::Clock;
use scupper_engine::Time;
use scupper_policy::{LoadFault, LoadedPolicy};
use scupper_policy_spec::PolicySpec;
use tokio::sync::mpsc;

use super::candidate::{Material, may_pass};
use super::catalogue::{Catalogue, Generation, Member};
use super::notice::ReloadNotice;
use super::revision::Edition;
use super::rules::ReloadRules;
use super::scan::{Found, Known};
use super::slot::{Judgement, Slot};
use super::status::{SlotProblem, SlotState};
use super::store::{Index, Kept};

/// All policies' places.
pub(super) struct Roster {
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) clock: Clock,
    pub(super) rules: ReloadRules,
    pub(super) notices: mpsc::UnboundedSender<ReloadNotice>,
    pub(super) places: BTreeMap<String, Place>,
    /// The last problem with the configuration as a whole.
    pub(super) configuration: Option<String>,
}

/// One policy's place.
#[derive(Default)]
pub(super) struct Place {
    pub(super) slot: Slot,
    /// The edition before, ready to be called: going back must not depend on a disk.
    pub(super) previous: Option<Arc<LoadedPolicy>>,
    /// The edition before that one, when a former process had it: a drain of that process may have been on it.
    pub(super) older: Option<(Edition, Arc<LoadedPolicy>)>,
    /// Loaded, and waiting for the rest of its configuration.
    pub(super) ready: Option<(Edition, Arc<LoadedPolicy>)>,
    /// How it stands, when not simply active.
    pub(super) state: Option<SlotState>,
    pub(super) problem: Option<SlotProblem>,
}

impl Place {
    /// Another edition is active.
    fn activate(&mut self, edition: Edition, before: Option<&Arc<Member>>) {
        self.slot.activate(edition);
        self.previous = before.map(|before| Arc::clone(&before.policy));
        self.older = None;
        self.back_to_active();
    }

    /// What the operator wants is what is active.
    fn back_to_active(&mut self) {
        self.state = None;
        self.problem = None;
    }
}

/// A candidate to be loaded.
pub(super) struct Candidate {
    pub(super) spec: PolicySpec,
    pub(super) edition: Edition,
    pub(super) material: Material,
}

/// A candidate after that.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) edition: Edition,
    pub(super) result: Result<LoadedPolicy, LoadFault>,
}

/// What a look comes to.
#[derive(Default)]
pub(super) struct Sifted {
    pub(super) candidates: Vec<Candidate>,
    /// What could not even be read.
    pub(super) unread: Vec<(String, LoadFault)>,
    /// What was rolled back by a former process and stays away.
    pub(super) away: Vec<String>,
    /// When something must be looked at again, whatever happens.
    pub(super) again: Option<Time>,
}

impl Roster {
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
            places: BTreeMap::new(),
            configuration: None,
        }
    }

    /// What a look need not read.
    pub(super) fn known(&self) -> Known {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let mut known = Known::default();
        for (name, place) in &self.places {
            let editions = place.slot.known(now).cloned();
            known
                .editions
                .extend(editions.map(|edition| (name.clone(), edition)));
        }
        for member in &active.members {
            let previous = self.places.get(member.name());
            let previous = previous.and_then(|place| place.previous.as_ref());
            for policy in previous.into_iter().chain([&member.policy]) {
                let digest = policy.description.digest.clone();
                known.digests.insert((member.name().to_owned(), digest));
            }
        }
        known
    }

    /// What of all that was found has to be loaded.
    pub(super) fn sift(&mut self, found: Vec<Found>) -> Sifted {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let mut sifted = Sifted::default();
        for Found { spec, module } in found {
            let module = match module {
                Ok(module) => module,
                Err(error) => {
                    let fault = LoadFault::Source(error);
                    self.reject(&spec.name, None, &fault);
                    sifted.unread.push((spec.name, fault));
                    continue;
                }
            };
            let edition = Edition::of(&spec, &module.digest);
            let place = self.places.entry(spec.name.clone()).or_default();
            if matches!(&place.ready, Some((ready, _)) if *ready == edition) {
                continue;
            }
            let previous = place.previous.as_ref();
            let at_hand = active.member(&spec.name).map(|member| &member.policy);
            let at_hand = at_hand
                .into_iter()
                .chain(previous)
                .find(|policy| policy.description.digest == edition.digest);
            let material = match (module.wasm, at_hand) {
                (Some(wasm), _) => Some(Material::Wasm(wasm)),
                (None, at_hand) => at_hand.cloned().map(Material::Same),
            };
            let again = match (place.slot.judge(now, &edition, &self.rules, chance()), material) {
                (Judgement::Try, Some(material)) => {
                    sifted.candidates.push(Candidate {
                        spec,
                        edition,
                        material,
                    });
                    None
                }
                // It was active when the look began: look again for its bytes.
                (Judgement::Try, None) => Some(now),
                (Judgement::TooSoon(next), _) => Some(next),
                (Judgement::Quarantined(until), _) => {
                    sifted.away.push(spec.name);
                    until
                }
                (Judgement::Same, _) => {
                    place.back_to_active();
                    None
                }
                (Judgement::Known, _) => None,
            };
            sifted.again = sifted.again.into_iter().chain(again).min();
        }
        sifted
    }

    /// Everything was loaded or not: the next generation, if there is one. `names` is the chain that is wanted.
    pub(super) fn settle(&mut self, names: &[String], tried: Vec<Tried>) -> Option<Time> {
        let mut again = None;
        let now = self.clock.now();
        for Tried {
            name,
            edition,
            result,
        } in tried
        {
            self.places.entry(name.clone()).or_default().slot.through(now);
            match result {
                Ok(loaded) => {
                    self.places.entry(name).or_default().ready = Some((edition, Arc::new(loaded)));
                }
                Err(fault) => {
                    let retry = self.turn_down(&name, edition, &fault);
                    again = again.into_iter().chain(retry).min();
                }
            }
        }
        self.advance(names);
        again
    }

    /// It did not make it. Answers when it is tried again, if that could help.
    pub(super) fn turn_down(&mut self, name: &str, edition: Edition, fault: &LoadFault) -> Option<Time> {
        let retry = may_pass(fault).then(|| self.clock.now() + self.rules.retry);
        let place = self.places.entry(name.to_owned()).or_default();
        place.slot.refuse(&edition, retry);
        self.reject(name, Some(edition.digest), fault);
        retry
    }

    /// What a former process knew.
    pub(super) fn recall(&mut self, index: &Index) {
        for (name, kept) in index {
            let place = self.places.entry(name.clone()).or_default();
            place.slot.recall(kept.quarantined());
        }
    }

    /// An edition that a former process had: there is a way back to the newest of them.
    pub(super) fn recall_previous(&mut self, name: &str, edition: Edition, policy: LoadedPolicy) {
        let active = self.catalogue.active();
        let place = self.places.entry(name.to_owned()).or_default();
        let news = active
            .member(name)
            .is_some_and(|member| member.edition != edition);
        if news && place.previous.is_none() {
            place.slot.recall_previous(edition);
            place.previous = Some(Arc::new(policy));
        } else if news && place.older.is_none() {
            place.older = Some((edition, Arc::new(policy)));
        }
        self.publish();
    }

    /// Editions of a policy that are at hand besides the active one, the newest first.
    pub(super) fn kept(&self, name: &str) -> Vec<Arc<Member>> {
        let Some(place) = self.places.get(name) else {
            return Vec::new();
        };
        let previous = place.slot.previous().cloned().zip(place.previous.clone());
        let member = |(edition, policy)| Arc::new(Member::new(policy, edition, 0, self.clock.now()));
        let kept: Vec<_> = previous
            .into_iter()
            .chain(place.older.clone())
            .map(member)
            .collect();
        self.catalogue.remember(&kept);
        kept
    }

    /// What the next process has to know.
    pub(super) fn record(&self) -> Index {
        let active = self.catalogue.active();
        let kept = active.members.iter().filter_map(|member| {
            let slot = &self.places.get(member.name())?.slot;
            let kept = Kept::new(slot.active()?, slot.previous(), slot.quarantined());
            Some((member.name().to_owned(), kept))
        });
        kept.collect()
    }

    /// Whether every policy that is wanted, and no other, is active with what is said of it. Its component may be an
    /// earlier one.
    pub(super) fn is_as_said(&self, specs: &[PolicySpec]) -> bool {
        let active = self.catalogue.active();
        let said = specs
            .iter()
            .map(|spec| (spec.name.as_str(), Edition::of(spec, "").settings));
        let runs = active
            .members
            .iter()
            .map(|member| (member.name(), member.edition.settings.clone()));
        said.eq(runs)
    }

    /// The next generation of what is ready. A chain with other names is only taken when all of them can be called:
    /// half a configuration could let pods go that a policy would have kept.
    fn advance(&mut self, names: &[String]) {
        let now = self.clock.now();
        let active = self.catalogue.active();
        let before: Vec<String> = active
            .members
            .iter()
            .map(|member| member.name().to_owned())
            .collect();
        let missing: Vec<&String> = names
            .iter()
            .filter(|name| {
                let ready = self.places.get(*name).is_some_and(|place| place.ready.is_some());
                !ready && active.member(name).is_none()
            })
            .collect();
        let chain = if missing.is_empty() {
            names.to_vec()
        } else {
            before.clone()
        };
        for name in &missing {
            if self.places.get(*name).is_none_or(|place| place.problem.is_none()) {
                self.refuse(name, None, "not-loaded", "it is not loaded yet".to_owned());
            }
        }
        let number = active.number + 1;
        let mut members = Vec::with_capacity(chain.len());
        let mut activated = Vec::new();
        for name in &chain {
            let place = self.places.entry(name.clone()).or_default();
            if let Some((edition, policy)) = place.ready.take() {
                let before = active.member(name);
                place.activate(edition.clone(), before);
                activated.push(ReloadNotice::Activated {
                    name: name.clone(),
                    digest: edition.digest.clone(),
                    version: policy.description.version.clone(),
                    generation: number,
                });
                members.push(Arc::new(Member::new(policy, edition, number, now)));
            } else {
                members.extend(active.member(name).cloned());
            }
        }
        if !activated.is_empty() || chain != before {
            self.catalogue.swap(Generation { number, members });
            let removed = before.into_iter().filter(|name| !chain.contains(name));
            let removed: Vec<_> = removed.map(|name| ReloadNotice::Removed { name }).collect();
            for notice in activated.into_iter().chain(removed) {
                self.tell(notice);
            }
        }
        if missing.is_empty() {
            self.places.retain(|name, _| chain.contains(name));
        }
        self.publish();
    }
}

/// A number nobody can foretell.
pub(super) fn chance() -> u64 {
    RandomState::new().hash_one(0_u8)
}
