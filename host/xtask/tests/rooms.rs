//! The folders of the driver, and those of the runner below it, import each other in one direction. The `lib.rs` of each
//! draws the arrows.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module of the crate's root, and those that it imports.
type Arrows = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_folders_of_the_driver_import_each_other_in_one_direction() {
    let arrows = arrows_of("driver");
    assert!(arrows["manager"].contains("occupancy"), "{arrows:#?}");
    assert!(
        arrows["local"].contains("error"),
        "by a name of the root: {arrows:#?}"
    );
    assert_without_circles(arrows);
}

#[test]
fn the_folders_of_the_runner_import_each_other_in_one_direction() {
    let arrows = arrows_of("runner");
    assert!(arrows["engine_runner"].contains("reporter"), "{arrows:#?}");
    assert_without_circles(arrows);
}

fn arrows_of(crate_folder: &str) -> Arrows {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    arrows(&host.join(crate_folder).join("src"))
}

fn assert_without_circles(arrows: Arrows) {
    let in_circles = without_leaves(arrows);
    assert!(
        in_circles.is_empty(),
        "circles, and what imports them: {in_circles:#?}"
    );
}

#[test]
fn a_circle_is_found() {
    let arrow = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let circle = Arrows::from([arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("d", "e")]);
    assert_eq!(
        without_leaves(circle).into_keys().collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    assert_eq!(
        names("use crate::{One, two::Three};\nlet x = crate::four::five();"),
        ["One", "two", "four"]
    );
}

/// Takes away what imports nothing that is left, until nothing changes.
fn without_leaves(mut arrows: Arrows) -> Arrows {
    loop {
        let before = arrows.len();
        let left: BTreeSet<String> = arrows.keys().cloned().collect();
        arrows.retain(|_, to| to.iter().any(|to| left.contains(to)));
        if arrows.len() == before {
            return arrows;
        }
    }
}

fn arrows(root: &Path) -> Arrows {
    let exported = exported(&fs::read_to_string(root.join("lib.rs")).unwrap());
    let mut arrows = Arrows::new();
    for file in files(root) {
        let inside = file.strip_prefix(root).unwrap().components().next().unwrap();
        let inside = Path::new(inside.as_os_str()).with_extension("");
        let module = inside.to_str().unwrap().to_owned();
        if module == "lib" {
            continue;
        }
        let imported = names(&fs::read_to_string(&file).unwrap()).into_iter();
        let imported = imported.map(|name| exported.get(&name).cloned().unwrap_or(name));
        let to = arrows.entry(module.clone()).or_default();
        to.extend(imported.filter(|name| *name != module));
    }
    arrows
}

/// The names that the crate's root exports, and the module of each.
fn exported(lib: &str) -> BTreeMap<String, String> {
    let mut modules = BTreeMap::new();
    let uses = lib.split("pub use ").skip(1);
    for text in uses.filter_map(|text| text.split_once(';')).map(|(text, _)| text) {
        let module = text.split("::").next().unwrap();
        let items = text.rsplit("::").next().unwrap();
        for item in items.trim_matches(['{', '}']).split(',') {
            let name = item.trim().rsplit(' ').next().unwrap();
            modules.insert(name.to_owned(), module.to_owned());
        }
    }
    modules
}

/// The names directly below `crate::` in this text.
fn names(text: &str) -> Vec<String> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let first = |path: &str| path.trim().split(|it| !is_name(it)).next().unwrap().to_owned();
    let mut names = Vec::new();
    for path in text.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            Some(group) => names.extend(group.split('}').next().unwrap().split(',').map(first)),
            None => names.push(first(path)),
        }
    }
    names
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
