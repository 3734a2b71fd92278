//! Compact lists of job numbers for the hook's state: the differences in hexadecimal, separated by dots.

/// The limit for the list in bytes. The rest of the 1,024 bytes is for the other fields.
const BYTES: usize = 600;
/// The most jobs with unknown nodes to remember.
pub(super) const UNPLACED: usize = 16;
/// The most bytes of one more number.
const ONE: usize = 17;

/// The numbers, ascending.
pub(super) fn read(text: &str) -> Vec<u64> {
    let mut last = 0_u64;
    let steps = text
        .split('.')
        .filter_map(|step| u64::from_str_radix(step, 16).ok());
    steps
        .map(|step| {
            last = last.saturating_add(step);
            last
        })
        .collect()
}

/// They must ascend.
pub(super) fn write(numbers: &[u64]) -> String {
    let mut last = 0;
    let steps = numbers.iter().map(|number| {
        let step = number.saturating_sub(last);
        last = *number;
        format!("{step:x}")
    });
    steps.collect::<Vec<_>>().join(".")
}

/// Whether there is no room for another number.
pub(super) fn is_full(numbers: &[u64]) -> bool {
    write(numbers).len() + ONE > BYTES
}

#[cfg(test)]
mod tests {
    use super::{is_full, read, write};

    #[test]
    fn numbers_survive_writing_and_reading() {
        for numbers in [&[][..], &[7], &[1, 2, 3, 4_000_000_000, u64::MAX]] {
            assert_eq!(read(&write(numbers)), numbers);
        }
        assert_eq!(write(&[100_000, 100_001, 100_020]), "186a0.1.13");
        assert_eq!(read("no number"), Vec::<u64>::new());
    }

    #[test]
    fn some_hundred_jobs_fit() {
        let jobs = |count: u64| -> Vec<u64> { (0..count).map(|job| 9_000_000 + 40 * job).collect() };
        assert!(!is_full(&jobs(190)));
        assert!(is_full(&jobs(210)));
    }
}
