//! The page and the picture of a report in a real browser: they are as wide as the window, their texts can be read in light and
//! in dark, and names that are markup stay text.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

mod browser;
#[path = "../support/limit.rs"]
mod limit;
#[path = "../support/program.rs"]
mod program;
#[expect(dead_code, reason = "another suite uses all of it")]
#[path = "../commands/rig.rs"]
mod rig;

use std::time::Duration;

use browser::{Made, lasts, with_estimate};
use serde_json::{Value, json};

/// Also on both sides of where tables become lists.
const WIDTHS: [(u32, bool); 7] = [
    (360, true),
    (700, false),
    (701, true),
    (1_000, false),
    (1_001, true),
    (1_280, false),
    (2_560, true),
];

/// What a page needs in every window, and a picture.
#[track_caller]
fn is_legible(found: &Value, width: u32, dark: bool) {
    let of = format!("{width}, dark: {dark}: {found:#}");
    assert_eq!(found["dark"], dark, "{of}");
    assert_eq!(found["width"], width, "{of}");
    assert_eq!(found["overflow"], 0, "{of}");
    // As WCAG 2 asks of text, and of what a picture means.
    assert!(found["text"].as_f64().unwrap() >= 4.5, "{of}");
    assert!(found["colours"].as_f64().unwrap() >= 3.0, "{of}");
    assert_eq!(found["elements"], json!([]), "{of}");
}

#[track_caller]
fn is_legible_page(found: &Value, (width, dark): (u32, bool), (drains, pods): (usize, usize)) {
    is_legible(found, width, dark);
    let of = format!("{width}, dark: {dark}: {found:#}");
    assert_eq!(found["rows"], pods, "{of}");
    assert_eq!(found["unnamed"], 0, "{of}");
    assert!(found["narrowest"].as_f64().unwrap() >= 60.0, "{of}");
    assert_eq!(found["overlaps"], 0, "{of}");
    // One drain needs no links; of several, each has one, and nothing else takes the focus.
    let links = if drains == 1 { 0 } else { drains };
    assert_eq!(
        (&found["links"], &found["focusable"]),
        (&json!(links), &json!(links)),
        "{of}"
    );
    assert_eq!(found["lost"], 0, "{of}");
    let levels: Vec<_> = found["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_u64().unwrap())
        .collect();
    assert_eq!(levels[0], 1, "{of}");
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{of}");
}

#[track_caller]
fn is_legible_picture(found: &Value, (width, dark): (u32, bool), (drains, pods): (usize, usize)) {
    is_legible(found, width, dark);
    let of = format!("{width}, dark: {dark}: {found:#}");
    assert_eq!(found["outside"], json!([]), "{of}");
    assert_eq!(found["cut"], json!([]), "{of}");
    assert_eq!(found["rows"], drains + pods, "{of}");
    // A line of 12 pixels needs so much.
    assert!(found["distance"].as_f64().unwrap() >= 14.0, "{of}");
    assert_eq!(found["role"], "img", "{of}");
    let named = found["named"].as_array().unwrap();
    assert!(named.len() == 2 && named.iter().all(|text| text != ""), "{of}");
}

#[test]
fn a_report_of_one_drain_fits_every_window_and_can_be_read_in_light_and_dark() {
    let made = Made::of(&[60], with_estimate);
    for (width, dark) in WIDTHS.into_iter().chain([(360, false), (2_560, false)]) {
        let drains = (1, 61);
        is_legible_page(&made.measured("page.html", width, dark), (width, dark), drains);
        is_legible_picture(&made.measured("picture.svg", width, dark), (width, dark), drains);
    }
}

#[test]
fn a_report_of_four_drains_with_hundreds_of_pods_is_as_legible() {
    let made = Made::of(&[500, 5, 1, 60], with_estimate);
    let pods = 500 + 5 + 1 + 60 + 4;
    for (width, dark) in WIDTHS {
        is_legible_page(&made.measured("page.html", width, dark), (width, dark), (4, pods));
        is_legible_picture(
            &made.measured("picture.svg", width, dark),
            (width, dark),
            (4, pods),
        );
    }
    let page = made.text("page.html");
    assert!(page.contains("<h1>4 drains in "), "{page}");
    assert!(page.contains("<td>1s to 5s</td>"), "{page}");
}

#[test]
fn the_times_of_an_axis_never_overlap() {
    // With four to six marks, the last near the end or at it.
    for seconds in [125, 146, 150, 5_500] {
        let made = Made::of(&[3], |text| lasts(&text, Duration::from_secs(seconds)));
        for (width, dark) in WIDTHS {
            is_legible_page(&made.measured("page.html", width, dark), (width, dark), (1, 4));
        }
    }
}

/// What strangers may have called a node, a budget, a pod, a namespace and a controller.
const HOSTILE: [(&str, &str); 5] = [
    ("worker-1", "\"><svg onload=alert(3)></title></desc>&lt;b&gt;"),
    ("keep-db", "<img src=x onerror=alert(1)><script>alert(2)</script>"),
    (
        "a-long-name",
        "]]><a href='javascript:alert(4)'>\u{202e}\u{7}\u{fffe}\0",
    ),
    ("shop", "' style='position:fixed' x='| **b** `c` [d](e) # @all"),
    (
        "web",
        "--><!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    ),
];

#[test]
fn names_that_are_markup_stay_text() {
    let hostile = |text: String| {
        let replaced = HOSTILE.iter().fold(text, |text, (name, markup)| {
            let json = serde_json::to_string(markup).unwrap();
            text.replace(name, &json[1..json.len() - 1])
        });
        with_estimate(replaced)
    };
    let made = Made::of(&[3, 3], hostile);
    for (name, shown) in [("page.html", "body"), ("picture.svg", "text_of_all")] {
        let found = made.measured(name, 1_280, false);
        assert_eq!(found["elements"], json!([]), "{found:#}");
        assert_eq!(found["overflow"], 0, "{found:#}");
        let text = found[shown].as_str().unwrap();
        for (_, markup) in &HOSTILE[..2] {
            assert!(text.contains(markup), "{markup}: {found:#}");
        }
    }
}
