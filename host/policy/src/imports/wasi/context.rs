//! What a granted policy sees of a system in one call: nothing that is there.

use std::sync::Arc;

use scupper_engine::Time;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::output::{Output, Stream};
use super::time::{CallClock, Seed, StepClock, seeded};
use crate::imports::store_data::{PolicyContext, StoreData};
use crate::runtime::usage::Counters;
use crate::wit::bindings::scupper::drain::log::Level;

/// Random bytes that one call of the host gives: keys and seeds are shorter.
const RANDOM_BYTES: u64 = 4096;

/// The context of one call.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    /// The function is pure: it is the same for the same input, so it cannot wait and all its dice are loaded.
    pub(super) pure: bool,
}

/// What the context of one call is made of.
pub(crate) struct Occasion<'a> {
    /// Whose log it writes into.
    pub(crate) context: &'a Arc<PolicyContext>,
    /// Who counts its lines.
    pub(crate) counters: &'a Arc<Counters>,
    /// The drain and its moment; `None`: there is no drain, the policy is asked who it is.
    pub(crate) drain: Option<(&'a str, Time)>,
    /// The function is called for its answer alone.
    pub(crate) pure: bool,
    /// Handles at once.
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
