//! The WIT's reference is current, and its links lead somewhere.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;

use xtask::{reference, workspace::Workspace};

fn page() -> String {
    reference::generate(&Workspace::read().unwrap().root).unwrap()
}

#[test]
fn the_reference_is_that_of_the_wit() {
    let file = Workspace::read().unwrap().root.join(reference::FILE);
    assert!(
        fs::read_to_string(file).unwrap() == page(),
        "{} is out of date: run `cargo xtask reference`",
        reference::FILE
    );
}

#[test]
fn every_link_has_one_target() {
    let page = page();
    let quoted = |begin: &str, end: char| -> Vec<String> {
        let parts = page.split(begin).skip(1);
        parts
            .map(|part| part.split(end).next().unwrap().to_owned())
            .collect()
    };
    let anchors = quoted("<a id=\"", '"');
    let known: BTreeSet<&String> = anchors.iter().collect();
    assert_eq!(known.len(), anchors.len(), "an anchor is there twice");
    let links = quoted("](#", ')');
    assert!(links.len() > 100, "only {} links were found", links.len());
    for link in &links {
        assert!(known.contains(link), "nothing has the anchor {link}");
    }
}

#[test]
fn an_exported_interface_has_its_comment_and_a_used_type_leads_to_its_definition() {
    let page = page();
    for text in [
        "- [`planner`](#planner): Which pods leave, and in which order\n",
        "\nA pure function: for the same input it returns the same plan",
        "- <a id=\"hooks.call.node\"></a>`node`: [`node`](#types.node)\n",
        "- <a id=\"http.send.0\"></a> result<[`response`](#http.response), [`error`](#http.error)>\n",
    ] {
        assert!(page.contains(text), "no `{text}` in\n{page}");
    }
    assert!(
        !page.contains("<p>"),
        "the inside of an HTML block is not Markdown"
    );
}
