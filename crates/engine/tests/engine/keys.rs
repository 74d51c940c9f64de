//! Requests under a key.

use abide_engine::{ClaimOutcome, Host};
use abide_kernel::input::{Input, NewMessage};
use abide_ledger::{Hash, Ledger, StreamId};

use crate::world::{all_asleep, briefs, create, host, host_at, id, noon};

async fn claim(host: &Host, key: &str, request: &str) -> ClaimOutcome {
    host.claim(StreamId::key(Hash::of(key.as_bytes())), request.to_owned()).await.unwrap()
}

async fn say_once(host: &Host, key: &str, text: &str) -> String {
    match claim(host, key, text).await {
        ClaimOutcome::New(claim) => {
            let message = NewMessage { text: Some(text.to_owned()), ..NewMessage::default() };
            let answered = host.ask_once(&id("a"), Input::Queue(message), Some(claim)).await.unwrap();
            format!("new {:?}", answered.answer)
        }
        ClaimOutcome::Completed(answered) => format!("new {:?}", answered.answer),
        ClaimOutcome::OtherRequest => "other".to_owned(),
        ClaimOutcome::InProgress => "under way".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_gets_the_first_answer_for_a_day_also_after_a_restart() {
    let ledger = Ledger::memory();
    let first = host(&ledger);
    create(&first, "a").await;
    let answer = say_once(&first, "k", "hello").await;
    assert_eq!(say_once(&first, "k", "hello").await, answer);
    assert_eq!(say_once(&first, "k", "something else").await, "other");
    all_asleep(&first).await;
    let second = host_at(&ledger, noon().plus_ms(23 * 3_600_000));
    assert_eq!(say_once(&second, "k", "hello").await, answer);
    all_asleep(&second).await;
    assert_eq!(briefs(&ledger, "a"), ["hello"]);
    let third = host_at(&ledger, noon().plus_ms(25 * 3_600_000));
    assert_ne!(say_once(&third, "k", "something else").await, answer);
    all_asleep(&third).await;
    assert_eq!(briefs(&ledger, "a"), ["hello", "something else"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_request_is_being_met_is_under_way_and_one_that_failed_is_free() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let ClaimOutcome::New(held) = claim(&host, "k", "x").await else { panic!("it is new") };
    assert!(matches!(claim(&host, "k", "x").await, ClaimOutcome::InProgress));
    drop(held);
    assert!(matches!(claim(&host, "k", "x").await, ClaimOutcome::New(_)));
}

/// A client that goes away in the middle does not free its key: its request is still being met.
#[tokio::test(start_paused = true)]
async fn a_key_is_held_until_its_request_is_durable_whoever_waits() {
    let memory = abide_ledger::Memory::with_manual_sync();
    let ledger = Ledger::Memory(memory.clone());
    let host = host(&ledger);
    let created = tokio::spawn({
        let host = host.clone();
        async move { create(&host, "a").await }
    });
    while !created.is_finished() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        memory.sync();
    }
    let asking = tokio::spawn({
        let host = host.clone();
        async move { say_once(&host, "k", "hello").await }
    });
    while memory.staged() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert!(matches!(claim(&host, "k", "hello").await, ClaimOutcome::InProgress));
    memory.sync();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert!(matches!(claim(&host, "k", "hello").await, ClaimOutcome::Completed(_)));
}

/// The answer and the key are let go of by one thread, and the repeat comes from another.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_is_free_before_its_answer_is_heard() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    for number in 0..500 {
        let key = format!("k{number}");
        let answer = say_once(&host, &key, "hello").await;
        assert_eq!(say_once(&host, &key, "hello").await, answer, "{number}");
    }
}
