//! The reports of a turn's effects: rounds of the model, outcomes of tools. Between them lie the safe points, where
//! interjections join, budgets are looked at, and a requested shutdown lands.

use abide_views::task::TaskView;

use crate::act_result::told;
use crate::budget::Usage;
use crate::effect::{Effect, TurnEffect};
use crate::fact::{
    AssistantRoundRecorded, BriefRecorded, CallRecord, CutRoundCounted, MessageAborted, MessageInterjected,
    MessageProcessed, MessageRequeued, ProviderRoundCompleted, RoundStarted, StaleOutcomeIgnored, ToolFinished,
    ToolRoundCompleted, ToolStarted, TurnAborted, TurnBaselineOverBudget, TurnCheckpointed, TurnTerminal,
};
use crate::id::{CallId, ExecId, MessageId, TaskId, WorkItemId};
use crate::input::{Answer, Reads, Refusal, Reply, Spent};
use crate::limits;
use crate::open_json::ToolOutput;
use crate::refusal::ErrorCode;
use crate::rules::transaction::Transaction;
use crate::scheduler::continuation::matching_waits;
use crate::state::AgentState;
use crate::state::guard::{Guard, call_hash};
use crate::state::tool_placement::ToolPlacement;
use crate::state::turn::{LastRound, Phase, Turn, checkpoint_holds};
use crate::tool::{Call, ToolCall};
use crate::vocabulary::{
    AbortReason, Boundary, BriefKind, ControlAction, MessageKind, RequeueReason, SafePoint, Scope, Status,
    TerminalKind, ToolStatus, WaitKind,
};

use super::act::{self, Actor};
use super::control::{Affected, question};
use super::given_up::{give_up, replay_or_give_up};
use super::model;
use super::permit;
use super::task::settle_result;
use super::waits::{cancel_wait, return_interjections, trigger_wait};

/// The running turn, if it is this execution's.
pub(super) fn turn_of<'a>(tx: &'a Transaction<'_>, exec_id: &ExecId) -> Option<&'a Turn> {
    tx.state.turns.current.as_ref().filter(|turn| turn.exec_id == *exec_id)
}

pub(super) fn stale(tx: &mut Transaction<'_>, exec_id: &ExecId, what: &str) -> Answer {
    tx.emit(StaleOutcomeIgnored { exec_id: exec_id.clone(), evidence: vec![what.to_owned()] });
    Answer::Unchanged
}

pub(super) fn finish_round(tx: &mut Transaction<'_>, exec_id: &ExecId, round: u32, reply: Reply) -> Answer {
    let expected = turn_of(tx, exec_id).is_some_and(|turn| turn.phase == Phase::Model && turn.round == round);
    if !expected {
        // It came too late to be heard, not too late to be paid. Of a turn that still runs, it was paid when it was heard.
        if turn_of(tx, exec_id).is_none() && reply.usage != Usage::default() {
            let (exec_id, usage) = (exec_id.clone(), reply.usage);
            tx.emit(CutRoundCounted { exec_id, round, usage, estimated: false });
        }
        return stale(tx, exec_id, &format!("round {round} is over"));
    }
    let cut = reply.is_cut();
    let rested = turn_of(tx, exec_id).is_some_and(|turn| tx.state.failures_of(&turn.model) > 0);
    tx.emit(ProviderRoundCompleted {
        exec_id: exec_id.clone(),
        round,
        usage: reply.usage,
        elapsed_ms: reply.elapsed_ms,
        carry: reply.carry,
        model: reply.model,
        sealed: reply.sealed,
        stop: reply.stop,
        estimated_tokens: reply.estimated_tokens,
    });
    let record =
        |call: &Call| CallRecord { call_id: call.call_id.clone(), tool: call.tool.clone(), input: call.input.clone() };
    let calls: Vec<CallRecord> = reply.calls.iter().map(record).collect();
    let asked = !calls.is_empty();
    tx.emit(AssistantRoundRecorded { exec_id: exec_id.clone(), round, text: reply.text, calls, cut });
    let read = turn_of(tx, exec_id).map(|turn| turn.presents.clone()).unwrap_or_default();
    for task in read {
        settle_result(tx, &task, exec_id, &format!("round {round}"));
    }
    if rested {
        model::release_waiting_messages(tx);
    }
    join_interjections(tx, exec_id, SafePoint::AfterModelRound);
    if !asked {
        match silence(tx, exec_id) {
            None => go_on(tx, exec_id, true, reply.tree),
            Some(Silence::AskAgain) => go_on(tx, exec_id, false, reply.tree),
            Some(Silence::NoAnswer(error)) => {
                end_turn(tx, TerminalKind::ProviderFailed, reply.tree, Some(error));
            }
        }
    } else if tx.state.lifecycle.shutdown {
        stop_for_shutdown(tx);
    } else {
        run_calls(tx, exec_id, reply.calls, reply.tree);
    }
    Answer::Done
}

