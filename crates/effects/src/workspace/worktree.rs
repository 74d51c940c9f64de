//! Worktrees: a folder for one piece of work, with a repository of its own that begins at the commit that is checked out
//! in the user's. The worktree's repository takes the objects of that history from the mirror; what its agent commits is
//! in the folder alone until somebody fetches it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use abide_kernel::refusal::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

use super::git::Git;
use super::mirror::{BASE, Mirror, Owner, Refs, USER, parse_refs};
use super::objects::Objects;
use super::repository::{Repository, Settings, borrows_from, read_record};
use super::staged_removal::worktree_path;
use super::transfers::{Progress, Transfers};
use super::tree_size::{TreeSize, measure_bounded, too_large};
use super::validate::canonical_as_far_as_it_exists;
use super::view::{FileSettings, View, as_alternate, file_settings};
use super::worktree_record::{CreationNote, WorktreeRecord};
use super::{BRANCHES, Repositories, Workspace};
use crate::durable_file;
use crate::limits;
use crate::transient;

/// A worktree that we made, as the caller records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    pub path: PathBuf,
    pub branch: String,
    /// The commit that it started from.
    pub base_commit: String,
    /// The top of the user's working tree that it was made from.
    pub repo: PathBuf,
    /// Notes for its user: changes that are not in it, submodules that are empty.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The repository that a worktree is made from, as it is at this moment.
pub(super) struct WorktreeSource {
    pub(super) mirror: Mirror,
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    /// Those that say how files are to be read: the user's, also where the repository is itself a worktree of ours.
    file_settings: FileSettings,
    /// The top of the user's working tree: another one where the repository is itself a worktree of ours.
    pub(super) user: PathBuf,
    /// The object stores outside of the repository that its objects come from.
    alternates: Vec<PathBuf>,
    view: View,
    git: Git,
    transfers: Transfers,
    pub(super) head: Option<String>,
    /// Branches and tags, as `heads/NAME` and `tags/NAME`.
    pub(super) refs: Refs,
}

impl Repositories {
    /// Makes a folder with a repository of its own, in which `branch` begins at the commit that is checked out. Objects
    /// come only from stores that a person agreed to: see [`Repositories::record_agreement`].
    pub fn create_worktree(&self, of: &Workspace, folder: &Path, branch: &str) -> Result<Worktree, Refusal> {
        let _used = self.lock_mirrors();
        let nowhere = Git::trusted(Path::new("/dev/null"))?;
        if !branch.starts_with(BRANCHES)
            || !nowhere.run_unchecked(&[&"check-ref-format", &"--branch", &branch])?.succeeded
        {
            let message = format!("{branch:?} can't be the name of a branch of ours");
            return Err(Refusal::new(ErrorCode::BranchName, message).fill("prefix", BRANCHES));
        }
        let source = self.read_source(&require_repository(of)?)?;
        let Some(base) = source.head.clone() else {
            let message = format!("the repository {} has no commit yet", source.repository.toplevel.display());
            return Err(Refusal::new(ErrorCode::UnbornHead, message)
                .with_hint("commit something first: a worktree starts from a commit"));
        };
        let folder = require_free_folder(folder)?;
        let partial = source.transfer_objects(&base)?;
        let size = measure_bounded(&source.mirror.open_git()?, &base)?;
        let notes = source.collect_notes(&base, partial)?;
        let worktree =
            Worktree { path: folder, branch: branch.into(), base_commit: base, repo: source.user.clone(), notes };
        let record = source.make_record(worktree);
        let note = CreationNote::create(&record)?;
        let made = source.create(&record.worktree, &size, &note).and_then(|()| record.write());
        if let Err(refusal) = made {
            // No agent has worked in it, so its folder can be deleted.
            let _left = fs::remove_dir_all(&record.worktree.path);
            source.mirror.delete_ref(&base_ref(&record.worktree.path))?;
            WorktreeRecord::delete(&record.worktree.path)?;
            note.delete()?;
            return Err(refusal);
        }
        note.delete()?;
        Ok(record.worktree)
    }

