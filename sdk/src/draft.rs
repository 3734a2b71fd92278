//! Edits a plan and keeps it valid: every pod has one verdict, every leaving pod is in one wave, and the driver's own pod
//! leaves last.
//!
//! Edits tighten: what an earlier policy of the chain decided stays, unless [`Draft::overrule`] replaces it.

mod holds;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Decision, Plan, Pod, Verdict, Wave,
    held::Held,
    hold::Hold,
    invisible::is_invisible,
    outcome::milliseconds,
    protection::{Protection, Wish},
};

/// The host's limit for a reason.
const REASON_BYTES: usize = 256;
/// Between an explanation and the reason that it explains, as the host knows it.
pub(crate) const EXPLAINS: &str = "; ";

/// The plan so far, and the pods it is about.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    pods: &'a [Pod],
    /// The index in `pods` of each UID.
    positions: BTreeMap<&'a str, usize>,
    /// One for each pod, in the order of `pods`.
    decisions: Vec<Decision>,
    /// The wave of each pod, and its turn within the wave. A pod that stays keeps them, in case it leaves after all.
    places: Vec<Option<Place>>,
    turns: usize,
    /// The names and limits. Their pods are filled in at the end.
    waves: Vec<Wave>,
    /// How earlier policies protect each pod, in the order of `pods`.
    protections: Vec<Protection>,
}

/// The index of the wave, then the turn.
type Place = (usize, usize);

/// Sets the limits of a wave.
#[derive(Debug)]
pub struct WaveLimits<'d>(&'d mut Wave);

impl<'a> Draft<'a> {
    /// A draft of `plan` for these pods. [`export!`](crate::export) creates it; authors need this only in tests.
    pub fn new(pods: &'a [Pod], plan: Plan) -> Self {
        let positions = pods
            .iter()
            .enumerate()
            .map(|(at, pod)| (pod.uid.as_str(), at))
            .collect();
        let undecided = pods.iter().map(|pod| Decision {
            pod: pod.uid.clone(),
            verdict: Verdict::Keep,
            reason: "undecided".to_owned(),
            policy: String::new(),
        });
        let mut draft = Self {
            pods,
            positions,
            decisions: undecided.collect(),
            places: vec![None; pods.len()],
            turns: 0,
            waves: Vec::with_capacity(plan.waves.len()),
            protections: vec![Protection::default(); pods.len()],
        };
        for decision in plan.decisions {
            if let Some(slot) = draft
                .position(&decision.pod)
                .and_then(|at| draft.decisions.get_mut(at))
            {
                *slot = decision;
            }
        }
        for mut wave in plan.waves {
            let pods = std::mem::take(&mut wave.pods);
            draft.waves.push(wave);
            for uid in pods {
                draft.place(&uid, draft.waves.len() - 1);
            }
        }
        draft.protections = draft.protections();
        draft
    }

    /// How the policies protect the pods whose plan this is.
    fn protections(&self) -> Vec<Protection> {
        let of = |(decision, place): (&Decision, &Option<Place>)| {
            let wave = place.and_then(|(wave, _)| self.waves.get(wave));
            Protection::of(decision, wave)
        };
        self.decisions.iter().zip(&self.places).map(of).collect()
    }

    /// The pod leaves through the Eviction API, which respects disruption budgets.
    pub fn evict(&mut self, pod: &Pod, reason: impl AsRef<str>) {
        self.decide(pod, Verdict::Evict, reason);
    }

    /// The pod leaves by plain deletion, which does not respect disruption budgets.
    pub fn delete(&mut self, pod: &Pod, reason: impl AsRef<str>) {
        self.decide(pod, Verdict::Delete, reason);
    }

    /// The pod leaves by itself: the drain waits until its containers have ended.
    pub fn await_completion(&mut self, pod: &Pod, reason: impl AsRef<str>) {
        self.decide(pod, Verdict::AwaitCompletion, reason);
    }

    /// The pod stays, and the drain does not wait for it.
    pub fn keep(&mut self, pod: &Pod, reason: impl AsRef<str>) {
        self.decide(pod, Verdict::Keep, reason);
    }

    /// The pod must not leave, so the drain does not begin.
    pub fn refuse(&mut self, pod: &Pod, reason: impl AsRef<str>) {
        self.decide(pod, Verdict::Refuse, reason);
    }

