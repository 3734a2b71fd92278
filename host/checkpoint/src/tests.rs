//! Checkpoints survive a round trip, foreign or invalid ones are ignored, and the text stays small.

use std::collections::BTreeSet;

use scupper_engine::Begun;
use serde_json::json;

use super::*;

/// A small random number generator, so that a failure can be reproduced from its seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }

    fn text(&mut self) -> String {
        let letters: Vec<char> = "ab-./\"\\{}µ漢 \n".chars().collect();
        (0..self.below(9)).map(|_| self.one(&letters)).collect()
    }

    fn uuid(&mut self) -> String {
        let digits = format!("{:016x}{:016x}", self.next(), self.next());
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|place| &digits[place]);
        parts.join("-")
    }

    fn uid(&mut self) -> Uid {
        match self.below(4) {
            0 => Uid::new(self.text()),
            1 => Uid::new(self.uuid().to_uppercase()),
            _ => Uid::new(self.uuid()),
        }
    }

    fn subject(&mut self) -> Subject {
        match self.below(4) {
            0 => Subject::Node,
            1 => Subject::Wave(self.text()),
            _ => Subject::Pod(self.uid()),
        }
    }

    fn counts(&mut self) -> Counts {
        let mut count = || u32::try_from(self.below(2)).unwrap();
        Counts {
            leaving: count(),
            totals: Totals {
                gone: count(),
                deleted: count(),
                waves: count(),
                evictions: count(),
                deletions: count(),
                budget_refusals: count(),
                hook_steps: count(),
                hook_wait: Duration::from_millis(self.below(3)),
                budget_wait: Duration::from_millis(self.below(3)),
            },
            at: Time::from_millis(self.below(3)),
            newest: Time::from_millis(self.below(3)),
        }
    }

    fn begun(&mut self) -> Begun {
        let time = |numbers: &mut Self| (numbers.below(2) == 0).then(|| Time::from_millis(numbers.next()));
        Begun {
            cordon: time(self),
            evictions: time(self),
            waves: (0..self.below(3)).map(|_| (self.text(), time(self))).collect(),
            late: (0..self.below(3)).map(|_| self.uid()).collect(),
            planners: (0..self.below(3)).map(|_| self.text()).collect(),
        }
    }

    fn raised(&mut self) -> Raised {
        Raised {
            deployment: DeploymentRef {
                namespace: self.text(),
                name: self.text(),
                uid: self.uid(),
            },
            drain: self.text(),
            pods: (0..self.below(3)).map(|_| self.uid()).collect(),
        }
    }

    fn checkpoint(&mut self) -> Checkpoint {
        let hook = |numbers: &mut Self| SavedHook {
            state_version: (numbers.below(2) == 0).then(|| u32::try_from(numbers.below(9)).unwrap()),
            policy: numbers.text(),
            phase: numbers.one(&HookPhase::ALL),
            subject: numbers.subject(),
            state: (0..numbers.below(40))
                .map(|_| u8::try_from(numbers.below(256)).unwrap())
                .collect(),
            started: Time::from_millis(numbers.next()),
        };
        let policies = [self.text(), self.text()];
        let phase = self.one(&Phase::ALL);
        Checkpoint {
            node: self.uid(),
            id: self.text(),
            name: self.text(),
            trigger: self.text(),
            intent: self.one(&[Intent::Drain, Intent::Uncordon]),
            phase,
            started: Time::from_millis(self.next()),
            deadline: (self.below(2) == 0).then(|| Time::from_millis(self.next())),
            only_pods: (self.below(2) == 0).then(|| self.next()),
            own_cordon: self.below(2) == 0,
            inherited: self.below(2) == 0,
            ahead: self.below(2) == 0,
            drained: self.below(2) == 0,
            cancelled: (self.below(2) == 0).then(|| self.text()),
            held: (self.below(2) == 0).then(|| self.below(2) == 0),
            to_undo: (0..self.below(3)).map(|_| (self.text(), self.text())).collect(),
            left_before: (0..self.below(3)).map(|_| self.text()).collect(),
            hooks: (0..self.below(4)).map(|_| hook(self)).collect(),
            done: (0..self.below(30))
                .map(|_| (self.one(&policies), self.one(&HookPhase::ALL), self.subject()))
                .collect(),
            returns: (0..self.below(4))
                .map(|_| (self.text(), u32::try_from(self.below(9)).unwrap()))
                .collect(),
            stays: (0..self.below(4)).map(|_| self.uid()).collect(),
            ended_well: phase == Phase::Finished || self.below(9) == 0,
            raised: (0..self.below(3)).map(|_| self.raised()).collect(),
            volumes_since: (self.below(2) == 0).then(|| Time::from_millis(self.next())),
            begun: Box::new(self.begun()),
            counts: self.counts(),
        }
    }
}

fn as_set(mut checkpoint: Checkpoint) -> Checkpoint {
    let done: BTreeSet<_> = checkpoint.done.drain(..).collect();
    checkpoint.done = done.into_iter().collect();
    checkpoint
}

#[test]
fn a_checkpoint_survives_a_round_trip() {
    for seed in 1..3000 {
        let checkpoint = Numbers(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed)).checkpoint();
        let text = encode(&checkpoint).unwrap();
        assert_eq!(
            as_set(decode(&text).unwrap()),
            as_set(checkpoint),
            "seed {seed}: {text}"
        );
    }
}

fn plain() -> Checkpoint {
    Checkpoint {
        id: "5d0e8f0e-1111-4222-8333-444455556666".into(),
        name: "drain-worker-1".into(),
        trigger: "LifecycleEvent".into(),
        phase: Phase::Evicting,
        deadline: Some(Time::from_millis(1_790_000_300_000)),
        own_cordon: true,
        ..Checkpoint::blank(
            Uid::new("7a1f3c52-0000-4111-8222-933344445555"),
            Time::from_millis(1_790_000_000_000),
        )
    }
}

