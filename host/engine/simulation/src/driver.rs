//! The driver around the engine: events in, commands out, as in the real driver, and its crashes.

use scupper_engine::{Answer, CommandId, Drain, Event, Intent, Task, Time};

use crate::calls::{self, Process, Step};
use crate::ending::Circumstances;
use crate::invariants::Invariants;
use crate::scenario::{Mood, Second};
use crate::timers::Timer;
use crate::undoing::Outside;
use crate::violation::{Checked, broken};
use crate::volumes::VolumeRecord;
use crate::world::World;

impl World {
    /// Gives the driver an order: first a drain, then perhaps an uncordon or another drain.
    pub(crate) fn begin_episode(&mut self) -> Checked {
        self.episode += 1;
        self.request.id = format!("request-{}", self.episode);
        self.request.name.clone_from(&self.request.id);
        self.request.settings = self.settings.clone();
        self.request.intent = Intent::Drain;
        self.request.deadline = None;
        if self.episode == 1 {
            self.request.deadline = self
                .scenario
                .deadline
                .map(|after| Time::from_millis(self.now + after));
        } else if self.scenario.second == Some(Second::Uncordon) {
            self.coverage.count("ending", "uncordon after a drain");
            self.request.intent = Intent::Uncordon;
        } else {
            self.coverage.count("ending", "drain after a drain");
        }
        self.requests = 0;
        self.stop = None;
        self.invariants.begin_episode();
        self.copies.begin_episode();
        let at = self.now + self.scenario.patience;
        self.queue.push(
            at,
            Timer::Horizon {
                episode: self.episode,
            },
        );
        self.start()
    }

    /// Starts a process: it reads the node's annotation and continues from there, or begins anew.
    pub(crate) fn start(&mut self) -> Checked {
        self.displace();
        self.incarnation += 1;
        self.clock.begin_process(self.now);
        let now = self.process_now();
        let (request, truth) = self.requests_of_process();
        let (mark, standing) = self.left_behind();
        self.invariants.process_now = now;
        self.invariants.restart(self.now, &truth, standing.as_ref());
        self.note(|| format!("process starts, checkpoint {mark:?}"));
        if let Some(processes) = &mut self.calls {
            processes.push(Process {
                at: now,
                request: request.clone(),
                checkpoint: mark.clone(),
                steps: Vec::new(),
                is_killed: false,
            });
        }
        self.drain = Some(match mark {
            Some(checkpoint) => {
                self.coverage.count("ending", "resumed");
                if checkpoint.cancelled.is_some() {
                    self.coverage.count("ending", "resumed after a cancel");
                }
                Drain::resume(now, request, checkpoint)
            }
            None => {
                if self.invariants.crashes > 0 {
                    self.coverage.count("ending", "begun anew");
                }
                Drain::new(now, request)
            }
        });
        let (left, own) = self.outside.take_lease(&self.request);
        if let Some(drain) = &mut self.drain {
            calls::add(&mut self.calls, || Step::Recall(left.clone(), own.clone()));
            drain.recall_to_undo(left, own);
        }
        self.begin_watches();
        if self.scenario.faults.evictions_hang > 0 {
            // So few do not slow the API server down.
            self.deliver(Event::EvictionLimit(1), None)?;
        }
        if let Some(stop) = self.stop.clone() {
            let after = self.rng.span(1_000, 10_000);
            self.order_later(after, stop);
        }
        self.settle()
    }

    /// Another trigger's request comes first after a crash: the mark on the node is that of a drain that nothing
    /// continues.
    fn displace(&mut self) {
        if !self.scenario.displaced || self.invariants.crashes == 0 || self.stop.is_some() {
            return;
        }
        self.scenario.displaced = false;
        self.coverage.count("ending", "displaced by another request");
        self.request.id.push_str("-other");
        self.request.name.clone_from(&self.request.id);
        self.invariants.begin_episode();
        let node = self.cluster.node.as_ref();
        let mark = node.and_then(|node| node.checkpoint.as_ref());
        self.invariants.inherits =
            mark.is_some_and(|mark| mark.drained || mark.ended_well || !mark.is_under_way());
        self.copies.begin_episode();
    }

