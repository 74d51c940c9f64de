//! The arguments for bubblewrap: a new root that holds the system read-only, the workspace, and nothing else.
//! Mounts are made from the shallow to the deep, so the deeper word counts. Runs nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::AllowedPath;
use super::places::Places;

/// The paths that a command may see and change, without symbolic links.
#[derive(Debug)]
pub(crate) struct SandboxView<'a> {
    pub writable: &'a [AllowedPath],
    pub readable: &'a [AllowedPath],
    /// The supervisor makes mounts of its own, for which it keeps the power.
    pub mounts_inside: bool,
    pub network: bool,
    /// Some of what is writable belongs to another user.
    pub foreign: bool,
    /// The socket of an ssh agent, on the machine.
    pub ssh_agent: Option<&'a Path>,
    pub scratch: Scratch,
}

/// The size limit of the private folders in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scratch {
    /// All of them together: they are folders of one file system.
    One(u64),
    /// Each of them, where bubblewrap can't show one file system in several places.
    Each(u64),
}

/// Where that one file system is, inside.
pub(crate) const SCRATCH: &str = "/.abide-scratch";
/// The same folder as a source of mounts. Bubblewrap takes sources from the old root, below which it keeps the new one
/// as `newroot` while it works; from the old root's own top `..` leads there. It looks for the source on the machine
/// first and, with `--bind-try`, lets a missing one be. That this works is tried at start.
const SCRATCH_SOURCE: &str = "../newroot/.abide-scratch";

/// Where a command finds the ssh agent that it was given: in a private folder.
pub(crate) const SSH_AGENT_SOCKET: &str = "/run/abide-ssh-agent";

/// The folders that are empty, writable, private and in memory.
pub(crate) fn private_folders(person: &Path) -> Vec<PathBuf> {
    let folders = ["/tmp", "/var/tmp", "/run", "/dev/shm"].map(PathBuf::from);
    folders.into_iter().chain([person.to_path_buf()]).collect()
}

/// For a shell inside: fails unless the private folders are there and, if they are to be, folders of one file system.
pub(crate) fn scratch_script(places: &Places, scratch: Scratch) -> String {
    let folders = private_folders(&places.person);
    let checks = folders.iter().enumerate().map(|(nth, folder)| {
        let seen = match scratch {
            Scratch::One(_) => format!("{SCRATCH}/{nth}/.probe"),
            Scratch::Each(_) => folder.join(".probe").display().to_string(),
        };
        format!(": > '{}/.probe' && test -e '{seen}'", folder.display())
    });
    checks.collect::<Vec<_>>().join(" && ")
}

