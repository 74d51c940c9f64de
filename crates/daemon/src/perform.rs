//! Performs the effects of agents in a daemon: the one place that brings the engine and `effects` together.

use std::path::Path;
use std::sync::Arc;

use abide_effects::Executor;
use abide_effects::model::providers::Providers;
use abide_effects::tools::{refuse_unoffered_model, take_secret};
use abide_effects::transient;
use abide_engine::{Clock, Deltas, Perform};
use abide_kernel::Fact;
use abide_kernel::config::{AgentLimits, DefaultModels};
use abide_kernel::effect::{Effect, TimerCheckEffect, TriggerEffect, TurnEffect};
use abide_kernel::fact::WorkspaceAttached;
use abide_kernel::id::{AgentId, ExecId, Seq};
use abide_kernel::input::{BootContext, Input, Refusal, Reply};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::time::Time;
use abide_kernel::tool::{Address, RecordCall, ToolCall};
use abide_kernel::views::agent::{AgentSummary, Surrounding};
use abide_ledger::Ledger;
use abide_server::{Hooks, Secret};

use crate::home_budget::HomeBudget;
use crate::key_holds::KeyHolds;
use crate::models::Models;
use crate::policy_file::PolicyFile;
use crate::prompt_loop::PromptLoop;
use crate::services::sandbox_view;

type Job<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// Models and hands.
#[derive(Debug)]
struct EffectPerformer {
    executor: Executor,
    prompt_loop: PromptLoop,
    holds: KeyHolds,
    policy: Arc<PolicyFile>,
    hooks: Arc<Hooks>,
    providers: Arc<Providers>,
    models: DefaultModels,
    limits: AgentLimits,
    /// Those that the settings have a table of.
    named_models: Vec<String>,
}

impl Perform for EffectPerformer {
    fn perform(&self, agent: &AgentId, effect: Effect) -> Option<Job<Vec<Input>>> {
        match effect {
            Effect::Turn(TurnEffect::CallModel { exec_id, round, call }) => {
                let (prompt_loop, hooks, policy) =
                    (self.prompt_loop.clone(), Arc::clone(&self.hooks), Arc::clone(&self.policy));
                let (agent, author) = (agent.clone(), call.author.clone());
                let secrets = self.executor.secrets().clone();
                let workspace = self.executor.workspace_of(&agent, &author.place);
                let offered = self.offered_models(&author.models);
                Some(Box::pin(async move {
                    let mut said = secrets.mask().mask_inputs(prompt_loop.think(&agent, &exec_id, round, *call).await);
                    for input in &mut said {
                        if let Input::FinishRound { reply, .. } = input {
                            address_triggers(&hooks, &agent, reply).await;
                            choose_models(&offered, reply);
                            // Held against the policy as it is now.
                            let calls = std::mem::take(&mut reply.calls);
                            reply.calls = policy.judge(&agent, &author.place, workspace.clone(), calls).await;
                        }
                    }
                    said
                }))
            }
            Effect::Turn(TurnEffect::RunTool { ref call_id, .. }) => {
                let policy = self.policy.of_call(agent, call_id);
                self.executor.perform_under(policy, agent, effect)
            }
            Effect::Command(_) | Effect::TimerCheck(TimerCheckEffect::Run { .. }) | Effect::Workspace(_) => {
                self.executor.perform(agent, effect)
            }
            Effect::Trigger(TriggerEffect::ForgetSecret { trigger_id }) => {
                self.hooks.remove_secret(agent, &trigger_id);
                None
            }
            // The loop itself sees to other agents.
            Effect::Turn(TurnEffect::AnswerCall { .. }) | Effect::Child(_) => None,
            // The loop ends its own jobs.
            Effect::Turn(TurnEffect::EndExec { .. }) | Effect::TimerCheck(TimerCheckEffect::End { .. }) => None,
        }
    }

    fn recorded(&self, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        if facts.iter().any(|(_, _, fact)| matches!(fact, Fact::AgentArchived(_))) {
            self.executor.forget_agent(agent);
        }
        self.prompt_loop.recorded(agent, facts);
    }

    fn boot_context(&self, agent: &AgentId) -> BootContext {
        BootContext {
            models: Some(self.models.clone()),
            limits: Some(self.limits),
            holds_turns: self.holds.holds(agent),
            ..self.executor.collect_leftovers(agent)
        }
    }

    fn cut_off(&self, agent: &AgentId, exec_id: &ExecId) -> Vec<Input> {
        self.prompt_loop.cut_off(agent, exec_id)
    }

