//! The log and what is printed for people have colours in a terminal, unless NO_COLOR is set or --color says otherwise.

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

const REFUSED: &str = "\u{1b}[31m\u{1b}[1mwould be refused\u{1b}[0m";

#[test]
fn what_is_printed_has_colours_where_they_are_wanted() {
    let rig = Rig::new();
    rig.apply(scupper_simulator::api::objects::pod("shop", "bare", "worker-1"));
    let plan = |more: &[&'static str]| [&["plan", "worker-1"][..], more].concat();
    let in_terminal = |more: &[&'static str], environment: &[(&str, &str)]| {
        let left = Terminal::start(&rig, &plan(more), (160, 30), environment).ended();
        String::from_utf8(left.bytes).unwrap()
    };
    assert!(in_terminal(&[], &[]).contains(REFUSED));
    assert!(in_terminal(&["--color", "always"], &[("NO_COLOR", "1")]).contains(REFUSED));
    for (more, environment) in [
        (&["--color", "never"][..], &[][..]),
        (&[], &[("NO_COLOR", "1")]),
        (&[], &[("TERM", "dumb")]),
        (&["-o", "json"], &[]),
        (&["-o", "json", "--color", "always"], &[]),
    ] {
        let text = in_terminal(more, environment);
        assert!(!text.contains('\u{1b}'), "{more:?} {environment:?}: {text:?}");
    }
    let piped = rig.run(&plan(&[]));
    assert!(!piped.stdout.contains('\u{1b}'), "{piped:#?}");
    let wanted = rig.run(&plan(&["--color", "always"]));
    assert!(wanted.stdout.contains(REFUSED), "{wanted:#?}");
}
