//! The rooms of the driver: who may name whom, who may write to the API server, who may print.

use super::{
    code::{has_word, named_after},
    source::{Finding, Source},
};

/// The edges, and what of the crate each may name besides itself.
const EDGES: [(&str, &[&str]); 4] = [
    ("triggers", &["clock"]),
    ("cluster", &["clock"]),
    ("policy", &["clock", "text"]),
    ("report", &["clock", "text"]),
];
/// The crates with which only one edge has to do.
const OWN_CRATES: [(&str, &str); 2] = [("scupper_contract", "triggers"), ("wasmtime", "policy")];
/// What one writes to an API server with.
const WRITERS: [&str; 6] = [
    "Api",
    "DeleteParams",
    "EvictParams",
    "Patch",
    "PatchParams",
    "PostParams",
];

/// The room of the driver that a file is in: `policy` for `host/src/policy/...`.
fn room(source: &Source) -> Option<&str> {
    let inside = source.path.strip_prefix("host/src/")?;
    let room = inside.split('/').next()?;
    Some(room.strip_suffix(".rs").unwrap_or(room))
}

/// An edge names itself, the engine, the clock and texts from elsewhere; what lies between edges is for `app` to carry.
pub(super) fn edges_apart(source: &Source) -> Vec<Finding> {
    let Some(room) = room(source) else {
        return Vec::new();
    };
    let Some((_, friends)) = EDGES.iter().find(|(edge, _)| *edge == room) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in ["crate::".to_owned(), "super::".repeat(depth(source))] {
        for (line, name) in named_after(&source.code, &path) {
            if name != room && name != "super" && !friends.contains(&name) {
                let message = format!("`{room}` names `{name}`; edges meet in `app` only");
                found.push(source.finding("edges-apart", line, message));
            }
        }
    }
    found
}

/// How often `super::` leads from this file to the root of the crate.
fn depth(source: &Source) -> usize {
    let parts = source.path.trim_start_matches("host/src/").split('/');
    parts.filter(|part| *part != "mod.rs").count()
}

/// A crate that is the business of one edge is named there alone.
pub(super) fn crates_at_home(source: &Source) -> Vec<Finding> {
    let Some(room) = room(source) else {
        return Vec::new();
    };
    let check = |line: &str| {
        let (name, home) = OWN_CRATES
            .iter()
            .find(|(name, home)| room != *home && has_word(line, name))?;
        Some(format!("`{room}` names `{name}`, which is for `{home}` alone"))
    };
    source.lines("crates-at-home", &source.code, check)
}

/// Only `cluster` has the means to write to the API server.
pub(super) fn one_writer(source: &Source) -> Vec<Finding> {
    let names_kube = has_word(&source.code, "kube");
    if room(source).is_none_or(|room| room == "cluster") || !names_kube || source.is_test() {
        return Vec::new();
    }
    source.lines("one-writer", &source.code, |line| {
        let writer = WRITERS.iter().find(|writer| has_word(line, writer))?;
        Some(format!(
            "`{writer}` outside of `cluster`, which alone writes to the API server"
        ))
    })
}

/// Only `cli` and `report` print; everything else logs, or returns what it has to say.
pub(super) fn who_prints(source: &Source) -> Vec<Finding> {
    if room(source).is_none_or(|room| room == "cli" || room == "report") || source.is_test() {
        return Vec::new();
    }
    source.lines("who-prints", &source.code, |line| {
        let macros = ["print", "println", "eprint", "eprintln", "dbg"];
        let found = macros
            .iter()
            .find(|name| has_word(line, name) && line.contains(&format!("{name}!")))?;
        Some(format!("`{found}!` outside of `cli` and `report`"))
    })
}
