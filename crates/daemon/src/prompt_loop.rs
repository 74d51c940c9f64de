//! How an agent thinks with a model that has to be told everything: what was said is read from the records, the prompt is
//! put together within the model's room, earlier turns are summarised where there is too little of it, the model is
//! asked, and what came of it is reported.

mod history;
mod open_calls;

use std::mem;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use abide_effects::Executor;
use abide_effects::model::remote::{Question, Remote, UsageSoFar};
use abide_effects::model::{Model, ProviderFailure, Providers};
use abide_effects::tools::ToolSet;
use abide_engine::{Clock, Deltas};
use abide_kernel::Fact;
use abide_kernel::budget::Usage;
use abide_kernel::effect::ModelCall;
use abide_kernel::id::{AgentId, ExecId, Seq};
use abide_kernel::input::{Input, Reply};
use abide_kernel::limits::{SUMMARY_BYTES, clip};
use abide_kernel::prompt::HOUSE;
use abide_kernel::prompt::assemble::{
    Guide, Material, Older, Ready, Room, Shown, SkillCard, Surroundings, digest, summary_request,
};
use abide_kernel::prompt::measure::tokens;
use abide_kernel::prompt::situation::{Situation, Summary};
use abide_kernel::prompt::talk::Spoken;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::ProviderError;
use abide_ledger::{Ledger, StreamId};

use crate::home_budget::HomeBudget;
use crate::key_holds::{Attempt, KeyHolds, RefusedCall};
use crate::policy_file::PolicyFile;
use history::{Histories, History, RecordedResults};
use open_calls::{OpenCall, OpenCalls};

/// How often a request is made smaller when its model says that it is too long: our guess at its window was wrong.
const SHRINKS: u32 = 2;

/// The estimated tokens of a request without any message.
pub static ALWAYS_SHOWN_TOKENS: LazyLock<u64> = LazyLock::new(|| ToolSet::every().tokens() + tokens(HOUSE));

#[derive(Debug, Clone)]
pub struct PromptLoop {
    ledger: Ledger,
    executor: Executor,
    policy: Arc<PolicyFile>,
    providers: Arc<Providers>,
    deltas: Deltas,
    holds: KeyHolds,
    budget: HomeBudget,
    histories: Arc<Histories>,
    open_calls: OpenCalls,
}

/// One round of a turn, to be thought.
struct RoundRequest<'a> {
    mind: &'a PromptLoop,
    agent: &'a AgentId,
    model: &'a Remote,
    attempt: &'a Attempt,
    exec_id: &'a ExecId,
    round: u32,
    tools: ToolSet,
    situation: Box<Situation>,
    surroundings: Surroundings,
    history: History,
    budget_tokens: u64,
    /// Inputs to be recorded beside the answer.
    beside: Vec<Input>,
}

impl PromptLoop {
    pub fn new(
        ledger: Ledger,
        executor: Executor,
        policy: Arc<PolicyFile>,
        providers: Arc<Providers>,
        deltas: Deltas,
        holds: KeyHolds,
        budget: HomeBudget,
    ) -> PromptLoop {
        PromptLoop {
            ledger,
            executor,
            policy,
            providers,
            deltas,
            holds,
            budget,
            histories: Arc::default(),
            open_calls: OpenCalls::default(),
        }
    }

    /// Calls the model. Returns the answer or its failure as the last input, and before it the other inputs to be recorded.
    pub async fn think(&self, agent: &AgentId, exec_id: &ExecId, round: u32, mut call: ModelCall) -> Vec<Input> {
        let began = Instant::now();
        let (beside, said) = self.answer(agent, exec_id, round, &mut call).await;
        let exec_id = exec_id.clone();
        let answer = match said {
            RoundOutcome::Reply(reply) => {
                let elapsed_ms = u64::try_from(began.elapsed().as_millis()).ok();
                let tree = match call.place {
                    Some(place) => self.executor.tree_hash(*place).await,
                    None => None,
                };
                Input::FinishRound { exec_id, round, reply: Reply { elapsed_ms, tree, ..*reply } }
            }
            RoundOutcome::Failed(RefusedCall { failure, announce }) => {
                let ProviderFailure { error, retry_after_ms, message, carry, spent, model_only: _ } = failure;
                let (jitter, spent) = (jitter(), spent.map(|spent| *spent));
                Input::FailRound { exec_id, round, error, retry_after_ms, message, carry, jitter, spent, announce }
            }
            RoundOutcome::TooMuch { needed_tokens, budget_tokens } => {
                Input::OverflowBaseline { exec_id, needed_tokens, budget_tokens }
            }
        };
        beside.into_iter().chain([answer]).collect()
    }

