//! A world: the true state, the driver in it, and a clock that jumps to the next event.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{CommandId, Drain, Event, Intent, Request, Settings, Task};

use crate::calls::ProcessCalls;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::coverage::Coverage;
use crate::crowd;
use crate::invariants::Invariants;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::scenario::{Mood, Scenario};
use crate::surge::{self, Rollouts};
use crate::takeover::Copies;
use crate::timers::{Stream, Timer};
use crate::trace::Trace;
use crate::undoing::Outside;
use crate::violation::{Broken, Checked, broken};
use crate::volumes::Volumes;

/// The start time of worlds, so that no time is near zero.
pub(crate) const START: u64 = 1_000_000_000;

/// A world that has not ended after this many steps never will.
const STEPS: u64 = 60_000;
/// Where a process tells its engine the events of a moment together, they come at multiples of so many milliseconds.
const GRAIN: u64 = 100;

/// See the module.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) clock: Clock,
    pub(crate) copies: Copies,
    pub(crate) rng: Rng,
    pub(crate) scenario: Scenario,
    pub(crate) cluster: Cluster,
    pub(crate) queue: Queue,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Trace,
    pub(crate) calls: ProcessCalls,
    pub(crate) invariants: Invariants,

    pub(crate) drain: Option<Drain>,
    pub(crate) request: Request,
    pub(crate) settings: Settings,
    pub(crate) incarnation: u32,
    pub(crate) episode: u32,
    pub(crate) crashes_left: u32,
    /// Commands that were taken and whose answers have not arrived.
    pub(crate) outstanding: BTreeMap<CommandId, Task>,
    /// Commands of dead processes that never reached the server.
    pub(crate) dropped: BTreeSet<(u32, CommandId)>,
    pub(crate) spoilt: BTreeSet<CommandId>,
    pub(crate) last_plan_spoilt: bool,
    pub(crate) streams: BTreeMap<Stream, Channel>,
    pub(crate) plan_calls: BTreeMap<String, u32>,
    /// Evictions and deletions that had an effect.
    pub(crate) removed: u32,
    /// Requests to the API server in this episode.
    pub(crate) requests: u32,
    pub(crate) own_gone: bool,
    /// Our annotation was removed: the owner of the cordon is unknown.
    pub(crate) wiped: bool,
    /// What policies have changed.
    pub(crate) outside: Outside,
    /// The node's watch was broken once.
    pub(crate) node_watch_broke: bool,
    /// The drain was cancelled: every process learns of it.
    pub(crate) stop: Option<Event>,
    /// The API server refuses every write until then; `None`: it never has.
    pub(crate) forbidden_until: Option<u64>,
    pub(crate) over: bool,
    idle_timeouts: u32,
    /// The process tells its engine all events of a moment together.
    is_together: bool,
    /// Those that it has and has not told.
    pub(crate) untold: Vec<Event>,
}

/// A watch of the running process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Channel {
    pub(crate) live: bool,
    pub(crate) epoch: u32,
    /// The time when its last event arrives: the next one does not overtake it.
    pub(crate) last: u64,
    /// The time when its list arrives: nothing overtakes that.
    pub(crate) begun: u64,
}

fn cluster(rng: &mut Rng, scenario: &Scenario) -> Cluster {
    let mut cluster = Cluster::new(scenario.cordon);
    if let Some(surge) = &scenario.settings.surge {
        let crowd = crowd::arrivals(rng);
        cluster.rollouts = Some(Rollouts::new(surge.method, rng.fork(), scenario.mood, crowd));
    }
    if scenario.settings.wait_for_volumes.is_some() {
        cluster.volumes = Some(Volumes::new(rng.fork(), scenario.mood));
    }
    cluster
}

