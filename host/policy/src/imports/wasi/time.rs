//! Coarse clocks, and random numbers that are the same for the same drain: a repeated plan must be the same plan.

use std::time::{Duration, Instant};

use scupper_engine::Time;
use sha2::{Digest, Sha256};
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::clocks::{WasiClocksCtxView, WasiClocksView};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock};

use crate::imports::store_data::StoreData;

/// The resolution of a step's clock: too coarse to measure the host.
const STEP: Duration = Duration::from_millis(10);

/// Always shows the time of the call, which is `drain.now`.
pub(super) struct CallClock(Duration);

impl CallClock {
    pub(super) const fn at(now: Time) -> Self {
        Self(Duration::from_millis(now.as_millis()))
    }
}

impl HostWallClock for CallClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// Advances in steps from the beginning of the call; in a pure function it stands still.
pub(super) struct StepClock(Option<Instant>);

impl StepClock {
    pub(super) fn new(pure: bool) -> Self {
        Self((!pure).then(Instant::now))
    }
}

impl HostMonotonicClock for StepClock {
    fn resolution(&self) -> u64 {
        nanos(STEP)
    }

    fn now(&self) -> u64 {
        let gone = self.0.map_or(0, |began| nanos(began.elapsed()));
        gone - gone % nanos(STEP)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The monotonic clock as an import: only steps may wait.
pub(super) struct Waiting;

impl HasData for Waiting {
    type Data<'a> = WaitingView<'a>;
}

pub(super) struct WaitingView<'a> {
    clocks: WasiClocksCtxView<'a>,
    pure: bool,
}

pub(super) fn waiting(caller: &mut StoreData) -> WaitingView<'_> {
    let pure = caller.wasi().pure;
    WaitingView {
        clocks: caller.clocks(),
        pure,
    }
}

impl WaitingView<'_> {
    fn may_wait(&self) -> wasmtime::Result<()> {
        if self.pure {
            wasmtime::bail!(
                "it wants to wait, and only `step` may: the other functions are called for their answer alone"
            );
        }
        Ok(())
    }
}

impl monotonic_clock::Host for WaitingView<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.clocks.now()
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        self.clocks.resolution()
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.may_wait()?;
        self.clocks.subscribe_instant(when)
    }

    fn subscribe_duration(&mut self, time: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.may_wait()?;
        self.clocks.subscribe_duration(time)
    }
}

/// The seed of a pure function's random numbers.
pub(super) struct Seed([u8; 32]);

impl Seed {
    /// Depends on the kind of numbers, the drain and the policy.
    pub(super) fn of(kind: &str, drain: &str, policy: &str) -> Self {
        let mut hasher = Sha256::new();
        for part in [kind, drain, policy] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// As one number.
    pub(super) fn number(&self) -> u128 {
        let (half, _) = self.0.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
        u128::from_le_bytes(*half)
    }
}

/// 4 KiB of numbers, repeated: more than a policy needs.
pub(super) fn seeded(seed: &Seed) -> Deterministic {
    let block = |number: u8| {
        Sha256::new()
            .chain_update(seed.0)
            .chain_update([number])
            .finalize()
    };
    Deterministic::new((0..128).flat_map(block).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_drains_policies_and_kinds_have_other_numbers() {
        let number = |kind, drain, policy| Seed::of(kind, drain, policy).number();
        let one = number("seed", "drain", "p");
        assert_eq!(one, number("seed", "drain", "p"));
        for other in [
            number("secure", "drain", "p"),
            number("seed", "drain2", "p"),
            number("seed", "drain", "q"),
            number("seed", "drai", "np"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn clocks_stand_still_or_go_in_steps() {
        let frozen = StepClock::new(true);
        assert_eq!(frozen.now(), 0);
        let going = StepClock(Instant::now().checked_sub(Duration::from_millis(1234)));
        assert!(going.now() >= nanos(Duration::from_millis(1230)) && going.now().is_multiple_of(nanos(STEP)));
        let wall = CallClock::at(Time::from_millis(1_700_000_200_000));
        assert_eq!(wall.now().as_secs(), 1_700_000_200);
    }
}
