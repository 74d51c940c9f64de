//! Facts that can't follow are refused: no ledger folds to a state that no rule could have made.

use std::collections::BTreeSet;

use abide_kernel::fact::{RoundStarted, ToolRoundCompleted, ToolStarted, TurnStarted};
use abide_kernel::id::{CallId, ExecId};
use abide_kernel::{AgentState, Fact};

use crate::golden::golden;
use crate::story::Story;

fn told(lines: &str) -> Story {
    let mut story = Story::begin();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.tell(line).unwrap();
    }
    story
}

fn applies(state: &AgentState, story: &Story, fact: &Fact) -> bool {
    state.clone().apply(story.now, fact).is_ok()
}

/// Nothing but a creation begins a stream, and nothing that names a record applies to an agent that has none.
#[test]
fn facts_about_what_is_not_there_are_refused() {
    let story = Story::begin();
    let empty = AgentState::empty(story.state.id().clone());
    let mut refused = BTreeSet::new();
    for (kind, bytes) in golden() {
        let fact = Fact::decode(&kind, &bytes).unwrap();
        assert_eq!(applies(&empty, &story, &fact), fact.kind() == "agent.created", "{kind}");
        if !applies(&story.state, &story, &fact) {
            refused.insert(fact.kind());
        }
    }
    let accepted: Vec<&&str> = ABOUT_A_RECORD.iter().filter(|kind| !refused.contains(**kind)).collect();
    assert!(accepted.is_empty(), "{accepted:?}");
}

/// Kinds that need something to be there.
const ABOUT_A_RECORD: &[&str] = &[
    "agent.created",
    "approval.deadline_moved",
    "approval.decided",
    "approval.used",
    "brief.recorded",
    "budget.reached",
    "child.leaving",
    "child.reporting",
    "exec.aborted",
    "message.aborted",
    "message.dequeued",
    "message.dropped",
    "message.interjected",
    "message.parked",
    "message.processed",
    "message.requeued",
    "task.cancelled",
    "task.cancelling",
    "task.completed",
    "task.failed",
    "task.interrupted",
    "task.result_delivered",
    "task.result_queued",
    "task.running",
    "timer.cancelled",
    "timer.check_started",
    "timer.completed",
    "timer.fired",
    "timer.missed",
    "timer.rescheduled",
    "tool.finished",
    "tool.started",
    "trigger.delivered",
    "trigger.revoked",
    "trigger.rotated",
    "turn.assistant_round_recorded",
    "turn.baseline_over_budget",
    "turn.checkpointed",
    "turn.provider_round_completed",
    "turn.provider_round_failed",
    "turn.round_started",
    "turn.started",
    "turn.terminal",
    "turn.tool_round_completed",
    "wait.cancelled",
    "wait.created",
    "wait.triggered",
    "work_item.blocked",
    "work_item.completed",
    "work_item.picked",
    "work_item.recheck_fired",
    "work_item.recheck_moved",
    "work_item.unblocked",
    "work_item.updated",
    "workspace.detached",
    "workspace.used",
    "worktree.kept",
    "worktree.removed",
    "worktree.removing",
];

