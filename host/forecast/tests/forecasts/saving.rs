//! What would have made a drain shorter.

use std::time::Duration;

use scupper_engine::{HookPhase, Intent, PolicyInfo};
use scupper_forecast::{Change, Saving, Situation, recorded_play, savings};
use scupper_recording::{DrainHistory, Recording};

use crate::cluster::{budget, pod, seconds, situation};
use crate::learned;

#[expect(clippy::unwrap_used, reason = "a helper")]
fn recorded(situation: &Situation) -> (Recording, DrainHistory) {
    let recording = recorded_play(situation, &learned(), 1).unwrap();
    let history = DrainHistory::of(&recording).unwrap();
    (recording, history)
}

fn saved(situation: &Situation) -> Vec<(Change, Duration)> {
    let (recording, history) = recorded(situation);
    let savings = savings(&recording, &history).into_iter();
    savings.map(|Saving { change, saves }| (change, saves)).collect()
}

#[test]
fn the_budget_that_held_the_pods_saves_most() {
    let web = scupper_forecast::Workload::of(&pod("web-1"));
    // Twice thirty seconds and ten: with two at a time, once thirty and ten.
    let expected = [
        (Change::Budget("shop".to_owned(), "web".to_owned()), seconds(30)),
        (Change::Workload(web), seconds(5)),
    ];
    assert_eq!(saved(&situation(vec![budget(1)])), expected);
}

#[test]
fn a_long_hook_saves_all_of_its_time() {
    let mut situation = situation(Vec::new());
    situation.request.policies.push(PolicyInfo {
        name: "slurm".to_owned(),
        phases: vec![HookPhase::BeforeDrain],
        ..PolicyInfo::default()
    });
    let (hook, saves) = saved(&situation).remove(0);
    assert_eq!(hook, Change::Hook("slurm".to_owned(), HookPhase::BeforeDrain));
    assert_eq!(saves, seconds(1_200));
}

#[test]
fn nothing_is_said_of_what_no_play_resembles() {
    let (recording, history) = recorded(&situation(vec![budget(1)]));
    let with = |change: &dyn Fn(&mut Recording)| {
        let mut recording = recording.clone();
        change(&mut recording);
        savings(&recording, &history)
    };
    assert!(!with(&|_| {}).is_empty());
    let none = [
        with(&|recording| recording.header.request.intent = Intent::Uncordon),
        with(&|recording| recording.end = None),
        with(&|recording| recording.end.as_mut().unwrap().outcome = "Cancelled".to_owned()),
        with(&|recording| recording.end.as_mut().unwrap().at = recording.header.at + seconds(20)),
    ];
    assert!(none.iter().all(Vec::is_empty), "{none:#?}");
}
