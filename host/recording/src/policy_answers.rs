//! What the policies of a recorded drain answered: what their planners made of which draft, and how long their hooks took.
//! Who plays the drain once more needs no component of a policy for that.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Answer, Command, Event, HookPhase, HookStep, Plan, PlanAnswer, StepOutcome, Subject, Task, Time,
};

use crate::read::Recording;

type HookName = (String, HookPhase, Subject);

/// The answers of all policies.
#[derive(Clone, Debug, Default)]
pub struct PolicyAnswers {
    plans: Vec<(String, Plan, PlanAnswer)>,
    hooks: BTreeMap<HookName, HookAnswer>,
}

/// How a hook went when it was first called for its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAnswer {
    /// From its first step to its last answer.
    pub took: Duration,
    /// Its last answer; `None`: it had not finished when the recording ended.
    pub end: Option<StepOutcome>,
}

impl PolicyAnswers {
    /// Reads them off.
    pub fn of(recording: &Recording) -> Self {
        let mut reader = Reader::default();
        let mut now = recording.header.at;
        for turn in &recording.turns {
            turn.events().for_each(|(at, event)| reader.event(at, event));
            now = turn.last().unwrap_or(now);
            for command in &turn.commands {
                reader.command(now, command);
            }
        }
        reader.end(now);
        reader.answers
    }

    /// What the planner of this policy made of exactly this draft. If it was asked more than once, the last answer is that of
    /// the drain.
    pub fn plan(&self, policy: &str, draft: &Plan) -> Option<&PlanAnswer> {
        let is_it = |answer: &&(String, Plan, PlanAnswer)| answer.0 == policy && answer.1 == *draft;
        let found = self.plans.iter().rev().find(is_it);
        found.map(|(.., answer)| answer)
    }

    /// How the hook of this step went.
    pub fn hook(&self, step: &HookStep) -> Option<&HookAnswer> {
        self.hooks.get(&name(step))
    }
}

fn name(step: &HookStep) -> HookName {
    (step.policy.clone(), step.phase, step.subject.clone())
}

#[derive(Default)]
struct Reader {
    /// Drafts and steps without an answer, by command.
    drafts: BTreeMap<u64, (String, Plan)>,
    steps: BTreeMap<u64, HookName>,
    begun: BTreeMap<HookName, Time>,
    answers: PolicyAnswers,
}

impl Reader {
    fn command(&mut self, now: Time, command: &Command) {
        match &command.task {
            Task::Plan { policy, draft } => {
                self.drafts.insert(command.id.0, (policy.clone(), draft.clone()));
            }
            Task::Step { step, .. } => {
                self.begun.entry(name(step)).or_insert(now);
                self.steps.insert(command.id.0, name(step));
            }
            _ => {}
        }
    }

    fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Answer(id, Answer::Plan(answer)) => {
                if let Some((policy, draft)) = self.drafts.remove(&id.0) {
                    self.answers.plans.push((policy, draft, answer.clone()));
                }
            }
            Event::Answer(id, Answer::Step { outcome, .. }) => {
                if let Some(hook) = self.steps.remove(&id.0).filter(|_| is_over(outcome)) {
                    self.finished(hook, now, Some(outcome.clone()));
                }
            }
            _ => {}
        }
    }

    /// A hook that is called again for pods that came later has been over before.
    fn finished(&mut self, hook: HookName, now: Time, end: Option<StepOutcome>) {
        if let Some(begun) = self.begun.get(&hook) {
            let took = now.since(*begun);
            self.answers.hooks.entry(hook).or_insert(HookAnswer { took, end });
        }
    }

    fn end(&mut self, now: Time) {
        let begun: Vec<_> = self.begun.keys().cloned().collect();
        for hook in begun {
            self.finished(hook, now, None);
        }
    }
}

