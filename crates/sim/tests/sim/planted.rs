//! Every planted bug is found within the seeds that the test command runs.

use abide_engine::planted as engine;
use abide_kernel::planted as kernel;
use abide_ledger::planted as ledger;
use abide_sim::{STEPS, Simulation, run_world};

/// As many seeds as `cargo xtask test` gives to the simulator.
const SEEDS: u64 = 2_500;

enum Bug {
    Kernel(kernel::Bug),
    Engine(engine::Bug),
    Ledger(ledger::Bug),
}

/// Runs worlds with one bug switched on until one of them fails.
fn found(bug: &Bug) -> Option<(u64, String)> {
    match bug {
        Bug::Kernel(bug) => kernel::plant(Some(*bug)),
        Bug::Engine(bug) => engine::plant(Some(*bug)),
        Bug::Ledger(_) => {}
    }
    // Bugs show as panics too; they are expected here, and need no trace.
    std::panic::set_hook(Box::new(|_| ()));
    let failed = (0..SEEDS).find_map(|seed| {
        let world = Simulation::new(seed);
        if let Bug::Ledger(bug) = bug {
            world.disk().plant(*bug);
        }
        run_world(world, STEPS).err().map(|failure| (seed, failure.what))
    });
    let _default = std::panic::take_hook();
    kernel::plant(None);
    engine::plant(None);
    failed
}

macro_rules! finds {
    ($($test:ident: $bug:expr;)*) => {$(
        #[test]
        fn $test() {
            match found(&$bug) {
                Some((seed, what)) => eprintln!("found with seed {seed}: {}", abide_kernel::limits::clip(&what, 300)),
                None => panic!("{SEEDS} worlds did not notice"),
            }
        }
    )*};
}

finds! {
    finds_a_dropped_result: Bug::Kernel(kernel::Bug::DroppedResult);
    finds_a_missing_idempotency_check: Bug::Kernel(kernel::Bug::MissingIdempotencyCheck);
    finds_a_tick_after_stop: Bug::Kernel(kernel::Bug::TickAfterStop);
    finds_a_forgotten_parked_message: Bug::Kernel(kernel::Bug::ForgottenParked);
    finds_a_reopened_task: Bug::Kernel(kernel::Bug::ReopenedTask);
    finds_a_lost_interjection: Bug::Kernel(kernel::Bug::LostInterjection);
    finds_a_wait_that_outlives_its_task: Bug::Kernel(kernel::Bug::WaitOutlivesTask);
    finds_an_unfair_timer: Bug::Kernel(kernel::Bug::UnfairTimer);
    finds_endless_offers: Bug::Kernel(kernel::Bug::EndlessOffers);
    finds_an_unindexed_timer: Bug::Kernel(kernel::Bug::UnindexedTimer);
    finds_a_message_lost_by_stop: Bug::Kernel(kernel::Bug::StopLosesMessage);
    finds_an_orphaned_tick: Bug::Kernel(kernel::Bug::OrphanedTick);
    finds_focus_moved_by_a_tick: Bug::Kernel(kernel::Bug::FocusMovesByTick);
    finds_endless_replay: Bug::Kernel(kernel::Bug::EndlessReplay);
    finds_waits_ended_by_compaction: Bug::Kernel(kernel::Bug::CompactionEndsWaits);
    finds_turns_without_a_pace: Bug::Kernel(kernel::Bug::UnpacedTurns);
    finds_work_without_end: Bug::Kernel(kernel::Bug::EndlessWork);
    finds_answers_before_commit: Bug::Engine(engine::Bug::AnswersBeforeCommit);
    finds_an_early_acknowledgement: Bug::Ledger(ledger::Bug::EarlyAck);
    finds_a_lost_tail: Bug::Ledger(ledger::Bug::LostTail);
}
