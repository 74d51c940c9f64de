//! The arguments for bubblewrap: a new root that holds the system read-only, the workspace, and nothing else.
//! Mounts are made from the shallow to the deep, so the deeper word counts. Runs nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::places::Places;
use crate::limits;

/// What a command may see and change, in paths without symbolic links.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub writable: &'a [PathBuf],
    pub readable: &'a [PathBuf],
    pub network: bool,
    /// Some of what is writable belongs to another user.
    pub foreign: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mount {
    Read,
    Write,
    /// Empty, writable, private, in memory.
    Private,
    /// A folder or a file that is there and says nothing.
    Hidden,
    Link(PathBuf),
}

/// Everything up to the program to be run.
pub(crate) fn arguments(places: &Places, view: &View<'_>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    add(&["--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    add(&["--unshare-cgroup-try", "--cap-drop", "ALL"]);
    if !rustix::process::geteuid().is_root() {
        add(&["--unshare-user"]);
    } else if view.foreign {
        // As the superuser outside of a sandbox could; here it is a power over what is shown, and no more.
        add(&["--cap-add", "CAP_CHOWN", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_FOWNER"]);
    }
    if !view.network {
        add(&["--unshare-net"]);
    }
    for ((_, path), mount) in mounts(places, view) {
        push(&mut arguments, &path, &mount);
    }
    arguments.extend(["--proc", "/proc", "--dev", "/dev"].map(OsString::from));
    push(&mut arguments, Path::new("/dev/shm"), &Mount::Private);
    // The superuser may write the kernel's settings without any power. So all of /proc is read-only, the files of the
    // command's own processes too: a list of files to protect would miss those of the next kernel, and the files of a
    // network namespace (/proc/self/net) lie in a folder of each process, where nothing can be mounted beforehand.
    arguments.extend(["--remount-ro", "/proc", "--remount-ro", "/dev"].map(OsString::from));
    // Last, for it forbids new mount points: nothing but what is named above can be written to.
    arguments.extend(["--remount-ro", "/"].map(OsString::from));
    arguments
}

/// Ordered by depth first.
type Mounts = BTreeMap<(usize, PathBuf), Mount>;

fn mounts(places: &Places, view: &View<'_>) -> Mounts {
    let mut mounts = Mounts::new();
    let depth = |path: &Path| path.components().count();
    let mut put = |path: &Path, mount: Mount| mounts.insert((depth(path), path.to_path_buf()), mount);
    for private in [Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/run"), &places.person] {
        put(private, Mount::Private);
    }
    for path in places.readable.iter().chain(view.readable) {
        match path.read_link() {
            // The system's own links (/bin and the like); a person's toolchain is shown where the link leads.
            Ok(target) if depth(path) == 2 => put(path, Mount::Link(target)),
            Ok(_) | Err(_) => put(path, Mount::Read),
        };
    }
    let resolver = Path::new("/etc/resolv.conf");
    if let (true, Ok(real)) = (view.network, resolver.canonicalize())
        && real != resolver
    {
        put(&real, Mount::Read);
    }
    for path in view.writable {
        put(path, Mount::Write);
    }
    let shown: Vec<(PathBuf, Mount)> = mounts
        .iter()
        .filter(|(_, mount)| matches!(mount, Mount::Read | Mount::Write))
        .map(|((_, path), mount)| (path.clone(), mount.clone()))
        .collect();
    for secret in &places.hidden {
        let around = shown.iter().filter(|(path, _)| secret.starts_with(path) && secret != path);
        let Some((shown_at, mount)) = around.max_by_key(|(path, _)| depth(path)) else { continue };
        // What is mounted can't be renamed, what is around it can, and with it would go the name by which the next
        // command's secrets are hidden. So the folders on the way are mounted too, as they are.
        for folder in secret.ancestors().skip(1).take_while(|folder| *mount == Mount::Write && *folder != shown_at) {
            mounts.entry((depth(folder), folder.to_path_buf())).or_insert(Mount::Write);
        }
        mounts.entry((depth(secret), secret.clone())).or_insert(Mount::Hidden);
    }
    mounts
}

fn push(arguments: &mut Vec<OsString>, path: &Path, mount: &Mount) {
    let path = path.as_os_str();
    let mut add = |words: &[&std::ffi::OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    let size = limits::SCRATCH_BYTES.to_string();
    match mount {
        Mount::Read => add(&["--ro-bind-try".as_ref(), path, path]),
        Mount::Write => add(&["--bind".as_ref(), path, path]),
        Mount::Private => add(&["--size".as_ref(), size.as_ref(), "--tmpfs".as_ref(), path]),
        Mount::Hidden if Path::new(path).is_dir() => {
            add(&["--size".as_ref(), "4096".as_ref(), "--tmpfs".as_ref(), path])
        }
        // A device on a mount that allows no devices: it is there, and can't be opened.
        Mount::Hidden => add(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path]),
        Mount::Link(target) => add(&["--symlink".as_ref(), target.as_os_str(), path]),
    }
}
