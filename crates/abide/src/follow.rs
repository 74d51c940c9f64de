//! Following facts as they become durable, over the daemon's restarts: a stream that breaks is taken up after the last
//! fact that was seen, so none is lost and none is seen twice. Where too many streams are open, the facts of an agent are
//! read page by page instead.

use std::collections::VecDeque;
use std::time::Duration;

use abide_api::client::Events;
use abide_api::types::{Event, TextDelta};
use abide_api::{Client, ClientError, Problem};
use anyhow::Context;

use crate::cli::PlaceArgs;
use crate::connection;
use crate::output::{Failed, Output};

const RETRY: Duration = Duration::from_millis(300);
/// Interval of polling for new facts if no stream can be opened.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Follow<'a> {
    place: &'a PlaceArgs,
    out: &'a Output,
    agent: Option<String>,
    client: Client,
    events: Option<Events>,
    /// Facts that were read from a page.
    read: VecDeque<Event>,
    /// The cursor of the last fact that was seen.
    last: Option<String>,
}

/// A fact, and the cursor to continue after it.
#[derive(Debug)]
pub struct FollowedFact {
    pub event: Event,
    pub cursor: String,
}

/// An item of a stream.
#[derive(Debug)]
pub enum StreamItem {
    Fact(Box<FollowedFact>),
    /// Text that a model is writing. The facts of the turn will have it whole.
    Text(TextDelta),
}

impl<'a> Follow<'a> {
    pub fn new(
        client: Client,
        place: &'a PlaceArgs,
        out: &'a Output,
        agent: Option<&str>,
        after: Option<String>,
    ) -> Follow<'a> {
        Follow { place, out, agent: agent.map(str::to_owned), client, events: None, read: VecDeque::new(), last: after }
    }

    /// The next fact or text. Only a refusal ends it.
    pub async fn next(&mut self) -> anyhow::Result<StreamItem> {
        loop {
            if let Some(event) = self.read.pop_front() {
                let cursor = event.seq.to_string();
                self.last = Some(cursor.clone());
                return Ok(StreamItem::Fact(Box::new(FollowedFact { event, cursor })));
            }
            let events = match &mut self.events {
                Some(events) => events,
                None => match self.client.follow(self.agent.as_deref(), self.last.as_deref()).await {
                    Ok(events) => self.events.insert(events),
                    Err(ClientError::Refused(problem)) if problem.status == 429 => {
                        self.read_page(problem).await?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            let Some(event) = events.next().await else {
                self.reconnect().await?;
                continue;
            };
            if event.name == "resync" {
                // Facts are never too old to be followed; a place that the ledger has not reached yet is another's.
                let asked = std::mem::replace(&mut self.last, event.id);
                self.events = None;
                self.out.note(&format!(
                    "there is nothing after {} yet: the last fact is {}, and what comes is followed from there",
                    asked.as_deref().unwrap_or("that"),
                    self.last.as_deref().unwrap_or("before it"),
                ));
                continue;
            }
            if event.name == TextDelta::EVENT {
                let delta = serde_json::from_str(&event.data).context("a text that is not ours")?;
                return Ok(StreamItem::Text(delta));
            }
            // Only facts have ids.
            let Some(cursor) = event.id else { continue };
            self.last = Some(cursor.clone());
            let event = serde_json::from_str(&event.data).context("an event that is not ours")?;
            return Ok(StreamItem::Fact(Box::new(FollowedFact { event, cursor })));
        }
    }

    /// The facts after the last one that was seen, where the stream of them was refused.
    async fn read_page(&mut self, refused: Box<Problem>) -> anyhow::Result<()> {
        let (Some(agent), Some(last)) = (&self.agent, &self.last) else {
            return Err(ClientError::Refused(refused).into());
        };
        match self.client.events(agent, &format!("after={last}")).await {
            Ok(page) => self.read = page.items.into(),
            // Requests are too many as well, at this moment.
            Err(ClientError::Refused(problem)) if problem.status == 429 => {}
            Err(error) => return Err(error.into()),
        }
        if self.read.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    async fn reconnect(&mut self) -> anyhow::Result<()> {
        let mut told = false;
        loop {
            match self.again().await {
                Ok(events) => {
                    if told {
                        self.out.note("the daemon is back");
                    }
                    self.events = Some(events);
                    return Ok(());
                }
                Err(error) if Failed::code(&error) != 7 => match error.downcast_ref::<ClientError>() {
                    // It is there, and not ready yet.
                    Some(ClientError::Refused(problem)) if problem.status == 503 => {}
                    // It is there, and has too many streams.
                    Some(ClientError::Refused(problem)) if problem.status == 429 => {
                        self.events = None;
                        return Ok(());
                    }
                    Some(_) | None => return Err(error),
                },
                Err(_) => {}
            }
            if !told {
                self.out.note("the daemon has gone; waiting for it to come back");
                told = true;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// It may come back at another address.
    async fn again(&mut self) -> anyhow::Result<Events> {
        self.client = connection::find(self.place)?;
        Ok(self.client.follow(self.agent.as_deref(), self.last.as_deref()).await?)
    }
}