/// The consequence of an answer in which there is nothing.
enum Silence {
    AskAgain,
    NoAnswer(String),
}

/// Where somebody waits for what a model says, one that says nothing has not answered: it is asked once more. None where
/// the turn may end all the same, as after its calls, or where it has more to hear anyway.
fn silence(tx: &Transaction<'_>, exec_id: &ExecId) -> Option<Silence> {
    let turn = turn_of(tx, exec_id).filter(|turn| !turn.puts_off_answer())?;
    let LastRound::Empty { in_a_row } = turn.rounds.last else { return None };
    if turn.answers().is_none() && tx.state.definition.identity.supervisor.is_none() {
        return None;
    }
    if in_a_row <= limits::SILENT_ROUNDS_ASKED {
        return Some(Silence::AskAgain);
    }
    (!turn.rounds.have_calls && turn.rounds.text().is_none()).then(|| {
        let why = if turn.rounds.last_is_truncated {
            "it had written as much as it may before it said anything; raise max_output_tokens for it in config.toml"
        } else {
            "neither text nor a call; ask again, or choose another model"
        };
        Silence::NoAnswer(format!("The model's answer was empty, {in_a_row} times: {why}."))
    })
}

fn run_calls(tx: &mut Transaction<'_>, exec_id: &ExecId, calls: Vec<Call>, tree: Option<String>) {
    for call in calls {
        let cut = matches!(&call.parsed, ToolCall::Refused(refusal) if refusal.code == ErrorCode::CallCutOff);
        let repeated = if cut { None } else { repeats(tx, exec_id, &call) };
        // Before a person's yes is used up: a call that is not run needs none.
        let Call { call_id, tool, input, parsed } = call;
        let parsed = match &repeated {
            Some(refusal) => ToolCall::Refused(refusal.clone()),
            None => permit::permit_call(tx, exec_id, &call_id, parsed),
        };
        let side_effect = parsed.side_effect();
        tx.emit(ToolStarted { exec_id: exec_id.clone(), call_id: call_id.clone(), tool: tool.clone(), side_effect });
        let exec_id = exec_id.clone();
        let (status, result, ends_turn) = match parsed {
            ToolCall::Executor(call) => {
                let (call, place) = (Box::new(call), Box::new(ToolPlacement::of(tx.state)));
                tx.ask(Effect::Turn(TurnEffect::RunTool { exec_id, call_id, tool, input, call, place }));
                continue;
            }
            ToolCall::Host(call) => {
                let (call, place) = (Box::new(call), Box::new(ToolPlacement::of(tx.state)));
                tx.ask(Effect::Turn(TurnEffect::AnswerCall { exec_id, call_id, call, place }));
                continue;
            }
            ToolCall::Record(wanted) => match act::carry_out_act(tx, &Actor::Model(exec_id.clone()), wanted) {
                Ok(done) => (ToolStatus::Completed, done.result, done.ends_turn),
                Err(refusal) => (ToolStatus::Failed, refusal.into_result(), false),
            },
            ToolCall::Refused(refusal) => (ToolStatus::Failed, refusal.into_result(), false),
            ToolCall::NeedsApproval(needed) => match permit::ask_approval(tx, &exec_id, &tool, *needed) {
                Ok(done) => (ToolStatus::Failed, done.result, done.ends_turn),
                Err(refusal) => (ToolStatus::Failed, refusal.into_result(), false),
            },
        };
        let repeated = repeated.is_some();
        tx.emit(ToolFinished { exec_id, call_id, tool, status, result, ends_turn, repeated, cut });
    }
    complete_tools(tx, exec_id, tree);
}

