//! A server with a queue, drivers that evict pods on it, and another client that notices. No real time passes.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use scupper_engine::Time;

use super::{Answered, InFlight, Ticket};

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How a drain limits its evictions.
#[derive(Clone, Debug)]
pub(super) enum Limiter {
    /// By the API server's answers; clones are drains of one process.
    Ours(Rc<RefCell<InFlight>>),
    /// This many, always.
    Fixed(usize),
}

impl Limiter {
    pub(super) fn ours() -> Self {
        Self::Ours(Rc::default())
    }

    fn limit(&self) -> usize {
        match self {
            Self::Ours(in_flight) => in_flight.borrow().limit(),
            Self::Fixed(limit) => *limit,
        }
    }
}

/// What one eviction costs the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Work on a core. Requests queue for the cores.
    pub(super) work: Duration,
    /// Waiting for something else, beside the cores: a disk, a webhook.
    pub(super) wait: Duration,
    /// What the server answers.
    pub(super) is_overloaded: bool,
}

impl Cost {
    pub(super) const fn of(work: Duration, wait: Duration) -> Self {
        Self {
            work,
            wait,
            is_overloaded: false,
        }
    }
}

/// The server: its cores, and what the eviction of a pod costs at a moment since the beginning.
pub(super) struct Server {
    pub(super) cores: usize,
    pub(super) cost: Box<dyn Fn(Duration) -> Cost>,
}

impl Server {
    pub(super) fn steady(cores: usize, work: Duration, wait: Duration) -> Self {
        Self {
            cores,
            cost: Box::new(move |_| Cost::of(work, wait)),
        }
    }
}

/// A driver that drains a node.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) limiter: Limiter,
    pub(super) pods: usize,
    pub(super) begins: Duration,
    /// How far its wall clock is ahead.
    pub(super) clock_ahead: Duration,
}

impl Driver {
    pub(super) const fn new(limiter: Limiter, pods: usize) -> Self {
        Self {
            limiter,
            pods,
            begins: Duration::ZERO,
            clock_ahead: Duration::ZERO,
        }
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// When the last pod of each driver was evicted.
    pub(super) ends: Vec<Duration>,
    /// When each driver got an answer.
    answers: Vec<(Duration, usize)>,
    /// How many evictions each driver had in flight, from this moment on.
    in_flight: Vec<(Duration, Vec<usize>)>,
    /// When the other client asked, and how long it waited.
    other: Vec<(Duration, Duration)>,
}

impl Report {
    /// When the last pod of all was evicted.
    pub(super) fn wall(&self) -> Duration {
        self.ends.iter().copied().max().unwrap_or_default()
    }

    /// The mean number of a driver's evictions in flight.
    pub(super) fn in_flight(&self, driver: usize, during: &Range<Duration>) -> f64 {
        let mut area = 0.0;
        for pair in self.in_flight.windows(2) {
            let from = pair[0].0.max(during.start);
            let until = pair[1].0.min(during.end);
            area += until.saturating_sub(from).as_secs_f64() * pair[0].1[driver] as f64;
        }
        area / (during.end - during.start).as_secs_f64()
    }

    /// The same of all drivers.
    pub(super) fn all_in_flight(&self, during: &Range<Duration>) -> f64 {
        (0..self.ends.len())
            .map(|driver| self.in_flight(driver, during))
            .sum()
    }

    /// How many answers the drivers got in all.
    pub(super) fn answers(&self, during: &Range<Duration>) -> usize {
        self.answers.iter().filter(|(at, _)| during.contains(at)).count()
    }

    /// Each driver's share of the answers.
    pub(super) fn shares(&self, during: &Range<Duration>) -> Vec<f64> {
        let answers = self.answers.iter().filter(|(at, _)| during.contains(at));
        let mut counts = vec![0.0; self.ends.len()];
        for (_, driver) in answers {
            counts[*driver] += 1.0;
        }
        let sum: f64 = counts.iter().sum();
        counts.iter().map(|count| count / sum).collect()
    }

