//! Keys that do not work, and the agents whose turns this process holds.
//!
//! A key is tried by one call for the whole home: the calls of all other agents fail at once, without a request, until it
//! is time to try again. As soon as a call with the key succeeds, every agent that was held for it is released. None of
//! this is kept on disk: a new process holds nobody, and tries every key again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_effects::model::{Model, ProviderFailure};
use abide_engine::{AskError, Host};
use abide_kernel::Fact;
use abide_kernel::id::{AgentId, Seq};
use abide_kernel::input::Input;
use abide_kernel::limits::KEY_RETRY_MS;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{HoldCause, ProviderError, TerminalKind};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::announcement::Announcement;

/// Agents that are released at the same time.
const RELEASES_AT_ONCE: usize = 64;
/// How long to wait before an agent that could not be released is asked again.
const RELEASE_AGAIN: Duration = Duration::from_secs(1);

/// A cheap handle; clones share what is known.
#[derive(Debug, Clone, Default)]
pub struct KeyHolds(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<KeyTable>,
    /// Somebody is to be released.
    to_release: Notify,
}

#[derive(Debug, Default)]
struct KeyTable {
    /// Agents were held when this process started: each key is tried by one call before others use it.
    suspicious: bool,
    keys: HashMap<KeyName, KeyState>,
    /// Models that answered since this process started.
    answered: HashSet<String>,
    agents: HashMap<AgentId, AgentKeys>,
    to_release: BTreeSet<AgentId>,
}

/// The subject of a refusal: every model of a provider, or one model alone. A script has no provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KeyName {
    Provider(String),
    Model(String),
}

#[derive(Debug)]
enum KeyState {
    Works,
    Fails(FailingKey),
}

#[derive(Debug)]
struct FailingKey {
    failed_at: Instant,
    next_try: Instant,
    /// A call is under way that finds out.
    tried: bool,
    /// The words of the last refusal; empty before the first try.
    message: String,
    announcement: Announcement,
}

/// An agent, with the keys that failed since it was last released.
#[derive(Debug, Default)]
struct AgentKeys {
    failed: HashSet<KeyName>,
    held: bool,
}

/// A round that failed, and whether its agent is the one to tell the operator.
#[derive(Debug)]
pub struct RefusedCall {
    pub failure: ProviderFailure,
    pub announce: bool,
}

impl KeyHolds {
    /// `suspicious` where an earlier process left agents that were held.
    pub fn new(suspicious: bool) -> KeyHolds {
        let known = KeyTable { suspicious, ..KeyTable::default() };
        KeyHolds(Arc::new(Shared { known: Mutex::new(known), to_release: Notify::new() }))
    }

    /// The right to call a model. RefusedCall without a call where its key failed and it is not time to try it again.
    pub fn begin(&self, agent: &AgentId, model: &Model, now: Instant) -> Result<Attempt, RefusedCall> {
        let names = names(model);
        let mut known = self.lock();
        if known.suspicious
            && let Some(name @ KeyName::Provider(_)) = names.first()
        {
            known.keys.entry(name.clone()).or_insert_with(|| KeyState::Fails(FailingKey::untried(now)));
        }
        for name in &names {
            if let Some(KeyState::Fails(failing)) = known.keys.get_mut(name)
                && let Some(retry_after) = failing.keeps_back(now)
            {
                let refused = failing.refuse(agent, retry_after, now);
                known.agents.entry(agent.clone()).or_default().failed.insert(name.clone());
                return Err(refused);
            }
        }
        let mut trying = Vec::new();
        for name in &names {
            if let Some(KeyState::Fails(failing)) = known.keys.get_mut(name) {
                failing.tried = true;
                trying.push(name.clone());
            }
        }
        drop(known);
        Ok(Attempt { holds: self.clone(), agent: agent.clone(), model: model.to_string(), names, trying, began: now })
    }

    /// A call outside of any turn succeeded with this model.
    pub fn worked(&self, model: &Model, began: Instant) {
        self.mark_working(&names(model), &model.to_string(), began);
    }

    /// Whether this process holds the turns of an agent.
    pub fn holds(&self, agent: &AgentId) -> bool {
        self.lock().agents.get(agent).is_some_and(|agent| agent.held)
    }

