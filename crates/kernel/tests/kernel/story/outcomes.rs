//! The outcomes of messages as a reader sees them: from the state while a message lives there, then from its row.

use std::collections::{BTreeMap, BTreeSet};

use abide_kernel::AgentState;
use abide_kernel::id::MessageId;
use abide_kernel::outcome::{LINKS_MAX, MessageOutcome, MessageRow, Settled, live, with_joined};
use abide_kernel::read_rows::Row;
use abide_kernel::time::Time;
use abide_kernel::views::message::BriefView;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Outcomes {
    rows: BTreeMap<(&'static str, String), Value>,
    /// Messages that had left the state when it was looked at last.
    settled: BTreeMap<String, MessageOutcome>,
}

/// A JSON merge patch, as the ledger applies it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let fields = target.as_object_mut().unwrap();
    for (name, value) in members {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

impl Outcomes {
    pub fn merge(&mut self, row: &Row, at: Time) {
        if matches!(row.plane, "messages" | "briefs") {
            let stored = self.rows.entry((row.plane, row.id.clone())).or_insert(Value::Null);
            merge(stored, &row.patch);
            if row.plane == "briefs" {
                stored["at"] = json!(at);
            }
        }
    }

    pub fn of(&self, state: &AgentState, now: Time, id: &MessageId) -> MessageOutcome {
        let (mut id, mut joined) = (id.clone(), None);
        for _ in 0..LINKS_MAX {
            let found = match live(state, now, &id) {
                Some(outcome) => Settled::Outcome(outcome),
                None => self.settled(state, &id),
            };
            match (found, &joined) {
                (Settled::Outcome(outcome), None) => return outcome,
                (Settled::Outcome(outcome), Some(joined)) => return with_joined(outcome, joined),
                (Settled::OutcomeOf(other), _) => {
                    joined = Some(other.clone());
                    id = other;
                }
            }
        }
        panic!("{id} is linked in a circle")
    }

    fn settled(&self, state: &AgentState, id: &MessageId) -> Settled {
        let row = self.rows.get(&("messages", id.to_string())).unwrap_or_else(|| panic!("no row of {id}"));
        let row: MessageRow = serde_json::from_value(row.clone()).unwrap();
        let briefs: Vec<BriefView> = row
            .briefs()
            .map(|brief| serde_json::from_value(self.rows[&("briefs", brief.to_string())].clone()).unwrap())
            .collect();
        row.settled(state.id(), &briefs)
    }

    /// Every message that has left the state is settled, and stays as it is.
    pub fn check(&mut self, state: &AgentState, now: Time) {
        let messages: BTreeSet<MessageId> = self
            .rows
            .keys()
            .filter(|(plane, _)| *plane == "messages")
            .map(|(_, id)| MessageId::new(id.clone()))
            .collect();
        for id in messages {
            let outcome = self.of(state, now, &id);
            if let Some(before) = self.settled.get(id.as_str()) {
                assert_eq!(*before, outcome, "{id} was settled before");
            }
            let is_over = match live(state, now, &id) {
                None => !outcome.is_under_way(),
                Some(_) => false,
            };
            if is_over && !waits_for_somebody(&outcome) {
                self.settled.insert(id.to_string(), outcome);
            }
        }
    }

    /// `answered: hello`, `failed invalid: invalid: no`, `under way, joined m1, on wait1`.
    pub fn show(&self, state: &AgentState, now: Time, id: &MessageId) -> String {
        match self.of(state, now, id) {
            MessageOutcome::Answered { answer, cut } => {
                let cut = if cut { " (cut)" } else { "" };
                format!("answered{cut}: {}", answer.unwrap_or_else(|| self.result(id)))
            }
            MessageOutcome::Failed { error, class, hint } => {
                assert!(!hint.is_empty());
                let class = class.map(|class| format!(" {class}")).unwrap_or_default();
                format!("failed{class}: {error}")
            }
            MessageOutcome::WaitsForPerson { question, class } => {
                let class = class.map(|class| format!(" {class}")).unwrap_or_default();
                format!("waits for a person{class}: {question}")
            }
            MessageOutcome::BudgetSpent { sentence, class } => {
                let class = class.map(|class| format!(" {class}")).unwrap_or_default();
                format!("budget spent{class}: {sentence}")
            }
            MessageOutcome::Stopped { sentence } => format!("stopped: {sentence}"),
            MessageOutcome::Aborted {} => "aborted".to_owned(),
            MessageOutcome::UnderWay { sentence, joined, waiting_on, delay } => {
                let joined = joined.map(|joined| format!(", joined {joined}")).unwrap_or_default();
                let on = waiting_on.map(|wait| format!(", on {wait}")).unwrap_or_default();
                let sentence = delay.map_or(sentence, |delay| delay.sentence);
                format!("under way{joined}{on}: {sentence}")
            }
        }
    }

    fn result(&self, id: &MessageId) -> String {
        let mut id = id.to_string();
        for _ in 0..LINKS_MAX {
            let row = &self.rows[&("messages", id.clone())];
            match row["outcome_of"].as_str() {
                Some(other) => id = other.to_owned(),
                None => {
                    let brief = row["briefs"]["result"].as_str().map(|brief| &self.rows[&("briefs", brief.to_owned())]);
                    return brief.and_then(|brief| brief["text"].as_str()).unwrap_or("-").to_owned();
                }
            }
        }
        panic!("{id} is linked in a circle")
    }
}

/// A message that joined another one may have left the state before that one, and wait with it.
fn waits_for_somebody(outcome: &MessageOutcome) -> bool {
    matches!(
        outcome,
        MessageOutcome::WaitsForPerson { .. } | MessageOutcome::BudgetSpent { .. } | MessageOutcome::Stopped { .. }
    )
}
