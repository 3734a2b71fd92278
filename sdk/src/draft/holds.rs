//! Waves that are held until a time, and waves of pods whose end the drain awaits.

use std::{collections::BTreeSet, time::Duration};

use super::Draft;
use crate::{
    Drain, Pod, Verdict, Wave,
    held::Held,
    hold::{Hold, whole_seconds},
    outcome::milliseconds,
};

/// The wave of pods that leave only when they have ended.
const COMPLETION: &str = "completion";

impl Draft<'_> {
    /// Gives pods time to end by themselves: each leaves in the wave of its hold, after all others. This does not change
    /// whether the pod leaves. The hook that holds these waves is [`hold::step`](crate::hold::step). A pod whose end the
    /// drain awaits needs no hold.
    ///
    /// A pod that earlier policies hold as well leaves in a wave that all of them hold: `jobs-after-1h+gangs-after-2h`. Each
    /// policy's hook waits for what that policy awaits, at most for that policy's time.
    ///
    /// The time of a pod counts from the start of the drain, or from its arrival if it came later.
    ///
    /// So that a stuck pod delays no hold, the waves before it share the time until the first one is over, and each hold's
    /// wave lasts until the next one is over.
    ///
    /// `whose` begins the names of these waves: a word that no other policy uses.
    pub fn hold<'p>(&mut self, whose: &str, drain: &Drain, pods: impl IntoIterator<Item = (&'p Pod, Hold)>) {
        for (pod, hold) in pods {
            if self.is_awaited(pod) {
                continue;
            }
            let own = Held::by(whose, hold.of_pod(pod, drain));
            let held = match self.protection(pod).held() {
                Some(earlier) => earlier.clone().with(&own),
                None => own,
            };
            self.place_in_hold(pod, &held);
        }
        self.set_wave_timeouts(drain);
    }

    /// Lets these pods leave together. If policies hold some of them, all leave in one wave that all these policies hold,
    /// else in the last of their waves. This does not change whether a pod leaves.
    pub fn gather<'p>(&mut self, drain: &Drain, pods: impl IntoIterator<Item = &'p Pod>) {
        let pods: Vec<&Pod> = pods.into_iter().filter(|pod| self.leaves(pod)).collect();
        let waves = pods.iter().filter_map(|pod| self.wave_of(pod));
        let held = waves.filter_map(Held::of_wave);
        if let Some(held) = held.reduce(|one, other| one.with(&other)) {
            let wave = self.hold_position(&held.name(), held.hold());
            // One after the other, also those that stand there already.
            for pod in pods {
                self.place(&pod.uid, wave);
            }
            self.set_wave_timeouts(drain);
            return;
        }
        let Some(last) = self.last_wave() else {
            return;
        };
        let place = |pod: &&Pod| self.place_of(pod).map_or(last, |(wave, _)| wave);
        let wave = pods.iter().map(place).max();
        for pod in pods {
            self.place(&pod.uid, wave.unwrap_or(last));
        }
    }

    /// Lets those of these pods whose end the drain awaits leave in a wave after all others: a wave that waits for an end
    /// without a time would hold up the waves behind it. Waves that are added later come before this one.
    pub fn await_last<'p>(&mut self, pods: impl IntoIterator<Item = &'p Pod>) {
        for pod in pods {
            if self.is_awaited(pod) {
                let wave = self.completion();
                self.place(&pod.uid, wave);
            }
        }
    }

    fn is_awaited(&self, pod: &Pod) -> bool {
        self.decision(pod)
            .is_some_and(|decision| decision.verdict == Verdict::AwaitCompletion)
    }

    /// Puts a pod at the end of the wave of its hold.
    pub(super) fn place_in_hold(&mut self, pod: &Pod, held: &Held) {
        let name = held.name();
        if self.place_of(pod).is_some() && self.wave_of(pod) == Some(name.as_str()) {
            return;
        }
        let wave = self.hold_position(&name, held.hold());
        self.place(&pod.uid, wave);
    }

    /// The wave of a hold. A new one comes after all waves of shorter ones, also those of other policies.
    fn hold_position(&mut self, name: &str, hold: Hold) -> usize {
        if let Some(at) = self.waves.iter().position(|wave| wave.name == name) {
            return at;
        }
        let is_later = |wave: &Wave| Hold::of_wave(&wave.name).is_some_and(|other| other > hold);
        let later = self.waves.iter().position(is_later);
        let mut wave = Wave::new(name, Vec::new());
        wave.max_grace_period_seconds = hold.grace().map(|grace| grace.as_secs());
        self.insert_wave(later.unwrap_or_else(|| self.first_awaiting()), wave)
    }

    /// Where the waves at the end begin whose pods the drain only awaits, or that of the driver's own pod.
    pub(super) fn first_awaiting(&self) -> usize {
        let (mut removing, mut awaiting) = (BTreeSet::new(), BTreeSet::new());
        for ((pod, decision), place) in self.pods.iter().zip(&self.decisions).zip(&self.places) {
            match place {
                Some((wave, _)) if decision.verdict.removes() && !pod.driver => removing.insert(*wave),
                Some((wave, _)) if decision.verdict.leaves() => awaiting.insert(*wave),
                _ => false,
            };
        }
        let goes_before =
            |(at, wave): &(usize, &Wave)| removing.contains(at) || !awaiting.contains(at) || is_hold(wave);
        let last = self.waves.iter().enumerate().rfind(goes_before);
        last.map_or(0, |(at, _)| at + 1)
    }

    /// A wave of pods that end by themselves, behind all others.
    fn completion(&mut self) -> usize {
        let awaiting = self.first_awaiting();
        let mut name = COMPLETION.to_owned();
        while let Some(at) = self.waves.iter().position(|wave| wave.name == name) {
            if at >= awaiting {
                return at;
            }
            name.push_str("-last");
        }
        self.wave_position(&name)
    }

    /// Sets timeouts so that no wave delays that of the next hold.
    fn set_wave_timeouts(&mut self, drain: &Drain) {
        let others = self.leaving().into_iter().filter(|pod| !pod.driver);
        let places = others.filter_map(|pod| self.place_of(pod));
        let used: BTreeSet<usize> = places.map(|(wave, _)| wave).collect();
        let holds = self.waves.iter().filter_map(|wave| Hold::of_wave(&wave.name));
        let lefts: Vec<Duration> = holds.map(|hold| hold.left(drain)).collect();
        let (Some(first), Some(last)) = (lefts.first(), self.waves.iter().rposition(is_hold)) else {
            return;
        };
        let timeout = |time: Duration| milliseconds(whole_seconds(time));
        // A wave behind all holds delays none.
        let ordinary = self.waves.iter().enumerate().take(last);
        let ordinary = ordinary.filter(|(at, wave)| used.contains(at) && !is_hold(wave));
        let ordinary = u32::try_from(ordinary.count()).unwrap_or(u32::MAX);
        let share = timeout(*first / ordinary.max(1));
        let pairs = lefts.iter().zip(lefts.iter().skip(1));
        let mut spans = pairs.map(|(one, next)| timeout(next.saturating_sub(*one)));
        for (at, wave) in self.waves.iter_mut().enumerate() {
            if is_hold(wave) {
                wave.timeout = spans.next();
            } else if used.contains(&at) && at < last {
                wave.timeout = Some(wave.timeout.map_or(share, |own| own.min(share)));
            }
        }
    }
}

fn is_hold(wave: &Wave) -> bool {
    Hold::of_wave(&wave.name).is_some()
}
