//! Text as it is spoken, put between the facts of a stream: after those that its round began with, before the one that
//! ends its round. It has no id, so nobody resumes at it; what is lost of it is in the facts.

use std::collections::VecDeque;
use std::sync::Arc;

use abide_api::types::{Event, TextDelta};
use abide_engine::Deltas;
use abide_engine::deltas::{Delta, Listener};
use abide_kernel::id::AgentId;

/// Pieces that one follower may have waiting while it reads facts. The oldest go first.
const WAITING_MAX: usize = 256;

pub(super) struct PendingText {
    listener: Listener,
    waiting: VecDeque<Arc<Delta>>,
    /// Each event says whose text it is, because the stream is of several.
    named: bool,
}

impl PendingText {
    pub(super) fn of(deltas: &Deltas, agent: Option<&AgentId>) -> PendingText {
        PendingText { listener: deltas.listen(agent), waiting: VecDeque::new(), named: agent.is_none() }
    }

    /// Takes in what was said by now, and says how much is waiting. Facts that are read after this have everything that
    /// came before it.
    pub(super) fn catch_up(&mut self) -> usize {
        while let Some(delta) = self.listener.take() {
            self.keep(delta);
        }
        self.waiting.len()
    }

    /// Waits for something to be said.
    pub(super) async fn more(&mut self) {
        let delta = self.listener.next().await;
        self.keep(delta);
    }

    fn keep(&mut self, delta: Arc<Delta>) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(delta);
    }

    /// Writes the text that comes before this fact: the rest of the round, or of the turn, that it ends.
    pub(super) fn before(&mut self, event: &Event, text: &mut String) {
        if self.waiting.is_empty() {
            return;
        }
        let data = &event.data;
        let last = match event.kind.as_str() {
            "turn.provider_round_completed" | "turn.provider_round_failed" | "turn.assistant_round_recorded" => {
                data["round"].as_u64()
            }
            "turn.terminal" | "exec.aborted" => Some(u64::MAX),
            _ => None,
        };
        let Some(last) = last else { return };
        let ended = |delta: &Delta| {
            delta.agent.as_str() == event.agent_id
                && data["exec_id"] == delta.exec_id.as_str()
                && u64::from(delta.round) <= last
        };
        let (said, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|delta| ended(delta));
        self.waiting = waiting;
        self.write(said, text);
    }

    /// The first so many of what is waiting.
    pub(super) fn write_waiting(&mut self, count: usize, text: &mut String) {
        let said = self.waiting.drain(..count.min(self.waiting.len())).collect();
        self.write(said, text);
    }

    /// Pieces of one round become one event: a reader that falls behind gets fewer and longer ones.
    fn write(&self, said: VecDeque<Arc<Delta>>, text: &mut String) {
        let mut said = said.into_iter().peekable();
        while let Some(first) = said.next() {
            let same = |next: &Arc<Delta>| {
                (&next.agent, &next.exec_id, next.round) == (&first.agent, &first.exec_id, first.round)
            };
            let mut whole = first.text.clone();
            while let Some(next) = said.next_if(same) {
                whole.push_str(&next.text);
            }
            let delta = TextDelta {
                agent_id: self.named.then(|| first.agent.to_string()),
                exec_id: first.exec_id.to_string(),
                round: first.round,
                text: whole,
            };
            let delta = serde_json::to_string(&delta).unwrap_or_default();
            text.push_str(&format!("event: {}\ndata: {delta}\n\n", TextDelta::EVENT));
        }
    }
}
