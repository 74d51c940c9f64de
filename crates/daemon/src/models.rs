//! Models as people see them: which can be named here, which can be called, and whether one answers. For the daemon, and
//! for commands where none runs. No key is in anything that this gives out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_api::types::{
    DefaultModel, KeyState, ModelError, ModelItem, ModelList, ModelPrices, ModelTested, ProviderItem, UsageView,
};
use abide_effects::model::providers::{KnownProvider, prices_date};
use abide_effects::model::remote::{Card, Remote};
use abide_effects::model::{Model, PastResults, ProviderFailure, Providers};
use abide_effects::tools::ToolSet;
use abide_kernel::config::DefaultModels;
use abide_kernel::effect::ModelCall;
use abide_kernel::id::{ExecId, MessageId};
use abide_kernel::input::{Refusal, Reply};
use abide_kernel::message::Message;
use abide_kernel::prompt::{Item, Part, Prompt};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::vocabulary::{MessageKind, ProviderError, Role};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::prompt_loop::ALWAYS_SHOWN_TOKENS;
use crate::text::{dollars, price_command};

/// The model that answers with its input. It needs no key.
pub const ECHO: &str = "script/echo";

/// How many agents are named for each model; the rest are counted.
const AGENTS_SHOWN: usize = 20;
/// Less than a request to the daemon may take.
const TEST_WITHIN: Duration = Duration::from_secs(25);
/// Enough for one that thinks before it says a word.
const TEST_OUTPUT_TOKENS: u64 = 1_024;

#[derive(Debug, Clone)]
pub struct Models {
    pub providers: Arc<Providers>,
    pub default: DefaultModel,
    /// An operator chose the default, or set a key that it goes with.
    pub is_chosen: bool,
}

impl Models {
    /// For agents that have none of their own.
    pub fn defaults(&self) -> DefaultModels {
        let DefaultModel { name, fallback, .. } = self.default.clone();
        DefaultModels { model: name, fallback, chosen: self.is_chosen }
    }

    /// Refuses a model that an agent can't be given now: an unknown name, a missing script, a key that is not set. It is
    /// refused where a person names it, because the agent's first turn would fail otherwise, when nobody looks.
    pub fn check(&self, name: &str) -> Result<(), String> {
        match self.providers.model(name).map_err(|error| error.to_string())? {
            Model::Echo => Ok(()),
            Model::Script { file } => match std::fs::metadata(&file) {
                Ok(found) if found.is_file() => Ok(()),
                Ok(_) => Err(format!("{} is not a file; name the script itself", file.display())),
                Err(error) => {
                    let missing = error.kind() == ErrorKind::NotFound;
                    let why = if missing { "does not exist".to_owned() } else { error.to_string() };
                    Err(format!("the script {} {why}; write it first, or name another", file.display()))
                }
            },
            Model::Remote(remote) => match remote.missing_key() {
                None => room_enough(&remote),
                Some(variable) => Err(format!(
                    "{} needs a key: set {variable} in the environment of the daemon, and start it again",
                    remote.provider.name
                )),
            },
        }
    }

    /// Whether a model can look at pictures; none where nobody knows, as of a script.
    pub fn sees_images(&self, name: &str) -> Option<bool> {
        match self.providers.model(name) {
            Ok(Model::Remote(remote)) => Some(remote.card.images),
            Ok(Model::Echo | Model::Script { .. }) | Err(_) => None,
        }
    }

    /// Refuses a limit of money for an agent with this model, if the model has no price. An unknown name is left to
    /// `check`.
    pub fn check_price(&self, name: &str) -> Result<(), String> {
        let checked = self.providers.model(name).map_or(Ok(()), |model| model.check_price());
        checked.map_err(|problem| format!("{problem}; `{}` sets both", price_command(name)))
    }