#[test]
fn five_hundred_pods_fit_many_times() {
    let mut numbers = Numbers(7);
    let pods = (0..500).map(|_| Subject::Pod(Uid::new(numbers.uuid())));
    let done = pods.map(|pod| ("slurm".to_owned(), HookPhase::BeforeEvict, pod));
    let checkpoint = Checkpoint {
        done: done.collect(),
        ..plain()
    };
    let size = encode(&checkpoint).unwrap().len();
    assert!(size < 12 * 1024, "{size} bytes");
}

fn hook(pod: String, bytes: usize, state_version: Option<u32>) -> SavedHook {
    SavedHook {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeEvict,
        subject: Subject::Pod(Uid::new(pod)),
        state: vec![7; bytes],
        state_version,
        started: Time::from_millis(1_790_000_000_000),
    }
}

#[test]
fn five_hundred_running_hooks_fit_with_their_versions() {
    let mut numbers = Numbers(7);
    let mut size = |state_version| {
        let hooks = (0..500).map(|_| hook(numbers.uuid(), 20, state_version));
        let checkpoint = Checkpoint {
            hooks: hooks.collect(),
            ..plain()
        };
        encode(&checkpoint).unwrap().len()
    };
    let (without, with) = (size(None), size(Some(1)));
    assert!(with < MAX_BYTES / 2, "{with} bytes");
    assert!(
        with - without <= 500 * 12,
        "{} bytes for versions",
        with - without
    );
}

#[test]
fn the_form_is_settled() {
    let text = encode(&plain()).unwrap();
    assert_eq!(
        text,
        "{\"v\":1,\"node\":\"7a1f3c52-0000-4111-8222-933344445555\",\"id\":\"5d0e8f0e-1111-4222-8333-444455556666\",\"name\":\"drain-worker-1\",\
         \"by\":\"LifecycleEvent\",\"intent\":\"drain\",\"phase\":\"evicting\",\"started\":1790000000000,\"deadline\":1790000300000,\
         \"own_cordon\":true}"
    );
}

/// UIDs take sixteen bytes each.
#[test]
fn what_has_begun_is_readable_and_small() {
    let begun = Begun {
        cordon: Some(Time::from_millis(7)),
        waves: [
            ("all".to_owned(), None),
            ("one".to_owned(), Some(Time::from_millis(8))),
        ]
        .into(),
        late: [Uid::new("7a1f3c52-0000-4111-8222-933344445555")].into(),
        ..Begun::default()
    };
    let begun = Box::new(begun);
    let text = encode(&Checkpoint { begun, ..plain() }).unwrap();
    let end =
        "\"begun\":{\"cordon\":7,\"waves\":{\"all\":null,\"one\":8},\"late\":\"eh88UgAAQRGCIpMzRERVVQ\"}}";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn the_intent_that_was_saved_counts_whatever_the_phase() {
    let finished = Checkpoint {
        intent: Intent::Uncordon,
        phase: Phase::Finished,
        ..plain()
    };
    assert_eq!(decode(&encode(&finished).unwrap()), Ok(finished.clone()));
    let text = encode(&finished).unwrap().replace("\"uncordon\"", "\"rebuild\"");
    assert_eq!(decode(&text), Err(CheckpointFault::Unknown("intent")));
}

#[test]
fn a_newer_one_s_additions_are_passed_over() {
    let mut wire: serde_json::Value = serde_json::from_str(&encode(&plain()).unwrap()).unwrap();
    wire["added"] = json!({"in": "1.7"});
    assert_eq!(decode(&wire.to_string()), Ok(plain()));
}

#[test]
fn an_unreadable_checkpoint_is_an_error_and_does_not_panic() {
    let with = |key: &str, value: serde_json::Value| {
        let mut wire: serde_json::Value = serde_json::from_str(&encode(&plain()).unwrap()).unwrap();
        wire[key] = value;
        decode(&wire.to_string())
    };
    assert_eq!(with("v", json!(2)), Err(CheckpointFault::Version(2)));
    assert_eq!(
        with("phase", json!("resting")),
        Err(CheckpointFault::Unknown("phase"))
    );
    let hook = json!({"policy": "p", "phase": "before-lunch", "started": 1});
    assert_eq!(
        with("hooks", json!([hook])),
        Err(CheckpointFault::Unknown("hook phase"))
    );
    let hook = json!({"policy": "p", "phase": "before-drain", "started": 1, "state": "***"});
    assert!(matches!(
        with("hooks", json!([hook])),
        Err(CheckpointFault::Unreadable(_))
    ));
    let done = json!({"policy": "p", "phase": "before-evict", "pods": "AAAA"});
    assert!(matches!(
        with("done", json!([done])),
        Err(CheckpointFault::Unreadable(_))
    ));
    for text in [
        "",
        "true",
        "{}",
        "[]",
        "null",
        "{\"v\":1}",
        "{\"v\":-1}",
        "{\"v\":\"1\"}",
        "drained",
    ] {
        assert!(
            matches!(decode(text), Err(CheckpointFault::Unreadable(_))),
            "{text:?}"
        );
    }
    let text = encode(&plain()).unwrap();
    for end in 0..text.len() {
        assert!(decode(&text[..end]).is_err(), "a cut text is no checkpoint");
    }
}

#[test]
fn an_oversized_checkpoint_is_refused_before_the_api_server_sees_it() {
    let checkpoint = Checkpoint {
        hooks: vec![hook(String::new(), 200_000, Some(1))],
        ..plain()
    };
    assert!(matches!(encode(&checkpoint), Err(CheckpointFault::TooLarge(_))));
}
