//! The house rules that a program can check: [`check`] finds where they are broken.

mod code;
mod dependencies;
mod orphans;
mod rules;
mod source;
#[cfg(test)]
mod tests;

pub use rules::check;
pub use source::{Finding, Source, read};