    /// Reads a repository that a worktree is to be made from.
    pub(super) fn read_source(&self, repository: &Repository) -> Result<WorktreeSource, Refusal> {
        let settings = Settings::read(repository)?;
        let record = WorktreeRecord::read(&repository.toplevel)?.filter(|record| !record.converting);
        let own = record.and_then(|record| {
            Some((Mirror::by_id(&self.home, &record.mirror?), record.worktree.repo, record.settings))
        });
        if own.is_some() {
            require_own_records(repository)?;
        }
        let (mirror, alternates, user, file_settings) = match own {
            Some((mirror, user, file_settings)) => (mirror.clone(), vec![mirror.objects()], user, file_settings),
            None => {
                let mirror = Mirror::of_repository(&self.home, &repository.common_dir);
                let alternates = agreed_stores(&mirror, repository)?;
                (mirror, alternates, repository.toplevel.clone(), file_settings(&settings))
            }
        };
        mirror.prepare(repository, &settings)?;
        let view = View::for_reading(repository, &alternates, &self.scratch_folder())?;
        let git = self.untrusted_git(&view)?.with_files(&repository.toplevel);
        let listed = git.run_script(
            "git rev-parse -q --verify 'HEAD^{commit}' || echo unborn\n\
             git for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags",
        )?;
        let mut lines = listed.splitn(2, |byte| *byte == b'\n');
        let mut line = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let (head, refs) = (line(), line());
        let head = Some(head).filter(|head| head != "unborn" && !head.is_empty());
        let refs = parse_refs(refs.as_bytes(), "refs/");
        let (repository, transfers) = (repository.clone(), self.transfers.clone());
        Ok(WorktreeSource {
            mirror,
            repository,
            settings,
            file_settings,
            user,
            alternates,
            view,
            git,
            transfers,
            head,
            refs,
        })
    }
}

/// The object stores outside of the repository that its objects may come from: those that a person agreed to. Commands of
/// an agent, and everybody else who may write the repository's records, could name those of any repository of this machine.
fn agreed_stores(mirror: &Mirror, repository: &Repository) -> Result<Vec<PathBuf>, Refusal> {
    let now = borrows_from(&repository.common_dir)?;
    if mirror.alternates() == now {
        return Ok(now);
    }
    let path = repository.toplevel.display();
    let message = format!("the repository {path} takes objects from elsewhere: {}", join_paths(&now));
    let hint = "use mode direct, or ask the operator to attach it: abide workspace attach --worktree";
    Err(Refusal::new(ErrorCode::BorrowedObjects, message).with_hint(hint))
}