/// Why a call is not run again, where it came to the same too often. Those of this round that are under way count:
/// nobody learns anything from the fourth of them either.
fn repeats(tx: &Transaction<'_>, exec_id: &ExecId, call: &Call) -> Option<Refusal> {
    let turn = turn_of(tx, exec_id)?;
    let hash = call_hash(&call.tool, &call.input);
    let under_way = match &turn.phase {
        Phase::Tools { running, .. } => {
            running.values().filter(|other| call_hash(&other.tool, &other.input) == hash).count()
        }
        Phase::Model | Phase::Safe { .. } => 0,
    };
    let guard = &tx.state.planes.queue.get(&turn.message_id)?.guard;
    let times = guard.repeats_of(hash).saturating_add(u32::try_from(under_way).unwrap_or(u32::MAX));
    (times >= limits::SAME_RESULT_MAX).then(|| {
        let message = format!("this very call was made {times} times and came to the same; it was not made again");
        Refusal::new(ErrorCode::RepeatedCall, message)
    })
}

pub(super) fn finish_tool(
    tx: &mut Transaction<'_>,
    exec_id: &ExecId,
    call_id: CallId,
    status: ToolStatus,
    mut result: ToolOutput,
    reads: Option<Reads>,
) -> Answer {
    let tool = turn_of(tx, exec_id).and_then(|turn| match &turn.phase {
        Phase::Tools { running, .. } => running.get(&call_id).map(|call| call.tool.clone()),
        Phase::Model | Phase::Safe { .. } => None,
    });
    let Some(tool) = tool else {
        return stale(tx, exec_id, &format!("{call_id} is over"));
    };
    let shown = reads.as_ref().and_then(|reads| tx.state.planes.tasks.get(&reads.task_id)).map(TaskView::from);
    if let (Some(task), Some(fields)) = (shown, result.as_object_mut()) {
        fields.insert("task".to_owned(), told(&task).0);
    }
    tx.emit(ToolFinished {
        exec_id: exec_id.clone(),
        call_id,
        tool,
        status,
        result,
        ends_turn: false,
        repeated: false,
        cut: false,
    });
    if let Some(read) = reads.filter(|reads| reads.end) {
        settle_result(tx, &read.task_id, exec_id, "task_output_returned_the_end");
    }
    complete_tools(tx, exec_id, None);
    Answer::Done
}

/// When the last call of a round has its outcome, the turn is at a safe point again.
fn complete_tools(tx: &mut Transaction<'_>, exec_id: &ExecId, tree: Option<String>) {
    let Some(turn) = turn_of(tx, exec_id) else { return };
    let Phase::Tools { running, waiting, ends_turn } = &turn.phase else { return };
    if !running.is_empty() || !waiting.is_empty() {
        return;
    }
    let ends_turn = *ends_turn;
    let round = turn.round;
    tx.emit(ToolRoundCompleted { exec_id: exec_id.clone(), round });
    join_interjections(tx, exec_id, SafePoint::AfterToolResults);
    go_on(tx, exec_id, ends_turn, tree);
}

