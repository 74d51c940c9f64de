//! What does the effects of agents in a daemon: the one place that brings the engine and `effects` together.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

use abide_effects::Hands;
use abide_effects::model::{Model, Past, ProviderFailure};
use abide_effects::tools::agent_get;
use abide_engine::fold::decode;
use abide_engine::{Clock, Perform};
use abide_kernel::effect::{Effect, ModelCall};
use abide_kernel::fact::{Fact, WorkspaceAttached};
use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::input::{Act, Address, Does, Input, Refusal, Remains, Reply};
use abide_kernel::vocabulary::{ProviderError, WorkspaceMode};
use abide_ledger::{Ledger, StreamId};
use abide_server::{Hooks, Secret};
use serde_json::Value;

use crate::neighbour;
use crate::policy::Watched;

type Job<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// Models and hands.
#[derive(Debug)]
struct Effects {
    ledger: Ledger,
    hands: Hands,
    policy: Arc<Watched>,
    hooks: Arc<Hooks>,
}

impl Perform for Effects {
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<Job<Vec<Input>>> {
        match effect {
            Effect::CallModel { exec_id, round, call } => {
                let past = LedgerPast { ledger: self.ledger.clone(), stream: StreamId::agent(agent) };
                let (hands, hooks, policy) = (self.hands.clone(), Arc::clone(&self.hooks), Arc::clone(&self.policy));
                let agent = agent.clone();
                Some(Box::pin(async move {
                    let mut said = round_of(exec_id, round, *call, &past, &hands).await;
                    if let Input::FinishRound { reply, .. } = &mut said {
                        address_triggers(&hooks, &agent, reply).await;
                    }
                    vec![judged(said, &agent, &policy)]
                }))
            }
            // The one tool that looks at another agent: hands know only their own.
            Effect::RunTool { exec_id, call_id, tool, input, .. } if tool == agent_get::NAME => {
                Some(Box::pin(neighbour::get(self.ledger.clone(), exec_id, call_id, input)))
            }
            Effect::RunTool { .. }
            | Effect::StartTask { .. }
            | Effect::AwaitTask { .. }
            | Effect::EndTask { .. }
            | Effect::CloseTask { .. }
            | Effect::RunCheck { .. }
            | Effect::ReleaseWorkspace { .. }
            | Effect::RemoveWorktree { .. } => self.hands.perform(agent, effect),
            Effect::ForgetSecret { trigger_id } => {
                self.hooks.forget_secret(agent, &trigger_id);
                None
            }
            // The loop itself sees to other agents.
            Effect::SpawnChild { .. } | Effect::DismissChild { .. } | Effect::ReportToSupervisor { .. } => None,
            // Who tells the operator reads the ledger (`notify`), so that a crash loses nothing; the loop ends its own jobs.
            Effect::Notify { .. } | Effect::EndExec { .. } | Effect::EndCheck { .. } => None,
        }
    }

    fn remains(&self, agent: &AgentId) -> Remains {
        self.hands.remains(agent)
    }

    fn rests(&self, agent: &AgentId, occupied: Option<&str>) {
        self.hands.rests(agent, occupied);
    }

    fn worktree(&self, agent: &AgentId, folder: String) -> Job<Result<WorkspaceAttached, Refusal>> {
        let (hands, agent) = (self.hands.clone(), agent.clone());
        Box::pin(async move { hands.attach(&agent, folder, WorkspaceMode::Worktree).await })
    }
}

/// What a model asked for, held against the policy as it is now.
#[allow(clippy::wildcard_enum_match_arm, reason = "a call that failed asks for nothing")]
fn judged(said: Input, agent: &AgentId, policy: &Watched) -> Input {
    match said {
        Input::FinishRound { exec_id, round, reply } => {
            let calls = policy.judge(agent, reply.calls);
            Input::FinishRound { exec_id, round, reply: Reply { calls, ..reply } }
        }
        other => other,
    }
}

async fn round_of(exec_id: ExecId, round: u32, call: ModelCall, past: &LedgerPast, hands: &Hands) -> Input {
    let began = Instant::now();
    let said = match Model::parse(&call.model) {
        Ok(model) => model.call(&call, &exec_id, round, past).await,
        Err(error) => Err(ProviderFailure {
            error: ProviderError::Invalid,
            retry_after_ms: None,
            message: error.to_string(),
            carry: None,
        }),
    };
    match said {
        Ok(reply) => {
            let elapsed_ms = u64::try_from(began.elapsed().as_millis()).ok();
            let tree = match call.place {
                Some(place) => hands.tree(*place).await,
                None => None,
            };
            Input::FinishRound { exec_id, round, reply: Reply { elapsed_ms, tree, ..reply } }
        }
        Err(failure) => Input::FailRound {
            exec_id,
            round,
            error: failure.error,
            retry_after_ms: failure.retry_after_ms,
            message: failure.message,
            carry: failure.carry,
            jitter: jitter(),
        },
    }
}

