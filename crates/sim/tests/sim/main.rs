//! The simulator itself: that healthy worlds hold, and that it finds every bug that is planted.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(feature = "planted")]
mod planted;

#[test]
fn healthy_worlds_hold() {
    if let Err((seed, failure)) = abide_sim::run_many(0..150, |seed| abide_sim::run(seed, abide_sim::STEPS)) {
        panic!("seed {seed}: {}\n{}", failure.what, failure.history.join("\n"));
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    let run = || abide_sim::run(7, abide_sim::STEPS).map(|tally| (tally.facts, tally.commits, tally.crashes)).ok();
    assert_eq!(run(), run());
}