/// The capabilities that a supervisor needs to make mounts and to give up that power for good.
const MOUNT_CAPABILITIES: [&str; 2] = ["CAP_SYS_ADMIN", "CAP_SETPCAP"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mount {
    Read,
    Write,
    /// Empty, writable, private, in memory: one of [`private_folders`].
    Private(usize),
    /// A folder or a file that is there and says nothing.
    Hidden,
    Link(PathBuf),
}

/// Everything up to the program to be run.
pub(crate) fn arguments(places: &Places, view: &SandboxView<'_>) -> Vec<OsString> {
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
    if view.mounts_inside {
        for power in MOUNT_CAPABILITIES {
            add(&["--cap-add", power]);
        }
    }
    if !view.network {
        add(&["--unshare-net"]);
    }
    if let Scratch::One(bytes) = view.scratch {
        add(&["--size", &bytes.to_string(), "--tmpfs", SCRATCH]);
        for nth in 0..private_folders(&places.person).len() {
            add(&["--dir", &format!("{SCRATCH}/{nth}")]);
        }
    }
    let (mut shared_memory, mut hidden) = (None, Vec::new());
    for ((_, path), mount) in list_mounts(places, view) {
        // In a folder that is made below.
        if path == Path::new("/dev/shm") {
            shared_memory = Some(mount);
            continue;
        }
        push_mount(&mut arguments, &path, &mount, view.scratch);
        if mount == Mount::Hidden && path.is_dir() {
            hidden.push(path);
        }
    }
    if let Some(socket) = view.ssh_agent {
        // Without write access to a socket a process can't connect to it, whatever the mount says.
        arguments.extend(["--bind-try".as_ref(), socket.as_os_str(), SSH_AGENT_SOCKET.as_ref()].map(OsString::from));
    }
    // Read-only, because such a folder may hold no bytes but any number of names. Not before everything is mounted: a
    // folder in it may be shown, such as the runtime's view of a repository that its home lies in.
    for path in hidden {
        arguments.extend(["--remount-ro".into(), path.into_os_string()]);
    }
    arguments.extend(["--proc", "/proc", "--dev", "/dev"].map(OsString::from));
    if let Some(mount) = shared_memory {
        push_mount(&mut arguments, Path::new("/dev/shm"), &mount, view.scratch);
    }
    // The superuser may write the kernel's settings without any power. So all of /proc is read-only, the files of the
    // command's own processes too: a list of files to protect would miss those of the next kernel, and the files of a
    // network namespace (/proc/self/net) lie in a folder of each process, where nothing can be mounted beforehand.
    arguments.extend(["--remount-ro", "/proc", "--remount-ro", "/dev"].map(OsString::from));
    if let Scratch::One(_) = view.scratch {
        // The places where it is shown stay writable.
        arguments.extend(["--remount-ro", SCRATCH].map(OsString::from));
    }
    // Last, for it forbids new mount points: nothing but what is named above can be written to.
    arguments.extend(["--remount-ro", "/"].map(OsString::from));
    arguments
}

/// Ordered by depth first.
type Mounts = BTreeMap<(usize, PathBuf), Mount>;

fn list_mounts(places: &Places, view: &SandboxView<'_>) -> Mounts {
    let mut mounts = Mounts::new();
    let depth = |path: &Path| path.components().count();
    let mut put = |path: &Path, mount: Mount| mounts.insert((depth(path), path.to_path_buf()), mount);
    for (nth, private) in private_folders(&places.person).iter().enumerate() {
        put(private, Mount::Private(nth));
    }
    for path in places.readable.iter().chain(view.readable.iter().map(|root| &root.path)) {
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
    for root in view.writable {
        put(&root.path, Mount::Write);
    }
    let shown: Vec<(PathBuf, Mount)> = mounts
        .iter()
        .filter(|(_, mount)| matches!(mount, Mount::Read | Mount::Write))
        .map(|((_, path), mount)| (path.clone(), mount.clone()))
        .collect();
    // A folder is given with everything in it.
    let is_given = |path: &Path| view.writable.iter().chain(view.readable).any(|root| path.starts_with(&root.path));
    for secret in places.hidden.iter().chain(places.closed.iter().filter(|path| !is_given(path))) {
        let around = shown.iter().filter(|(path, _)| secret.starts_with(path) && secret != path);
        let Some((shown_at, mount)) = around.max_by_key(|(path, _)| depth(path)) else { continue };
        // A mount point can't be renamed, but a folder around it can, and with it would go the name by which the next
        // command's secrets are hidden. So the folders on the way are mounted too, as they are.
        for folder in secret.ancestors().skip(1).take_while(|folder| *mount == Mount::Write && *folder != shown_at) {
            mounts.entry((depth(folder), folder.to_path_buf())).or_insert(Mount::Write);
        }
        mounts.entry((depth(secret), secret.clone())).or_insert(Mount::Hidden);
    }
    mounts
}

fn push_mount(arguments: &mut Vec<OsString>, path: &Path, mount: &Mount, scratch: Scratch) {
    let path = path.as_os_str();
    let mut add = |words: &[&std::ffi::OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    match mount {
        Mount::Read => add(&["--ro-bind-try".as_ref(), path, path]),
        Mount::Write => add(&["--bind".as_ref(), path, path]),
        Mount::Private(nth) => match scratch {
            Scratch::One(_) => add(&["--bind-try".as_ref(), format!("{SCRATCH_SOURCE}/{nth}").as_ref(), path]),
            Scratch::Each(bytes) => add(&["--size".as_ref(), bytes.to_string().as_ref(), "--tmpfs".as_ref(), path]),
        },
        Mount::Hidden if Path::new(path).is_dir() => {
            add(&["--size".as_ref(), "4096".as_ref(), "--tmpfs".as_ref(), path])
        }
        // A device on a mount that allows no devices: it is there, and can't be opened.
        Mount::Hidden => add(&["--ro-bind".as_ref(), "/dev/null".as_ref(), path]),
        Mount::Link(target) => add(&["--symlink".as_ref(), target.as_os_str(), path]),
    }
}
