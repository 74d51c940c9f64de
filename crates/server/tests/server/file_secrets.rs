//! A store of trigger secrets: files in the home, so that they outlive a restart. The daemon's own store is tested there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abide_kernel::id::{AgentId, TriggerId};
use abide_server::{Secret, SecretStore};

#[derive(Debug)]
pub struct FileSecrets(PathBuf);

impl FileSecrets {
    pub fn of(home: &Path) -> Arc<FileSecrets> {
        Arc::new(FileSecrets(home.join("triggers")))
    }

    fn file(&self, agent: &AgentId, trigger: &TriggerId) -> PathBuf {
        self.0.join(format!("{agent} {trigger}"))
    }
}

impl SecretStore for FileSecrets {
    fn get(&self, agent: &AgentId, trigger: &TriggerId) -> Option<Secret> {
        Secret::new(&fs::read_to_string(self.file(agent, trigger)).ok()?).ok()
    }

    fn put(&self, agent: &AgentId, trigger: &TriggerId, secret: Secret) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        fs::write(self.file(agent, trigger), secret.expose())
    }

    fn remove(&self, agent: &AgentId, trigger: &TriggerId) {
        let _missing = fs::remove_file(self.file(agent, trigger));
    }

    fn list(&self) -> Vec<(AgentId, TriggerId)> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let ids = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let (agent, trigger) = name.split_once(' ')?;
            Some((AgentId::new(agent).ok()?, TriggerId::new(trigger)))
        });
        ids.collect()
    }
}
