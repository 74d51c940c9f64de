//! What agents think with: whether it is chosen, has its key, can be reached, and can be called.

use std::thread;

use abide_api::types::{KeyState, ModelItem, ModelList, ProviderItem};
use abide_daemon::models::ECHO;
use abide_daemon::text::price_command;
use abide_effects::model::cards::format_usd;
use abide_effects::model::providers::Kind;
use abide_effects::web::{self, Url};

use super::Check;
use crate::cli::{PlaceArgs, UpArgs};
use crate::commands::model;

use crate::config::Settings;
use crate::connection::{self, block_on};
use crate::home;
use crate::output::{counted, one_line};

pub fn checks(place: &PlaceArgs) -> Vec<Check> {
    match model::find_as_it_is(place) {
        // What is wrong with the settings, the daemon or the ledger has a line of its own.
        Err(_) => Vec::new(),
        Ok(list) => {
            let mut checks = vec![chosen(&list), keys(&list)];
            checks.extend(endpoints(&list));
            checks.extend(thinkers(&list));
            checks.extend(unpriced(&list, place));
            checks.extend(spending(&list, place));
            checks
        }
    }
}

/// Whether a day that goes wrong has a bound, where there is a model that costs money.
fn spending(list: &ModelList, place: &PlaceArgs) -> Option<Check> {
    let settings = Settings::load(&home::dir(place).ok()?, &UpArgs::default()).ok()?;
    match settings.budget_daily_usd.value.0 {
        0 if list.providers.iter().all(|provider| provider.key != KeyState::Set) => None,
        0 => Some(Check::warn(
            "spending",
            "no limit on what all agents together may spend in a day",
            "`abide config set budget.daily_usd 20` sets one, then `abide daemon restart`",
        )),
        micro => Some(Check::ok("spending", format!("${} a day for all agents together", format_usd(micro)))),
    }
}

fn chosen(list: &ModelList) -> Check {
    let found = model::chosen(list);
    let item = list.items.iter().find(|item| item.default);
    match item.and_then(|item| item.problem.as_deref()) {
        Some(problem) => {
            let fix = "mend that, or `abide config set model PROVIDER/MODEL` names another";
            Check::fail("model", format!("{found}; it can't be called: {problem}"), fix)
        }
        None if list.default.name == ECHO => Check::warn(
            "model",
            found,
            "`abide config set model PROVIDER/MODEL` gives them one, or a key in the daemon's environment",
        ),
        None => Check::ok("model", found),
    }
}

/// Which variables hold a key. Never what is in them.
fn keys(list: &ModelList) -> Check {
    let mut said: Vec<String> = list
        .providers
        .iter()
        .filter_map(|provider| {
            let variable = provider.key_env.as_ref()?;
            let is = if provider.key == KeyState::Set { "is set" } else { "is not set" };
            Some(format!("{variable} {is}"))
        })
        .collect();
    said.sort_unstable();
    said.dedup();
    Check::ok("keys", said.join(", "))
}

/// Providers that somebody has set up or thinks with. Others are nobody's business: nothing is sent to them.
fn endpoints(list: &ModelList) -> Vec<Check> {
    let wanted = |provider: &&ProviderItem| {
        // Somebody gave it a name, and it can't work before somebody says where it is.
        let begun = provider.base_url.is_empty() && !Kind::ALL.iter().any(|kind| kind.as_str() == provider.name);
        let thought_with = |item: &ModelItem| item.provider == provider.name && (item.default || item.agents_total > 0);
        begun || provider.key == KeyState::Set || list.items.iter().any(thought_with)
    };
    let wanted: Vec<&ProviderItem> = list.providers.iter().filter(wanted).collect();
    // At the same time: none of them should wait for another that hangs.
    thread::scope(|scope| {
        let tries: Vec<_> = wanted.iter().map(|provider| scope.spawn(move || endpoint(provider))).collect();
        let joined = tries.into_iter().zip(&wanted).map(|(tried, provider)| {
            tried.join().unwrap_or_else(|_| {
                Check::fail("endpoint", format!("{}: looking at it failed", provider.name), "report this")
            })
        });
        joined.collect()
    })
}

/// Whether anybody answers there. No key is shown to find out.
fn endpoint(provider: &ProviderItem) -> Check {
    let ProviderItem { name, base_url, key, exposed, .. } = provider;
    if base_url.is_empty() {
        let fix = format!("`abide config set providers.{name}.base_url https://HOST/v1`");
        return Check::fail("endpoint", format!("{name}: nobody says where it is"), fix);
    }
    let answered = Url::parse(base_url).and_then(|url| web::probe_connection(&url));
    match answered {
        Err(problem) => Check::fail(
            "endpoint",
            format!("{name}: nobody answers at {base_url} ({problem})"),
            "see whether it runs, and whether this machine may reach it",
        ),
        Ok(()) if *exposed && *key == KeyState::Set => Check::warn(
            "endpoint",
            format!("{name}: {base_url} answers, and its key goes there for everybody on the way to read"),
            "use https, or a server on this machine",
        ),
        Ok(()) => Check::ok("endpoint", format!("{name}: {base_url} answers")),
    }
}

/// Agents that can't think.
fn thinkers(list: &ModelList) -> Vec<Check> {
    let stuck = list.items.iter().filter(|item| item.agents_total > 0);
    let stuck = stuck.filter_map(|item| Some((item, item.problem.as_ref()?)));
    let check = |(item, problem): (&ModelItem, &String)| {
        let named = item.agents.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
        let rest = item.agents_total.saturating_sub(3);
        let more = if rest > 0 { format!(" and {} more", counted(rest, "agent")) } else { String::new() };
        let found = format!("{named}{more} can't think with {}: {problem}", item.name);
        Check::warn("agents", one_line(&found), "mend that, or `abide agent set ID --model M` gives them another")
    };
    stuck.map(check).collect()
}

/// Agents that spend limited money on a model without a price: its calls are refused, and nobody may have seen that yet.
fn unpriced(list: &ModelList, place: &PlaceArgs) -> Vec<Check> {
    // Budgets are the daemon's to say.
    let Ok(Some(client)) = connection::find_if_any(place) else { return Vec::new() };
    let unpriced = |name: &str| {
        let item = list.items.iter().find(|item| item.name == name);
        item.is_some_and(|item| item.prices.is_none() && item.window_tokens.is_some())
    };
    let agents = list.items.iter().flat_map(|item| &item.agents);
    let check = |id: &String| {
        let summary = block_on(async { Ok(client.agent(id).await?) }).ok()?;
        let budget = &summary.model.budget;
        let limited = budget.max_usd.or_else(|| budget.daily.as_ref()?.max_usd).is_some();
        let model = [&summary.model.name].into_iter().chain(&summary.model.fallback).find(|name| unpriced(name))?;
        limited.then(|| {
            let found = format!("{id} has a limit in dollars, and {model} has no price: it is not asked");
            let fix = format!("`{}` says what it costs, or limit tokens instead", price_command(model));
            Check::warn("budget", one_line(&found), fix)
        })
    };
    agents.filter_map(check).collect()
}
