//! `abide model`: which models can be named here, and whether one answers. Through the daemon where one runs, because
//! its environment is the one that counts; else by itself.

use abide_api::types::{KeyState, ModelItem, ModelList, ModelTest, ModelTested, ProviderItem};
use abide_daemon::text::grouped;
use abide_ledger::{Ledger, Options};
use abide_server::models_in_use;
use anyhow::anyhow;

use crate::cli::{ModelCommand, PlaceArgs, UpArgs};
use crate::config::Settings;
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, counted, one_line};
use crate::{home, options};

pub fn run(command: &ModelCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        ModelCommand::List => list(place, out),
        ModelCommand::Test { model } => test(model.clone(), place, out),
    }
}

/// As the daemon sees them; where none runs, as one that is started now would.
fn find(place: &PlaceArgs) -> anyhow::Result<ModelList> {
    find_in(place, || home::open_existing(place, Options::read_only()).map(Some))
}

/// The same without upgrading a home of an older version: which agents use which model is not known then.
pub fn find_as_it_is(place: &PlaceArgs) -> anyhow::Result<ModelList> {
    find_in(place, || match home::open(&home::dir(place)?, Options::read_only()) {
        Err(error) if home::is_outdated(&error) => Ok(None),
        opened => opened.map(Some),
    })
}

fn find_in(place: &PlaceArgs, open: impl FnOnce() -> anyhow::Result<Option<Ledger>>) -> anyhow::Result<ModelList> {
    if let Some(client) = connection::find_if_any(place)? {
        return block_on(async { Ok(client.models().await?) });
    }
    let home = home::dir(place)?;
    let models = options::models(&Settings::load(&home, &UpArgs::default())?);
    let ledger = if home.join("ledger.db").exists() { open()? } else { None };
    let used = match ledger {
        Some(ledger) => models_in_use(&ledger, &models.defaults())?,
        None => Default::default(),
    };
    block_on(async { Ok(models.find(models.list(&used), &used).await) })
}

fn list(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let list = find(place)?;
    out.result(&list, || {
        let rows: Vec<_> = list.items.iter().map(|item| row(item, key_of(&list, item))).collect();
        let mut text = out.columns(&["model", "key", "window", "$ in", "$ out", "prices of", "used by"], &rows);
        text.push('\n');
        for provider in &list.providers {
            text.push_str(&served(provider));
        }
        if !list.default.fallback.is_empty() {
            text.push_str(&format!("asked instead, in this order: {}\n", one_line(&list.default.fallback.join(", "))));
        }
        text.push_str(&format!("{}\n", chosen(&list)));
        text
    })
}

/// Which model agents think with unless they say otherwise, and why that one.
pub fn chosen(list: &ModelList) -> String {
    match &list.default.note {
        Some(note) => one_line(note),
        None => one_line(&format!("the default is {} ({})", list.default.name, list.default.origin)),
    }
}

fn key_of<'a>(list: &'a ModelList, item: &ModelItem) -> Option<&'a ProviderItem> {
    list.providers.iter().find(|provider| provider.name == item.provider)
}

fn row(item: &ModelItem, provider: Option<&ProviderItem>) -> Vec<Cell> {
    let key = match provider.map(|provider| provider.key) {
        Some(KeyState::Set) => "set",
        Some(KeyState::Missing) => "missing",
        Some(KeyState::NotNeeded) | None => "-",
    };
    let price = |of: fn(&abide_api::types::ModelPrices) -> f64| {
        item.prices.as_ref().map_or("-".to_owned(), |prices| of(prices).to_string())
    };
    let date = match &item.prices {
        Some(prices) => prices.date.as_deref().unwrap_or("config.toml"),
        None => "-",
    };
    let agents = match (item.agents_total, item.agents.as_slice()) {
        (0, _) => "-".to_owned(),
        (1..=3, agents) => agents.join(", "),
        (many, _) => counted(many, "agent"),
    };
    let name = if item.default { format!("{} (default)", item.name) } else { item.name.clone() };
    let window = item.window_tokens.map_or("-".to_owned(), grouped);
    vec![
        one_line(&name).into(),
        key.into(),
        window.into(),
        price(|prices| prices.input_usd).into(),
        price(|prices| prices.output_usd).into(),
        date.into(),
        agents.into(),
    ]
}

/// A provider in a sentence; any model that it has can be named.
fn served(provider: &ProviderItem) -> String {
    let ProviderItem { name, base_url, key_env, key, found, unheard, .. } = provider;
    let key = match (key, key_env) {
        (KeyState::Set, Some(variable)) => format!("key from {variable}"),
        (KeyState::Missing, Some(variable)) => format!("no key: {variable} is not set"),
        (KeyState::NotNeeded, Some(variable)) => format!("no key; it may have one in {variable}"),
        (KeyState::Set | KeyState::Missing | KeyState::NotNeeded, None) => "no key".to_owned(),
    };
    let base_url = if base_url.is_empty() { "nobody says where it is" } else { base_url };
    let has = match (found, unheard) {
        (Some(found), _) => format!("; it has {}", counted(*found, "model")),
        (None, Some(why)) => format!("; it does not say what it has ({why})"),
        (None, None) => String::new(),
    };
    format!("{}\n", one_line(&format!("{name}/MODEL: {base_url}, {key}{has}")))
}

fn test(model: Option<String>, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let tested = match connection::find_if_any(place)? {
        Some(client) => block_on(async { Ok(client.test_model(&ModelTest { model }).await?) })?,
        None => {
            let models = options::models(&Settings::load(&home::dir(place)?, &UpArgs::default())?);
            let name = model.unwrap_or_else(|| models.default.name.clone());
            let tested = block_on(async { Ok(models.test(&name).await) })?;
            tested.map_err(|refusal| anyhow!(refusal.message))?
        }
    };
    let ModelTested { model, elapsed_ms, usage, error, priced, .. } = &tested;
    out.result(&tested, || {
        let model = one_line(model);
        match (error, usage) {
            (Some(error), _) => {
                format!(
                    "{model} does not answer: {} ({}); {}\n",
                    one_line(&error.message),
                    error.class,
                    one_line(&error.hint)
                )
            }
            (None, Some(usage)) => format!(
                "{model} answers: {} ms, {} tokens in, {} out, {}\n",
                grouped(*elapsed_ms),
                grouped(usage.input_tokens),
                grouped(usage.output_tokens),
                if *priced { format!("${:.6}", usage.cost_usd) } else { "no price".to_owned() }
            ),
            (None, None) => format!("{model} answers: {} ms\n", grouped(*elapsed_ms)),
        }
    })?;
    match error {
        Some(error) => Err(Failed::Found(format!("{} does not answer ({})", one_line(model), error.class)).into()),
        None => Ok(()),
    }
}
