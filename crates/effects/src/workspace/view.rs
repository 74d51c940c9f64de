//! A view of a repository that others write: a git directory of our own, with settings of our own, that leads to the
//! objects and refs of the other. git that works on a view knows no program that the repository names, writes new objects
//! into the view, and leaves no trace in the repository unless the view is made for writing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_private::{private_file, private_folder};
use rustix::fs::Mode;
use rustix::io::Errno;
use tempfile::TempDir;

use super::durable;
use super::git::{Git, text, user_setting};
use super::mirror::Mirror;
use super::repository::{Repository, Settings, open_record, read, read_record};
use super::tree_size::check_tree;
use crate::limits;
use crate::transient;
use crate::unlinked::open_unlinked;

/// Settings of a repository that say how its files are to be read. None of them names a program or another file.
const CARRIED: &[&str] = &[
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.sparsecheckoutcone",
];

/// Parts of the shared records that a view leads to.
const REFS: &[&str] = &["refs", "packed-refs", "reftable"];

#[derive(Debug)]
pub(super) struct View {
    _folder: TempDir,
    git_dir: PathBuf,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl View {
    /// For looking at a repository: its objects, refs and index, and the files of its working tree.
    pub(super) fn reading(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let settings = Settings::read(repository)?;
        View::new(repository, alternates, scratch, &config(&settings, &carried(&settings)))?.with_files(repository)
    }

    /// For looking at the repository of a worktree. Its files are read as the user's settings say, whatever its agent wrote
    /// into its own. Its reflogs are seen.
    pub(super) fn of_worktree(
        repository: &Repository,
        alternates: &[PathBuf],
        scratch: &Path,
        carried: &Carried,
    ) -> Result<View, Refusal> {
        let settings = Settings::read(repository)?;
        let view = View::new(repository, alternates, scratch, &config(&settings, carried))?.with_files(repository)?;
        let logs = repository.common_dir.join("logs");
        symlink(logs, view.git_dir.join("logs")).map_err(|error| failed(&repository.git_dir, &error))?;
        Ok(view)
    }

    fn with_files(mut self, repository: &Repository) -> Result<View, Refusal> {
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        private_folder(&self.git_dir.join("objects/info")).map_err(failed)?;
        let behind = repository.common_dir.join("objects");
        self.write("objects/info/alternates", format!("{}\n", as_alternate(&behind)?))?;
        copy_indexes(&repository.git_dir, &self.git_dir).map_err(failed)?;
        self.read.push(repository.toplevel.clone());
        Ok(self)
    }

    /// For changing the refs of a worktree's own repository.
    pub(super) fn owning(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let view = View::writing(repository, alternates, scratch)?;
        // Deleting a ref writes the list of packed ones anew, beside the other records.
        Ok(View { write: vec![repository.common_dir.clone()], ..view })
    }

    /// For adding objects and refs to a repository.
    pub(super) fn writing(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let settings = Settings::read(repository)?;
        let mut view = View::new(repository, alternates, scratch, &config(&settings, &carried(&settings)))?;
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        make_logs(&repository.common_dir).map_err(failed)?;
        for part in ["objects", "logs"] {
            symlink(repository.common_dir.join(part), view.git_dir.join(part)).map_err(failed)?;
        }
        let folders = ["objects", "refs", "logs", "reftable"].map(|part| repository.common_dir.join(part));
        view.write.extend(folders.into_iter().filter(|folder| folder.is_dir()));
        Ok(view)
    }

    /// For comparing the files of a worktree with a commit of its mirror, where its own repository can't be read.
    pub(super) fn of_commit(
        mirror: &Mirror,
        commit: &str,
        folder: &Path,
        scratch: &Path,
        carried: &Carried,
    ) -> Result<View, Refusal> {
        let records = mirror.dir().to_path_buf();
        let repository = Repository { toplevel: folder.into(), git_dir: records.clone(), common_dir: records };
        let view = View::of_worktree(&repository, &[], scratch, carried)?;
        view.write("HEAD", format!("{commit}\n"))?;
        let git = Git::trusted(&view.git_dir)?;
        check_tree(&git, commit)?;
        git.run(&[&"read-tree", &commit])?;
        Ok(view)
    }

    /// `alternates` are the object stores outside of the repository that its objects may come from. The repository's own
    /// list is not asked: in a sandbox, others than these are not there.
    fn new(repository: &Repository, alternates: &[PathBuf], scratch: &Path, config: &str) -> Result<View, Refusal> {
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        let folder = new_scratch(scratch).map_err(failed)?;
        let git_dir = folder.path().join("git");
        private_folder(&git_dir.join("info")).map_err(failed)?;
        durable::write(&git_dir.join("HEAD"), head_of(&repository.git_dir).map_err(failed)?).map_err(failed)?;
        durable::write(&git_dir.join("config"), config).map_err(failed)?;
        let excluded = excludes(&repository.common_dir);
        durable::write(&git_dir.join("info/exclude"), excluded).map_err(failed)?;
        for part in REFS {
            let there = repository.common_dir.join(part);
            if there.symlink_metadata().is_ok() {
                symlink(there, git_dir.join(part)).map_err(failed)?;
            }
        }
        let shallow = shallow(&repository.common_dir);
        if !shallow.is_empty() {
            durable::write(&git_dir.join("shallow"), shallow).map_err(failed)?;
        }
        let mut read = vec![repository.common_dir.clone()];
        read.extend_from_slice(alternates);
        Ok(View { _folder: folder, git_dir, read, write: Vec::new() })
    }

    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// What a sandboxed git may read besides the view itself.
    pub(super) fn readable(&self) -> Vec<PathBuf> {
        let inside = |path: &&PathBuf| !self.write.contains(path);
        self.read.iter().filter(inside).cloned().collect()
    }

    pub(super) fn writable(&self) -> Vec<PathBuf> {
        self.write.clone()
    }

    /// A file of the view's git directory, for input that git reads by name.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.git_dir.join(name)
    }