/// Drawn anew for every failure.
fn jitter() -> u16 {
    let [low, high, ..] = Clock::System.entropy().to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A trigger that the model asks for gets its URL here, because the model has to be told; and its secret stays here,
/// because what a model says is recorded.
async fn address_triggers(hooks: &Hooks, agent: &AgentId, reply: &mut Reply) {
    for call in &mut reply.calls {
        if let Does::Act(Act::CreateTrigger { signed, address, .. }) = &mut call.does {
            match addressed(hooks, agent, *signed, &call.input).await {
                Ok(made) => *address = Some(made),
                Err(problem) => call.does = Does::Refused(problem),
            }
        }
        // Of a call that is refused, too: what is wrong with it may be the secret.
        if call.tool == "CreateTrigger" && !call.input["secret"].is_null() {
            call.input["secret"] = Value::from(SECRET_KEPT);
        }
    }
}

const SECRET_KEPT: &str = "(kept outside of the records)";

async fn addressed(hooks: &Hooks, agent: &AgentId, signed: bool, input: &Value) -> Result<Address, Refusal> {
    let lost = |error: std::io::Error| {
        Refusal::new("home_unwritable", format!("the daemon's home can't be written: {error}"), "tell the operator")
    };
    let wrong = |problem: String| Refusal::new("invalid_input", problem, "give another secret");
    let address = hooks.address(agent, Clock::System.now(), Clock::System.entropy()).await.map_err(lost)?;
    if signed {
        let secret = Secret::new(input["secret"].as_str().unwrap_or_default()).map_err(wrong)?;
        hooks.keep_secret(agent, &address.trigger_id, secret).map_err(lost)?;
    }
    Ok(address)
}

/// What is wrong with giving an agent this model here and now: its name, or a script that is not there. Refused where a
/// person names it, because the agent's first turn would fail otherwise, when nobody looks.
pub fn check_model(name: &str) -> Result<(), String> {
    match Model::parse(name).map_err(|error| error.to_string())? {
        Model::Echo => Ok(()),
        Model::Script { file } => match std::fs::metadata(&file) {
            Ok(found) if found.is_file() => Ok(()),
            Ok(_) => Err(format!("{} is not a file; name the script itself", file.display())),
            Err(error) => {
                let why =
                    if error.kind() == ErrorKind::NotFound { "does not exist".to_owned() } else { error.to_string() };
                Err(format!("the script {} {why}; write it first, or name another", file.display()))
            }
        },
    }
}

/// An agent's past, read from its records when a model asks for it: a few reads of the disk, and most never ask.
#[derive(Debug)]
struct LedgerPast {
    ledger: Ledger,
    stream: StreamId,
}

const BATCH: u64 = 256;
/// How far back anybody looks for a result.
const SCANNED_MAX: u64 = 20_000;

impl Past for LedgerPast {
    fn tool_results(&self, count: usize) -> Vec<Value> {
        let mut results = Vec::new();
        let Ok(Some(head)) = self.ledger.head(&self.stream) else { return results };
        let mut end = head.seq;
        while end > 0 && results.len() < count && head.seq - end < SCANNED_MAX {
            let begin = end.saturating_sub(BATCH);
            let wanted = usize::try_from(end - begin).unwrap_or_default();
            let Ok(facts) = self.ledger.read(&self.stream, begin, wanted) else { break };
            let finished = facts.iter().rev().filter_map(|recorded| match decode(&self.stream, recorded) {
                Ok(Fact::ToolFinished(finished)) => Some(finished.result),
                Ok(_) | Err(_) => None,
            });
            results.extend(finished);
            end = begin;
        }
        results.truncate(count);
        results
    }
}

/// Handed to the engine.
pub fn perform(ledger: &Ledger, hands: &Hands, hooks: &Arc<Hooks>, policy: Watched) -> Arc<dyn Perform> {
    let (ledger, hands, hooks) = (ledger.clone(), hands.clone(), Arc::clone(hooks));
    Arc::new(Effects { ledger, hands, hooks, policy: Arc::new(policy) })
}