/// The sentence about the object stores of others that a repository takes objects from, where there are any.
pub(super) fn borrows_note(toplevel: &Path, stores: &[PathBuf]) -> Option<String> {
    let some = !stores.is_empty();
    some.then(|| format!("the repository {} takes objects from {}", toplevel.display(), join_paths(stores)))
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Refuses a worktree whose `.git` leads elsewhere: its agent could have the records of any repository taken for its own.
pub(super) fn require_own_records(repository: &Repository) -> Result<(), Refusal> {
    if repository.common_dir == repository.toplevel.join(".git") && !repository.is_linked() {
        return Ok(());
    }
    let (path, elsewhere) = (repository.toplevel.display(), repository.common_dir.display());
    let message = format!("the repository of the worktree {path} is {elsewhere}, and not its own");
    Err(Refusal::new(ErrorCode::NotAWorktree, message))
}

impl WorktreeSource {
    /// Brings the mirror up to date with the repository. Returns whether only the newest commit could be had.
    pub(super) fn transfer_objects(&self, base: &str) -> Result<bool, Refusal> {
        let progress = self.transfers.begin_transfer(&self.repository.toplevel);
        let head = BTreeSet::from([base.to_owned()]);
        let mut all: BTreeSet<String> = self.refs.values().cloned().collect();
        all.extend(head.iter().cloned());
        let taken = if self.settings.is_partial() {
            Err(Refusal::new(ErrorCode::PartialClone, ""))
        } else {
            let all_taken = self.mirror.take_objects(&self.view, &self.git, &all, self.owner(&progress));
            // A branch with a damaged history must not stand in the way of the one that is wanted.
            all_taken.or_else(|_| self.mirror.take_objects(&self.view, &self.git, &head, self.owner(&progress)))
        };
        match taken {
            Ok(()) => Ok(false),
            Err(_) if self.settings.is_partial() => self.transfer_newest(base, &progress).map(|()| true),
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) fn make_record(&self, worktree: Worktree) -> WorktreeRecord {
        WorktreeRecord {
            worktree,
            mirror: Some(self.mirror.id.clone()),
            settings: self.file_settings.clone(),
            converting: false,
        }
    }

    fn owner<'a>(&self, progress: &'a Progress) -> Owner<'a> {
        if self.is_users() { Owner::User(progress) } else { Owner::Agent }
    }

    /// Whether it is the user's repository, and not that of a worktree of ours.
    fn is_users(&self) -> bool {
        self.user == self.repository.toplevel
    }

    /// A partial clone lacks objects of its history. Those of the commit that is checked out it has, mostly.
    fn transfer_newest(&self, base: &str, progress: &Progress) -> Result<(), Refusal> {
        let path = self.repository.toplevel.display();
        let missing = |refusal: Refusal| {
            let message = format!("{path} is a partial clone, and lacks objects of {base}: {}", refusal.message);
            Refusal::new(ErrorCode::PartialClone, message)
                .with_hint(format!("fetch them first: git -C '{path}' fetch --refetch --no-filter"))
        };
        self.view.make_shallow(base).map_err(|error| {
            Refusal::new(ErrorCode::Io, format!("a view of {path} could not be written: {error}"))
                .with_hint(transient::hint(&error, "see to the disk"))
        })?;
        let head = BTreeSet::from([base.to_owned()]);
        self.mirror.take_objects(&self.view, &self.git, &head, self.owner(progress)).map_err(missing)
    }

    fn collect_notes(&self, base: &str, partial: bool) -> Result<Vec<String>, Refusal> {
        let path = self.repository.toplevel.display();
        let mut notes = Vec::new();
        if self.is_users() {
            notes.extend(borrows_note(&self.repository.toplevel, &self.alternates));
        }
        if self.is_dirty()? {
            notes.push(format!("what is not committed in {path} is not in it"));
        }
        if self.mirror.open_git()?.run_unchecked(&[&"cat-file", &"-e", &format!("{base}:.gitmodules")])?.succeeded {
            notes.push("the folders of submodules are empty".to_owned());
        }
        if partial {
            notes.push(format!("{path} is a partial clone: of its history there is the newest commit"));
        }
        Ok(notes)
    }

    /// Whether something is not committed. Compares with the commit that is checked out, whose tree has to be counted before.
    fn is_dirty(&self) -> Result<bool, Refusal> {
        let changed = "git status --porcelain -z --no-renames --ignore-submodules=all | head -c 1";
        Ok(!self.git.run_script(changed)?.is_empty())
    }

    fn create(&self, worktree: &Worktree, size: &TreeSize, note: &CreationNote) -> Result<(), Refusal> {
        let base = &worktree.base_commit;
        self.mirror.set_ref(&base_ref(&worktree.path), base)?;
        let refs = self.mirror.filter_present(&self.refs)?;
        if self.is_users() {
            self.mirror.set_refs(USER, &refs)?;
            self.mirror.link_large_files(&self.repository.common_dir)?;
        }
        let git = self.init_repository(worktree, &self.mirror.list_refs(USER)?)?;
        self.require_room(worktree, &self.checked_out_size(worktree, &git, size)?)?;
        git.run_with_lock(&[&"read-tree", &"-m", &"-u", &"HEAD"], note.lock_file()).map(drop)
    }

    /// The part of a tree that is checked out: all of it, unless the patterns of a sparse checkout leave some out.
    fn checked_out_size(&self, worktree: &Worktree, git: &Git, whole: &TreeSize) -> Result<TreeSize, Refusal> {
        if !self.is_sparse() {
            return Ok(*whole);
        }
        // In an index apart: git checks out nothing that the worktree's own says is there. The patterns have the syntax of
        // those that ignore files, and name what is to be there.
        let apart = git.with_index(self.view.path_of("sparse"));
        apart.run(&[&"read-tree", &"HEAD"])?;
        let patterns = worktree.path.join(".git/info/sparse-checkout");
        let listed = apart.run(&[&"ls-files", &"-c", &"-i", &"-X", &patterns, &"--stage", &"-z"])?;
        let id =
            |entry: &[u8]| entry.split(|byte| *byte == b' ').nth(1).map(|id| String::from_utf8_lossy(id).into_owned());
        let ids: Vec<String> = listed.split(|byte| *byte == 0).filter_map(id).collect();
        let mut objects = Objects::start(git)?;
        let bytes = objects.sizes(&ids)?;
        objects.finish()?;
        Ok(TreeSize { entries: whole.entries.min(ids.len() as u64), bytes, ..*whole })
    }

    /// Refuses to check out more than the disk has room for, and more than an agent may have others write.
    fn require_room(&self, worktree: &Worktree, size: &TreeSize) -> Result<(), Refusal> {
        if !self.is_users() && size.bytes > limits::TREE_BYTES {
            let what = format!("the tree of {}", worktree.base_commit);
            return Err(too_large(&what, size.bytes, limits::TREE_BYTES, "bytes"));
        }
        let spare = self.git.measure_spare(&worktree.path);
        let bytes = size.bytes.saturating_add(size.entries.saturating_mul(limits::FILE_ROOM_BYTES));
        if bytes <= spare.bytes && size.entries <= spare.inodes {
            return Ok(());
        }
        let (path, entries) = (worktree.path.display(), size.entries);
        let message = format!(
            "a worktree in {path} takes about {bytes} bytes and {entries} files; above the reserve its disk has {} bytes and \
             room for {} files",
            spare.bytes, spare.inodes
        );
        Err(Refusal::new(ErrorCode::DiskFull, message))
    }

    fn is_sparse(&self) -> bool {
        self.settings.get("core.sparsecheckout") == Some("true")
    }

    /// The worktree's own repository, with nothing checked out.
    pub(super) fn init_repository(&self, worktree: &Worktree, user: &Refs) -> Result<Git, Refusal> {
        let (folder, branch) = (&worktree.path, &worktree.branch);
        let failed = |error: io::Error| {
            let message = format!("{} could not be made: {error}", folder.display());
            Refusal::new(ErrorCode::Io, message)
                .with_hint(transient::hint(&error, "see that there is room and the right to write in the home"))
        };
        let dir = folder.join(".git");
        abide_private::private_folder(&dir).map_err(failed)?;
        let git = Git::trusted(&dir)?;
        let format = format!("--object-format={}", self.settings.object_format());
        git.run(&[&"init", &"-q", &"--template=", &format!("--initial-branch={branch}"), &format])?;
        for (key, value) in remote_settings(&self.settings) {
            git.run(&[&"config", &"--add", &key, &value])?;
        }
        for (key, value) in &self.file_settings {
            git.run(&[&"config", key, value])?;
        }
        for folder in ["info", "hooks", "objects/info"] {
            abide_private::private_folder(&dir.join(folder)).map_err(failed)?;
        }
        let alternate = format!("{}\n", as_alternate(&self.mirror.objects())?);
        durable_file::write_private(&dir.join("objects/info/alternates"), alternate).map_err(failed)?;
        let shallow = self.mirror.shallow();
        if !shallow.is_empty() {
            durable_file::write_private(&dir.join("shallow"), shallow).map_err(failed)?;
        }
        if self.is_sparse() {
            let patterns = read_record(&self.repository.git_dir, "info/sparse-checkout", limits::GIT_SETTINGS_BYTES);
            durable_file::write_private(&dir.join("info/sparse-checkout"), patterns.unwrap_or_default())
                .map_err(failed)?;
            git.run(&[&"config", &"core.sparseCheckout", &"true"])?;
        }
        let mut lines = format!("create refs/heads/{branch} {}\n", worktree.base_commit);
        lines.extend(user.iter().map(|(name, id)| format!("update {} {id}\n", worktree_ref(name))));
        git.run_with(&[&"update-ref", &"--stdin"], lines.as_bytes())?;
        git.run(&[&"pack-refs", &"--all"])?;
        Ok(git.with_files(folder))
    }
}

