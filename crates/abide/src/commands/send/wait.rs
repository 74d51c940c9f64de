//! Waiting for the outcome of a message, over the daemon's restarts. The daemon decides what became of it; this only asks
//! again until it is decided, and shows what happens meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use abide_api::types::{Accepted, MessageDetail, TextDelta};
use abide_api::{Client, ClientError};
use tokio::time::Instant;

use crate::cli::PlaceArgs;
use crate::connection;
use crate::output::Output;

/// How long one request waits.
const WAIT: Duration = Duration::from_secs(30);

/// How long a daemon may be away while its answer is waited for.
const AWAY: Duration = Duration::from_secs(60);

/// Between two tries to reach a daemon that is away or has no room.
const RETRY: Duration = Duration::from_millis(300);

/// The message once its agent no longer works on it by itself.
pub async fn wait(
    client: Client,
    agent: &str,
    accepted: &Accepted,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<MessageDetail> {
    let waiting = Waiting { client, agent, accepted, place, out, told: BTreeSet::new(), known: String::new() };
    if !out.has_hints() {
        return waiting.outcome().await;
    }
    tokio::select! {
        detail = waiting.outcome() => detail,
        never = show_text(agent, place, out) => match never {},
    }
}

struct Waiting<'a> {
    client: Client,
    agent: &'a str,
    accepted: &'a Accepted,
    place: &'a PlaceArgs,
    out: &'a Output,
    /// The delays that were reported: each is reported once.
    told: BTreeSet<String>,
    /// The last of them.
    known: String,
}

impl Waiting<'_> {
    async fn outcome(mut self) -> anyhow::Result<MessageDetail> {
        let mut away_since = None;
        loop {
            let message = &self.accepted.message_id;
            let asked = self.client.wait_for_message(self.agent, message, WAIT, &self.known).await;
            let detail = match asked {
                Ok(detail) => detail,
                Err(error) => {
                    self.retry_or_fail(error, &mut away_since)?;
                    tokio::time::sleep(RETRY).await;
                    // It may come back at another address.
                    if let Ok(client) = connection::find(self.place) {
                        self.client = client;
                    }
                    continue;
                }
            };
            if away_since.take().is_some() {
                self.out.note("the daemon is back");
            }
            self.tell_delay(&detail);
            if !detail.outcome.is_under_way() {
                return Ok(detail);
            }
        }
    }

    /// Errors that pass: a daemon that restarts, and one that has no room for this request at the moment.
    fn retry_or_fail(&self, error: ClientError, away_since: &mut Option<Instant>) -> anyhow::Result<()> {
        match &error {
            ClientError::Refused(problem) if problem.status == 429 => return Ok(()),
            ClientError::Refused(problem) if problem.status == 503 => {}
            ClientError::Unreachable { .. } => {}
            // A connection that broke in the middle of an answer.
            ClientError::Foreign { .. } if away_since.is_none() => {}
            ClientError::Refused(_) | ClientError::Foreign { .. } | ClientError::BadUrl(_) => return Err(error.into()),
        }
        if away_since.is_none() {
            self.out.note("the daemon has gone; waiting for it to come back");
        }
        let since = *away_since.get_or_insert_with(Instant::now);
        match since.elapsed() < AWAY {
            true => Ok(()),
            false => Err(error.into()),
        }
    }

    fn tell_delay(&mut self, detail: &MessageDetail) {
        let Some(delay) = detail.outcome.delay() else { return };
        self.known.clone_from(&delay.delay_id);
        if self.told.insert(delay.delay_id.clone()) {
            self.out.note(&delay.sentence);
        }
    }
}

/// Shows the end of the text that the agent says at this moment. It is gone when the answer comes: the answer alone is
/// the result. Whatever goes wrong here is told by the request for the outcome.
async fn show_text(agent: &str, place: &PlaceArgs, out: &Output) -> std::convert::Infallible {
    let mut spoken = RoundText::default();
    loop {
        if let Ok(client) = connection::find(place)
            && let Ok(mut events) = client.follow(Some(agent), None).await
        {
            while let Some(event) = events.next().await {
                if event.name == TextDelta::EVENT
                    && let Ok(delta) = serde_json::from_str::<TextDelta>(&event.data)
                {
                    out.show_text_end(spoken.add(&delta));
                }
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The end of the text of a round.
#[derive(Debug, Default)]
struct RoundText {
    round: (String, u32),
    text: String,
}

impl RoundText {
    fn add(&mut self, delta: &TextDelta) -> &str {
        const KEPT_CHARS: usize = 200;
        let round = (delta.exec_id.clone(), delta.round);
        if self.round != round {
            *self = RoundText { round, text: String::new() };
        }
        self.text.push_str(&delta.text);
        if let Some((cut, _)) = self.text.char_indices().rev().nth(KEPT_CHARS) {
            self.text.drain(..cut);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_round_is_shown_and_the_next_begins_anew() {
        let mut spoken = RoundText::default();
        let delta = |round, text: &str| TextDelta {
            agent_id: None,
            exec_id: "exec_1".to_owned(),
            round,
            text: text.to_owned(),
        };
        assert_eq!(spoken.add(&delta(1, "Hello, ")), "Hello, ");
        assert_eq!(spoken.add(&delta(1, "world")), "Hello, world");
        assert_eq!(spoken.add(&delta(1, &"x".repeat(500))).len(), 201);
        assert_eq!(spoken.add(&delta(2, "Next")), "Next");
    }
}
