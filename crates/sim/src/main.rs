//! `abide-sim`: runs worlds from seeds, and says which seed failed and how.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::process::ExitCode;

use abide_sim::{Failure, Tally, family, live, run, run_family, run_live, run_many, shorten};

/// One in so many seeds is a live world, and one in so many a family: they cost more, and there is less in them that
/// chance decides.
const LIVE_EVERY: u64 = 8;
const FAMILY_EVERY: u64 = 32;

struct Wanted {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    world: Option<Kind>,
    steps: Option<u64>,
    history: usize,
}

/// The kinds of simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Live,
    Family,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Plain, Kind::Live, Kind::Family];

    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Live => "live",
            Kind::Family => "family",
        }
    }

    fn steps(self) -> u64 {
        match self {
            Kind::Plain => abide_sim::STEPS,
            Kind::Live => live::STEPS,
            Kind::Family => family::STEPS,
        }
    }

    fn run(self, seed: u64, steps: u64) -> Result<Tally, Failure> {
        match self {
            Kind::Plain => run(seed, steps),
            Kind::Live => run_live(seed, steps),
            Kind::Family => run_family(seed, steps),
        }
    }
}

fn main() -> ExitCode {
    let Some(wanted) = wanted() else {
        eprintln!(
            "abide-sim [--world plain|live|family] [--seeds N [--from S]] [--seed S] [--steps N] [--history LINES]"
        );
        return ExitCode::from(2);
    };
    let kinds = Kind::ALL.into_iter().filter(|kind| wanted.world.is_none_or(|only| only == *kind));
    for kind in kinds {
        let steps = wanted.steps.unwrap_or_else(|| kind.steps());
        let share = match kind {
            _ if wanted.world.is_some() => 1,
            Kind::Plain => 1,
            Kind::Live => LIVE_EVERY,
            Kind::Family => FAMILY_EVERY,
        };
        let seeds = match wanted.seed {
            Some(seed) => seed..seed + 1,
            None => wanted.from..wanted.from + wanted.seeds.div_ceil(share),
        };
        let count = seeds.end - seeds.start;
        match run_many(seeds, |seed| kind.run(seed, steps)) {
            Ok(tally) => say(kind.name(), count, tally),
            Err((seed, failure)) => {
                let shorter = (kind == Kind::Plain).then(|| shorten(seed, steps, wanted.history)).flatten();
                let (least, failure) = shorter.unwrap_or((steps, failure));
                let world = kind.name();
                return failed(
                    &failure,
                    seed,
                    &format!("--world {world} --seed {seed} --steps {least} --history 10000"),
                );
            }
        }
    }
    ExitCode::SUCCESS
}

fn wanted() -> Option<Wanted> {
    let mut wanted = Wanted { seeds: 200, from: 0, seed: None, world: None, steps: None, history: 60 };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let text = args.next()?;
        let number = text.parse::<u64>();
        match flag.as_str() {
            "--world" => wanted.world = Some(Kind::ALL.into_iter().find(|kind| kind.name() == text)?),
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
        "simulated {count} {what} worlds: {} facts, {} commits, {} turns, {} messages, {} crashes; all invariants held",
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
