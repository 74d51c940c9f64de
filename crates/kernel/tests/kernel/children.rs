//! Supervised children, from either side: what is refused, what is asked again after a cut, and how a child ends.
#![allow(clippy::wildcard_enum_match_arm, reason = "of facts and effects, a test looks at one kind")]

use abide_kernel::budget::{Budget, Limits, Usage, Used};
use abide_kernel::config::{Choice, Config, ConfigChange, Identity, Supervisor};
use abide_kernel::effect::{ChildEffect, Effect};
use abide_kernel::explain::why;
use abide_kernel::fact::{Fact, WorkspaceAttached, Worktree};
use abide_kernel::id::{AgentId, CallId, Fresh, TaskId};
use abide_kernel::input::{Answer, BootContext, CreateChild, Input, NewMessage, Refusal, Reply};
use abide_kernel::provider::NO_JITTER;
use abide_kernel::read_rows::{founder_of_row, rows_of};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::rule_folder::RuleFolder;
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::time::Time;
use abide_kernel::tool::{Call, RecordCall, ToolCall};
use abide_kernel::vocabulary::{
    ChildWorkspace, DecisionKind, HoldCause, Ownership, PlanStatus, ProviderError, TaskStatus, WaitKind, WorkspaceMode,
};
use abide_kernel::wake::{CHILDREN_CHANGING, HELD, Wake, compute_wake};
use abide_kernel::{AgentState, admit, carry_out, decide, limits};
use serde_json::Value;

use crate::story::check;

/// An agent alone, whose effects are looked at instead of performed.
struct Lone {
    state: AgentState,
    asked: u64,
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

impl Lone {
    fn unborn(id: &str) -> Lone {
        let state = AgentState::empty(AgentId::new(id).unwrap());
        Lone { state, asked: 0, facts: Vec::new(), effects: Vec::new() }
    }

    fn operated(id: &str) -> Lone {
        let mut lone = Lone::unborn(id);
        let (identity, config) = (Identity::named(lone.state.id().clone()), Config::default());
        lone.ask(Input::Create { identity, config, start: true }).unwrap();
        lone
    }

    /// A child so far below the top, with its first message.
    fn child(depth: u32) -> Lone {
        Lone::child_with(depth, Budget::default())
    }

    fn child_with(depth: u32, budget: Budget) -> Lone {
        let mut lone = Lone::unborn("lead.1");
        let lead = AgentId::new("lead").unwrap();
        let (agent_id, task_id, top) = (lead.clone(), TaskId::new("task_1"), lead.clone());
        let supervisor = Some(Supervisor { agent_id, task_id, top, depth });
        let ownership = Ownership::ParentSupervised;
        let identity =
            Identity { parent: Some(lead), ownership, supervisor, ..Identity::named(lone.state.id().clone()) };
        let first = CreateChild {
            identity,
            config: Config { budget, ..Config::default() },
            message: "do it".to_owned(),
            workspace: None,
        };
        lone.ask(Input::CreateChild(Box::new(first))).unwrap();
        lone
    }

    fn fresh(&mut self) -> (Time, Fresh) {
        self.asked += 1;
        let now = Time::from_ms(1_800_000_000_000 + i64::try_from(self.asked).unwrap());
        (now, Fresh::new(now, self.asked << 32))
    }

    /// Admits it, and carries out what follows until there is nothing to decide.
    fn ask(&mut self, input: Input) -> Result<Answer, Refusal> {
        let (now, mut fresh) = self.fresh();
        let admitted = admit(&mut self.state, input, now, &mut fresh)?;
        self.facts.extend(admitted.facts);
        self.effects.extend(admitted.effects);
        loop {
            let (now, mut fresh) = self.fresh();
            let decision = decide(&self.state, now);
            let (facts, effects) = carry_out(&mut self.state, &decision, now, &mut fresh);
            self.effects.extend(effects);
            if facts.is_empty() {
                return Ok(admitted.answer);
            }
            self.facts.extend(facts);
        }
    }

    fn said(&mut self, text: &str, acts: Vec<RecordCall>) -> Vec<Value> {
        let turn = self.state.turns.current.clone().expect("a turn runs");
        let call = |act| {
            self.asked += 1;
            let call_id = CallId::new(format!("call_{}", self.asked));
            // No two of them are the same call.
            Call {
                call_id,
                tool: "Tool".to_owned(),
                input: Value::from(self.asked).into(),
                parsed: ToolCall::Record(act),
            }
        };
        let calls: Vec<Call> = acts.into_iter().map(call).collect();
        let from = self.facts.len();
        let reply = Reply { text: text.to_owned(), calls, ..Reply::default() };
        self.ask(Input::FinishRound { exec_id: turn.exec_id, round: turn.round, reply }).unwrap();
        let results = self.facts[from..].iter().filter_map(|fact| match fact {
            Fact::ToolFinished(finished) => Some(finished.result.0.clone()),
            _ => None,
        });
        results.collect()
    }

