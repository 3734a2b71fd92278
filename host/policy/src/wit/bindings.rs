//! What wasmtime's generator makes of `wit/`. Nothing here is written by hand.
//!
//! The world `full-policy` has every interface; a component needs to export `about` and one other, so the interfaces are
//! looked up one by one through their `GuestIndices`. Arguments borrow from the engine's types: no string is copied
//! on its way into a guest but into the guest's own memory.

wasmtime::component::bindgen!({
    world: "full-policy",
    path: "../../wit",
    imports: {
        "scupper:drain/cluster": async,
        "scupper:drain/events": async,
        "scupper:drain/http": async,
    },
    exports: { default: async },
    ownership: Borrowing { duplicate_if_necessary: true },
});
