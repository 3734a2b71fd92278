//! Edits a plan and keeps it valid: every pod has one verdict, every leaving pod is in one wave, and the driver's own pod
//! leaves last.
//!
//! Edits tighten: what an earlier policy of the chain decided stays, unless [`Draft::overrule`] replaces it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    Decision, Drain, Plan, Pod, Verdict, Wave,
    hold::{Hold, whole_seconds},
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
    /// stays where a later policy evicts, and of two holds the longer one counts. The host's own draft protects nothing.
    ///
    /// Returns whether the verdict or the hold counts now. If so, pass the hold to [`hold`](Self::hold) as well, which
    /// makes its wave.
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
        let Some(earlier) = self.decision(pod) else {
            return false;
        };
        let reason = reason.as_ref();
        let wish = Wish {
            verdict,
            hold,
            reason,
        };
        let Some((verdict, reason)) = self.protection(pod).joined(&wish, &earlier.reason) else {
            return false;
        };
        self.set(pod, verdict, &reason);
        true
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
    /// others. A pod that an earlier policy holds stays in its wave, unless this one holds it for as long. A name that ends
    /// like `-after-10m` is that of a [hold](Self::hold).
    pub fn move_to_wave(&mut self, pod: &Pod, wave: &str) {
        let is_removed = self.decision(pod).is_some_and(|it| it.verdict.removes());
        let own = Hold::of_wave(wave).map(|(_, hold)| hold);
        if is_removed && self.protection(pod).outlasts(own) {
            return;
        }
        let wave = self.wave_position(wave);
        self.place(&pod.uid, wave);
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

    /// Gives pods time to end by themselves: each leaves in the wave of its hold, after all others. This does not change
    /// whether the pod leaves. The hook that holds these waves is [`hold::step`](crate::hold::step). A pod that an earlier
    /// policy holds for longer stays in its wave, and a pod whose end the drain awaits needs no hold.
    ///
    /// The time of a pod counts from the start of the drain, or from its arrival if it came later.
    ///
    /// So that a stuck pod delays no hold, the other waves share the time until the first one is over, and each hold's wave
    /// lasts until the next one is over.
    ///
    /// `whose` begins the names of these waves: a word that no other policy uses.
    pub fn hold<'p>(&mut self, whose: &str, drain: &Drain, pods: impl IntoIterator<Item = (&'p Pod, Hold)>) {
        for (pod, hold) in pods {
            let awaited = |decision: &Decision| decision.verdict == Verdict::AwaitCompletion;
            let hold = self.protection(pod).longest(hold.of_pod(pod, drain));
            if let Some(hold) = hold.filter(|_| !self.decision(pod).is_some_and(awaited)) {
                self.add_hold(whose, hold);
                self.move_to_wave(pod, &hold.wave(whose));
            }
        }
        self.set_wave_timeouts(drain);
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

    fn protection(&self, pod: &Pod) -> Protection {
        let at = self.position(&pod.uid);
        let known = at.and_then(|at| self.protections.get(at));
        known.copied().unwrap_or_default()
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
        self.waves
            .iter()
            .position(|wave| wave.name == name)
            .unwrap_or_else(|| {
                self.waves.push(Wave::new(name, Vec::new()));
                self.waves.len() - 1
            })
    }

    /// Adds the wave of a hold: after all waves of shorter ones, also those of other policies.
    fn add_hold(&mut self, whose: &str, hold: Hold) {
        let name = hold.wave(whose);
        if self.waves.iter().any(|wave| wave.name == name) {
            return;
        }
        let is_later = |wave: &Wave| Hold::of_wave(&wave.name).is_some_and(|(_, other)| other > hold);
        let at = self.waves.iter().position(is_later).unwrap_or(self.waves.len());
        let mut wave = Wave::new(name, Vec::new());
        wave.max_grace_period_seconds = hold.grace().map(|grace| grace.as_secs());
        self.waves.insert(at, wave);
        for (place, _) in self.places.iter_mut().flatten().filter(|(place, _)| *place >= at) {
            *place += 1;
        }
    }

    /// Sets timeouts so that no wave delays that of the next hold.
    fn set_wave_timeouts(&mut self, drain: &Drain) {
        let others = self.leaving().into_iter().filter(|pod| !pod.driver);
        let places = others.filter_map(|pod| self.place_of(pod));
        let used: BTreeSet<usize> = places.map(|(wave, _)| wave).collect();
        let is_hold = |wave: &Wave| Hold::of_wave(&wave.name).is_some();
        let holds = self.waves.iter().filter_map(|wave| Hold::of_wave(&wave.name));
        let lefts: Vec<Duration> = holds.map(|(_, hold)| hold.left(drain)).collect();
        let Some(first) = lefts.first() else {
            return;
        };
        let timeout = |time: Duration| milliseconds(whole_seconds(time));
        let ordinary = self.waves.iter().enumerate();
        let ordinary = ordinary.filter(|(at, wave)| used.contains(at) && !is_hold(wave));
        let ordinary = u32::try_from(ordinary.count()).unwrap_or(u32::MAX);
        let share = timeout(*first / ordinary.max(1));
        let pairs = lefts.iter().zip(lefts.iter().skip(1));
        let mut spans = pairs.map(|(one, next)| timeout(next.saturating_sub(*one)));
        for (at, wave) in self.waves.iter_mut().enumerate() {
            if is_hold(wave) {
                wave.timeout = spans.next();
            } else if used.contains(&at) {
                wave.timeout = Some(wave.timeout.map_or(share, |own| own.min(share)));
            }
        }
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
