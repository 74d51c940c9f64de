//! Control groups that count the processes of a command and bound the memory of an agent, where the system lets us have
//! some (version 1 or 2). The count and the bound then are the kernel's: no bomb is faster, and memory in tmpfs counts.
//! Also a second way to find what a killed life left behind.
//!
//! Two levels: `BASE/abide-HOME-LIFE.AGENT/NTH.LABEL`, a group for each agent with one for each of its commands in it.
//! Version 1 has one such tree for processes and one for memory; version 2 has one for both.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Where groups can be made.
#[derive(Debug)]
pub(crate) struct Groups {
    trees: Vec<Tree>,
    /// Why memory is not bounded, if it is not.
    unbounded: Option<String>,
    agents: Mutex<HashMap<String, Weak<AgentGroup>>>,
}

/// One hierarchy of control groups.
#[derive(Debug, Clone)]
struct Tree {
    base: PathBuf,
    processes: bool,
    memory: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group of an agent, which holds those of its commands. Gone with the last of them.
#[derive(Debug)]
struct AgentGroup {
    folders: Vec<PathBuf>,
}

/// One command's group. Gone with the value.
#[derive(Debug)]
pub(crate) struct Group {
    places: Vec<GroupFolder>,
    /// Released after the command's own.
    _agent: Arc<AgentGroup>,
}

#[derive(Debug)]
struct GroupFolder {
    folder: PathBuf,
    tree: Tree,
}

/// The limits of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupLimits {
    /// Of the command.
    pub processes: u32,
    /// Of the agent.
    pub memory_bytes: u64,
}

/// Moves a single thread into groups and back, where threads of one process can be in different ones. Processes that it
/// starts inside begin inside. Moving another process takes the kernel ten milliseconds and more.
#[derive(Debug)]
pub(crate) struct GroupEntrance {
    /// Inside and outside, for each tree.
    ways: Vec<(PathBuf, PathBuf)>,
}

impl GroupEntrance {
    /// Does `work` inside, and returns whether it was inside in every tree.
    pub(crate) fn run_inside<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        let entered: Vec<bool> = self.ways.iter().map(|(inside, _)| fs::write(inside, "0").is_ok()).collect();
        let done = work();
        for ((_, outside), entered) in self.ways.iter().zip(&entered) {
            if *entered {
                // It stays where it is only if the group it came from is gone, and then this is as good.
                let _stays = fs::write(outside, "0");
            }
        }
        (done, entered.into_iter().all(|entered| entered))
    }
}

