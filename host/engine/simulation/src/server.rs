//! The API server and the policies carry commands out: their effect on the true state, and their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Answer, EvictAnswer, HookStep, Plan, PlanAnswer, Pod, PodRef, StepOutcome, SurgeMethod, Task, Uid,
};

use crate::cluster::Owner;
use crate::hooks::version_of;
use crate::surge;
use crate::violation::{Checked, broken};
use crate::world::World;

/// The result of carrying out a command.
pub(crate) struct Done {
    pub(crate) answer: Answer,
    /// The delay of the answer beyond the usual.
    pub(crate) delay: u64,
    /// When the list was taken.
    pub(crate) snapshot: Option<u64>,
}

impl Done {
    pub(crate) const fn now(answer: Answer) -> Self {
        Self {
            answer,
            delay: 0,
            snapshot: None,
        }
    }
}

impl World {
    /// Carries a command out. `orphan`: the process that sent it has died.
    pub(crate) fn carry_out(&mut self, task: &Task, orphan: bool) -> Result<Done, crate::violation::Broken> {
        Ok(match task {
            Task::Plan { policy, draft } => Done::now(Answer::Plan(self.plan(policy, draft))),
            Task::Step { step, .. } => self.step(step, orphan),
            Task::Evict { pod, grace_seconds } => self.remove(pod, *grace_seconds, true),
            Task::Delete { pod, grace_seconds } => self.remove(pod, *grace_seconds, false),
            Task::ListPods => self.list_pods(),
            Task::ListVolumes => self.list_volumes(),
            Task::ChooseSurges { plan } => {
                self.coverage.count("surge", "chosen again");
                Done::now(Answer::Surges(self.choose_surges(plan)))
            }
            Task::Surge {
                deployment,
                drain,
                method: SurgeMethod::Restart,
            } => self.restart_deployment(deployment, drain),
            Task::Surge {
                deployment,
                drain,
                method: SurgeMethod::Scale,
            } => self.raise(deployment, drain),
            Task::TakeBack { deployment, drain } => self.take_back(deployment, drain),
            write => {
                if orphan {
                    self.coverage.count("node write", "after a crash");
                }
                self.write(write)?
            }
        })
    }

    fn plan(&mut self, policy: &str, draft: &Plan) -> PlanAnswer {
        if policy == surge::PLANNER {
            self.last_plan_spoilt = false;
            return self.plan_surges(draft);
        }
        let calls = self.plan_calls.entry(String::from(policy)).or_default();
        let number = *calls;
        *calls += 1;
        let pods: BTreeMap<&Uid, &Pod> = self
            .cluster
            .pods
            .iter()
            .map(|(uid, truth)| (uid, &truth.pod))
            .chain(self.cluster.gone.iter().map(|(uid, (pod, _))| (uid, pod)))
            .collect();
        let own = self.settings.own_pod.as_ref().map(|own| &own.uid);
        let scripts = self.scenario.policies.iter();
        let Some(planner) = scripts
            .filter(|script| script.name == policy)
            .find_map(|script| script.planner.as_ref())
        else {
            return PlanAnswer::Failed {
                message: String::from("no such planner"),
                retry_after: None,
            };
        };
        let (answer, trouble) = planner.plan(number, draft, &pods, own);
        if let Some(trouble) = trouble {
            self.coverage.count("plan", trouble.name());
        }
        self.last_plan_spoilt = trouble.is_some();
        answer
    }

    fn step(&mut self, step: &HookStep, orphan: bool) -> Done {
        let scripts = self
            .scenario
            .policies
            .iter()
            .filter(|script| script.name == step.policy);
        let script = scripts
            .flat_map(|script| &script.hooks)
            .find(|(phase, _)| *phase == step.phase);
        let id = (step.policy.clone(), step.phase, step.subject.clone());
        let failed = self.invariants.hooks.failed.get(&id).copied().unwrap_or(0);
        let outcome = match script {
            Some((_, script)) => script.step(step, failed),
            None => StepOutcome::Done,
        };
        self.invariants.hooks.executed(step, &outcome);
        // A policy runs in the process that calls it.
        if !orphan || self.drain.is_none() {
            self.outside.stepped(step, &outcome, &self.request);
        }
        let state_version = match &outcome {
            StepOutcome::Pending { state, .. } => version_of(state),
            _ => Some(0),
        };
        Done::now(Answer::Step {
            outcome,
            state_version,
        })
    }

