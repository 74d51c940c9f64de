//! The simulator: seeded worlds that drive the engine's own core, and a reference model that must agree with it.

pub mod family;
mod generators;
pub mod live;
pub mod model;
pub mod plain;
mod report;
mod rng;
pub mod simulated_agent;

use std::ops::Range;

pub use plain::Simulation;
pub use report::{Failure, Tally};

/// Steps of one world. Short worlds and many seeds find more than long worlds and few.
pub const STEPS: u64 = 120;

/// One world. A panic inside it is a failure of that seed like any other.
pub fn run(seed: u64, steps: u64) -> Result<Tally, Failure> {
    run_world(Simulation::new(seed), steps)
}

/// The fewest steps with which a seed still fails, and how. A prefix of a world is a world, so halving finds one fast.
pub fn shorten(seed: u64, steps: u64, history: usize) -> Option<(u64, Failure)> {
    let fails = |steps: u64| {
        let mut world = Simulation::new(seed);
        world.history_kept = history;
        run_world(world, steps).err()
    };
    let (mut least, mut failure) = (steps, fails(steps)?);
    let mut stride = steps / 2;
    while stride > 0 {
        match fails(least - stride.min(least)) {
            Some(shorter) => (least, failure) = (least - stride.min(least), shorter),
            None => stride /= 2,
        }
        if least == 0 {
            break;
        }
    }
    Some((least, failure))
}

pub fn run_world(mut world: Simulation, steps: u64) -> Result<Tally, Failure> {
    match caught(|| world.run(steps)) {
        Ok(Ok(())) => Ok(world.tally),
        Ok(Err(failure)) => Err(failure),
        Err(what) => Err(Failure { what, history: std::mem::take(&mut world.history) }),
    }
}

/// One live world: the engine's own loops, in simulated time.
pub fn run_live(seed: u64, steps: u64) -> Result<Tally, Failure> {
    caught(|| live::run(seed, steps)).unwrap_or_else(|what| Err(Failure { what, history: Vec::new() }))
}

/// One family: an agent and its children, in the engine's own loops.
pub fn run_family(seed: u64, steps: u64) -> Result<Tally, Failure> {
    caught(|| family::run(seed, steps)).unwrap_or_else(|what| Err(Failure { what, history: Vec::new() }))
}

fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("panicked: {}", text.unwrap_or_else(|| "no reason given".to_owned()))
    })
}

/// Many worlds on all cores. The lowest failing seed is the one reported.
pub fn run_many(
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<Tally, Failure> + Sync,
) -> Result<Tally, (u64, Failure)> {
    let run = &run;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let outcomes: Vec<Result<Tally, (u64, Failure)>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let seeds = seeds.clone();
                scope.spawn(move || {
                    let mut sum = Tally::default();
                    for seed in seeds.filter(|seed| seed % threads == worker) {
                        sum.add(run(seed).map_err(|failure| (seed, failure))?);
                    }
                    Ok(sum)
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let mut sum = Tally::default();
    let mut failed: Option<(u64, Failure)> = None;
    for outcome in outcomes {
        match outcome {
            Ok(tally) => sum.add(tally),
            Err((seed, failure)) => {
                if failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                    failed = Some((seed, failure));
                }
            }
        }
    }
    failed.map_or(Ok(sum), Err)
}