impl Groups {
    /// Where this process may make groups; tried, not guessed.
    pub(crate) fn detect() -> Result<Groups, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        Groups::detect_below(Path::new("/sys/fs/cgroup"), &own)
    }

    /// The same, after this process took over a group that holds nothing else: a service manager hands one to it.
    pub(crate) fn take_over() -> Result<Groups, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let root = Path::new("/sys/fs/cgroup");
        if let Some(base) = base_of_version_2(root, &own) {
            take_over(&base, std::process::id());
        }
        Groups::detect_below(root, &own)
    }

    fn detect_below(root: &Path, own: &str) -> Result<Groups, String> {
        let trees = trees(root, own)?;
        let bounded = trees.iter().any(|tree| tree.memory.is_some());
        let unbounded = (!bounded).then(|| "no control group bounds memory here".to_owned());
        let mut groups = Groups { trees, unbounded, agents: Mutex::default() };
        let probe = |groups: &Groups| {
            let nth = PROBES.fetch_add(1, Ordering::Relaxed);
            let name = format!("abide-probe-{}-{nth}", std::process::id());
            groups.create(&name, "0", GroupLimits { processes: 16, memory_bytes: 64 << 20 })
        };
        if let Err(error) = probe(&groups) {
            // Perhaps only memory is not ours to bound.
            groups.unbounded.get_or_insert_with(|| format!("no control group that bounds memory can be made: {error}"));
            for tree in &mut groups.trees {
                tree.memory = None;
            }
            groups.trees.retain(|tree| tree.processes);
            probe(&groups).map_err(|error| format!("no control group can be made: {error}"))?;
        }
        Ok(groups)
    }

    /// Why the memory of an agent is not bounded by the kernel.
    pub(crate) fn unbounded(&self) -> Option<&str> {
        self.unbounded.as_deref()
    }

    /// A group for one command, in that of its agent.
    pub(crate) fn create(&self, agent: &str, command: &str, most: GroupLimits) -> io::Result<Group> {
        // The agent's group may go with its last command in the same moment.
        for _ in 1..CREATE_TRIES {
            match self.try_create(agent, command, most) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => return done,
            }
        }
        self.try_create(agent, command, most)
    }

    fn try_create(&self, agent: &str, command: &str, most: GroupLimits) -> io::Result<Group> {
        // Held until the command's own is there: the agent's must not go meanwhile.
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|_, group| group.strong_count() > 0);
        let of_agent = match agents.get(agent).and_then(Weak::upgrade) {
            Some(group) => group,
            None => {
                let group = Arc::new(self.create_agent(agent, most.memory_bytes)?);
                agents.insert(agent.to_owned(), Arc::downgrade(&group));
                group
            }
        };
        let mut group = Group { places: Vec::new(), _agent: of_agent };
        for tree in &self.trees {
            let folder = tree.base.join(agent).join(command);
            fs::create_dir(&folder)?;
            group.places.push(GroupFolder { folder: folder.clone(), tree: tree.clone() });
            if tree.processes {
                fs::write(folder.join("pids.max"), most.processes.to_string())?;
            }
            if tree.memory == Some(Version::Two) {
                // One process of a command killed is a command broken: the kernel ends all of them.
                fs::write(folder.join("memory.oom.group"), "1")?;
            }
        }
        Ok(group)
    }

    fn create_agent(&self, agent: &str, memory_bytes: u64) -> io::Result<AgentGroup> {
        let mut group = AgentGroup { folders: Vec::new() };
        for tree in &self.trees {
            let folder = tree.base.join(agent);
            match fs::create_dir(&folder) {
                Ok(()) => {}
                // Its last command went a moment ago, and it is about to.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            group.folders.push(folder.clone());
            let (bytes, write) =
                (memory_bytes.to_string(), |name: &str, text: &str| fs::write(folder.join(name), text));
            match tree.memory {
                None => {}
                Some(Version::One) => {
                    write("memory.limit_in_bytes", &bytes)?;
                    // Memory and swap together; where swap is not counted, there is no such file.
                    let _uncounted = write("memory.memsw.limit_in_bytes", &bytes);
                }
                Some(Version::Two) => {
                    write("memory.max", &bytes)?;
                    let _uncounted = write("memory.swap.max", "0");
                }
            }
            if tree.memory == Some(Version::Two) {
                write("cgroup.subtree_control", "+pids +memory")?;
            } else if fs::exists(folder.join("cgroup.subtree_control")).unwrap_or(false) {
                write("cgroup.subtree_control", "+pids")?;
            }
        }
        Ok(group)
    }

    /// The commands of the agents' groups whose name begins so: group, command, and who is in it.
    pub(crate) fn list_groups(&self, prefix: &str) -> Vec<ExistingGroup> {
        let mut found: Vec<ExistingGroup> = Vec::new();
        for tree in &self.trees {
            for agent in folders(&tree.base).filter(|name| name.starts_with(prefix)) {
                let commands = folders(&tree.base.join(&agent)).collect::<Vec<_>>();
                // One that holds nothing has to go, too.
                for command in commands.into_iter().map(Some).chain([None]) {
                    let folder = tree.base.join(&agent).join(command.as_deref().unwrap_or_default());
                    let pids = if command.is_some() { members(&folder) } else { Vec::new() };
                    found.push(ExistingGroup { agent: agent.clone(), command, pids });
                }
            }
        }
        found
    }

    pub(crate) fn remove(&self, found: &ExistingGroup) {
        for tree in &self.trees {
            let folder = tree.base.join(&found.agent);
            let folder = found.command.as_ref().map_or_else(|| folder.clone(), |command| folder.join(command));
            remove_patiently(&folder);
        }
    }
}

/// A group that an earlier life left.
#[derive(Debug)]
pub(crate) struct ExistingGroup {
    pub agent: String,
    /// None: the group of the agent itself.
    pub command: Option<String>,
    pub pids: Vec<i32>,
}