    fn boot(&mut self) -> Vec<Effect> {
        self.effects.clear();
        self.ask(Input::Boot { context: BootContext::default() }).unwrap();
        self.effects.clone()
    }

    fn start_turn(&mut self) {
        self.ask(Input::Queue(NewMessage { text: Some("go".to_owned()), ..NewMessage::default() })).unwrap();
    }
}

fn spawn() -> RecordCall {
    RecordCall::SpawnChild {
        message: "do it".to_owned(),
        workspace_mode: ChildWorkspace::Inherit,
        model: None,
        instructions: None,
        work_item_id: None,
    }
}

fn task_of(result: &Value) -> TaskId {
    TaskId::new(result["task_handle"]["task_id"].as_str().unwrap())
}

#[test]
fn children_are_bounded_in_number_and_in_depth() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let acts = vec![spawn(); limits::CHILDREN_MAX + 1];
    let results = lead.said("", acts);
    let names: Vec<&Value> = results.iter().map(|result| &result["agent_id"]).collect();
    assert_eq!((names[0], names[limits::CHILDREN_MAX - 1]), (&"lead.1".into(), &"lead.32".into()));
    assert_eq!(results[limits::CHILDREN_MAX]["error"]["code"], "too_many_children");
    // One that is over makes room, and its name is not given again.
    let end = abide_kernel::fact::TaskEnd { task_id: task_of(&results[0]), ..Default::default() };
    lead.ask(Input::EndTask { status: TaskStatus::Completed, end }).unwrap();
    assert_eq!(lead.said("", vec![spawn()])[0]["agent_id"], "lead.33");

    let mut deep = Lone::child(limits::CHILD_DEPTH_MAX);
    assert_eq!(deep.said("", vec![spawn()])[0]["error"]["code"], "too_deep");
    let mut above = Lone::child(limits::CHILD_DEPTH_MAX - 1);
    let made = above.said("", vec![spawn()]);
    assert_eq!(made[0]["agent_id"], "lead.1.1");
    let spawned = above.effects.iter().find_map(|effect| match effect {
        Effect::Child(ChildEffect::Spawn { child, .. }) => child.identity.supervisor.clone(),
        _ => None,
    });
    let spawned = spawned.expect("a child is made");
    assert_eq!((spawned.depth, spawned.top.as_str()), (limits::CHILD_DEPTH_MAX, "lead"));
}

#[test]
fn what_was_under_way_about_children_is_asked_again_after_a_cut() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let made = lead.said("", vec![spawn(), spawn(), spawn()]);
    lead.said("Done.", Vec::new());
    let (queued, running, ending) = (task_of(&made[0]), task_of(&made[1]), task_of(&made[2]));
    lead.ask(Input::RunTask { task_id: running, recovery: None }).unwrap();
    lead.ask(Input::RunTask { task_id: ending.clone(), recovery: None }).unwrap();
    lead.ask(Input::Act { by: "anna".to_owned(), act: RecordCall::StopTask { task_id: ending.clone() } }).unwrap();
    assert_eq!(compute_wake(&lead.state), Wake::AtOnce { why: CHILDREN_CHANGING });
    for _ in 0..2 {
        let again = lead.boot();
        assert!(
            matches!(&again[..], [Effect::Child(ChildEffect::Spawn { task_id: made, .. }), Effect::Child(ChildEffect::Dismiss { task_id: gone, .. })]
            if *made == queued && *gone == ending),
            "{again:?}"
        );
    }
}

#[test]
fn a_child_with_nothing_left_to_do_reports_until_it_is_heard_and_is_gone() {
    let mut child = Lone::child(1);
    child.said("It is built.", Vec::new());
    let report = |effects: &[Effect]| match effects {
        [.., Effect::Child(ChildEffect::ReportToSupervisor { supervisor, status, end })] => {
            Some((supervisor.to_string(), *status, end.task_id.clone(), end.output_tail.clone()))
        }
        _ => None,
    };
    let said = ("lead".to_owned(), TaskStatus::Completed, TaskId::new("task_1"), "It is built.".to_owned());
    assert_eq!(report(&child.effects), Some(said.clone()));
    assert_eq!(compute_wake(&child.state), Wake::AtOnce { why: "leaving" });
    assert_eq!(report(&child.boot()), Some(said));
    // Nothing brings it back in between.
    assert_eq!(child.ask(Input::Start).unwrap_err().code, ErrorCode::Leaving);
    child.ask(Input::SupervisorHeard).unwrap();
    assert!(child.state.lifecycle.archived);
    assert_eq!(compute_wake(&child.state), Wake::Never);
}

/// Who asks about the parent learns whom to ask next; and nobody is told to write to a child.
#[test]
fn why_names_the_child_and_who_speaks_to_it() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let made = lead.said("", vec![spawn()]);
    let wait = RecordCall::WaitFor {
        wake: WaitKind::Task,
        resource: Some(task_of(&made[0]).to_string()),
        after_ms: None,
        work_item_id: None,
        reason: "the child".to_owned(),
    };
    lead.said("", vec![wait]);
    let (now, _) = lead.fresh();
    let sentence = why(&lead.state, decide(&lead.state, now)).sentence;
    assert!(sentence.starts_with("lead sleeps until the child lead.1 (do it) ends; it was started at "), "{sentence}");
    assert!(sentence.ends_with(", and `abide why lead.1` says what it does."), "{sentence}");
    let child = Lone::child(1);
    let wakes = why(&child.state, decide(&child.state, now)).would_wake;
    assert_eq!(wakes, ["a message from lead"]);
}

