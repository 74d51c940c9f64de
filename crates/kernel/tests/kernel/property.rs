//! Random stories. What must hold at every step (a fold of the encoded facts is the live state, the invariants hold,
//! deciding is a function and comes to rest) the story itself asserts; here it is only told what happens.
//!
//! A failing story is printed as text, shortened: it can be told again line by line in any other test.
//! `PROPTEST_CASES` and `PROPTEST_RNG_SEED` look further.

use std::collections::BTreeSet;

use abide_kernel::explain::why;
use abide_kernel::fixture::{self, Fixture, History};
use abide_kernel::vocabulary::Standing;
use abide_kernel::wake::{Wake, compute_wake};
use abide_kernel::{AgentState, Fact, decide};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use crate::story::Story;

/// Lines and how often each is said. Names may be of things that are not there; then the line is passed over.
fn line() -> impl Strategy<Value = String> {
    let item = || prop::sample::select(vec!["w1", "w2", "w3"]);
    let wait = || prop::sample::select(vec!["wait1", "wait2", "wait3", "wait4", "wait5"]);
    let task = || prop::sample::select(vec!["t1", "t2", "t3"]);
    let span = || prop::sample::select(vec!["1s", "30s", "1m", "10m", "2h"]);
    let said = |lines: &'static [&'static str]| prop::sample::select(lines).prop_map(str::to_owned);
    prop_oneof![
        8 => said(&["round done", "round done", "round tree=aaa done", "round tree=bbb done", "round tokens=40 done"]),
        6 => act(item().boxed(), wait().boxed(), task().boxed(), span().boxed()).prop_map(|act| format!("round {act}")),
        2 => act(item().boxed(), wait().boxed(), task().boxed(), span().boxed()).prop_map(|act| format!("person {act}")),
        2 => said(&["round Tool make", "round Tool make ; Sleep", "tool call1", "tool call2", "tool call3"]),
        4 => said(&["operator hi", "operator priority=next hi", "interject wait", "interject more"]),
        3 => said(&["event news", "event corr=c1 news", "event corr=c2 news", "event", "event item=w1 news"]),
        2 => said(&["message task_status x", "message internal_followup x", "message system_tick x", "event trigger=trig1 x"]),
        2 => said(&["wake source=s", "wake source=s news", "wake resource=c1", "wake resource=wait1"]),
        4 => (task(), prop::sample::select(vec!["", "item=w1", "child=kid item=w1", "child=kid grant_turns=1",
                "runs", "ends", "ends failed", "ends used_turns=1"]))
            .prop_map(|(task, rest)| format!("task {task} {rest}").trim().to_owned()),
        3 => span().prop_map(|span| format!("advance {span}")),
        3 => said(&["checked timer1 0 news", "checked timer1 1", "checked timer1 lost", "checked timer2 0", "checked timer2 1"]),
        3 => said(&["crash", "crash", "reload", "boot"]),
        2 => said(&["stop", "start", "start", "abort", "shutdown", "quarantine bad"]),
        2 => said(&["fail rate_limited after=30s", "fail overloaded", "fail auth", "models a b c", "models a", "overflow", "checkpoint", "compact"]),
        1 => said(&["budget turns=3", "budget tokens=50", "budget daily_turns=2", "budget wall=1h daily_wall=1m", "budget turns=1000", "error disk", "occupy ws", "release ws"]),
    ]
}

fn act(
    item: BoxedStrategy<&'static str>,
    wait: BoxedStrategy<&'static str>,
    task: BoxedStrategy<&'static str>,
    span: BoxedStrategy<&'static str>,
) -> impl Strategy<Value = String> {
    let said = |lines: &'static [&'static str]| prop::sample::select(lines).prop_map(str::to_owned);
    prop_oneof![
        3 => said(&["CreateWorkItem build", "CreateWorkItem status=needs_input ask", "CreateWorkItem max_turns=1 build"]),
        2 => item.clone().prop_map(|item| format!("PickWorkItem {item}")),
        3 => (item.clone(), prop::sample::select(vec![
                "plan=a", "plan=b", "todo=x", "status=needs_input", "status=ready", "blocked=rain",
                "blocked=rain recheck=1m", "unblocked", "max_turns=2", "max_tokens=30", "max=none",
            ]))
            .prop_map(|(item, change)| format!("UpdateWorkItem {item} {change}")),
        1 => item.clone().prop_map(|item| format!("CompleteWorkItem {item}")),
        4 => (prop::sample::select(vec![
                "operator", "external", "external c1", "external c2", "external trig1", "task", "task t1", "timer",
                "timer timer1", "timer after=1m",
            ]), prop::option::of(item))
            .prop_map(|(what, item)| format!("WaitFor {what}{}", item.map(|i| format!(" item={i}")).unwrap_or_default())),
        2 => wait.prop_map(|wait| format!("CancelWait {wait}")),
        2 => span.prop_map(|span| format!("Sleep {span}")),
        2 => said(&["CreateTimer every=1m tea", "CreateTimer every=30s catch_up=all tea",
            "CreateTimer every=1m catch_up=none tea", "CreateTimer after=10m item=w1 tea", "CancelTimer timer1",
            "CreateTimer cron=*/2_*_*_*_* check=c tea", "CreateTimer every=1m catch_up=all check=c tea",
            "CreateTimer after=1m check=c tea"]),
        1 => said(&["CreateTrigger hook", "CreateTrigger mode=wake_hint hook", "RevokeTrigger trig1"]),
        1 => said(&["RequestApproval deploy", "RequestApproval deadline=1m deploy", "DecideApproval appr1 grant"]),
        2 => said(&["Ask push", "Ask deadline=1m default=grant push", "Ask deadline=1m pull", "DecideApproval appr2 grant"]),
        2 => task.prop_map(|task| format!("ShowTask {task}")),
        1 => Just("ListWorkItems all".to_owned()),
        1 => said(&["StopTask t1", "StopTask t2", "NotifyOperator look"]),
    ]
}