/// The name of the remote that the user's branches have in a worktree.
pub(super) const SHOWN_USER: &str = "user";

/// The name under which a worktree has a branch or tag of the user's.
pub(super) fn worktree_ref(name: &str) -> String {
    match name.strip_prefix("heads/") {
        Some(branch) => format!("refs/remotes/{SHOWN_USER}/{branch}"),
        None => format!("refs/{name}"),
    }
}

/// The mirror's ref that holds the commit a worktree began with.
pub(super) fn base_ref(folder: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().replace(|c: char| !is_plain(c as u8), "-")
    };
    format!("{BASE}{}/{}", name(folder.parent()), name(Some(folder)))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/')
}

/// The remotes of the user's repository, as settings, without passwords and tokens.
fn remote_settings(settings: &Settings) -> Vec<(&str, String)> {
    let of_remote = |key: &str| key.starts_with("remote.");
    let settings = settings.iter().filter(|(key, _)| of_remote(key));
    let kept = settings.filter_map(|(key, value)| match key.rsplit('.').next() {
        Some("url" | "pushurl") => Some((key, without_credentials(value))),
        Some("fetch") => Some((key, value.to_owned())),
        Some(_) | None => None,
    });
    kept.collect()
}

/// The address of a remote without anything that could be a secret: no password, no query, no fragment, and no user but the
/// login name that ssh needs.
fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    if let Some((scheme, rest)) = url.split_once("://") {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let login = if scheme.ends_with("ssh") { login_of(authority) } else { "" };
        return format!("{scheme}://{login}{}{path}", after_user(authority));
    }
    let is_path = url.starts_with(['/', '.']) || !url.contains(':');
    // `user@host:path`; a password in it may hold any sign.
    if is_path { url.to_owned() } else { format!("{}{}", login_of(url), after_user(url)) }
}