#[test]
fn a_child_that_waits_for_something_is_not_done() {
    let mut child = Lone::child(1);
    let wait = RecordCall::WaitFor {
        wake: WaitKind::Timer,
        resource: None,
        after_ms: Some(60_000),
        work_item_id: None,
        reason: "a while".to_owned(),
    };
    child.said("Later.", vec![wait]);
    assert_eq!(child.state.decision().unwrap().kind, DecisionKind::WaitForTimer);
    assert!(child.state.is_working_child());
    child.ask(Input::Dismiss { evidence: vec!["stop".to_owned()] }).unwrap();
    let leaving = child.state.lifecycle.leaving.as_ref().unwrap();
    assert_eq!((leaving.status, leaving.reporting), (TaskStatus::Cancelled, true));
}

#[test]
fn a_child_that_only_a_person_could_help_fails_and_says_so() {
    let mut child = Lone::child(1);
    let wait = RecordCall::WaitFor {
        wake: WaitKind::Operator,
        resource: None,
        after_ms: None,
        work_item_id: None,
        reason: "which one?".to_owned(),
    };
    assert_eq!(child.said("", vec![wait])[0]["error"]["code"], "nothing_would_end_it");
    let item = RecordCall::CreateWorkItem {
        objective: "choose".to_owned(),
        plan: None,
        plan_status: Some(PlanStatus::NeedsInput),
        todo: Vec::new(),
        budget: None,
    };
    child.said("", vec![item]);
    child.said("I can't choose.", Vec::new());
    let leaving = child.state.lifecycle.leaving.as_ref().expect("it leaves");
    assert_eq!(leaving.status, TaskStatus::Failed);
    assert!(leaving.text.contains("work_item_needs_input") && leaving.text.contains("I can't choose."), "{leaving:?}");
}

#[test]
fn operators_do_not_speak_to_a_child_and_their_stop_ends_it() {
    let mut child = Lone::child(1);
    let message = NewMessage { text: Some("hello".to_owned()), ..NewMessage::default() };
    assert_eq!(child.ask(Input::Queue(message)).unwrap_err().code, ErrorCode::Supervised);
    child.ask(Input::Stop).unwrap();
    assert_eq!(child.state.lifecycle.leaving.as_ref().unwrap().evidence, ["stopped_by_operator"]);
    assert_eq!(child.ask(Input::Stop).unwrap(), Answer::Unchanged);
}

#[test]
fn a_fork_of_a_child_is_nobodys_child() {
    let mut child = Lone::child(1);
    let (agent_id, parent) = (AgentId::new("copy").unwrap(), child.state.id().clone());
    let (now, mut fresh) = child.fresh();
    let at_seq = child.state.seq;
    admit(&mut child.state, Input::Fork { agent_id, parent, at_seq }, now, &mut fresh).unwrap();
    assert_eq!(
        (&child.state.definition.identity.supervisor, child.state.definition.identity.ownership),
        (&None, Ownership::SelfOwned)
    );
}

/// An agent that may take so many turns, and takes the first of them.
fn limited(turns: u64) -> Lone {
    let mut lone = Lone::operated("lead");
    let budget = Some(Budget { max_turns: Some(turns), max_tokens: Some(100), ..Budget::default() });
    let change = Box::new(ConfigChange { budget, ..ConfigChange::default() });
    lone.ask(Input::Configure { change }).unwrap();
    lone.start_turn();
    lone
}

fn grants(lone: &Lone) -> Vec<Limits> {
    let made = lone.effects.iter().filter_map(|effect| match effect {
        Effect::Child(ChildEffect::Spawn { child, .. }) => Some(child.config.budget.in_all()),
        _ => None,
    });
    made.collect()
}

#[test]
fn a_child_is_granted_half_of_what_is_neither_used_nor_granted() {
    let mut lead = limited(10);
    lead.said("", vec![spawn(), spawn(), spawn(), spawn()]);
    // One turn runs: of 9 left 4, of 5 left 2, of 3 left 1, of 2 left 1.
    let turns: Vec<_> = grants(&lead).iter().map(|grant| grant.max_turns).collect();
    assert_eq!(turns, [Some(4), Some(2), Some(1), Some(1)]);
    let tokens: Vec<_> = grants(&lead).iter().map(|grant| grant.max_tokens).collect();
    assert_eq!(tokens, [Some(50), Some(25), Some(12), Some(6)]);
    assert!(grants(&lead).iter().all(|grant| grant.max_micro_usd.is_none() && grant.max_wall_ms.is_none()));
    // One turn is left, and it is the supervisor's own.
    assert_eq!(lead.said("", vec![spawn()])[0]["error"]["code"], "budget_too_small");
    // Asked again after a cut, it is granted the same.
    let again = lead.boot();
    assert!(
        again.iter().any(|effect| matches!(effect, Effect::Child(ChildEffect::Spawn { child, .. })
        if child.config.budget.max_turns == Some(4))),
        "{again:?}"
    );

    let mut free = Lone::operated("free");
    free.start_turn();
    free.said("", vec![spawn()]);
    assert_eq!(grants(&free), [Limits::default()]);
}