    fn list_pods(&mut self) -> Done {
        if self.rng.chance(self.scenario.faults.list_unavailable) {
            return Done::now(Answer::Unavailable {
                message: String::from("scripted"),
            });
        }
        Done {
            answer: Answer::Pods(self.cluster.list()),
            delay: 0,
            snapshot: Some(self.now),
        }
    }

    fn remove(&mut self, pod: &PodRef, grace: Option<u64>, evicts: bool) -> Done {
        let faults = self.scenario.faults.clone();
        let message = String::from("scripted");
        if evicts && self.rng.chance(faults.evictions_hang) {
            self.coverage.count("answer", "Refused by a webhook that hangs");
            return self.hang(message);
        }
        if self.rng.chance(faults.throttled) {
            let retry_after = self
                .rng
                .chance(500)
                .then(|| Duration::from_secs(self.rng.between(1, 10)));
            return Done::now(Answer::Evict(EvictAnswer::Throttled { message, retry_after }));
        }
        if self.rng.chance(faults.refused) {
            let retry_after = self
                .rng
                .chance(300)
                .then(|| Duration::from_secs(self.rng.between(1, 10)));
            return Done::now(Answer::Evict(EvictAnswer::Refused {
                code: 500,
                message,
                retry_after,
            }));
        }
        if self.is_forbidden() || self.rng.chance(faults.forbidden) {
            return Done::now(Answer::Evict(EvictAnswer::Forbidden { message }));
        }
        let lost = self.rng.chance(faults.unreachable);
        if lost && self.rng.chance(500) {
            let delay = self.rng.between(1, 30_000);
            let answer = Answer::Evict(EvictAnswer::Unreachable { message });
            return Done {
                answer,
                delay,
                snapshot: None,
            };
        }
        let (answer, delay, effect) = if evicts {
            self.cluster.evict(self.now, pod, grace)
        } else {
            self.cluster.delete_named(self.now, pod, grace)
        };
        self.removed += u32::from(effect);
        if lost {
            self.coverage.count("answer", "Unreachable, yet done");
            let answer = Answer::Evict(EvictAnswer::Unreachable { message });
            return Done {
                answer,
                delay: 30_000,
                snapshot: None,
            };
        }
        Done {
            answer: Answer::Evict(answer),
            delay,
            snapshot: None,
        }
    }

    /// A webhook does not answer for ten seconds or more, or flow control asks for a long pause.
    fn hang(&mut self, message: String) -> Done {
        let (answer, delay) = if self.rng.chance(100) {
            let retry_after = Some(Duration::from_secs(self.rng.between(10, 400)));
            (EvictAnswer::Throttled { message, retry_after }, 0)
        } else {
            let (code, retry_after) = (500, None);
            let refused = EvictAnswer::Refused {
                code,
                message,
                retry_after,
            };
            (refused, self.rng.between(10_000, 30_000))
        };
        Done {
            answer: Answer::Evict(answer),
            delay,
            snapshot: None,
        }
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.forbidden_until.is_some_and(|until| self.now < until)
    }

    fn write(&mut self, task: &Task) -> Result<Done, crate::violation::Broken> {
        let faults = self.scenario.faults.clone();
        let message = String::from("scripted");
        if self.is_forbidden() {
            self.coverage.count("node write", "forbidden");
            return Ok(Done::now(Answer::Forbidden { message }));
        }
        if self.rng.chance(faults.write_rejected) {
            self.coverage.count("node write", "rejected");
            return Ok(Done::now(Answer::Rejected { message }));
        }
        let lost = self.rng.chance(faults.write_unavailable);
        if lost && self.rng.chance(500) {
            self.coverage.count("node write", "unavailable");
            return Ok(Done::now(Answer::Unavailable { message }));
        }
        let answer = self.apply_write(task)?;
        if lost {
            self.coverage.count("node write", "unavailable, yet done");
            return Ok(Done::now(Answer::Unavailable { message }));
        }
        Ok(Done::now(answer))
    }

