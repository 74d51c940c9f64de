//! Stories: one agent, told line by line, driven from input to rest as the engine's core drives it.
//!
//! A line is an input (`operator hello`, `round WaitFor external c1`, `advance 30s`) or a question (`decide`,
//! `closure`). What comes out is one line per fact that says something, with ids as short names (`m1`, `w1`, `wait1`)
//! and times as spans since the beginning. Every fact goes through its encoding into a second state, all invariants are
//! checked on the way, and both states must agree at the end of every step.

mod names;
mod outcomes;
mod query;
mod show;
mod speak;

use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, ModelCall, TurnEffect};
use abide_kernel::id::{AgentId, Fresh};
use abide_kernel::input::{Answer, BootContext, Input, Refusal};
use abide_kernel::invariants::{self, Change};
use abide_kernel::pack::pack;
use abide_kernel::read_rows::{AGENT_PLANE, rows_of};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::Disposition;
use abide_kernel::{AgentState, Fact, admit, carry_out, decide};

use names::Names;

/// Steps after one input before we say that it goes in circles.
const REST_WITHIN: usize = 200;

#[derive(Debug)]
pub struct Story {
    pub state: AgentState,
    pub now: Time,
    pub facts: Vec<(Time, Fact)>,
    replayed: AgentState,
    /// The status that a list of agents shows.
    listed_status: Option<serde_json::Value>,
    /// The rows of messages and briefs.
    outcomes: outcomes::Outcomes,
    draws: u64,
    calls: u32,
    names: Names,
    /// The facts of the last line begin here.
    told_from: usize,
    effects: Vec<Effect>,
    /// The answer to the last act.
    acted: Option<serde_json::Value>,
    out: Vec<String>,
}

/// Tells the story and compares what came out. Lines before a `---` set the stage and are not compared.
#[track_caller]
pub fn check(story: &str, expected: &str) {
    let told = tell(story);
    let expected = lines(expected);
    if told != expected {
        panic!("the story came out otherwise:\n{}", diff(&expected, &told));
    }
}