/// At a safe point: the turn ends, or begins its next round if it may. What joined it must be heard first. A shutdown
/// takes nothing from a turn that has come to its end: its answer is there, and asking for it again would cost another.
fn go_on(tx: &mut Transaction<'_>, exec_id: &ExecId, done: bool, tree: Option<String>) {
    let Some(turn) = turn_of(tx, exec_id) else { return };
    let round = turn.round;
    if done && turn.rounds.last != LastRound::Interjected {
        return end_turn(tx, TerminalKind::Completed, tree, None);
    }
    if tx.state.lifecycle.shutdown {
        return stop_for_shutdown(tx);
    }
    let allowed = tx.state.definition.limits.rounds_per_turn;
    if allowed > 0 && round >= allowed {
        let error = format!(
            "The turn took {round} rounds, which is the limit (rounds_per_turn). Say how it should go on, or raise the \
             limit in config.toml."
        );
        return end_and_ask(tx, tree, error);
    }
    if guard(tx, exec_id).is_some_and(|guard| guard.refused_calls() >= limits::REPEATED_CALLS_MAX) {
        let error = format!(
            "The turn went in circles: {} calls were not run because they had come to the same result before. \
             Say what it should do instead.",
            limits::REPEATED_CALLS_MAX
        );
        return end_and_ask(tx, tree, error);
    }
    if let Some(cut) = guard(tx, exec_id).map(Guard::truncated_calls).filter(|cut| *cut >= limits::CUT_CALLS_MAX) {
        let error = format!(
            "The model's calls were cut off {cut} times: it had written as much as it may before they were complete. \
             Raise max_output_tokens for it in config.toml, or ask for smaller parts."
        );
        return end_turn(tx, TerminalKind::ProviderFailed, tree, Some(error));
    }
    // The turn that is running has been paid for by its start; what counts between rounds is what rounds use up.
    if let Some(spent) = tx.state.spent_between_rounds() {
        return abort_turn(tx, Abort::of(AbortReason::Budget, Boundary::Turn, spent.evidence()));
    }
    let item = turn_of(tx, exec_id).and_then(|turn| tx.state.planes.work.open(turn.work_item_id()?));
    if let Some((id, spent)) = item.and_then(|item| Some((item.work_item_id.clone(), item.spent_between_rounds()?))) {
        let evidence = format!("work_item {id} {}", spent.evidence());
        return abort_turn(tx, Abort::of(AbortReason::Budget, Boundary::Turn, evidence));
    }
    tx.emit(RoundStarted { exec_id: exec_id.clone(), round: round + 1 });
}

fn guard<'a>(tx: &'a Transaction<'_>, exec_id: &ExecId) -> Option<&'a Guard> {
    let message_id = &turn_of(tx, exec_id)?.message_id;
    tx.state.planes.queue.get(message_id).map(|entry| &entry.guard)
}

/// A model that goes on and on is stopped, and a person is asked. The item is not offered meanwhile.
fn end_and_ask(tx: &mut Transaction<'_>, tree: Option<String>, error: String) {
    let Some(turn) = tx.state.turns.current.clone() else { return };
    end_turn(tx, TerminalKind::Aborted, tree, Some(error.clone()));
    if turn.answers().is_none() {
        record_brief(tx, BriefKind::Failure, error.clone(), None);
    }
    let item = turn.work_item_id().cloned().filter(|id| tx.state.planes.work.open(id).is_some());
    question(tx, error, item);
}

/// Queued interjections become part of the message that the turn is about, and end the waits they satisfy.
fn join_interjections(tx: &mut Transaction<'_>, exec_id: &ExecId, safe_point: SafePoint) {
    let Some(joined) = turn_of(tx, exec_id).map(|turn| turn.message_id.clone()) else { return };
    for message_id in &tx.state.planes.queue.interjections() {
        let matched = match tx.state.planes.queue.get(message_id) {
            Some(entry) => matching_waits(tx.state, &entry.message),
            None => Vec::new(),
        };
        tx.emit(MessageInterjected {
            message_id: message_id.clone(),
            joined: joined.clone(),
            exec_id: exec_id.clone(),
            safe_point,
        });
        for wait in matched {
            trigger_wait(tx, &wait, Some(message_id), vec!["interjected".to_owned()]);
        }
    }
}

/// The answer of a turn that ends after its calls without a word. It is not the model's, and does not look like it.
const NOTHING_SAID: &str = "(Nothing was said after the last tool calls; the transcript has them.)";

