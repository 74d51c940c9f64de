//! What an agent thinks with and what it may spend, taken together: each may be fine by itself. What changes afterwards,
//! as a price that is taken out of the settings, is seen to when the model is called.

use abide_api::{ErrorCode, Problem};
use abide_kernel::AgentState;
use abide_kernel::config::{Choice, Config, ConfigChange};
use abide_kernel::id::AgentId;

use super::credentials;
use crate::app::App;

/// Refuses settings that don't go together. `said` is what the request names; the rest is as it was.
pub(super) fn fits(app: &App, config: &Config, items_limit_money: bool, said: &ConfigChange) -> Result<(), Problem> {
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    let own_model = matches!(said.model, Some(Choice::Own(_)));
    let own_fallback = matches!(said.fallback, Some(Choice::Own(_)));
    let place = |index: usize| match index {
        0 if own_model => "/model".to_owned(),
        1.. if own_fallback => format!("/fallback/{}", index - 1),
        1.. if own_model && said.budget.is_none() => "/model".to_owned(),
        _ => "/budget".to_owned(),
    };
    // Of the settings' fallbacks, the one that an agent thinks with is left out.
    let all: Vec<&String> = std::iter::once(&config.model).chain(&config.fallback).collect();
    let twice = all.iter().enumerate().find(|(index, model)| all[..*index].contains(model));
    if let Some((index, model)) = twice.filter(|_| (own_model || own_fallback) && !config.default_fallback) {
        let detail = format!("{model} would be asked twice for the same: name it once, as its model or as a fallback");
        return Err(wrong(detail, &place(index)));
    }
    let named = said.model.is_some() || said.fallback.is_some();
    if (named || said.budget.is_some()) && (config.budget.limits_money() || items_limit_money) {
        for (index, model) in config.models().enumerate() {
            (app.options.check_price)(model).map_err(|problem| wrong(problem, &place(index)))?;
        }
    }
    Ok(())
}

/// The same for a change of an agent that there is. Where there is none, whoever is asked to change it says so.
pub(super) async fn still_fits(app: &App, id: &AgentId, change: &ConfigChange) -> Result<(), Problem> {
    let look = |state: &AgentState| {
        let limited = state.planes.work.items().values().any(|item| item.budget.max_micro_usd.is_some());
        (state.definition.config.clone(), limited)
    };
    match app.host.look(id, move |state, _| look(state)).await {
        Ok(Some((config, items))) => {
            let changed = config.following(&app.options.models).with(change.clone());
            if !change.credentials.is_empty() {
                credentials::check(app, &changed.credentials)?;
            }
            fits(app, &changed, items, change)
        }
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Whether money can be limited for work of this agent.
pub(super) async fn can_limit_money(app: &App, id: &AgentId) -> Result<(), Problem> {
    let Ok(Some(config)) = app.host.look(id, |state, _| state.definition.config.clone()).await else { return Ok(()) };
    config.following(&app.options.models).models().try_for_each(|model| {
        let wrong = |problem| Problem::new(ErrorCode::WrongFields, problem).pointer("/budget/max_usd");
        (app.options.check_price)(model).map_err(wrong)
    })
}
