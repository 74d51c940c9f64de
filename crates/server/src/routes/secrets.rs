//! Secrets: set, listed by name, removed. A value comes in here, is handed on, and is in no answer, no log and no fact.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_api::types::{SecretItem, SecretSet};
use abide_api::{ErrorCode, Problem};
use abide_ledger::{Ledger, ReadError};

use super::{Met, blocking, json, page};
use crate::agent_row::readable_agent_row;
use crate::app::App;
use crate::body;
use crate::call::Call;
use crate::problems;

const BATCH: usize = 1_000;
/// What a name has that no value is known of.
const MISSING: &str = "missing";

/// The agents that were given each secret. Those that are archived run no commands.
fn in_use(ledger: &Ledger) -> Result<BTreeMap<String, Vec<String>>, ReadError> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut place = None;
    loop {
        let streams = ledger.streams(place.as_ref(), BATCH)?;
        for (stream, _) in &streams {
            // Agents come first among the streams.
            let Some(agent) = stream.agent_name() else { return Ok(used) };
            let row = readable_agent_row(ledger, stream)?.filter(|row| !row.archived).unwrap_or_default();
            for name in row.secrets {
                used.entry(name).or_default().push(agent.to_owned());
            }
        }
        match streams.last() {
            Some((stream, _)) if streams.len() == BATCH => place = Some(stream.clone()),
            Some(_) | None => return Ok(used),
        }
    }
}

/// Every secret that is set or was given to an agent, by name.
async fn items(app: &Arc<App>) -> Result<BTreeMap<String, SecretItem>, Problem> {
    let app = Arc::clone(app);
    blocking(move || {
        let used = in_use(app.host.ledger()).map_err(|error| problems::unreadable(&error))?;
        let known = app.options.services.secrets().into_iter();
        let named = used.keys().map(|name| (name.clone(), MISSING.to_owned()));
        // What is known of a name goes before that it is missing.
        let sources: BTreeMap<String, String> = named.chain(known).collect();
        let item = |(name, source): (String, String)| {
            let agents = used.get(&name).cloned().unwrap_or_default();
            (name.clone(), SecretItem { name, source, agents })
        };
        Ok(sources.into_iter().map(item).collect())
    })
    .await
}

pub(super) async fn list(call: Call) -> Met {
    let limit = call.query.limit()?;
    let after = call.query.text("after").unwrap_or_default().to_owned();
    let items = items(&call.app).await?.into_values().filter(|item| item.name > after);
    Ok(page::of_items(items, limit, |item| item.name.clone()))
}

async fn one(app: &Arc<App>, name: &str) -> Result<SecretItem, Problem> {
    let gone = || SecretItem { name: name.to_owned(), source: MISSING.to_owned(), agents: Vec::new() };
    Ok(items(app).await?.remove(name).unwrap_or_else(gone))
}

/// Setting one twice is setting it once, so it takes no key: a key would keep a digest of the request.
pub(super) async fn set(call: Call) -> Met {
    let name = call.param("item").to_owned();
    let set: SecretSet = body::json(&call.body)?;
    let (app, kept) = (Arc::clone(&call.app), name.clone());
    blocking(move || app.options.services.set_secret(&kept, &set.value).map_err(problems::of_refusal)).await?;
    Ok(json(200, &one(&call.app, &name).await?))
}

pub(super) async fn remove(call: Call) -> Met {
    let name = call.param("item").to_owned();
    let (app, removed) = (Arc::clone(&call.app), name.clone());
    let there = blocking(move || match app.options.services.remove_secret(&removed) {
        // A name that no secret can have is one that none has.
        Err(refusal) if refusal.code == ErrorCode::WrongName => Ok(false),
        other => other.map_err(problems::of_refusal),
    });
    if !there.await? {
        let hint = "GET /v1/secrets lists them; those of the daemon's environment are removed there";
        return Err(Problem::new(ErrorCode::NotFound, "the home has no such secret").hint(hint));
    }
    Ok(json(200, &one(&call.app, &name).await?))
}
