//! Scripted planners, which reorder, wait, keep, refuse, fail, or return invalid plans.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{Plan, PlanAnswer, Pod, Uid, Verdict, Wave};

use crate::rng::Rng;
use crate::scenario::Mood;

/// How a planner plans.
#[derive(Clone, Debug)]
pub(crate) struct PlannerScript {
    style: Style,
    waves: u64,
    max_parallel: Option<u32>,
    timeout: Option<Duration>,
    max_grace_seconds: Option<u64>,
    trouble: Option<(u32, Trouble)>,
    /// It fails at this many calls first, and sets the time of the next call.
    away: Option<(u32, Duration)>,
    salt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Identity,
    Waves,
    Await,
    Keep,
    Delete,
    Refuse,
    Daemons,
    Own,
}

/// The planner's mistake at the call of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Refuses,
    Fails,
    /// Fails for a while, and sets the time of the next call.
    Away,
    Undecided,
    DecidedTwice,
    Unknown,
    UnknownInWave,
    InNoWave,
    InTwoWaves,
    StaysInWave,
    MirrorLeaves,
    OwnPodNotLast,
    WaveName,
    WaveTwice,
    NoParallelism,
}

const TROUBLES: [Trouble; 14] = [
    Trouble::Refuses,
    Trouble::Fails,
    Trouble::Undecided,
    Trouble::DecidedTwice,
    Trouble::Unknown,
    Trouble::UnknownInWave,
    Trouble::InNoWave,
    Trouble::InTwoWaves,
    Trouble::StaysInWave,
    Trouble::MirrorLeaves,
    Trouble::OwnPodNotLast,
    Trouble::WaveName,
    Trouble::WaveTwice,
    Trouble::NoParallelism,
];

impl PlannerScript {
    pub(crate) fn new(rng: &mut Rng, mood: Mood) -> Self {
        let wild = mood == Mood::Wild;
        let style = match rng.below(16) {
            0..3 => Style::Identity,
            3..8 => Style::Waves,
            8..10 => Style::Await,
            10 => Style::Keep,
            11 | 12 => Style::Delete,
            13 if wild => Style::Refuse,
            14 => Style::Daemons,
            15 => Style::Own,
            _ => Style::Waves,
        };
        let late = rng.chance(300);
        Self {
            style,
            waves: rng.between(1, 4),
            max_parallel: rng
                .chance(400)
                .then(|| u32::try_from(rng.between(1, 3)).unwrap_or(1)),
            timeout: rng
                .chance(300)
                .then(|| Duration::from_millis(rng.span(30_000, 300_000))),
            max_grace_seconds: rng.chance(200).then(|| rng.between(0, 30)),
            trouble: (wild && rng.chance(220)).then(|| {
                (
                    u32::from(late),
                    rng.pick(&TROUBLES).copied().unwrap_or(Trouble::Fails),
                )
            }),
            away: rng.chance(150).then(|| away(rng, wild)),
            salt: rng.next(),
        }
    }

    /// Answers a call; `number` counts the calls from 0. Returns the deliberate mistake in the answer.
    pub(crate) fn plan(
        &self,
        number: u32,
        draft: &Plan,
        pods: &BTreeMap<&Uid, &Pod>,
        own: Option<&Uid>,
    ) -> (PlanAnswer, Option<Trouble>) {
        let mut plan = draft.clone();
        self.decide(&mut plan, pods, own);
        if let Some((_, wait)) = self.away.filter(|(times, _)| number < *times) {
            let failed = PlanAnswer::Failed {
                message: String::from("scripted"),
                retry_after: Some(wait),
            };
            return (failed, Some(Trouble::Away));
        }
        match self.trouble {
            Some((at, trouble)) if at == number => spoil(plan, trouble, pods, own),
            _ => (PlanAnswer::Plan(plan), None),
        }
    }

    fn decide(&self, plan: &mut Plan, pods: &BTreeMap<&Uid, &Pod>, own: Option<&Uid>) {
        if self.style == Style::Identity {
            return;
        }
        for decision in &mut plan.decisions {
            let Some(pod) = pods.get(&decision.pod) else {
                continue;
            };
            let is_own = own == Some(&decision.pod);
            let lot = hash(decision.pod.as_str(), self.salt).is_multiple_of(3);
            let verdict = match self.style {
                Style::Own if is_own => Verdict::Evict,
                Style::Daemons if pod.is_daemon() && !is_own => Verdict::Evict,
                Style::Await if decision.verdict == Verdict::Evict && finishes(pod) => {
                    Verdict::AwaitCompletion
                }
                Style::Keep if lot && decision.verdict.leaves() => Verdict::Keep,
                Style::Delete if lot && decision.verdict.leaves() => Verdict::Delete,
                Style::Refuse if lot && decision.verdict.leaves() => Verdict::Refuse,
                _ => continue,
            };
            decision.verdict = verdict;
            decision.reason = String::from("the policy says so");
        }
        self.order(plan, own);
    }

    fn order(&self, plan: &mut Plan, own: Option<&Uid>) {
        let mut waves: Vec<Wave> = Vec::new();
        for number in 0..self.waves {
            let leaving = plan
                .leaving()
                .map(|decision| &decision.pod)
                .filter(|uid| Some(*uid) != own);
            let pods: Vec<Uid> = leaving
                .filter(|uid| hash(uid.as_str(), self.salt) % self.waves == number)
                .cloned()
                .collect();
            if !pods.is_empty() {
                waves.push(self.wave(format!("wave-{number}"), pods));
            }
        }
        if let Some(own) = plan
            .leaving()
            .map(|decision| &decision.pod)
            .find(|uid| Some(*uid) == own)
        {
            waves.push(self.wave(String::from("last"), vec![own.clone()]));
        }
        plan.waves = waves;
    }