/// The user of an address with its `@`, where it is spelled as login names are: short, and in small letters.
fn login_of(address: &str) -> &str {
    const LONGEST: usize = 32;
    let Some((user, _)) = address.rsplit_once('@') else { return "" };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if user.len() <= LONGEST && user.chars().all(fits) { &address[..=user.len()] } else { "" }
}

fn after_user(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}

pub(super) fn require_repository(workspace: &Workspace) -> Result<Repository, Refusal> {
    workspace.git.as_ref().map(super::GitRoot::repository).ok_or_else(|| {
        let message = format!("{} is not in a git repository that knows it", workspace.path.display());
        Refusal::new(ErrorCode::NoGit, message)
    })
}

/// An empty or missing folder, by its canonical path.
fn require_free_folder(folder: &Path) -> Result<PathBuf, Refusal> {
    let folder = canonical_as_far_as_it_exists(folder)?;
    let shown = folder.display();
    let occupied = || {
        Refusal::new(ErrorCode::FolderExists, format!("{shown} is there already, and not empty"))
            .with_hint("choose a folder that is not")
    };
    if folder.to_str().is_none() {
        return Err(
            Refusal::new(ErrorCode::NameNotUtf8, format!("{shown} is not UTF-8")).with_hint("choose a plain name")
        );
    }
    if worktree_path(&folder) != folder {
        let message = format!("{shown} has a name that folders have while they are removed");
        return Err(Refusal::new(ErrorCode::FolderName, message));
    }
    match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().map_or(Ok(()), |_| Err(occupied()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(occupied()),
        Err(error) => {
            let message = format!("{shown} can't be looked at: {error}");
            return Err(Refusal::new(ErrorCode::Unreadable, message)
                .with_hint(transient::hint(&error, "choose another folder")));
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::without_credentials;

    #[test]
    fn an_address_loses_its_password_and_keeps_the_rest() {
        for (url, kept) in [
            ("https://me:token@example.org/a.git", "https://example.org/a.git"),
            ("https://token@example.org/a@b", "https://example.org/a@b"),
            ("https://example.org/a@b", "https://example.org/a@b"),
            ("https://example.org/a.git?private_token=x", "https://example.org/a.git"),
            ("https://example.org/a.git#token=x", "https://example.org/a.git"),
            ("https://example.org?token=x@y/z", "https://example.org"),
            ("ssh://git:x@example.org:22/a", "ssh://example.org:22/a"),
            ("ssh://git@example.org:22/a", "ssh://git@example.org:22/a"),
            ("git@example.org:a.git", "git@example.org:a.git"),
            ("ghp_16C7e42F292c6912E7@example.org:a.git", "example.org:a.git"),
            ("tok:en@example.org:a.git", "example.org:a.git"),
            ("tok:e/n@example.org:a.git", "example.org:a.git"),
            ("./a@b", "./a@b"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_credentials(url), kept);
        }
    }
}
