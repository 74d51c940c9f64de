//! Webhooks of triggers: capability URLs, secrets that deliveries are signed with, and rate limits. None of it is in the
//! ledger. Rejecting an invalid URL costs one hash.

mod delivery;
mod form;
mod rate;
mod secrets;
mod signature;
mod token;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use abide_kernel::id::{AgentId, Fresh, TriggerId};
use abide_kernel::time::Time;
use abide_kernel::tool::Address;
use abide_ledger::{Ledger, ReadError, StreamId};
use tokio::sync::watch;

pub(crate) use delivery::{DeliveryKey, IDEMPOTENCY_KEY, parse_delivery};
use rate::Buckets;
pub use rate::Rate;
pub use secrets::{Secret, SecretStore};
pub(crate) use signature::{Scheme, verify_signature};
use token::Key;
pub(crate) use token::TokenTarget;

use crate::agent_row::readable_agent_row;
use crate::site::Origin;

/// An error that names its file, as those of the standard library do not.
fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The key of the URLs, the secrets and the rate limits of all triggers.
#[derive(Debug)]
pub struct Hooks {
    key: Key,
    secrets: Arc<dyn SecretStore>,
    buckets: Mutex<Buckets>,
    /// The first part of each URL; empty until the daemon listens.
    base: watch::Sender<String>,
    /// The public URL of this daemon, if it differs from its own.
    public: Option<String>,
    public_site: Option<Origin>,
}

impl Hooks {
    /// Reads the key of the home. `public` is the public URL of the daemon, if it differs from its own.
    pub fn open(home: &Path, secrets: Arc<dyn SecretStore>, public: Option<String>, rate: Rate) -> io::Result<Hooks> {
        let public_site = public.as_deref().and_then(Origin::of_url);
        if let (Some(url), None) = (&public, &public_site) {
            tracing::warn!(url, "the public URL names no host that a request could be for");
        }
        Ok(Hooks {
            key: Key::read(home)?,
            secrets,
            buckets: Mutex::new(Buckets::new(rate)),
            base: watch::Sender::new(String::new()),
            public,
            public_site,
        })
    }

    /// The daemon listens here.
    pub fn listens_at(&self, url: &str) {
        self.base.send_replace(self.public.clone().unwrap_or_else(|| url.to_owned()));
    }

    /// Requests for the public URL's site are ours.
    pub(crate) fn public_site(&self) -> Option<&Origin> {
        self.public_site.as_ref()
    }

    /// The URL of a trigger in this generation. None for a trigger whose id is not ours.
    pub(crate) fn url(&self, agent: &AgentId, trigger: &TriggerId, generation: u32) -> io::Result<Option<String>> {
        let token = self.key.token(agent, trigger, generation)?;
        Ok(token.map(|token| format!("{}/hooks/{token}", *self.base.borrow())))
    }

    /// A new id and URL, for a trigger that a model asks for. It waits until the daemon listens.
    pub async fn address(&self, agent: &AgentId, now: Time, entropy: u64) -> io::Result<Address> {
        // We hold the other end, so it comes to no other end.
        let mut base = self.base.subscribe();
        let _listening = base.wait_for(|base| !base.is_empty()).await.is_ok();
        let trigger_id = new_trigger_id(now, entropy);
        let url = self.url(agent, &trigger_id, 0)?;
        Ok(Address { trigger_id, url })
    }

    /// The trigger of a token. Whether the trigger still exists is not checked.
    pub(crate) fn open_token(&self, token: &str) -> Option<TokenTarget> {
        self.key.open_token(token)
    }

    /// False when this trigger takes no more right now.
    pub(crate) fn has_room(&self, trigger: &TriggerId) -> bool {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).take(trigger, Instant::now())
    }

    pub fn store_secret(&self, agent: &AgentId, trigger: &TriggerId, secret: Secret) -> io::Result<()> {
        self.secrets.put(agent, trigger, secret)
    }

    pub(crate) fn secret(&self, agent: &AgentId, trigger: &TriggerId) -> Option<Secret> {
        self.secrets.get(agent, trigger)
    }

    pub fn remove_secret(&self, agent: &AgentId, trigger: &TriggerId) {
        self.secrets.remove(agent, trigger);
    }

    /// Removes secrets of triggers that ended or were never created: a crash may have left them.
    pub fn sweep_secrets(&self, ledger: &Ledger) -> Result<(), ReadError> {
        for (agent, trigger) in self.secrets.list() {
            let stream = StreamId::agent(&agent);
            let before = trigger.as_str().trim_end_matches(|c: char| c != '-');
            let rows = match ledger.rows(&stream, "triggers", Some(before), SWEPT_ALIKE) {
                Ok(rows) => rows,
                // Whether the trigger is there is not known, and a secret is kept rather than lost.
                Err(ReadError::Damaged(_)) => continue,
                Err(
                    error @ (ReadError::NoBlob(_)
                    | ReadError::CursorAhead { .. }
                    | ReadError::Store { .. }
                    | ReadError::Closed),
                ) => return Err(error),
            };
            let row = rows.into_iter().find(|row| row.id == trigger.as_str());
            let archived = readable_agent_row(ledger, &stream)?.is_some_and(|row| row.archived);
            if archived || row.is_none_or(|row| row.text("status") != Some("active")) {
                self.secrets.remove(&agent, &trigger);
            }
        }
        Ok(())
    }
}

/// Triggers whose ids differ in their last part only: made in the same instant.
const SWEPT_ALIKE: usize = 256;

/// A new trigger's id.
pub(crate) fn new_trigger_id(now: Time, entropy: u64) -> TriggerId {
    Fresh::new(now, entropy).trigger()
}