#[test]
fn a_child_is_granted_no_more_than_its_supervisor_has_left_today() {
    let mut lead = Lone::operated("lead");
    let daily = Limits { max_turns: Some(5), ..Limits::default() };
    let budget = Some(Budget { max_turns: Some(100), daily, ..Budget::default() });
    lead.ask(Input::Configure { change: Box::new(ConfigChange { budget, ..ConfigChange::default() }) }).unwrap();
    lead.start_turn();
    lead.said("", vec![spawn()]);
    assert_eq!(grants(&lead)[0].max_turns, Some(2));
}

#[test]
fn a_child_reports_what_it_used_with_its_children() {
    let grant = Budget { max_turns: Some(4), ..Budget::default() };
    let mut child = Lone::child_with(1, grant);
    let made = child.said("", vec![spawn()]);
    let used = Some(Used { turns: 1, usage: Usage { input_tokens: 7, ..Usage::default() }, wall_ms: 5 });
    let end = abide_kernel::fact::TaskEnd { task_id: task_of(&made[0]), used, ..Default::default() };
    child.ask(Input::EndTask { status: TaskStatus::Completed, end }).unwrap();
    // Its first turn, and the one that reads the result.
    child.said("Half of it.", Vec::new());
    child.said("All of it.", Vec::new());
    let leaving = child.state.lifecycle.leaving.as_ref().expect("it leaves");
    assert_eq!(leaving.status, TaskStatus::Completed);
    let end = child.effects.iter().find_map(|effect| match effect {
        Effect::Child(ChildEffect::ReportToSupervisor { end, .. }) => end.used,
        _ => None,
    });
    let end = end.expect("it says what it used");
    assert_eq!((end.turns, end.usage.input_tokens), (3, 7));
}

#[test]
fn a_child_that_used_up_its_grant_fails_and_says_so() {
    let mut short = Lone::child_with(1, Budget { max_turns: Some(1), ..Budget::default() });
    let item = RecordCall::CreateWorkItem {
        objective: "more".to_owned(),
        plan: None,
        plan_status: None,
        todo: Vec::new(),
        budget: None,
    };
    short.said("", vec![item]);
    short.said("That was all.", Vec::new());
    let leaving = short.state.lifecycle.leaving.as_ref().expect("it leaves");
    assert_eq!(leaving.status, TaskStatus::Failed);
    assert_eq!(leaving.text, "It used up what it was granted: 1 of 1 turns. It said last: That was all.");
    assert!(
        short.state.planes.briefs.is_empty(),
        "its supervisor hears of it, not the operator: {:?}",
        short.state.planes.briefs
    );
}

/// A person mends the key or raises the home's budget, and the child goes on: its task did not fail.
#[test]
fn a_child_whose_turns_are_held_keeps_its_task() {
    for (error, cause) in
        [(ProviderError::Auth, HoldCause::ModelKey), (ProviderError::HomeBudgetSpent, HoldCause::HomeBudget)]
    {
        let mut child = Lone::child(1);
        let turn = child.state.turns.current.clone().expect("a turn runs");
        child
            .ask(Input::FailRound {
                exec_id: turn.exec_id,
                round: turn.round,
                error,
                retry_after_ms: None,
                message: "no".to_owned(),
                carry: None,
                jitter: NO_JITTER,
                spent: None,
                announce: true,
            })
            .unwrap();
        assert_eq!((child.state.turns.current.is_none(), &child.state.lifecycle.leaving), (true, &None), "{error}");
        assert!(matches!(compute_wake(&child.state), Wake::At { why: HELD, .. }), "{error}");
        child.ask(Input::ReleaseTurns { cause, evidence: "mended".to_owned() }).unwrap();
        child.said("All of it.", Vec::new());
        let leaving = child.state.lifecycle.leaving.as_ref().expect("it leaves");
        assert_eq!((leaving.status, leaving.text.as_str()), (TaskStatus::Completed, "All of it."), "{error}");
    }
}

#[test]
fn nobody_raises_the_budget_of_a_child() {
    let mut child = Lone::child(1);
    let change = ConfigChange { budget: Some(Budget::default()), ..ConfigChange::default() };
    let refused = child.ask(Input::Configure { change: Box::new(change) }).unwrap_err();
    assert_eq!(refused.code, ErrorCode::GrantedBudget);
    assert!(refused.hint.contains("lead"), "{}", refused.hint);
    let change = ConfigChange { model: Some(Choice::Own("script/echo".to_owned())), ..ConfigChange::default() };
    child.ask(Input::Configure { change: Box::new(change) }).unwrap();
}