/// The state that is read from a fixture of a state.
fn exported(story: &Story) -> Fixture {
    let mut history = History::default();
    for (seq, (at, fact)) in (1..).zip(&story.facts) {
        history.add(seq, *at, fact);
    }
    fixture::load(&fixture::files(&story.state, story.now, history)).unwrap()
}

/// A state as it is written down. An export has the time of looking instead of that of the last fact, and leaves out
/// the number of the next place in the queue, which only counts on, and what a brief was about.
fn records(state: &AgentState) -> Value {
    let mut records: Value = serde_json::from_slice(&state.snapshot()).unwrap();
    records["queue"]["next_place"] = Value::Null;
    records["briefs"] = Value::Null;
    records["at"] = Value::Null;
    records
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 64;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(7);
    }
    config
}

fn told(lines: &[String]) -> Story {
    let mut story = Story::begin();
    for line in lines {
        // A line that makes no sense here is not said.
        let _passed_over = story.tell(line);
    }
    story
}

/// The keys under which ticks were offered, in the order of their facts.
fn keys(story: &Story) -> Vec<String> {
    let queued = story.facts.iter().filter_map(|(_, fact)| {
        let Fact::MessageQueued(queued) = fact else { return None };
        queued.message.idempotency_key().map(str::to_owned).filter(|_| queued.message.tick().is_some())
    });
    queued.collect()
}

/// Whether there is work that nothing holds back, and an agent that could do it.
fn must_wake(state: &AgentState) -> bool {
    let paid_for = state.spent_limit().is_none();
    let owner = state.lifecycle.is_runnable() && state.turns.current.is_none() && paid_for;
    owner && (state.planes.work.count(Standing::Runnable) > 0 || state.planes.queue.queued() > 0)
}

proptest! {
    #![proptest_config(config())]

    /// Ledger, live state and snapshot agree, and the agent always comes to rest.
    #[test]
    fn any_story_can_be_told(lines in prop::collection::vec(line(), 1..60)) {
        let story = told(&lines);
        let read = AgentState::from_snapshot(&story.state.snapshot()).unwrap();
        prop_assert_eq!(&read, &story.state);
        prop_assert_eq!(decide(&read, story.now), decide(&story.state, story.now));
    }

    #[test]
    fn an_export_loads_as_the_same_agent(lines in prop::collection::vec(line(), 1..60)) {
        let story = told(&lines);
        let loaded = exported(&story);
        let original = Fixture { state: story.state.clone(), now: story.now, other_events: loaded.other_events.clone() };
        prop_assert!(loaded.other_events.is_empty());
        prop_assert_eq!(loaded.projection(), original.projection());
        let explained = |state: &AgentState, now| why(state, decide(state, now));
        prop_assert_eq!(explained(&loaded.state, loaded.now), explained(&story.state, story.now));
        prop_assert_eq!(loaded.now, story.now);
        prop_assert_eq!(records(&loaded.state), records(&story.state));
    }

    #[test]
    fn no_key_is_ever_used_twice(lines in prop::collection::vec(line(), 1..60)) {
        let keys = keys(&told(&lines));
        let unique: BTreeSet<&String> = keys.iter().collect();
        prop_assert_eq!(unique.len(), keys.len(), "{:?}", keys);
    }

    #[test]
    fn work_that_could_be_done_has_a_next_wake(lines in prop::collection::vec(line(), 1..60)) {
        let story = told(&lines);
        prop_assert!(!must_wake(&story.state) || compute_wake(&story.state) != Wake::Never);
    }
}
