//! Code that the commands about one plane of an agent share.

use abide_api::Client;
use abide_api::client::page_query;
use abide_api::types::Page;
use abide_kernel::id::AgentId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::agent;
use crate::cli::{OfAgent, OfAgents, PlaceArgs};
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, meant};

/// How a plane is shown: its name in the route, its titles, the id of an item and what else is in its row.
pub struct Plane<T> {
    pub route: &'static str,
    pub titles: &'static [&'static str],
    pub id: fn(&T) -> &str,
    pub row: fn(&T, &Output) -> Vec<Cell>,
    /// The sentence for an agent without items; ID stands for the agent.
    pub empty: &'static str,
}

/// All items as one page.
pub fn page_of<T>(items: &[T]) -> Page<&T> {
    Page { items: items.iter().collect(), next: None }
}

/// All items of a plane.
pub async fn items<T: DeserializeOwned>(client: &Client, agent: &AgentId, route: &str) -> anyhow::Result<Vec<T>> {
    fitting(client, agent, route, "").await
}

/// Those that fit a query: `&filter=open`.
async fn fitting<T: DeserializeOwned>(
    client: &Client,
    agent: &AgentId,
    route: &str,
    query: &str,
) -> anyhow::Result<Vec<T>> {
    let id = agent.as_str();
    let page = |after: Option<String>| async move {
        client.plane(id, route, &format!("{}{query}", page_query(after.as_deref()))).await
    };
    Ok(client.all(page).await?)
}

pub fn list<T: DeserializeOwned + Serialize>(
    plane: &Plane<T>,
    of: &OfAgent,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    list_fitting(plane, "", of, place, out)
}

pub fn list_fitting<T: DeserializeOwned + Serialize>(
    plane: &Plane<T>,
    query: &str,
    of: &OfAgent,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let items: Vec<T> = block_on(fitting(&client, &of.agent, plane.route, query))?;
    out.result(&page_of(&items), || {
        if items.is_empty() {
            let agent = of.agent.as_str();
            return format!("{agent} {}\n", plane.empty.replace("ID", agent));
        }
        let ids = out.ids(&items.iter().map(plane.id).collect::<Vec<_>>());
        let row = |(item, id): (&T, String)| {
            let mut cells = vec![Cell::from(id)];
            cells.extend((plane.row)(item, out));
            cells
        };
        let titles: Vec<&str> = std::iter::once("id").chain(plane.titles.iter().copied()).collect();
        out.columns(&titles, &items.iter().zip(ids).map(row).collect::<Vec<_>>())
    })
}

/// An item, and whose it is.
#[derive(Serialize)]
struct OwnedItem<T> {
    agent_id: AgentId,
    #[serde(flatten)]
    item: T,
}

/// One agent's, or what is open of all agents: what is over is of use beside the rest of its agent only.
pub fn list_or_open<T: DeserializeOwned + Serialize>(
    plane: &Plane<T>,
    is_open: fn(&T) -> bool,
    of: &OfAgents,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    if let Some(agent) = &of.agent {
        return list(plane, &OfAgent { agent: agent.clone() }, place, out);
    }
    let client = connection::find(place)?;
    let found: Vec<OwnedItem<T>> = block_on(async {
        let mut found = Vec::new();
        for agent in agent::all(&client).await? {
            for item in items::<T>(&client, &agent.id, plane.route).await? {
                if is_open(&item) {
                    found.push(OwnedItem { agent_id: agent.id.clone(), item });
                }
            }
        }
        Ok(found)
    })?;
    out.result(&page_of(&found), || {
        if found.is_empty() {
            return "nothing is open; --agent ID shows what is over, too\n".to_owned();
        }
        let ids = out.ids(&found.iter().map(|owned| (plane.id)(&owned.item)).collect::<Vec<_>>());
        let row = |(OwnedItem { agent_id, item }, id): (&OwnedItem<T>, String)| {
            let mut cells = vec![Cell::from(agent_id.as_str()), Cell::from(id)];
            cells.extend((plane.row)(item, out));
            cells
        };
        let titles: Vec<&str> = ["agent", "id"].into_iter().chain(plane.titles.iter().copied()).collect();
        out.columns(&titles, &found.iter().zip(ids).map(row).collect::<Vec<_>>())
    })
}

/// The whole id of the item that a person named by it or the end of it. One that nobody knows is left for the daemon to
/// say so.
pub async fn named<T: DeserializeOwned>(
    plane: &Plane<T>,
    client: &Client,
    agent: &AgentId,
    named: &str,
) -> anyhow::Result<String> {
    if named.is_empty() {
        return Err(Failed::Usage("say which one: its id, or the end of it".to_owned()).into());
    }
    let items: Vec<T> = items(client, agent, plane.route).await?;
    let ids: Vec<&str> = items.iter().map(plane.id).collect();
    match meant(&ids, named) {
        Ok(found) => Ok(found.unwrap_or(named).to_owned()),
        Err(several) => {
            let several = several.join(", ");
            Err(Failed::Usage(format!("{named:?} may be any of {several}; write more of it")).into())
        }
    }
}

#[derive(Serialize)]
struct EndedItem<'a> {
    ended: bool,
    id: &'a str,
}

/// Ends the item that a person named by its id or the end of it; `word` is the word for that.
pub fn end<T: DeserializeOwned>(
    plane: &Plane<T>,
    word: &str,
    of: &OfAgent,
    named: &str,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let (id, ended) = block_on(async {
        let id = self::named(plane, &client, &of.agent, named).await?;
        let ended = client.end(of.agent.as_str(), plane.route, &id).await?;
        Ok((id, ended))
    })?;
    out.result(&EndedItem { ended: ended.ended, id: &id }, || {
        if ended.ended { format!("{id} is {word}\n") } else { format!("{id} had ended already\n") }
    })
}

pub fn or_dash(text: Option<&str>) -> Cell {
    text.unwrap_or("-").into()
}