/// The makers of an agent by its records, as a policy needs them.
#[test]
fn the_makers_of_an_agent_are_known_whichever_version_made_it() {
    let names =
        |makers: Vec<AgentId>| makers.iter().map(|maker| maker.as_str().to_owned()).collect::<Vec<_>>().join(" ");
    let old = |id: &str, parent: serde_json::Value, supervisor: serde_json::Value| -> Identity {
        let record = serde_json::json!({
            "id": id, "kind": "child", "role": "execution", "visibility": "private", "ownership": "parent_supervised",
            "parent": parent, "supervisor": supervisor,
        });
        serde_json::from_value(record).unwrap()
    };
    let under = |agent: &str, top: &str, depth: u32| serde_json::json!({ "agent_id": agent, "task_id": "task_1", "top": top, "depth": depth });
    let none = serde_json::Value::Null;
    for (identity, expected) in [
        (old("a", none.clone(), none.clone()), ""),
        (old("named", "a.1".into(), none.clone()), "a.1"),
        (old("a.1", "a".into(), under("a", "a", 1)), "a"),
        (old("a.1.2.3", "a.1.2".into(), under("a.1.2", "a", 3)), "a.1.2 a.1 a"),
        (old("v1.2.1", "v1.2".into(), under("v1.2", "v1.2", 1)), "v1.2"),
        (old("v1.2.1.1", "v1.2.1".into(), under("v1.2.1", "v1.2", 2)), "v1.2.1 v1.2"),
        (old("x.1", "clipped".into(), under("clipped", "top", 2)), "clipped top"),
    ] {
        assert_eq!(names(identity.lineage()), expected, "{}", identity.id);
    }
    // An identity that is recorded now names all of them, and a fork keeps them.
    let mut child = Lone::child(1);
    child.state.definition.identity.makers = ["b", "c"].map(|name| AgentId::new(name).unwrap()).to_vec();
    assert_eq!(names(child.state.definition.identity.makers_of_made()), "lead.1 b c");
    let recorded = serde_json::to_value(&child.state.definition.identity).unwrap();
    assert_eq!(serde_json::from_value::<Identity>(recorded).unwrap(), child.state.definition.identity);
    let mut child = Lone::child(1);
    let (agent_id, parent) = (AgentId::new("fork").unwrap(), child.state.id().clone());
    child.ask(Input::Fork { agent_id, parent, at_seq: child.state.seq }).unwrap();
    assert!(child.state.definition.identity.supervisor.is_none());
    assert_eq!(names(child.state.definition.identity.lineage()), "lead");
}

/// A child has no person to ask, so one whose work never ends fails, and says why.
#[test]
fn a_child_that_makes_itself_work_for_ever_fails() {
    let mut child = Lone::child(1);
    let item = || RecordCall::CreateWorkItem {
        objective: "more".to_owned(),
        plan: None,
        plan_status: None,
        todo: Vec::new(),
        budget: None,
    };
    let mut turns = 0;
    while child.state.turns.current.is_some() {
        turns += 1;
        child.said("", vec![item()]);
        child.said("made", Vec::new());
        assert!(turns < 60, "it does not end");
    }
    assert_eq!(turns, 1 + limits::WORK_TICKS_MAX);
    let left = child.facts.iter().find_map(|fact| match fact {
        Fact::ChildLeaving(leaving) => Some((leaving.status, leaving.text.clone())),
        _ => None,
    });
    let text = "It can't go on by itself (work_ticks_spent). It said last: made".to_owned();
    assert_eq!(left, Some((TaskStatus::Failed, text)));
    assert!(!child.facts.iter().any(|fact| matches!(fact, Fact::BriefRecorded(_))), "it has no operator");
}

