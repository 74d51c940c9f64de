//! Tells the operator, outside: by a command or a webhook of their choice.
//!
//! Notices are read from the ledger after a position that is stored on disk. The position moves only after a notice was
//! sent or given up. So an agent never waits for it, and a crash loses nothing: a notice that was not confirmed is sent
//! again, under the same id.

mod notice;
mod sink;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use abide_effects::secrets::Secrets;
use abide_effects::web::Url;
use abide_effects::webhook::Secret;
use abide_engine::Host;
use abide_kernel::decide;
use abide_kernel::explain::why;
use abide_kernel::time::Time;
use abide_ledger::{Bounds, Cursor, Follow, ReadError};
use abide_private::{private_folder, read_regular, write_private};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::error::{Action, StartError};
pub use notice::NoticeKind;
use notice::{Notice, PendingNotice};
use sink::Sink;

/// Waits between attempts. After the last of them a notice is given up, which the log and `abide doctor` say.
const WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20), Duration::from_secs(60)];
const BATCH: Bounds = Bounds { items: 256, bytes: 4 << 20 };
/// Facts that nobody is told of, after which the place is written down all the same.
const SAVE_EVERY: usize = 4_096;
/// States that were told and are not told again while they last.
const TOLD_MAX: usize = 256;

/// The notifications that the operator chose.
#[derive(Debug, Clone)]
pub struct NotifyOptions {
    pub command: Option<String>,
    pub webhook: Option<(Url, Option<Secret>)>,
    pub on: Vec<NoticeKind>,
    /// Variables that are nobody else's business.
    pub hidden: HiddenVariables,
}

/// Variables with keys of models, and those that were given to agents as secrets, also since the start.
#[derive(Debug, Clone, Default)]
pub struct HiddenVariables {
    pub keys: Vec<String>,
    pub secrets: Option<Secrets>,
}

impl HiddenVariables {
    fn names(&self) -> Vec<String> {
        let given = self.secrets.iter().flat_map(Secrets::list).map(|(name, _)| name);
        self.keys.iter().cloned().chain(given).collect()
    }
}

impl NotifyOptions {
    fn sinks(self, home: &Path) -> Vec<Sink> {
        let webhook = self.webhook.map(|(url, secret)| Sink::Webhook { url, secret });
        let (hidden, folder) = (self.hidden, home.to_owned());
        self.command.map(|command| Sink::Command { command, folder, hidden }).into_iter().chain(webhook).collect()
    }
}

/// How far one way of telling has come, as it is kept in the home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SinkProgress {
    pub cursor: String,
    pub sent: u64,
    /// Given up after the last attempt.
    pub failed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// States that were told.
    #[serde(default)]
    pub told: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    pub at: Time,
    pub id: String,
    pub error: String,
}

impl SinkProgress {
    pub fn file(home: &Path, sink: &str) -> PathBuf {
        home.join("notify").join(format!("{sink}.json"))
    }

