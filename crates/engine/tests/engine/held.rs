//! Agents whose turns are held: asleep like any other, tried again at the recorded time, and at once by a new process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use abide_engine::{Clock, Host, Perform};
use abide_kernel::fact::Fact;
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::HoldCause;
use abide_ledger::Ledger;

use crate::world::{Mind, all_asleep, briefs, create, facts, id, noon, say};

const TEN_MINUTES: Duration = Duration::from_secs(600);

fn started(ledger: &Ledger, mind: &Arc<Mind>, now: Time) -> Host {
    let perform: Arc<dyn Perform> = Arc::clone(mind) as _;
    Host::start(ledger.clone(), perform, Clock::simulated(now, 7)).unwrap()
}

/// An agent with one message and a key that is refused.
async fn held(ledger: &Ledger) -> (Arc<Mind>, Host) {
    let mind = Arc::new(Mind::default());
    mind.refused.store(true, Ordering::SeqCst);
    let host = started(ledger, &mind, noon());
    create(&host, "a").await;
    say(&host, "a", "one").await.unwrap();
    all_asleep(&host).await;
    assert_eq!(mind.calls.load(Ordering::SeqCst), 1);
    (mind, host)
}

fn released(ledger: &Ledger) -> Vec<String> {
    let evidence = |fact: Fact| match fact {
        Fact::TurnsReleased(fact) => Some(fact.evidence),
        _ => None,
    };
    facts(ledger, "a").into_iter().filter_map(evidence).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_wakes_the_agent_and_starts_no_turn_before_the_time() {
    let ledger = Ledger::memory();
    let (mind, host) = held(&ledger).await;
    tokio::time::sleep(TEN_MINUTES / 2).await;
    say(&host, "a", "two").await.unwrap();
    all_asleep(&host).await;
    assert_eq!(mind.calls.load(Ordering::SeqCst), 1, "the same process holds it");
    tokio::time::sleep(TEN_MINUTES / 2).await;
    assert_eq!(mind.calls.load(Ordering::SeqCst), 2, "it is tried again");
    mind.refused.store(false, Ordering::SeqCst);
    tokio::time::sleep(TEN_MINUTES - Duration::from_secs(60)).await;
    assert_eq!(mind.calls.load(Ordering::SeqCst), 2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a")[2..], ["one", "two"]);
    assert_eq!(released(&ledger), ["due", "due"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_tries_again_at_once() {
    let ledger = Ledger::memory();
    let (_, host) = held(&ledger).await;
    host.shutdown(Duration::from_secs(1), "test").await;
    let next = started(&ledger, &Arc::new(Mind::default()), noon().plus_ms(60_000));
    tokio::time::sleep(Duration::from_millis(50)).await;
    all_asleep(&next).await;
    assert_eq!(briefs(&ledger, "a")[1..], ["one"]);
    assert_eq!(released(&ledger), ["restart"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_released_goes_on_asleep_or_awake() {
    let ledger = Ledger::memory();
    let (mind, host) = held(&ledger).await;
    mind.refused.store(false, Ordering::SeqCst);
    let good = |cause| Input::ReleaseTurns { cause, evidence: "the key works".to_owned() };
    host.ask(&id("a"), good(HoldCause::HomeBudget)).await.unwrap();
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a").len(), 1, "that was not the cause");
    host.ask(&id("a"), good(HoldCause::ModelKey)).await.unwrap();
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a")[1..], ["one"]);
}
