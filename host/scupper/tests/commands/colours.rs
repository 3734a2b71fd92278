//! The log has colours in a terminal, unless NO_COLOR is set.

use crate::rig::Rig;
use crate::terminal::Terminal;

/// The output of a run in a terminal, with a warning in its log.
fn written(rig: &Rig, environment: &[(&str, &str)]) -> String {
    // An invalid filter causes a warning.
    let args = ["status", "worker-1", "--log", "a=b=c"];
    let left = Terminal::start(rig, &args, (160, 30), environment).ended();
    assert_eq!(left.code, Some(0), "{:#?}", left.screen);
    let text = String::from_utf8(left.bytes).unwrap();
    assert!(text.contains("WARN"), "{text:?}");
    text
}

#[test]
fn the_log_in_a_terminal_has_no_colours_where_no_color_is_set() {
    let rig = Rig::new();
    let plain = written(&rig, &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    // By https://no-color.org an empty value does not count.
    let text = written(&rig, &[("NO_COLOR", "")]);
    assert!(text.contains("\u{1b}[33m"), "{text:?}");
}