    /// The time that one of a hundred requests of the other client exceeds.
    pub(super) fn p99(&self, during: &Range<Duration>) -> Duration {
        let asked = self.other.iter().filter(|(at, _)| during.contains(at));
        let mut times: Vec<_> = asked.map(|(_, took)| *took).collect();
        times.sort_unstable();
        times[times.len() * 99 / 100]
    }
}

/// A request on the server.
#[derive(Debug)]
struct Request {
    sent: Duration,
    work: Duration,
    is_overloaded: bool,
    /// The driver and its ticket; `None` for the other client.
    by: Option<(usize, Option<Ticket>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin(usize),
    OtherAsks,
    Queue(u64),
    Done(u64),
}

/// A run until all pods are evicted.
pub(super) struct Run {
    server: Server,
    drivers: Vec<Driver>,
    now: Duration,
    steps: BinaryHeap<Reverse<(Duration, u64, Step)>>,
    numbers: u64,
    requests: BTreeMap<u64, Request>,
    queue: VecDeque<u64>,
    busy: usize,
    in_flight: Vec<usize>,
    random: u64,
    report: Report,
}

/// How often the other client asks; it needs a hundredth of that on a core.
const OTHER_EVERY: Duration = Duration::from_micros(7_300);

impl Run {
    /// Costs vary by a seeded random number.
    pub(super) fn of(server: Server, drivers: Vec<Driver>, seed: u64) -> Report {
        let count = drivers.len();
        let mut run = Self {
            server,
            drivers,
            now: Duration::ZERO,
            steps: BinaryHeap::new(),
            numbers: 0,
            requests: BTreeMap::new(),
            queue: VecDeque::new(),
            busy: 0,
            in_flight: vec![0; count],
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            report: Report {
                ends: vec![Duration::ZERO; count],
                ..Report::default()
            },
        };
        for driver in 0..count {
            let begins = run.drivers[driver].begins;
            run.plan(begins, Step::Begin(driver));
        }
        run.plan(Duration::ZERO, Step::OtherAsks);
        while run.turn() {}
        run.report
    }

    fn plan(&mut self, after: Duration, step: Step) {
        self.numbers += 1;
        self.steps.push(Reverse((self.now + after, self.numbers, step)));
    }

    /// A number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// False once all pods are evicted.
    fn turn(&mut self) -> bool {
        let is_busy = |(driver, in_flight): (&Driver, &usize)| driver.pods > 0 || *in_flight > 0;
        let is_over = !self.drivers.iter().zip(&self.in_flight).any(is_busy);
        let Some(Reverse((now, _, step))) = self.steps.pop().filter(|_| !is_over) else {
            return false;
        };
        self.now = now;
        match step {
            Step::Begin(driver) => self.evict(driver),
            Step::OtherAsks => {
                let work = OTHER_EVERY / 100;
                self.ask(work, Duration::ZERO, false, None);
                self.plan(OTHER_EVERY, Step::OtherAsks);
            }
            Step::Queue(number) => self.queue.push_back(number),
            Step::Done(number) => self.answer(number),
        }
        while self.busy < self.server.cores
            && let Some(number) = self.queue.pop_front()
        {
            self.busy += 1;
            self.plan(self.requests[&number].work, Step::Done(number));
        }
        self.report.in_flight.push((now, self.in_flight.clone()));
        true
    }

    fn ask(&mut self, work: Duration, wait: Duration, overloaded: bool, by: Option<(usize, Option<Ticket>)>) {
        self.plan(wait, Step::Queue(self.numbers + 1));
        let request = Request {
            sent: self.now,
            work,
            is_overloaded: overloaded,
            by,
        };
        self.requests.insert(self.numbers, request);
    }

    /// As many as the driver's limit allows.
    fn evict(&mut self, driver: usize) {
        while self.drivers[driver].pods > 0
            && self.in_flight[driver] < self.drivers[driver].limiter.limit().max(1)
        {
            let cost = (self.server.cost)(self.now);
            let work = cost.work.mul_f64(0.5 + self.random());
            let wait = cost.wait.mul_f64(0.75 + self.random() / 2.0);
            let ticket = match &self.drivers[driver].limiter {
                Limiter::Ours(in_flight) => Some(in_flight.borrow_mut().sent()),
                Limiter::Fixed(_) => None,
            };
            self.drivers[driver].pods -= 1;
            self.in_flight[driver] += 1;
            self.ask(work, wait, cost.is_overloaded, Some((driver, ticket)));
        }
    }

    fn answer(&mut self, number: u64) {
        self.busy -= 1;
        let Some(request) = self.requests.remove(&number) else {
            return;
        };
        let took = self.now - request.sent;
        let Some((number, ticket)) = request.by else {
            self.report.other.push((request.sent, took));
            return;
        };
        self.report.ends[number] = self.now;
        self.report.answers.push((self.now, number));
        self.in_flight[number] -= 1;
        let driver = &self.drivers[number];
        // A usual date: a moment between two steps back.
        let wall = Time::from_millis(1_790_000_000_123) + self.now + driver.clock_ahead;
        if let (Limiter::Ours(in_flight), Some(ticket)) = (&driver.limiter, ticket) {
            let mut in_flight = in_flight.borrow_mut();
            let answered = match request.is_overloaded {
                true => Answered::Overloaded,
                false => Answered::After(took),
            };
            in_flight.answered(&ticket, answered, wall);
            assert!(in_flight.limit() >= 1, "{in_flight:?}");
        }
        self.evict(number);
    }
}