/// A child works where its maker chose to work, and the rules about paths begin where its maker's do.
#[test]
fn the_folders_that_rules_begin_at_are_those_of_all_makers() {
    let direct = |folder: &str| WorkspaceAttached {
        workspace: folder.to_owned(),
        root: folder.to_owned(),
        mode: WorkspaceMode::Direct,
        worktree: None,
        note: None,
    };
    let worktree = |root: &str, repo: &str| WorkspaceAttached {
        workspace: repo.to_owned(),
        root: root.to_owned(),
        mode: WorkspaceMode::Worktree,
        worktree: Some(Worktree { branch: "b".to_owned(), base_commit: "c".to_owned(), repo: repo.to_owned() }),
        note: None,
    };
    let text = |folders: &[RuleFolder]| {
        let one = |folder: &RuleFolder| match &folder.copy_of {
            Some(original) => format!("{}={original}", folder.folder),
            None => folder.folder.clone(),
        };
        folders.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let made = |bound: &[WorkspaceAttached]| {
        let mut lead = Lone::operated("lead");
        let change = ConfigChange { workspace: Some("/srv".to_owned()), ..ConfigChange::default() };
        lead.ask(Input::Configure { change: Box::new(change) }).unwrap();
        for bound in bound {
            lead.ask(Input::UseWorkspace(bound.clone())).unwrap();
        }
        lead.start_turn();
        lead.said("", vec![spawn()]);
        let mut children = lead.effects.iter().filter_map(|effect| match effect {
            Effect::Child(ChildEffect::Spawn { child, .. }) => Some(child.identity.clone()),
            _ => None,
        });
        children.next().unwrap()
    };
    for (bound, expected) in [
        (vec![], "/srv"),
        (vec![direct("/srv/hidden")], "/srv/hidden /srv"),
        // Folders below others that the child does not work in bind it to nothing.
        (vec![direct("/srv/a"), direct("/srv/b"), direct("/srv/b/c")], "/srv/b /srv/b/c /srv"),
        (vec![direct("/opt"), direct("/srv/a")], "/opt /srv/a /srv"),
        // The files of a worktree are those of its repository.
        (vec![worktree("/w/1", "/srv/repo")], "/srv /srv/repo /w/1=/srv/repo"),
        (vec![worktree("/w/1", "/srv/repo"), direct("/srv/a")], "/srv/a /srv"),
    ] {
        let identity = made(&bound);
        assert_eq!(text(&identity.rule_folders), expected, "{bound:?}");
        // Its own children are bound by them, too.
        let first = CreateChild { identity, config: Config::default(), message: "do it".to_owned(), workspace: None };
        let mut child = Lone::unborn("lead.1");
        child.ask(Input::CreateChild(Box::new(first))).unwrap();
        assert_eq!(text(&ToolPlacement::of(&child.state).rule_folders()), expected, "{bound:?}");
    }
}

/// Children go with a supervisor that is left alone; their tasks end when they have reported, as after a stop.
#[test]
fn a_quarantined_supervisor_dismisses_its_children() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let task_id = task_of(&lead.said("", vec![spawn()])[0]);
    lead.ask(Input::RunTask { task_id: task_id.clone(), recovery: None }).unwrap();
    lead.effects.clear();
    lead.ask(Input::Quarantine { reason: "it crashed".to_owned() }).unwrap();
    let dismissed =
        |effect: &Effect| matches!(effect, Effect::Child(ChildEffect::Dismiss { task_id: of, .. }) if *of == task_id);
    assert!(lead.effects.iter().any(dismissed), "{:?}", lead.effects);
    assert_eq!(compute_wake(&lead.state), Wake::AtOnce { why: CHILDREN_CHANGING });
}

/// A new process reads these agents before anybody is awake, whatever else they are in the index for.
#[test]
fn that_children_are_dismissed_is_the_first_reason_to_be_woken() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let task_id = task_of(&lead.said("", vec![spawn()])[0]);
    lead.ask(Input::RunTask { task_id: task_id.clone(), recovery: None }).unwrap();
    assert_eq!(compute_wake(&lead.state), Wake::AtOnce { why: "turn_running" });
    lead.said("", vec![RecordCall::StopTask { task_id }]);
    assert!(lead.state.turns.current.is_some(), "its turn goes on");
    assert_eq!(compute_wake(&lead.state), Wake::AtOnce { why: CHILDREN_CHANGING });
}

#[test]
fn a_lineage_ends_in_the_founder_and_the_supervisors_end_at_the_top() {
    let names = |ids: Vec<AgentId>| ids.iter().map(AgentId::to_string).collect::<Vec<_>>();
    let id = |name: &str| AgentId::new(name).unwrap();
    let top = Identity::named(id("lead"));
    assert_eq!((top.founder(), names(top.supervisors())), (id("lead"), Vec::new()));
    // Made by a child of lead, and nobody's child itself.
    let makers = vec![id("lead.1"), id("lead")];
    let named = Identity { parent: Some(id("lead.1")), makers, ..Identity::named(id("scout")) };
    assert_eq!((named.founder(), names(named.supervisors())), (id("lead"), Vec::new()));
    let supervisor = Supervisor { agent_id: id("scout.1"), task_id: TaskId::new("task_1"), top: id("scout"), depth: 2 };
    let makers = vec![id("scout.1"), id("scout"), id("lead.1"), id("lead")];
    let below = Identity { supervisor: Some(supervisor.clone()), makers, ..Identity::named(id("scout.1.1")) };
    assert_eq!((below.founder(), names(below.supervisors())), (id("lead"), vec!["scout.1".into(), "scout".into()]));
    // Records of older versions have no list of makers.
    let old =
        Identity { parent: Some(id("scout.1")), supervisor: Some(supervisor), ..Identity::named(id("scout.1.1")) };
    assert_eq!((old.founder(), names(old.supervisors())), (id("scout"), vec!["scout.1".into(), "scout".into()]));
}

#[test]
fn an_agents_row_says_whose_tree_it_is_in() {
    let id = |name: &str| AgentId::new(name).unwrap();
    let child = Lone::child(1);
    let fact = &child.facts[0];
    let row = &rows_of(1, Time::EPOCH, fact)[0].patch;
    assert_eq!(founder_of_row(row), Some((id("lead.1"), id("lead"))));
    let own = Lone::operated("lead");
    assert_eq!(founder_of_row(&rows_of(1, Time::EPOCH, &own.facts[0])[0].patch), Some((id("lead"), id("lead"))));
    assert_eq!(founder_of_row(&Value::Null), None);
}

