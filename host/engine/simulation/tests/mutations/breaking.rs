//! Puts every row of the table into the sources at once, each behind a switch.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::table::{Mutation, SWITCH};

/// The text of each source file, by its path.
pub(crate) type Sources = BTreeMap<String, String>;

/// The module of the broken engine that knows which row is switched on: the number in the environment, from 1.
/// Without a number none is.
pub(crate) const SWITCHES: &str = "\
extern crate std;

static NUMBER: std::sync::LazyLock<usize> = std::sync::LazyLock::new(|| match std::env::var(\"BROKEN\") {
    Ok(number) => number.parse().expect(\"BROKEN is the number of a row\"),
    Err(_) => 0,
});

pub(crate) fn is(number: usize) -> bool {
    *NUMBER == number
}
";

/// The sources with every row applied, or the errors in the rows.
pub(crate) fn with_all(rows: &[Mutation], mut sources: Sources) -> Result<Sources, String> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut unfit = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        match Edit::new(place + 1, row, &sources) {
            Ok(edit) => match edits.iter().find(|other| other.overlaps(&edit)) {
                Some(other) => unfit.push(format!(
                    "{}: its text overlaps that of row {}; mend the row: {}",
                    name(place + 1, row),
                    other.number,
                    row.find
                )),
                None => edits.push(edit),
            },
            Err(problem) => unfit.push(format!(
                "{}: {problem}; mend the row: {}",
                name(place + 1, row),
                row.find
            )),
        }
    }
    if !unfit.is_empty() {
        return Err(unfit.join("\n"));
    }
    // From the end to the beginning, so that no edit shifts the text of another.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    for edit in edits {
        if let Some(text) = sources.get_mut(edit.file) {
            text.replace_range(edit.range, &edit.text);
        }
    }
    Ok(sources)
}

/// The name of a row in reports.
pub(crate) fn name(number: usize, row: &Mutation) -> String {
    let Mutation {
        invariant,
        breaks,
        file,
        ..
    } = row;
    format!("row {number}, mutation of invariant {invariant} ({breaks}) in host/engine/src/{file}")
}

/// A row's place in the sources.
struct Edit {
    number: usize,
    file: &'static str,
    range: Range<usize>,
    text: String,
}

impl Edit {
    fn new(number: usize, row: &Mutation, sources: &Sources) -> Result<Self, String> {
        let sound = sources.get(row.file).ok_or("there is no such file")?;
        let mut found = sound.match_indices(row.find);
        let range = match (found.next(), found.count()) {
            (Some((at, _)), 0) => at..at + row.find.len(),
            (first, more) => {
                let times = more + usize::from(first.is_some());
                return Err(format!("its text occurs {times} times, not once"));
            }
        };
        if !row.replace.contains(SWITCH) {
            return Err(format!("nothing in it is switched by {SWITCH}"));
        }
        let text = row
            .replace
            .replace(SWITCH, &format!("crate::mutation::is({number})"));
        Ok(Self {
            number,
            file: row.file,
            range,
            text,
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.file == other.file && self.range.start < other.range.end && other.range.start < self.range.end
    }
}

#[test]
fn rows_are_applied_side_by_side_and_those_that_do_not_match_are_reported() {
    let sources = || Sources::from([(String::from("a.rs"), String::from("one && two && two && three"))]);
    let row = |find, replace| Mutation {
        invariant: 1,
        breaks: "a test",
        file: "a.rs",
        find,
        replace,
    };
    let fits = [row("one", "(BROKEN || one)"), row("three", "!BROKEN && three")];
    let broken = with_all(&fits, sources()).unwrap();
    assert_eq!(
        broken["a.rs"],
        "(crate::mutation::is(1) || one) && two && two && !crate::mutation::is(2) && three"
    );
    let fault = |rows: &[Mutation]| with_all(rows, sources()).unwrap_err();
    let elsewhere = Mutation {
        file: "b.rs",
        ..row("one", "BROKEN")
    };
    assert!(fault(&[row("four", "BROKEN")]).contains("occurs 0 times"));
    assert!(fault(&[row("two", "BROKEN")]).contains("occurs 2 times"));
    assert!(fault(&[row("one", "true")]).contains("nothing in it is switched"));
    assert!(fault(&[elsewhere]).contains("no such file"));
    let overlapping = [row("one && two && two", "BROKEN"), row("two && three", "BROKEN")];
    assert!(fault(&overlapping).contains("overlaps that of row 1"));
}
