//! A clock that was wrong for a moment: who sleeps is woken once it is right, and nobody waits for a time that was
//! recorded while it was ahead.

use std::time::Duration;

use abide_engine::fork::fork;
use abide_engine::{ClaimOutcome, Host};
use abide_kernel::fact::Fact;
use abide_kernel::input::Input;
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary::CatchUp;
use abide_ledger::{Hash, Ledger, StreamId};

use crate::world::{all_asleep, create, facts, host, host_at, id, noon, say};

const CENTURY_MS: i64 = 100 * 365 * 86_400_000;
const DAY_MS: i64 = 86_400_000;

async fn set_timer(host: &Host, name: &str, when: When) {
    let act = RecordCall::CreateTimer {
        summary: "tea".to_owned(),
        when,
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    };
    host.ask(&id(name), Input::Act { by: "ann".to_owned(), act }).await.unwrap();
}

fn minutely() -> When {
    When::Cron { cron: "* * * * *".to_owned(), time_zone: "UTC".to_owned() }
}

fn fired(ledger: &Ledger, name: &str) -> Vec<Time> {
    let due = |fact: Fact| match fact {
        Fact::TimerFired(fired) => Some(fired.due),
        _ => None,
    };
    facts(ledger, name).into_iter().filter_map(due).collect()
}

fn settings(ledger: &Ledger, name: &str) -> usize {
    facts(ledger, name).iter().filter(|fact| matches!(fact, Fact::ClockSetBack(_))).count()
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn recurring_timers_go_on_after_a_century_of_seconds() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    for (name, when) in [("every", When::EveryMs(30_000)), ("cron", minutely())] {
        create(&host, name).await;
        set_timer(&host, name, when).await;
    }
    seconds(70).await;
    host.clock().set_by_ms(CENTURY_MS);
    seconds(15).await;
    all_asleep(&host).await;
    host.clock().set_by_ms(-CENTURY_MS);
    seconds(15).await;
    let before = ["every", "cron"].map(|name| fired(&ledger, name).len());
    seconds(600).await;
    for (name, before, rate) in [("every", before[0], 20), ("cron", before[1], 10)] {
        let times = fired(&ledger, name);
        assert_eq!(times.len() - before, rate, "{name}: {times:#?}");
        let mut apart = times.clone();
        apart.sort();
        apart.dedup();
        assert_eq!(apart.len(), times.len(), "{name} fired twice: {times:#?}");
        assert_eq!(settings(&ledger, name), 1, "{name}");
    }
}

/// An agent that was asleep all the time is not woken for it: its timers were recorded while the clock was right.
#[tokio::test(start_paused = true)]
async fn who_slept_through_it_sleeps_on() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    for name in ["sleeper", "busy"] {
        create(&host, name).await;
        set_timer(&host, name, When::AfterMs(7_200_000)).await;
    }
    all_asleep(&host).await;
    seconds(600).await;
    host.clock().set_by_ms(3_600_000);
    say(&host, "busy", "hello").await.unwrap();
    all_asleep(&host).await;
    host.clock().set_by_ms(-3_600_000);
    let loads = host.meter().loads.get();
    seconds(15).await;
    assert_eq!(host.meter().loads.get() - loads, 1);
    assert_eq!([settings(&ledger, "sleeper"), settings(&ledger, "busy")], [0, 1]);
    seconds(6_600).await;
    assert_eq!([fired(&ledger, "sleeper").len(), fired(&ledger, "busy").len()], [1, 1]);
}

/// The process that was there while the clock was ahead is gone when it is right again.
#[tokio::test(start_paused = true)]
async fn a_restart_in_between_makes_no_difference() {
    for (ahead, back) in [(CENTURY_MS, -CENTURY_MS), (0, -DAY_MS)] {
        let ledger = Ledger::memory();
        let first = host(&ledger);
        create(&first, "a").await;
        set_timer(&first, "a", When::EveryMs(60_000)).await;
        create(&first, "b").await;
        seconds(130).await;
        first.clock().set_by_ms(ahead);
        seconds(15).await;
        set_timer(&first, "b", When::AfterMs(60_000)).await;
        all_asleep(&first).await;
        let then = first.clock().now();
        first.shutdown(Duration::from_secs(1), "test").await;
        let before = fired(&ledger, "a").len();
        let second = host_at(&ledger, Time::from_ms(then.as_ms() + back));
        seconds(62).await;
        all_asleep(&second).await;
        assert_eq!(fired(&ledger, "a").len() - before, 1, "set by {ahead} and {back}");
        assert_eq!(fired(&ledger, "b").len(), 1, "set by {ahead} and {back}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_back_a_day_holds_nothing_up() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    set_timer(&host, "a", When::EveryMs(60_000)).await;
    seconds(125).await;
    assert_eq!(fired(&ledger, "a").len(), 2);
    host.clock().set_by_ms(-DAY_MS);
    seconds(600).await;
    let times = fired(&ledger, "a").len();
    assert!((11..=12).contains(&times), "{times}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_used_in_the_future_is_kept_for_a_day() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let key = StreamId::key(Hash::of(b"one"));
    let claim = |request: &str| host.claim(key.clone(), request.to_owned());
    host.clock().set_by_ms(CENTURY_MS);
    let ClaimOutcome::New(new) = claim("one").await.unwrap() else { panic!("it is new") };
    let input = Input::Queue(abide_kernel::input::NewMessage { text: Some("hi".to_owned()), ..Default::default() });
    host.ask_once(&id("a"), input, Some(new)).await.unwrap();
    host.clock().set_by_ms(-CENTURY_MS);
    assert!(matches!(claim("one").await.unwrap(), ClaimOutcome::Completed(_)));
    seconds(23 * 3_600).await;
    assert!(matches!(claim("two").await.unwrap(), ClaimOutcome::OtherRequest));
    seconds(2 * 3_600).await;
    assert!(matches!(claim("two").await.unwrap(), ClaimOutcome::New(_)));
}

/// A fork takes over what waits in the queue, and the clock may be right again by then.
#[tokio::test(start_paused = true)]
async fn a_fork_of_the_future_lives_now() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    host.clock().set_by_ms(CENTURY_MS);
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    let head = facts(&ledger, "a").len() as u64;
    let state = fork(&ledger, &id("a"), head, &id("b"), noon(), 1, None).unwrap();
    assert_eq!(settings(&ledger, "b"), 1);
    assert_eq!(state.at, noon());
}
