//! The program in a terminal: a pseudo-terminal, and an emulator that shows what a user would see in it.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::rig::{LIMIT, Rig};

/// Lines of scrollback that are kept.
const SCROLLBACK: usize = 1_000;

/// The program in a terminal of its own. Dropped, it is killed.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<ScreenState>>,
    reader: Option<JoinHandle<()>>,
}

struct ScreenState {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// The rest once it has ended.
pub(crate) struct TerminalEnd {
    pub(crate) code: Option<i32>,
    pub(crate) screen: Vec<String>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) cursor_is_hidden: bool,
}

impl Terminal {
    /// `env`: variables to change.
    pub(crate) fn start(rig: &Rig, args: &[&str], (columns, rows): (u16, u16), env: &[(&str, &str)]) -> Self {
        let quoted = args.iter().map(|arg| format!(" '{arg}'"));
        let program = env!("CARGO_BIN_EXE_scupper");
        let command = format!(
            "stty rows {rows} columns {columns} && exec '{program}'{}",
            quoted.collect::<String>()
        );
        // util-linux's: it makes a pseudo-terminal with the command in its foreground.
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("KUBECONFIG", rig.dir.path().join("kubeconfig"))
            .env("SCUPPER_LOG", "warn")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env_remove("POD_NAME")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let [height, width] = [rows, columns].map(|length| NonZeroU16::new(length).unwrap());
        let seen = Arc::new(Mutex::new(ScreenState {
            screen: vt100::Parser::new(height, width, SCROLLBACK),
            bytes: Vec::new(),
        }));
        let reader = std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = output.read(&mut buffer) {
                    seen.lock().unwrap().process(&buffer[..length]);
                }
            }
        });
        Self {
            child,
            keys,
            seen,
            reader: Some(reader),
        }
    }

    /// The lines on the screen, empty ones at its end left out.
    pub(crate) fn screen(&self) -> Vec<String> {
        self.seen.lock().unwrap().lines()
    }

    /// The scrollback and the screen.
    pub(crate) fn history(&self) -> Vec<String> {
        self.seen.lock().unwrap().history()
    }

    /// Waits until the screen satisfies this, and returns it.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(
                begun.elapsed() < LIMIT && self.child.try_wait().unwrap().is_none(),
                "{what}: in vain: {:#?}",
                self.history()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The user presses Ctrl-C: the terminal shows it, and signals its foreground process group.
    pub(crate) fn ctrl_c(&mut self) {
        self.keys.write_all(b"\x03").unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn ended(mut self) -> TerminalEnd {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(begun.elapsed() < LIMIT, "it does not end: {:#?}", self.history());
            std::thread::sleep(Duration::from_millis(10));
        };
        // All its output has been read when the terminal is closed.
        self.reader.take().unwrap().join().unwrap();
        let mut seen = self.seen.lock().unwrap();
        TerminalEnd {
            code,
            screen: seen.history(),
            bytes: std::mem::take(&mut seen.bytes),
            cursor_is_hidden: seen.screen.screen().hide_cursor(),
        }
    }
}

impl ScreenState {
    fn process(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.bytes.extend_from_slice(bytes);
    }

    fn lines(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let mut lines: Vec<_> = screen.rows(0, screen.size().1.get()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn history(&mut self) -> Vec<String> {
        let columns = self.screen.screen().size().1.get();
        self.screen.screen_mut().set_scrollback(usize::MAX);
        let above = self.screen.screen().scrollback();
        let mut lines = Vec::new();
        for back in (1..=above).rev() {
            self.screen.screen_mut().set_scrollback(back);
            lines.extend(self.screen.screen().rows(0, columns).next());
        }
        self.screen.screen_mut().set_scrollback(0);
        lines.extend(self.lines());
        lines
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do. With it the terminal ends, and the program.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
