//! Control groups that count processes, where the system lets us have some (version 1 or 2). The count then is the
//! kernel's: no bomb is faster. Also a second way to find what a killed life left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder in which groups can be made.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    base: PathBuf,
}

/// One command's group. Gone with the value.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
}

impl Groups {
    /// Where this process may make groups; tried, not guessed.
    pub(crate) fn find() -> Result<Groups, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let base = base_of(&own).ok_or("no control group counts processes here")?;
        let groups = Groups { base };
        let tried = groups.create(&format!("abide-probe-{}", std::process::id()), 16);
        tried.map(|_gone| groups).map_err(|error| format!("no control group can be made: {error}"))
    }

    pub(crate) fn create(&self, name: &str, max: u32) -> io::Result<Group> {
        let folder = self.base.join(name);
        fs::create_dir(&folder)?;
        let group = Group { folder };
        fs::write(group.folder.join("pids.max"), max.to_string())?;
        Ok(group)
    }

    /// The groups whose name begins so, with who is in them.
    pub(crate) fn named(&self, prefix: &str) -> Vec<(String, Vec<i32>)> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.starts_with(prefix))
            .map(|name| {
                let members = members(&self.base.join(&name));
                (name, members)
            })
            .collect()
    }

    pub(crate) fn remove(&self, name: &str) {
        let _kept = fs::remove_dir(self.base.join(name));
    }
}

impl Group {
    pub(crate) fn join(&self, pid: i32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// Whether a process was refused because there were too many.
    pub(crate) fn was_full(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("pids.events")).unwrap_or_default();
        let times = events.lines().find_map(|line| line.strip_prefix("max "));
        times.and_then(|times| times.trim().parse::<u64>().ok()).is_some_and(|times| times > 0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Refused while somebody is in it; the next boot looks again.
        let _kept = fs::remove_dir(&self.folder);
    }
}

fn members(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// `/proc/self/cgroup` has a line per hierarchy: `ID:CONTROLLERS:PATH`. Version 2 has no controllers in its line.
fn base_of(own: &str) -> Option<PathBuf> {
    let lines = || own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let below = |root: &str, path: &str| Path::new(root).join(path.trim_start_matches('/'));
    let first = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "pids"));
    if let Some((_, path)) = first {
        return Some(below("/sys/fs/cgroup/pids", path)).filter(|base| base.is_dir());
    }
    let second =
        lines().find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| below("/sys/fs/cgroup", path))?;
    let handed_down = fs::read_to_string(second.join("cgroup.subtree_control")).unwrap_or_default();
    handed_down.split_ascii_whitespace().any(|name| name == "pids").then_some(second)
}
