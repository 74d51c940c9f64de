//! The usage so far of calls under way. A call that is ended from outside can't report it any more, and its provider
//! charges for it all the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abide_effects::model::remote::{Prices, UsageSoFar};
use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::input::Input;

/// By agent: one call of an agent is under way at a time, and its next one takes its place.
#[derive(Debug, Clone, Default)]
pub struct OpenCalls(Arc<Mutex<HashMap<AgentId, OpenCall>>>);

#[derive(Debug)]
pub(super) struct OpenCall {
    pub exec_id: ExecId,
    pub round: u32,
    pub usage: Arc<UsageSoFar>,
    /// The estimated size of the prompt.
    pub sent_tokens: u64,
    pub prices: Option<Prices>,
}

impl OpenCalls {
    pub(super) fn open(&self, agent: &AgentId, open: OpenCall) {
        self.lock().insert(agent.clone(), open);
    }

    /// The call came to its end, and said itself what it took.
    pub(super) fn close(&self, agent: &AgentId) {
        self.lock().remove(agent);
    }

    /// The inputs to be recorded for a call that was ended.
    pub fn cut_off(&self, agent: &AgentId, exec_id: &ExecId) -> Vec<Input> {
        let mut open = self.lock();
        if open.get(agent).is_none_or(|open| open.exec_id != *exec_id) {
            return Vec::new();
        }
        let Some(OpenCall { exec_id, round, usage, sent_tokens, prices }) = open.remove(agent) else {
            return Vec::new();
        };
        let spent = usage.spent(|| sent_tokens, prices);
        spent.into_iter().map(|spent| Input::CountCutRound { exec_id: exec_id.clone(), round, spent }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, OpenCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
