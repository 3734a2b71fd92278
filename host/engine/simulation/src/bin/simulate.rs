//! `simulate`: runs the drain engine in simulated clusters, and reports the coverage or the violated invariant.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is its command line"
)]

use std::process::ExitCode;
use std::time::Instant;

use scupper_engine_simulation::{Stop, narrate, run_many};

const HELP: &str = "\
Runs the drain engine in simulated clusters and checks its invariants after every event.

usage: simulate [--seeds N] [--from S] [--threads T]   run N worlds (default 100000) from seed S (default 0)
       simulate --all …                                do not stop at the first violation: a line for each
       simulate --until I …                            stop at the first violation of invariant I (1 to 8)
       simulate --seed S [--trace]                     run one world, and print what happened";

#[derive(Default)]
struct Options {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    threads: Option<usize>,
    trace: bool,
    all: bool,
    until: Option<u64>,
}

impl Options {
    fn stop(&self) -> Stop {
        match self.until.and_then(|number| u8::try_from(number).ok()) {
            Some(invariant) => Stop::AtInvariant(invariant),
            None if self.all => Stop::Never,
            None => Stop::AtFirst,
        }
    }
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match options.seed {
        Some(seed) => one(seed, &options),
        None => many(&options),
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            value
                .parse::<u64>()
                .map_err(|error| format!("{word} {value}: {error}"))
        };
        match word.as_str() {
            "--seeds" => options.seeds = Some(number()?),
            "--from" => options.from = number()?,
            "--seed" => options.seed = Some(number()?),
            "--threads" => options.threads = usize::try_from(number()?).ok(),
            "--until" => options.until = Some(number()?),
            "--all" => options.all = true,
            "--trace" => options.trace = true,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(options)
}

fn one(seed: u64, options: &Options) -> ExitCode {
    let (result, story) = narrate(seed);
    if options.trace {
        for line in story {
            println!("{line}");
        }
    }
    match result {
        Ok(report) => {
            println!("seed {seed} keeps every promise; commands {:016x}", report.hash);
            print!("{}", report.coverage);
            ExitCode::SUCCESS
        }
        Err(mut violation) => {
            if options.trace {
                violation.trace.clear();
            }
            println!("{violation}");
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the whole run took, for display"
)]
fn many(options: &Options) -> ExitCode {
    let begun = Instant::now();
    let seeds = options.seeds.unwrap_or(100_000);
    let totals = run_many(
        options.from..options.from.saturating_add(seeds),
        options.threads.unwrap_or(2),
        options.stop(),
    );
    let hours = totals.took / 3_600_000;
    println!(
        "{} worlds, {hours} simulated hours, {:.1} s",
        totals.worlds,
        begun.elapsed().as_secs_f64()
    );
    if options.all || options.until.is_some() {
        for violation in &totals.violations {
            println!(
                "seed {} invariant {}: {}",
                violation.seed, violation.invariant, violation.message
            );
        }
    } else if let Some(violation) = totals.violations.first() {
        println!("{violation}");
        return ExitCode::FAILURE;
    }
    print!("{}", totals.coverage);
    let missing = totals.coverage.missing();
    if !missing.is_empty() {
        println!("never met: {}", missing.join(", "));
    }
    if totals.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
