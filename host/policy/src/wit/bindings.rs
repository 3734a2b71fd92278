//! The output of wasmtime's generator for `wit/`. Nothing here is written by hand.
//!
//! The world `full-policy` has every interface; a component only exports `about` and at least one other, so the
//! interfaces are found one by one through their `GuestIndices`. Arguments borrow from the engine's types: a string on
//! its way into a guest is copied only once, into the guest's own memory.

wasmtime::component::bindgen!({
    world: "full-policy",
    path: "../../wit",
    imports: {
        "scupper:drain/cluster": async,
        "scupper:drain/events": async,
        "scupper:drain/facts": async,
        "scupper:drain/http": async,
    },
    exports: { default: async },
    ownership: Borrowing { duplicate_if_necessary: true },
});
