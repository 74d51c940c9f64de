//! Ending well.

use std::time::Duration;

use abide_engine::AskError;
use abide_kernel::fact::Fact;
use abide_kernel::vocabulary::RequeueReason;
use abide_ledger::Ledger;

use crate::world::{all_asleep, briefs, create, facts, host, kinds, say};

fn requeued(ledger: &Ledger, name: &str) -> Vec<RequeueReason> {
    let reason = |fact: Fact| match fact {
        Fact::MessageRequeued(requeued) => Some(requeued.reason),
        _ => None,
    };
    facts(ledger, name).into_iter().filter_map(reason).collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_comes_to_its_next_safe_point_first() {
    let ledger = Ledger::memory();
    let first = host(&ledger);
    create(&first, "a").await;
    say(&first, "a", "take a minute").await.unwrap();
    first.shutdown(Duration::from_secs(90), "test").await;
    assert_eq!(first.awake(), 0);
    // The answer came in time, so it is the answer; nobody is asked for another.
    assert_eq!(briefs(&ledger, "a"), ["take a minute"]);
    assert_eq!(requeued(&ledger, "a"), []);
    assert!(matches!(say(&first, "a", "too late").await, Err(AskError::Closing)));
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_back_and_taken_up_again() {
    let ledger = Ledger::memory();
    let first = host(&ledger);
    create(&first, "a").await;
    say(&first, "a", "take a minute").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    first.shutdown(Duration::from_secs(5), "test").await;
    assert_eq!(first.awake(), 0);
    assert_eq!(requeued(&ledger, "a"), [RequeueReason::Shutdown]);
    let second = host(&ledger);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(briefs(&ledger, "a"), ["take a minute"]);
    all_asleep(&second).await;
}

#[tokio::test(start_paused = true)]
async fn agents_at_rest_write_nothing_when_the_daemon_ends() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let before = kinds(&ledger, "a").len();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let resting = kinds(&ledger, "a").len();
    host.shutdown(Duration::from_secs(5), "test").await;
    assert_eq!(kinds(&ledger, "a").len(), resting, "{before}");
}
