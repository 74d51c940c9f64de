//! A panic outside of the guarded part of an agent's loop, for example in logging when a line can't be written. The agent
//! has to be read again, as after any other crash, and the timers of all agents have to go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use abide_kernel::input::Input;
use abide_ledger::{Commit, Ledger, NewFact, StreamId, Wake};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::asleep::set_timer;
use crate::world::{all_asleep, briefs, create, host, id, kinds, noon, say};

/// Logging of a line with these words panics.
struct Panics {
    at: &'static str,
    panicked: Arc<AtomicUsize>,
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Panics {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        if message.0.contains(self.at) {
            self.panicked.fetch_add(1, Ordering::SeqCst);
            panic!("a log that can't be written");
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Until the guard is dropped, on this thread.
fn panic_at(at: &'static str) -> (tracing::subscriber::DefaultGuard, Arc<AtomicUsize>) {
    let panicked = Arc::new(AtomicUsize::new(0));
    (tracing::subscriber::set_default(Panics { at, panicked: Arc::clone(&panicked) }), panicked)
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_read_again_when_telling_of_its_crash_panics() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    let (panics, panicked) = panic_at("the loop of a stream crashed");
    say(&host, "a", "crash the loop").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(panicked.load(Ordering::SeqCst) > 0);
    drop(panics);
    // It is there, whatever became of the message: it can be started, and takes the next one.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let _started = host.ask(&id("a"), Input::Start).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    assert!(briefs(&ledger, "a").contains(&"hello".to_owned()), "{:?}", briefs(&ledger, "a"));
}

/// The alarm clock is one task for all agents.
#[tokio::test(start_paused = true)]
async fn timers_go_on_after_the_alarm_clock_panicked() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    // A stream that is of no kind has no business in the wake index, and the log is told.
    let fact = NewFact::new("token.created", b"{}".to_vec());
    ledger.commit(Commit::append(StreamId::home(), 0, noon(), vec![fact])).wait().unwrap();
    let wake = Wake { due: Some(noon().plus_ms(60_000)), why: "by mistake".to_owned() };
    let wakes = vec![(StreamId::home(), Some(wake))];
    ledger.commit(Commit { wakes, ..Commit::default() }).wait().unwrap();
    set_timer(&host, "a", 120_000).await;
    all_asleep(&host).await;
    let (panics, panicked) = panic_at("names a stream that nothing here runs");
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert!(panicked.load(Ordering::SeqCst) > 0);
    drop(panics);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(kinds(&ledger, "a").contains(&"timer.fired"), "{:?}", kinds(&ledger, "a"));
}