    /// Gives the pod a verdict with a reason: one line, cut off after 256 bytes. The same as [`tighten`](Self::tighten)
    /// without a hold.
    ///
    /// A pod that newly leaves joins the last wave; a pod that now stays is removed from its wave. A mirror pod cannot
    /// leave, so a verdict that would make it leave is ignored.
    pub fn decide(&mut self, pod: &Pod, verdict: Verdict, reason: impl AsRef<str>) {
        self.tighten(pod, verdict, None, reason);
    }

    /// Gives the pod a verdict, and time until the end of a hold, as far as this protects it more than an earlier policy
    /// does. Verdicts protect in this order: `Delete`, `Evict`, `AwaitCompletion`, `Keep`, `Refuse`. So an earlier `Keep`
    /// stays where a later policy evicts, and a pod that two policies hold leaves when both let it. The host's own draft
    /// protects nothing.
    ///
    /// Returns whether the verdict or the hold counts now, beside those of earlier policies. If so, pass the hold to
    /// [`hold`](Self::hold) as well, which makes its wave.
    ///
    /// ```
    /// # use scupper_sdk::{*, testing::{Host, pod}};
    /// # use std::time::Duration;
    /// let pods = [pod("batch/report")];
    /// let mut draft = Draft::new(&pods, Host::new().draft().plan().clone());
    /// draft.await_completion(&pods[0], "namespace batch");
    /// let mut earlier = draft.finish();
    /// earlier.decisions[0].policy = "namespace-modes".to_owned();
    ///
    /// let mut draft = Draft::new(&pods, earlier);
    /// let hold = Hold::at_most(Duration::from_secs(600));
    /// assert!(!draft.tighten(&pods[0], Verdict::Evict, Some(hold), "a job, evicted after 10m"));
    /// assert_eq!(draft.decision(&pods[0]).unwrap().verdict, Verdict::AwaitCompletion);
    /// ```
    pub fn tighten(
        &mut self,
        pod: &Pod,
        verdict: Verdict,
        hold: Option<Hold>,
        reason: impl AsRef<str>,
    ) -> bool {
        let Some(earlier) = self.decision(pod).cloned() else {
            return false;
        };
        let reason = reason.as_ref();
        let wish = Wish {
            verdict,
            hold,
            reason,
        };
        match self.protection(pod).joined(&wish, &earlier.reason) {
            Some((verdict, reason)) => {
                self.set(pod, verdict, &reason);
                true
            }
            // An earlier hold lasts longer, but may end earlier than this policy lets the pod leave.
            None => hold.is_some() && earlier.verdict.removes(),
        }
    }

    /// Gives the pod a verdict with a reason even if an earlier policy protects the pod more, and frees it from that
    /// policy's hold. Only for what the operator configured for this policy by a key of its own: `scupper plan` and
    /// `scupper doctor` warn of each such pod.
    pub fn overrule(&mut self, pod: &Pod, verdict: Verdict, reason: impl AsRef<str>) {
        if let Some(at) = self.position(&pod.uid)
            && let Some(protection) = self.protections.get_mut(at)
        {
            *protection = Protection::default();
        }
        self.set(pod, verdict, reason.as_ref());
    }

    /// Puts this before the reason of a pod's verdict, as far as there is room: `held by a lock; managed by ReplicaSet web`.
    /// The verdict stays, also as that of the policy that decided it.
    pub fn explain(&mut self, pod: &Pod, why: impl AsRef<str>) {
        if let Some(Decision { verdict, reason, .. }) = self.decision(pod).cloned() {
            let room = REASON_BYTES.saturating_sub(reason.len() + EXPLAINS.len());
            let why = one_line(why.as_ref(), room);
            if !why.is_empty() {
                self.set(pod, verdict, &format!("{why}{EXPLAINS}{reason}"));
            }
        }
    }

    fn set(&mut self, pod: &Pod, verdict: Verdict, reason: &str) {
        if pod.mirror && verdict.leaves() {
            return;
        }
        if let Some(decision) = self.position(&pod.uid).and_then(|at| self.decisions.get_mut(at)) {
            decision.verdict = verdict;
            decision.reason = one_line(reason, REASON_BYTES);
        }
    }

