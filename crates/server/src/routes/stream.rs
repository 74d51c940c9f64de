//! Server-sent events: one per fact, in order, with neither gap nor repeat; and between them text as it is spoken. A
//! follower reads from the ledger at its own pace; what is new wakes it, and one that takes nothing is cut off by its
//! connection.

mod spoken;

use std::sync::Arc;
use std::time::Duration;

use abide_api::Problem;
use abide_engine::streams::HeadWatch;
use abide_kernel::id::{AgentId, Seq};
use abide_ledger::{Bounds, Cursor, Follow, ReadError, Recorded, StreamId};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde::Serialize;
use tokio::sync::watch;

use super::history::event;
use super::page::PAGE_BYTES;
use super::{Met, agent, blocking, text};
use crate::answers::{Reserved, SMALL};
use crate::app::App;
use crate::call::Call;
use crate::problems;
use crate::shares::{Held, Holder};
use spoken::Spoken;

/// Facts per piece: what one follower holds in memory.
const BATCH: Bounds = Bounds { items: 64, bytes: PAGE_BYTES };
/// Memory for what a piece is made of.
const READ: usize = 2 << 20;

/// What both kinds of followers have.
struct Follower {
    app: Arc<App>,
    closing: watch::Receiver<bool>,
    heartbeat: Duration,
    begun: bool,
    holder: Holder,
    /// For the piece that is on its way. When the next one is asked for, it is sent.
    memory: Option<Reserved>,
    _place: Held,
}

impl Follower {
    fn new(call: &Call) -> Result<Follower, Problem> {
        let app = Arc::clone(&call.app);
        let holder = call.holder.clone();
        let place = app.streams.try_acquire(&holder, 1);
        let place = place.ok_or_else(|| problems::overloaded("too many event streams are open"))?;
        let (closing, heartbeat) = (app.closing.subscribe(), app.options.limits.heartbeat);
        Ok(Follower { closing, app, heartbeat, begun: false, holder, memory: None, _place: place })
    }

    /// Memory to read facts in; none when the daemon goes down meanwhile.
    async fn reserve(&mut self) -> Option<Reserved> {
        tokio::select! {
            biased;
            // Facts that are durable already are told, also while the daemon goes down.
            reserved = self.app.answers.reserve(&self.holder, READ) => Some(reserved),
            _ = self.closing.wait_for(|closing| *closing) => None,
        }
    }

    /// A piece to be sent. What was reserved for making it is kept for its bytes alone, and for large ones only.
    fn send(&mut self, piece: String, mut reserved: Reserved) -> Bytes {
        if piece.len() > SMALL {
            reserved.shrink_to(piece.len());
            self.memory = Some(reserved);
        }
        Bytes::from(piece)
    }
}

/// Our own shapes all have a JSON form.
fn piece(text: &mut String, name: &str, id: &str, data: &impl Serialize) {
    let data = serde_json::to_string(data).unwrap_or_default();
    text.push_str(&format!("event: {name}\nid: {id}\ndata: {data}\n\n"));
}

/// Where a reader goes on whose place is none.
#[derive(Serialize)]
struct Resync<'a> {
    after: &'a str,
    reason: &'a str,
}

/// The stream can't be read on.
#[derive(Serialize)]
struct Damaged {
    detail: String,
}

fn resync(id: &str, why: &str) -> Bytes {
    let mut text = String::new();
    piece(&mut text, "resync", id, &Resync { after: id, reason: why });
    Bytes::from(text)
}

/// Where a client was, from the header that browsers send or from the query; the header is the newer one.
fn resume(call: &Call) -> Option<String> {
    let header = call.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    header.filter(|id| !id.is_empty()).or_else(|| call.query.text("after").map(str::to_owned))
}

fn answer(
    pieces: impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
) -> axum::response::Response {
    let mut response = text(200, "text/event-stream", Body::from_stream(pieces));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) async fn of_agent(call: Call) -> Met {
    let id = agent(&call)?;
    let after = match resume(&call) {
        None => None,
        Some(text) => Some(text.parse::<Seq>().map_err(|_| bad_cursor(&text))?),
    };
    let follower = Follower::new(&call)?;
    // Subscribed before the head is read: nothing falls between.
    let heads = call.app.host.follow(&id);
    let (app, stream_id) = (Arc::clone(&call.app), StreamId::agent(&id));
    let head =
        blocking(move || app.host.ledger().head(&stream_id).map_err(|error| problems::unreadable(&error))).await?;
    let head = head.ok_or_else(|| problems::no_agent(id.as_str()))?.seq;
    let (after, lost) = match after {
        Some(after) if after > head => (head, Some(resync(&head.to_string(), "the ledger ends before that"))),
        Some(after) => (after, None),
        None => (head, None),
    };
    let spoken = Spoken::of(&call.app.options.deltas, Some(&id));
    let state = OfAgent { follower, heads, id, after, caught_up: false, spoken, lost };
    Ok(answer(stream::unfold(state, |mut state| async move { Some((Ok(state.next().await?), state)) })))
}

struct OfAgent {
    follower: Follower,
    heads: HeadWatch,
    id: AgentId,
    after: Seq,
    /// There was nothing more when it was last read.
    caught_up: bool,
    spoken: Spoken,
    lost: Option<Bytes>,
}

