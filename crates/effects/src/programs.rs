//! The programs that the daemon itself starts by name, such as git and bubblewrap, and the PATH it gives them.
//!
//! They run outside of any sandbox, so none may come from a folder that an agent can write, or ever could: a `git` that
//! an agent left there would run with all rights of the daemon's user. Every folder that an agent is given is recorded in
//! the home before the agent gets it, and stays recorded when the agent leaves it, because its files stay. PATH folders
//! below a recorded folder or below the home are skipped, as are relative ones and those that every user may write. A
//! folder that only its group may write is used: on many systems those are `/usr/local/bin` and `~/.local/bin`. A recorded
//! folder is known again under another name, and where it is mounted a second time. A hard link to a file in it is not, nor is
//! a mount of a folder inside it.
//!
//! The commands of agents run inside a sandbox, with PATH as the daemon has it but for the folders of other agents.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, AtFlags, StatxFlags};
use serde::{Deserialize, Serialize};

use crate::durable_file;
use crate::environment;
use crate::limits;

/// The file of a home with the folders that agents were given.
const FOLDERS: &str = "agent-folders.json";
/// The bit of a mode by which every user may write.
const OTHERS_WRITE: u32 = 0o002;

/// Why a folder of PATH, or a program in it, is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnsafeReason {
    Relative,
    AgentFolder(PathBuf),
    Home,
    WritableByEveryone,
}

impl fmt::Display for UnsafeReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsafeReason::Relative => write!(to, "it is relative"),
            UnsafeReason::AgentFolder(folder) => write!(to, "agents can write in {}", folder.display()),
            UnsafeReason::Home => write!(to, "it lies in the daemon's home"),
            UnsafeReason::WritableByEveryone => write!(to, "every user of this machine can write there"),
        }
    }
}

/// A folder of PATH that is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFolder {
    pub folder: PathBuf,
    pub why: UnsafeReason,
}

/// A program that was found, and which file that was.
#[derive(Debug, Clone)]
struct Program {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// A folder that an agent was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct AgentFolder {
    /// Its bytes: a path need not be UTF-8.
    path: Vec<u8>,
    /// None where the file system does not say when a folder was made: another one may get the same number later.
    identity: Option<Identity>,
}

/// Tells a folder from every other one that ever was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    made_at: (i64, u32),
}

#[derive(Debug)]
struct Programs {
    path: OsString,
    homes: BTreeSet<PathBuf>,
    agent_folders: BTreeSet<AgentFolder>,
    /// Those of them that are in the file.
    recorded: BTreeSet<AgentFolder>,
    /// The record of a home that could not be read. Nothing is started then: any folder could be an agent's.
    unreadable: Option<String>,
    found: BTreeMap<String, Program>,
}

static PROGRAMS: LazyLock<Mutex<Programs>> =
    LazyLock::new(|| Mutex::new(Programs::new(std::env::var_os("PATH").unwrap_or_else(|| environment::PATH.into()))));

fn programs() -> MutexGuard<'static, Programs> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on programs in this home, and in the folders that its agents were given, are not used.
pub fn serve_home(home: &Path) {
    programs().serve_home(home);
}

/// Records that an agent is given a folder to write in. Has to succeed before the agent gets it.
pub(crate) fn give_folder(home: &Path, folder: &Path) -> io::Result<()> {
    programs().give_folder(home, folder)
}

/// Agents of this home have or had these folders, as its ledger says. They count from now on, also where they can't be
/// recorded. Has to be called before a program is looked up: a version that did not record folders may have given them.
pub fn give_folders(home: &Path, folders: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    programs().give_folders(home, folders)
}

/// The program of this name, or why there is none to use.
pub fn find_program(name: &str) -> Result<PathBuf, String> {
    programs().find_program(name)
}

/// PATH without the folders that are skipped.
#[must_use]
pub fn safe_path() -> OsString {
    programs().safe_path()
}

/// The same as text. A folder whose name is not UTF-8 is left out.
pub(crate) fn safe_path_text() -> String {
    let path = safe_path();
    let folders = std::env::split_paths(&path).filter(|folder| folder.to_str().is_some());
    std::env::join_paths(folders).unwrap_or_default().to_string_lossy().into_owned()
}

/// PATH for the commands of an agent that can write in these folders of its own: without the folders that other agents
/// can write, and the home. A folder whose name is not UTF-8 is left out.
pub(crate) fn command_path(own: &[&Path]) -> String {
    programs().command_path(own)
}

