//! Git settings and hooks that an agent can write although the user's next git reads them: files that the configuration
//! of a repository or of its user includes from the folder that the agent works in, the folder of hooks, where
//! `core.hooksPath` or a link leads into that folder, and programs in it that settings name by a path.
//!
//! They are named and not protected: they are part of the work. A read-only mount on a tracked file would make every
//! checkout that changes it fail.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::programs::{SettingProgram, programs_in};
use super::protect::is_protected;
use super::repository::{Repository, Settings, read};
use super::{Repositories, Workspace};
use crate::git_dir::shadow_warning;
use crate::limits;

/// Places in a folder that an agent works in directly from which the user's git takes programs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WritableSettings {
    /// The folder of hooks.
    pub hooks: Option<PathBuf>,
    /// Files of settings, whether they exist or not: git ignores a missing one, and the agent can create it.
    pub files: Vec<PathBuf>,
    /// Programs that settings name by a path, whether they exist or not.
    pub programs: Vec<SettingProgram>,
    /// The folder itself, where git can take it for a repository.
    pub shadowing: Option<PathBuf>,
    /// Folders with a `.git` of their own, although the repository around them tracks files in them.
    pub nested: Vec<PathBuf>,
}

impl WritableSettings {
    /// The sentences for a person, about one place each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warning = |does: String| format!("git {does}, which the agent can write; use a worktree");
        let hooks = self.hooks.iter().map(|hooks| warning(format!("runs hooks from {}", hooks.display())));
        let files = self.files.iter().map(|file| warning(format!("reads settings from {}", file.display())));
        let programs = self
            .programs
            .iter()
            .map(|program| warning(format!("runs {} ({} names it)", program.path.display(), program.setting)));
        let shadows = self.shadowing.iter().map(|folder| shadow_warning(folder));
        let nested = self.nested.iter().map(|folder| nested_git_warning(folder));
        hooks.chain(files).chain(programs).chain(shadows).chain(nested).collect()
    }
}

impl Repositories {
    /// Looks for such places. A worktree has a repository of its own, in which the user runs nothing.
    #[must_use]
    pub fn writable_settings(&self, workspace: &Workspace) -> WritableSettings {
        let Some(git) = workspace.git.as_ref().filter(|_| !self.is_worktree(&workspace.path)) else {
            return WritableSettings::default();
        };
        let repository = git.repository();
        let hooks = vec![repository.common_dir.join("hooks")];
        let mut found = SettingSources { toplevel: repository.toplevel.clone(), hooks, ..SettingSources::default() };
        for file in user_settings_files().into_iter().chain(files_of(&repository)) {
            found.add_file(file, 0, false);
        }
        // Commands can write the records of a linked worktree too, although they lie elsewhere.
        let linked = git.records.is_some().then_some(&git.common_dir);
        let folders: Vec<&PathBuf> = [&workspace.path].into_iter().chain(linked).collect();
        let is_writable = |entry: &PathBuf| {
            let is_inside = folders.iter().any(|folder| entry.starts_with(folder) && entry != *folder);
            is_inside && !is_protected(&git.common_dir, entry)
        };
        let in_reach = |path: &PathBuf| entries_on_the_way(path).iter().any(is_writable);
        let hooks = found.hooks.into_iter().rev().map(|hooks| repository.toplevel.join(hooks)).find(in_reach);
        let files: BTreeSet<PathBuf> =
            found.files.into_iter().filter(in_reach).map(|file| readable_path(&file)).collect();
        let programs = found.programs.into_iter().filter(|program| in_reach(&program.path));
        let programs: BTreeSet<SettingProgram> =
            programs.map(|program| SettingProgram { path: readable_path(&program.path), ..program }).collect();
        WritableSettings {
            hooks: hooks.map(|hooks| readable_path(&hooks)),
            files: files.into_iter().collect(),
            programs: programs.into_iter().collect(),
            shadowing: None,
            nested: self.nested_in(&workspace.path),
        }
    }
}

