//! A report of recorded drains, made by the program, and what a real browser measures of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use flate2::{Compression, write::GzEncoder};
use rustix::process::Signal;
use scupper_simulator::api::objects;
use serde_json::{Value, json};

use crate::rig::Rig;

/// What both of these begin with.
const MEASURE: &str = include_str!("measure.js");
/// Measure a page and a picture, and write what they have found into the frame around.
const OF_PAGE: &str = include_str!("measure_page.js");
const OF_PICTURE: &str = include_str!("measure_picture.js");
/// Shows it in a frame, because a window has a least width, and keeps what it tells.
const FRAME: &str = "<!doctype html><meta name=color-scheme content='light dark'>\
    <iframe src=NAME width=WIDTH height=900 style='border:0'></iframe><pre id=measured></pre>\
    <script>onmessage = event => { document.getElementById('measured').textContent = event.data; }</script>";
/// Forbids scripts, of which this test needs one.
const POLICY: &str = "http-equiv=\"Content-Security-Policy\"";

/// How often a browser is started until it has shown a page.
const ATTEMPTS: usize = 3;

/// A page and a picture of the same drains.
pub(crate) struct Made {
    dir: tempfile::TempDir,
}

impl Made {
    /// Of drains of nodes with so many pods each, with names of any length, of which a budget holds one. `change`: the lines
    /// of each recording.
    pub(crate) fn of(nodes: &[usize], change: impl Fn(String) -> String) -> Self {
        let rig = Rig::new();
        rig.apply(objects::node("worker-4"));
        let names: Vec<_> = (1..=nodes.len())
            .map(|number| format!("worker-{number}"))
            .collect();
        for (node, pods) in names.iter().zip(nodes) {
            for number in 0..*pods {
                let name = format!("{}-{node}-{number}", "a-long-name".repeat(number % 5 + 1));
                rig.apply(rig.pod(&name, node));
            }
            let db = format!("db-{node}");
            rig.apply(rig.pod(&db, node));
            rig.budget(&format!("keep-{db}"), &db);
        }
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (page, picture) = (file("page.html"), file("picture.svg"));
        let drain = |node: &String| {
            let recording = file(&format!("{node}.gz"));
            let mut drain = rig.start(&["drain", node, "--local", "--record", &recording]);
            drain.prints(", 1 to go");
            drain.prints("blocks it");
            drain.signal(Signal::INT);
            drain.ended();
            rewrite(Path::new(&recording), |text| change(ends_later(&text, 60_000)));
            recording
        };
        let recordings: Vec<_> = names.iter().map(drain).collect();
        let mut args = vec!["report", "--html", &page, "--svg", &picture];
        args.extend(recordings.iter().map(String::as_str));
        let made = rig.run(&args);
        assert_eq!(made.code, Some(0), "{made:#?}");
        let made = Self { dir };
        made.add_script(
            "page.html",
            "</body>",
            &format!("<script>{MEASURE}{OF_PAGE}</script>"),
        );
        let script = format!("<script><![CDATA[{MEASURE}{OF_PICTURE}]]></script>");
        made.add_script("picture.svg", "</svg>\n", &script);
        made
    }

    /// Its text as the program has written it.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(format!("{name}.text"))).unwrap()
    }

    /// Puts a script before the last of these ends.
    fn add_script(&self, name: &str, end: &str, script: &str) {
        let path = self.dir.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(self.dir.path().join(format!("{name}.text")), &text).unwrap();
        assert_eq!(text.contains(POLICY), name.ends_with("html"), "{text}");
        let (body, after) = text.rsplit_once(end).unwrap();
        let body = body.replace(POLICY, "");
        fs::write(&path, format!("{body}{script}{end}{after}")).unwrap();
    }

    /// What it is like in a window so wide.
    pub(crate) fn measured(&self, name: &str, width: u32, dark: bool) -> Value {
        let frame = self.dir.path().join("frame.html");
        let shown = FRAME.replace("NAME", name).replace("WIDTH", &width.to_string());
        fs::write(&frame, shown).unwrap();
        // On a busy machine the browser's time may be over before the frame has loaded.
        let mut failed = String::new();
        let mut attempt = |_| self.shown(&frame, dark).map_err(|shown| failed = shown).ok();
        let found = (0..ATTEMPTS).find_map(&mut attempt);
        let found = found.unwrap_or_else(|| panic!("no measurements of {name}: {failed}"));
        let found = found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&nbsp;", "\u{a0}")
            .replace("&amp;", "&");
        serde_json::from_str(&found).unwrap()
    }

    /// What the frame has been told, or else what the browser says.
    fn shown(&self, frame: &Path, dark: bool) -> Result<String, String> {
        let output = self
            .browser(dark)
            .args(["--virtual-time-budget=5000", "--dump-dom"])
            .arg(frame)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let told = text.split_once("<pre id=\"measured\">");
        let told = told.and_then(|(_, rest)| rest.split_once("</pre>"));
        match told.filter(|(found, _)| !found.is_empty()) {
            Some((found, _)) => Ok(found.to_owned()),
            None => Err(format!("{text}\n{}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn browser(&self, dark: bool) -> Command {
        let profile: PathBuf = self.dir.path().join("profile");
        let mut browser = Command::new("chromium");
        browser
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
            .arg("--window-size=2700,1000");
        browser
    }
}

/// Changes the lines of a recording.
fn rewrite(file: &Path, change: impl Fn(String) -> String) {
    let plain = fs::read(file).unwrap();
    let text = std::io::read_to_string(MultiGzDecoder::new(&plain[..])).unwrap();
    let mut out = GzEncoder::new(fs::File::create(file).unwrap(), Compression::fast());
    out.write_all(change(text).as_bytes()).unwrap();
    out.finish().unwrap();
}

/// Makes the end of a recording, from its cancel on, so many milliseconds later.
fn ends_later(text: &str, milliseconds: u64) -> String {
    let later = |time: &mut Value| *time = json!(time.as_u64().unwrap() + milliseconds);
    let mut has_ended = false;
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        has_ended |= line["turn"]["inputs"].to_string().contains("{\"Cancel\":");
        if has_ended {
            line.pointer_mut("/end/at").into_iter().for_each(later);
            let inputs = line.pointer_mut("/turn/inputs").and_then(Value::as_array_mut);
            inputs
                .into_iter()
                .flatten()
                .for_each(|input| later(&mut input[0]));
        }
        format!("{line}\n")
    };
    text.lines().map(line).collect()
}

/// Makes the end of a recording later, so that the drain takes so long.
pub(crate) fn lasts(text: &str, took: Duration) -> String {
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let at = |pointer: &str| {
        lines
            .iter()
            .find_map(|line| line.pointer(pointer)?.as_u64())
            .unwrap()
    };
    let now = at("/end/at") - at("/header/at");
    ends_later(text, u64::try_from(took.as_millis()).unwrap() - now)
}

/// Adds an estimate to a recording, as if such drains were known to take one to five seconds.
pub(crate) fn with_estimate(text: String) -> String {
    let (header, rest) = text.split_once('\n').unwrap();
    let parsed: Value = serde_json::from_str(header).unwrap();
    let begun = parsed["header"]["at"].as_u64().unwrap();
    let [early, likely, late] = [1_000, 2_000, 5_000].map(|after| begun + after);
    let estimate = json!({"estimate": {"at": begun, "early": early, "likely": likely, "late": late}});
    format!("{header}\n{estimate}\n{rest}")
}