/// Names of agents end at a bound: the supervisor's gives way, and the number is whole.
#[test]
fn a_childs_name_is_within_the_bound() {
    let name = |length: usize| {
        let mut lead = Lone::operated(&"x".repeat(length));
        lead.start_turn();
        lead.said("", vec![spawn()])[0]["agent_id"].as_str().unwrap().to_owned()
    };
    let bound = limits::AGENT_ID_BYTES;
    for (length, kept) in [(1, 1), (bound - 2, bound - 2), (bound - 1, bound - 2), (bound, bound - 2)] {
        assert_eq!(name(length), format!("{}.1", "x".repeat(kept)), "{length}");
    }
}

#[test]
fn texts_for_a_child_end_at_their_bound() {
    let mut lead = Lone::operated("lead");
    lead.start_turn();
    let text = |more: usize| "x".repeat(limits::TEXT_BYTES + more);
    let with = |message: String, instructions: Option<String>| RecordCall::SpawnChild {
        message,
        workspace_mode: ChildWorkspace::Inherit,
        model: None,
        instructions,
        work_item_id: None,
    };
    let results = lead.said(
        "",
        vec![
            with(text(0), Some(text(0))),
            with(text(1), None),
            with("do it".to_owned(), Some(text(1))),
            with(String::new(), None),
        ],
    );
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &"too_long".into(), &"too_long".into(), &"empty".into()]);
    assert_eq!(lead.state.room_for_children(), limits::CHILDREN_MAX - 1);
}

#[test]
fn there_is_room_for_children_down_to_a_depth() {
    for (depth, expected) in [(1, limits::CHILDREN_MAX), (limits::CHILD_DEPTH_MAX, 0)] {
        assert_eq!(Lone::child(depth).state.room_for_children(), expected, "{depth}");
    }
}

/// The first message of a child comes from its own tree.
#[test]
fn a_childs_first_message_is_trusted_as_its_supervisors() {
    let child = Lone::child(1);
    let message = child.state.planes.queue.entries().next().unwrap().message.clone();
    let shown = serde_json::to_value(&*message).unwrap();
    assert_eq!((&shown["trust"], &shown["kind"]), (&"trusted_integration".into(), &"channel_event".into()));
    assert_eq!(shown["origin"], serde_json::json!({ "kind": "agent", "id": "lead" }));
}

fn worktree(root: &str) -> WorkspaceAttached {
    WorkspaceAttached {
        workspace: "shop".to_owned(),
        root: root.to_owned(),
        mode: WorkspaceMode::Worktree,
        worktree: Some(Worktree {
            branch: format!("abide/{root}"),
            base_commit: "c0ffee".to_owned(),
            repo: "shop".to_owned(),
        }),
        note: None,
    }
}

fn is_reporting(child: &Lone) -> bool {
    child.state.lifecycle.leaving.as_ref().is_some_and(|leaving| leaving.reporting)
}

/// Each of its worktrees is removed first, and its supervisor is told what is left of them.
#[test]
fn a_child_reports_when_all_of_its_worktrees_are_gone() {
    let mut child = Lone::child(1);
    for root in ["one", "two"] {
        child.ask(Input::UseWorkspace(worktree(root))).unwrap();
    }
    child.said("Built.", Vec::new());
    let removing =
        |child: &Lone| child.state.planes.workspaces.attached().values().filter(|bound| bound.removing).count();
    assert_eq!((removing(&child), is_reporting(&child)), (2, false));
    let removed = |root: &str, patch: Option<&str>| Input::FinishRemoval {
        root: root.to_owned(),
        removal: Ok(abide_kernel::input::Removal {
            patch: patch.map(str::to_owned),
            branches: vec![format!("abide/{root}")],
            evidence: Vec::new(),
        }),
    };
    child.ask(removed("one", None)).unwrap();
    assert_eq!((removing(&child), is_reporting(&child)), (1, false));
    child.ask(removed("two", Some("p1"))).unwrap();
    assert!(is_reporting(&child));
    let end = child.state.lifecycle.leaving.as_ref().unwrap().task_end(TaskId::new("task_1"));
    let merge = |root: &str| {
        format!("Its commits are on the branch abide/{root}: git fetch abide, then git merge abide/{root}.")
    };
    let expected =
        ["Built.".to_owned(), merge("one"), merge("two"), "What it did not commit is in the patch p1.".into()];
    assert_eq!(end.output_tail, expected.join("\n"));
    assert_eq!((end.output_bytes, end.truncated), (6, false));
    assert_eq!(end.evidence, ["decision Sleep no_pending_scheduler_facts"]);
}

/// A worktree that could not be removed is an error that is shown, and does not keep the child.
#[test]
fn a_child_reports_although_a_worktree_stays() {
    let mut child = Lone::child(1);
    child.ask(Input::UseWorkspace(worktree("one"))).unwrap();
    child.said("Built.", Vec::new());
    child.ask(Input::FinishRemoval { root: "one".to_owned(), removal: Err("busy".to_owned()) }).unwrap();
    assert!(is_reporting(&child));
}

