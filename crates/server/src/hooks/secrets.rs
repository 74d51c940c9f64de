//! What deliveries are signed with: one file per trigger in the home, read once at the start. A secret is in no fact, no
//! answer and no log.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use abide_kernel::id::{AgentId, TriggerId};
use abide_private::{private_folder, read_regular, write_private};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::at;

const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 512;
/// How secrets of the Standard Webhooks begin; the rest is base64.
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
    /// Or what is wrong with it, without saying it.
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

    /// What Standard Webhooks sign with.
    pub(super) fn standard(&self) -> Vec<u8> {
        let decoded = self.0.strip_prefix(STANDARD_PREFIX).and_then(|encoded| STANDARD.decode(encoded).ok());
        decoded.unwrap_or_else(|| self.0.as_bytes().to_vec())
    }

    /// What GitHub signs with: the text as it is.
    pub(super) fn plain(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[derive(Debug)]
pub(super) struct Secrets {
    folder: PathBuf,
    known: RwLock<HashMap<TriggerId, (AgentId, Secret)>>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    agent_id: AgentId,
    secret: String,
}

impl Secrets {
    pub(super) fn read(home: &Path) -> io::Result<Secrets> {
        let folder = home.join("triggers");
        let mut known = HashMap::new();
        let files = match fs::read_dir(&folder) {
            Ok(files) => files.collect::<Result<Vec<_>, _>>()?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(at(&folder, &error)),
        };
        for file in files {
            let name = file.file_name();
            let Some(trigger) = name.to_str().filter(|name| !name.ends_with(".partial")) else { continue };
            let bytes = read_regular(&file.path()).map_err(|error| at(&file.path(), &error))?;
            let kept: Option<Kept> = serde_json::from_slice(&bytes).ok();
            match kept.and_then(|kept| Some((kept.agent_id, Secret::new(&kept.secret).ok()?))) {
                Some(kept) => {
                    known.insert(TriggerId::new(trigger), kept);
                }
                // Its trigger takes nothing until it is made anew: better than taking everything.
                None => tracing::warn!(file = %file.path().display(), "this holds no secret of a trigger"),
            }
        }
        Ok(Secrets { folder, known: RwLock::new(known) })
    }

    pub(super) fn get(&self, agent: &AgentId, trigger: &TriggerId) -> Option<Secret> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(trigger).filter(|(of, _)| of == agent).map(|(_, secret)| secret.clone())
    }

    /// Durable when this returns.
    pub(super) fn keep(&self, agent: &AgentId, trigger: &TriggerId, secret: Secret) -> io::Result<()> {
        private_folder(&self.folder).map_err(|error| at(&self.folder, &error))?;
        let kept = Kept { agent_id: agent.clone(), secret: secret.0.clone() };
        let file = self.folder.join(trigger.as_str());
        write_private(&file, &serde_json::to_vec(&kept)?).map_err(|error| at(&file, &error))?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(trigger.clone(), (agent.clone(), secret));
        Ok(())
    }

    /// A fork has its parent's triggers for a moment; the secrets stay the parent's.
    pub(super) fn forget(&self, agent: &AgentId, trigger: &TriggerId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.get(trigger).is_some_and(|(of, _)| of == agent) {
            known.remove(trigger);
            if let Err(error) = fs::remove_file(self.folder.join(trigger.as_str())) {
                tracing::warn!(%trigger, %error, "can't remove the secret of a trigger that ended");
            }
        }
    }

    pub(super) fn all(&self) -> Vec<(AgentId, TriggerId)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(trigger, (agent, _))| (agent.clone(), trigger.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_kept_for_its_owner_only_until_it_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let (agent, other) = (AgentId::new("a").unwrap(), AgentId::new("b").unwrap());
        let trigger = TriggerId::new("trig_019b76da-a800-7000-8000-0000000000ab");
        let secret = Secret::new("a long secret").unwrap();
        Secrets::read(home.path()).unwrap().keep(&agent, &trigger, secret.clone()).unwrap();
        let file = home.path().join("triggers").join(trigger.as_str());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Secrets::read(home.path()).unwrap();
        assert_eq!(again.get(&agent, &trigger), Some(secret));
        assert_eq!(again.get(&other, &trigger), None);
        again.forget(&other, &trigger);
        assert!(file.exists());
        again.forget(&agent, &trigger);
        assert_eq!(again.get(&agent, &trigger), None);
        assert!(!file.exists());
    }

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_repeated() {
        for wrong in ["short", "whsec_not base64!", "with\na line"] {
            let said = Secret::new(wrong).unwrap_err();
            assert!(!said.contains(wrong), "{said}");
        }
        assert_eq!(format!("{:?}", Secret::new("a long secret").unwrap()), "Secret");
    }
}
