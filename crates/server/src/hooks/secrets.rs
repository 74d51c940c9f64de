//! Secrets that deliveries are signed with. A secret is in no fact, no answer and no log; the daemon stores it.

use std::fmt::Debug;
use std::io;

use abide_kernel::id::{AgentId, TriggerId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 512;
/// The prefix of secrets of Standard Webhooks; the rest is base64.
const STANDARD_PREFIX: &str = "whsec_";

/// A secret as its sender has it. It does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Checks the length and the characters. The error does not repeat the secret.
    pub fn new(text: &str) -> Result<Secret, String> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&text.len()) || text.contains(char::is_control) {
            return Err(format!("a secret has {MIN_BYTES} to {MAX_BYTES} bytes and no control characters"));
        }
        if let Some(encoded) = text.strip_prefix(STANDARD_PREFIX)
            && STANDARD.decode(encoded).is_err()
        {
            return Err(format!("what follows {STANDARD_PREFIX} in a secret is base64"));
        }
        Ok(Secret(text.to_owned()))
    }

    /// The key of Standard Webhooks.
    pub(super) fn standard_key(&self) -> Vec<u8> {
        let decoded = self.0.strip_prefix(STANDARD_PREFIX).and_then(|encoded| STANDARD.decode(encoded).ok());
        decoded.unwrap_or_else(|| self.0.as_bytes().to_vec())
    }

    /// The key of GitHub: the bytes of the text.
    pub(super) fn github_key(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The secret itself, for its store.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The store of the secrets of triggers.
pub trait SecretStore: Debug + Send + Sync {
    fn get(&self, agent: &AgentId, trigger: &TriggerId) -> Option<Secret>;

    /// The secret is durable when this returns.
    fn put(&self, agent: &AgentId, trigger: &TriggerId, secret: Secret) -> io::Result<()>;

    /// Does nothing if the trigger is another agent's: a fork has its parent's triggers for a moment, and the secrets stay
    /// the parent's.
    fn remove(&self, agent: &AgentId, trigger: &TriggerId);

    fn list(&self) -> Vec<(AgentId, TriggerId)>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_repeated() {
        for wrong in ["short", "whsec_not base64!", "with\na line"] {
            let said = Secret::new(wrong).unwrap_err();
            assert!(!said.contains(wrong), "{said}");
        }
        assert_eq!(format!("{:?}", Secret::new("a long secret").unwrap()), "Secret");
    }
}
