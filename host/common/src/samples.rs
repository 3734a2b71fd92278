//! For tests of texts: the samples in a snapshot must contain all variants of an enum.

use std::error::Error;

use super::error::chain;

/// An enum whose variants are listed by [`variants!`](crate::variants).
pub trait Variants {
    /// Their names.
    const ALL: &'static [&'static str];
    /// The name of this one.
    fn variant(&self) -> &'static str;
}

/// Lists the variants of an enum. One that is not listed does not compile; one that is must be among the samples.
#[macro_export]
macro_rules! variants {
    ($of:ty: $($variant:ident)+) => {
        impl $crate::samples::Variants for $of {
            const ALL: &'static [&'static str] = &[$(stringify!($variant)),+];

            fn variant(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant)),+
                }
            }
        }
    };
}

/// Every variant is among the samples.
#[track_caller]
pub fn complete<T: Variants>(samples: &[T]) {
    for variant in T::ALL {
        let is_there = samples.iter().any(|sample| sample.variant() == *variant);
        assert!(is_there, "no sample is {variant}");
    }
}

/// The text of each error with its causes, under the enum's name.
#[track_caller]
pub fn errors<T: Variants + Error>(of: &str, samples: &[T]) -> String {
    complete(samples);
    let texts = samples.iter().map(|error| {
        let text = chain(error).replace('\n', "\n    ");
        format!("  {}: {text}\n", error.variant())
    });
    format!("{of}\n{}", texts.collect::<String>())
}