/// The outcome of a story.
#[track_caller]
pub fn tell(story: &str) -> Vec<String> {
    let mut agent = Story::begin();
    for line in lines(story) {
        if line == "---" {
            agent.out.clear();
        } else if let Err(problem) = agent.tell(&line) {
            panic!("`{line}` does not read: {problem}");
        }
    }
    agent.out
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Both texts, with what is common marked by a blank and what differs by `-` (expected) and `+` (came out).
fn diff(expected: &[String], told: &[String]) -> String {
    let same = expected.iter().zip(told).take_while(|(a, b)| a == b).count();
    let rest = (expected.len() - same).min(told.len() - same);
    let tail = expected.iter().rev().zip(told.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let common = |line: &String| format!("  {line}\n");
    let mut text: String = told[..same].iter().map(common).collect();
    text.extend(expected[same..expected.len() - tail].iter().map(|line| format!("- {line}\n")));
    text.extend(told[same..told.len() - tail].iter().map(|line| format!("+ {line}\n")));
    text.extend(told[told.len() - tail..].iter().map(common));
    text
}

impl Story {
    /// An agent that was created and has come to rest.
    pub fn begin() -> Story {
        let id = AgentId::new("a").unwrap();
        let mut story = Story {
            state: AgentState::empty(id.clone()),
            now: Time::EPOCH.plus_ms(names::BEGIN_MS),
            facts: Vec::new(),
            replayed: AgentState::empty(id.clone()),
            listed_status: None,
            outcomes: outcomes::Outcomes::default(),
            draws: 0,
            calls: 0,
            names: Names::default(),
            told_from: 0,
            effects: Vec::new(),
            acted: None,
            out: Vec::new(),
        };
        story.input(Input::Create { identity: Identity::named(id), config: Config::default(), start: true });
        story.out.clear();
        story
    }

    /// The short name of an id.
    pub fn short(&self, id: &str) -> String {
        self.names.short(id)
    }

    /// Tells one line. An error means that the line makes no sense here, and that nothing happened. `again 3 a | b` tells
    /// `a` and `b` three times.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        if let Some((count, told)) = line.strip_prefix("again ").and_then(|rest| rest.split_once(' ')) {
            let count: usize = count.parse().map_err(|_| format!("{count}?"))?;
            let lines: Vec<&str> = told.split(" | ").collect();
            return std::iter::repeat_n(lines, count).flatten().try_for_each(|line| self.tell(line));
        }
        if let Some(answer) = query::ask(self, line)? {
            self.out.extend(answer.lines().map(|line| self.names.short(line)));
            return Ok(());
        }
        self.told_from = self.facts.len();
        self.effects.clear();
        speak::speak(self, line)
    }

    /// The call to a model that is under way.
    pub fn model_call(&self) -> &ModelCall {
        for effect in self.effects.iter().rev() {
            if let Effect::Turn(TurnEffect::CallModel { call, .. }) = effect {
                return call;
            }
        }
        panic!("no model is called")
    }

    /// Drives the agent as the engine's core does, from what is asked of it until it rests.
    fn drive(&mut self, input: Option<Input>) {
        let mut asked = input;
        for _ in 0..REST_WITHIN {
            if !self.step(asked.take()) {
                return;
            }
        }
        panic!("no rest after {REST_WITHIN} steps:\n{}", self.out.join("\n"));
    }

    pub fn input(&mut self, input: Input) {
        // A new instant for each input, so that ids sort by when they were made.
        self.now = self.now.plus_ms(1);
        self.drive(Some(input));
    }

    /// One commit: what was asked and what has come due, else what is decided.
    fn step(&mut self, asked: Option<Input>) -> bool {
        let mut fresh = self.fresh();
        let (mut facts, mut effects, mut answer) = (Vec::new(), Vec::new(), None);
        if self.state.seq > 0
            && self.state.clock_was_set_back(self.now)
            && let Ok(followed) = admit(&mut self.state, Input::FollowClock, self.now, &mut fresh)
        {
            facts.extend(followed.facts);
            effects.extend(followed.effects);
        }
        if let Some(input) = asked {
            match admit(&mut self.state, input, self.now, &mut fresh) {
                Ok(admitted) => {
                    facts.extend(admitted.facts);
                    effects.extend(admitted.effects);
                    answer = Some(Ok(admitted.answer));
                }
                Err(refusal) => answer = Some(Err(refusal)),
            }
        }
        let due = self.state.lifecycle.is_runnable() && self.state.next_due().is_some_and(|due| due <= self.now);
        if due && let Ok(fired) = admit(&mut self.state, Input::FireDue, self.now, &mut fresh) {
            facts.extend(fired.facts);
            effects.extend(fired.effects);
        }
        if facts.is_empty() {
            let decision = decide(&self.state, self.now);
            assert_eq!(decision, decide(&self.state, self.now), "the same state decides otherwise");
            (facts, effects) = carry_out(&mut self.state, &decision, self.now, &mut fresh);
        }
        let goes_on = !facts.is_empty();
        self.commit(facts, effects);
        self.answered(answer);
        goes_on
    }

    fn fresh(&mut self) -> Fresh {
        self.draws += 1;
        Fresh::new(self.now, self.draws)
    }

    /// Takes facts as a ledger would: as bytes, one after another, the invariants checked at each.
    fn commit(&mut self, facts: Vec<Fact>, effects: Vec<Effect>) {
        let last = facts.len().saturating_sub(1);
        for (index, fact) in facts.into_iter().enumerate() {
            let bytes = fact.encode();
            let read = Fact::decode(fact.kind(), &bytes).unwrap();
            assert_eq!(read, fact, "a fact reads back otherwise");
            let before = self.replayed.clone();
            self.replayed.apply(self.now, &read).unwrap();
            for row in rows_of(self.replayed.seq, self.now, &read) {
                let status = row.patch.get("status").filter(|_| row.plane == AGENT_PLANE);
                self.listed_status = status.cloned().or(self.listed_status.take());
                self.outcomes.merge(&row, self.now);
            }
            let change = Change { before: &before, fact: &read, after: &self.replayed };
            let violations = invariants::check_invariants(change, index == last);
            assert!(violations.is_empty(), "after {read:?}: {violations:?}");
            self.names.learn(std::str::from_utf8(&bytes).unwrap());
            if let Some(line) = show::show(&fact) {
                self.out.push(self.names.short(&line));
            }
            self.facts.push((self.now, fact));
        }
        assert_eq!(self.replayed, self.state, "the facts fold to another state");
        let listed = self.listed_status.as_ref().and_then(serde_json::Value::as_str);
        assert_eq!(
            listed,
            Some(self.state.status().as_str()),
            "a list shows another status, after {:?}",
            self.facts.last()
        );
        self.outcomes.check(&self.state, self.now);
        self.effects.extend(effects);
    }

    fn answered(&mut self, answer: Option<Result<Answer, Refusal>>) {
        let line = match answer {
            Some(Ok(Answer::Unchanged)) => "unchanged".to_owned(),
            Some(Ok(Answer::Woken { disposition: Disposition::Parked, reason })) => {
                self.names.short(&format!("answered parked: {reason}"))
            }
            Some(Ok(Answer::Acted(acted))) => {
                self.acted = Some(acted.0);
                return;
            }
            None | Some(Ok(Answer::Done | Answer::Queued { .. } | Answer::Woken { .. })) => return,
            Some(Err(refusal)) => format!("refused {}", refusal.code),
        };
        self.out.push(line);
    }

    /// Goes on from a snapshot.
    fn reload(&mut self) {
        let snapshot = self.state.snapshot();
        let read = AgentState::from_snapshot(&snapshot).unwrap();
        assert_eq!(read, self.state, "the snapshot reads back as another state");
        let packed = AgentState::from_snapshot(&pack(&snapshot).unwrap()).unwrap();
        assert_eq!(packed, self.state, "packed, it reads back as another state");
        self.state = read;
    }

    /// The process ends here: what is left are the bytes of the facts.
    fn crash(&mut self) {
        let mut state = AgentState::empty(self.state.id().clone());
        for (at, fact) in &self.facts {
            let stored = pack(&fact.encode()).unwrap();
            state.apply(*at, &Fact::decode(fact.kind(), &stored).unwrap()).unwrap();
        }
        assert_eq!(state, self.state, "the ledger folds to another state");
        self.state = state;
        self.input(Input::Boot { context: BootContext::default() });
    }
}