/// The sentence about a `.git` in a folder that another repository tracks.
#[must_use]
pub fn nested_git_warning(folder: &Path) -> String {
    format!(
        "{0} has a .git of its own, although the repository around it tracks files there: your git follows its settings in \
         {0}, and the agent may have written them; look at it, and remove it unless you made it",
        folder.display()
    )
}

/// The files that git reads settings from, and the folders of hooks that they set.
#[derive(Debug, Default)]
struct SettingSources {
    toplevel: PathBuf,
    files: Vec<PathBuf>,
    programs: Vec<SettingProgram>,
    /// The last one counts, but for those that depend on a condition.
    hooks: Vec<PathBuf>,
}

impl SettingSources {
    /// Adds a file and those that it includes. Conditions of includes may hold or not: an agent can make most of them
    /// true, by the name of a branch or the address of a remote.
    ///
    /// A file that an agent wrote can include so many others that the rest is left out. That file is named in any case.
    fn add_file(&mut self, file: PathBuf, depth: usize, is_conditional: bool) {
        if depth > limits::INCLUDE_DEPTH || self.files.len() >= limits::INCLUDES || self.files.contains(&file) {
            return;
        }
        self.files.push(file.clone());
        let folder = file.parent().unwrap_or(Path::new("/"));
        for (key, value) in settings_in(&file).iter() {
            self.programs.extend(programs_in(key, value, &self.toplevel));
            let is_include_if = key.starts_with("includeif.") && key.ends_with(".path");
            if key == "core.hookspath" {
                if !is_conditional {
                    self.hooks.clear();
                }
                self.hooks.extend(expanded(value));
            } else if (key == "include.path" || is_include_if)
                && let Some(path) = expanded(value)
            {
                self.add_file(folder.join(path), depth + 1, is_conditional || is_include_if);
            }
        }
    }
}

/// The settings of one file. None where git could not read it either.
fn settings_in(file: &Path) -> Settings {
    let mut settings = Settings::default();
    let Ok(text) = read(file, limits::GIT_SETTINGS_BYTES) else { return settings };
    let lower = text.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|part| part == word);
    // A file that names no path needs no git to be started for it.
    if (has(b"/") || has(b"include") || has(b"hookspath")) && settings.parse(&text).is_err() {
        return Settings::default();
    }
    settings
}

/// The files of the user's own settings, in the order in which git reads them.
fn user_settings_files() -> Vec<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|config| !config.is_empty()).map(PathBuf::from);
    let config = config.or_else(|| Some(user_home()?.join(".config")));
    let files = [config.map(|config| config.join("git/config")), user_home().map(|home| home.join(".gitconfig"))];
    files.into_iter().flatten().collect()
}

fn files_of(repository: &Repository) -> [PathBuf; 2] {
    [repository.common_dir.join("config"), repository.git_dir.join("config.worktree")]
}

/// The user's home, as git finds it.
fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// A path as git reads it in settings. None for one that begins with another user's home or with git's own folder.
pub(super) fn expanded(value: &str) -> Option<PathBuf> {
    match value.strip_prefix('~') {
        Some("") => user_home(),
        Some(rest) => Some(user_home()?.join(rest.strip_prefix('/')?)),
        None if value.is_empty() || value.starts_with("%(prefix)/") => None,
        None => Some(PathBuf::from(value)),
    }
}

/// A path as a person reads it: by the real name of its folder, where there is one.
fn readable_path(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_path_buf(), |(folder, name)| folder.join(name))
}

/// The entries of folders that an absolute path leads through, by the real paths of these folders, links and their
/// targets included. Who can replace one of them decides where the path leads.
fn entries_on_the_way(path: &Path) -> Vec<PathBuf> {
    let (mut entries, mut links) = (Vec::new(), 0);
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = path_parts(path).collect();
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        // A part that is `/` leads back to the root.
        let entry = at.join(part);
        entries.push(entry.clone());
        match fs::read_link(&entry) {
            Ok(target) if links < limits::LINKS_FOLLOWED => {
                links += 1;
                path_parts(&target).rev().for_each(|part| rest.push_front(part));
            }
            Ok(_) | Err(_) => at = entry,
        }
    }
    entries
}

fn path_parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned())
}