fn end_turn(tx: &mut Transaction<'_>, terminal_kind: TerminalKind, tree: Option<String>, error: Option<String>) {
    let Some(turn) = tx.state.turns.current.clone() else { return };
    let (text, puts_off) = (turn.rounds.text(), turn.puts_off_answer());
    emit_terminal(tx, &turn, terminal_kind, tree, error.clone(), false);
    if error.is_some() {
        return_interjections(tx, &turn.message_id);
    }
    tx.emit(MessageProcessed { message_id: turn.message_id.clone(), ignored: Vec::new() });
    let Some(asked) = turn.answers().cloned() else { return };
    let (kind, text) = match (error, text) {
        (Some(error), _) => (BriefKind::Failure, error),
        (None, Some(text)) if puts_off => (BriefKind::Ack, text),
        // Once is enough to say that an answer will take its time.
        (None, None) if puts_off && asked != turn.message_id => return,
        (None, None) if puts_off => (BriefKind::Ack, "Waiting.".to_owned()),
        (None, Some(text)) if turn.rounds.empty_in_a_row() > 0 => {
            (BriefKind::Result, format!("{text}\n\n{NOTHING_SAID}"))
        }
        (None, Some(text)) => (BriefKind::Result, text),
        (None, None) => (BriefKind::Result, NOTHING_SAID.to_owned()),
    };
    let (cut, brief_id) = (turn.rounds.last_is_truncated && kind != BriefKind::Failure, tx.fresh.brief());
    tx.emit(BriefRecorded { brief_id, kind, text, message_id: Some(asked), work_item_id: None, cut });
}

pub(super) fn emit_terminal(
    tx: &mut Transaction<'_>,
    turn: &Turn,
    terminal_kind: TerminalKind,
    tree: Option<String>,
    error: Option<String>,
    returned: bool,
) {
    let checkpoint = checkpoint_holds(tx.state, turn);
    let settles = if returned { Vec::new() } else { settled_without_brief(tx.state, turn, error.is_some()) };
    tx.emit(TurnTerminal {
        exec_id: turn.exec_id.clone(),
        turn_index: turn.turn_index,
        message_id: turn.message_id.clone(),
        terminal_kind,
        rounds: turn.rounds.count,
        last_assistant_message: turn
            .rounds
            .text()
            .map(|text| limits::clip(&text, limits::LAST_ASSISTANT_BYTES).to_owned()),
        checkpoint,
        tree,
        error,
        returned,
        cut: turn.rounds.last_is_truncated,
        settles,
    });
}

/// The message that a turn about `message` has to answer, where that is another one and nothing has answered it before.
pub(super) fn still_asked(state: &AgentState, answers: Option<&MessageId>, message: &MessageId) -> Option<MessageId> {
    answers.filter(|asked| *asked != message && state.turns.unanswered.contains(asked)).cloned()
}

/// Messages that end with this turn, and that no brief of it is about.
fn settled_without_brief(state: &AgentState, turn: &Turn, failed: bool) -> Vec<MessageId> {
    let mut settles = state.left_unanswered(turn);
    let is_about_another = turn.answers() != Some(&turn.message_id);
    // Those that joined a failed turn return to the queue.
    if is_about_another && !failed {
        settles.extend(state.planes.queue.joined_to(&turn.message_id));
    }
    if is_about_another && failed {
        settles.extend(still_asked(state, turn.answers(), &turn.message_id));
    }
    settles
}

pub(super) fn record_brief(tx: &mut Transaction<'_>, kind: BriefKind, text: String, message_id: Option<MessageId>) {
    let brief_id = tx.fresh.brief();
    tx.emit(BriefRecorded { brief_id, kind, text, message_id, work_item_id: None, cut: false });
}

/// Why an execution ends before its turn is done, and what ends with it.
pub(super) struct Abort {
    reason: AbortReason,
    action: Option<ControlAction>,
    boundary: Boundary,
    affected: Affected,
    evidence: Vec<String>,
    process_ended: bool,
}

impl Abort {
    pub fn of(reason: AbortReason, boundary: Boundary, evidence: impl Into<String>) -> Abort {
        let (affected, evidence) = (Affected::default(), vec![evidence.into()]);
        Abort { reason, action: None, boundary, affected, evidence, process_ended: false }
    }

    /// One that an action of control causes.
    pub fn by(action: ControlAction, reason: AbortReason, boundary: Boundary, evidence: &str) -> Abort {
        Abort { action: Some(action), ..Abort::of(reason, boundary, evidence) }
    }

    pub fn with(self, affected: Affected) -> Abort {
        Abort { affected, ..self }
    }