/// The folders of PATH that are skipped.
#[must_use]
pub fn skipped_folders() -> Vec<SkippedFolder> {
    programs().skipped_folders()
}

impl Programs {
    fn new(path: OsString) -> Programs {
        let (homes, agent_folders, recorded) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Programs { path, homes, agent_folders, recorded, unreadable: None, found: BTreeMap::new() }
    }

    fn serve_home(&mut self, home: &Path) {
        if !self.homes.insert(home.to_path_buf()) {
            return;
        }
        let file = home.join(FOLDERS);
        let read = fs::read(&file).and_then(|bytes| Ok(serde_json::from_slice::<Vec<AgentFolder>>(&bytes)?));
        match read {
            Ok(folders) => {
                self.recorded.extend(folders);
                self.agent_folders.extend(self.recorded.iter().cloned());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.unreadable = Some(format!("{} can't be read: {error}", file.display())),
        }
    }

    fn give_folder(&mut self, home: &Path, folder: &Path) -> io::Result<()> {
        self.give_folders(home, std::iter::once(folder.to_path_buf()))
    }

    fn give_folders(&mut self, home: &Path, folders: impl Iterator<Item = PathBuf>) -> io::Result<()> {
        self.serve_home(home);
        let mut recorded = self.recorded.clone();
        recorded.extend(folders.filter(|folder| !folder.starts_with(home)).map(AgentFolder::new));
        // In memory first: a folder that can't be recorded is an agent's all the same.
        self.agent_folders.extend(recorded.iter().cloned());
        if recorded == self.recorded {
            return Ok(());
        }
        if let Some(problem) = &self.unreadable {
            return Err(io::Error::other(problem.clone()));
        }
        durable_file::replace_file(home, FOLDERS, &serde_json::to_vec(&recorded)?)?;
        self.recorded = recorded;
        Ok(())
    }

    fn find_program(&mut self, name: &str) -> Result<PathBuf, String> {
        if let Some(problem) = &self.unreadable {
            return Err(problem.clone());
        }
        let same = |program: &&Program| {
            let now = program.path.metadata();
            now.is_ok_and(|now| (now.dev(), now.ino()) == (program.device, program.inode))
                && self.judge_path(&program.path).is_ok()
        };
        if let Some(program) = self.found.get(name).filter(same) {
            return Ok(program.path.clone());
        }
        let program = self.look_up(name)?;
        let path = program.path.clone();
        self.found.insert(name.to_owned(), program);
        Ok(path)
    }

    fn look_up(&self, name: &str) -> Result<Program, String> {
        let mut refused = Vec::new();
        for folder in std::env::split_paths(&self.path) {
            let path = folder.join(name);
            let runs = path.is_file() && rustix::fs::access(&path, Access::EXEC_OK).is_ok();
            let Some(meta) = path.metadata().ok().filter(|_| runs) else { continue };
            match self.judge_folder(&folder).and_then(|()| self.judge_path(&path)) {
                Ok(()) => return Ok(Program { path, device: meta.dev(), inode: meta.ino() }),
                Err(why) => refused.push(format!("{} is not used, because {why}", path.display())),
            }
        }
        let none = format!("there is no {name} in PATH that can be used");
        Err(if refused.is_empty() { none } else { format!("{none}: {}", refused.join("; ")) })
    }

    fn safe_path(&self) -> OsString {
        let folders = std::env::split_paths(&self.path).filter(|folder| self.judge_folder(folder).is_ok());
        std::env::join_paths(folders).unwrap_or_default()
    }

    fn command_path(&self, own: &[&Path]) -> String {
        let is_own = |place: &PathBuf| own.iter().any(|folder| place.starts_with(folder));
        let others = |folder: &PathBuf| {
            let foreign = |place: &PathBuf| !is_own(place) && self.judge_place(place).is_err();
            folder.to_str().is_some() && !places_on_the_way(folder).iter().any(foreign)
        };
        let folders = std::env::split_paths(&self.path).filter(others);
        std::env::join_paths(folders).unwrap_or_default().to_string_lossy().into_owned()
    }

    fn skipped_folders(&self) -> Vec<SkippedFolder> {
        let judged = std::env::split_paths(&self.path).map(|folder| {
            let why = self.judge_folder(&folder).err()?;
            Some(SkippedFolder { folder, why })
        });
        judged.flatten().collect()
    }

    fn judge_folder(&self, folder: &Path) -> Result<(), UnsafeReason> {
        if !folder.is_absolute() {
            return Err(UnsafeReason::Relative);
        }
        self.judge_path(folder)
    }

    /// Refuses a real place below a folder of an agent, under whatever name that folder is reached, or below a home.
    fn judge_place(&self, place: &Path) -> Result<(), UnsafeReason> {
        if self.homes.iter().any(|home| place.starts_with(home)) {
            return Err(UnsafeReason::Home);
        }
        let by_path = self.agent_folders.iter().find(|folder| place.starts_with(folder.path()));
        let by_identity = || {
            place
                .ancestors()
                .filter_map(Identity::of_folder)
                .find_map(|identity| self.agent_folders.iter().find(|folder| folder.identity == Some(identity)))
        };
        match by_path.or_else(by_identity) {
            Some(folder) => Err(UnsafeReason::AgentFolder(folder.path().to_owned())),
            None => Ok(()),
        }
    }

    /// Refuses a file or folder that an agent may have put there, or any link on the way to it.
    fn judge_path(&self, path: &Path) -> Result<(), UnsafeReason> {
        places_on_the_way(path).iter().try_for_each(|place| self.judge_place(place))?;
        match path.metadata() {
            Ok(found) if found.mode() & OTHERS_WRITE != 0 => Err(UnsafeReason::WritableByEveryone),
            // One that is missing is judged again when it is there.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl AgentFolder {
    fn new(path: PathBuf) -> AgentFolder {
        AgentFolder { identity: Identity::of_folder(&path), path: path.into_os_string().into_vec() }
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

impl Identity {
    fn of_folder(folder: &Path) -> Option<Identity> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let found = rustix::fs::statx(rustix::fs::CWD, folder, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
        let known = StatxFlags::from_bits_retain(found.stx_mask).contains(wanted);
        known.then_some(Identity {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            made_at: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        })
    }
}

/// The real place that a path leads to, and of every link on the way. A path that leads nowhere ends where it breaks off.
fn places_on_the_way(path: &Path) -> Vec<PathBuf> {
    let parts =
        |path: &Path| -> Vec<OsString> { path.components().rev().map(|part| part.as_os_str().to_owned()).collect() };
    let (mut places, mut at, mut rest) = (Vec::new(), PathBuf::from("/"), parts(path));
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                at.push(name);
                if let Ok(target) = at.read_link()
                    && places.len() < limits::LINKS_FOLLOWED
                {
                    places.push(at.clone());
                    at.pop();
                    rest.extend(parts(&target));
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    places.push(at);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Ground {
        dir: tempfile::TempDir,
    }

    impl Ground {
        fn new() -> Ground {
            Ground { dir: tempfile::tempdir().unwrap() }
        }

        fn folder(&self, name: &str) -> PathBuf {
            let folder = self.dir.path().canonicalize().unwrap().join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        }

        fn program(&self, folder: &str) -> PathBuf {
            let program = self.folder(folder).join("git");
            fs::write(&program, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            program
        }

        fn programs(&self, path: &[PathBuf]) -> Programs {
            let mut programs = Programs::new(std::env::join_paths(path).unwrap());
            programs.serve_home(&self.folder("home"));
            programs
        }
    }

    fn parent(program: &Path) -> PathBuf {
        program.parent().unwrap().to_path_buf()
    }

    #[test]
    fn a_program_in_a_folder_that_an_agent_was_given_is_not_used_ever_again() {
        let ground = Ground::new();
        let (theirs, ours) = (ground.program("ws/bin"), ground.program("usr/bin"));
        let path = [parent(&theirs), parent(&ours)];
        let mut programs = ground.programs(&path);
        assert_eq!(programs.find_program("git").unwrap(), theirs);
        programs.give_folder(&ground.folder("home"), &ground.folder("ws")).unwrap();
        assert_eq!(programs.find_program("git").unwrap(), ours);
        // The agent has left, and the daemon was started again.
        let mut again = ground.programs(&path);
        assert_eq!(again.find_program("git").unwrap(), ours);
        assert_eq!(again.safe_path(), parent(&ours).into_os_string());
        let why = UnsafeReason::AgentFolder(ground.folder("ws"));
        assert_eq!(again.skipped_folders(), [SkippedFolder { folder: parent(&theirs), why }]);
    }

    #[test]
    fn a_program_that_appears_earlier_in_path_is_not_looked_for_again() {
        let ground = Ground::new();
        let (first, second) = (ground.folder("first"), ground.program("second"));
        let mut programs = ground.programs(&[first, parent(&second)]);
        assert_eq!(programs.find_program("git").unwrap(), second);
        let appeared = ground.program("first");
        assert_eq!(programs.find_program("git").unwrap(), second);
        // A package that was updated is another file: then it is looked up again.
        fs::remove_file(&second).unwrap();
        assert_eq!(programs.find_program("git").unwrap(), appeared);
    }

    #[test]
    fn a_link_into_a_folder_of_an_agent_counts_as_that_folder() {
        let ground = Ground::new();
        let real = ground.program("opt/bin");
        let (ws, bin) = (ground.folder("ws"), ground.folder("bin"));
        symlink(parent(&real), ws.join("dir")).unwrap();
        // Both lead to a safe place at last, by way of a link that the agent can turn.
        symlink(ws.join("dir/git"), bin.join("git")).unwrap();
        symlink(ws.join("dir"), ground.folder("links").join("bin")).unwrap();
        let mut programs = ground.programs(&[bin, ground.folder("links").join("bin")]);
        programs.give_folder(&ground.folder("home"), &ws).unwrap();
        let why = programs.find_program("git").unwrap_err();
        assert!(why.contains("agents can write in"), "{why}");
    }

    #[test]
    fn a_folder_of_an_agent_is_known_under_a_new_name() {
        let ground = Ground::new();
        let (_theirs, ours) = (ground.program("ws/bin"), ground.program("usr/bin"));
        let ws = ground.folder("ws");
        let renamed = ws.with_file_name("renamed");
        let mut programs = ground.programs(&[renamed.join("bin"), parent(&ours)]);
        programs.give_folder(&ground.folder("home"), &ws).unwrap();
        fs::rename(&ws, &renamed).unwrap();
        assert_eq!(programs.find_program("git").unwrap(), ours);
        // A folder of a person's that took its place is an agent's, too: by its path.
        assert_eq!(
            programs.skipped_folders(),
            [SkippedFolder { folder: renamed.join("bin"), why: UnsafeReason::AgentFolder(ws) }]
        );
    }

    #[test]
    fn commands_have_the_programs_of_their_own_folder_and_not_those_of_other_agents() {
        let ground = Ground::new();
        let (a, b, ours) = (ground.program("a/bin"), ground.program("b/bin"), ground.program("usr/bin"));
        let mut programs = ground.programs(&[parent(&a), parent(&b), parent(&ours)]);
        for ws in ["a", "b"] {
            programs.give_folder(&ground.folder("home"), &ground.folder(ws)).unwrap();
        }
        let path = programs.command_path(&[&ground.folder("b")]);
        assert_eq!(path, format!("{}:{}", parent(&b).display(), parent(&ours).display()));
        // A link of the other one, on the way to a safe place, is the other one's to turn.
        symlink(parent(&ours), ground.folder("a").join("link")).unwrap();
        programs.path = ground.folder("a").join("link").into_os_string();
        assert_eq!(programs.command_path(&[&ground.folder("b")]), "");
    }

    #[test]
    fn programs_of_the_home_of_everyone_and_of_nowhere_are_not_used() {
        let ground = Ground::new();
        let (home, open, own) = (ground.program("home/bin"), ground.program("open"), ground.program("own"));
        fs::set_permissions(parent(&open), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::set_permissions(parent(&own), fs::Permissions::from_mode(0o775)).unwrap();
        let mut programs = ground.programs(&[PathBuf::from("."), parent(&home), parent(&open), parent(&own)]);
        assert_eq!(programs.find_program("git").unwrap(), own);
        let why: Vec<UnsafeReason> = programs.skipped_folders().into_iter().map(|skipped| skipped.why).collect();
        assert_eq!(why, [UnsafeReason::Relative, UnsafeReason::Home, UnsafeReason::WritableByEveryone]);
    }

    #[test]
    fn without_a_readable_record_of_the_folders_no_program_is_used() {
        let ground = Ground::new();
        let program = ground.program("bin");
        fs::write(ground.folder("home").join(FOLDERS), "[").unwrap();
        let mut programs = ground.programs(&[parent(&program)]);
        assert!(programs.find_program("git").unwrap_err().contains(FOLDERS));
        assert!(programs.give_folder(&ground.folder("home"), &ground.folder("ws")).is_err());
    }
}
