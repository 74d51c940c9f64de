//! The marker that every process of a command carries in its environment, by which it is found after its owner is gone:
//! the home, the life of the daemon, and the label of the command.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::process_list;

pub(crate) const VARIABLE: &str = "ABIDE_PROCESS";

/// One life of one home's daemon.
#[derive(Debug, Clone)]
pub(crate) struct Marker {
    home: String,
    life: String,
}

impl Marker {
    pub(crate) fn new(home: &Path) -> Marker {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let began = process_list::read_stat(pid).map_or(0, |stat| stat.identity.began);
        // More than one owner in one process is possible; each has a life of its own.
        let nth = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Marker { home: format!("{:016x}", digest(home.as_os_str().as_bytes())), life: format!("{pid}-{began}-{nth}") }
    }

    /// Home and life, without what it is for.
    pub(crate) fn prefix(&self) -> String {
        format!("{}.{}.", self.home, self.life)
    }

    pub(crate) fn with_label(&self, label: &str) -> String {
        format!("{}{label}", self.prefix())
    }

    /// The label in a marker of this home's earlier lives.
    pub(crate) fn earlier_label<'a>(&self, marker: &'a str) -> Option<&'a str> {
        let (home, rest) = marker.split_once('.')?;
        let (life, label) = rest.split_once('.')?;
        (home == self.home && life != self.life).then_some(label)
    }

    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    pub(crate) fn life(&self) -> &str {
        &self.life
    }
}

static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// FNV-1a: the same in every build, which the standard library's hashes do not promise.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
