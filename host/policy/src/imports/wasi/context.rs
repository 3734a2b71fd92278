//! The view of the system that a policy with the grant `wasi` has in one call: empty.

use std::sync::Arc;

use scupper_engine::Time;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::output::{Output, Stream};
use super::time::{CallClock, Seed, StepClock, seeded};
use crate::imports::store_data::{PolicyContext, StoreData};
use crate::runtime::usage::Counters;
use crate::wit::bindings::scupper::drain::log::Level;

/// Random bytes that one call of the host returns: keys and seeds are shorter.
const RANDOM_BYTES: u64 = 4096;

/// The context of one call.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    /// The function is pure: it gives the same output for the same input, so it cannot wait and its random numbers are
    /// seeded.
    pub(super) pure: bool,
}

/// The inputs for the context of one call.
pub(crate) struct Occasion<'a> {
    /// The policy whose log it writes to.
    pub(crate) context: &'a Arc<PolicyContext>,
    /// Counts its lines.
    pub(crate) counters: &'a Arc<Counters>,
    /// The drain and the time of the call; `None`: no drain, the call only describes the policy.
    pub(crate) drain: Option<(&'a str, Time)>,
    /// The function is called for its answer alone.
    pub(crate) pure: bool,
    /// The most open handles.
    pub(crate) handles: usize,
}

impl Wasi {
    pub(crate) fn new(occasion: &Occasion<'_>) -> Self {
        let Occasion {
            context,
            counters,
            drain,
            pure,
            handles,
        } = *occasion;
        let (id, now) = drain.unwrap_or(("", Time::from_millis(0)));
        let output = |level| Output::new(Arc::clone(context), Arc::clone(counters), level);
        let mut builder = WasiCtx::builder();
        builder
            .stdout(Stream::new(output(Level::Info)))
            .stderr(Stream::new(output(Level::Warn)))
            .wall_clock(CallClock::at(now))
            .monotonic_clock(StepClock::new(pure))
            .max_random_size(RANDOM_BYTES);
        if pure {
            let seed = |what| Seed::of(what, id, &context.policy);
            builder
                .secure_random(seeded(&seed("secure")))
                .insecure_random(seeded(&seed("insecure")))
                .insecure_random_seed(seed("seed").number());
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        Self {
            ctx: builder.build(),
            table,
            pure,
        }
    }

    pub(super) const fn view(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.ctx,
            table: &mut self.table,
        }
    }
}

impl WasiView for StoreData {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi().view()
    }
}
