//! The secrets of triggers: one file per trigger in the home, read once at boot.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use abide_kernel::id::{AgentId, TriggerId};
use abide_private::{private_folder, read_regular, write_private};
use abide_server::{Secret, SecretStore};
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub(crate) struct TriggerSecrets {
    folder: PathBuf,
    known: RwLock<HashMap<TriggerId, (AgentId, Secret)>>,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct StoredSecret {
    agent_id: AgentId,
    secret: String,
}

impl TriggerSecrets {
    pub(crate) fn read(home: &Path) -> io::Result<TriggerSecrets> {
        let folder = home.join("triggers");
        let mut known = HashMap::new();
        let files = match fs::read_dir(&folder) {
            Ok(files) => files.collect::<Result<Vec<_>, _>>()?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(with_path(&folder, &error)),
        };
        for file in files {
            let name = file.file_name();
            let Some(trigger) = name.to_str().filter(|name| !name.ends_with(".partial")) else { continue };
            let bytes = read_regular(&file.path()).map_err(|error| with_path(&file.path(), &error))?;
            let stored: Option<StoredSecret> = serde_json::from_slice(&bytes).ok();
            match stored.and_then(|stored| Some((stored.agent_id, Secret::new(&stored.secret).ok()?))) {
                Some(owned) => {
                    known.insert(TriggerId::new(trigger), owned);
                }
                // The trigger refuses deliveries until it is made anew. Accepting unsigned ones would be worse.
                None => tracing::warn!(file = %file.path().display(), "this holds no secret of a trigger"),
            }
        }
        Ok(TriggerSecrets { folder, known: RwLock::new(known) })
    }
}

impl SecretStore for TriggerSecrets {
    fn get(&self, agent: &AgentId, trigger: &TriggerId) -> Option<Secret> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(trigger).filter(|(owner, _)| owner == agent).map(|(_, secret)| secret.clone())
    }

    fn put(&self, agent: &AgentId, trigger: &TriggerId, secret: Secret) -> io::Result<()> {
        private_folder(&self.folder).map_err(|error| with_path(&self.folder, &error))?;
        let stored = StoredSecret { agent_id: agent.clone(), secret: secret.expose().to_owned() };
        let file = self.folder.join(trigger.as_str());
        write_private(&file, &serde_json::to_vec(&stored)?).map_err(|error| with_path(&file, &error))?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(trigger.clone(), (agent.clone(), secret));
        Ok(())
    }

    fn remove(&self, agent: &AgentId, trigger: &TriggerId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.get(trigger).is_some_and(|(owner, _)| owner == agent) {
            known.remove(trigger);
            if let Err(error) = fs::remove_file(self.folder.join(trigger.as_str())) {
                tracing::warn!(%trigger, %error, "can't remove the secret of a trigger that ended");
            }
        }
    }

    fn list(&self) -> Vec<(AgentId, TriggerId)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(trigger, (agent, _))| (agent.clone(), trigger.clone())).collect()
    }
}

/// Errors of the standard library do not name the file.
fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
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
        TriggerSecrets::read(home.path()).unwrap().put(&agent, &trigger, secret.clone()).unwrap();
        let file = home.path().join("triggers").join(trigger.as_str());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = TriggerSecrets::read(home.path()).unwrap();
        assert_eq!(again.get(&agent, &trigger), Some(secret));
        assert_eq!(again.get(&other, &trigger), None);
        again.remove(&other, &trigger);
        assert!(file.exists());
        again.remove(&agent, &trigger);
        assert_eq!(again.get(&agent, &trigger), None);
        assert!(!file.exists());
    }
}
