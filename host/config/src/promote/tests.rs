//! The printed change for each way to write a shadow, and the errors.

use super::*;

const HEAD: &str = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies:\n";

/// What is printed for a file with these policies.
fn promoted(policies: &str, name: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scupper.yaml");
    std::fs::write(&file, format!("{HEAD}{policies}")).unwrap();
    let folder = format!("{}/", dir.path().display());
    let promotion = promote(&file, name);
    let text = promotion
        .map(|promotion| promotion.diff)
        .map_err(|error| error.to_string());
    let plain = |text: String| text.replace(&folder, "");
    let text = text.map(plain).map_err(plain);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!("{HEAD}{policies}"),
        "the file stays as it is"
    );
    text
}

#[test]
fn an_additional_policy_loses_its_mode() {
    let policies =
        "  - name: a\n    module: a.wasm\n  - name: b\n    mode: shadow # since May\n    module: b.wasm\n";
    let expected = "\
--- scupper.yaml
+++ scupper.yaml
@@ -4,5 +4,4 @@
   - name: a
     module: a.wasm
   - name: b
-    mode: shadow # since May
     module: b.wasm
";
    assert_eq!(promoted(policies, "b").unwrap(), expected);
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one_under_its_name() {
    let policies = "  - name: jobs\n    module: jobs.wasm\n    config: {a: 1}\n\n  # Tried since May.\n  - name: \"jobs-next\"\n    \
                    module: next.wasm\n    mode: shadow\n    instead-of: jobs\ndrain: {force: true}";
    let expected = "\
--- scupper.yaml
+++ scupper.yaml
@@ -1,13 +1,8 @@
 apiVersion: scupper.dev/v1alpha1
 kind: Configuration
 policies:
-  - name: jobs
-    module: jobs.wasm
-    config: {a: 1}
 
   # Tried since May.
-  - name: \"jobs-next\"
+  - name: \"jobs\"
     module: next.wasm
-    mode: shadow
-    instead-of: jobs
 drain: {force: true}
\\ No newline at end of file
";
    assert_eq!(promoted(policies, "jobs-next").unwrap(), expected);
}

#[test]
fn the_dash_moves_to_the_next_key() {
    let policies = "  - mode: shadow\n    name: b\n    module: b.wasm\n";
    let expected = "\
--- scupper.yaml
+++ scupper.yaml
@@ -1,6 +1,5 @@
 apiVersion: scupper.dev/v1alpha1
 kind: Configuration
 policies:
-  - mode: shadow
-    name: b
+  - name: b
     module: b.wasm
";
    assert_eq!(promoted(policies, "b").unwrap(), expected);
}

#[test]
fn changes_far_from_each_other_are_two_hunks() {
    let config: String = (0..20).map(|key| format!("      k{key}: 1\n")).collect();
    let policies = format!(
        "  - name: b\n    mode: shadow\n    instead-of: a\n    module: b.wasm\n    config:\n{config}  - name: a\n    module: a.wasm\n"
    );
    let diff = promoted(&policies, "b").unwrap();
    let heads: Vec<_> = diff.lines().filter(|line| line.starts_with("@@")).collect();
    assert_eq!(heads, ["@@ -1,9 +1,7 @@", "@@ -26,5 +24,3 @@"], "{diff}");
}

#[test]
fn errors_name_the_file_the_field_and_what_to_do() {
    let policies = "  - {name: b, mode: shadow, module: b.wasm}\n  - name: a\n    module: a.wasm\n";
    for (name, error) in [
        (
            "quotas",
            "scupper.yaml: policies: there is no policy `quotas`; name one of the shadows: b",
        ),
        (
            "a",
            "scupper.yaml:5: policies[1].mode: policy `a` is active already; only one with `mode: shadow` can be promoted",
        ),
        (
            "b",
            "scupper.yaml:4: policies[0]: cannot edit this policy: several keys share a line. By hand: remove `mode: shadow` from it",
        ),
    ] {
        assert_eq!(promoted(policies, name).unwrap_err(), error);
    }
    let error = promoted("  - name: a\n    module: a.wasm\n", "b").unwrap_err();
    assert!(error.ends_with("`b`; no policy has `mode: shadow`"), "{error}");
    let error = promoted("  - name: a\n", "a").unwrap_err();
    assert!(error.contains("policies[0]: `module` is missing"), "{error}");
}
