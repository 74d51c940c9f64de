//! A workspace of its own for each test, and a model's calls in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use abide_effects::files::{self, Root};
use abide_kernel::input::Refusal;
use serde_json::Value;

use crate::calls::file_call;

pub struct Workspace {
    folder: tempfile::TempDir,
    pub root: Root,
}

impl Workspace {
    pub fn new() -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        let root = Root::open(&folder.path().join("w")).unwrap();
        Workspace { folder, root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("w").join(name)
    }

    /// Beside the workspace, where no tool may reach.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.get(name)).unwrap()
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    pub fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// Everything in a folder, hidden or not, sorted.
    pub fn list(&self, name: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn call(&self, tool: &str, input: &Value) -> Result<Value, Refusal> {
        files::run(&file_call(tool, input)?, &self.root)
    }

    pub fn does(&self, tool: &str, input: Value) -> Value {
        self.call(tool, &input).unwrap_or_else(|refusal| panic!("{tool} {input}: {refusal:?}"))
    }

    /// The refusal, which has to have this code and a hint.
    pub fn refuses(&self, tool: &str, input: Value, code: &str) -> Refusal {
        let refusal = self.call(tool, &input).expect_err(&format!("{tool} {input} was done"));
        assert_eq!(refusal.code.word(), code, "{tool} {input}: {refusal:?}");
        assert!(!refusal.message.is_empty() && !refusal.hint.is_empty(), "{refusal:?}");
        refusal
    }
}
