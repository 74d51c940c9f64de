//! The cost of a decision and of a fact when much is open against when little is: instructions, counted by callgrind,
//! so that the figures are steady on a busy machine. The bench runs itself under valgrind, once per size.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a bench reads its arguments, starts a process and prints"
)]

#[path = "kernel/conversation.rs"]
mod conversation;

use std::process::Command;

use abide_kernel::config::{Config, Identity};
use abide_kernel::fact::TaskCreated;
use abide_kernel::id::{AgentId, Fresh, TaskId, WorkItemId};
use abide_kernel::input::{Answer, Input, NewMessage, Reply};
use abide_kernel::scheduler::decide::decide_idle;
use abide_kernel::scheduler::projection::SchedulerProjection;
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary::{CatchUp, MessageKind, TaskKind, WaitKind, WaitPolicy};
use abide_kernel::{AgentState, Fact, admit, carry_out, decide};

const SMALL: usize = 1_000;
const LARGE: usize = 100_000;
const DECISIONS: u64 = 200;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [flag, what, size] = args.as_slice()
        && flag == "--measure"
    {
        let operations = measure(what, size.parse().unwrap());
        println!("operations {operations}");
        return;
    }
    let open = (SMALL, LARGE, "open records");
    let talked = (conversation::SMALL, conversation::LARGE, "records");
    for (name, what, (small, large, of), goal) in [
        ("kernel.decide", "decide", open, "<= 1.2"),
        ("kernel.apply", "apply", open, "<= 1.5"),
        ("prompt.build", "prompt", talked, "<= 1.5"),
    ] {
        if args.is_empty() || args.iter().any(|wanted| name.starts_with(wanted.as_str())) {
            let (baseline, value) = (counted(what, small), counted(what, large));
            let ratio = value / baseline;
            println!(
                r#"{{"name":"{name}","value":{value:.0},"unit":"instructions with {large} {of}","baseline":{baseline:.0},"ratio":{ratio:.3},"goal":"{goal}"}}"#
            );
        }
    }
}

/// Instructions per operation, as callgrind counts them inside the measured functions only.
fn counted(what: &str, size: usize) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_*"])
        .arg(std::env::current_exe().unwrap())
        .args(["--measure", what, &size.to_string()])
        .output()
        .expect("valgrind is needed to count instructions: apt-get install valgrind");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let number = |text: &str, word: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.contains(word))?;
        line.split_whitespace().last()?.replace(',', "").parse().ok()
    };
    let (collected, operations) = (number(&stderr, "Collected"), number(&stdout, "operations"));
    match (collected, operations) {
        (Some(collected), Some(operations)) => collected / operations,
        _ => panic!("callgrind gave no figure:\n{stdout}\n{stderr}"),
    }
}

fn measure(what: &str, size: usize) -> u64 {
    if what == "prompt" {
        return conversation::measure(size);
    }
    let mut state = open_records(size);
    match what {
        "decide" => {
            let now = state.at;
            // With a message at the head of the queue, and with the queue left aside.
            for _ in 0..DECISIONS {
                std::hint::black_box(measured_decide(&state, now));
                std::hint::black_box(measured_decide_idle(&state, now));
            }
            DECISIONS * 2
        }
        _ => {
            let facts = a_day(&mut state.clone());
            let count = facts.len() as u64;
            measured_apply(&mut state, &facts);
            count
        }
    }
}

#[inline(never)]
fn measured_decide(state: &AgentState, now: Time) -> abide_kernel::Decision {
    decide(state, now)
}

#[inline(never)]
fn measured_decide_idle(state: &AgentState, now: Time) -> abide_kernel::Decision {
    decide_idle(&SchedulerProjection::of(state, now))
}

#[inline(never)]
fn measured_apply(state: &mut AgentState, facts: &[(Time, Fact)]) {
    for (at, fact) in facts {
        state.apply(*at, fact).unwrap();
    }
}

struct World<'a> {
    state: &'a mut AgentState,
    now: Time,
    draws: u64,
    facts: Vec<(Time, Fact)>,
    answer: Answer,
}

