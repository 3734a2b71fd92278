//! A demo's own narration, without what depends on time.

/// How the demo's reports of what happens beside the drain begin.
const ASIDE: &str = "            (";
/// Which evictions a budget refuses, and so how many requests there are, depends on time.
const COUNTS: &str = "            API requests of the driver: ";

/// The narration without the lines of drivers, whose order varies. The reports of what happens beside the drain are at
/// the end of each paragraph, sorted, each once; durations and counts of requests are left out.
pub(crate) fn of(text: &str) -> String {
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n")
}

fn paragraph(text: &str) -> String {
    let lines = text.lines().filter(|line| !is_of_driver(line));
    let (mut asides, mut told): (Vec<_>, Vec<_>) = lines
        .map(|line| match line.starts_with(COUNTS) {
            true => format!("{COUNTS}…"),
            false => untimed(line),
        })
        .partition(|line| line.starts_with(ASIDE));
    asides.sort();
    asides.dedup();
    told.extend(asides);
    told.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// `      0.0s  drain    node worker-1`, with the node's name before it if there are several.
fn is_of_driver(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_time = |word: &str| {
        let seconds = word.strip_suffix('s');
        seconds.is_some_and(|seconds| seconds.contains('.') && seconds.parse::<f64>().is_ok())
    };
    let first = words.next().unwrap_or_default();
    is_time(first) || first.starts_with("worker-") && words.next().is_some_and(is_time)
}

/// The line with `…` for each duration.
fn untimed(line: &str) -> String {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '_');
    let parts = line.split_inclusive(ends);
    let part = |part: &str| {
        let word = part.trim_end_matches(ends);
        let rest = part.strip_prefix(word).unwrap_or_default();
        let word = if is_duration(word) { "…" } else { word };
        format!("{word}{rest}")
    };
    parts.map(part).collect()
}

/// `3s`, `0.4s`, `1m05s`, `2h`.
fn is_duration(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_digit());
    let ends = word.ends_with(['s', 'm', 'h']);
    begins && ends && word.chars().all(|c| c.is_ascii_digit() || ".smh".contains(c))
}

#[test]
fn only_what_depends_on_time_is_left_out() {
    let text = "A cluster.\n\n$ kubectl create\n      0.0s  drain    node a\n            (z: for 3s)\n\
                $ kubectl delete\nworker-1    1.5s  evict    b\n            (a 1m05s)\n            (a 2.5s)\n\
                \nThe end of worker-1 after 0.4s, 3 times.\n";
    assert_eq!(
        of(text),
        "A cluster.\n\n$ kubectl create\n$ kubectl delete\n            (a …)\n            (z: for …)\n\n\
         The end of worker-1 after …, 3 times.\n"
    );
}
