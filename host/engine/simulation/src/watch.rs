//! From the true state to the running process: watches with their delays, repetitions, reordering and interruptions.

use scupper_engine::{Event, Uid};

use crate::cluster::Change;
use crate::timers::{Stream, Timer};
use crate::world::World;

impl World {
    /// Sends the changes to the watches.
    pub(crate) fn publish(&mut self) {
        while !self.cluster.changes.is_empty() {
            for change in std::mem::take(&mut self.cluster.changes) {
                match change {
                    Change::Later(at, chore) if at <= self.now => self.cluster.chore(self.now, chore),
                    Change::Later(at, chore) => self.queue.push(at, Timer::Chore(chore)),
                    Change::Node => self.send(Stream::Node, Event::Node(self.cluster.node_event())),
                    Change::Pod(uid) => self.send_pod(&uid),
                    Change::PodGone(uid) => self.send(Stream::Pods, Event::PodDeleted(uid)),
                    Change::Budget(name) => {
                        if let Some(budget) =
                            self.cluster.budgets.get(&name).map(|truth| truth.budget.clone())
                        {
                            self.send(Stream::Budgets, Event::BudgetApplied(budget));
                        }
                    }
                    Change::BudgetGone(namespace, name) => {
                        self.send(Stream::Budgets, Event::BudgetDeleted { namespace, name });
                    }
                    Change::Volumes => {
                        self.send(Stream::Volumes, Event::Volumes(self.cluster.attached_volumes()));
                    }
                }
            }
        }
    }

    fn send_pod(&mut self, uid: &Uid) {
        if let Some(pod) = self.cluster.pods.get(uid).map(|truth| truth.pod.clone()) {
            self.send(Stream::Pods, Event::PodApplied(pod));
        }
    }

    /// Puts an event on a watch, if the watch has begun.
    fn send(&mut self, stream: Stream, event: Event) {
        let Some(channel) = self.streams.get(&stream).copied().filter(|channel| channel.live) else {
            return;
        };
        let faults = &self.scenario.faults;
        let (reorder, duplicate, lag) = (faults.reorder, faults.duplicate, faults.watch_lag);
        let latency = self.now + self.rng.span(lag, 5_000.max(lag));
        let overtakes = self.rng.chance(reorder) && stream != Stream::Budgets;
        let at = if overtakes {
            self.coverage.count("watch", "reordered");
            latency.max(channel.begun)
        } else {
            latency.max(channel.last)
        };
        if let Some(channel) = self.streams.get_mut(&stream) {
            channel.last = channel.last.max(at);
        }
        let (incarnation, epoch) = (self.incarnation, channel.epoch);
        // The same event again, after later ones: a watch that restarts behind a proxy, or a queue of ours.
        if at > self.now && self.rng.chance(duplicate) && stream != Stream::Budgets {
            self.coverage.count(
                "watch",
                if stream == Stream::Node {
                    "old node"
                } else {
                    "repeated"
                },
            );
            let later = at + self.rng.span(500, 60_000);
            let event = event.clone();
            self.queue.push(
                later,
                Timer::Watch {
                    incarnation,
                    stream,
                    epoch,
                    event,
                    snapshot: None,
                },
            );
        }
        self.queue.push(
            at,
            Timer::Watch {
                incarnation,
                stream,
                epoch,
                event,
                snapshot: None,
            },
        );
    }

    /// Begins the watches of a new process.
    pub(crate) fn begin_watches(&mut self) {
        self.streams.remove(&Stream::Volumes);
        for stream in [Stream::Node, Stream::Pods, Stream::Budgets] {
            self.streams.insert(stream, crate::world::Channel::default());
            let at = self.now + self.rng.span(50, 3_000);
            self.queue.push(
                at,
                Timer::List {
                    incarnation: self.incarnation,
                    stream,
                },
            );
        }
    }

    /// A watch breaks: events in flight are lost, and after a while it restarts with a list.
    pub(crate) fn break_watch(&mut self, stream: Stream) {
        self.coverage.count("watch", "broken");
        self.node_watch_broke |= stream == Stream::Node;
        let Some(channel) = self.streams.get_mut(&stream).filter(|channel| channel.live) else {
            return;
        };
        channel.live = false;
        channel.epoch += 1;
        let at = self.now + self.rng.span(1_000, 60_000);
        self.queue.push(
            at,
            Timer::List {
                incarnation: self.incarnation,
                stream,
            },
        );
    }

    /// Takes the list with which a watch begins.
    pub(crate) fn list(&mut self, stream: Stream) {
        let event = match stream {
            Stream::Node => Event::Node(self.cluster.node_event()),
            Stream::Pods => Event::Pods(self.cluster.list()),
            Stream::Volumes => Event::Volumes(self.cluster.attached_volumes()),
            Stream::Budgets => Event::Budgets(
                self.cluster
                    .budgets
                    .values()
                    .map(|truth| truth.budget.clone())
                    .collect(),
            ),
        };
        let at = self.now + self.rng.span(30, 1_000);
        let incarnation = self.incarnation;
        let snapshot = Some(self.now);
        if let Some(channel) = self.streams.get_mut(&stream) {
            channel.live = true;
            channel.last = at;
            channel.begun = at;
            let epoch = channel.epoch;
            self.queue.push(
                at,
                Timer::Watch {
                    incarnation,
                    stream,
                    epoch,
                    event,
                    snapshot,
                },
            );
        }
    }
}