    fn wave(&self, name: String, pods: Vec<Uid>) -> Wave {
        Wave {
            name,
            pods,
            max_parallel: self.max_parallel,
            timeout: self.timeout,
            max_grace_seconds: self.max_grace_seconds,
            policy: String::new(),
        }
    }
}

/// How often a planner fails first, and the pause that it asks for each time.
fn away(rng: &mut Rng, wild: bool) -> (u32, Duration) {
    let times = match rng.below(8) {
        0 if wild => u32::MAX,
        _ => u32::try_from(rng.between(1, 4)).unwrap_or(1),
    };
    let wait = match rng.below(8) {
        0 if times < u32::MAX => 0,
        1 if wild => 100_000_000,
        _ => rng.span(15_000, 60_000),
    };
    (times, Duration::from_millis(wait))
}

fn finishes(pod: &Pod) -> bool {
    pod.controller.as_ref().is_some_and(|owner| owner.kind == "Job")
}

fn hash(text: &str, salt: u64) -> u64 {
    let mut hash = salt ^ 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 29)
}

/// Makes the plan invalid, where the pods allow it.
fn spoil(
    mut plan: Plan,
    trouble: Trouble,
    pods: &BTreeMap<&Uid, &Pod>,
    own: Option<&Uid>,
) -> (PlanAnswer, Option<Trouble>) {
    let message = String::from("scripted");
    let done = match trouble {
        Trouble::Refuses => return (PlanAnswer::Refused { message }, Some(trouble)),
        Trouble::Fails | Trouble::Away => {
            let retry_after = None;
            return (PlanAnswer::Failed { message, retry_after }, Some(trouble));
        }
        Trouble::Undecided => plan.decisions.pop().is_some_and(|cut| {
            plan.waves
                .iter_mut()
                .for_each(|wave| wave.pods.retain(|uid| *uid != cut.pod));
            true
        }),
        Trouble::DecidedTwice => plan.decisions.first().cloned().is_some_and(|twice| {
            plan.decisions.push(twice);
            true
        }),
        Trouble::Unknown => plan.decisions.last().cloned().is_some_and(|mut decision| {
            decision.pod = Uid::new("nobody");
            decision.verdict = Verdict::Keep;
            plan.decisions.push(decision);
            true
        }),
        Trouble::UnknownInWave => plan
            .waves
            .first_mut()
            .is_some_and(|wave| push(wave, Uid::new("nobody"))),
        Trouble::InNoWave => plan
            .waves
            .first_mut()
            .is_some_and(|wave| wave.pods.pop().is_some()),
        Trouble::InTwoWaves => {
            let again = plan.waves.first().and_then(|wave| wave.pods.first()).cloned();
            again.is_some_and(|uid| plan.waves.last_mut().is_some_and(|wave| push(wave, uid)))
        }
        Trouble::StaysInWave => {
            let stays = plan.decisions.iter().find(|decision| !decision.verdict.leaves());
            let stays = stays.map(|decision| decision.pod.clone());
            stays.is_some_and(|uid| plan.waves.first_mut().is_some_and(|wave| push(wave, uid)))
        }
        Trouble::MirrorLeaves => {
            let mirror = pods
                .values()
                .find(|pod| pod.is_mirror())
                .map(|pod| pod.id.uid.clone());
            mirror.is_some_and(|uid| leave_first(&mut plan, uid))
        }
        Trouble::OwnPodNotLast => {
            let own = own.filter(|uid| plan.decision(uid).is_some()).cloned();
            own.is_some_and(|uid| {
                plan.waves
                    .iter_mut()
                    .for_each(|wave| wave.pods.retain(|other| *other != uid));
                plan.waves.iter().any(|wave| !wave.pods.is_empty()) && leave_first(&mut plan, uid)
            })
        }
        Trouble::WaveName => plan.waves.first_mut().is_some_and(|wave| {
            wave.name.clear();
            true
        }),
        Trouble::WaveTwice => plan.waves.first().cloned().is_some_and(|wave| {
            plan.waves.push(Wave {
                pods: Vec::new(),
                ..wave
            });
            true
        }),
        Trouble::NoParallelism => plan.waves.first_mut().is_some_and(|wave| {
            wave.max_parallel = Some(0);
            true
        }),
    };
    (PlanAnswer::Plan(plan), done.then_some(trouble))
}

fn push(wave: &mut Wave, uid: Uid) -> bool {
    wave.pods.push(uid);
    true
}

fn leave_first(plan: &mut Plan, uid: Uid) -> bool {
    for decision in &mut plan.decisions {
        if decision.pod == uid {
            decision.verdict = Verdict::Evict;
        }
    }
    let wave = Wave {
        name: String::from("first"),
        pods: vec![uid],
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    };
    plan.waves.insert(0, wave);
    true
}

impl Trouble {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Refuses => "Refuses",
            Self::Fails => "Fails",
            Self::Away => "Away",
            Self::Undecided => "Undecided",
            Self::DecidedTwice => "DecidedTwice",
            Self::Unknown => "Unknown",
            Self::UnknownInWave => "UnknownInWave",
            Self::InNoWave => "InNoWave",
            Self::InTwoWaves => "InTwoWaves",
            Self::StaysInWave => "StaysInWave",
            Self::MirrorLeaves => "MirrorLeaves",
            Self::OwnPodNotLast => "OwnPodNotLast",
            Self::WaveName => "WaveName",
            Self::WaveTwice => "WaveTwice",
            Self::NoParallelism => "NoParallelism",
        }
    }
}
