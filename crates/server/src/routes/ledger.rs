//! The ledger, for the command line: while a daemon serves a home, nobody else opens it.

use std::io::{self, Write};
use std::sync::Arc;

use abide_api::types::{Compact, Fork, Verify};
use abide_api::{ErrorCode, Problem};
use abide_engine::fork::{ForkError, fork as make_fork};
use abide_engine::{Forked, RequestSummary};
use abide_engine::{Response, upkeep};
use abide_kernel::id::AgentId;
use abide_kernel::input::Answer;
use abide_kernel::vocabulary::Status;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

use super::{Met, blocking, json, text};
use crate::body;
use crate::call::Call;
use crate::once::{Once, once};
use crate::problems;

pub(super) async fn stats(call: Call) -> Met {
    let app = Arc::clone(&call.app);
    let stats =
        blocking(move || upkeep::stats(app.host.ledger()).map_err(|error| problems::unreadable(&error))).await?;
    Ok(json(200, &stats))
}

pub(super) async fn verify(call: Call) -> Met {
    let verify: Verify = body::json_or_default(&call.body)?;
    let app = Arc::clone(&call.app);
    let report = blocking(move || {
        let report = upkeep::verify(app.host.ledger(), verify.rebuild_rows, &mut |_| ());
        report.map_err(|error| Problem::new(ErrorCode::Store, error.to_string()))
    })
    .await?;
    Ok(json(200, &report))
}

pub(super) async fn compact(call: Call) -> Met {
    let compact: Compact = body::json_or_default(&call.body)?;
    let app = Arc::clone(&call.app);
    let report = blocking(move || {
        let days = compact.older_than_days.unwrap_or(upkeep::OLDER_THAN_DAYS);
        let now = app.host.clock().now();
        let report = upkeep::compact(app.host.ledger(), now, days, compact.max_bytes, &mut |_| ());
        report.map_err(|error| Problem::new(ErrorCode::Store, error.to_string()))
    })
    .await?;
    Ok(json(200, &report))
}

pub(super) async fn fork(call: Call) -> Met {
    let fork: Fork = body::json(&call.body)?;
    let wrong = |detail: String, pointer: &str| Problem::new(ErrorCode::WrongFields, detail).pointer(pointer);
    let parent = AgentId::new(&fork.agent).map_err(|error| wrong(error.to_string(), "/agent"))?;
    let name = AgentId::new(&fork.name).map_err(|error| wrong(error.to_string(), "/as"))?;
    let claim = match once(&call).await? {
        Once::Again(answered) => return Ok(json(200, &answered.summary)),
        Once::Meet(claim) => claim,
    };
    let app = Arc::clone(&call.app);
    let forked = blocking(move || {
        let clock = app.host.clock();
        // The key is held until the fork is on disk.
        let _hold = claim.as_ref().and_then(|claim| claim.hold.clone());
        let forked =
            Forked { agent_id: name.clone(), parent: parent.clone(), at_seq: fork.at, status: Status::Stopped };
        let summary = Some(RequestSummary::Fork(forked.clone()));
        let answered = Response { answer: Answer::Done, seq: fork.at, summary };
        let claim = claim.map(|claim| (claim, answered));
        let made = make_fork(app.host.ledger(), &parent, fork.at, &name, clock.now(), clock.entropy(), claim);
        made.map_err(|error| refused(error, &parent))?;
        app.host.add_agent(&name);
        Ok(forked)
    })
    .await?;
    Ok(json(200, &forked))
}

fn refused(error: ForkError, parent: &AgentId) -> Problem {
    match error {
        ForkError::NoParent(_) => problems::no_agent(parent.as_str()),
        ForkError::Exists(_) => Problem::new(ErrorCode::Exists, error.to_string()),
        ForkError::NoSuchMoment { .. } => Problem::new(ErrorCode::NoSuchMoment, error.to_string()),
        ForkError::Damaged(damage) => problems::damaged(parent.as_str(), &damage.to_string()),
        ForkError::Unreadable(error) => problems::unreadable(&error),
        ForkError::NotCommitted(error) => Problem::new(ErrorCode::Store, format!("nothing was recorded: {error}")),
    }
}

/// The whole ledger, as it is written; a client that stops reading stops the writing.
pub(super) fn export(call: Call) -> Met {
    let (sender, pieces) = mpsc::channel::<Result<Bytes, io::Error>>(4);
    let app = Arc::clone(&call.app);
    // It ends with its reader: every write waits for room, and fails once nobody reads.
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(64 * 1024, Pieces(sender.clone()));
        let written = app.host.ledger().export_full(&mut out, &mut |_| ());
        let failed = match written {
            Ok(_) => out.flush().err(),
            Err(error) => Some(io::Error::other(error.to_string())),
        };
        if let Some(error) = failed {
            // A body that ends in an error is cut, so that nobody takes half a ledger for a whole one.
            let _unread = sender.blocking_send(Err(error));
        }
    });
    let pieces = stream::unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    Ok(text(200, "application/x-ndjson", Body::from_stream(pieces)))
}

struct Pieces(mpsc::Sender<Result<Bytes, io::Error>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads any more");
        self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes))).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