/// The same fact twice in a row is refused, unless it only says something once more.
#[test]
fn facts_that_happened_do_not_happen_again() {
    let story = told(
        "use shop
         occupy shop
         operator hi
         round CreateWorkItem build ; CreateTimer every=1h tea ; CreateTrigger hook
         round Tool look
         interject wait
         tool call4
         round WaitFor external c1
         event corr=c1 news
         round RequestApproval deploy
         person DecideApproval appr1 grant
         round PickWorkItem w1
         round UpdateWorkItem w1 plan=one blocked=rain recheck=1h
         round done
         advance 2h
         round UpdateWorkItem w1 unblocked
         round CompleteWorkItem w1
         round done
         task t1
         task t1 runs
         person StopTask t1
         task t1 ends
         round done
         wake source=door
         deliver trig1 more
         round done
         person CancelTimer timer1
         person RevokeTrigger trig1
         release shop
         person DetachWorkspace shop
         compact
         operator again
         crash
         fail overloaded
         advance 1h
         round done
         stop
         start",
    );
    let mut state = AgentState::empty(story.state.id().clone());
    let (mut kinds, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    for (at, fact) in &story.facts {
        state.apply(*at, fact).unwrap();
        kinds.insert(fact.kind());
        if state.clone().apply(*at, fact).is_ok() {
            accepted.insert(fact.kind());
        }
    }
    for kind in ONCE {
        assert!(kinds.contains(kind), "{kind} is not in the story");
        assert!(!accepted.contains(kind), "{kind} happened twice");
    }
}

/// Kinds that never follow themselves.
const ONCE: &[&str] = &[
    "agent.created",
    "approval.decided",
    "approval.requested",
    "exec.aborted",
    "message.dequeued",
    "message.interjected",
    "message.processed",
    "message.queued",
    "message.requeued",
    "task.completed",
    "task.created",
    "task.result_delivered",
    "task.running",
    "timer.cancelled",
    "timer.created",
    "tool.finished",
    "tool.started",
    "trigger.created",
    "trigger.revoked",
    "turn.assistant_round_recorded",
    "turn.round_started",
    "turn.started",
    "turn.terminal",
    "turn.tool_round_completed",
    "wait.created",
    "wait.triggered",
    "work_item.blocked",
    "work_item.completed",
    "work_item.created",
    "work_item.unblocked",
    "work_item.updated",
    "workspace.attached",
];

#[test]
fn the_parts_of_a_turn_come_in_their_order() {
    let story = told("operator hi\nround Tool look");
    let exec_id = story.state.turns.current.as_ref().unwrap().exec_id.clone();
    let other = ExecId::new("exec_other");
    let round = |exec_id: &ExecId, round| Fact::from(RoundStarted { exec_id: exec_id.clone(), round });
    let done = |exec_id: &ExecId| Fact::from(ToolRoundCompleted { exec_id: exec_id.clone(), round: 1 });
    assert!(!applies(&story.state, &story, &done(&exec_id)), "a call is open");
    assert!(!applies(&story.state, &story, &round(&exec_id, 2)), "the calls are not over");
    let call = ToolStarted { exec_id: exec_id.clone(), call_id: CallId::new("call_none"), ..started(&story) };
    assert!(!applies(&story.state, &story, &call.into()), "nobody asked for it");

    let mut state = story.state.clone();
    let finished = finished(&story);
    state.apply(story.now, &finished).unwrap();
    assert!(!applies(&state, &story, &finished), "it is over");
    assert!(!applies(&state, &story, &done(&other)) && applies(&state, &story, &done(&exec_id)));
    state.apply(story.now, &done(&exec_id)).unwrap();
    assert!(!applies(&state, &story, &round(&exec_id, 1)) && !applies(&state, &story, &round(&exec_id, 3)));
    assert!(!applies(&state, &story, &round(&other, 2)) && applies(&state, &story, &round(&exec_id, 2)));
}

fn started(story: &Story) -> ToolStarted {
    let find = |(_, fact): &(_, Fact)| if let Fact::ToolStarted(fact) = fact { Some(fact.clone()) } else { None };
    story.facts.iter().find_map(find).unwrap()
}

/// The end of the call, as another story has it.
fn finished(story: &Story) -> Fact {
    let exec_id = story.state.turns.current.as_ref().unwrap().exec_id.clone();
    let other = told("operator hi\nround Tool look\ntool call1");
    let find = |(_, fact): &(_, Fact)| if let Fact::ToolFinished(fact) = fact { Some(fact.clone()) } else { None };
    let mut finished = other.facts.iter().find_map(find).unwrap();
    finished.exec_id = exec_id;
    finished.into()
}

/// A turn starts about a message that was taken, as the next one, where none runs and the agent does.
#[test]
fn a_turn_starts_where_it_can() {
    let story = told("operator hi");
    let index = story.facts.iter().position(|(_, fact)| matches!(fact, Fact::TurnStarted(_))).unwrap();
    let mut state = AgentState::empty(story.state.id().clone());
    for (at, fact) in &story.facts[..index] {
        state.apply(*at, fact).unwrap();
    }
    let Fact::TurnStarted(turn) = &story.facts[index].1 else { panic!("no turn") };
    assert!(applies(&state, &story, &turn.clone().into()));
    for turn_index in [0, 2] {
        assert!(!applies(&state, &story, &TurnStarted { turn_index, ..turn.clone() }.into()), "turn {turn_index}");
    }
    let message_id = abide_kernel::id::MessageId::new("msg_none");
    assert!(!applies(&state, &story, &TurnStarted { message_id, ..turn.clone() }.into()));
    assert!(!applies(&story.state, &story, &turn.clone().into()), "one runs");
    let mut stopped = told("stop\noperator hi").state;
    assert!(stopped.apply(story.now, &turn.clone().into()).is_err(), "it is stopped");
}
