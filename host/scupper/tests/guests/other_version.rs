//! A policy of the future.

wit_bindgen::generate!({
    inline: "package scupper:drain@0.9.0;
        interface about { describe: func() -> string; }
        world policy { export about; }",
});

struct Future;

impl exports::scupper::drain::about::Guest for Future {
    fn describe() -> String {
        "it is all different".to_owned()
    }
}

export!(Future);