    /// Kills the process: its sent commands may or may not arrive, and a little later another process starts.
    pub(crate) fn kill(&mut self, why: &'static str) {
        let Some(drain) = self.drain.take() else {
            return;
        };
        self.untold.clear();
        self.note(|| format!("process dies: {why}"));
        if let Some(process) = self.calls.as_mut().and_then(|processes| processes.last_mut()) {
            process.is_killed = true;
        }
        self.coverage.count("crash in", drain.phase().name());
        for id in std::mem::take(&mut self.outstanding).into_keys() {
            // No command of another request arrives late.
            if self.rng.chance(500) || self.scenario.displaced {
                self.dropped.insert((self.incarnation, id));
            }
        }
        self.spoilt.clear();
        self.invariants.crashes += 1;
        // Answers and events of this process are lost.
        self.incarnation += 1;
        let at = self.now + self.rng.span(1_000, 60_000);
        self.queue.push(
            at,
            Timer::Restart {
                incarnation: self.incarnation,
            },
        );
    }

    fn may_crash(&mut self, per_mille: u32) -> bool {
        let dies = self.crashes_left > 0 && self.rng.chance(per_mille);
        self.crashes_left -= u32::from(dies);
        dies
    }

    /// Takes all commands and notices out of the engine, and checks them against the invariants.
    pub(crate) fn settle(&mut self) -> Checked {
        let counted = self.invariants.finished;
        let outcome = self.drain.as_ref().and_then(Drain::outcome);
        self.invariants.surges.ends = outcome.is_some();
        self.invariants.process_now = self.process_now();
        self.invariants.now = self.now;
        self.invariants.sees_cordon();
        while let Some(notice) = self.drain.as_mut().and_then(Drain::poll_notice) {
            self.note(|| format!("    reports {notice:?}"));
            self.invariants.notice(&notice, &self.request)?;
            if let Some(drain) = &self.drain {
                VolumeRecord::names_no_used_volume(&notice, drain)?;
                Outside::is_named_at_the_end(&notice, drain)?;
            }
            self.coverage.count_volumes(&notice);
            self.coverage.count_forced(&notice);
            self.coverage.count_surges(&notice);
            self.coverage.count_newcomers(&notice);
        }
        while let Some(command) = self.drain.as_mut().and_then(Drain::poll_command) {
            self.note(|| format!("  {:?} {:?}", command.id, command.task));
            calls::add(&mut self.calls, || Step::Command(command.clone()));
            let knows = self.drain.as_ref().map(Drain::phase);
            let (id, task) = (command.id, command.task);
            self.trace.stamp(task.name(), self.now);
            if let Some(pod) = task.removes() {
                self.trace.stamp(pod.uid.as_str(), id.0);
                if self
                    .outstanding
                    .values()
                    .any(|other| other.removes() == Some(pod))
                {
                    self.coverage.count("forced", "overtakes its eviction");
                }
            }
            if matches!(&task, Task::Step { step, .. } if self.invariants.hooks.is_again(step)) {
                self.coverage.count("hook", "Again, for a newcomer");
            }
            let outcome = self.drain.as_ref().and_then(Drain::outcome);
            Invariants::saves_the_cancel(&task, outcome)?;
            let held = self.drain.as_ref().is_some_and(Drain::held);
            if let Some(drain) = &self.drain {
                self.outside.asked(&task, drain);
            }
            self.invariants
                .held
                .reported(&task, outcome, held, &self.request, &mut self.coverage)?;
            self.invariants
                .command(self.now, &task, &self.request, &self.cluster, &self.outstanding)?;
            if let (Task::Plan { draft, policy }, Some(drain)) = (&task, &self.drain) {
                let first = self.request.policies.iter().find(|policy| policy.planner);
                let is_first = first.is_some_and(|first| first.name == *policy);
                if !is_first && policy != crate::surge::PLANNER {
                    self.coverage.count("crossing", "second planner");
                }
                self.invariants
                    .shows_the_draft(draft, drain.pods_to_plan(), is_first)?;
            }
            if !matches!(task, Task::Plan { .. } | Task::Step { .. }) {
                self.requests += 1;
            }
            if self.outstanding.insert(id, task.clone()).is_some() {
                return broken(7, format!("{id:?} is used twice ({knows:?})"));
            }
            if task == Task::ListPods {
                self.invariants.knowledge.asks_for_list(id);
            }
            let name = task.name();
            self.send_command(id, task);
            if self.may_crash(self.scenario.faults.crash_at_command) {
                self.coverage.count("crash after command", name);
                self.kill("after a command");
                return Ok(());
            }
        }
        let Some(drain) = &self.drain else {
            return Ok(());
        };
        let calm = self.scenario.mood == Mood::Calm && self.scenario.population.budgets.is_empty();
        if self.invariants.finished && !counted {
            let outcome = drain.outcome().map_or("none", scupper_engine::Outcome::name);
            self.coverage.count("outcome", outcome);
        }
        self.invariants.check_end(
            self.now,
            drain,
            &self.request,
            &self.cluster,
            &self.outstanding,
            &mut self.coverage,
        )?;
        if self.invariants.finished && self.outstanding.is_empty() && self.dies_at_its_end() {
            return Ok(());
        }
        let Some(drain) = &self.drain else {
            return Ok(());
        };
        if self.invariants.finished && self.outstanding.is_empty() {
            let faults = &self.scenario.faults;
            let smooth = faults.write_unavailable == 0
                && faults.write_rejected == 0
                && faults.slow_answer == 0
                && faults.watch_lag < 100
                && self.forbidden_until.is_none()
                && !self.node_watch_broke;
            let circumstances = Circumstances {
                mood: self.scenario.mood,
                requests: calm.then_some(self.requests),
                mark_stands: !self.wiped,
                writes_work: smooth && self.episode == 1,
            };
            self.invariants
                .end(drain, &self.request, &self.cluster, circumstances)?;
            self.raises_are_back()?;
            self.records_what_is_left(smooth)?;
            self.end_episode();
        }
        Ok(())
    }

