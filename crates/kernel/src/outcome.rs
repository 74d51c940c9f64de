//! The outcome of a message, decided in this one place. A message that lives in the state is explained from the state and
//! the decision, as `why` is; one that has left it, from its row, which the facts that settled it have written.

use std::collections::BTreeMap;

use abide_views::message::BriefView;
pub use abide_views::outcome::{MessageDelay, MessageOutcome};
use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::explain::{until_asked_again, why};
use crate::id::{AgentId, BriefId, MessageId};
use crate::provider;
use crate::scheduler::continuation::{Classification, classify_entry};
use crate::scheduler::decide;
use crate::state::AgentState;
use crate::state::queue::Entry;
use crate::state::waiting::Wait;
use crate::time::Time;
use crate::vocabulary::{BriefKind, DecisionKind, ProviderError, QueueStatus, Reason, Status, TerminalKind, WaitKind};

/// How many messages in a row may have their outcome from the next one. Chains are short: interjections of messages that
/// became interjections themselves.
pub const LINKS_MAX: usize = 16;

/// The answer of a turn that went on after a wait and ended without a word.
const NOTHING_SAID: &str = "(It went on, and said nothing.)";

/// The outcome of a message that lives in the state. None for one that has left it, or was never there.
#[must_use]
pub fn live(state: &AgentState, now: Time, id: &MessageId) -> Option<MessageOutcome> {
    let entry = state.planes.queue.get(id);
    if let Some(joined) = entry.and_then(|entry| entry.joined.as_ref()) {
        return live(state, now, joined).map(|outcome| with_joined(outcome, joined));
    }
    if entry.is_none() && !state.turns.unanswered.contains(id) {
        return None;
    }
    Some(LiveMessage { state, now, id, entry }.outcome())
}

/// The outcome of a message that joined another one, from the outcome of that one.
#[must_use]
pub fn with_joined(outcome: MessageOutcome, message: &MessageId) -> MessageOutcome {
    match outcome {
        MessageOutcome::UnderWay { sentence, joined: _, waiting_on, delay } => {
            MessageOutcome::UnderWay { sentence, joined: Some(message.clone()), waiting_on, delay }
        }
        settled @ (MessageOutcome::Answered { .. }
        | MessageOutcome::Failed { .. }
        | MessageOutcome::WaitsForPerson { .. }
        | MessageOutcome::BudgetSpent { .. }
        | MessageOutcome::Stopped { .. }
        | MessageOutcome::Aborted {}) => settled,
    }
}

/// A message in the queue, or one whose answer was put off.
struct LiveMessage<'a> {
    state: &'a AgentState,
    now: Time,
    id: &'a MessageId,
    entry: Option<&'a Entry>,
}

