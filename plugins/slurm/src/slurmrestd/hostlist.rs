//! Hostlist expressions, with which Slurm names the nodes of a job: `login1,gpu[01-16,20]n[0-3]`.
//!
//! A list is never expanded: `n[0-999999999]` costs no more than `n1`.

/// Whether a host is in the list. `None`: the expression cannot be read.
pub(crate) fn contains(list: &str, host: &str) -> Option<bool> {
    let mut found = false;
    for name in split(list, ',')? {
        found |= matches(name, host)?;
    }
    Some(found)
}

/// Splits at a character outside of brackets.
fn split(text: &str, at: char) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return None,
            _ if c == at && !inside => {
                parts.push(text.get(begin..index)?);
                begin = index.checked_add(c.len_utf8())?;
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..)?);
    let whole = !inside && parts.iter().all(|part| !part.trim().is_empty());
    whole.then(|| parts.into_iter().map(str::trim).collect())
}

/// Whether one entry of the list, which may name many hosts, includes this one.
fn matches(name: &str, host: &str) -> Option<bool> {
    // The offsets in the host at which the rest of the entry may begin: adjacent brackets can split digits in many ways.
    let mut places = vec![0];
    let mut rest = name;
    while !rest.is_empty() {
        places = match rest.strip_prefix('[') {
            Some(inner) => {
                let (ranges, after) = inner.split_once(']')?;
                rest = after;
                numbers(host, &places, &ranges_of(ranges)?)
            }
            None => {
                let end = rest.find('[').unwrap_or(rest.len());
                let (literal, after) = rest.split_at(end);
                rest = after;
                literals(host, &places, literal)
            }
        };
    }
    Some(places.contains(&host.len()))
}

fn literals(host: &str, places: &[usize], literal: &str) -> Vec<usize> {
    let begins = |place: &&usize| host.get(**place..).is_some_and(|rest| rest.starts_with(literal));
    let ends = places.iter().filter(begins).map(|place| place + literal.len());
    ends.collect()
}

fn numbers(host: &str, places: &[usize], ranges: &[Range]) -> Vec<usize> {
    let mut ends = Vec::new();
    for place in places {
        let rest = host.get(*place..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        for length in 1..=digits {
            let is_in = |number: &str| ranges.iter().any(|range| range.contains(number));
            let end = place + length;
            if rest.get(..length).is_some_and(is_in) && !ends.contains(&end) {
                ends.push(end);
            }
        }
    }
    ends
}

/// `7`, or `007-120`: numbers are padded with zeros to the width of the first.
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

fn ranges_of(text: &str) -> Option<Vec<Range>> {
    text.split(',').map(Range::read).collect()
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits)
        };
        Some(Self {
            first: number(first)?,
            last: number(last)?,
            width: first.len(),
        })
    }

    fn contains(&self, digits: &str) -> bool {
        // A number longer than the width has no leading zeros.
        let is_padded = digits.len() == self.width || (digits.len() > self.width && !digits.starts_with('0'));
        let number = digits.parse();
        is_padded && number.is_ok_and(|number| (self.first..=self.last).contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::contains;

    /// Checks hosts inside and outside of the list.
    #[track_caller]
    fn check(list: &str, inside: &[&str], outside: &[&str]) {
        for host in inside {
            assert_eq!(contains(list, host), Some(true), "{host} in {list}");
        }
        for host in outside {
            assert_eq!(contains(list, host), Some(false), "{host} in {list}");
        }
    }

    #[test]
    fn plain_names_are_compared_whole() {
        check("gpu1", &["gpu1"], &["gpu", "gpu10", "gpu11", "agpu1", ""]);
        check("gpu1,gpu10", &["gpu1", "gpu10"], &["gpu0", "gpu1,gpu10"]);
        check("a.example.com, b", &["a.example.com", "b"], &["a"]);
    }

    #[test]
    fn ranges_are_numbers() {
        let inside = ["gpu1", "gpu2", "gpu4", "gpu7"];
        check(
            "gpu[1-4,7]",
            &inside,
            &["gpu5", "gpu", "gpu07", "gpu17", "gpu1-4"],
        );
        check(
            "gpu[8-12]",
            &["gpu8", "gpu9", "gpu10", "gpu12"],
            &["gpu08", "gpu13", "gpu1"],
        );
        check("n[5]", &["n5"], &["n", "n55"]);
        check("n[7-3]", &[], &["n3", "n5", "n7"]);
    }

    #[test]
    fn zeros_count() {
        check(
            "n[001-100]",
            &["n001", "n099", "n100"],
            &["n1", "n01", "n0001", "n000", "n101"],
        );
        check(
            "n[08-120]",
            &["n08", "n99", "n100", "n120"],
            &["n8", "n008", "n0100"],
        );
        check("n[0-3]", &["n0", "n3"], &["n00"]);
    }

    #[test]
    fn several_brackets_in_one_name() {
        check(
            "rack[0-3]n[01-16]-ib",
            &["rack0n01-ib", "rack3n16-ib"],
            &["rack4n01-ib", "rack0n1-ib"],
        );
        // The same digits can be split in more than one way.
        check(
            "n[1-11][0-5]",
            &["n10", "n15", "n110", "n115"],
            &["n16", "n1", "n1206"],
        );
        check(
            "[1-3]a,b[1-2]c[3-4],d",
            &["2a", "b2c3", "d"],
            &["4a", "b2c5", "b2"],
        );
    }

    #[test]
    fn a_huge_range_costs_nothing() {
        let bomb = "n[0-999999999]".to_owned() + &"[0-9999999999]".repeat(12);
        let host = "n".to_owned() + &"7".repeat(60);
        let long = vec!["n[0-18446744073709551615]"; 2_000].join(",");
        let begun = std::time::Instant::now();
        assert_eq!(contains(&bomb, &host), Some(true));
        assert_eq!(contains(&bomb, "m1"), Some(false));
        assert_eq!(contains(&long, "n99999999999999999999999999"), Some(false));
        assert_eq!(contains(&long, "n18446744073709551615"), Some(true));
        assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    }

    #[test]
    fn an_unreadable_expression_is_none() {
        for list in [
            "n[", "n]", "n[1", "n[]", "n[a-c]", "n[1-]", "n[-1]", "n[+1]", "n[1,,2]", "a,,b", ",", "",
            "n[[1]]",
        ] {
            assert_eq!(contains(list, "n1"), None, "{list:?}");
        }
        // No cluster needs bounds beyond 64 bits.
        assert_eq!(contains("n[0-99999999999999999999]", "n1"), None);
    }

    #[test]
    fn characters_of_several_bytes_do_no_harm() {
        check("nöde[1-2]", &["nöde1"], &["nöde3", "node1"]);
        assert_eq!(contains("n[ö]", "nö"), None);
    }
}