impl World<'_> {
    fn ask(&mut self, input: Input) {
        self.draws += 1;
        let mut fresh = Fresh::new(self.now, self.draws);
        let admitted = admit(self.state, input, self.now, &mut fresh).unwrap();
        self.facts.extend(admitted.facts.into_iter().map(|fact| (self.now, fact)));
        self.answer = admitted.answer;
    }

    fn act(&mut self, act: RecordCall) {
        self.ask(Input::Act { by: "bench".to_owned(), act });
    }

    /// The item that the last act made.
    fn item(&self) -> WorkItemId {
        let Answer::Acted(made) = &self.answer else { panic!("{:?} made no item", self.answer) };
        WorkItemId::new(made["work_item_id"].as_str().unwrap())
    }

    fn decide(&mut self) {
        self.draws += 1;
        let mut fresh = Fresh::new(self.now, self.draws);
        let decision = decide(self.state, self.now);
        let (facts, _) = carry_out(self.state, &decision, self.now, &mut fresh);
        self.facts.extend(facts.into_iter().map(|fact| (self.now, fact)));
    }
}

/// A state with that many open records, of all kinds alike: messages, items, timers, tasks, waits.
fn open_records(size: usize) -> AgentState {
    let id = AgentId::new("bench").unwrap();
    let mut state = AgentState::empty(id.clone());
    let now = Time::from_ms(1_800_000_000_000);
    let mut world = World { state: &mut state, now, draws: 0, facts: Vec::new(), answer: Answer::Done };
    world.ask(Input::Create { identity: Identity::named(id), config: Config::default(), start: true });
    let each = size / 5;
    for n in 0..each {
        world.act(RecordCall::CreateWorkItem {
            objective: format!("item {n}"),
            plan: None,
            plan_status: None,
            todo: Vec::new(),
            budget: None,
        });
        let item = world.item();
        world.act(RecordCall::CreateTimer {
            summary: format!("timer {n}"),
            when: When::AfterMs(1_000_000 + n as u64),
            catch_up: CatchUp::Latest,
            work_item_id: None,
            check: None,
        });
        world.ask(Input::CreateTask(task(&format!("task_{n}"))));
        world.act(RecordCall::WaitFor {
            wake: WaitKind::External,
            resource: Some(format!("corr_{n}")),
            after_ms: None,
            work_item_id: (n % 2 == 0).then_some(item),
            reason: "waiting".to_owned(),
        });
        world.facts.clear();
    }
    // The queue has its own bound; as much of the rest as fits goes there.
    for n in 0..each.min(abide_kernel::limits::QUEUE_MAX - 100) {
        world.ask(Input::Queue(NewMessage { text: Some(format!("message {n}")), ..NewMessage::default() }));
        world.facts.clear();
    }
    state
}

fn task(id: &str) -> TaskCreated {
    TaskCreated {
        task_id: TaskId::new(id),
        task_kind: TaskKind::ChildAgent,
        wait_policy: WaitPolicy::Background,
        summary: "a child".to_owned(),
        command: None,
        workdir: None,
        tty: false,
        accepts_input: false,
        work_item_id: None,
        child_agent_id: None,
        child: None,
        recovery: None,
        exec_id: None,
        call_id: None,
    }
}

/// Twenty messages taken, answered and done with, an event, and a few records made and ended: the facts of it.
fn a_day(state: &mut AgentState) -> Vec<(Time, Fact)> {
    let now = state.at;
    let mut world = World { state, now, draws: 1 << 32, facts: Vec::new(), answer: Answer::Done };
    for n in 0..20 {
        let kind = if n % 4 == 0 { MessageKind::WebhookEvent } else { MessageKind::OperatorPrompt };
        let text = Some(format!("work {n}"));
        world.ask(Input::Queue(NewMessage { kind: Some(kind), text, ..NewMessage::default() }));
        world.decide();
        if let Some(turn) = world.state.turns.current.clone() {
            let reply = Reply { text: "Done.".to_owned(), ..Reply::default() };
            world.ask(Input::FinishRound { exec_id: turn.exec_id, round: 1, reply });
        }
        world.act(RecordCall::CreateWorkItem {
            objective: format!("more {n}"),
            plan: None,
            plan_status: None,
            todo: Vec::new(),
            budget: None,
        });
        let item = world.item();
        world.act(RecordCall::PickWorkItem { work_item_id: item.clone() });
        world.act(RecordCall::CompleteWorkItem { work_item_id: item, report: "done".to_owned() });
    }
    world.facts
}