/// The end of a long report gives way to what became of its worktrees.
#[test]
fn a_long_report_is_cut_to_a_line() {
    let mut child = Lone::child(1);
    let bound = limits::LINE_BYTES;
    child.said(&"x".repeat(bound + 5), Vec::new());
    let leaving = child.state.lifecycle.leaving.clone().unwrap();
    let said = leaving.text.len();
    let end = leaving.task_end(TaskId::new("task_1"));
    assert_eq!((end.output_tail.len(), end.output_bytes, end.truncated), (said.min(bound), said as u64, said > bound));
    for (text, left, tail, truncated) in [
        ("x".repeat(bound), vec![], bound, false),
        ("x".repeat(bound + 1), vec![], bound, true),
        ("x".repeat(bound - 5), vec!["left".to_owned()], bound, false),
        ("x".repeat(bound - 4), vec!["left".to_owned()], bound, true),
        (String::new(), vec!["left".to_owned()], 4, false),
    ] {
        let end =
            abide_kernel::state::child::Departure { text, left, ..leaving.clone() }.task_end(TaskId::new("task_1"));
        assert_eq!((end.output_tail.len(), end.truncated), (tail, truncated));
    }
}

/// A child with a command under way does not leave before that is over.
#[test]
fn a_child_that_is_dismissed_waits_for_its_commands() {
    let mut child = Lone::child(1);
    let task_id = TaskId::new("task_make");
    let command = abide_kernel::tool::Command { command: "make".to_owned(), ..Default::default() };
    let task = abide_kernel::fact::TaskCreated::of_command(task_id.clone(), command);
    child.ask(Input::CreateTask(task)).unwrap();
    child.ask(Input::RunTask { task_id: task_id.clone(), recovery: None }).unwrap();
    child.ask(Input::Dismiss { evidence: Vec::new() }).unwrap();
    assert!(!is_reporting(&child) && child.state.lifecycle.leaving.is_some());
    let end = abide_kernel::fact::TaskEnd { task_id, ..Default::default() };
    child.ask(Input::EndTask { status: TaskStatus::Cancelled, end }).unwrap();
    assert!(is_reporting(&child));
    assert_eq!(child.ask(Input::Dismiss { evidence: Vec::new() }).unwrap(), Answer::Unchanged);
}

/// An agent that another made belongs to the tree of the one at the end of its line.
#[test]
fn the_founder_is_the_last_of_the_makers() {
    let row = serde_json::json!({ "id": "c", "parent": "b", "makers": ["b", "a"] });
    let id = |name: &str| AgentId::new(name).unwrap();
    assert_eq!(founder_of_row(&row), Some((id("c"), id("a"))));
}

#[test]
fn a_child_of_an_agent_with_its_own_model_has_that() {
    check(
        "models a/one
         operator hi
         ---
         round SpawnAgent do it
         facts",
        r#"task1 created
         turn.provider_round_completed {"exec_id":"exec1","round":1,"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_micro_usd":0}}
         turn.assistant_round_recorded {"exec_id":"exec1","round":1,"calls":[{"call_id":"call1","tool":"SpawnAgent","input":{"words":"do it"}}]}
         tool.started {"exec_id":"exec1","call_id":"call1","tool":"SpawnAgent"}
         task.created {"task_id":"task1","task_kind":"child_agent_task","wait_policy":"background","summary":"do it","child_agent_id":"a.1","child":{"message":"do it","workspace_mode":"inherit","model":"a/one"}}
         tool.finished {"exec_id":"exec1","call_id":"call1","tool":"SpawnAgent","status":"completed","result":{"agent_id":"a.1","task_handle":{"task_id":"task1"}}}
         turn.tool_round_completed {"exec_id":"exec1","round":1}
         turn.round_started {"exec_id":"exec1","round":2}"#,
    );
}

#[test]
fn a_child_is_created_once_and_works_where_it_was_told() {
    let mut child = Lone::child(1);
    let identity = child.state.definition.identity.clone();
    let root = "/h/1".to_owned();
    let workspace = WorkspaceAttached {
        workspace: "/w".to_owned(),
        root: root.clone(),
        mode: WorkspaceMode::Direct,
        worktree: None,
        note: None,
    };
    let first = |workspace| CreateChild {
        identity: identity.clone(),
        config: Config::default(),
        message: "do it".to_owned(),
        workspace,
    };
    let refusal = child.ask(Input::CreateChild(Box::new(first(None)))).unwrap_err();
    assert_eq!((refusal.code.word(), refusal.message.as_str()), ("exists", "an agent called lead.1 exists already"));
    let mut bound = Lone::unborn("lead.1");
    bound.ask(Input::CreateChild(Box::new(first(Some(workspace))))).unwrap();
    assert_eq!(bound.state.planes.workspaces.active().map(|active| &active.root), Some(&root));
}
