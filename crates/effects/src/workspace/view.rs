//! A view of a repository that others write: a git directory of our own, with settings of our own, that leads to the
//! objects and refs of the other. git that works on a view knows no program that the repository names, writes new objects
//! into the view, and leaves no trace in the repository unless the view is made for writing.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use abide_kernel::input::Refusal;
use abide_private::{private_file, private_folder};
use tempfile::TempDir;

use super::durable;
use super::git::{Git, text, user_setting};
use super::mirror::Mirror;
use super::repository::{Repository, Settings, read};
use crate::limits;

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
const REFS: &[&str] = &["refs", "packed-refs", "reftable", "shallow"];

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
        let mut view = View::new(repository, alternates, scratch)?;
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        let objects = view.git_dir.join("objects");
        private_folder(&objects.join("info")).map_err(failed)?;
        let behind = repository.common_dir.join("objects");
        durable::write(&objects.join("info/alternates"), format!("{}\n", as_alternate(&behind)?)).map_err(failed)?;
        copy_indexes(&repository.git_dir, &view.git_dir).map_err(failed)?;
        view.read.push(repository.toplevel.clone());
        Ok(view)
    }

    /// For changing the refs of a worktree's own repository.
    pub(super) fn owning(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let view = View::writing(repository, alternates, scratch)?;
        // Deleting a ref writes the list of packed ones anew, beside the other records.
        Ok(View { write: vec![repository.common_dir.clone()], ..view })
    }

    /// For adding objects and refs to a repository.
    pub(super) fn writing(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let mut view = View::new(repository, alternates, scratch)?;
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        make_logs(&repository.common_dir).map_err(failed)?;
        for part in ["objects", "logs"] {
            symlink(repository.common_dir.join(part), view.git_dir.join(part)).map_err(failed)?;
        }
        let folders = ["objects", "refs", "logs", "reftable"].map(|part| repository.common_dir.join(part));
        view.write.extend(folders.into_iter().filter(|folder| folder.is_dir()));
        Ok(view)
    }

    /// For comparing the files of a folder with a commit of a mirror, where the folder's own repository can't be read.
    pub(super) fn of_commit(mirror: &Mirror, commit: &str, folder: &Path, scratch: &Path) -> Result<View, Refusal> {
        let records = mirror.dir().to_path_buf();
        let repository = Repository { toplevel: folder.into(), git_dir: records.clone(), common_dir: records };
        let view = View::reading(&repository, &[], scratch)?;
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        durable::write(&view.git_dir.join("HEAD"), format!("{commit}\n")).map_err(failed)?;
        Git::trusted(&view.git_dir)?.run(&[&"read-tree", &commit])?;
        Ok(view)
    }

    /// `alternates` are the object stores outside of the repository that its objects may come from. The repository's own
    /// list is not asked: in a sandbox, others than these are not there.
    fn new(repository: &Repository, alternates: &[PathBuf], scratch: &Path) -> Result<View, Refusal> {
        let failed = |error: io::Error| failed(&repository.git_dir, &error);
        let settings = Settings::read(repository)?;
        let folder = new_scratch(scratch).map_err(failed)?;
        let git_dir = folder.path().join("git");
        private_folder(&git_dir.join("info")).map_err(failed)?;
        durable::write(&git_dir.join("HEAD"), head_of(&repository.git_dir).map_err(failed)?).map_err(failed)?;
        durable::write(&git_dir.join("config"), config(&settings)).map_err(failed)?;
        let excluded = excludes(&repository.common_dir);
        durable::write(&git_dir.join("info/exclude"), excluded).map_err(failed)?;
        for part in REFS {
            let there = repository.common_dir.join(part);
            if there.symlink_metadata().is_ok() {
                symlink(there, git_dir.join(part)).map_err(failed)?;
            }
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

    /// A file beside the view's git directory, for input that git reads by name.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.git_dir.join(name)
    }

    /// Pretends that history begins with this commit.
    pub(super) fn make_shallow(&self, commit: &str) -> io::Result<()> {
        let shallow = self.git_dir.join("shallow");
        let mut known = fs::read(&shallow).unwrap_or_default();
        if shallow.symlink_metadata().is_ok() {
            fs::remove_file(&shallow)?;
        }
        known.extend_from_slice(format!("{commit}\n").as_bytes());
        durable::write(&shallow, known)
    }
}

/// Where a repository without reflogs gets its first.
#[expect(clippy::disallowed_methods, reason = "a folder of the user's repository has the mode that git would give it")]
fn make_logs(common_dir: &Path) -> io::Result<()> {
    fs::create_dir_all(common_dir.join("logs"))
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
fn head_of(git_dir: &Path) -> io::Result<Vec<u8>> {
    let head = git_dir.join("HEAD");
    match head.read_link() {
        Ok(target) if target.starts_with("refs") => Ok(format!("ref: {}\n", target.display()).into_bytes()),
        Ok(_) | Err(_) => read(&head, limits::GIT_WORDS_BYTES),
    }
}

fn plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Those of the carried settings that a repository has.
pub(super) fn carried(settings: &Settings) -> impl Iterator<Item = (&'static str, &str)> {
    CARRIED.iter().filter_map(|key| Some((*key, settings.get(key).filter(|value| plain(value))?)))
}

fn config(settings: &Settings) -> String {
    let (format, refs) = (settings.object_format(), settings.get("extensions.refstorage"));
    let version = u8::from(format != "sha1" || refs.is_some());
    let mut config = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tlogAllRefUpdates = true\n\tsparseCheckout = true\n"
    );
    for (key, value) in carried(settings) {
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

/// What the user and the repository ignore, besides the tree's own files.
fn excludes(common_dir: &Path) -> Vec<u8> {
    let own = user_setting("core.excludesFile", &["--type=path"]).map(PathBuf::from).or_else(|| {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        Some(config.or_else(|| Some(std::env::home_dir()?.join(".config")))?.join("git/ignore"))
    });
    let mut excluded = own.and_then(|own| read(&own, limits::GIT_SETTINGS_BYTES).ok()).unwrap_or_default();
    excluded.push(b'\n');
    excluded.extend(read(&common_dir.join("info/exclude"), limits::GIT_SETTINGS_BYTES).unwrap_or_default());
    excluded
}

/// The index, and the part that a split index shares with others.
fn copy_indexes(from: &Path, to: &Path) -> io::Result<()> {
    copy_index(&from.join("index"), &to.join("index"))?;
    for entry in fs::read_dir(from)?.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("sharedindex.") {
            copy_index(&entry.path(), &to.join(name))?;
        }
    }
    Ok(())
}

/// With its time, because git takes a file that is younger than the index for one that may have changed since.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    use std::os::unix::fs::OpenOptionsExt;
    let mut source = match fs::File::options().read(true).custom_flags(flags).open(from) {
        Ok(source) => source,
        // Nothing was ever added.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let found = source.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("the index is not a file"));
    }
    let mut copy = private_file(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_modified(found.modified()?)
}

fn failed(git_dir: &Path, error: &io::Error) -> Refusal {
    let message = format!("the repository {} could not be looked at: {error}", git_dir.display());
    Refusal::new("io", message, "see that it can be read, and that there is room in the home")
}
