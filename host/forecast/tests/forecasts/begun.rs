//! Drains that have begun.

use scupper_engine::{Checkpoint, HookPhase, Phase, PolicyInfo, SavedHook, Subject, Uid};
use scupper_forecast::{Forecast, Situation};

use super::learned;
use crate::cluster::{BEGIN, budget, seconds, situation};

fn mark(phase: Phase) -> Checkpoint {
    Checkpoint {
        id: "1".to_owned(),
        name: "drain-worker-1".to_owned(),
        trigger: "command".to_owned(),
        phase,
        own_cordon: true,
        ..Checkpoint::blank(Uid::new("uid-of-worker-1"), BEGIN)
    }
}

/// After so many seconds it has come so far.
fn after(past: u64, mut situation: Situation, mark: Checkpoint) -> Situation {
    situation.at = BEGIN + seconds(past);
    situation.node.unschedulable = true;
    situation.node.checkpoint = Some(mark.clone());
    situation.from(mark)
}

fn with_hook() -> Situation {
    let mut situation = situation(Vec::new());
    situation.request.policies = vec![PolicyInfo {
        name: "slurm".to_owned(),
        phases: vec![HookPhase::BeforeDrain],
        ..PolicyInfo::default()
    }];
    situation
}

#[test]
fn pods_that_have_left_take_no_more_time() {
    let mut one_left = situation(vec![budget(1)]);
    one_left.pods.truncate(1);
    let begun = after(60, one_left, mark(Phase::Evicting));
    let forecast = Forecast::of(&begun, &learned(), 20);
    assert_eq!(forecast.quantile(5), Some(seconds(10)), "{forecast:#?}");
}

#[test]
fn a_hook_that_has_begun_takes_what_is_left_of_its_time() {
    let whole = Forecast::of(&with_hook(), &learned(), 20);
    assert_eq!(whole.quantile(5), Some(seconds(1_210)), "{whole:#?}");
    let begun = |past: u64| {
        let mut mark = mark(Phase::Holding);
        mark.hooks = vec![SavedHook {
            policy: "slurm".to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            state: b"whatever the policy keeps".to_vec(),
            state_version: Some(1),
            started: BEGIN,
        }];
        Forecast::of(&after(past, with_hook(), mark), &learned(), 20)
    };
    assert_eq!(begun(900).quantile(5), Some(seconds(310)), "{:#?}", begun(900));
    // It has taken longer than ever before.
    assert_eq!(begun(3_600).quantile(5), Some(seconds(3_610)));
}

#[test]
fn a_hook_that_has_finished_is_not_played_again() {
    let mut mark = mark(Phase::Evicting);
    mark.done = vec![("slurm".to_owned(), HookPhase::BeforeDrain, Subject::Node)];
    let forecast = Forecast::of(&after(1_300, with_hook(), mark), &learned(), 20);
    assert_eq!(forecast.quantile(5), Some(seconds(10)), "{forecast:#?}");
}