    /// These facts of the agent are durable.
    #[allow(clippy::wildcard_enum_match_arm, reason = "other facts end no turn and hold none")]
    pub fn recorded(&self, agent: &AgentId, facts: &[(Seq, Time, Fact)]) {
        let mut ended = None;
        for (_, _, fact) in facts {
            match fact {
                Fact::TurnTerminal(fact) => ended = Some(fact.terminal_kind),
                Fact::TurnAborted(_) => ended = Some(TerminalKind::Aborted),
                Fact::TurnsHeld(fact) => {
                    ended = None;
                    self.record_hold(agent, fact.cause);
                }
                Fact::TurnsReleased(_) | Fact::AgentArchived(_) => drop(self.lock().agents.remove(agent)),
                _ => {}
            }
        }
        if let Some(kind) = ended {
            self.ended_unheld(agent, kind);
        }
    }

    fn record_hold(&self, agent: &AgentId, cause: HoldCause) {
        let mut known = self.lock();
        let entry = known.agents.entry(agent.clone()).or_default();
        entry.held = true;
        if cause != HoldCause::ModelKey {
            return;
        }
        let failed: Vec<KeyName> = entry.failed.iter().cloned().collect();
        let mut works = false;
        for name in &failed {
            match known.keys.get_mut(name) {
                Some(KeyState::Fails(failing)) => failing.announcement.settle(agent, true),
                // It has come to work between the refusal and this fact.
                Some(KeyState::Works) => works = true,
                None => {}
            }
        }
        if works {
            known.to_release.insert(agent.clone());
            drop(known);
            self.0.to_release.notify_one();
        }
    }

    /// A turn ended in another way than by a hold: the operator was told nothing of the keys that failed.
    fn ended_unheld(&self, agent: &AgentId, kind: TerminalKind) {
        let mut known = self.lock();
        let Some(entry) = known.agents.get_mut(agent).filter(|entry| !entry.held) else { return };
        let failed: Vec<KeyName> = entry.failed.iter().cloned().collect();
        if kind != TerminalKind::DeferredToFallback {
            known.agents.remove(agent);
        }
        for name in &failed {
            if let Some(KeyState::Fails(failing)) = known.keys.get_mut(name) {
                failing.announcement.settle(agent, false);
            }
        }
    }

