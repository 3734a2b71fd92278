//! Texts that name some of many things.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::Display;

/// `a, b and 3 more`: the first `most`, and how many more there are.
pub fn named<T: Display>(all: impl IntoIterator<Item = T>, most: usize) -> String {
    let mut all = all.into_iter();
    let first: Vec<String> = all.by_ref().take(most).map(|one| one.to_string()).collect();
    first.join(", ") + &and_more(all.count())
}

/// ` and 3 more`, or nothing.
pub fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_named_and_the_others_counted() {
        assert_eq!(named(["a"; 0], 2), "");
        assert_eq!(named(["a", "b"], 2), "a, b");
        assert_eq!(named(1..=5, 2), "1, 2 and 3 more");
    }
}