impl World {
    pub(crate) fn new(seed: u64, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let mut scenario = Scenario::new(&mut rng);
        if seed % 64 == 7 && scenario.mood == Mood::Wild {
            // A driver without the right to evict.
            scenario.faults.forbidden = 1_000;
        }
        let cluster = cluster(&mut rng, &scenario);
        let settings = scenario.settings.clone();
        let request = Request {
            id: String::new(),
            name: String::new(),
            trigger: String::from("simulation"),
            intent: Intent::Drain,
            node: String::from(crate::cluster::NODE),
            deadline: None,
            settings: settings.clone(),
            policies: scenario
                .policies
                .iter()
                .map(crate::policies::PolicyScript::info)
                .chain(settings.surge.is_some().then(surge::planner))
                .collect(),
        };
        let mut world = Self {
            now: START,
            clock: Clock::new(),
            copies: Copies::new(scenario.faults.waits_for_its_turn),
            rng,
            cluster,
            queue: Queue::default(),
            coverage: Coverage::default(),
            trace: Trace::new(traced),
            calls: None,
            invariants: Invariants::default(),
            drain: None,
            request,
            settings,
            incarnation: 0,
            episode: 0,
            crashes_left: scenario.crashes,
            outstanding: BTreeMap::new(),
            dropped: BTreeSet::new(),
            spoilt: BTreeSet::new(),
            last_plan_spoilt: false,
            streams: BTreeMap::new(),
            plan_calls: BTreeMap::new(),
            removed: 0,
            requests: 0,
            own_gone: false,
            wiped: false,
            outside: Outside::default(),
            node_watch_broke: false,
            stop: None,
            forbidden_until: None,
            over: false,
            idle_timeouts: 0,
            is_together: seed % 4 == 1,
            untold: Vec::new(),
            scenario,
        };
        if world.is_together {
            world.queue.set_grain(GRAIN);
        }
        world.populate();
        world
    }

    fn populate(&mut self) {
        for (budget, elsewhere, recovers, lag) in self.scenario.population.budgets.clone() {
            let sync = crate::timers::Chore::Sync(budget.name.clone());
            self.queue.push(self.now + lag, Timer::Chore(sync));
            self.cluster.add_budget(budget, elsewhere, recovers, lag);
        }
        let crowd = self.cluster.rollouts.as_mut();
        for (after, chore) in crowd.map(|it| std::mem::take(&mut it.crowd)).unwrap_or_default() {
            self.queue.push(self.now + after, Timer::Chore(chore));
        }
        self.cluster.attach_stray(self.now);
        for part in self.scenario.population.pods.clone() {
            let Some(uid) = self.cluster.born(self.now, part.newborn) else {
                continue;
            };
            if part.own {
                self.settings.own_pod = self.cluster.pods.get(&uid).map(|truth| truth.pod.id.clone());
            }
            if part.terminating {
                self.cluster.delete(self.now, &uid, None);
            }
        }
        if self.scenario.mood == Mood::Kind {
            for name in self.cluster.budgets.keys() {
                let relaxed = crate::timers::Fault::BudgetRelaxed(name.clone());
                self.queue.push(self.now + 3_600_000, Timer::Fault(relaxed));
            }
        }
        for (at, fault) in std::mem::take(&mut self.scenario.planned_faults) {
            self.queue.push(self.now + at, Timer::Fault(fault));
        }
        self.queue.push(self.now, Timer::Episode);
        self.publish();
    }

    /// Runs the world to its end.
    pub(crate) fn run(&mut self) -> Checked {
        for _ in 0..STEPS {
            if self.over {
                return Ok(());
            }
            self.tick()?;
        }
        broken(
            7,
            format!("the world does not come to its end within {STEPS} steps"),
        )
    }