    pub fn because(mut self, evidence: String) -> Abort {
        self.evidence.push(evidence);
        self
    }
}

/// Ends an execution that the process did not see to its end. After a shutdown that was recorded this is no crash, whatever
/// kept the turn from its safe point: the message did not take the process down.
pub(super) fn cut_turn(tx: &mut Transaction<'_>) {
    let process_ended = tx.state.lifecycle.shutdown;
    let reason = if process_ended { AbortReason::Shutdown } else { AbortReason::Cut };
    let abort = Abort::by(ControlAction::Restart, reason, Boundary::Bootstrap, "process_ended");
    abort_turn(tx, Abort { process_ended, ..abort });
}

/// The turn comes to a safe point, and the process is about to end.
fn stop_for_shutdown(tx: &mut Transaction<'_>) {
    let action = ControlAction::Shutdown;
    abort_turn(tx, Abort::by(action, AbortReason::Shutdown, Boundary::Shutdown, "shutdown_requested"));
}

/// Ends the running execution before its turn is done. What becomes of its message depends on why.
pub(super) fn abort_turn(tx: &mut Transaction<'_>, abort: Abort) {
    let Some(turn) = tx.state.turns.current.clone() else { return };
    let Abort { reason, action, boundary, affected, evidence, process_ended } = abort;
    let next_status = match reason {
        AbortReason::Stop => Status::Stopped,
        AbortReason::Abort | AbortReason::Shutdown | AbortReason::Budget | AbortReason::Cut => Status::AwakeIdle,
    };
    if let Phase::Tools { running, .. } = &turn.phase {
        for call in running.values() {
            tx.emit(ToolFinished {
                exec_id: turn.exec_id.clone(),
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                status: ToolStatus::Unknown,
                result: ToolOutput::default(),
                ends_turn: false,
                repeated: false,
                cut: false,
            });
        }
    }
    tx.emit(TurnAborted {
        action,
        boundary: Some(boundary),
        previous_status: Some(tx.state.status()),
        next_status: Some(next_status),
        exec_id: turn.exec_id.clone(),
        turn_index: turn.turn_index,
        message_id: turn.message_id.clone(),
        reason,
        rounds: turn.rounds.count,
        task_ids: affected.task_ids,
        workspace: affected.workspace,
        evidence,
        process_ended,
    });
    let message_id = turn.message_id.clone();
    let requeue = |reason| MessageRequeued { message_id: message_id.clone(), reason, not_before: None };
    match reason {
        AbortReason::Stop => tx.emit(requeue(RequeueReason::Stop)),
        AbortReason::Shutdown => tx.emit(requeue(RequeueReason::Shutdown)),
        AbortReason::Budget => tx.emit(requeue(RequeueReason::Budget)),
        AbortReason::Cut => replay_or_give_up(tx, &message_id),
        AbortReason::Abort => {
            let evidence = vec!["aborted_by_operator".to_owned()];
            let answers = still_asked(tx.state, turn.answers(), &message_id);
            tx.emit(MessageAborted { message_id: message_id.clone(), given_up: false, evidence, answers });
            return_interjections(tx, &message_id);
            let about = turn.answers().cloned().unwrap_or(message_id);
            record_brief(tx, BriefKind::Failure, "Aborted by the operator.".to_owned(), Some(about));
        }
    }
}

/// A call that was ended is paid for up to there. It says nothing about what its turn came to.
pub(super) fn count_cut_round(tx: &mut Transaction<'_>, exec_id: ExecId, round: u32, spent: Spent) -> Answer {
    tx.emit(CutRoundCounted { exec_id, round, usage: spent.usage, estimated: spent.estimated });
    Answer::Done
}

/// A failure that time does not mend ends its message visibly. A result stays owed, and waits for the operator.
pub(super) fn fail_message(tx: &mut Transaction<'_>, message_id: &MessageId, answers: Option<MessageId>, text: String) {
    let owes = tx.state.planes.queue.get(message_id).and_then(|entry| entry.message.task_id().cloned());
    if owes.is_some_and(|task| tx.state.planes.tasks.owed().contains_key(&task)) {
        give_up(tx, message_id, vec![text.clone()], text);
    } else {
        return_interjections(tx, message_id);
        tx.emit(MessageProcessed { message_id: message_id.clone(), ignored: vec![text.clone()] });
        record_brief(tx, BriefKind::Failure, text, Some(answers.unwrap_or_else(|| message_id.clone())));
    }
}

