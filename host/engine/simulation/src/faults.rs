//! Faults: actions of other clients, and failures.

use scupper_engine::{Event, Time, Uid, UnhealthyPods};

use crate::cluster::{Change, Owner};
use crate::timers::{Chore, Fault, Timer};
use crate::violation::Checked;
use crate::world::World;

impl World {
    /// Performs the fault planned for this moment.
    pub(crate) fn inject(&mut self, fault: Fault) -> Checked {
        if let Fault::Order(episode, event) = fault {
            return if episode == self.episode {
                self.deliver_order(*event)
            } else {
                Ok(())
            };
        }
        self.coverage.count("others", fault.name());
        self.note(|| format!("fault: {fault:?}"));
        match fault {
            Fault::Cancel => self.deliver_order(Event::Cancel {
                reason: String::from("scripted"),
            })?,
            Fault::Lost => self.deliver_order(Event::Lost {
                reason: String::from("scripted"),
            })?,
            Fault::Deadline(after) => {
                let at = after.map(|after| Time::from_millis(self.now + after));
                self.deliver_order(Event::Deadline(at))?;
            }
            Fault::Pause => {
                if self.drain.is_some() {
                    self.deliver_order(Event::Pause)?;
                    let after = self.rng.span(10_000, 30_000);
                    self.queue.push(self.now + after, Timer::Fault(Fault::Crash));
                }
            }
            Fault::Crash => self.kill("a crash"),
            Fault::ClockStep(millis) => self.set_clock(millis),
            Fault::Break(stream) => self.break_watch(stream),
            other => self.interfere(other),
        }
        Ok(())
    }

    fn set_clock(&mut self, millis: i64) {
        let way = if millis < 0 { "set back" } else { "set forward" };
        self.coverage.count("clock", way);
        self.clock.step(millis);
    }

    fn interfere(&mut self, fault: Fault) {
        match fault {
            Fault::Cordon(owner) => {
                self.cluster.write_node(|node| {
                    if node.owner == Owner::Nobody {
                        node.owner = owner;
                    }
                });
            }
            Fault::Uncordon => {
                self.cluster.write_node(|node| node.owner = Owner::Nobody);
            }
            Fault::Touch => {
                self.cluster.write_node(|_| {});
            }
            Fault::Wipe => {
                self.wiped = true;
                self.cluster.write_node(|node| node.checkpoint = None);
            }
            Fault::Forbidden(millis) => {
                let until = self.now + millis;
                self.forbidden_until = self.forbidden_until.max(Some(until));
            }
            Fault::NodeDeleted => self.cluster.replace_node(false),
            Fault::NodeReplaced => self.cluster.replace_node(true),
            Fault::Arrival(newborn) => {
                self.cluster.born(self.now, *newborn);
            }
            Fault::NamespaceDies(namespace) => {
                self.cluster.dying.insert(namespace.clone());
                let at = self.now + self.rng.span(2_000, 40_000);
                self.queue.push(at, Timer::Chore(Chore::Sweep(namespace)));
            }
            Fault::DeletePod(lot) => self.delete_any_pod(lot),
            Fault::BudgetRelaxed(name) => {
                if let Some(truth) = self.cluster.budgets.get_mut(&name) {
                    truth.budget.desired_healthy = 0;
                    truth.budget.unhealthy_pods = UnhealthyPods::AlwaysAllow;
                    truth.budget.observed = false;
                    let at = self.now + truth.lag;
                    self.cluster.changes.push(Change::Budget(name.clone()));
                    self.queue.push(at, Timer::Chore(Chore::Sync(name)));
                }
            }
            Fault::BudgetDeleted(name) => {
                if let Some(truth) = self.cluster.budgets.remove(&name) {
                    self.cluster
                        .changes
                        .push(Change::BudgetGone(truth.budget.namespace, name));
                }
            }
            _ => {}
        }
    }

    /// Another client deletes a pod of the node, as `kubectl delete pod` does; sometimes with force.
    fn delete_any_pod(&mut self, lot: u64) {
        let pods: Vec<Uid> = self
            .cluster
            .on_node()
            .map(|truth| truth.pod.id.uid.clone())
            .collect();
        let place = usize::try_from(lot % (pods.len() as u64).max(1)).unwrap_or(0);
        if let Some(uid) = pods.get(place) {
            if lot.is_multiple_of(2) {
                self.cluster.remove(self.now, uid);
            } else {
                self.cluster.delete(self.now, uid, None);
            }
        }
    }
}

impl Fault {
    const fn name(&self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::Lost => "Lost",
            Self::Deadline(_) => "Deadline",
            Self::Pause => "Pause",
            Self::Cordon(_) => "Cordon",
            Self::Uncordon => "Uncordon",
            Self::Touch => "Touch",
            Self::Wipe => "Wipe",
            Self::NodeDeleted => "NodeDeleted",
            Self::NodeReplaced => "NodeReplaced",
            Self::Break(_) => "Break",
            Self::Arrival(_) => "Arrival",
            Self::NamespaceDies(_) => "NamespaceDies",
            Self::DeletePod(_) => "DeletePod",
            Self::BudgetRelaxed(_) => "BudgetRelaxed",
            Self::BudgetDeleted(_) => "BudgetDeleted",
            Self::Crash => "Crash",
            Self::Forbidden(_) => "Forbidden",
            Self::ClockStep(_) => "ClockStep",
            Self::Order(..) => "Order",
        }
    }
}