    fn tick(&mut self) -> Checked {
        if !self.untold.is_empty() && !self.queue.is_event_due(self.now) {
            return self.tell();
        }
        let timer = self.timer();
        let next = self.queue.next_at();
        if self.drain.is_some() && self.rng.chance(self.scenario.faults.early_timer) {
            self.coverage.count("watch", "early timer");
            return self.wake(self.now);
        }
        let late = if self.rng.chance(self.scenario.faults.late_timer) {
            self.coverage.count("watch", "late timer");
            self.rng.between(1, 3_000)
        } else {
            0
        };
        match (timer.map(|timer| timer.max(self.now) + late), next) {
            (Some(timer), Some(next)) if timer < next => self.wake(timer),
            (Some(timer), None) => self.wake(timer),
            (_, Some(_)) => match self.queue.pop() {
                Some((at, due)) => {
                    self.now = self.now.max(at);
                    self.idle_timeouts = 0;
                    self.happen(due)
                }
                None => Ok(()),
            },
            (None, None) => broken(7, "nothing will ever happen again, and the drain has not ended"),
        }
    }

    /// The engine is to be told an event at once.
    pub(crate) const fn is_told_at_once(&self) -> bool {
        !self.is_together || self.calls.is_some()
    }

    fn wake(&mut self, at: u64) -> Checked {
        if at <= self.now {
            self.idle_timeouts += 1;
            if self.idle_timeouts > 200 {
                return broken(
                    7,
                    "the engine's timer stands still: handle_timeout does not move it",
                );
            }
        }
        self.now = self.now.max(at);
        self.timeout()
    }

    fn happen(&mut self, due: Timer) -> Checked {
        if self.drain.is_some() {
            self.invariants.punctual(self.now)?;
        }
        match due {
            Timer::Execute {
                incarnation,
                id,
                task,
            } => self.execute(incarnation, id, &task)?,
            Timer::Answer {
                incarnation,
                id,
                answer,
                snapshot,
            } if incarnation == self.incarnation => {
                self.deliver_answer(id, answer, snapshot)?;
            }
            Timer::Watch {
                incarnation,
                stream,
                epoch,
                event,
                snapshot,
            } if incarnation == self.incarnation => {
                if self
                    .streams
                    .get(&stream)
                    .is_some_and(|channel| channel.epoch == epoch)
                {
                    self.deliver(event, snapshot)?;
                }
            }
            Timer::List { incarnation, stream } if incarnation == self.incarnation => self.list(stream),
            Timer::Answer { .. } | Timer::Watch { .. } | Timer::List { .. } => {}
            Timer::Chore(chore) => self.cluster.chore(self.now, chore),
            Timer::Fault(fault) => self.inject(fault)?,
            Timer::Restart { incarnation } if incarnation == self.incarnation => self.start()?,
            Timer::Restart { .. } => {}
            Timer::Episode => self.begin_episode()?,
            Timer::Horizon { episode } if episode == self.episode => self.lose_patience()?,
            Timer::Horizon { .. } => {}
        }
        self.publish();
        self.lose_own_pod();
        Ok(())
    }

    /// The driver runs in a pod of its own: when that is removed, the process dies, and another one takes over
    /// elsewhere.
    fn lose_own_pod(&mut self) {
        let Some(own) = &self.settings.own_pod else {
            return;
        };
        if self.cluster.gone.contains_key(&own.uid) && !self.own_gone {
            self.own_gone = true;
            self.settings.own_pod = None;
            self.request.settings.own_pod = None;
            if self.drain.is_some() {
                self.coverage.count("ending", "own pod evicted");
                self.kill("its own pod is gone");
            }
        }
    }

    /// The requester has waited long enough.
    fn lose_patience(&mut self) -> Checked {
        if self.scenario.mood != Mood::Wild {
            let phase = self.drain.as_ref().map(Drain::phase);
            return broken(
                8,
                format!("nothing stands in the way, and yet it does not end: {phase:?}"),
            );
        }
        self.deliver_order(Event::Cancel {
            reason: String::from("patience"),
        })
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.now - START, line);
    }

    pub(crate) fn violated(&self, seed: u64, broken: Broken) -> crate::Violation {
        crate::Violation {
            seed,
            invariant: broken.invariant,
            message: broken.message,
            at: self.now - START,
            trace: self.trace.lines(),
        }
    }
}
