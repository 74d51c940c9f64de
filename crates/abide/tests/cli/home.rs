//! A home with agents in it, made by the same core that runs live ones: canned replies, fixed times, fixed ids.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use abide_engine::fork::fork;
use abide_engine::{Core, Request};
use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::effect::{Effect, TurnEffect};
use abide_kernel::fact::{TaskCreated, TaskEnd};
use abide_kernel::id::{AgentId, CallId, ExecId, TaskId};
use abide_kernel::input::{Input, NewMessage, Reply};
use abide_kernel::time::Time;
use abide_kernel::tool::{Call, Command, ExecCommand, ExecutorCall, RecordCall, ToolCall, When, WorkItemChange};
use abide_kernel::vocabulary::{
    ApprovalDefault, CatchUp, DeliveryMode, MessageKind, PlanStatus, TaskKind, TaskStatus, ToolStatus, WaitKind,
    WaitPolicy,
};
use abide_ledger::{Ledger, Options};
use serde_json::json;

use crate::place::Place;

/// Where `forked` leaves the past of `planner`.
pub const FORKED_AT: u64 = 10;

/// The files of a seeded home, and the state each agent was in when its process ended.
pub struct Seeded {
    files: Vec<(PathBuf, Vec<u8>)>,
    pub agents: BTreeMap<AgentId, AgentState>,
    /// How many facts the ledger has. More than a thousand, so that this shows where numbers are written for people.
    pub facts: u64,
}

impl Seeded {
    /// The seq of an agent's last fact.
    pub fn seq(&self, name: &str) -> u64 {
        self.agents[name].seq
    }

    pub fn facts_for_people(&self) -> String {
        assert!((1_000..1_000_000).contains(&self.facts), "{}", self.facts);
        format!("{},{:03}", self.facts / 1_000, self.facts % 1_000)
    }

    /// Writes the home out. Every test gets its own.
    pub fn write_to(&self, home: &Path) {
        for (path, bytes) in &self.files {
            let path = home.join(path);
            fs::create_dir_all(path.parent().expect("inside the home")).expect("a writable folder");
            fs::write(path, bytes).expect("a writable folder");
        }
    }
}

impl Place {
    pub fn seeded() -> Place {
        let place = Place::empty();
        seeded().write_to(&place.home());
        place
    }
}

/// Made once, because every commit is synced to disk.
pub fn seeded() -> &'static Seeded {
    static SEEDED: OnceLock<Seeded> = OnceLock::new();
    SEEDED.get_or_init(|| {
        let home = tempfile::tempdir().expect("a temporary folder");
        let agents = seed(home.path());
        let facts = agents.values().map(|state| state.seq).sum::<u64>() - FORKED_AT;
        let mut files = Vec::new();
        collect(home.path(), home.path(), &mut files);
        Seeded { files, agents, facts }
    })
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("inside the home").to_owned();
            files.push((name, fs::read(&path).expect("a file")));
        }
    }
}

pub fn id(name: &str) -> AgentId {
    AgentId::new(name).expect("an agent's name")
}

/// Fills a home, and returns what its agents were at the end.
pub fn seed(home: &Path) -> BTreeMap<AgentId, AgentState> {
    let ledger = Ledger::open(home, Options::default().by(abide_engine::PROGRAM)).expect("a new home");
    let mut world = World { ledger, now: Time::from_ms(1_700_000_000_000), entropy: 7, agents: BTreeMap::new() };
    world.idle();
    world.builder();
    world.planner();
    world.clock();
    world.stopped();
    world.busy();
    world.chatty();
    let mut states =
        world.agents.iter().map(|(id, core)| (id.clone(), core.state().clone())).collect::<BTreeMap<_, _>>();
    let forked = fork(&world.ledger, &id("planner"), FORKED_AT, &id("forked"), world.now, 99, None).expect("a fork");
    states.insert(id("forked"), forked);
    states
}

struct World {
    ledger: Ledger,
    now: Time,
    entropy: u64,
    agents: BTreeMap<AgentId, Core>,
}

impl World {
    /// Nothing to do any more: one message, answered.
    fn idle(&mut self) {
        self.create("idle");
        let effects = self.say("idle", "Good morning.");
        self.reply("idle", &effects, "Good morning to you.", vec![]);
    }