pub(super) fn overflow_baseline(
    tx: &mut Transaction<'_>,
    exec_id: &ExecId,
    needed_tokens: u64,
    budget_tokens: u64,
) -> Answer {
    let Some(turn) = turn_of(tx, exec_id).filter(|turn| turn.phase == Phase::Model).cloned() else {
        return stale(tx, exec_id, "no model call is under way");
    };
    let (exec_id, turn_index) = (turn.exec_id.clone(), turn.turn_index);
    tx.emit(TurnBaselineOverBudget { exec_id, turn_index, needed_tokens, budget_tokens });
    let text = format!(
        "what must always be shown needs {needed_tokens} tokens, and {} has room for {budget_tokens}: give it a model with \
         a larger window, raise that one's context_tokens in the settings, or shorten its instructions, its guides or what \
         it was asked",
        Some(turn.model.as_str()).filter(|name| !name.is_empty()).unwrap_or("its model"),
    );
    if tx.state.definition.config.models().nth(1).is_some() {
        model::overflow(tx, &turn, text);
        return Answer::Done;
    }
    emit_terminal(tx, &turn, TerminalKind::BaselineOverBudget, None, Some(text.clone()), false);
    fail_message(tx, &turn.message_id, turn.answers().cloned(), text);
    Answer::Done
}

pub(super) fn checkpoint(
    tx: &mut Transaction<'_>,
    exec_id: &ExecId,
    recap: String,
    through_round: Option<u32>,
) -> Answer {
    let Some(turn) = turn_of(tx, exec_id) else {
        return stale(tx, exec_id, "the turn is over");
    };
    let (round, work_item_id) = (turn.round, turn.work_item_id().cloned());
    let revision = work_item_id.as_ref().and_then(|id| tx.state.planes.work.open(id)).map(|item| item.revision);
    tx.emit(TurnCheckpointed { exec_id: exec_id.clone(), round, work_item_id, revision, recap, through_round });
    Answer::Done
}

/// The owed results that a turn about this message shows to the model.
pub(crate) fn present(state: &AgentState, message: &MessageId) -> Vec<TaskId> {
    let Some(entry) = state.planes.queue.get(message) else { return Vec::new() };
    let owed = state.planes.tasks.owed();
    match entry.message.kind() {
        MessageKind::TaskResult => {
            entry.message.task_id().into_iter().filter(|task| owed.contains_key(*task)).cloned().collect()
        }
        MessageKind::OperatorPrompt => held_results(state),
        MessageKind::ChannelEvent
        | MessageKind::WebhookEvent
        | MessageKind::CallbackEvent
        | MessageKind::TimerTick
        | MessageKind::SystemTick
        | MessageKind::TaskStatus
        | MessageKind::Control
        | MessageKind::InternalFollowup
        | MessageKind::BriefAck
        | MessageKind::BriefResult => Vec::new(),
    }
}

fn held_results(state: &AgentState) -> Vec<TaskId> {
    let held = state.planes.tasks.owed().values().filter(|task| task.held);
    held.take(limits::RECENT_MAX).map(|task| task.task_id.clone()).collect()
}

/// A sleep lasts until it fires or the next turn of what it holds starts.
pub(crate) fn end_sleeps(tx: &mut Transaction<'_>, item: Option<&WorkItemId>) {
    let of_agent = tx.state.planes.waits.of_kind(Scope::Agent, WaitKind::Sleep);
    let of_item = item.into_iter().flat_map(|item| tx.state.planes.waits.of_item(item));
    let sleeps: Vec<_> = of_agent
        .chain(of_item.filter(|wait| wait.kind == WaitKind::Sleep))
        .map(|wait| wait.waiting_intent_id.clone())
        .collect();
    for sleep in sleeps {
        cancel_wait(tx, &sleep, "turn_started");
    }
}
