//! Tests each rule with a violation and without, and that the repository keeps all rules.

use std::path::Path;

use super::{Finding, Source, check, code::code_only, read};

/// The rules violated by a file with this path and text, with the lines.
fn broken(path: &str, text: &str) -> Vec<String> {
    let mut findings = alone(path, &format!("//! What for.\n{text}"));
    findings.sort_by_key(|finding| finding.line);
    findings
        .iter()
        .map(|finding| format!("{}:{}", finding.rule, finding.line))
        .collect()
}

/// The findings of a file that belongs to no package, except for that.
fn alone(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = check(&[Source::new(path, text)]);
    findings.retain(|finding| finding.rule != "no-orphans");
    findings
}

const NONE: [&str; 0] = [];

#[test]
fn the_engine_is_pure() {
    assert_eq!(
        broken("host/engine/src/plan.rs", "use std::vec::Vec;"),
        ["pure-engine:2"]
    );
    assert_eq!(
        broken("host/engine/src/plan.rs", "use alloc::vec::Vec; // not std"),
        NONE
    );
    assert_eq!(
        broken("host/engine/src/lib.rs", "extern crate alloc;"),
        ["pure-engine:1"]
    );
    assert_eq!(broken("host/engine/src/lib.rs", "#![no_std]"), NONE);
    let manifest = |text: &str| broken("host/engine/Cargo.toml", text);
    assert_eq!(
        manifest("[dependencies]\nserde = \"1\"\n[lints]\nworkspace = true"),
        ["pure-engine:3"]
    );
    assert_eq!(manifest("[dependencies.serde]\n"), ["pure-engine:2"]);
    assert_eq!(
        manifest("[target.x.dependencies]\nserde = \"1\""),
        ["pure-engine:3"]
    );
    assert_eq!(
        manifest("[dependencies]\n# none\n\n[lints]\nworkspace = true"),
        NONE
    );
}

#[test]
fn no_merge_is_half_done() {
    let text = concat!("<<<<", "<<< HEAD\na\n=======\nb\n>>>>", ">>> 1234567 (wip)\n");
    assert_eq!(
        broken("wit/README.md", text),
        ["no-conflicts:2", "no-conflicts:6"]
    );
    assert_eq!(broken("wit/README.md", "a << b\n=======\n"), NONE);
}

#[test]
fn transcripts_are_narrow() {
    let wide = "a ".repeat(61);
    let page = |line: &str| format!("{wide}\n```\n{line}\n```\n{wide}\n```yaml\n{wide}\n```\n");
    assert_eq!(broken("deploy/README.md", &page(&wide)), ["narrow-transcripts:4"]);
    for line in ["a", &format!("$ {wide}"), &format!("| {wide}")] {
        assert_eq!(broken("deploy/README.md", &page(line)), NONE);
    }
}

#[test]
fn files_are_short() {
    let long = "fn f() {}\n".repeat(500);
    assert_eq!(broken("host/driver/src/run.rs", &long), ["short-files:501"]);
    assert_eq!(broken("host/driver/src/run.rs", &"\n".repeat(499)), NONE);
    assert_eq!(broken("host/driver/src/tests.rs", &long), NONE);
    assert_eq!(broken("host/scupper/tests/whole.rs", &long), NONE);
    assert_eq!(
        broken("host/contract/src/slm.rs", &format!("// @generated\n{long}")),
        NONE
    );
    assert_eq!(broken("host/testbeds/words.md", &long), NONE);
}

#[test]
fn no_test_is_ignored_and_no_lint_allowed_for_ever() {
    assert_eq!(
        broken("host/scupper/tests/a.rs", "#[ignore = \"slow\"]\nfn f() {}"),
        ["no-ignored-tests:2"]
    );
    assert_eq!(
        broken("host/scupper/tests/a.rs", "#[cfg_attr(windows, ignore)]"),
        ["no-ignored-tests:2"]
    );
    assert_eq!(broken("sdk/src/a.rs", "#[allow(dead_code)]"), ["no-allow:2"]);
    assert_eq!(broken("sdk/src/a.rs", "#![allow(dead_code)]"), ["no-allow:2"]);
    assert_eq!(
        broken("sdk/src/a.rs", "#[cfg_attr(test, allow(dead_code))]"),
        ["no-allow:2"]
    );
    assert_eq!(
        broken("sdk/src/a.rs", "#[expect(dead_code, reason = \"allow(this)\")]"),
        NONE
    );
}

#[test]
fn nothing_is_left_over() {
    for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        assert_eq!(
            broken("wit/types.wit", &format!("// {word}: more")),
            ["no-leftovers:2"]
        );
        assert_eq!(broken("sdk/src/a.rs", &format!("fn {word}S() {{}}")), NONE);
    }
}

#[test]
fn every_module_states_its_purpose() {
    let rules = |path: &str, text: &str| alone(path, text).len();
    assert_eq!(rules("sdk/src/a.rs", "use std::fmt;\n"), 1);
    assert_eq!(rules("sdk/src/a.rs", "\n#![no_std]\n//! What for.\n"), 0);
    assert_eq!(rules("sdk/src/a.rs", "// @generated\nuse std::fmt;\n"), 0);
    assert_eq!(rules("README.md", "# Readme\n"), 0);
}