    /// Waits for a build, with one message parked behind it and a large one in its past.
    fn builder(&mut self) {
        self.create("builder");
        let effects = self.say("builder", &format!("Build this: {}", "source ".repeat(2_000)));
        let command = ToolCall::Executor(ExecutorCall::ExecCommand(ExecCommand {
            command: Command { command: "make".to_owned(), ..Command::default() },
            yield_time_ms: 0,
            start_new: false,
            max_output_bytes: 0,
        }));
        let effects = self.reply("builder", &effects, "Building.", vec![call("call_build", "ExecCommand", command)]);
        let exec_id = exec_of(&effects);
        let task_id = TaskId::new("task_build");
        self.ask(
            "builder",
            Input::CreateTask(TaskCreated {
                task_id: task_id.clone(),
                task_kind: TaskKind::Command,
                wait_policy: WaitPolicy::Background,
                summary: "the build".to_owned(),
                command: Some("make".to_owned()),
                workdir: None,
                tty: false,
                accepts_input: false,
                work_item_id: None,
                child_agent_id: None,
                child: None,
                recovery: None,
                exec_id: Some(exec_id.clone()),
                call_id: Some(CallId::new("call_build")),
            }),
        );
        self.ask("builder", Input::RunTask { task_id: task_id.clone(), recovery: None });
        let result = json!({ "task_id": task_id });
        let status = ToolStatus::Completed;
        let finish = Input::FinishTool {
            exec_id,
            call_id: CallId::new("call_build"),
            status,
            result: result.into(),
            reads: None,
        };
        let effects = self.ask("builder", finish);
        let wait = RecordCall::WaitFor {
            wake: WaitKind::Task,
            resource: Some(task_id.to_string()),
            after_ms: None,
            work_item_id: None,
            reason: "the build".to_owned(),
        };
        self.reply("builder", &effects, "I wait.", vec![call("call_wait", "WaitFor", ToolCall::Record(wait))]);
        let kind = Some(MessageKind::ChannelEvent);
        let text = Some("Somebody said hello in the channel.".to_owned());
        self.ask("builder", Input::Queue(NewMessage { kind, text, ..NewMessage::default() }));
    }

    /// Work items in several states, a question and a trigger.
    fn planner(&mut self) {
        self.create("planner");
        for (objective, plan_status) in [("write the report", None), ("choose a name", Some(PlanStatus::NeedsInput))] {
            let (plan, todo) = (None, Vec::new());
            self.act(
                "planner",
                RecordCall::CreateWorkItem { objective: objective.to_owned(), plan, plan_status, todo, budget: None },
            );
        }
        let items = self.core("planner").state().planes.work.items().values();
        let ids: BTreeMap<String, _> = items.map(|item| (item.objective.clone(), item.work_item_id.clone())).collect();
        let report = ids["write the report"].clone();
        let change = WorkItemChange {
            blocked_by: Some(Some("the figures of last week".to_owned())),
            recheck_after_ms: Some(3_600_000),
            ..WorkItemChange::default()
        };
        self.act("planner", RecordCall::UpdateWorkItem { work_item_id: report, change: Box::new(change) });
        let (plan, plan_status, todo) = (None, None, Vec::new());
        self.act(
            "planner",
            RecordCall::CreateWorkItem { objective: "tidy up".to_owned(), plan, plan_status, todo, budget: None },
        );
        let tidy = self.core("planner").state().planes.work.items().values().find(|item| item.objective == "tidy up");
        let tidy = tidy.expect("it was created").work_item_id.clone();
        self.act("planner", RecordCall::CompleteWorkItem { work_item_id: tidy, report: "It is tidy.".to_owned() });
        let delivery_mode = DeliveryMode::EnqueueMessage;
        self.act(
            "planner",
            RecordCall::CreateTrigger {
                name: "figures".to_owned(),
                delivery_mode,
                work_item_id: None,
                signed: false,
                address: None,
            },
        );
        let summary = "May I send it?".to_owned();
        let default = ApprovalDefault::Deny;
        self.act(
            "planner",
            RecordCall::RequestApproval { summary, tool: None, deadline_ms: Some(86_400_000), default },
        );
    }

    /// Two timers, one of which has fired.
    fn clock(&mut self) {
        self.create("clock");
        for (summary, when) in [("every hour", When::EveryMs(3_600_000)), ("once", When::AfterMs(86_400_000))] {
            let (summary, catch_up) = (summary.to_owned(), CatchUp::Latest);
            self.act("clock", RecordCall::CreateTimer { summary, when, catch_up, work_item_id: None, check: None });
        }
        self.now = self.now.plus_ms(3_600_000);
        let effects = self.ask("clock", Input::FireDue);
        self.reply("clock", &effects, "The hour has struck.", vec![]);
    }

