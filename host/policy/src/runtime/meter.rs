//! Meters the memory, tables and CPU time of a running guest.

use std::sync::Arc;
use std::time::Duration;

use scupper_policy_spec::Limits;
use wasmtime::{ResourceLimiter, UpdateDeadline};

use super::bounds::Bounds;
use super::cpu::CpuTime;
use super::fault::Overrun;
use super::usage::Counters;

/// Counts the usage of one store.
pub(crate) struct Meter {
    memory: Gauge,
    tables: Gauge,
    instances: usize,
    memories: usize,
    cpu: Duration,
    spent: Arc<CpuTime>,
    /// The usage to report after the call.
    pub(crate) counters: Arc<Counters>,
}

/// A sum with a bound.
struct Gauge {
    used: usize,
    bound: usize,
    last: usize,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, bounds: &Bounds) -> Self {
        Self {
            memory: Gauge::new(limits.memory),
            tables: Gauge::new(limits.table_elements),
            instances: limits.instances,
            memories: limits.memories,
            cpu: bounds.cpu,
            spent: Arc::clone(&bounds.spent),
            counters: Arc::clone(&bounds.counters),
        }
    }

    /// Another tick has passed while the guest ran: it yields, or exceeds its limit.
    pub(crate) fn tick(&mut self) -> wasmtime::Result<UpdateDeadline> {
        if self.spent.spent() >= self.cpu {
            return Err(Overrun::Cpu(self.cpu).into());
        }
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let bound = self.memory.bound;
        let grown = self.memory.grow(now, wanted, most);
        self.counters.memory(self.memory.used);
        grown.ok_or_else(|| Overrun::Memory(bound).into())
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory.shrink_back();
        Ok(())
    }

    fn table_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let bound = self.tables.bound;
        let grown = self.tables.grow(now, wanted, most);
        self.counters.tables(self.tables.used);
        grown.ok_or_else(|| Overrun::Tables(bound).into())
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.tables.shrink_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances.saturating_mul(self.memories)
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

impl Gauge {
    const fn new(bound: usize) -> Self {
        Self {
            used: 0,
            bound,
            last: 0,
        }
    }

    /// `Some(false)`: the guest's own declared maximum forbids it; the guest handles that. `None`: our limit forbids
    /// it.
    fn grow(&mut self, now: usize, wanted: usize, most: Option<usize>) -> Option<bool> {
        self.last = 0;
        if most.is_some_and(|most| wanted > most) {
            return Some(false);
        }
        let more = wanted.saturating_sub(now);
        let used = self.used.checked_add(more).filter(|&used| used <= self.bound)?;
        self.used = used;
        self.last = more;
        Some(true)
    }

    fn shrink_back(&mut self) {
        self.used = self.used.saturating_sub(self.last);
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        let limits = Limits {
            memory: 100,
            table_elements: 10,
            ..Limits::default()
        };
        let hour = Duration::from_secs(3600);
        Meter::new(&limits, &Bounds::new(&limits, hour, hour))
    }

    #[test]
    fn memories_share_one_bound() {
        let mut meter = meter();
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(meter.memory_growing(0, 40, None).unwrap());
        assert_eq!(meter.counters.usage(Duration::ZERO, Duration::ZERO).memory, 100);
        let error = meter.memory_growing(40, 41, None).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Overrun::Memory(100)));
    }

    #[test]
    fn a_failed_growth_is_not_charged() {
        let mut meter = meter();
        assert!(meter.memory_growing(0, 100, None).unwrap());
        meter
            .memory_grow_failed(wasmtime::format_err!("no room"))
            .unwrap();
        assert!(meter.memory_growing(0, 100, None).unwrap());
    }

    #[test]
    fn reaching_the_guests_own_maximum_is_not_an_overrun() {
        let mut meter = meter();
        assert!(!meter.memory_growing(0, 60, Some(50)).unwrap());
        assert!(!meter.table_growing(0, 6, Some(5)).unwrap());
        assert!(meter.table_growing(0, 10, None).unwrap());
        assert!(meter.table_growing(10, 11, None).is_err());
    }

    #[test]
    fn a_guest_yields_at_every_tick_until_its_time_has_expired() {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, Duration::from_millis(20), Duration::from_secs(3600));
        let mut meter = Meter::new(&limits, &bounds);
        let error = bounds.spent.count(|| {
            loop {
                match meter.tick() {
                    Ok(UpdateDeadline::YieldCustom(1, _)) => {}
                    Ok(_) => panic!("it does not yield"),
                    Err(error) => return error,
                }
            }
        });
        assert_eq!(
            error.downcast_ref(),
            Some(&Overrun::Cpu(Duration::from_millis(20)))
        );
    }
}
