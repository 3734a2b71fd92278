//! `openstack-testbed`, started once for many commands: its start costs more than most of them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../testbeds/openstack/openstack-testbed"
);

/// Ends when this is dropped.
pub(crate) struct Tool(Mutex<Serving>);

struct Serving {
    process: Child,
    /// Taken at the end.
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Tool {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(SCRIPT)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self(Mutex::new(Serving {
            process,
            words,
            answers,
        }))
    }

    /// Its output, or its error.
    pub(crate) fn ask(&self, command: &str, state: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut serving = self.0.lock().unwrap();
        let state = state.to_str().unwrap();
        let words = [&[command, state], arguments].concat();
        let line = format!("{}\n", serde_json::to_string(&words).unwrap());
        let asked = serving.words.as_mut().unwrap().write_all(line.as_bytes());
        asked.map_err(|error| format!("{SCRIPT}: {error}"))?;
        let mut answer = String::new();
        serving.answers.read_line(&mut answer).unwrap();
        let answer: Value =
            serde_json::from_str(&answer).map_err(|error| format!("{SCRIPT} {words:?}: {error}"))?;
        let of = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if answer["code"] == 0 {
            Ok(of("out"))
        } else {
            Err(of("err"))
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let serving = self.0.get_mut().unwrap();
        drop(serving.words.take());
        serving.process.wait().unwrap();
    }
}