    fn mark_working(&self, names: &[KeyName], model: &str, began: Instant) {
        let mut known = self.lock();
        if !known.answered.contains(model) {
            known.answered.insert(model.to_owned());
        }
        let mut changed = Vec::new();
        for name in names {
            match known.keys.get(name) {
                // It began before the key failed, and says nothing of now.
                Some(KeyState::Fails(failing)) if began < failing.failed_at => {}
                Some(KeyState::Fails(_)) => {
                    known.keys.insert(name.clone(), KeyState::Works);
                    changed.push(name);
                }
                Some(KeyState::Works) => {}
                None if known.suspicious => {
                    known.keys.insert(name.clone(), KeyState::Works);
                }
                None => {}
            }
        }
        if changed.is_empty() {
            return;
        }
        let waited = |entry: &AgentKeys| entry.held && changed.iter().any(|name| entry.failed.contains(*name));
        let agents: Vec<AgentId> =
            known.agents.iter().filter(|(_, entry)| waited(entry)).map(|(agent, _)| agent.clone()).collect();
        known.to_release.extend(agents);
        drop(known);
        self.0.to_release.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, KeyTable> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailingKey {
    /// A key that nobody used yet in this process.
    fn untried(now: Instant) -> FailingKey {
        let announcement = Announcement::default();
        FailingKey { failed_at: now, next_try: now, tried: false, message: String::new(), announcement }
    }

    /// How long no call may be made; none where this is the time for one.
    fn keeps_back(&self, now: Instant) -> Option<Duration> {
        let left = self.next_try.saturating_duration_since(now);
        match self.tried {
            true => Some(left.max(Duration::from_millis(KEY_RETRY_MS))),
            false => Some(left).filter(|left| !left.is_zero()),
        }
    }

    fn refuse(&mut self, agent: &AgentId, retry_after: Duration, now: Instant) -> RefusedCall {
        let message = match self.message.as_str() {
            "" => "not asked, because its key is being tried by another agent".to_owned(),
            message => format!("not asked, because its key failed: {message}"),
        };
        let failure = ProviderFailure {
            error: ProviderError::Auth,
            retry_after_ms: u64::try_from(retry_after.as_millis()).ok(),
            ..ProviderFailure::invalid(message)
        };
        // While it is tried, nobody knows whether there is anything to tell.
        RefusedCall { failure, announce: !self.tried && self.announcement.offer(agent, now) }
    }
}

/// A call that may be made. Dropped before it comes to anything, it leaves the try to the next agent.
#[derive(Debug)]
pub struct Attempt {
    holds: KeyHolds,
    agent: AgentId,
    model: String,
    names: Vec<KeyName>,
    /// Keys that failed before, and that this call tries.
    trying: Vec<KeyName>,
    began: Instant,
}

impl Attempt {
    /// The provider has begun to answer, or has answered.
    pub fn worked(&self) {
        self.holds.mark_working(&self.names, &self.model, self.began);
    }

    /// Whether the operator is to be told, where turns are held for it.
    pub fn failed(&self, failure: &ProviderFailure, now: Instant) -> bool {
        if failure.error != ProviderError::Auth {
            return true;
        }
        let mut known = self.holds.lock();
        let name = self.refused_name(failure, &known.answered);
        let retry_after = Duration::from_millis(failure.retry_after_ms.unwrap_or(KEY_RETRY_MS));
        let announcement = match known.keys.remove(&name) {
            Some(KeyState::Fails(failing)) => failing.announcement,
            Some(KeyState::Works) | None => Announcement::default(),
        };
        let mut failing = FailingKey {
            failed_at: now,
            next_try: now + retry_after,
            tried: false,
            message: failure.message.clone(),
            announcement,
        };
        let announce = failing.announcement.offer(&self.agent, now);
        known.keys.insert(name.clone(), KeyState::Fails(failing));
        known.agents.entry(self.agent.clone()).or_default().failed.insert(name);
        announce
    }

    /// The provider's key, unless the provider says that it is about the model, or the key answered for other models in
    /// this process and never for this one: some gateways refuse a model with 401.
    fn refused_name(&self, failure: &ProviderFailure, answered: &HashSet<String>) -> KeyName {
        let model = KeyName::Model(self.model.clone());
        let Some(KeyName::Provider(provider)) = self.names.first() else { return model };
        let of_provider = |name: &String| name.split('/').next() == Some(provider);
        let only_others = !answered.contains(&self.model) && answered.iter().any(of_provider);
        if failure.model_only || only_others { model } else { KeyName::Provider(provider.clone()) }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut known = self.holds.lock();
        for name in &self.trying {
            if let Some(KeyState::Fails(failing)) = known.keys.get_mut(name) {
                failing.tried = false;
            }
        }
    }
}

fn names(model: &Model) -> Vec<KeyName> {
    let name = KeyName::Model(model.to_string());
    match model {
        Model::Remote(remote) => vec![KeyName::Provider(remote.provider.name.clone()), name],
        Model::Echo | Model::Script { .. } => vec![name],
    }
}

/// Releases agents whose key works, until it is dropped.
pub async fn release(host: Host, holds: KeyHolds) {
    let room = Arc::new(Semaphore::new(RELEASES_AT_ONCE));
    let mut asking = JoinSet::new();
    loop {
        let agents = mem::take(&mut holds.lock().to_release);
        for agent in agents {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (host, holds) = (host.clone(), holds.clone());
            asking.spawn(async move {
                release_one(&host, &holds, &agent).await;
                drop(permit);
            });
        }
        while asking.try_join_next().is_some() {}
        holds.0.to_release.notified().await;
    }
}

async fn release_one(host: &Host, holds: &KeyHolds, agent: &AgentId) {
    while holds.holds(agent) {
        let input = Input::ReleaseTurns { cause: HoldCause::ModelKey, evidence: "the key works".to_owned() };
        match host.ask(agent, input).await {
            Ok(_) => return,
            Err(error @ (AskError::Busy | AskError::Store(_) | AskError::Crashed)) => {
                tracing::debug!(%agent, %error, "could not be released yet");
                tokio::time::sleep(RELEASE_AGAIN).await;
            }
            Err(AskError::Refused(_) | AskError::Damaged(_) | AskError::Closing) => return,
        }
    }
}

#[cfg(test)]
mod tests;
