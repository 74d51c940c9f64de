//! The changes that facts about turns make.

use std::collections::BTreeMap;

use super::Applied;
use crate::budget::Used;
use crate::fact::{
    AssistantRoundRecorded, TaskCreated, ToolFinished, ToolStarted, TurnAborted, TurnBound, TurnStarted, TurnTerminal,
};
use crate::id::ExecId;
use crate::limits;
use crate::open_json::ProviderState;
use crate::state::AgentState;
use crate::state::guard::{call_hash, result_hash};
use crate::state::lifecycle::Control;
use crate::state::turn::{BoundItem, LastTerminal, OwedAnswer, Phase, RecordedRounds, Turn, UnknownCall};
use crate::state::turns::LastTrigger;
use crate::time::Time;
use crate::vocabulary::{AbortReason, MessageKind, QueueStatus, TerminalKind, ToolStatus};

impl AgentState {
    pub(super) fn turn_started(&mut self, fact: &TurnStarted, at: Time) -> Applied {
        if self.turns.current.is_some() {
            return Err("a turn is running".to_owned());
        }
        if self.lifecycle.control != Control::Runnable {
            return Err("the agent is not running".to_owned());
        }
        if fact.turn_index != self.turns.last_index + 1 {
            return Err(format!("turn {} does not follow turn {}", fact.turn_index, self.turns.last_index));
        }
        let entry = self.planes.queue.get(&fact.message_id).filter(|entry| entry.status == QueueStatus::Dequeued);
        let entry = entry.ok_or_else(|| format!("{} was not taken", fact.message_id))?;
        let (message, again) = (entry.message.clone(), entry.taken > 1);
        if message.self_caused && !again {
            self.accounts.pace.count_turn(at, self.definition.limits.self_turns_per_hour);
        }
        self.planes.work.record_turn_start(message.is_work_tick());
        self.turns.last_trigger =
            Some(LastTrigger { kind: fact.continuation.trigger_kind, work_tick: message.is_work_tick() });
        self.turns.last_continuation = Some(fact.continuation.clone());
        self.planes.queue.edit(&fact.message_id, |entry| {
            entry.continuation = Some(fact.continuation.clone());
            entry.answers = fact.answers.clone();
        });
        self.turns.last_index = fact.turn_index;
        self.lifecycle.resting = false;
        self.accounts.spending.begin_day(at);
        let model = self.model_for(&fact.message_id, at).to_owned();
        self.turns.current = Some(Turn {
            turn_id: fact.turn_id.clone(),
            exec_id: fact.exec_id.clone(),
            turn_index: fact.turn_index,
            message_id: fact.message_id.clone(),
            model,
            item: fact.work_item_id.clone().map(|work_item_id| BoundItem { work_item_id, progressed: false }),
            continuation: fact.continuation.clone(),
            answer: fact.answers.clone().map(|message_id| OwedAnswer { message_id, put_off: false }),
            presents: fact.presents.clone(),
            started_at: at,
            counted_to: at,
            counted_on: self.accounts.spending.day,
            seq: self.seq,
            round: 0,
            phase: Phase::Safe { ends_turn: false },
            rounds: RecordedRounds::default(),
            checkpoint: None,
        });
        self.spend(at, &Used::turn());
        Ok(())
    }

    /// The item that the turn leaves has had its turn; the one that it is about from here on pays for it, too. An item that
    /// the turn made has changed by that.
    pub(super) fn turn_bound(&mut self, fact: &TurnBound, at: Time) -> Applied {
        self.spend_time(at);
        let left = self.running_turn(&fact.exec_id)?.clone();
        let Some(item) = self.planes.work.open(&fact.work_item_id) else {
            return Err(format!("{} is not an open work item", fact.work_item_id));
        };
        let progressed = item.order > left.seq;
        self.count_item_turn(&left, false, at)?;
        let turn = self.running_turn(&fact.exec_id)?;
        turn.item = Some(BoundItem { work_item_id: fact.work_item_id.clone(), progressed });
        self.planes.work.edit(&fact.work_item_id, |item| item.used.add(&Used::turn()))?;
        self.planes.update_standing(&fact.work_item_id);
        Ok(())
    }

    pub(super) fn running_turn(&mut self, exec: &ExecId) -> Result<&mut Turn, String> {
        self.turns.current.as_mut().filter(|turn| turn.exec_id == *exec).ok_or_else(|| format!("{exec} does not run"))
    }

    /// The carried state stands until a provider replaces it.
    pub(super) fn set_carry(&mut self, carry: Option<&ProviderState>) {
        if let Some(carry) = carry {
            self.models.carry = Some(carry.clone());
        }
    }

