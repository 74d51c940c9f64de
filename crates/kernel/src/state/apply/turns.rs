//! What facts about turns change.

use super::Applied;
use crate::budget::Used;
use crate::fact::{
    AssistantRoundRecorded, TaskCreated, ToolFinished, ToolStarted, TurnAborted, TurnBound, TurnStarted, TurnTerminal,
};
use crate::id::ExecId;
use crate::limits;
use crate::state::guard::{call_hash, result_hash};
use crate::state::lifecycle::Control;
use crate::state::turn::{LastTerminal, Phase, Turn, UnknownCall};
use crate::state::{AgentState, LastTrigger};
use crate::time::Time;
use crate::vocabulary::{AbortReason, MessageKind, QueueStatus, TerminalKind, ToolStatus};

impl AgentState {
    pub(super) fn turn_started(&mut self, fact: &TurnStarted, at: Time) -> Applied {
        if self.turn.is_some() {
            return Err("a turn is running".to_owned());
        }
        if self.control != Control::Runnable {
            return Err("the agent is not running".to_owned());
        }
        if fact.turn_index != self.turn_index + 1 {
            return Err(format!("turn {} does not follow turn {}", fact.turn_index, self.turn_index));
        }
        let entry = self.queue.get(&fact.message_id).filter(|entry| entry.status == QueueStatus::Dequeued);
        let entry = entry.ok_or_else(|| format!("{} was not taken", fact.message_id))?;
        let (message, again) = (entry.message.clone(), entry.taken > 1);
        if message.self_caused && !again {
            self.pace.count(at, self.limits.self_turns_per_hour);
        }
        self.work.turn_starts(message.is_work_tick());
        self.last_trigger =
            Some(LastTrigger { kind: fact.continuation.trigger_kind, work_tick: message.is_work_tick() });
        self.last_continuation = Some(fact.continuation.clone());
        self.queue.edit(&fact.message_id, |entry| {
            entry.continuation = Some(fact.continuation.clone());
            entry.answers = fact.answers.clone();
        });
        self.turn_index = fact.turn_index;
        self.resting = false;
        self.spending.begin_day(at);
        let model = self.model_for(&fact.message_id, at).to_owned();
        self.turn = Some(Turn {
            turn_id: fact.turn_id.clone(),
            exec_id: fact.exec_id.clone(),
            turn_index: fact.turn_index,
            message_id: fact.message_id.clone(),
            model,
            work_item_id: fact.work_item_id.clone(),
            continuation: fact.continuation.clone(),
            answers: fact.answers.clone(),
            puts_off: false,
            presents: fact.presents.clone(),
            started_at: at,
            counted_to: at,
            counted_on: self.spending.day,
            seq: self.seq,
            round: 0,
            rounds_recorded: 0,
            phase: Phase::Safe,
            ends: false,
            unheard: false,
            last_text: None,
            answered: Vec::new(),
            silent: 0,
            acted: false,
            cut: false,
            checkpoint: None,
            progressed: false,
        });
        self.spend(at, &Used::turn());
        Ok(())
    }

    /// The item that the turn leaves has had its turn; the one that it is about from here on pays for it, too. An item that
    /// the turn made has changed by that.
    pub(super) fn turn_bound(&mut self, fact: &TurnBound, at: Time) -> Applied {
        self.spend_time(at);
        let left = self.turn_of(&fact.exec_id)?.clone();
        let Some(item) = self.work.open(&fact.work_item_id) else {
            return Err(format!("{} is not an open work item", fact.work_item_id));
        };
        let progressed = item.order > left.seq;
        self.count_item_turn(&left, left.progressed, at)?;
        let turn = self.turn_of(&fact.exec_id)?;
        turn.work_item_id = Some(fact.work_item_id.clone());
        turn.progressed = progressed;
        self.work.edit(&fact.work_item_id, |item| item.used.add(&Used::turn()))?;
        self.restand(&fact.work_item_id);
        Ok(())
    }

    pub(super) fn turn_of(&mut self, exec: &ExecId) -> Result<&mut Turn, String> {
        self.turn.as_mut().filter(|turn| turn.exec_id == *exec).ok_or_else(|| format!("{exec} does not run"))
    }

    /// What a provider wants back stands until one says otherwise.
    pub(super) fn carry_over(&mut self, carry: Option<&serde_json::Value>) {
        if let Some(carry) = carry {
            self.carry = Some(carry.clone());
        }
    }

