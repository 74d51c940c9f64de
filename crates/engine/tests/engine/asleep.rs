//! Waking and falling asleep.

use std::sync::Arc;
use std::time::Duration;

use abide_engine::{Clock, Host, Perform};
use abide_kernel::fact::Fact;
use abide_kernel::input::Input;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary::CatchUp;
use abide_ledger::Ledger;

use crate::world::{Heard, Mind, all_asleep, briefs, create, facts, host, host_at, id, kinds, noon, say};

#[tokio::test(start_paused = true)]
async fn a_message_is_answered_and_the_agent_falls_asleep() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a"), ["hello"]);
    // Asleep it is rows, and a post brings it back.
    say(&host, "a", "again").await.unwrap();
    assert_eq!(host.awake(), 1);
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a"), ["hello", "again"]);
}

#[tokio::test(start_paused = true)]
async fn every_fact_is_told_once_before_what_follows_from_it_is_done() {
    let (ledger, mind) = (Ledger::memory(), Arc::new(Mind::default()));
    let perform: Arc<dyn Perform> = Arc::clone(&mind) as _;
    let host = Host::start(ledger.clone(), perform, Clock::simulated(noon(), 7)).unwrap();
    create(&host, "a").await;
    for text in ["hello", "again"] {
        say(&host, "a", text).await.unwrap();
        all_asleep(&host).await;
    }
    let heard = mind.heard.lock().unwrap().clone();
    let recorded: Vec<Heard> = heard.iter().filter(|heard| **heard != Heard::CallModel).cloned().collect();
    let facts: Vec<Heard> = (1..).zip(facts(&ledger, "a")).map(|(seq, fact)| Heard::Recorded(seq, fact)).collect();
    assert_eq!(recorded, facts);
    let mut rounds = 0;
    for heard in heard {
        match heard {
            Heard::Recorded(_, Fact::RoundStarted(_)) => rounds += 1,
            Heard::Recorded(..) => {}
            Heard::CallModel => {
                rounds -= 1;
                assert_eq!(rounds, 0, "the round that a model is called for is recorded, and no other");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn looking_wakes_nobody() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    all_asleep(&host).await;
    let head = kinds(&ledger, "a").len() as u64;
    assert_eq!(host.inspect(&id("a"), |state, _| state.seq).await.unwrap(), Some(head));
    assert_eq!(host.inspect(&id("b"), |state, _| state.seq).await.unwrap(), None);
    assert_eq!(host.awake(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_exist_is_refused_and_leaves_nothing() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    let error = say(&host, "nobody", "hello").await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    all_asleep(&host).await;
    assert!(ledger.streams(None, 10).unwrap().is_empty());
}

pub async fn set_timer(host: &abide_engine::Host, name: &str, after_ms: u64) {
    let act = RecordCall::CreateTimer {
        summary: "look at the build".to_owned(),
        when: When::AfterMs(after_ms),
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    };
    host.ask(&id(name), Input::Act { by: "ann".to_owned(), act }).await.unwrap();
}

fn fired_at(ledger: &Ledger, name: &str) -> Vec<String> {
    let started = |fact: Fact| match fact {
        Fact::TimerFired(fired) => Some(fired.due.to_string()),
        _ => None,
    };
    facts(ledger, name).into_iter().filter_map(started).collect()
}

#[tokio::test(start_paused = true)]
async fn a_timer_wakes_a_sleeping_agent_on_time() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    set_timer(&host, "a", 3_600_000).await;
    all_asleep(&host).await;
    tokio::time::sleep(Duration::from_secs(3_500)).await;
    assert!(fired_at(&ledger, "a").is_empty());
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(fired_at(&ledger, "a").len(), 1);
    assert!(kinds(&ledger, "a").contains(&"turn.started"));
}

/// The alarm clock looks now and then in any case; a deadline that is nearer than that must be heard of.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_nearer_than_the_next_look_is_kept() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    set_timer(&host, "a", 3_000).await;
    all_asleep(&host).await;
    tokio::time::sleep(Duration::from_millis(3_000)).await;
    assert_eq!(fired_at(&ledger, "a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_owned_only_a_timer_wakes_on_time_after_a_restart() {
    let ledger = Ledger::memory();
    let first = host(&ledger);
    create(&first, "a").await;
    set_timer(&first, "a", 3_600_000).await;
    all_asleep(&first).await;
    first.shutdown(Duration::from_secs(1), "test").await;
    // The machine was off for half an hour; the timer is due half an hour from now.
    let second = host_at(&ledger, noon().plus_ms(1_800_000));
    tokio::time::sleep(Duration::from_secs(1_700)).await;
    assert_eq!(second.awake(), 0);
    assert!(fired_at(&ledger, "a").is_empty());
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(fired_at(&ledger, "a").len(), 1);
    // And one that came due while nothing ran fires at once.
    set_timer(&second, "a", 60_000).await;
    all_asleep(&second).await;
    second.shutdown(Duration::from_secs(1), "test").await;
    let third = host_at(&ledger, noon().plus_ms(7_200_000));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fired_at(&ledger, "a").len(), 2);
    drop(third);
}

/// Posts race with agents that are just falling asleep; none may fall between.
#[tokio::test(start_paused = true)]
async fn no_post_is_lost_to_an_agent_that_is_falling_asleep() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    for round in 0..300u64 {
        // Around the moment at which it has rested long enough.
        tokio::time::sleep(Duration::from_millis(950 + round % 100)).await;
        say(&host, "a", &format!("message {round}")).await.unwrap();
    }
    all_asleep(&host).await;
    let expected: Vec<String> = (0..300).map(|round| format!("message {round}")).collect();
    assert_eq!(briefs(&ledger, "a"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_is_woken_at_the_same_moment_and_each_fires_once() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    for number in 0..200 {
        let name = format!("a{number}");
        create(&host, &name).await;
        let at = noon().plus_ms(3_600_000);
        let act = RecordCall::CreateTimer {
            summary: "all together".to_owned(),
            when: When::At(at),
            catch_up: CatchUp::Latest,
            work_item_id: None,
            check: None,
        };
        host.ask(&id(&name), Input::Act { by: "ann".to_owned(), act }).await.unwrap();
    }
    all_asleep(&host).await;
    tokio::time::sleep(Duration::from_secs(3_700)).await;
    all_asleep(&host).await;
    for number in 0..200 {
        assert_eq!(fired_at(&ledger, &format!("a{number}")).len(), 1, "a{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_forward_makes_what_lies_between_due_within_seconds() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    set_timer(&host, "a", 3_600_000).await;
    all_asleep(&host).await;
    host.clock().set_by_ms(5 * 3_600_000);
    tokio::time::sleep(Duration::from_secs(11)).await;
    all_asleep(&host).await;
    assert_eq!(fired_at(&ledger, "a"), ["2026-03-01T13:00:00.000Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_back_fires_nothing_early_and_nothing_twice() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    set_timer(&host, "a", 1_800_000).await;
    set_timer(&host, "a", 3_600_000).await;
    tokio::time::sleep(Duration::from_secs(1_900)).await;
    all_asleep(&host).await;
    let first = "2026-03-01T12:30:00.000Z";
    assert_eq!(fired_at(&ledger, "a"), [first]);
    // Half past twelve comes once more.
    host.clock().set_by_ms(-1_800_000);
    tokio::time::sleep(Duration::from_secs(3_400)).await;
    all_asleep(&host).await;
    assert_eq!(fired_at(&ledger, "a"), [first]);
    tokio::time::sleep(Duration::from_secs(150)).await;
    all_asleep(&host).await;
    assert_eq!(fired_at(&ledger, "a"), [first, "2026-03-01T13:00:00.000Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_nobody_can_run_wakes_the_agent_and_says_so() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let act = RecordCall::CreateTimer {
        summary: "mail".to_owned(),
        when: When::AfterMs(1_000),
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: Some("test -s inbox".to_owned()),
    };
    host.ask(&id("a"), Input::Act { by: "ann".to_owned(), act }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    all_asleep(&host).await;
    let why = "Its check could not be done, so look yourself: it was being run, and nothing here does that";
    let turn = facts(&ledger, "a").into_iter().find_map(|fact| match fact {
        Fact::TurnTerminal(turn) => turn.last_assistant_message,
        _ => None,
    });
    assert_eq!(turn.as_deref(), Some(format!("mail\n\n{why}").as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_told_of_every_move() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let mut heads = host.follow(&id("a"));
    say(&host, "a", "hello").await.unwrap();
    heads.moved().await;
    all_asleep(&host).await;
    say(&host, "a", "hello").await.unwrap();
    heads.moved().await;
}