    pub(super) fn assistant_round(&mut self, fact: &AssistantRoundRecorded) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?;
        if turn.phase != Phase::Model || turn.round != fact.round {
            return Err(format!("round {} is not under way", fact.round));
        }
        turn.rounds.record(fact);
        turn.phase = if fact.calls.is_empty() {
            Phase::Safe { ends_turn: false }
        } else {
            Phase::Tools { running: BTreeMap::new(), waiting: fact.calls.clone(), ends_turn: false }
        };
        let message = turn.message_id.clone();
        self.planes.queue.edit(&message, |entry| entry.crashes_since_round = 0);
        Ok(())
    }

    pub(super) fn tool_started(&mut self, fact: &ToolStarted) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?;
        let Phase::Tools { running, waiting, .. } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        let Some(index) = waiting.iter().position(|call| call.call_id == fact.call_id) else {
            return Err(format!("{} was not asked for, or has begun already", fact.call_id));
        };
        let call = waiting.remove(index);
        running.insert(call.call_id.clone(), call);
        self.turns.tool_executions += 1;
        Ok(())
    }

    pub(super) fn tool_finished(&mut self, fact: &ToolFinished, at: Time) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?;
        let Phase::Tools { running, ends_turn, .. } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        let Some(call) = running.remove(&fact.call_id) else {
            return Err(format!("{} is not running", fact.call_id));
        };
        *ends_turn |= fact.ends_turn;
        let message = turn.message_id.clone();
        let known = fact.status != ToolStatus::Unknown;
        self.planes.queue.edit(&message, |entry| {
            if fact.repeated {
                entry.guard.record_refused();
            } else if fact.cut {
                entry.guard.record_truncated();
            } else if known {
                let result = result_hash(fact.status.as_str(), &fact.result);
                entry.guard.record_result(call_hash(&call.tool, &call.input), result);
            }
        });
        if fact.status == ToolStatus::Unknown {
            let (call_id, tool) = (fact.call_id.clone(), fact.tool.clone());
            self.turns.add_unknown_call(UnknownCall { call_id, tool, at, seq: self.seq });
        }
        Ok(())
    }

    /// Records the call that made a task. The call is still in progress.
    pub(super) fn remember_call(&mut self, fact: &TaskCreated) {
        let Some(Turn { phase: Phase::Tools { running, .. }, .. }) = &self.turns.current else { return };
        let call = fact.call_id.as_ref().and_then(|id| running.get(id));
        let call = call.map(|call| call_hash(&call.tool, &call.input));
        self.planes.tasks.edit(&fact.task_id, |task| task.call = call);
    }

    pub(super) fn turn_aborted(&mut self, fact: &TurnAborted, at: Time) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?.clone();
        // The duration of a turn that was cut off is unknown: the process may have been gone for days.
        if fact.reason != AbortReason::Cut && !fact.process_ended {
            self.spend_time(at);
        }
        // A message that will be taken again has not been worked through: only a real end counts as the item's tick.
        if fact.reason == AbortReason::Abort {
            self.count_turn(&turn, None, at)?;
        }
        self.end_turn(TerminalKind::Aborted, None);
        Ok(())
    }

    pub(super) fn turn_terminal(&mut self, fact: &TurnTerminal, at: Time) -> Applied {
        let turn = self.running_turn(&fact.exec_id)?.clone();
        self.spend_time(at);
        // As above: an unreachable provider says nothing about the work.
        if !fact.returned {
            self.count_turn(&turn, fact.tree.as_deref(), at)?;
        } else if turn.rounds.count == 0 {
            self.uncount_turn();
        }
        self.update_unanswered(&turn, fact);
        self.end_turn(fact.terminal_kind, fact.error.as_deref());
        self.turns.last_terminal.iter_mut().for_each(|last| last.is_truncated = fact.cut);
        if self.definition.identity.supervisor.is_some() && !fact.returned {
            self.turns.last_text = fact.error.clone().or_else(|| fact.last_assistant_message.clone());
        }
        if fact.terminal_kind == TerminalKind::Completed {
            self.lifecycle.runtime_error = None;
            self.turns.unknown_calls.clear();
        }
        Ok(())
    }

    pub(super) fn end_turn(&mut self, kind: TerminalKind, error: Option<&str>) {
        self.turns.current = None;
        let error = error.map(|text| limits::clip(text, limits::MODEL_ERROR_BYTES).to_owned());
        let (turn_index, seq) = (self.turns.last_index, self.seq);
        self.turns.last_terminal =
            Some(LastTerminal { turn_index, kind, seq, superseded: false, is_truncated: false, error });
    }

    /// A turn about an item counts as its tick.
    pub(super) fn count_turn(&mut self, turn: &Turn, tree: Option<&str>, at: Time) -> Applied {
        let tree_changed = tree.is_some() && self.turns.last_tree.as_deref() != tree;
        if let Some(tree) = tree {
            self.turns.last_tree = Some(tree.to_owned());
        }
        let message = self.planes.queue.get(&turn.message_id).map(|entry| &entry.message);
        if message.is_some_and(|message| message.is_work_tick()) {
            self.planes.work.count_vain_tick();
        }
        self.count_item_turn(turn, tree_changed, at)
    }

    fn count_item_turn(&mut self, turn: &Turn, tree_changed: bool, at: Time) -> Applied {
        let message = self.planes.queue.get(&turn.message_id).map(|entry| &entry.message);
        let by_operator = message.is_some_and(|message| message.kind() == MessageKind::OperatorPrompt);
        let Some(id) = turn.work_item_id().cloned().filter(|id| self.planes.work.open(id).is_some()) else {
            return Ok(());
        };
        let progressed = tree_changed || turn.item.as_ref().is_some_and(|item| item.progressed);
        self.planes.work.edit(&id, |item| item.ticks.record_turn_end(progressed, by_operator, at))?;
        self.planes.update_standing(&id);
        Ok(())
    }
}