    /// Every model that is known by name here, with the agents that think with it.
    pub fn list(&self, used: &BTreeMap<String, Vec<String>>) -> ModelList {
        let mut names = self.providers.list_models();
        names.push(ECHO.to_owned());
        let others = [&self.default.name].into_iter().chain(&self.default.fallback).chain(used.keys());
        for name in others {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let items = names.into_iter().map(|name| self.model_item(name, used)).collect();
        let providers = self.providers.iter().map(provider).collect();
        ModelList { items, next: None, default: self.default.clone(), providers }
    }

    /// The list with what those providers say that know better than we which models they have. All are asked at once, and
    /// none is waited for for long.
    pub async fn find(&self, mut list: ModelList, used: &BTreeMap<String, Vec<String>>) -> ModelList {
        let mut asked = JoinSet::new();
        for known in self.providers.iter().filter(|known| known.has_its_own_models()) {
            let name = known.provider.name.clone();
            // The name of the model does not matter: the provider is asked.
            if let Ok(Model::Remote(remote)) = self.providers.model(&format!("{name}/any")) {
                asked.spawn(async move { (name, remote.list_models().await) });
            }
        }
        let said: BTreeMap<_, _> = asked.join_all().await.into_iter().collect();
        for provider in &mut list.providers {
            match said.get(&provider.name) {
                Some(Ok(models)) => provider.found = Some(models.len() as u64),
                Some(Err(failure)) => {
                    let why = failure.message.strip_prefix(&format!("{}/any: ", provider.name));
                    provider.unheard = Some(why.unwrap_or(&failure.message).to_owned());
                }
                None => {}
            }
        }
        let found = said.iter().filter_map(|(provider, said)| Some((provider, said.as_ref().ok()?)));
        let found: BTreeMap<&String, Vec<String>> = found
            .map(|(provider, models)| (provider, models.iter().map(|model| format!("{provider}/{model}")).collect()))
            .collect();
        for item in &mut list.items {
            item.found = found.get(&item.provider).map(|names| names.contains(&item.name));
        }
        let known: BTreeSet<String> = list.items.iter().map(|item| item.name.clone()).collect();
        let new = found.into_values().flatten().filter(|name| !known.contains(name));
        list.items.extend(new.map(|name| ModelItem { found: Some(true), ..self.model_item(name, used) }));
        list
    }

    fn model_item(&self, name: String, used: &BTreeMap<String, Vec<String>>) -> ModelItem {
        let agents = used.get(&name).map(Vec::as_slice).unwrap_or_default();
        let card = match self.providers.model(&name) {
            Ok(Model::Remote(remote)) => Some(remote.card),
            Ok(Model::Echo | Model::Script { .. }) | Err(_) => None,
        };
        let date = (!self.providers.is_configured(&name)).then(|| prices_date().to_owned());
        let prices = card.and_then(|card| card.prices).map(|prices| ModelPrices {
            input_usd: dollars(prices.input),
            output_usd: dollars(prices.output),
            cache_read_usd: dollars(prices.cache_read),
            cache_write_usd: dollars(prices.cache_write),
            date,
        });
        ModelItem {
            provider: name.split('/').next().unwrap_or_default().to_owned(),
            default: name == self.default.name,
            problem: self.check(&name).err(),
            window_tokens: card.map(|card| card.window_tokens),
            max_output_tokens: card.map(|card| card.max_output_tokens),
            context_tokens: card.map(|card| card.context_tokens),
            images: card.is_some_and(|card| card.images),
            found: None,
            prices,
            agents: agents.iter().take(AGENTS_SHOWN).cloned().collect(),
            agents_total: agents.len() as u64,
            name,
        }
    }

    /// One small call. What comes of it is an answer, whatever it is; only a name that is no model's is refused.
    pub async fn test(&self, name: &str) -> Result<ModelTested, Refusal> {
        let wrong = |problem: String| Refusal::new(ErrorCode::NoModel, problem);
        let model = self.providers.model(name).map_err(|error| wrong(error.to_string()))?;
        let began = Instant::now();
        let said = tokio::time::timeout(TEST_WITHIN, small_call(&model)).await.unwrap_or_else(|_| {
            let late = format!("no answer within {} seconds", TEST_WITHIN.as_secs());
            Err(ProviderFailure { error: ProviderError::Timeout, ..ProviderFailure::invalid(late) })
        });
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (usage, error) = match said {
            Ok(reply) => (Some(usage(&reply)), empty_reply(&reply)),
            Err(failure) => (None, Some(self.explained(&model, failure))),
        };
        let priced = model.check_price().is_ok();
        Ok(ModelTested { model: name.to_owned(), ok: error.is_none(), elapsed_ms, usage, priced, error })
    }
}

impl Models {
    /// A failure with what to do about it.
    fn explained(&self, model: &Model, failure: ProviderFailure) -> ModelError {
        let hint = match model {
            Model::Remote(remote) => {
                let known = self.providers.get(&remote.provider.name);
                advice(remote, known.and_then(|known| known.key_variable.as_deref()), &failure)
            }
            Model::Echo | Model::Script { .. } => "mend the script, or name another".to_owned(),
        };
        let ProviderFailure { error, message, retry_after_ms, .. } = failure;
        ModelError { class: error.as_str().to_owned(), message, hint, retry_after_ms }
    }
}

/// An answer that is none: an agent's turn fails with it. One that is cut may have thought for as long as a test lets it.
fn empty_reply(reply: &Reply) -> Option<ModelError> {
    let nothing = reply.text.trim().is_empty() && reply.calls.is_empty() && !reply.is_cut();
    nothing.then(|| ModelError {
        class: ProviderError::Invalid.as_str().to_owned(),
        message: "its answer was empty: no text and no call".to_owned(),
        hint: "an agent's turn fails with such an answer: see what serves it, or name another model".to_owned(),
        retry_after_ms: None,
    })
}

/// Refuses a model that could not be shown even what every agent is shown: how it works here, and its tools.
pub fn room_enough(remote: &Remote) -> Result<(), String> {
    let (needed, room) = (*ALWAYS_SHOWN_TOKENS, remote.card.context_tokens);
    if room > needed {
        return Ok(());
    }
    let name = &remote.name;
    Err(format!(
        "{name} has room for {room} tokens, and what every agent is shown takes {needed} already: set \
         models.{name:?}.window_tokens or context_tokens if it has more, or name another"
    ))
}

fn provider(known: &KnownProvider) -> ProviderItem {
    let provider = &known.provider;
    let key = match (&provider.key, &provider.key_env) {
        (Some(_), _) => KeyState::Set,
        (None, Some(_)) => KeyState::Missing,
        (None, None) => KeyState::NotNeeded,
    };
    ProviderItem {
        name: provider.name.clone(),
        kind: known.kind.as_str().to_owned(),
        base_url: provider.base_url.clone(),
        key_env: known.key_variable.clone(),
        key,
        exposed: known.is_exposed(),
        found: None,
        unheard: None,
    }
}

async fn small_call(model: &Model) -> Result<Reply, ProviderFailure> {
    match model {
        Model::Remote(remote) => call_once(remote).await,
        Model::Echo | Model::Script { .. } => {
            let mut message = Message::new(MessageId::new("msg_test"), MessageKind::OperatorPrompt);
            message.text = Some(HELLO.to_owned());
            let call = ModelCall {
                model: model.to_string(),
                message: Arc::new(message),
                interjections: Vec::new(),
                excerpts: Vec::new(),
                carry: None,
                turn_seq: 0,
                situation: None,
                place: None,
                money_limited: false,
                role: Role::Orchestrator,
                author: Box::default(),
            };
            model.call(&call, &ToolSet::empty(), &ExecId::new("exec_test"), 1, &EmptyPast).await
        }
    }
}

const HELLO: &str = "Answer with the word ok.";

/// No tools are offered, and the answer is bounded, whatever the model would say.
async fn call_once(remote: &Remote) -> Result<Reply, ProviderFailure> {
    let max_output_tokens = remote.card.max_output_tokens.min(TEST_OUTPUT_TOKENS);
    let bounded = Remote { card: Card { max_output_tokens, ..remote.card }, ..remote.clone() };
    let items = vec![Arc::new(Item::User { parts: vec![Part::Text(HELLO.to_owned())] })];
    let prompt = Prompt { system: "Somebody sees whether you can be reached.".to_owned(), items, stable: 0 };
    bounded.call(&prompt, &ToolSet::empty(), &ExecId::new("exec_test"), 1, &mut |_| ()).await
}

/// Nothing happened before a test.
#[derive(Debug)]
struct EmptyPast;

impl PastResults for EmptyPast {
    fn tool_results(&self, _count: usize) -> Result<Vec<Value>, ProviderFailure> {
        Ok(Vec::new())
    }
}

fn usage(reply: &Reply) -> UsageView {
    let usage = &reply.usage;
    UsageView {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens,
        cost_usd: dollars(usage.cost_micro_usd),
    }
}

/// Advice about a failure. `key_variable` is the variable of its provider's key, needed or not.
fn advice(remote: &Remote, key_variable: Option<&str>, failure: &ProviderFailure) -> String {
    let (provider, url) = (&remote.provider.name, &remote.provider.base_url);
    match failure.error {
        ProviderError::RateLimited => match failure.retry_after_ms {
            Some(ms) => format!("try again in {} seconds", ms.div_ceil(1_000)),
            None => "try again in a while; agents do so by themselves".to_owned(),
        },
        ProviderError::Overloaded => {
            "try again in a while; `fallback` in the settings names models to ask meanwhile".to_owned()
        }
        ProviderError::Timeout | ProviderError::Disconnect if failure.spent.is_some() => {
            "it was reached, and its answer broke off: try again; agents do so by themselves".to_owned()
        }
        ProviderError::Timeout | ProviderError::Disconnect => {
            format!("see whether somebody serves {url}, and whether this machine may reach it")
        }
        ProviderError::ContextLength => {
            format!("its window is smaller than it is thought to be: set models.{:?}.window_tokens", remote.name)
        }
        ProviderError::Refusal => "name another model: this one does not want to answer".to_owned(),
        ProviderError::Auth => match (&remote.provider.key, key_variable) {
            (None, Some(variable)) => {
                format!("set {variable} to its key in the environment of the daemon, and start it again")
            }
            (Some(_), Some(variable)) => {
                format!("see whether the key in {variable} is still good, and whether it is one of {provider}'s")
            }
            (_, None) => format!("it wants a key: name its variable with providers.{provider}.key_env"),
        },
        ProviderError::System => {
            "this machine is short of something, see the message: try again in a while; agents do so by themselves"
                .to_owned()
        }
        // No test limits money.
        ProviderError::Invalid | ProviderError::Unpriced | ProviderError::HomeBudgetSpent => {
            format!("see whether {provider} has a model called {:?}, and whether it is at {url}", remote.model)
        }
    }
}