impl Group {
    pub(crate) fn entrance(&self) -> Option<GroupEntrance> {
        let way = |placed: &GroupFolder| (placed.folder.join("tasks"), placed.tree.base.join("tasks"));
        let door = GroupEntrance { ways: self.places.iter().map(way).collect() };
        door.ways.iter().all(|(inside, _)| inside.exists()).then_some(door)
    }

    pub(crate) fn add_process(&self, pid: i32) -> io::Result<()> {
        self.places.iter().try_for_each(|placed| fs::write(placed.folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Whether a process was refused because there were too many.
    pub(crate) fn was_full(&self) -> bool {
        let counted = self.places.iter().filter(|placed| placed.tree.processes);
        counted.map(|placed| number_in(&placed.folder.join("pids.events"), "max ")).any(|times| times > 0)
    }

    /// Whether a process of this command was killed because the agent's memory ran out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let killed = |placed: &GroupFolder| match placed.tree.memory {
            None => 0,
            Some(Version::One) => number_in(&placed.folder.join("memory.oom_control"), "oom_kill "),
            Some(Version::Two) => number_in(&placed.folder.join("memory.events"), "oom_kill "),
        };
        self.places.iter().any(|placed| killed(placed) > 0)
    }
}

fn number_in(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}

impl Drop for Group {
    fn drop(&mut self) {
        self.places.iter().for_each(|placed| remove_patiently(&placed.folder));
    }
}

impl Drop for AgentGroup {
    fn drop(&mut self) {
        // Refused while another command of the agent is about to begin in it: that one will remove it.
        self.folders.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

fn remove_patiently(folder: &Path) {
    // Refused while a process is in it, and a killed one is until its parent has waited for it; the next boot looks again.
    for _ in 0..BURIALS {
        if !fs::remove_dir(folder).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

const BURIALS: usize = 100;
const CREATE_TRIES: usize = 4;
/// Where the daemon itself goes, in a group that was handed to it (version 2): the group above may then have others.
const DAEMON: &str = "abide-daemon";
static PROBES: AtomicU32 = AtomicU32::new(0);

fn folders(base: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok())
}

fn members(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// `/proc/self/cgroup` has a line per hierarchy: `ID:CONTROLLERS:PATH`. Version 2 has no controllers in its line.
fn trees(root: &Path, own: &str) -> Result<Vec<Tree>, String> {
    let lines = || own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let first = |wanted: &str| {
        let (_, path) = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == wanted))?;
        Some(root.join(wanted).join(path.trim_start_matches('/'))).filter(|base| base.is_dir())
    };
    if let Some(base) = first("pids") {
        let memory = first("memory").map(|base| Tree { base, processes: false, memory: Some(Version::One) });
        return Ok([Tree { base, processes: true, memory: None }].into_iter().chain(memory).collect());
    }
    let none = "no control group counts processes here";
    let base = base_of_version_2(root, own).ok_or(none)?;
    let handed_down = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |wanted: &str| handed_down.split_ascii_whitespace().any(|name| name == wanted);
    if !has("pids") {
        return Err(none.to_owned());
    }
    Ok(vec![Tree { base, processes: true, memory: has("memory").then_some(Version::Two) }])
}

fn base_of_version_2(root: &Path, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(path);
    let path = if path.ends_with(DAEMON) { path.parent().unwrap_or(path) } else { path };
    Some(root.join(path))
}

/// A group that hands controllers down may hold no process itself. So the only one in it goes into a group below.
fn take_over(base: &Path, pid: u32) {
    let read = |name: &str| fs::read_to_string(base.join(name)).unwrap_or_default();
    let alone = read("cgroup.procs").lines().eq([pid.to_string()]);
    let offered = read("cgroup.controllers");
    let wanted = ["pids", "memory"].into_iter().filter(|name| offered.split_ascii_whitespace().any(|one| one == *name));
    let wanted: Vec<String> = wanted.map(|name| format!("+{name}")).collect();
    if !alone || wanted.is_empty() || !read("cgroup.subtree_control").trim().is_empty() {
        return;
    }
    let below = base.join(DAEMON);
    let moved = fs::create_dir(&below).and_then(|()| fs::write(below.join("cgroup.procs"), pid.to_string()));
    let handed = moved.and_then(|()| fs::write(base.join("cgroup.subtree_control"), wanted.join(" ")));
    if handed.is_err() {
        let _stays = fs::write(base.join("cgroup.procs"), pid.to_string());
        let _kept = fs::remove_dir(below);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops where it fails")]
mod tests {
    use super::*;

    /// A folder that stands in for a hierarchy of version 2, which the machine of a test may not have. The kernel makes
    /// the files of a group; here they are made by being written.
    #[test]
    fn version_2_has_one_tree_for_processes_and_memory() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("system.slice/abide.service");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        let groups = Groups::detect_below(root.path(), "0::/system.slice/abide.service\n").unwrap();
        assert_eq!(groups.unbounded(), None);
        let most = GroupLimits { processes: 67, memory_bytes: 1 << 30 };
        let group = groups.create("abide-h-l.ada", "0.task_1", most).unwrap();
        let read = |name: &str| fs::read_to_string(base.join("abide-h-l.ada").join(name)).unwrap();
        assert_eq!(read("memory.max"), "1073741824");
        assert_eq!(read("memory.swap.max"), "0");
        assert_eq!(read("cgroup.subtree_control"), "+pids +memory");
        assert_eq!(read("0.task_1/pids.max"), "67");
        assert_eq!(read("0.task_1/memory.oom.group"), "1");
        assert!(group.entrance().is_none(), "threads of one process can't be in different groups there");
        group.add_process(77).unwrap();
        assert_eq!(read("0.task_1/cgroup.procs"), "77");
        assert!(!group.ran_out_of_memory());
        fs::write(base.join("abide-h-l.ada/0.task_1/memory.events"), "low 0\nmax 3\noom 1\noom_kill 1\n").unwrap();
        assert!(group.ran_out_of_memory());
        let found: Vec<_> = groups.list_groups("abide-h-").into_iter().map(|one| (one.command, one.pids)).collect();
        assert_eq!(found, [(Some("0.task_1".to_owned()), vec![77]), (None, vec![])]);
    }

    #[test]
    fn version_2_without_memory_still_counts_processes() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), "pids\n").unwrap();
        let groups = Groups::detect_below(root.path(), "0::/\n").unwrap();
        assert_eq!(groups.unbounded(), Some("no control group bounds memory here"));
        let none = Groups::detect_below(&root.path().join("elsewhere"), "0::/\n");
        assert_eq!(none.unwrap_err(), "no control group counts processes here");
    }