    fn apply_write(&mut self, task: &Task) -> Result<Answer, crate::violation::Broken> {
        let Some(node) = &self.cluster.node else {
            self.coverage.count("node write", "no node");
            return Ok(Answer::NodeGone);
        };
        if let Task::Cordon { version, .. } | Task::Uncordon { version, .. } = task
            && *version != node.version.to_string()
        {
            self.coverage.count("node write", "conflict");
            return Ok(Answer::WriteConflict);
        }
        if task.written_node().is_some_and(|uid| *uid != node.uid) {
            self.coverage.count("node write", "another node");
            return Ok(Answer::NodeGone);
        }
        let owner = node.owner;
        let mark = node.checkpoint.clone();
        match task {
            Task::Cordon { checkpoint, .. } if owner == Owner::Others && checkpoint.own_cordon => {
                broken(5, "claims a foreign cordon as its own")?;
            }
            Task::Uncordon { .. } => self.check_uncordon(owner, mark.is_some_and(|mark| mark.own_cordon))?,
            _ => {}
        }
        let version = self.cluster.write_node(|node| match task {
            Task::Cordon { checkpoint, .. } => {
                node.checkpoint = Some(checkpoint.clone());
                if node.owner == Owner::Nobody {
                    node.owner = Owner::Ours;
                    node.ever_ours = true;
                }
            }
            Task::Save { checkpoint, .. } => node.checkpoint = Some(checkpoint.clone()),
            Task::Uncordon { checkpoint, .. } => {
                node.checkpoint.clone_from(checkpoint);
                node.owner = Owner::Nobody;
            }
            _ => node.checkpoint = None,
        });
        self.coverage.count("node write", "written");
        let mark = self
            .cluster
            .node
            .as_ref()
            .and_then(|node| node.checkpoint.as_ref());
        self.copies.written(mark);
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        Ok(Answer::Written { version })
    }

    /// A cordon of ours looks the same as one that was lifted and made again unseen; a change that was seen is
    /// reported.
    fn check_uncordon(&self, owner: Owner, marked: bool) -> Checked {
        if !marked {
            return broken(
                5,
                "uncordons a node whose annotation does not say that the cordon is ours",
            );
        }
        let ever_ours = self.cluster.node.as_ref().is_some_and(|node| node.ever_ours);
        if owner == Owner::Others && !ever_ours {
            return broken(5, "uncordons a node that it never cordoned");
        }
        if owner == Owner::Others && self.invariants.knowledge.saw_uncordon {
            return broken(5, "uncordons although it has seen others lift our cordon");
        }
        Ok(())
    }
}

/// An answer's name.
pub(crate) const fn name(answer: &EvictAnswer) -> &'static str {
    match answer {
        EvictAnswer::Accepted => "Accepted",
        EvictAnswer::NotFound => "NotFound",
        EvictAnswer::UidMismatch { .. } => "UidMismatch",
        EvictAnswer::BudgetExhausted { .. } => "BudgetExhausted",
        EvictAnswer::BudgetNotObserved { .. } => "BudgetNotObserved",
        EvictAnswer::MoreThanOneBudget { .. } => "MoreThanOneBudget",
        EvictAnswer::Throttled { .. } => "Throttled",
        EvictAnswer::NamespaceTerminating { .. } => "NamespaceTerminating",
        EvictAnswer::Forbidden { .. } => "Forbidden",
        EvictAnswer::Refused { .. } => "Refused",
        EvictAnswer::Unreachable { .. } => "Unreachable",
    }
}