    /// The answer of the model, if it may be asked: it is priced where money is limited, the home has not spent its budget
    /// of the day, and the model's key is not known to fail.
    async fn answer(
        &self,
        agent: &AgentId,
        exec_id: &ExecId,
        round: u32,
        call: &mut ModelCall,
    ) -> (Vec<Input>, RoundOutcome) {
        let model = match self.providers.model(&call.model) {
            Ok(model) => model,
            Err(error) => return (Vec::new(), RoundOutcome::failed(ProviderFailure::invalid(error.to_string()))),
        };
        if (call.money_limited || self.budget.is_limited())
            && let Err(unpriced) = model.check_price()
        {
            let error = ProviderError::Unpriced;
            return (Vec::new(), RoundOutcome::failed(ProviderFailure { error, ..ProviderFailure::invalid(unpriced) }));
        }
        if let Err(refused) = self.budget.check(agent, Clock::System.now()).await {
            return (Vec::new(), RoundOutcome::Failed(refused));
        }
        let attempt = match self.holds.begin(agent, &model, Instant::now()) {
            Ok(attempt) => attempt,
            Err(refused) => return (Vec::new(), RoundOutcome::Failed(refused)),
        };
        let (beside, mut said) = match &model {
            Model::Remote(model) => self.ask(agent, model, &attempt, exec_id, round, call).await,
            Model::Echo | Model::Script { .. } => {
                if let Err(failure) = history::complete(&self.ledger, agent, call) {
                    return (Vec::new(), RoundOutcome::failed(failure));
                }
                let history = RecordedResults { ledger: self.ledger.clone(), stream: StreamId::agent(agent) };
                (
                    Vec::new(),
                    RoundOutcome::of(model.call(call, &ToolSet::of_turn(call), exec_id, round, &history).await),
                )
            }
        };
        match &mut said {
            RoundOutcome::Reply(_) => attempt.worked(),
            RoundOutcome::Failed(RefusedCall { failure, announce }) => {
                *announce = attempt.failed(failure, Instant::now())
            }
            RoundOutcome::TooMuch { .. } => {}
        }
        (beside, said)
    }

    /// These facts of the agent are durable.
    pub fn recorded(&self, agent: &AgentId, facts: Vec<(Seq, Time, Fact)>) {
        self.budget.recorded(agent, &facts);
        self.holds.recorded(agent, &facts);
        self.histories.tell(agent, facts);
    }

    /// The usage of a call that was aborted and can't report it itself.
    pub fn cut_off(&self, agent: &AgentId, exec_id: &ExecId) -> Vec<Input> {
        self.open_calls.cut_off(agent, exec_id)
    }

    /// The agent has fallen asleep.
    pub fn rests(&self, agent: &AgentId) {
        self.histories.forget(agent);
    }

    async fn ask(
        &self,
        agent: &AgentId,
        model: &Remote,
        attempt: &Attempt,
        exec_id: &ExecId,
        round: u32,
        call: &mut ModelCall,
    ) -> (Vec<Input>, RoundOutcome) {
        let tools = ToolSet::of_turn(call);
        let Some(situation) = call.situation.take() else {
            let failure = ProviderFailure::invalid("nobody said where the agent stands");
            return (Vec::new(), RoundOutcome::failed(failure));
        };
        let (history, surroundings) = match self.look(agent, &situation).await {
            Ok(seen) => seen,
            Err(failure) => return (Vec::new(), RoundOutcome::failed(failure)),
        };
        let (budget_tokens, beside) = (model.card.context_tokens, Vec::new());
        let mut thought = RoundRequest {
            mind: self,
            agent,
            model,
            attempt,
            exec_id,
            round,
            tools,
            situation,
            surroundings,
            history,
            budget_tokens,
            beside,
        };
        let said = thought.said().await;
        // Where there is a new summary, part of what was read is gone.
        if !thought.beside.iter().any(|input| matches!(input, Input::Compact { .. })) {
            self.histories.keep(agent, thought.history);
        }
        (thought.beside, said)
    }

    /// Reads the history and the surroundings from the disk together; without another thread if there is nothing to read.
    async fn look(&self, agent: &AgentId, situation: &Situation) -> Result<(History, Surroundings), ProviderFailure> {
        let (after, through) = (situation.summary.as_ref().map_or(0, |summary| summary.through), situation.seq);
        if self.executor.has_no_surroundings(agent, &situation.place)
            && let Some(history) = self.histories.at_hand(&self.ledger, agent, after, through)
        {
            return Ok((history, Surroundings::default()));
        }
        let (mind, agent, place) = (self.clone(), agent.clone(), situation.place.clone());
        let read = move || {
            let history = mind.histories.read(&mind.ledger, &agent, after, through)?;
            let found = mind.executor.read_surroundings_blocking(&agent, &place, &mind.policy.current());
            let guides = found.guides.into_iter().map(|guide| Guide { path: guide.path, text: guide.text });
            let skills = found.skills.into_iter();
            let skills = skills.map(|skill| SkillCard { name: skill.name, description: skill.description });
            Ok((history, Surroundings { guides: guides.collect(), skills: skills.collect() }))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|stopped| Err(ProviderFailure::invalid(format!("the records can't be read: {stopped}"))))
    }
}

/// The outcome of a round.
enum RoundOutcome {
    Reply(Box<Reply>),
    Failed(RefusedCall),
    /// The smallest possible prompt does not fit into the model.
    TooMuch {
        needed_tokens: u64,
        budget_tokens: u64,
    },
}