    /// Puts a pod at the end of a wave. This does not change whether the pod leaves. A new name adds a wave after all
    /// others, except those at the end whose pods the drain [only awaits](Self::await_last). A pod that an earlier policy holds stays in its wave, unless this one holds it for as long: then both hold
    /// it. A name that ends like `-after-10m` is that of a [hold](Self::hold).
    pub fn move_to_wave(&mut self, pod: &Pod, wave: &str) {
        let earlier = self.protection(pod).held().filter(|_| self.removes(pod));
        let joint = match (earlier, Held::of_wave(wave)) {
            (None, _) => None,
            (Some(_), own) if self.protection(pod).outlasts(own.as_ref().map(Held::hold)) => return,
            (Some(earlier), own) => own.map(|own| own.with(earlier)),
        };
        match joint {
            Some(held) => self.place_in_hold(pod, &held),
            None => {
                let wave = self.wave_position(wave);
                self.place(&pod.uid, wave);
            }
        }
    }

    /// Lets these waves leave one after the other, in this order, from the place of the first of them on. New names add
    /// waves after all others; the finished plan omits waves without pods. Waves with other names keep their order, and so
    /// do those that a policy [holds](Self::hold): their times order them.
    ///
    /// ```
    /// # use scupper_sdk::{Draft, Pod};
    /// # fn plan(draft: &mut Draft<'_>, database: &Pod) {
    /// draft.order_waves(["stateless", "stateful"]);
    /// draft.move_to_wave(database, "stateful");
    /// # }
    /// ```
    pub fn order_waves<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let names = names.into_iter().filter(|name| Hold::of_wave(name).is_none());
        let names: Vec<&str> = names.collect();
        for name in &names {
            self.wave_position(name);
        }
        let mut wanted: Vec<usize> = Vec::new();
        for name in names {
            let at = self.wave_position(name);
            if !wanted.contains(&at) {
                wanted.push(at);
            }
        }
        let first = wanted.iter().min().copied().unwrap_or_default();
        let others = (0..self.waves.len()).filter(|at| !wanted.contains(at));
        let (before, after): (Vec<usize>, Vec<usize>) = others.partition(|at| *at < first);
        // Where each wave comes from.
        let sources = [before, wanted, after].concat();
        let waves = sources.iter().filter_map(|&at| self.waves.get(at).cloned());
        self.waves = waves.collect();
        for (place, _) in self.places.iter_mut().flatten() {
            *place = sources.iter().position(|at| at == place).unwrap_or(*place);
        }
    }

    /// The limits of a wave, by its name. A new name adds a wave after all others; the finished plan omits waves without
    /// pods.
    pub fn wave(&mut self, name: &str) -> WaveLimits<'_> {
        let at = self.wave_position(name);
        #[expect(clippy::indexing_slicing, reason = "the position of a wave that exists")]
        WaveLimits(&mut self.waves[at])
    }

    /// All pods on the node, in the order of the host.
    pub fn pods(&self) -> &'a [Pod] {
        self.pods
    }

    /// The pods that leave, in the order in which they leave.
    pub fn leaving(&self) -> Vec<&'a Pod> {
        let unplaced = (self.last_wave().unwrap_or_default(), usize::MAX);
        let pods = self.pods.iter().zip(&self.decisions).zip(&self.places);
        let mut leaving: Vec<(Place, &'a Pod)> = pods
            .filter(|((_, decision), _)| decision.verdict.leaves())
            .map(|((pod, _), place)| (place.unwrap_or(unplaced), pod))
            .collect();
        leaving.sort_by_key(|(place, pod)| (pod.driver, *place));
        leaving.into_iter().map(|(_, pod)| pod).collect()
    }

    /// Those of them that can be given time: without pods that have ended and the driver's own.
    pub fn running(&self) -> Vec<&'a Pod> {
        let mut leaving = self.leaving();
        leaving.retain(|pod| !pod.is_finished() && !pod.driver);
        leaving
    }

    /// The verdict on the pod, and its reason.
    pub fn decision(&self, pod: &Pod) -> Option<&Decision> {
        self.position(&pod.uid).and_then(|at| self.decisions.get(at))
    }

    /// Whether the pod is gone at the end of the drain.
    pub fn leaves(&self, pod: &Pod) -> bool {
        self.decision(pod)
            .is_some_and(|decision| decision.verdict.leaves())
    }

    /// Whether the drain itself removes the pod: it evicts or deletes it, and does not only await its end.
    pub fn removes(&self, pod: &Pod) -> bool {
        self.decision(pod)
            .is_some_and(|decision| decision.verdict.removes())
    }

    /// The name of the wave in which the pod leaves.
    pub fn wave_of(&self, pod: &Pod) -> Option<&str> {
        if !self.leaves(pod) {
            return None;
        }
        let wave = self
            .place_of(pod)
            .map(|(wave, _)| wave)
            .or_else(|| self.last_wave())?;
        self.waves.get(wave).map(|wave| wave.name.as_str())
    }

    /// The finished plan. It omits waves without pods, puts leaving pods without a wave into the last one, and the
    /// driver's own pod into a wave of its own after all others.
    pub fn finish(mut self) -> Plan {
        for pod in self.leaving().into_iter().filter(|pod| !pod.driver) {
            let wave = self
                .place_of(pod)
                .map(|(wave, _)| wave)
                .or_else(|| self.last_wave());
            let wave = wave.unwrap_or_else(|| self.wave_position("all"));
            if let Some(wave) = self.waves.get_mut(wave) {
                wave.pods.push(pod.uid.clone());
            }
        }
        let driver = self.pods.iter().find(|pod| pod.driver && self.leaves(pod));
        let own_wave = driver
            .and_then(|driver| self.place_of(driver))
            .map(|(wave, _)| wave);
        let own_wave = own_wave
            .and_then(|wave| self.waves.get(wave).cloned())
            .filter(|wave| wave.pods.is_empty());
        self.waves.retain(|wave| !wave.pods.is_empty());
        if let Some(driver) = driver {
            let mut wave = own_wave.unwrap_or_else(|| Wave::new("driver", Vec::new()));
            while self.waves.iter().any(|other| other.name == wave.name) {
                wave.name.push_str("-last");
            }
            wave.pods.push(driver.uid.clone());
            self.waves.push(wave);
        }
        Plan {
            decisions: self.decisions,
            waves: self.waves,
        }
    }

    fn position(&self, uid: &str) -> Option<usize> {
        self.positions.get(uid).copied()
    }

    fn protection(&self, pod: &Pod) -> &Protection {
        let at = self.position(&pod.uid);
        let known = at.and_then(|at| self.protections.get(at));
        known.unwrap_or(&Protection::NONE)
    }

    fn place_of(&self, pod: &Pod) -> Option<Place> {
        self.places.get(self.position(&pod.uid)?).copied().flatten()
    }

    fn place(&mut self, uid: &str, wave: usize) {
        self.turns += 1;
        if let Some(place) = self.position(uid).and_then(|at| self.places.get_mut(at)) {
            *place = Some((wave, self.turns));
        }
    }

    fn wave_position(&mut self, name: &str) -> usize {
        let known = self.waves.iter().position(|wave| wave.name == name);
        known.unwrap_or_else(|| self.insert_wave(self.first_awaiting(), Wave::new(name, Vec::new())))
    }

    fn insert_wave(&mut self, at: usize, wave: Wave) -> usize {
        self.waves.insert(at, wave);
        for (place, _) in self.places.iter_mut().flatten().filter(|(place, _)| *place >= at) {
            *place += 1;
        }
        at
    }

    /// The last wave apart from the driver's: the default for leaving pods.
    fn last_wave(&self) -> Option<usize> {
        let driver = self.pods.iter().find(|pod| pod.driver);
        let driver = driver
            .and_then(|driver| self.place_of(driver))
            .map(|(wave, _)| wave);
        (0..self.waves.len()).rev().find(|wave| Some(*wave) != driver)
    }
}

impl WaveLimits<'_> {
    /// The most pods that leave at the same time.
    pub fn max_parallel(self, pods: u32) -> Self {
        self.0.max_parallel = Some(pods);
        self
    }

    /// How long the next wave waits for this one at most.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.0.timeout = Some(milliseconds(timeout));
        self
    }

    /// Caps the grace period of the wave's pods; a pod with a shorter one keeps it. 0 counts as 1.
    pub fn max_grace_period_seconds(self, seconds: u64) -> Self {
        self.0.max_grace_period_seconds = Some(seconds);
        self
    }
}

fn one_line(text: &str, bytes: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if is_invisible(c) { ' ' } else { c })
        .collect();
    let end = (0..=bytes.min(line.len()))
        .rev()
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or(0);
    line.truncate(end);
    line
}
