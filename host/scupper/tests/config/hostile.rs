//! Whatever the file contains, the answer is quick and without a panic.

use std::path::Path;
use std::time::Duration;

use scupper_config::{ConfigError, read_text};

use crate::{HEAD, good, problems, problems_of};

/// Far more processor time than any of these takes, and far less than counting to their numbers takes.
const SOON: Duration = Duration::from_secs(20);

fn read_soon(text: &str) -> Result<(), ConfigError> {
    let before = processor_time();
    let read = read_text(Path::new("x.yaml"), text);
    let took = processor_time() - before;
    assert!(took < SOON, "it took {took:?}");
    read.map(drop)
}

/// What this thread has had of a processor: other than the time that passes, it does not grow while others have it.
fn processor_time() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_the_name) = stat.rsplit_once(')').unwrap();
    let in_user_and_in_kernel = after_the_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = in_user_and_in_kernel.map(|it| it.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

#[test]
fn an_alias_bomb_is_refused_before_it_goes_off() {
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        bomb.push_str(&format!(
            "a{level}: &a{level} [*a{before}, *a{before}, *a{before}, *a{before}]\n"
        ));
    }
    let reported = problems_of(&bomb);
    assert!(reported.len() > 200, "{}", reported.len());
    read_soon(&bomb).unwrap_err();
}

#[test]
fn too_deep_nesting_is_refused() {
    let deep = |open: &str, close: &str, count: usize| {
        format!(
            "policies: []\ndrain: {}{}\n",
            open.repeat(count),
            close.repeat(count)
        )
    };
    let reported = problems(&deep("[", "]", 100));
    assert!(
        reported[0].message.contains("nested more than 32 deep"),
        "{reported:?}"
    );
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")] {
        read_soon(&format!("{HEAD}{}", deep(open, close, 100_000))).unwrap_err();
    }
}

#[test]
fn a_long_file_takes_no_time() {
    let mib = 1 << 20;
    let fill = |part: &str| part.repeat(mib / part.len());
    for long in [
        fill("a"),
        fill("- a\n"),
        fill("[],"),
        fill("\t"),
        fill(" "),
        fill("\n"),
        fill("#\n"),
        fill("&a "),
        fill("!a "),
        fill("? "),
        fill(": "),
        fill("\""),
        fill("'"),
        fill("'a"),
        fill("|\n"),
        fill("%a\n"),
        fill("---\n"),
        fill("\\"),
        fill("\u{1f6b0}"),
        (0..60_000).map(|number| format!("k{number}: 1\n")).collect(),
        format!("policies:\n{}", fill("- {name: a, module: b}\n")),
        format!("policies: [{}", fill("{},")),
        format!("key: \"{}\"\n", fill("a")),
        format!("{}: b\n", fill("a")),
        format!("a:{}b\n", fill(" ")),
    ] {
        let begin: String = long.chars().take(20).collect();
        let before = processor_time();
        read_soon(&format!("{HEAD}{long}")).expect_err(&begin);
        println!("{begin:?}: {:?}", processor_time() - before);
    }
}

#[test]
fn keys_are_shown_short_and_harmless() {
    let reported = problems(&format!("policies: []\n\"\\e[2J{}\": 1\n", "x".repeat(1000)));
    let text = reported[0].to_string();
    assert!(!text.contains('\u{1b}') && text.len() < 300, "{text}");
}

/// A file with every setting, to be broken.
const SEED: &str = include_str!("everything.yaml");

#[test]
fn the_seed_is_right() {
    good(SEED.strip_prefix(HEAD).unwrap());
}

/// Cuts, doubles, swaps and inserts: half a file, a file with a piece elsewhere, odd characters anywhere.
#[test]
fn no_input_makes_it_panic() {
    let mut random = Random(0x5c_u64);
    let odd = [
        "\t",
        "\n",
        " ",
        "-",
        "- ",
        ": ",
        "?",
        "&a",
        "*a",
        "!!x",
        "|",
        ">",
        "'",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "#",
        "%",
        "@",
        "`",
        "~",
        "<<: ",
        "---\n",
        "...\n",
        "\u{0}",
        "\u{feff}",
        "\u{2028}",
        "\u{1f6b0}",
        "\\",
        "0x",
        "1e999",
        "-1",
        "99999999999999999999999",
        "\r",
        "\r\n",
        "\u{85}",
    ];
    for _ in 0..4_000 {
        let mut chars: Vec<char> = SEED.chars().collect();
        for _ in 0..=random.below(4) {
            let (a, b) = (random.below(chars.len()), random.below(chars.len()));
            match random.below(5) {
                0 => chars.truncate(a),
                1 => drop(chars.drain(a.min(b)..a.max(b))),
                2 => {
                    let piece: Vec<char> = chars[a.min(b)..a.max(b)].to_vec();
                    let at = random.below(chars.len());
                    chars.splice(at..at, piece);
                }
                3 => chars.swap(a, b),
                _ => {
                    let piece = odd[random.below(odd.len())];
                    chars.splice(a..a, piece.chars());
                }
            }
            if chars.is_empty() {
                break;
            }
        }
        let text: String = chars.into_iter().collect();
        let read = std::panic::catch_unwind(|| read_text(Path::new("x.yaml"), &text).map(drop));
        match read {
            Ok(Ok(()) | Err(ConfigError::Wrong { .. })) => {}
            Ok(Err(other)) => panic!("{other}: {text}"),
            Err(_) => panic!("it panicked: {text}"),
        }
    }
}

/// Splitmix: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from(z >> 33).unwrap() % end.max(1)
    }
}