    /// Reads the stored progress; none if it is missing or invalid.
    pub fn read(path: &Path) -> Option<SinkProgress> {
        read_regular(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
    }

    fn save(&self, path: &Path) -> io::Result<()> {
        private_folder(path.parent().unwrap_or(Path::new(".")))?;
        write_private(path, &serde_json::to_vec(self)?)
    }
}

/// The tasks that tell. They end with it; what they have not told is told by the next daemon.
#[derive(Debug)]
pub struct Notifier(Vec<JoinHandle<()>>);

impl Drop for Notifier {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Begins where the last daemon left off. A way that was not chosen before begins at `since`: the past is not news.
pub fn start(home: &Path, host: &Host, chosen: NotifyOptions, since: Cursor) -> Result<Notifier, StartError> {
    let on = chosen.on.clone();
    let sinks = chosen.sinks(home);
    for name in sink::NAMES.iter().filter(|name| !sinks.iter().any(|sink| sink.name() == **name)) {
        // NotifyOptions again later, it begins anew.
        let _absent = fs::remove_file(SinkProgress::file(home, name));
    }
    let mut tasks = Vec::new();
    for sink in sinks {
        let path = SinkProgress::file(home, sink.name());
        let known = SinkProgress::read(&path).and_then(|place| Some((place.cursor.parse::<Cursor>().ok()?, place)));
        let (cursor, place) = match known.filter(|(cursor, _)| *cursor <= since) {
            Some(known) => known,
            None => {
                let new = SinkProgress {
                    cursor: since.to_string(),
                    sent: 0,
                    failed: 0,
                    last_failure: None,
                    told: Vec::new(),
                };
                new.save(&path).action(|| format!("can't write {}", path.display()))?;
                (since, new)
            }
        };
        let follow = host.ledger().follow(cursor);
        let telling = NoticeTask { host: host.clone(), sink, on: on.clone(), path, place, unsaved: 0 };
        tasks.push(tokio::spawn(telling.run(follow)));
    }
    Ok(Notifier(tasks))
}

struct NoticeTask {
    host: Host,
    sink: Sink,
    on: Vec<NoticeKind>,
    path: PathBuf,
    place: SinkProgress,
    unsaved: usize,
}

impl NoticeTask {
    async fn run(mut self, mut follow: Follow) {
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let batch = follow.next_within(BATCH);
                (follow, batch)
            });
            let Ok((back, batch)) = read.await else { return };
            follow = back;
            match batch {
                Ok(batch) if batch.is_empty() => {
                    if follow.more().await.is_err() {
                        return;
                    }
                }
                Ok(batch) => {
                    for (cursor, stream, recorded) in batch {
                        self.unsaved += 1;
                        if let Some(known) = notice::notice_of(&stream, &recorded, &self.on) {
                            self.tell(known).await;
                            self.unsaved = SAVE_EVERY;
                        }
                        self.place.cursor = cursor.to_string();
                        self.save();
                    }
                }
                Err(ReadError::Closed) => return,
                // A fact that can't be read can't be told; its agent is quarantined, and verification names it.
                Err(error) => tracing::warn!(%error, "a fact was left out of the notifications"),
            }
        }
    }

    fn save(&mut self) {
        if self.unsaved < SAVE_EVERY {
            return;
        }
        self.unsaved = 0;
        if let Err(error) = self.place.save(&self.path) {
            tracing::error!(%error, "can't write down what was told: a restart tells it again");
        }
    }

    async fn tell(&mut self, known: PendingNotice) {
        let lasts = known.lasts;
        if lasts && self.place.told.contains(&known.notice.id) {
            return;
        }
        let notice = match &known.notice.text {
            Some(_) => known.notice,
            None => self.explained(known.notice).await,
        };
        let mut waits = WAITS.iter();
        loop {
            let Err(error) = self.sink.send(&notice, self.host.clock().now()).await else {
                self.place.sent += 1;
                self.host.meter().notified.add(1);
                break;
            };
            let (sink, id) = (self.sink.name(), &notice.id);
            self.place.last_failure =
                Some(Failure { at: self.host.clock().now(), id: id.clone(), error: error.clone() });
            let Some(wait) = waits.next() else {
                tracing::error!(sink, id, error, "a notification was given up");
                self.place.failed += 1;
                self.host.meter().notify_failed.add(1);
                break;
            };
            tracing::warn!(sink, id, error, ?wait, "a notification did not get through; it is tried again");
            if let Err(error) = self.place.save(&self.path) {
                tracing::error!(%error, "can't write down that it failed");
            }
            tokio::time::sleep(*wait).await;
        }
        if lasts {
            self.place.told.push(notice.id);
            let over = self.place.told.len().saturating_sub(TOLD_MAX);
            self.place.told.drain(..over);
        }
    }

    /// Says why, as `abide why` does now.
    async fn explained(&self, notice: Notice) -> Notice {
        let sentence = match notice.agent_id.parse() {
            Ok(agent) => {
                self.host.inspect(&agent, |state, now| why(state, decide(state, now)).sentence).await.ok().flatten()
            }
            Err(_) => None,
        };
        let text = sentence.unwrap_or_else(|| format!("{} waits for a person ({}).", notice.agent_id, notice.kind));
        Notice { text: Some(text), ..notice }
    }
}
