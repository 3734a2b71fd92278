//! The drains that the READMEs of our policies show are those that their scenarios play.

use crate::program::{policy, repository};

/// Characters of a line of a page.
const WIDTH: usize = 110;
/// What stands in a README before the name of a scenario, whose story is the next block.
const PLAYED: &str = "--story scenarios/";

#[test]
fn the_readmes_of_our_policies_show_what_their_scenarios_play() {
    let mut shown = 0;
    for entry in std::fs::read_dir(repository().join("plugins")).unwrap() {
        let folder = entry.unwrap().path();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
        for (scenario, story) in stories(&readme) {
            let played = policy(&folder, &["test", "--story", &format!("scenarios/{scenario}")]);
            let mut lines = played.good().lines().map(str::trim);
            let mut story = story.lines().map(str::trim);
            while let Some(line) = story.next() {
                // Lines that are wider than the page are folded there.
                let mut text = line.to_owned();
                let is_played = lines.any(|played| {
                    while played.len() > WIDTH && played.starts_with(&format!("{text} ")) {
                        let more = story.next().unwrap_or_default();
                        text = format!("{text} {more}");
                    }
                    played == text
                });
                assert!(
                    is_played,
                    "{}, {scenario}: {text}\n{}",
                    folder.display(),
                    played.stdout
                );
            }
            shown += 1;
        }
    }
    assert!(shown >= 5, "only {shown} stories were found");
}

/// Each scenario that is named, with its story.
fn stories(readme: &str) -> Vec<(&str, &str)> {
    readme.split(PLAYED).skip(1).map(story).collect()
}

/// The name of the scenario at the beginning, and the block behind it.
fn story(text: &str) -> (&str, &str) {
    let (scenario, rest) = text.split_once('`').unwrap();
    let (_, block) = rest.split_once("\n```\n").unwrap();
    let (story, _) = block.split_once("\n```").unwrap();
    (scenario, story)
}
