//! Agents that go wrong, and the others that must not notice.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use abide_engine::{AskError, Clock, Host, Perform};
use abide_kernel::input::Input;
use abide_ledger::{Commit, Ledger, NewFact, Options, StreamId};

use crate::world::{Mind, all_asleep, briefs, create, host, id, kinds, noon, say};

#[tokio::test(start_paused = true)]
async fn a_model_call_that_crashes_ends_its_turn_visibly() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    say(&host, "a", "crash the call").await.unwrap();
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    let told = briefs(&ledger, "a");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("crashed"), "{told:?}");
    assert_eq!(told[1], "hello");
}

/// The loop itself dies under a message: three times it is taken up again, then it becomes a question.
#[tokio::test(start_paused = true)]
async fn a_message_that_crashes_its_agent_is_given_up_and_the_others_run() {
    let ledger = Ledger::memory();
    let host = host(&ledger);
    create(&host, "a").await;
    create(&host, "b").await;
    say(&host, "a", "crash the loop").await.unwrap();
    say(&host, "b", "hello").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(briefs(&ledger, "b"), ["hello"]);
    // The component that gives up records it: the runtime by quarantine, or the kernel by a question.
    let gave_up = kinds(&ledger, "a").contains(&"agent.quarantined")
        || briefs(&ledger, "a").iter().any(|text| text.contains("given up"));
    assert!(gave_up, "{:?} {:?}", kinds(&ledger, "a"), briefs(&ledger, "a"));
    let agent = id("a");
    let why = host.inspect(&agent, |state, now| abide_kernel::explain::why(state, abide_kernel::decide(state, now)));
    let why = why.await.unwrap().unwrap();
    assert!(why.sentence.contains("quarantined") || why.sentence.contains("given up"), "{}", why.sentence);
    // A person can go on with it.
    if kinds(&ledger, "a").contains(&"agent.quarantined") {
        host.ask(&id("a"), Input::Start).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    assert!(briefs(&ledger, "a").contains(&"hello".to_owned()), "{:?}", briefs(&ledger, "a"));
}

/// A commit that is refused cuts nothing off: what runs for the agent goes on, and is not taken for a leftover.
#[tokio::test(start_paused = true)]
async fn a_refused_commit_ends_nothing_that_runs() {
    let ledger = Ledger::memory();
    let mind = Arc::new(Mind::default());
    let perform: Arc<dyn Perform> = Arc::clone(&mind) as _;
    let host = Host::start(ledger.clone(), perform, Clock::simulated(noon(), 7)).unwrap();
    create(&host, "a").await;
    let looked = mind.looked.load(Ordering::SeqCst);
    // Somebody else writes to its stream, so its next commit finds the head elsewhere.
    let stream = StreamId::agent(&id("a"));
    let head = ledger.head(&stream).unwrap().unwrap().seq;
    let fact = NewFact::new("runtime.error", br#"{"error":"from outside"}"#.to_vec());
    ledger.commit(Commit::append(stream, head, noon(), vec![fact])).wait().unwrap();
    assert!(matches!(say(&host, "a", "hello").await, Err(AskError::Store(_))));
    say(&host, "a", "hello").await.unwrap();
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a"), ["hello"]);
    assert_eq!(mind.looked.load(Ordering::SeqCst), looked, "only an agent that begins anew has something left over");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_records_do_not_read_is_left_alone_and_says_so() {
    let ledger = Ledger::memory();
    let bad = StreamId::agent(&id("a"));
    let facts = vec![NewFact::new("message.dequeued", br#"{"message_id":"m"}"#.to_vec())];
    ledger.commit(Commit::append(bad, 0, noon(), facts)).wait().unwrap();
    let host = host(&ledger);
    create(&host, "b").await;
    for _ in 0..2 {
        let error = say(&host, "a", "hello").await.unwrap_err();
        assert!(matches!(error, AskError::Damaged(_)), "{error:?}");
    }
    assert!(matches!(host.inspect(&id("a"), |_, _| ()).await, Err(AskError::Damaged(_))));
    // `start` tries it again.
    assert!(matches!(host.ask(&id("a"), Input::Start).await, Err(AskError::Damaged(_))));
    say(&host, "b", "hello").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(briefs(&ledger, "b"), ["hello"]);
}

/// Notes, in the moment in which a caller is answered, whether the agent is marked as quarantined.
struct MarkedWhenAnswered {
    host: Host,
    marked: Mutex<Vec<bool>>,
    caller: Waker,
}

impl Wake for MarkedWhenAnswered {
    fn wake(self: Arc<Self>) {
        self.marked.lock().unwrap().push(self.host.is_quarantined(&id("a")));
        self.caller.wake_by_ref();
    }
}

/// A caller that hears of the damage and asks for the list of agents next must not be shown the agent as it was before.
#[tokio::test(start_paused = true)]
async fn an_agent_is_marked_as_quarantined_before_a_caller_is_told() {
    let ledger = Ledger::memory();
    let facts = vec![NewFact::new("message.dequeued", br#"{"message_id":"m"}"#.to_vec())];
    ledger.commit(Commit::append(StreamId::agent(&id("a")), 0, noon(), facts)).wait().unwrap();
    let host = host(&ledger);
    let agent = id("a");
    let mut asked = Box::pin(host.ask(&agent, Input::Start));
    let mut seen = None;
    let answer = poll_fn(|context| {
        let watch = seen.get_or_insert_with(|| {
            let caller = context.waker().clone();
            Arc::new(MarkedWhenAnswered { host: host.clone(), marked: Mutex::default(), caller })
        });
        let waker = Waker::from(Arc::clone(watch));
        asked.as_mut().poll(&mut Context::from_waker(&waker))
    });
    assert!(matches!(answer.await, Err(AskError::Damaged(_))));
    assert_eq!(*seen.unwrap().marked.lock().unwrap(), [true]);
}

const CHECKS: usize = 8;

/// Out of descriptors, for one: nothing is damaged, and the agent is read as soon as it can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_can_not_be_read_for_a_while_leaves_nobody_alone() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(home.path(), Options::default()).unwrap();
    let host = Host::start(ledger.clone(), Arc::new(Mind::default()), Clock::System).unwrap();
    create(&host, "a").await;
    say(&host, "a", "before").await.unwrap();
    all_asleep(&host).await;
    // Checks that are under way have more connections than the ledger keeps: the next reader has to open another.
    let gate = Arc::new(Barrier::new(CHECKS + 1));
    let check = |_| {
        let (ledger, gate) = (ledger.clone(), Arc::clone(&gate));
        thread::spawn(move || {
            let mut waited = false;
            ledger.verify(&|_, _| Vec::new(), &mut |_| {
                if !std::mem::replace(&mut waited, true) {
                    gate.wait();
                    gate.wait();
                }
            })
        })
    };
    let checks: Vec<_> = (0..CHECKS).map(check).collect();
    gate.wait();
    let (database, away) = (home.path().join("ledger.db"), home.path().join("away.db"));
    std::fs::rename(&database, &away).unwrap();
    let error = host.inspect(&id("a"), |_, _| ()).await.unwrap_err();
    assert!(matches!(&error, AskError::Store(why) if why.contains("ledger.db")), "{error:?}");
    for _ in 0..2 {
        let error = say(&host, "a", "meanwhile").await.unwrap_err();
        assert!(matches!(error, AskError::Store(_)), "{error:?}");
    }
    std::fs::rename(&away, &database).unwrap();
    say(&host, "a", "after").await.unwrap();
    gate.wait();
    checks.into_iter().for_each(|check| drop(check.join().unwrap()));
    all_asleep(&host).await;
    assert_eq!(briefs(&ledger, "a"), ["before", "after"]);
}
