//! Abuses the system interfaces as its configuration says.

use std::io::Write;
use std::time::Duration;

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod, config};

mod system {
    wit_bindgen::generate!({
        inline: "package guests:system;
            package wasi:io@0.2.0 {
                interface poll {
                    resource pollable { ready: func() -> bool; block: func(); }
                    poll: func(in: list<borrow<pollable>>) -> list<u32>;
                }
            }
            package wasi:clocks@0.2.0 {
                interface monotonic-clock {
                    use wasi:io/poll@0.2.0.{pollable};
                    type instant = u64;
                    type duration = u64;
                    now: func() -> instant;
                    resolution: func() -> duration;
                    subscribe-instant: func(when: instant) -> pollable;
                    subscribe-duration: func(when: duration) -> pollable;
                }
            }
            package wasi:random@0.2.0 {
                interface random {
                    get-random-bytes: func(len: u64) -> list<u8>;
                    get-random-u64: func() -> u64;
                }
            }
            world system { import wasi:clocks/monotonic-clock@0.2.0; import wasi:random/random@0.2.0; }",
        generate_all,
    });
}
use system::wasi::clocks::monotonic_clock;
use system::wasi::random::random::get_random_bytes;

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn plan(_drain: Drain, _node: Node, _pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    Err(act())
}

fn step(_call: &Call) -> Outcome {
    Outcome::failed(act()).into()
}

fn act() -> String {
    match config::get("mode").as_deref() {
        Some("sleep") => std::thread::sleep(Duration::from_secs(86_400)),
        Some("random") => return format!("{} bytes", get_random_bytes(1 << 60).len()),
        Some("dice") => return format!("{:?}", get_random_bytes(64)),
        Some("flood") => (0..100_000).for_each(|line| println!("line {line}\u{1b}[31m{}", "x".repeat(2000))),
        Some("endless") => {
            let mut out = std::io::stdout();
            (0..5_000).for_each(|_| out.write_all(&[b'x'; 4096]).unwrap_or_default());
        }
        Some("exit") => std::process::exit(3),
        Some("abort") => std::process::abort(),
        Some("handles") => loop {
            std::mem::forget(monotonic_clock::subscribe_duration(1 << 60));
        },
        _ => {}
    }
    "still here".to_owned()
}
