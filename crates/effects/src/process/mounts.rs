//! Mounts that a supervisor makes inside the sandbox before its command starts: parts of a writable folder that the
//! command must not change, and the folders around them, which it must not rename.
//!
//! They are made inside and not by bubblewrap, which takes a name and follows it: another command of the same agent, which
//! still runs, could swap a folder for a symbolic link in between and have any folder of the daemon's user mounted. In
//! here a name leads nowhere outside, no link is followed, and a folder is mounted onto itself through one descriptor.
//!
//! A mount point can be neither renamed nor removed, but a folder above it can. So every folder between a writable root
//! and a protected path is a mount point too.
//!
//! That holds inside the namespace only. A program outside that replaces a file, as git does with its settings, takes the
//! mount on it away in every other namespace. The kernel says so, and the command is ended.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::CapabilitySet;

use super::orders::Orders;
use crate::git_dir::RecordedGitDir;
use crate::sandbox::AllowedPath;

/// Parts of a command's writable folders that it may not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protection {
    /// Mount points that stay writable: they can be neither renamed nor replaced.
    pub pinned: Vec<PathBuf>,
    /// Mount points that can't be written.
    pub read_only: Vec<PathBuf>,
    /// Git directories that are put back as they were when the command has ended.
    pub git_dirs: Vec<RecordedGitDir>,
}

impl Protection {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pinned.is_empty() && self.read_only.is_empty()
    }

    pub fn extend(&mut self, more: Protection) {
        self.pinned.extend(more.pinned);
        self.read_only.extend(more.read_only);
        self.git_dirs.extend(more.git_dirs);
    }
}

/// Makes the mounts, and gives up the power to make others. With them comes a file that polls as urgent when one of them
/// is gone.
pub(super) fn mount_protected(orders: &Orders) -> io::Result<Option<File>> {
    if orders.pinned.is_empty() && orders.read_only.is_empty() {
        return Ok(None);
    }
    // A namespace that belongs to our own user namespace: bubblewrap's may belong to the one around it.
    unshare_mounts()?;
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    for (_, path, read_only) in points(orders) {
        mount_onto_itself(&open_point(orders, path)?, read_only).map_err(|error| failed(path, &error))?;
    }
    // Before they are checked: whatever happens later is heard.
    let changes = File::open("/proc/self/mountinfo")?;
    // A folder may have been renamed in the middle of this, from the namespace of another command.
    verify_all(orders)?;
    give_up_power()?;
    Ok(Some(changes))
}

/// From the shallow to the deep: a mount would cover those that were made below it before.
fn points(orders: &Orders) -> BTreeSet<(usize, &Path, bool)> {
    let depth = |path: &Path| path.components().count();
    let pinned = orders.pinned.iter().map(|path| (depth(path), path.as_path(), false));
    pinned.chain(orders.read_only.iter().map(|path| (depth(path), path.as_path(), true))).collect()
}

/// Whether every mount is where it was made.
pub(super) fn verify_all(orders: &Orders) -> io::Result<()> {
    for (_, path, read_only) in points(orders) {
        verify_mount(&open_point(orders, path)?, read_only).map_err(|error| failed(path, &error))?;
    }
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{} could not be protected: {error}", path.display()))
}

/// A path below one of the writable roots, with no symbolic link on the way.
fn open_point(orders: &Orders, path: &Path) -> io::Result<OwnedFd> {
    let around = orders.roots.iter().filter(|root| path.starts_with(&root.path));
    let outside = || io::Error::other(format!("{} lies in no folder of the command", path.display()));
    let root: &AllowedPath = around.max_by_key(|root| root.path.components().count()).ok_or_else(outside)?;
    let below = path.strip_prefix(&root.path).map_err(io::Error::other)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(root.open()?, below, flags, Mode::empty(), resolve);
    opened.map_err(|error| failed(path, &error.into()))
}

/// With what is mounted below it, so that nothing that is hidden there comes to light.
fn mount_onto_itself(point: &OwnedFd, read_only: bool) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = rustix::mount::open_tree(point, "", flags)?;
    if read_only {
        make_read_only(&tree)?;
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(&tree, "", point, "", flags)?)
}

#[allow(unsafe_code, reason = "no library has this call")]
fn make_read_only(tree: &OwnedFd) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the descriptor is open, the path is a terminated string, and the size is that of the structure.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[allow(unsafe_code, reason = "descriptors and memory stay as they are: only the namespace of mounts is another")]
fn unshare_mounts() -> io::Result<()> {
    // SAFETY: the call touches no memory of this process.
    let done = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn verify_mount(point: &OwnedFd, read_only: bool) -> io::Result<()> {
    let found = rustix::fs::statx(point.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    let is_mount = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    let is_read_only = rustix::fs::fstatvfs(point)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    match (is_mount, !read_only || is_read_only) {
        (true, true) => Ok(()),
        (false, _) => Err(io::Error::other("it was renamed or replaced meanwhile")),
        (true, false) => Err(io::Error::other("it can still be written")),
    }
}

/// The command gets no powers anyway; this process needs none any more.
fn give_up_power() -> io::Result<()> {
    for power in [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP] {
        rustix::thread::remove_capability_from_bounding_set(power)?;
    }
    let mut sets = rustix::thread::capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP);
    }
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