impl RoundOutcome {
    fn of(came: Result<Reply, ProviderFailure>) -> RoundOutcome {
        match came {
            Ok(reply) => RoundOutcome::Reply(Box::new(reply)),
            Err(failure) => RoundOutcome::failed(failure),
        }
    }

    fn failed(failure: ProviderFailure) -> RoundOutcome {
        RoundOutcome::Failed(RefusedCall { failure, announce: true })
    }
}

impl RoundRequest<'_> {
    async fn said(&mut self) -> RoundOutcome {
        let mut shrinks = 0;
        loop {
            match self.assemble() {
                Shown::Summarise(older) => {
                    if let Err(refused) = self.summarise(older).await {
                        return RoundOutcome::failed(refused);
                    }
                }
                Shown::TooMuch { needed_tokens, budget_tokens } => {
                    return RoundOutcome::TooMuch { needed_tokens, budget_tokens };
                }
                Shown::Ready(ready) => match self.call(&ready).await {
                    Err(failure) if failure.error == ProviderError::ContextLength && shrinks < SHRINKS => {
                        shrinks += 1;
                        self.budget_tokens = self.budget_tokens / 3 * 2;
                    }
                    came => {
                        self.keep_recap(&ready);
                        let counted = |reply| Reply { estimated_tokens: Some(ready.estimated_tokens), ..reply };
                        return RoundOutcome::of(came.map(counted));
                    }
                },
            }
        }
    }

    fn assemble(&self) -> Shown {
        let room = Room { budget_tokens: self.budget_tokens, tools_tokens: self.tools.tokens() };
        let (turns, left_out) = (self.history.talk.turns.as_slice(), self.history.left_out);
        Material { situation: &self.situation, surroundings: &self.surroundings, turns, left_out, room }.assemble()
    }

    async fn call(&mut self, ready: &Ready) -> Result<Reply, ProviderFailure> {
        let mut first = true;
        let mut hear = |text: &str| {
            // The key is accepted; agents that wait for it need not wait for the end of the answer.
            if mem::take(&mut first) {
                self.attempt.worked();
            }
            self.mind.deltas.publish(self.agent, self.exec_id, self.round, text);
        };
        let (usage, sent_tokens) =
            (Arc::new(UsageSoFar::default()), self.situation.measure.corrected(ready.estimated_tokens));
        let (exec_id, round, prices) = (self.exec_id.clone(), self.round, self.model.card.prices);
        self.mind
            .open_calls
            .open(self.agent, OpenCall { exec_id, round, usage: Arc::clone(&usage), sent_tokens, prices });
        let question = Question { prompt: &ready.prompt, tools: &self.tools, written: &mut self.history.written };
        let said = self.model.call_on(&usage, question, self.exec_id, self.round, &mut hear).await;
        self.mind.open_calls.close(self.agent);
        said
    }

    fn keep_recap(&mut self, ready: &Ready) {
        if let Some(made) = &ready.checkpoint {
            let (exec_id, through_round) = (self.exec_id.clone(), Some(made.through_round));
            self.beside.push(Input::Checkpoint { exec_id, recap: made.recap.clone(), through_round });
        }
    }

    /// The oldest turns become a summary: by the model itself, or from the records where it can't be had. A key that is
    /// refused ends the round: the call itself would be refused too, and the records tell less than the model will.
    async fn summarise(&mut self, older: Older) -> Result<(), ProviderFailure> {
        let before = self.situation.summary.take();
        let (text, usage) = match self.told_by_model(before.as_ref(), &self.history.talk.turns, &older).await {
            Ok((text, usage)) => (text, Some(usage)),
            Err(failure) if failure.error == ProviderError::Auth => return Err(failure),
            Err(failure) => {
                tracing::warn!(agent = %self.agent, %failure, "no summary from the model; the records are told instead");
                let usage = failure.spent.map(|spent| spent.usage);
                (digest(before.as_ref(), &self.history.talk.turns, &older), usage)
            }
        };
        self.history.talk.turns.drain(..older.turns);
        let messages = before.map_or(0, |before| before.messages) + older.messages;
        let through = older.through;
        self.beside.push(Input::Compact {
            compacted_messages: messages,
            summary: Some(text.clone()),
            through: Some(through),
            usage,
        });
        self.situation.summary = Some(Summary { text, messages, through });
        Ok(())
    }

    async fn told_by_model(
        &self,
        before: Option<&Summary>,
        turns: &[Spoken],
        older: &Older,
    ) -> Result<(String, Usage), ProviderFailure> {
        let prompt = summary_request(before, turns, older, self.budget_tokens);
        let reply = self.model.call(&prompt, &ToolSet::empty(), self.exec_id, self.round, &mut |_| {}).await?;
        match reply.text.trim() {
            "" => Err(ProviderFailure::invalid("the summary is empty")),
            text => Ok((clip(text, SUMMARY_BYTES).to_owned(), reply.usage)),
        }
    }
}

/// Drawn anew for every failure.
fn jitter() -> u16 {
    let [low, high, ..] = Clock::System.entropy().to_le_bytes();
    u16::from_le_bytes([low, high])
}
