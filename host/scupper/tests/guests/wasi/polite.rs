//! A policy that uses its standard library as programs do: prints, hashes, reads the clock, waits a little, opens a
//! file. Answers with the results.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use guests::{Call, Drain, Node, Outcome, Phase, Plan, Pod};

guests::about!();
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, _draft: Plan) -> Result<Plan, String> {
    println!("plans for {} pods", pods.len());
    Err(sights())
}

fn step(_call: &Call) -> Outcome {
    print!("steps\r\nand \u{1b}[31m");
    eprintln!("complains");
    println!("{}", String::from_utf8_lossy(b"waits"));
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(40));
    let waited = began.elapsed() >= Duration::from_millis(30);
    eprint!("no end");
    Outcome::failed(format!("waited: {waited}; {}", sights())).into()
}

fn sights() -> String {
    // In the order of this call's own hasher.
    let map: HashMap<u32, ()> = (0..64).map(|number| (number, ())).collect();
    let order: Vec<u32> = map.into_keys().collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let file = std::fs::read_to_string("/etc/passwd").map_err(|error| error.kind());
    let directory = std::fs::read_dir("/").map(|_| ()).map_err(|error| error.kind());
    format!(
        "{} ms; {file:?}; {directory:?}; {} variables; {} arguments; {order:?}",
        now.as_millis(),
        std::env::vars().count(),
        std::env::args().count(),
    )
}