#[test]
fn nothing_names_a_place_outside() {
    for path in [
        concat!("/wo", "rk/x"),
        concat!("/ro", "ot/x"),
        concat!("../sha", "red/x"),
    ] {
        assert_eq!(
            broken("README.md", &format!("see `{path}`")),
            ["no-paths-outside:2"]
        );
        assert_eq!(broken("Makefile", &format!("see $CACHE{path}")), NONE);
    }
    assert_eq!(
        broken("README.md", concat!("`net", "work/x` and `/var/ro", "ot/x`")),
        NONE
    );
}

#[test]
fn code_excludes_comments_and_literals() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("b \" c") + d"#, "f(        ) + d"),
        ("f(r#\"b \" c\"#) + d", "f(          ) + d"),
        ("br\"b\\\" + d", "       + d"),
        ("'a' '\\'' 'b c", "         'b c"),
        ("fn f<'a>(r#type: &'a str)", "fn f<'a>(r#type: &'a str)"),
        ("\"a\nb\" c", "  \n   c"),
    ] {
        assert_eq!(code_only(text), code, "{text}");
    }
}

#[test]
fn the_repository_keeps_the_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let sources = read(root).unwrap();
    assert!(
        sources
            .iter()
            .any(|source| source.path == "host/xtask/src/tidy/tests.rs"),
        "it reads other files"
    );
    let findings: Vec<_> = check(&sources).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn a_dependency_is_used() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nused-one.workspace = true\nonly-tests = \"1\"\n\
                    unused = { version = \"1\" }\n[dev-dependencies]\ntried.workspace = true\nidle = \"1\"\n\
                    [dependencies.lonely]\nversion = \"1\"\n";
    let sources = [
        Source::new("Cargo.toml", "[workspace.dependencies]\nanything = \"1\"\n"),
        Source::new("a/Cargo.toml", manifest),
        Source::new(
            "a/src/lib.rs",
            "//! It is.\nuse used_one::A;\n// unused, lonely\n",
        ),
        Source::new("a/tests/it.rs", "//! It is.\nuse only_tests::B;\nuse tried::C;\n"),
        // Another package, whose names do not matter.
        Source::new(
            "a/tests/inner/Cargo.toml",
            "[package]\n[lib]\npath = \"lib.rs\"\n[dependencies]\nown = \"1\"\n",
        ),
        Source::new(
            "a/tests/inner/lib.rs",
            "//! It is.\nuse unused::{D, idle};\nuse own::E;\n",
        ),
    ];
    let found = check(&sources);
    let found: Vec<_> = found
        .iter()
        .map(|finding| (finding.line, finding.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (5, "only tests use `only-tests`; it belongs to [dev-dependencies]"),
            (6, "nothing uses `unused`; remove it"),
            (9, "nothing uses `idle`; remove it"),
            (10, "nothing uses `lonely`; remove it"),
        ]
    );
}

#[test]
fn a_file_that_no_target_reaches_is_found() {
    let text = "//! What for.\n";
    let file = |path: &str, names: &str| Source::new(path, &format!("{text}{names}"));
    let sources = [
        Source::new(
            "a/Cargo.toml",
            "[package]\n[[test]]\npath = \"checks/whole.rs\"\n",
        ),
        file("a/build.rs", ""),
        file(
            "a/src/lib.rs",
            "mod plain;\npub(crate) mod folder;\n// mod left;\n",
        ),
        file(
            "a/src/plain.rs",
            "#[cfg(test)]\n#[path = \"plain_tests.rs\"]\nmod tests;\nmod deeper;\n",
        ),
        file("a/src/plain_tests.rs", "mod beside;\n"),
        file("a/src/beside.rs", ""),
        file("a/src/plain/deeper.rs", ""),
        file(
            "a/src/folder/mod.rs",
            "mod inside;\nconst TEXT: &str = include_str!(\"shown.rs\");\n",
        ),
        file("a/src/folder/inside.rs", ""),
        file("a/src/folder/shown.rs", ""),
        file("a/src/bin/tool.rs", ""),
        file(
            "a/tests/one.rs",
            "#[path = \"../../b/support/shared.rs\"]\nmod shared;\n",
        ),
        file("a/tests/two/main.rs", ""),
        file("a/checks/whole.rs", ""),
        file("b/support/shared.rs", ""),
        // Never compiled.
        file("a/src/left.rs", "mod behind;\n"),
        file("a/src/left/behind.rs", ""),
        file("a/src/tests.rs", ""),
        file("a/tests/two/forgotten.rs", ""),
        file("b/support/alone.rs", ""),
    ];
    let findings = check(&sources);
    let orphans: Vec<_> = findings
        .iter()
        .map(|finding| (finding.rule, finding.path.as_str()))
        .collect();
    let orphan = |path| ("no-orphans", path);
    let expected = [
        "a/src/left.rs",
        "a/src/left/behind.rs",
        "a/src/tests.rs",
        "a/tests/two/forgotten.rs",
        "b/support/alone.rs",
    ];
    assert_eq!(orphans, expected.map(orphan));
}
