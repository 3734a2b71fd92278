//! What would have made a drain shorter.

use std::borrow::Cow;
use std::time::Duration;

use scupper_cluster_model::{ClusterModel, PodTimes, Replaced};
use scupper_engine::{
    Answer, Drain, Event, HookPhase, Intent, Notice, PlanAnswer, PolicyInfo, StepOutcome, Task,
};
use scupper_forecast::{Change, Saving, Situation, savings};
use scupper_recording::{DrainHistory, End, FORMAT, Header, Input, Recording, Turn};

use crate::cluster::{budget, pod, seconds, situation};

/// The drain of a node whose pods end after ten seconds and are ready again thirty after the request, with a hook of twenty
/// minutes, as it would be recorded.
#[expect(clippy::unwrap_used, reason = "a helper")]
fn recorded(situation: &Situation) -> (Recording, DrainHistory) {
    let mut request = situation.request.clone();
    request.policies.insert(
        0,
        PolicyInfo {
            name: "planner".to_owned(),
            planner: true,
            ..PolicyInfo::default()
        },
    );
    let mut recording = Recording::begun(Header {
        format: FORMAT,
        program: String::new(),
        at: situation.at,
        wall: situation.at,
        request,
        checkpoint: None,
        policies: Vec::new(),
    });
    drive(situation, &mut recording);
    let history = DrainHistory::of(&recording).unwrap();
    (recording, history)
}

fn drive(situation: &Situation, recording: &mut Recording) {
    let mut model = ClusterModel::new(situation.at, situation.node.clone());
    situation
        .budgets
        .iter()
        .cloned()
        .for_each(|budget| model.set_budget(budget));
    for pod in &situation.pods {
        let times = PodTimes {
            ends_after: seconds(10),
            replaced: Replaced::AfterRequest(seconds(30)),
        };
        model.add_pod(pod.clone(), times);
    }
    let mut drain = Drain::new(model.now, recording.header.request.clone());
    let (mut events, mut inputs) = (model.beginning(), Vec::new());
    while recording.end.is_none() {
        let now = model.now;
        for event in events.drain(..) {
            inputs.push((now, Input::Event(Cow::Owned(event.clone()))));
            drain.handle_event(now, event);
        }
        let commands: Vec<_> = std::iter::from_fn(|| drain.poll_command()).collect();
        let answers = commands
            .iter()
            .map(|command| Event::Answer(command.id, answer(situation, &mut model, &command.task)));
        events = answers.collect();
        events.extend(model.take_events());
        recording.turns.push(Turn {
            inputs: std::mem::take(&mut inputs),
            commands,
            ..Turn::default()
        });
        for notice in std::iter::from_fn(|| drain.poll_notice()) {
            if let Notice::Finished { outcome, .. } = notice {
                recording.end = Some(End {
                    at: now,
                    outcome: outcome.name().to_owned(),
                    text: outcome.to_string(),
                });
            }
        }
        let next = drain.poll_timeout().into_iter().chain(model.next_due()).min();
        if let Some(next) = next.filter(|_| events.is_empty()) {
            model.advance(next);
            inputs.push((next, Input::Timeout));
            drain.handle_timeout(next);
            events = model.take_events();
        }
    }
}

fn answer(situation: &Situation, model: &mut ClusterModel, task: &Task) -> Answer {
    match task {
        Task::Plan { .. } => Answer::Plan(PlanAnswer::Plan(situation.plan.clone())),
        Task::Step { state_version, .. } => {
            let left = (situation.at + seconds(1_200)).since(model.now);
            let outcome = match left {
                Duration::ZERO => StepOutcome::Done,
                left => StepOutcome::Pending {
                    state: Vec::new(),
                    again_after: left,
                    progress: String::new(),
                    waiting_for: Vec::new(),
                },
            };
            Answer::Step {
                outcome,
                state_version: *state_version,
            }
        }
        task => model.carry_out(task),
    }
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
