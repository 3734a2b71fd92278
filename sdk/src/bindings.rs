//! The bindings that `wit-bindgen` generates from `wit/`: the only module with `unsafe` code, all of it generated.
//!
//! One world holds the imports, and each interface that a policy can export has its own. A component exports every world
//! that its crate mentions, so a policy that exports only a planner mentions only that world.

pub mod imports {
    wit_bindgen::generate!({
        world: "imports",
        path: "../wit",
        additional_derives: [PartialEq, Eq],
        generate_all,
        generate_unused_types: true,
    });
}

pub mod about {
    wit_bindgen::generate!({
        inline: "package scupper:sdk; world about { export scupper:drain/about@0.1.0; }",
        path: "../wit",
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "export_about",
    });
}

pub mod planner {
    wit_bindgen::generate!({
        inline: "package scupper:sdk; world planner { export scupper:drain/planner@0.1.0; }",
        path: "../wit",
        with: { "scupper:drain/types@0.1.0": crate::bindings::imports::scupper::drain::types },
        pub_export_macro: true,
        export_macro_name: "export_planner",
    });
}

pub mod hooks {
    wit_bindgen::generate!({
        inline: "package scupper:sdk; world hooks { export scupper:drain/hooks@0.1.0; }",
        path: "../wit",
        additional_derives: [PartialEq, Eq],
        with: { "scupper:drain/types@0.1.0": crate::bindings::imports::scupper::drain::types },
        pub_export_macro: true,
        export_macro_name: "export_hooks",
    });
}

pub mod surroundings {
    wit_bindgen::generate!({
        inline: "package scupper:sdk; world surroundings { export scupper:drain/surroundings@0.1.0; }",
        path: "../wit",
        additional_derives: [PartialEq, Eq],
        with: { "scupper:drain/types@0.1.0": crate::bindings::imports::scupper::drain::types },
        pub_export_macro: true,
        export_macro_name: "export_surroundings",
    });
}
