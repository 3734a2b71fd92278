//! The page of a report in a real browser: it is as wide as the window, its texts can be read in light and in dark, and names
//! that are markup stay text.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests"
)]

#[path = "../support/limit.rs"]
mod limit;
#[path = "../support/program.rs"]
mod program;
#[expect(dead_code, reason = "another suite uses all of it")]
#[path = "../commands/rig.rs"]
mod rig;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::MultiGzDecoder;
use flate2::{Compression, write::GzEncoder};
use rig::Rig;
use serde_json::Value;

/// Measures the page and writes what it has found into it.
const MEASURE: &str = include_str!("measure.js");
/// Shows it in a frame, because a window has a least width, and keeps what it tells.
const FRAME: &str = "<!doctype html><iframe src=page.html width=WIDTH height=900></iframe><pre id=measured></pre>\
    <script>onmessage = event => { document.getElementById('measured').textContent = event.data; }</script>";
/// Forbids scripts, of which this test needs one.
const POLICY: &str = "http-equiv=\"Content-Security-Policy\"";
const MARKUP: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";

/// A page, with what belongs to it.
struct Page {
    dir: tempfile::TempDir,
}

impl Page {
    /// Of the recording of a drain whose pods have names of any length, of which a budget holds some.
    fn new(pods: usize, change: impl Fn(String) -> String) -> Self {
        let rig = Rig::new();
        for number in 0..pods {
            let name = format!("{}-{number}", "a-long-name".repeat(number % 5 + 1));
            rig.apply(rig.pod(&name, "worker-1"));
        }
        rig.apply(rig.pod("db", "worker-1"));
        rig.budget("keep-db", "db");
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (recording, page) = (file("drain.jsonl.gz"), file("page.html"));
        let drain = [
            "drain",
            "worker-1",
            "--local",
            "--timeout",
            "3s",
            "--record",
            &recording,
        ];
        rig.run(&drain);
        rewrite(Path::new(&recording), change);
        let made = rig.run(&["report", &recording, "--html", &page]);
        assert_eq!(made.code, Some(0), "{made:#?}");
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(POLICY), "{text}");
        let text = text
            .replace(POLICY, "")
            .replace("</body>", &format!("<script>{MEASURE}</script></body>"));
        fs::write(&page, text).unwrap();
        Self { dir }
    }

    /// What it is like in a window so wide.
    fn measured(&self, width: u32, dark: bool) -> Value {
        let frame = self.dir.path().join("frame.html");
        fs::write(&frame, FRAME.replace("WIDTH", &width.to_string())).unwrap();
        let profile: PathBuf = self.dir.path().join("profile");
        let output = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-sync",
            ])
            .args([
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!(
                "--blink-settings=preferredColorScheme={}",
                u8::from(!dark)
            ))
            .arg("--window-size=2700,1000")
            .args(["--virtual-time-budget=5000", "--dump-dom"])
            .arg(&frame)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found = text
            .split_once("<pre id=\"measured\">")
            .and_then(|(_, rest)| rest.split_once("</pre>"));
        let (found, _) = found.unwrap_or_else(|| {
            panic!(
                "no measurements in {text}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        let found = found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        serde_json::from_str(&found).unwrap()
    }
}

/// Changes the lines of a recording.
fn rewrite(file: &Path, change: impl Fn(String) -> String) {
    let plain = fs::read(file).unwrap();
    let text = std::io::read_to_string(MultiGzDecoder::new(&plain[..])).unwrap();
    let mut out = GzEncoder::new(fs::File::create(file).unwrap(), Compression::fast());
    std::io::Write::write_all(&mut out, change(text).as_bytes()).unwrap();
    out.finish().unwrap();
}

#[test]
fn a_page_fits_every_window_and_can_be_read_in_light_and_dark() {
    let page = Page::new(60, |text| text);
    for width in [360, 700, 1_280, 2_560] {
        for dark in [false, true] {
            let found = page.measured(width, dark);
            let of = format!("{width}, dark: {dark}: {found:#}");
            assert_eq!(found["dark"], dark, "{of}");
            assert_eq!(found["width"], width, "{of}");
            assert_eq!(found["overflow"], 0, "{of}");
            // As WCAG 2 asks of text, and of what a picture means.
            assert!(found["text"].as_f64().unwrap() >= 4.5, "{of}");
            assert!(found["colours"].as_f64().unwrap() >= 3.0, "{of}");
            assert_eq!(found["rows"], 61, "{of}");
            assert_eq!(found["unnamed"], 0, "{of}");
        }
    }
}

#[test]
fn names_that_are_markup_stay_text() {
    let markup = serde_json::to_string(MARKUP).unwrap();
    let markup = markup.trim_matches('"').to_owned();
    let page = Page::new(3, move |text| text.replace("keep-db", &markup));
    let found = page.measured(1_280, false);
    assert_eq!(found["elements"], serde_json::json!([]), "{found:#}");
    assert_eq!(found["overflow"], 0, "{found:#}");
    assert!(found["body"].as_str().unwrap().contains(MARKUP), "{found:#}");
}
