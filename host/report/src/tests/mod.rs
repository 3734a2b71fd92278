//! Every text of this crate, in a few large snapshots. A notice, reason, outcome or phase that no snapshot contains
//! fails to compile, or fails here. To accept new texts, run `INSTA_UPDATE=always cargo test …`, then review the
//! difference in `snapshots/`.

mod drain;
mod followed;
mod many_pods;
mod metrics;
mod overview;
mod plan;
pub(crate) mod samples;
mod status;

/// An enum whose variants must all be in the samples.
trait Variants {
    const ALL: &'static [&'static str];
    fn variant(&self) -> &'static str;
}

/// A variant that is not listed fails to compile; a listed one must be in the samples.
macro_rules! variants {
    ($of:ty: $($variant:ident)+) => {
        impl Variants for $of {
            const ALL: &'static [&'static str] = &[$(stringify!($variant)),+];

            fn variant(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant)),+
                }
            }
        }
    };
}
use variants;

#[track_caller]
fn complete<T: Variants>(samples: &[T]) {
    for variant in T::ALL {
        let is_there = samples.iter().any(|sample| sample.variant() == *variant);
        assert!(is_there, "no sample is {variant}");
    }
}

/// Compares a text with the accepted snapshot of this name.
#[track_caller]
fn accepted(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Formats values as pretty-printed JSON.
fn pretty(values: &[serde_json::Value]) -> String {
    let texts = values
        .iter()
        .map(|value| serde_json::to_string_pretty(value).unwrap());
    texts.collect::<Vec<_>>().join("\n")
}