    fn send_command(&mut self, id: CommandId, task: Task) {
        let slow = match task {
            Task::Plan { .. } | Task::Step { .. } => self.rng.chance(self.scenario.faults.slow_policy),
            _ => self.rng.chance(self.scenario.faults.slow_answer),
        };
        let delay = if slow {
            self.rng.between(1, 10_000)
        } else {
            self.rng.between(1, 20)
        };
        let incarnation = self.incarnation;
        self.queue.push(
            self.now + delay,
            Timer::Execute {
                incarnation,
                id,
                task,
            },
        );
    }

    /// A command reaches the server, though its sender may be dead.
    pub(crate) fn execute(&mut self, incarnation: u32, id: CommandId, task: &Task) -> Checked {
        let orphan = incarnation != self.incarnation;
        let is_policy = matches!(task, Task::Plan { .. });
        if self.dropped.remove(&(incarnation, id)) || (orphan && is_policy) {
            return Ok(());
        }
        let done = self.carry_out(task, orphan)?;
        self.keeps_to_its_own()?;
        if orphan {
            self.note(|| format!("the dead process's {task:?} is carried out"));
            return Ok(());
        }
        if self.last_plan_spoilt && is_policy {
            self.spoilt.insert(id);
        }
        let slow = self.rng.chance(self.scenario.faults.slow_answer);
        let usual = if slow {
            self.rng.between(1, 10_000)
        } else {
            self.rng.between(1, 20)
        };
        let at = self.now + usual + done.delay;
        self.queue.push(
            at,
            Timer::Answer {
                incarnation,
                id,
                answer: done.answer,
                snapshot: done.snapshot,
            },
        );
        Ok(())
    }