    /// Writes such a file.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), Refusal> {
        durable::write(&self.place(name), content).map_err(|error| failed(&self.git_dir, &error))
    }

    /// Writes such a file, a line each.
    pub(super) fn list(&self, name: &str, lines: impl Iterator<Item = String>) -> Result<(), Refusal> {
        self.write(name, lines.map(|line| line + "\n").collect::<String>())
    }

    /// Pretends that history begins with this commit.
    pub(super) fn make_shallow(&self, commit: &str) -> io::Result<()> {
        let shallow = self.git_dir.join("shallow");
        let mut known = fs::read(&shallow).unwrap_or_default();
        known.extend_from_slice(format!("{commit}\n").as_bytes());
        durable::write(&shallow, known)
    }
}

/// The commits at which a repository's history begins: lines of hashes, and none that is something else.
fn shallow(common_dir: &Path) -> Vec<u8> {
    let listed = read_record(common_dir, "shallow", limits::GIT_SETTINGS_BYTES).unwrap_or_default();
    let is_hash = |line: &&[u8]| matches!(line.len(), 40 | 64) && line.iter().all(u8::is_ascii_hexdigit);
    let lines = listed.split(|byte| *byte == b'\n').filter(is_hash);
    lines.flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// Where a repository without reflogs gets its first. A link in its place is refused, also one that leads nowhere.
fn make_logs(common_dir: &Path) -> io::Result<()> {
    let records = open_unlinked(common_dir)?;
    // With the mode that git would give it.
    match rustix::fs::mkdirat(&records, "logs", Mode::from_raw_mode(0o777)) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) if open_record(common_dir, Path::new("logs")).is_ok() => Ok(()),
        Err(Errno::EXIST) => Err(io::Error::other("its logs are a link, or can't be opened")),
        Err(error) => Err(error.into()),
    }
}

/// A private folder for one look. Those of a daemon that died are swept when the next one starts.
pub(super) fn new_scratch(scratch: &Path) -> io::Result<TempDir> {
    private_folder(scratch)?;
    tempfile::Builder::new().prefix("git-").permissions(fs::Permissions::from_mode(0o700)).tempdir_in(scratch)
}

/// A path as a line of a list of alternates.
pub(super) fn as_alternate(path: &Path) -> Result<String, Refusal> {
    let path = text(path)?;
    if !path.contains(['"', '\\', '\n']) && !path.starts_with('#') {
        return Ok(path.to_owned());
    }
    Ok(format!("\"{}\"", path.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")))
}

/// The commit or branch that is checked out, as the file says it; of a link in its place, as it would say it.
pub(super) fn head_of(git_dir: &Path) -> io::Result<Vec<u8>> {
    let head = git_dir.join("HEAD");
    match head.read_link() {
        Ok(target) if target.starts_with("refs") => Ok(format!("ref: {}\n", target.display()).into_bytes()),
        Ok(_) | Err(_) => read_record(git_dir, "HEAD", limits::GIT_WORDS_BYTES),
    }
}

fn plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Settings that say how files are to be read, by their keys.
pub(super) type Carried = BTreeMap<String, String>;

/// Those of them that a repository has.
pub(super) fn carried(settings: &Settings) -> Carried {
    let own = CARRIED.iter().filter_map(|key| Some((*key, settings.get(key).filter(|value| plain(value))?)));
    own.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn config(settings: &Settings, carried: &Carried) -> String {
    let (format, refs) = (settings.object_format(), settings.get("extensions.refstorage"));
    let version = u8::from(format != "sha1" || refs.is_some());
    let mut config = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tlogAllRefUpdates = true\n\tsparseCheckout = true\n"
    );
    for (key, value) in carried {
        config.push_str(&format!("\t{} = {value}\n", key.trim_start_matches("core.")));
    }
    if format != "sha1" && plain(format) {
        config.push_str(&format!("[extensions]\n\tobjectFormat = {format}\n"));
    }
    if let Some(refs) = refs.filter(|refs| plain(refs)) {
        config.push_str(&format!("[extensions]\n\trefStorage = {refs}\n"));
    }
    config
}

/// The user's own ignore file.
pub(super) fn user_ignored() -> Vec<u8> {
    let own = user_setting("core.excludesFile", &["--type=path"]).map(PathBuf::from).or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        Some(config.or_else(|| Some(std::env::home_dir()?.join(".config")))?.join("git/ignore"))
    });
    own.and_then(|own| read(&own, limits::GIT_SETTINGS_BYTES).ok()).unwrap_or_default()
}

