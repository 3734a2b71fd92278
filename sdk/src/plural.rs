//! Counts in messages.

/// A number with its noun, in the plural unless the number is 1.
///
/// ```
/// use scupper_sdk::count;
///
/// assert_eq!(count(0, "job"), "0 jobs");
/// assert_eq!(count(1, "job"), "1 job");
/// assert_eq!(count(2, "job"), "2 jobs");
/// ```
pub fn count(number: usize, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn only_one_is_singular() {
        let counts = [0, 1, 2, 11, 21].map(|number| count(number, "server"));
        assert_eq!(
            counts,
            ["0 servers", "1 server", "2 servers", "11 servers", "21 servers"]
        );
    }
}