impl LiveMessage<'_> {
    fn outcome(&self) -> MessageOutcome {
        let (state, id) = (self.state, self.id);
        let agent = state.id();
        if state.lifecycle.archived {
            return MessageOutcome::Stopped { sentence: format!("{agent} was deleted before it had answered {id}") };
        }
        if state.status() == Status::Stopped {
            let sentence =
                format!("{agent} is stopped; {id} is kept, and read once it starts: `abide agent start {agent}`");
            return MessageOutcome::Stopped { sentence };
        }
        let decision = decide(state, self.now);
        let sentence = why(state, decision.clone()).sentence;
        if self.has_turn() {
            return MessageOutcome::UnderWay { sentence, joined: None, waiting_on: None, delay: None };
        }
        if let Some(held) = self.held(&decision, &sentence) {
            return held;
        }
        match self.waits().find(|wait| wait.kind == WaitKind::Operator) {
            Some(wait) => {
                MessageOutcome::WaitsForPerson { question: self.question(wait, &decision, sentence), class: None }
            }
            None if self.is_forsaken(&decision) => MessageOutcome::WaitsForPerson { question: sentence, class: None },
            None => {
                let waiting_on =
                    self.waits().next().map(|wait| wait.waiting_intent_id.clone()).or_else(|| self.parked());
                let delay = self.delay(&decision, &sentence);
                MessageOutcome::UnderWay { sentence, joined: None, waiting_on, delay }
            }
        }
    }

    /// Whether the running turn is about it, or owes it the answer.
    fn has_turn(&self) -> bool {
        let is_its = |turn: &crate::state::turn::Turn| turn.message_id == *self.id || turn.answers() == Some(self.id);
        self.state.turns.current.as_ref().is_some_and(is_its)
    }

    /// The waits that stand before its answer. One that is in the queue may have waits of an earlier try.
    fn waits(&self) -> impl Iterator<Item = &Wait> {
        let is_put_off = self.entry.is_none();
        self.state.planes.waits.open().values().filter(move |wait| is_put_off && wait.answers.as_ref() == Some(self.id))
    }

    /// A message that brings its answer.
    fn carrier(&self) -> Option<&Entry> {
        let brings =
            |entry: &&Entry| entry.answers.as_ref() == Some(self.id) || entry.message.answers() == Some(self.id);
        self.entry.or_else(|| self.state.planes.queue.entries().find(brings))
    }

    /// Whether its answer was put off, nothing brings it, and its agent waits for a person.
    fn is_forsaken(&self, decision: &Decision) -> bool {
        decision.kind == DecisionKind::WaitForOperator && self.waits().next().is_none() && self.carrier().is_none()
    }

    /// The question that a person has to answer before it goes on.
    fn question(&self, wait: &Wait, decision: &Decision, sentence: String) -> String {
        match decision.kind {
            DecisionKind::WaitForOperator => sentence,
            DecisionKind::WaitForTask
            | DecisionKind::WaitForExternalChange
            | DecisionKind::WaitForTimer
            | DecisionKind::StartModelTurn
            | DecisionKind::ReduceMessageOnly
            | DecisionKind::EmitSystemTick
            | DecisionKind::Sleep
            | DecisionKind::StayIdle
            | DecisionKind::Stop
            | DecisionKind::Noop => format!("{} waits for your answer: {}", self.state.id(), wait.reason),
        }
    }

    fn parked(&self) -> Option<crate::id::WaitId> {
        let entry = self.entry.filter(|entry| entry.status == QueueStatus::Parked)?;
        match classify_entry(self.state, entry) {
            Classification::Park { behind, .. } => behind.into_iter().next(),
            Classification::Reenter { .. } | Classification::Reduce { .. } => None,
        }
    }

    /// No turn of the agent starts before a person has acted or another day begins. The budget of a work item holds back
    /// no turn that a message starts.
    fn held(&self, decision: &Decision, sentence: &str) -> Option<MessageOutcome> {
        let sentence = sentence.to_owned();
        if decision.reason == Reason::HomeBudgetSpent {
            return Some(MessageOutcome::BudgetSpent { sentence, class: Some(ProviderError::HomeBudgetSpent) });
        }
        if decision.reason == Reason::ModelKey {
            return Some(MessageOutcome::WaitsForPerson { question: sentence, class: Some(ProviderError::Auth) });
        }
        let holds_this = decision.work_item_id.is_none() || self.is_forsaken(decision);
        let is_spent = decision.reason == Reason::BudgetSpent && holds_this;
        is_spent.then_some(MessageOutcome::BudgetSpent { sentence, class: None })
    }

    fn delay(&self, decision: &Decision, sentence: &str) -> Option<MessageDelay> {
        if decision.reason == Reason::DiskReserve {
            let delay_id = Reason::DiskReserve.to_string();
            return Some(MessageDelay { delay_id, until: None, sentence: sentence.to_owned() });
        }
        let until = self.carrier()?.not_before.filter(|until| *until > self.now)?;
        let agent = self.state.id();
        let sentence = until_asked_again(self.state, until)
            .unwrap_or_else(|| format!("{agent} waits until {until} and tries again then."));
        let delay_id = format!("{}-{}", Reason::ProviderBackoff, until.as_ms());
        Some(MessageDelay { delay_id, until: Some(until), sentence })
    }
}

/// The row of a message, as far as it says what the message came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    pub status: QueueStatus,
    #[serde(default)]
    given_up: bool,
    /// Why it was dropped.
    #[serde(default)]
    dropped: Vec<String>,
    /// The message whose outcome is its own, too.
    #[serde(default)]
    outcome_of: Option<MessageId>,
    #[serde(default)]
    turn: Option<LastTurn>,
    #[serde(default)]
    briefs: BTreeMap<BriefKind, BriefId>,
}

/// The last turn about it, where that is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LastTurn {
    terminal_kind: TerminalKind,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    said: Option<String>,
    #[serde(default)]
    cut: bool,
}

