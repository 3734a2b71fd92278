//! The table of rules.

use super::{
    code::has_word,
    dependencies::used_dependencies,
    orphans::no_orphans,
    source::{Finding, Source},
};

/// Files must have fewer lines than this.
const LINES: usize = 500;
/// Columns of what a page shows of a terminal.
const COLUMNS: usize = 120;

/// Each rule checks one file; its findings carry its name.
const RULES: [fn(&Source) -> Vec<Finding>; 9] = [
    pure_engine,
    short_files,
    no_ignored_tests,
    no_allow,
    no_leftovers,
    no_conflicts,
    narrow_transcripts,
    module_docs,
    no_paths_outside,
];

/// Finds everything in these files that breaks a rule.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .flat_map(|source| RULES.iter().flat_map(|rule| rule(source)))
        .chain(used_dependencies(sources))
        .chain(no_orphans(sources))
        .collect()
}

/// The engine has no dependencies but what a feature switches on, and no standard library, so it builds for bare wasm and cannot do I/O.
fn pure_engine(source: &Source) -> Vec<Finding> {
    const RULE: &str = "pure-engine";
    match source.path.as_str() {
        "host/engine/Cargo.toml" => {
            let mut in_dependencies = false;
            let lines = source.text.lines().enumerate().filter(|(_, line)| {
                if line.starts_with('[') {
                    in_dependencies = line.contains("dependencies");
                    // `[dependencies.name]` is a dependency itself.
                    return in_dependencies && line.contains("dependencies.");
                }
                let is_switched_on = line.trim_end().ends_with("optional = true }");
                in_dependencies && !is_switched_on && !line.trim().is_empty() && !line.starts_with('#')
            });
            let found =
                lines.map(|(at, line)| source.finding(RULE, at + 1, format!("a dependency: `{line}`")));
            found.collect()
        }
        "host/engine/src/lib.rs" if !source.code.contains("#![no_std]") => {
            vec![source.finding(RULE, 1, "the engine is `#![no_std]`")]
        }
        path if path.starts_with("host/engine/src/") && !source.is_test() => {
            source.lines(RULE, &source.code, |line| {
                has_word(line, "std").then(|| "`std` in the engine; it has `core` and `alloc`".to_owned())
            })
        }
        _ => Vec::new(),
    }
}

/// Files are short enough to read at once.
fn short_files(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if !source.is_rust() || source.is_generated() || source.is_test() || lines <= LINES {
        return Vec::new();
    }
    vec![source.finding(
        "short-files",
        LINES + 1,
        format!("{lines} lines; split it before {LINES}"),
    )]
}

/// No test is ignored.
fn no_ignored_tests(source: &Source) -> Vec<Finding> {
    source.lines("no-ignored-tests", &source.code, |line| {
        let ignored = ["#[ignore", ", ignore)", ", ignore ="]
            .iter()
            .any(|text| line.contains(text));
        ignored.then(|| "an ignored test; run it, and let it say what it needs".to_owned())
    })
}

/// `expect` warns when its reason is gone, `allow` stays for ever.
fn no_allow(source: &Source) -> Vec<Finding> {
    if source.is_generated() {
        return Vec::new();
    }
    source.lines("no-allow", &source.code, |line| {
        let allow = ["#[allow(", "#![allow(", ", allow("]
            .iter()
            .any(|text| line.contains(text));
        allow.then(|| "write `#[expect(lint, reason = \"...\")]` instead of `allow`".to_owned())
    })
}

/// Open tasks are issues, not comments.
fn no_leftovers(source: &Source) -> Vec<Finding> {
    // Not whole words here, or this file would break its own rule.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    source.lines("no-leftovers", &source.text, |line| {
        let word = words.iter().find(|word| has_word(line, word))?;
        Some(format!("`{word}`: do it, or file it"))
    })
}

/// No merge is half done.
fn no_conflicts(source: &Source) -> Vec<Finding> {
    source.lines("no-conflicts", &source.text, |line| {
        let is_mark = line.starts_with(concat!("<<<<", "<<< ")) || line.starts_with(concat!(">>>>", ">>> "));
        is_mark.then(|| "the mark of a conflict; decide it".to_owned())
    })
}

/// Terminal output on a page fits without scrolling sideways. Markdown tables, diagrams and commands are exempt.
fn narrow_transcripts(source: &Source) -> Vec<Finding> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let (mut in_block, mut in_transcript) = (false, false);
    source.lines("narrow-transcripts", &source.text, |line| {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_block = !in_block;
            in_transcript = in_block && ["", "console", "text"].contains(&language);
        }
        let is_whole = line.starts_with(['|', '$']) || line.contains(['─', '│']);
        let columns = line.chars().count();
        (in_transcript && !is_whole && columns > COLUMNS)
            .then(|| format!("{columns} columns; fold what the terminal shows before {COLUMNS}"))
    })
}

/// A module begins with its purpose.
fn module_docs(source: &Source) -> Vec<Finding> {
    let first = source
        .text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    if !source.is_rust() || source.is_generated() || first.is_some_and(|line| line.starts_with("//!")) {
        return Vec::new();
    }
    vec![source.finding("module-docs", 1, "begin with `//!` and the purpose of the module")]
}

/// A clone contains only the repository, so paths outside it lead nowhere.
fn no_paths_outside(source: &Source) -> Vec<Finding> {
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("../sha", "red"),
    ];
    source.lines("no-paths-outside", &source.text, |line| {
        let is_part = |c: char| c.is_alphanumeric() || "_-.}$*".contains(c);
        let found = paths.iter().find(|path| {
            let mut places = line.match_indices(**path);
            places.any(|(at, _)| !line.get(..at).is_some_and(|before| before.ends_with(is_part)))
        })?;
        Some(format!("`{found}...` is outside this repository"))
    })
}