    pub(crate) fn deliver_answer(&mut self, id: CommandId, answer: Answer, snapshot: Option<u64>) -> Checked {
        let Some(task) = self.outstanding.remove(&id) else {
            return Ok(());
        };
        if let Answer::Evict(answer) = &answer {
            self.coverage.count("answer", crate::server::name(answer));
        }
        self.invariants.volumes.answered(self.now, &answer, snapshot);
        self.watch_volumes(&answer);
        let spoilt = self.spoilt.remove(&id);
        self.invariants.answer(
            self.now,
            &task,
            &answer,
            &self.request,
            spoilt,
            &mut self.coverage,
        );
        let asked = (id, task);
        let event = Event::Answer(id, answer);
        self.hand_over(event, Some(&asked), snapshot)?;
        if self.drain.is_some()
            && !self.invariants.finished
            && self.may_crash(self.scenario.faults.crash_at_answer)
        {
            self.kill("after an answer");
        }
        Ok(())
    }

    pub(crate) fn deliver(&mut self, event: Event, snapshot: Option<u64>) -> Checked {
        self.hand_over(event, None, snapshot)
    }

    /// An order from outside. The trigger repeats it to a process that starts later.
    pub(crate) fn deliver_order(&mut self, event: Event) -> Checked {
        if let Event::Deadline(deadline) = event {
            self.request.deadline = deadline;
        }
        if matches!(event, Event::Cancel { .. } | Event::Lost { .. }) {
            self.stop.get_or_insert_with(|| event.clone());
        }
        if self.drain.is_none() {
            self.order_later(1_000, event);
            return Ok(());
        }
        self.hand_over(event, None, None)
    }

    fn order_later(&mut self, after: u64, event: Event) {
        let order = crate::timers::Fault::Order(self.episode, Box::new(event));
        self.queue.push(self.now + after, Timer::Fault(order));
    }

    fn hand_over(
        &mut self,
        event: Event,
        asked: Option<&(CommandId, Task)>,
        snapshot: Option<u64>,
    ) -> Checked {
        let (event, truth) = self.orders_of_process(event);
        if self.drain.is_none() {
            return Ok(());
        }
        self.trace
            .note(self.now - crate::world::START, || format!("{event:?}"));
        let own = self.request.settings.own_pod.as_ref().map(|own| &own.uid);
        self.invariants
            .observe(self.now, &truth, asked, snapshot, &self.cluster, own);
        self.untold.push(event);
        if self.is_told_at_once() {
            return self.tell();
        }
        Ok(())
    }

    /// Tells the engine what the process has learned.
    pub(crate) fn tell(&mut self) -> Checked {
        let now = self.process_now();
        let events = std::mem::take(&mut self.untold);
        let Some(drain) = self.drain.as_mut().filter(|_| !events.is_empty()) else {
            return Ok(());
        };
        for event in &events {
            calls::add(&mut self.calls, || Step::Event(now, event.clone()));
        }
        if events.len() > 1 {
            self.coverage.count("watch", "together");
        }
        drain.handle_events(now, events);
        self.settle()
    }

    pub(crate) fn timeout(&mut self) -> Checked {
        self.tell()?;
        let now = self.process_now();
        if let Some(drain) = &mut self.drain {
            self.trace
                .note(self.now - crate::world::START, || String::from("timeout"));
            calls::add(&mut self.calls, || Step::Timeout(now));
            drain.handle_timeout(now);
        }
        self.settle()
    }

    fn end_episode(&mut self) {
        self.untold.clear();
        self.note(|| String::from("the drive ends"));
        let drained = self
            .drain
            .take()
            .is_some_and(|drain| matches!(drain.outcome(), Some(scupper_engine::Outcome::Drained)));
        self.incarnation += 1;
        let is_left = drained || self.outside.is_left();
        if self.episode == 1 && is_left && self.scenario.second.is_some() {
            let at = self.now + self.rng.span(10_000, 600_000);
            self.queue.push(at, Timer::Episode);
        } else {
            self.over = true;
        }
    }
}