/// The outcome of a message that has left the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Outcome(MessageOutcome),
    /// It ends, or has ended, as this one does.
    OutcomeOf(MessageId),
}

impl MessageRow {
    /// The briefs about it: the newest of each kind.
    pub fn briefs(&self) -> impl Iterator<Item = &BriefId> {
        self.briefs.values()
    }

    /// The outcome of a message that is no longer in the state; `briefs` are those that the row names. An answer comes
    /// first: whatever its waits brought later, it stays answered.
    #[must_use]
    pub fn settled(&self, agent: &AgentId, briefs: &[BriefView]) -> Settled {
        if let Some(message) = &self.outcome_of {
            return Settled::OutcomeOf(message.clone());
        }
        let brief = |kind: BriefKind| briefs.iter().rev().find(|brief| brief.kind == kind);
        let failure = brief(BriefKind::Failure).map(|brief| brief.text.clone());
        let asked =
            || failure.clone().unwrap_or_else(|| format!("The message was given up; `abide why {agent}` says more."));
        Settled::Outcome(match self.status {
            QueueStatus::Aborted if self.given_up => MessageOutcome::WaitsForPerson { question: asked(), class: None },
            QueueStatus::Aborted => MessageOutcome::Aborted {},
            QueueStatus::Dropped => {
                failed(agent, format!("The message was dropped: {}.", self.dropped.join(", ")), None)
            }
            QueueStatus::Queued
            | QueueStatus::Dequeued
            | QueueStatus::Parked
            | QueueStatus::Interjected
            | QueueStatus::Processed => match (brief(BriefKind::Result), &self.turn, failure) {
                (Some(result), _, _) => MessageOutcome::Answered { answer: None, cut: result.cut },
                (None, Some(turn), failure) => turn.outcome(agent, failure),
                (None, None, Some(failure)) => {
                    let class = provider::class_of(&failure);
                    failed(agent, failure, class)
                }
                (None, None, None) => MessageOutcome::Answered { answer: None, cut: false },
            },
        })
    }
}

impl LastTurn {
    fn outcome(&self, agent: &AgentId, failure: Option<String>) -> MessageOutcome {
        let Some(error) = failure.or_else(|| self.error.clone()) else {
            let answer = Some(self.said.clone().unwrap_or_else(|| NOTHING_SAID.to_owned()));
            return MessageOutcome::Answered { answer, cut: self.cut };
        };
        let class = match self.terminal_kind {
            // The runtime ended it, and asks a person how it should go on.
            TerminalKind::Aborted => return MessageOutcome::WaitsForPerson { question: error, class: None },
            TerminalKind::BaselineOverBudget => Some(ProviderError::ContextLength),
            TerminalKind::Completed | TerminalKind::ProviderFailed | TerminalKind::DeferredToFallback => {
                provider::class_of(&error)
            }
        };
        failed(agent, error, class)
    }
}

fn failed(agent: &AgentId, error: String, class: Option<ProviderError>) -> MessageOutcome {
    let hint = suggest_action(agent, class);
    MessageOutcome::Failed { error, class, hint }
}

/// The next step for a person after a failure of this class.
fn suggest_action(agent: &AgentId, class: Option<ProviderError>) -> String {
    let another = format!("`abide agent set {agent} --model M`");
    match class {
        Some(
            ProviderError::RateLimited
            | ProviderError::Overloaded
            | ProviderError::Timeout
            | ProviderError::Disconnect
            | ProviderError::System,
        ) => format!("send it again later, or choose another model: {another}"),
        Some(ProviderError::ContextLength) => {
            format!("send less at a time, or choose a model with a larger window: {another}")
        }
        Some(ProviderError::Refusal) => format!("say it in other words, or choose another model: {another}"),
        Some(ProviderError::Auth) => {
            format!("set the key of its provider and `abide daemon restart`, or choose another model: {another}")
        }
        Some(ProviderError::Invalid) => {
            format!("`abide model test` shows whether the model works; {another} chooses another one")
        }
        Some(ProviderError::Unpriced) => {
            format!("set the model's price in config.toml, or choose another model: {another}")
        }
        Some(ProviderError::HomeBudgetSpent) => {
            "raise the budget: `abide config set budget.daily_usd N`, then `abide daemon restart`".to_owned()
        }
        None => format!("`abide transcript {agent}` shows what happened; send it again once that is mended"),
    }
}