impl OfAgent {
    /// The next piece; none ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.follower.begun, true) {
            return Some(Bytes::from_static(b": hello\n\n"));
        }
        if let Some(lost) = self.lost.take() {
            return Some(lost);
        }
        self.follower.memory = None;
        loop {
            // The facts that came before a piece of text are published before it is: heard first and read after, none of
            // them is missing.
            let heard = self.spoken.catch_up();
            if self.heads.take_moved() || !self.caught_up {
                let facts = self.facts().await?;
                if !facts.is_empty() {
                    return Some(facts);
                }
            }
            if heard > 0 {
                let mut text = String::new();
                self.spoken.say(heard, &mut text);
                return Some(Bytes::from(text));
            }
            tokio::select! {
                biased;
                // Before the end: what became durable until then is told.
                () = self.heads.moved() => self.caught_up = false,
                _ = self.follower.closing.wait_for(|closing| *closing) => return None,
                () = self.spoken.more() => {}
                () = tokio::time::sleep(self.follower.heartbeat) => {
                    // Looked at again, in case that somebody recorded something and told nobody.
                    self.caught_up = false;
                    return Some(Bytes::from_static(b": still here\n\n"));
                }
            }
        }
    }

    /// The next facts, with what has to be heard before them; empty if there are none.
    async fn facts(&mut self) -> Option<Bytes> {
        let reserved = self.follower.reserve().await?;
        let (app, stream, after) = (Arc::clone(&self.follower.app), StreamId::agent(&self.id), self.after);
        let read = move || {
            let facts = app.host.ledger().read_within(&stream, after, BATCH);
            facts.map_err(|error| problems::unreadable(&error))
        };
        let facts = blocking(read).await.ok()?;
        // What comes after a read that reached neither bound is told of.
        let bytes: usize = facts.iter().map(|fact| fact.payload.stored().map_or(0, <[u8]>::len)).sum();
        self.caught_up = facts.len() < BATCH.items && bytes < BATCH.bytes;
        self.spoken.catch_up();
        let mut text = String::new();
        for fact in &facts {
            let event = event(self.id.as_str(), fact);
            self.spoken.before(&event, &mut text);
            piece(&mut text, &fact.kind, &fact.seq.to_string(), &event);
            self.after = fact.seq;
        }
        Some(self.follower.send(text, reserved))
    }
}

pub(super) async fn of_all(call: Call) -> Met {
    let follower = Follower::new(&call)?;
    let ledger = call.app.host.ledger().clone();
    let end = ledger.end().map_err(|error| problems::unreadable(&error))?;
    let (after, lost) = match resume(&call) {
        None => (end, None),
        Some(text) => match text.parse::<Cursor>().map_err(|_| bad_cursor(&text))? {
            after if after > end => (end, Some(resync(&end.to_string(), "the ledger ends before that"))),
            after => (after, None),
        },
    };
    let spoken = Spoken::of(&call.app.options.deltas, None);
    let state = OfAll { follower, follow: Some(ledger.follow(after)), spoken, lost };
    Ok(answer(stream::unfold(state, |mut state| async move { Some((Ok(state.next().await?), state)) })))
}

/// Some facts of the feed over all agents.
type FeedPart = Result<Vec<(Cursor, StreamId, Recorded)>, ReadError>;

struct OfAll {
    follower: Follower,
    /// Lent to the thread that reads.
    follow: Option<Follow>,
    spoken: Spoken,
    lost: Option<Bytes>,
}

impl OfAll {
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.follower.begun, true) {
            return Some(Bytes::from_static(b": hello\n\n"));
        }
        if let Some(lost) = self.lost.take() {
            return Some(lost);
        }
        self.follower.memory = None;
        loop {
            let heard = self.spoken.catch_up();
            let (facts, reserved) = self.facts().await?;
            let follow = self.follow.as_mut()?;
            let mut text = String::new();
            match facts {
                Ok(facts) if facts.is_empty() && heard > 0 => self.spoken.say(heard, &mut text),
                Ok(facts) if facts.is_empty() => {
                    tokio::select! {
                        biased;
                        more = follow.more() => more.ok()?,
                        _ = self.follower.closing.wait_for(|closing| *closing) => return None,
                        () = self.spoken.more() => {}
                        () = tokio::time::sleep(self.follower.heartbeat) => {
                            return Some(Bytes::from_static(b": still here\n\n"));
                        }
                    }
                }
                Ok(facts) => {
                    self.spoken.catch_up();
                    for (cursor, stream, fact) in &facts {
                        // Keys and tokens are nobody's news.
                        if let Some(agent) = stream.agent_name() {
                            let event = event(agent, fact);
                            self.spoken.before(&event, &mut text);
                            piece(&mut text, &fact.kind, &cursor.to_string(), &event);
                        }
                    }
                }
                Err(error) => {
                    let damaged = Damaged { detail: error.to_string() };
                    piece(&mut text, "damaged", &follow.cursor().to_string(), &damaged);
                }
            }
            if !text.is_empty() {
                return Some(match reserved {
                    Some(reserved) => self.follower.send(text, reserved),
                    None => Bytes::from(text),
                });
            }
        }
    }

    /// The next facts, with the memory they are read in; none of them where the ledger ends.
    async fn facts(&mut self) -> Option<(FeedPart, Option<Reserved>)> {
        if !self.follow.as_ref()?.is_behind() {
            return Some((Ok(Vec::new()), None));
        }
        let reserved = self.follower.reserve().await?;
        let mut follow = self.follow.take()?;
        let read = move || {
            let facts = follow.next_within(BATCH);
            Ok((follow, facts))
        };
        let (follow, facts) = blocking(read).await.ok()?;
        self.follow = Some(follow);
        Some((facts, Some(reserved)))
    }
}

fn bad_cursor(text: &str) -> Problem {
    let text: String = text.chars().take(80).collect();
    Problem::new(400, "bad_cursor", format!("{text:?} is no place in this stream"))
        .hint("resume with the id of an event")
}