    pub(super) fn assistant_round(&mut self, fact: &AssistantRoundRecorded) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        if turn.phase != Phase::Model || turn.round != fact.round {
            return Err(format!("round {} is not under way", fact.round));
        }
        turn.rounds_recorded += 1;
        turn.unheard = false;
        turn.silent = if fact.is_silent() { turn.silent + 1 } else { 0 };
        turn.cut = fact.cut;
        turn.acted |= !fact.calls.is_empty();
        if !fact.text.trim().is_empty() {
            turn.last_text = Some(fact.text.clone());
        }
        turn.phase = if fact.calls.is_empty() {
            Phase::Safe
        } else {
            Phase::Tools { running: std::collections::BTreeMap::new(), waiting: fact.calls.clone() }
        };
        let message = turn.message_id.clone();
        self.queue.edit(&message, |entry| entry.crashes_since_round = 0);
        Ok(())
    }

    pub(super) fn tool_started(&mut self, fact: &ToolStarted) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        let Phase::Tools { running, waiting } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        let Some(index) = waiting.iter().position(|call| call.call_id == fact.call_id) else {
            return Err(format!("{} was not asked for, or has begun already", fact.call_id));
        };
        let call = waiting.remove(index);
        running.insert(call.call_id.clone(), call);
        self.tool_executions += 1;
        Ok(())
    }

    pub(super) fn tool_finished(&mut self, fact: &ToolFinished, at: Time) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?;
        let Phase::Tools { running, .. } = &mut turn.phase else {
            return Err("no calls are open".to_owned());
        };
        let Some(call) = running.remove(&fact.call_id) else {
            return Err(format!("{} is not running", fact.call_id));
        };
        turn.ends |= fact.ends_turn;
        let message = turn.message_id.clone();
        let known = fact.status != ToolStatus::Unknown;
        self.queue.edit(&message, |entry| {
            if fact.repeated {
                entry.guard.refuse();
            } else if fact.cut {
                entry.guard.cut_off();
            } else if known {
                let result = result_hash(fact.status.as_str(), &fact.result);
                entry.guard.finished(call_hash(&call.tool, &call.input), result);
            }
        });
        if fact.status == ToolStatus::Unknown {
            if self.unknown_calls.len() == limits::RECENT_MAX {
                self.unknown_calls.pop_front();
            }
            let (call_id, tool) = (fact.call_id.clone(), fact.tool.clone());
            self.unknown_calls.push_back(UnknownCall { call_id, tool, at, seq: self.seq });
        }
        Ok(())
    }

    /// Which call a task comes out of: the call is still under way.
    pub(super) fn remember_call(&mut self, fact: &TaskCreated) {
        let Some(Turn { phase: Phase::Tools { running, .. }, .. }) = &self.turn else { return };
        let call = fact.call_id.as_ref().and_then(|id| running.get(id));
        let call = call.map(|call| call_hash(&call.tool, &call.input));
        self.tasks.edit(&fact.task_id, |task| task.call = call);
    }

    pub(super) fn turn_aborted(&mut self, fact: &TurnAborted, at: Time) -> Applied {
        let turn = self.turn_of(&fact.exec_id)?.clone();
        // How long it ran before it was cut, nobody knows: the process may have been gone for days.
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
        let turn = self.turn_of(&fact.exec_id)?.clone();
        self.spend_time(at);
        // As above: a provider that could not be reached says nothing about the work.
        if !fact.returned {
            self.count_turn(&turn, fact.tree.as_deref(), at)?;
        } else if turn.rounds_recorded == 0 {
            self.turn_in_vain();
        }
        self.put_off_answers(&turn, fact);
        self.end_turn(fact.terminal_kind, fact.error.as_deref());
        self.last_terminal.iter_mut().for_each(|last| last.cut = fact.cut);
        if self.identity.supervisor.is_some() && !fact.returned {
            self.last_said = fact.error.clone().or_else(|| fact.last_assistant_message.clone());
        }
        if fact.terminal_kind == TerminalKind::Completed {
            self.runtime_error = None;
            self.unknown_calls.clear();
        }
        Ok(())
    }

    pub(super) fn end_turn(&mut self, kind: TerminalKind, error: Option<&str>) {
        self.turn = None;
        let error = error.map(|text| limits::clip(text, limits::TROUBLE_BYTES).to_owned());
        let (turn_index, seq) = (self.turn_index, self.seq);
        self.last_terminal = Some(LastTerminal { turn_index, kind, seq, superseded: false, cut: false, error });
    }

    /// A turn about an item counts as its tick.
    pub(super) fn count_turn(&mut self, turn: &Turn, tree: Option<&str>, at: Time) -> Applied {
        let tree_changed = tree.is_some() && self.tree.as_deref() != tree;
        if let Some(tree) = tree {
            self.tree = Some(tree.to_owned());
        }
        let message = self.queue.get(&turn.message_id).map(|entry| &entry.message);
        if message.is_some_and(|message| message.is_work_tick()) {
            self.work.tick_ended();
        }
        self.count_item_turn(turn, turn.progressed || tree_changed, at)
    }

    fn count_item_turn(&mut self, turn: &Turn, progressed: bool, at: Time) -> Applied {
        let message = self.queue.get(&turn.message_id).map(|entry| &entry.message);
        let by_operator = message.is_some_and(|message| message.kind() == MessageKind::OperatorPrompt);
        let Some(id) = turn.work_item_id.clone().filter(|id| self.work.open(id).is_some()) else { return Ok(()) };
        self.work.edit(&id, |item| item.ticks.turn_ended(progressed, by_operator, at))?;
        self.restand(&id);
        Ok(())
    }
}