    #[test]
    fn a_group_of_version_2_that_was_handed_to_the_daemon_is_taken_over() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("abide.service");
        fs::create_dir(&base).unwrap();
        for (name, text) in [("cgroup.controllers", "cpu memory pids\n"), ("cgroup.subtree_control", "\n")] {
            fs::write(base.join(name), text).unwrap();
        }
        fs::write(base.join("cgroup.procs"), "7\n8\n").unwrap();
        take_over(&base, 7);
        assert!(!base.join(DAEMON).exists(), "another process is in it");
        fs::write(base.join("cgroup.procs"), "7\n").unwrap();
        take_over(&base, 7);
        assert_eq!(fs::read_to_string(base.join(DAEMON).join("cgroup.procs")).unwrap(), "7");
        assert_eq!(fs::read_to_string(base.join("cgroup.subtree_control")).unwrap(), "+pids +memory");
        assert_eq!(base_of_version_2(root.path(), "0::/abide.service/abide-daemon\n"), Some(base));
    }

    #[test]
    fn version_1_has_a_tree_for_each() {
        let root = tempfile::tempdir().unwrap();
        for base in ["pids/a", "memory/b"] {
            fs::create_dir_all(root.path().join(base)).unwrap();
        }
        let groups = Groups::detect_below(root.path(), "9:pids:/a\n4:memory:/b\n0::/\n").unwrap();
        assert_eq!(groups.unbounded(), None);
        let _group = groups.create("abide-h-l.ada", "0.t", GroupLimits { processes: 5, memory_bytes: 4096 }).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(read("memory/b/abide-h-l.ada/memory.limit_in_bytes"), "4096");
        assert_eq!(read("memory/b/abide-h-l.ada/memory.memsw.limit_in_bytes"), "4096");
        assert_eq!(read("pids/a/abide-h-l.ada/0.t/pids.max"), "5");
    }
}