    /// Stopped, with a message that nobody has read and a task that was ended.
    fn stopped(&mut self) {
        self.create("stopped");
        let task_id = TaskId::new("task_old");
        let created = TaskCreated {
            task_id: task_id.clone(),
            task_kind: TaskKind::Command,
            wait_policy: WaitPolicy::Background,
            summary: "an old build".to_owned(),
            command: Some("make old".to_owned()),
            workdir: None,
            tty: false,
            accepts_input: false,
            work_item_id: None,
            child_agent_id: None,
            child: None,
            recovery: None,
            exec_id: None,
            call_id: None,
        };
        self.ask("stopped", Input::CreateTask(created));
        self.ask("stopped", Input::RunTask { task_id: task_id.clone(), recovery: None });
        self.ask("stopped", Input::Stop);
        let end = TaskEnd { task_id, signal: Some(15), ..TaskEnd::default() };
        self.ask("stopped", Input::EndTask { status: TaskStatus::Cancelled, end });
        self.say("stopped", "Are you there?");
    }

    /// In the middle of a turn, with a hint beside it.
    fn busy(&mut self) {
        self.create("busy");
        self.say("busy", "Think about it.");
        let (reason, source) = ("look".to_owned(), Some("a file".to_owned()));
        self.ask("busy", Input::Wake { reason, source, resource: None, body: Some("it changed".to_owned()) });
    }

    /// Enough facts for a snapshot and for several marks.
    fn chatty(&mut self) {
        self.create("chatty");
        for number in 0..80 {
            let effects = self.say("chatty", &format!("Number {number}."));
            self.reply("chatty", &effects, &format!("I heard {number}."), vec![]);
        }
    }

    fn create(&mut self, name: &str) {
        self.agents.insert(id(name), Core::new(id(name)));
        let (identity, config) = (Identity::named(id(name)), Config::default());
        self.ask(name, Input::Create { identity, config, start: true });
    }

    fn core(&self, name: &str) -> &Core {
        &self.agents[name]
    }

    fn say(&mut self, name: &str, text: &str) -> Vec<Effect> {
        self.ask(name, Input::Queue(NewMessage { text: Some(text.to_owned()), ..NewMessage::default() }))
    }

    /// A person changes the agent's records; whatever turn follows from it says one thing and ends.
    fn act(&mut self, name: &str, act: RecordCall) {
        let mut effects = self.ask(name, Input::Act { by: "operator".to_owned(), act });
        while effects.iter().any(|effect| matches!(effect, Effect::Turn(TurnEffect::CallModel { .. }))) {
            effects = self.reply(name, &effects, "Noted.", vec![]);
        }
    }

    /// The model answers the call that is among these effects.
    fn reply(&mut self, name: &str, effects: &[Effect], text: &str, calls: Vec<Call>) -> Vec<Effect> {
        let called = effects.iter().find_map(|effect| match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, .. }) => Some((exec_id.clone(), *round)),
            _ => None,
        });
        let (exec_id, round) = called.unwrap_or_else(|| panic!("{name} does not call its model: {effects:?}"));
        let reply = Reply { text: text.to_owned(), calls, ..Reply::default() };
        self.ask(name, Input::FinishRound { exec_id, round, reply })
    }

    /// Hands an input in and lets the agent run until it rests.
    fn ask(&mut self, name: &str, input: Input) -> Vec<Effect> {
        self.now = self.now.plus_ms(1_000);
        let core = self.agents.get_mut(name).expect("it was created");
        core.ask(Request::new(1, input));
        let mut effects = Vec::new();
        loop {
            self.entropy += 1;
            let commit = core.poll(self.now, self.entropy);
            let rests = commit.is_none();
            if let Some(commit) = commit {
                self.ledger.commit(commit).wait().expect("a commit");
                core.committed();
            }
            let outputs = core.take_outputs();
            for (_, answer) in outputs.answers {
                answer.unwrap_or_else(|refusal| panic!("{name} refused: {refusal}"));
            }
            effects.extend(outputs.effects);
            if rests {
                return effects;
            }
        }
    }
}

fn call(call_id: &str, tool: &str, parsed: ToolCall) -> Call {
    Call { call_id: CallId::new(call_id), tool: tool.to_owned(), input: json!({}).into(), parsed }
}

fn exec_of(effects: &[Effect]) -> ExecId {
    let started = effects.iter().find_map(|effect| match effect {
        Effect::Turn(TurnEffect::RunTool { exec_id, .. }) => Some(exec_id.clone()),
        _ => None,
    });
    started.unwrap_or_else(|| panic!("no tool was started: {effects:?}"))
}
