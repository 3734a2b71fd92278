//! The table of crossings in `host/ARCHITECTURE.md` has no empty cell, names only tests that exist, and says `S` exactly
//! where the simulation requires that the two features have met.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A cell of the table, by its row and its column.
type Cells = BTreeMap<(String, String), String>;

#[test]
fn each_pair_of_features_has_a_test_or_a_reason_why_they_never_meet() {
    let text = section();
    let cells = cells(&text);
    let tests = listed(&text, |line| line.split_once(". "));
    let reasons = listed(&text, |line| line.strip_prefix("* **")?.split_once("** "));
    let features: BTreeSet<&String> = cells.keys().flat_map(|(row, column)| [row, column]).collect();
    assert_eq!(
        cells.len(),
        features.len() * (features.len() - 1) / 2,
        "a triangle without gaps: {features:?}"
    );
    let mut used = BTreeSet::new();
    for (pair, cell) in &cells {
        assert!(!cell.is_empty(), "nothing plays {pair:?}");
        for part in cell.split(' ').filter(|part| *part != "S") {
            assert!(
                tests.contains_key(part) || reasons.contains_key(part),
                "{pair:?}: {part} is neither a test nor a reason below the table"
            );
            used.insert(part.to_owned());
        }
    }
    let named: BTreeSet<String> = tests.keys().chain(reasons.keys()).cloned().collect();
    assert_eq!(named, used, "each line below the table stands in a cell");
}

#[test]
fn each_test_of_the_table_exists() {
    for test in listed(&section(), |line| line.split_once(". ")).values() {
        let (path, name) = test.trim_matches('`').rsplit_once("::").unwrap();
        let file = host().join(path);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(text.contains(&format!("fn {name}(")), "{path} has no test {name}");
    }
}

#[test]
fn the_simulation_meets_what_the_table_leaves_to_it() {
    let code = fs::read_to_string(host().join("engine/simulation/src/crossings.rs")).unwrap();
    let (features, rest) = code.split_once("pub const NEVER_MEET").unwrap();
    let features: BTreeSet<String> = features.lines().filter_map(first_text).collect();
    let never: BTreeSet<(String, String)> = rest.lines().filter_map(first_two_texts).collect();
    assert!(features.len() > 5, "{features:?}");
    for ((row, column), cell) in cells(&section()) {
        let both = features.contains(&row) && features.contains(&column);
        let never =
            never.contains(&(column.clone(), row.clone())) || never.contains(&(row.clone(), column.clone()));
        assert_eq!(
            cell.split(' ').any(|part| part == "S"),
            both && !never,
            "{row} with {column}"
        );
    }
}

fn host() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The section of the table.
fn section() -> String {
    let whole = fs::read_to_string(host().join("ARCHITECTURE.md")).unwrap();
    let (_, after) = whole.split_once("\n## Crossings\n").unwrap();
    after.split("\n## ").next().unwrap().to_owned()
}

fn cells(section: &str) -> Cells {
    let mut rows = section.lines().filter(|line| line.starts_with("| ")).map(split);
    let head = rows.next().unwrap();
    let mut cells = Cells::new();
    for row in rows {
        let (name, values) = row.split_first().unwrap();
        for (column, value) in head.iter().skip(1).zip(values) {
            let own = cells.insert((name.clone(), column.clone()), value.clone());
            assert_eq!(own, None, "{name} has two rows");
        }
    }
    cells
}

/// The cells of a line of a table. A row ends with its own column, so nothing follows its last value.
fn split(line: &str) -> Vec<String> {
    let inner = line.strip_prefix("| ").unwrap().strip_suffix(" |").unwrap();
    inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

/// The lines of a list below the table, by what they begin with.
fn listed<'a>(
    section: &'a str,
    parse: impl Fn(&'a str) -> Option<(&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    let short = |key: &str| key.len() <= 3 && key.chars().all(|c| c.is_ascii_alphanumeric());
    let lines = section.lines().filter_map(parse).filter(|(key, _)| short(key));
    lines
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The first text of a line like `("surge", &[...]),`.
fn first_text(line: &str) -> Option<String> {
    let (text, _) = line.trim().strip_prefix("(\"")?.split_once('"')?;
    Some(text.to_owned())
}

/// The first two texts of a line like `("cancel", "deadline", "why"),`.
fn first_two_texts(line: &str) -> Option<(String, String)> {
    let mut texts = line.trim().strip_prefix("(\"")?.split("\", \"");
    Some((texts.next()?.to_owned(), texts.next()?.to_owned()))
}
