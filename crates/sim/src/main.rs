//! `abide-sim`: runs worlds from seeds, and says which seed failed and how.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::process::ExitCode;

use abide_sim::{Failure, Tally, live, run, run_live, run_many, shorten};

/// One in so many seeds is a live world, too: they cost more, and there is less in them that chance decides.
const LIVE_EVERY: u64 = 8;

struct Wanted {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    live: bool,
    steps: Option<u64>,
    history: usize,
}

fn main() -> ExitCode {
    let Some(wanted) = wanted() else {
        eprintln!("abide-sim [--live yes] [--seeds N [--from S]] [--seed S] [--steps N] [--history LINES]");
        return ExitCode::from(2);
    };
    let seeds = wanted.seed.map_or(wanted.from..wanted.from + wanted.seeds, |seed| seed..seed + 1);
    let steps = wanted.steps.unwrap_or(abide_sim::STEPS);
    if !wanted.live {
        match run_many(seeds.clone(), |seed| run(seed, steps)) {
            Ok(tally) => say("worlds", seeds.end - seeds.start, tally),
            Err((seed, failure)) => {
                let (least, failure) = shorten(seed, steps, wanted.history).unwrap_or((steps, failure));
                return failed(&failure, seed, &format!("--seed {seed} --steps {least} --history 10000"));
            }
        }
    }
    let share = if wanted.live || wanted.seed.is_some() { 1 } else { LIVE_EVERY };
    if wanted.seed.is_some() && !wanted.live {
        return ExitCode::SUCCESS;
    }
    let live_seeds = seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(share);
    let steps = wanted.steps.unwrap_or(live::STEPS);
    match run_many(live_seeds.clone(), |seed| run_live(seed, steps)) {
        Ok(tally) => {
            say("live worlds", live_seeds.end - live_seeds.start, tally);
            ExitCode::SUCCESS
        }
        Err((seed, failure)) => failed(&failure, seed, &format!("--live yes --seed {seed} --steps {steps}")),
    }
}

fn wanted() -> Option<Wanted> {
    let mut wanted = Wanted { seeds: 200, from: 0, seed: None, live: false, steps: None, history: 60 };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let text = args.next()?;
        let number = text.parse::<u64>();
        match flag.as_str() {
            "--live" => wanted.live = text == "yes",
            "--seeds" => wanted.seeds = number.ok()?,
            "--seed" => wanted.seed = Some(number.ok()?),
            "--from" => wanted.from = number.ok()?,
            "--steps" => wanted.steps = Some(number.ok()?),
            "--history" => wanted.history = usize::try_from(number.ok()?).unwrap_or(usize::MAX),
            _ => return None,
        }
    }
    Some(wanted)
}

fn say(what: &str, count: u64, tally: Tally) {
    println!(
        "simulated {count} {what}: {} facts, {} commits, {} turns, {} messages, {} crashes; all invariants held",
        tally.facts, tally.commits, tally.turns, tally.messages, tally.crashes
    );
}

fn failed(failure: &Failure, seed: u64, again: &str) -> ExitCode {
    for line in &failure.history {
        eprintln!("  {line}");
    }
    eprintln!("seed {seed} failed: {}", failure.what);
    eprintln!("repeat it with: cargo xtask sim {again}");
    ExitCode::FAILURE
}