    fn rests(&self, agent: &AgentId) {
        self.executor.release_at_rest(agent);
        self.prompt_loop.rests(agent);
        self.policy.rests(agent);
    }

    fn with_world(&self, agent: &AgentId, mut summary: AgentSummary) -> Job<AgentSummary> {
        let (executor, providers, agent) = (self.executor.clone(), Arc::clone(&self.providers), agent.clone());
        Box::pin(async move {
            let held_by = match &summary.execution.cwd {
                Some(folder) => executor.folder_holder(&agent, Path::new(folder)).await,
                None => None,
            };
            summary.surround(Surrounding {
                sandbox: sandbox_view(&executor, summary.execution.network),
                disk_bytes: executor.measure_disk_use(&agent).await,
                held_by: held_by.map(|holder| holder.view()),
                priced: providers.model(&summary.model.name).map_or(true, |model| model.check_price().is_ok()),
            });
            summary
        })
    }

    fn worktree(&self, agent: &AgentId, folder: String) -> Job<Result<WorkspaceAttached, Refusal>> {
        let (executor, agent) = (self.executor.clone(), agent.clone());
        Box::pin(async move { executor.worktree_for_child(&agent, folder).await })
    }
}

impl EffectPerformer {
    /// The models that an agent may give to those it makes: its own, and those that the operator named.
    fn offered_models(&self, own: &[String]) -> Vec<String> {
        let DefaultModels { model, fallback, .. } = &self.models;
        let named = self.named_models.iter();
        let mut offered: Vec<String> = Vec::new();
        for name in own.iter().chain([model]).chain(fallback).chain(named) {
            if !name.is_empty() && !offered.contains(name) {
                offered.push(name.clone());
            }
        }
        offered
    }
}

/// A model that makes an agent chooses its model among these.
fn choose_models(offered: &[String], reply: &mut Reply) {
    for call in &mut reply.calls {
        refuse_unoffered_model(&mut call.parsed, offered);
    }
}

/// A trigger that the model asks for gets its URL here, because the model has to be told; and its secret stays here,
/// because what a model says is recorded.
async fn address_triggers(hooks: &Hooks, agent: &AgentId, reply: &mut Reply) {
    for call in &mut reply.calls {
        let secret = take_secret(call);
        if let ToolCall::Record(RecordCall::CreateTrigger { address, .. }) = &mut call.parsed {
            match addressed(hooks, agent, secret).await {
                Ok(made) => *address = Some(made),
                Err(problem) => call.parsed = ToolCall::Refused(problem),
            }
        }
    }
}

async fn addressed(hooks: &Hooks, agent: &AgentId, secret: Option<String>) -> Result<Address, Refusal> {
    let lost = |error: std::io::Error| {
        let hint = transient::hint(&error, "tell the operator");
        Refusal::new(ErrorCode::HomeUnwritable, format!("the daemon's home can't be written: {error}")).with_hint(hint)
    };
    let wrong = |problem: String| Refusal::new(ErrorCode::InvalidInput, problem).with_hint("give another secret");
    let address = hooks.address(agent, Clock::System.now(), Clock::System.entropy()).await.map_err(lost)?;
    if let Some(secret) = secret {
        let secret = Secret::new(&secret).map_err(wrong)?;
        hooks.store_secret(agent, &address.trigger_id, secret).map_err(lost)?;
    }
    Ok(address)
}

/// The settings that every agent follows.
#[derive(Debug, Clone)]
pub struct FollowedSettings<'a> {
    pub models: &'a Models,
    pub limits: AgentLimits,
    pub budget: HomeBudget,
}

/// Handed to the engine.
pub fn perform(
    ledger: &Ledger,
    executor: &Executor,
    hooks: &Arc<Hooks>,
    policy: &Arc<PolicyFile>,
    followed: FollowedSettings<'_>,
    deltas: &Deltas,
    holds: &KeyHolds,
) -> Arc<dyn Perform> {
    let FollowedSettings { models, limits, budget } = followed;
    let (ledger, executor, hooks) = (ledger.clone(), executor.clone(), Arc::clone(hooks));
    let (providers, deltas, holds) = (Arc::clone(&models.providers), deltas.clone(), holds.clone());
    let policy = Arc::clone(policy);
    let prompt_loop = PromptLoop::new(
        ledger,
        executor.clone(),
        Arc::clone(&policy),
        Arc::clone(&providers),
        deltas,
        holds.clone(),
        budget,
    );
    let named_models = models.providers.named().map(str::to_owned).collect();
    let models = models.defaults();
    Arc::new(EffectPerformer { executor, prompt_loop, holds, hooks, policy, providers, models, limits, named_models })
}
