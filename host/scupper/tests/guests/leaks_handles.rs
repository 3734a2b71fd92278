//! Creates resources and never drops them.

use guests::{Call, Outcome, Phase};

mod own {
    wit_bindgen::generate!({
        inline: "package guests:leak;
            interface things { resource thing { constructor(); } }
            world leak { export things; }",
    });

    pub struct Thing;

    impl exports::guests::leak::things::GuestThing for Thing {
        fn new() -> Self {
            Self
        }
    }

    pub struct Things;

    impl exports::guests::leak::things::Guest for Things {
        type Thing = Thing;
    }

    export!(Things with_types_in self);
}

guests::about!();
guests::hooks!([Phase::BeforeDrain], step);

fn step(_call: &Call) -> Outcome {
    loop {
        std::mem::forget(own::exports::guests::leak::things::Thing::new(own::Thing));
    }
}