/// No further step follows.
pub(crate) const fn is_over(outcome: &StepOutcome) -> bool {
    match outcome {
        StepOutcome::Done => true,
        StepOutcome::Pending { .. } => false,
        StepOutcome::Failed { retry_after, .. } => retry_after.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use scupper_engine::CommandId;
    use scupper_engine_simulation::processes;

    use super::*;
    use crate::{FORMAT, Header, Input, Turn};

    const PENDING: StepOutcome = StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(1),
        progress: String::new(),
        waiting_for: Vec::new(),
    };

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn step(policy: &str) -> HookStep {
        HookStep {
            policy: policy.to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            state: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Answers to the commands before, at this second, and then a command.
    fn turn(second: u64, answers: Vec<(u64, Answer)>, command: Option<(u64, Task)>) -> Turn {
        let inputs = answers.into_iter().map(|(id, answer)| {
            let event = Event::Answer(CommandId(id), answer);
            (at(second), Input::Event(Cow::Owned(event)))
        });
        let command = command.map(|(id, task)| Command {
            id: CommandId(id),
            task,
        });
        Turn {
            line: 0,
            inputs: inputs.collect(),
            commands: command.into_iter().collect(),
        }
    }

    fn answers(turns: Vec<Turn>) -> PolicyAnswers {
        let process = processes(0).swap_remove(0);
        PolicyAnswers::of(&Recording {
            turns,
            ..Recording::begun(Header {
                format: FORMAT,
                program: String::new(),
                at: at(0),
                wall: at(0),
                request: process.request,
                checkpoint: None,
                policies: Vec::new(),
            })
        })
    }

    fn stepped(outcome: StepOutcome) -> Answer {
        Answer::Step {
            outcome,
            state_version: None,
        }
    }

    fn asks(policy: &str) -> Task {
        Task::Step {
            step: step(policy),
            state_version: None,
        }
    }

    #[test]
    fn a_hook_lasts_from_its_first_step_to_its_last_answer() {
        let known = answers(vec![
            turn(1, vec![], Some((1, asks("slurm")))),
            turn(3, vec![(1, stepped(PENDING))], Some((2, asks("slurm")))),
            turn(9, vec![(2, stepped(StepOutcome::Done))], Some((3, asks("nova")))),
            turn(20, vec![(3, stepped(PENDING))], None),
        ]);
        let answer = |seconds, end| HookAnswer {
            took: Duration::from_secs(seconds),
            end,
        };
        assert_eq!(
            known.hook(&step("slurm")),
            Some(&answer(9, Some(StepOutcome::Done)))
        );
        assert_eq!(known.hook(&step("nova")), Some(&answer(11, None)));
        assert_eq!(known.hook(&step("other")), None);
    }

    #[test]
    fn a_planner_is_known_for_the_drafts_that_it_had() {
        let plan = |policy: &str, draft: &Plan| Task::Plan {
            policy: policy.to_owned(),
            draft: draft.clone(),
        };
        let (draft, other) = (
            Plan::default(),
            Plan {
                waves: vec![scupper_engine::Wave {
                    name: "all".to_owned(),
                    pods: Vec::new(),
                    max_parallel: None,
                    timeout: None,
                    max_grace_seconds: None,
                    policy: String::new(),
                }],
                ..Plan::default()
            },
        );
        let failed = PlanAnswer::Failed {
            message: "not now".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        };
        let known = answers(vec![
            turn(1, vec![], Some((1, plan("slurm", &draft)))),
            turn(
                2,
                vec![(1, Answer::Plan(failed))],
                Some((2, plan("slurm", &draft))),
            ),
            turn(3, vec![(2, Answer::Plan(PlanAnswer::Plan(other.clone())))], None),
        ]);
        assert_eq!(
            known.plan("slurm", &draft),
            Some(&PlanAnswer::Plan(other.clone()))
        );
        assert_eq!(
            (known.plan("slurm", &other), known.plan("nova", &draft)),
            (None, None)
        );
    }
}
