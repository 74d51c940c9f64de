//! Workspaces and worktrees, on real folders with the real git.

mod bombs;
mod check;
mod clear;
mod create;
mod folder_mark;
mod hostile;
mod loss;
mod odd;
mod patches;
mod programs;
mod remove;
mod stores;
mod tree;
mod upkeep;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abide_effects::process::{Bounds, Options, Processes};
use abide_effects::sandbox::{Mechanism, Mode, Sandbox};
use abide_effects::workspace::{Fetched, Removed, Repositories, Unsaved, Workspace, Worktree};
use abide_kernel::input::Refusal;
use abide_kernel::time::Time;
use tempfile::TempDir;

/// A folder with a repository of one commit in `repo`, and a runtime's home beside it.
pub(crate) struct Ground {
    pub(crate) dir: TempDir,
    pub(crate) mechanism: Mechanism,
    pub(crate) repo: PathBuf,
    pub(crate) home: PathBuf,
}

impl Ground {
    /// Without a commit.
    pub(crate) fn empty() -> Ground {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (repo, home) = (root.join("repo"), root.join("home"));
        fs::create_dir(&repo).unwrap();
        fs::create_dir(&home).unwrap();
        let ground = Ground { dir, mechanism: Mechanism::Bubblewrap, repo, home };
        ground.git(&["init", "-q", "-b", "main"]);
        ground
    }

    pub(crate) fn new() -> Ground {
        let ground = Ground::empty();
        ground.write("kept.txt", "one\ntwo\nthree\n");
        ground.write("folder/inner.txt", "inner\n");
        ground.write(".gitignore", "ignored/\n*.log\n");
        ground.commit("first");
        ground
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        put(&self.repo.join(name), text);
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repo, args)
    }

    pub(crate) fn patches(&self) -> PathBuf {
        self.home.join("patches")
    }

    /// Those of an agent called `ada`.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.home.join("worktrees/ada")
    }

    /// As a daemon has them, with a sandbox of the mechanism.
    pub(crate) fn repositories(&self) -> Repositories {
        let sandbox = match self.mechanism {
            Mechanism::None => Sandbox::probe(Mode::Off, &self.home),
            one @ (Mechanism::Bubblewrap | Mechanism::Landlock) => {
                Sandbox::probe_among(Mode::Required, &self.home, &[one])
            }
        };
        let program = PathBuf::from(env!("CARGO_BIN_EXE_effects-stand-in"));
        let options =
            Options { program, home: self.home.clone(), sandbox, control_groups: true, bounds: Bounds::default() };
        Repositories::new(&self.home, Processes::new(options).unwrap())
    }

    pub(crate) fn check(&self, path: &Path) -> Result<Workspace, Refusal> {
        self.repositories().check(path)
    }

    pub(crate) fn tree(&self, workspace: &Workspace) -> Option<String> {
        self.repositories().tree(workspace)
    }

    pub(crate) fn workspace(&self) -> Workspace {
        self.check(&self.repo).unwrap()
    }

    /// A person has agents work there.
    pub(crate) fn agree(&self, of: &Workspace) {
        self.repositories().agree(of, |_, _| Ok(())).unwrap();
    }

    pub(crate) fn create(&self, of: &Workspace, folder: &Path, branch: &str) -> Result<Worktree, Refusal> {
        self.agree(of);
        self.repositories().create_worktree(of, folder, branch)
    }

    pub(crate) fn worktree(&self, name: &str) -> Worktree {
        let (folder, branch) = (self.worktrees().join(name), format!("abide/ada-{name}"));
        self.create(&self.workspace(), &folder, &branch).unwrap()
    }

    /// A linked worktree of the user's own, beside the repository.
    pub(crate) fn link(&self, name: &str) -> PathBuf {
        let folder = self.repo.with_file_name(name);
        self.git(&["worktree", "add", "-q", "-b", name, folder.to_str().unwrap()]);
        folder
    }

    pub(crate) fn remove(&self, worktree: &Worktree) -> Result<Removed, Refusal> {
        self.repositories().remove_worktree(worktree, Unsaved::Keep, &self.patches(), Time::from_ms(1_000))
    }

    /// Brings what was kept of worktrees into the user's repository.
    pub(crate) fn fetch_kept(&self) -> Vec<Fetched> {
        self.repositories().fetch("ada", &self.repo, None, None).unwrap()
    }

    /// Applies a saved patch to a fresh checkout of `onto`, with `git am`, and gives that checkout.
    pub(crate) fn put_back(&self, patch: &Path, onto: &str) -> PathBuf {
        let again = self.dir.path().canonicalize().unwrap().join("again");
        self.git(&["worktree", "add", "-q", "--detach", again.to_str().unwrap(), onto]);
        git(&again, &["am", "-q", "--keep-cr", patch.to_str().unwrap()]);
        again
    }
}

pub(crate) fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// git as a person runs it, but for the configuration, which is nobody's.
pub(crate) fn git(at: &Path, args: &[impl AsRef<OsStr>]) -> String {
    let output = try_git(at, args);
    let words = String::from_utf8_lossy(&output.stderr);
    let asked: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    assert!(output.status.success(), "git {asked:?} in {}: {words}", at.display());
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn try_git(at: &Path, args: &[impl AsRef<OsStr>]) -> Output {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(at).args(args);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
    }
    command.output().unwrap()
}

/// Everything below a folder: what it is, its bits, and what is in it. Without the `.git` at its top.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = everything(folder);
    found.retain(|path, _| !path.starts_with(".git"));
    found
}

pub(crate) fn everything(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let bytes = if meta.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), (meta.mode(), bytes));
        }
    }
    found
}

/// What is refused says why in a code and what to do next.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>) -> &'static str {
    let refusal = result.unwrap_err();
    assert!(!refusal.hint.is_empty() && !refusal.message.is_empty(), "{refusal:?}");
    refusal.code.word()
}

/// Root may do everything, so what others may not can't be tried as root.
pub(crate) fn is_root(ground: &Ground) -> bool {
    ground.dir.path().metadata().unwrap().uid() == 0
}
