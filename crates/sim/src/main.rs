//! `abide-sim`: runs worlds from seeds, and says which seed failed and how.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::process::ExitCode;

use abide_sim::{World, run_many, run_world};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut seeds, mut seed, mut from, mut steps) = (200, None, 0, abide_sim::STEPS);
    let mut history = 60;
    while let Some(flag) = args.next() {
        let value = args.next().and_then(|value| value.parse::<u64>().ok());
        match (flag.as_str(), value) {
            ("--seeds", Some(n)) => seeds = n,
            ("--seed", Some(n)) => seed = Some(n),
            ("--from", Some(n)) => from = n,
            ("--steps", Some(n)) => steps = n,
            ("--history", Some(n)) => history = usize::try_from(n).unwrap_or(usize::MAX),
            _ => {
                eprintln!("abide-sim [--seeds N [--from S]] [--seed S] [--steps N] [--history LINES]");
                return ExitCode::from(2);
            }
        }
    }
    let outcome = match seed {
        Some(seed) => {
            let mut world = World::new(seed);
            world.history_kept = history;
            run_world(world, steps).map_err(|failure| (seed, failure))
        }
        None => run_many(from..from + seeds, steps),
    };
    match outcome {
        Ok(tally) => {
            println!(
                "simulated {} worlds: {} facts, {} commits, {} turns, {} messages, {} crashes; all invariants held",
                seed.map_or(seeds, |_| 1),
                tally.facts,
                tally.commits,
                tally.turns,
                tally.messages,
                tally.crashes
            );
            ExitCode::SUCCESS
        }
        Err((seed, failure)) => {
            let (least, failure) = abide_sim::shorten(seed, steps, history).unwrap_or((steps, failure));
            for line in &failure.history {
                eprintln!("  {line}");
            }
            eprintln!("seed {seed} failed within {least} steps: {}", failure.what);
            eprintln!("repeat it with: cargo xtask sim --seed {seed} --steps {least} --history 10000");
            ExitCode::FAILURE
        }
    }
}
