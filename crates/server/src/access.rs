//! Who may do what: tokens with a scope each. A token is shown once and kept as its digest; who has one and who lost it
//! again are facts in the home's own stream. The one exception is the admin token, which lies in the home for the
//! command line of this machine.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError, RwLock};

use abide_api::types::{Scope, TokenItem};
use abide_kernel::id::Seq;
use abide_kernel::time::Time;
use abide_ledger::{Append, Commit, CommitError, Hash, Ledger, NewFact, ReadError, StreamId};
use serde::{Deserialize, Serialize};

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub token_id: String,
    pub name: String,
    pub scope: Scope,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenCreated {
    token_id: String,
    name: String,
    scope: Scope,
    digest: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRevoked {
    token_id: String,
}

/// The id and the name of the token that lies in the home.
pub(crate) const ADMIN: &str = "admin";
const CREATED: &str = "token.created";
const REVOKED: &str = "token.revoked";
/// Tokens that may be good at the same time.
pub(crate) const TOKENS_MAX: usize = 1_000;

#[derive(Debug, Clone)]
struct StoredToken {
    caller: Caller,
    created_at: Time,
}

/// Every token that is good.
#[derive(Debug)]
pub struct Access {
    ledger: Ledger,
    known: RwLock<HashMap<Hash, StoredToken>>,
    /// The end of the home's stream; the holder of the lock may write there.
    head: Mutex<Seq>,
}

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("the home's records can't be read: {0}")]
    Read(#[from] ReadError),
    #[error("the home's records at seq {seq} do not read: {problem}")]
    Damaged { seq: Seq, problem: String },
    #[error("{0}")]
    Commit(#[from] CommitError),
    #[error("there are {TOKENS_MAX} tokens already")]
    TooMany,
}

/// A token nobody can guess: 32 bytes of the system's randomness.
pub fn fresh_token() -> std::io::Result<String> {
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("abide_{hex}"))
}

impl Access {
    /// Reads who has a token. `admin` is the token that lies in the home.
    pub fn read(ledger: Ledger, admin: &str) -> Result<Access, AccessError> {
        let mut known = HashMap::new();
        let caller = Caller { token_id: ADMIN.to_owned(), name: ADMIN.to_owned(), scope: Scope::Admin };
        known.insert(Hash::of(admin.as_bytes()), StoredToken { caller, created_at: Time::EPOCH });
        let stream = StreamId::home();
        let mut head = 0;
        loop {
            let facts = ledger.read(&stream, head, 1_000)?;
            let Some(last) = facts.last() else { break };
            head = last.seq;
            for fact in &facts {
                let payload = fact.payload.bytes().unwrap_or_default();
                take(&mut known, &fact.kind, &payload, fact.at)
                    .map_err(|problem| AccessError::Damaged { seq: fact.seq, problem })?;
            }
        }
        Ok(Access { ledger, known: RwLock::new(known), head: Mutex::new(head) })
    }

    #[must_use]
    pub fn caller(&self, token: &str) -> Option<Caller> {
        // By digest, so that how long it takes says nothing about the token.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&Hash::of(token.as_bytes())).map(|kept| kept.caller.clone())
    }

    pub(crate) fn create(
        &self,
        token_id: &str,
        name: &str,
        scope: Scope,
        token: &str,
        at: Time,
        claim: Option<Append>,
    ) -> Result<(), AccessError> {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).len() > TOKENS_MAX {
            return Err(AccessError::TooMany);
        }
        let digest = Hash::of(token.as_bytes()).to_string();
        let created = TokenCreated { token_id: token_id.to_owned(), name: name.to_owned(), scope, digest };
        self.write(CREATED, &created, at, claim)
    }

    /// False when there is no such token.
    pub(crate) fn revoke(&self, token_id: &str, at: Time) -> Result<bool, AccessError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // The admin token is a file: it is revoked by denying access to the home.
        let there = token_id != ADMIN && known.values().any(|kept| kept.caller.token_id == token_id);
        drop(known);
        if there {
            self.write(REVOKED, &TokenRevoked { token_id: token_id.to_owned() }, at, None)?;
        }
        Ok(there)
    }

    fn write(
        &self,
        kind: &'static str,
        fact: &impl Serialize,
        at: Time,
        claim: Option<Append>,
    ) -> Result<(), AccessError> {
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let payload = serde_json::to_vec(fact).unwrap_or_default();
        let facts = vec![NewFact::new(kind, payload.clone())];
        let append = Append { stream: StreamId::home(), expected: *head, at, facts, fork_of: None };
        let appends = claim.into_iter().chain([append]).collect();
        self.ledger.commit(Commit { appends, ..Commit::default() }).wait()?;
        *head += 1;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        take(&mut known, kind, &payload, at).map_err(|problem| AccessError::Damaged { seq: *head, problem })
    }

    /// Tokens by when they were made; what they are is not among it.
    pub(crate) fn list(&self) -> Vec<TokenItem> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut items: Vec<TokenItem> = known
            .values()
            .map(|kept| TokenItem {
                token_id: kept.caller.token_id.clone(),
                name: kept.caller.name.clone(),
                scope: kept.caller.scope,
                created_at: kept.created_at.to_string(),
            })
            .collect();
        items.sort_by(|a, b| a.token_id.cmp(&b.token_id));
        items
    }
}

fn take(known: &mut HashMap<Hash, StoredToken>, kind: &str, payload: &[u8], at: Time) -> Result<(), String> {
    let wrong = |error: serde_json::Error| error.to_string();
    match kind {
        CREATED => {
            let token: TokenCreated = serde_json::from_slice(payload).map_err(wrong)?;
            let digest: Hash = token.digest.parse().map_err(|_| "its digest is none".to_owned())?;
            let caller = Caller { token_id: token.token_id, name: token.name, scope: token.scope };
            known.insert(digest, StoredToken { caller, created_at: at });
            Ok(())
        }
        REVOKED => {
            let token: TokenRevoked = serde_json::from_slice(payload).map_err(wrong)?;
            known.retain(|_, kept| kept.caller.token_id != token.token_id);
            Ok(())
        }
        kind => Err(format!("no fact of a home is called {kind:?}")),
    }
}
