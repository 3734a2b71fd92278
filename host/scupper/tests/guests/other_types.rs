//! Has the right names, and functions with other types.

wit_bindgen::generate!({
    inline: "package scupper:drain@0.1.0;
        interface about { describe: func() -> string; check-config: func() -> list<string>; }
        interface planner { make-plan: func() -> u32; }
        world policy { export about; export planner; }",
});

struct Other;

impl exports::scupper::drain::about::Guest for Other {
    fn describe() -> String {
        "nobody".to_owned()
    }

    fn check_config() -> Vec<String> {
        Vec::new()
    }
}

impl exports::scupper::drain::planner::Guest for Other {
    fn make_plan() -> u32 {
        0
    }
}

export!(Other);