/// What the user and the repository ignore, besides the tree's own files.
fn excludes(common_dir: &Path) -> Vec<u8> {
    let mut excluded = user_ignored();
    excluded.push(b'\n');
    excluded.extend(read_record(common_dir, "info/exclude", limits::GIT_SETTINGS_BYTES).unwrap_or_default());
    excluded
}

/// The index, and the part that a split index shares with others.
fn copy_indexes(from: &Path, to: &Path) -> io::Result<()> {
    copy_index(from, to, Path::new("index"))?;
    let index = match fs::read(to.join("index")) {
        Ok(index) => index,
        // Nothing was ever added.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let is_there = |name: &PathBuf| from.join(name).symlink_metadata().is_ok();
    let shared = shared_indexes(&index).find(is_there);
    shared.map_or(Ok(()), |shared| copy_index(from, to, &shared))
}

/// The names that the shared part of an index may have: it is named by a hash in an extension, which are at the end.
fn shared_indexes(index: &[u8]) -> impl Iterator<Item = PathBuf> {
    const EXTENSION: &[u8] = b"link";
    let begins = (0..index.len()).rev().filter(|at| index[*at..].starts_with(EXTENSION));
    let hashes = begins.take(limits::SHARED_INDEX_TRIES).flat_map(|at| {
        let hash = at + EXTENSION.len() + size_of::<u32>();
        [20, 32].map(|length| index.get(hash..hash + length))
    });
    hashes.flatten().map(|hash| {
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        PathBuf::from(format!("sharedindex.{hex}"))
    })
}

/// With its time, because git takes a file that is younger than the index for one that may have changed since. Not
/// through a link, and not without end: a file with a hole is any size for nothing.
fn copy_index(from: &Path, to: &Path, name: &Path) -> io::Result<()> {
    let source = match open_record(from, name) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let found = source.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("the index is not a file"));
    }
    if found.len() > limits::GIT_INDEX_BYTES {
        return Err(io::Error::other(format!("the index has more than {} bytes", limits::GIT_INDEX_BYTES)));
    }
    let mut copy = private_file(&to.join(name))?;
    // It may grow while it is copied.
    io::copy(&mut source.take(limits::GIT_INDEX_BYTES), &mut copy)?;
    copy.set_modified(found.modified()?)
}

fn failed(git_dir: &Path, error: &io::Error) -> Refusal {
    let message = format!("the repository {} could not be looked at: {error}", git_dir.display());
    Refusal::new(ErrorCode::Io, message)
        .with_hint(transient::hint(error, "see that it can be read, and that there is room in the home"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn copied(from: &Path) -> io::Result<Vec<String>> {
        let to = tempfile::tempdir().unwrap();
        copy_indexes(from, to.path())?;
        let names = fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    fn run(folder: &Path, args: &[&str]) {
        assert!(Command::new("git").current_dir(folder).args(args).status().unwrap().success());
    }

    /// Here and not at the front door, where copying too much shows only on a full disk.
    #[test]
    fn of_an_index_only_the_part_that_it_names_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), &["init", "-q"]);
        let records = folder.path().join(".git");
        assert_eq!(copied(&records).unwrap(), Vec::<String>::new());
        fs::write(folder.path().join("file"), "link").unwrap();
        run(folder.path(), &["add", "-A"]);
        fs::write(records.join(format!("sharedindex.{}", "a".repeat(40))), "").unwrap();
        assert_eq!(copied(&records).unwrap(), ["index"]);
        run(folder.path(), &["update-index", "--split-index"]);
        let names = copied(&records).unwrap();
        assert!(names.len() == 2 && names[1].starts_with("sharedindex.") && !names[1].contains("aaaa"), "{names:?}");
    }

    #[test]
    fn an_index_that_is_too_large_or_a_link_is_not_copied() {
        let records = tempfile::tempdir().unwrap();
        let index = records.path().join("index");
        fs::File::create(&index).unwrap().set_len(limits::GIT_INDEX_BYTES + 1).unwrap();
        assert!(copied(records.path()).unwrap_err().to_string().contains("more than"));
        fs::remove_file(&index).unwrap();
        let other = records.path().join("other");
        fs::write(&other, "DIRC").unwrap();
        symlink(&other, &index).unwrap();
        assert!(copied(records.path()).is_err());
    }
}
