//! Transient errors of the operating system: no file descriptor is left, or a disk or the memory failed for a moment.
//! The same call may succeed later without anybody changing anything. A turn that meets one is retried with backoff, and
//! a tool says "try again".

use std::error::Error;
use std::io;

use rustix::io::Errno;

/// The process, then the machine, has no file descriptor left; a disk failed; memory or processes are short.
const TRANSIENT: &[Errno] =
    &[Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN, Errno::INTR];

const AGAIN: &str = "this machine is short of it for a moment: try again in a while";

#[must_use]
pub fn is_transient(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| TRANSIENT.contains(&errno))
}

/// Whether an error, or one that caused it, is transient.
pub(crate) fn is_caused_by_transient(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(is_transient) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The hint for an error: `usual`, unless the error is transient.
pub fn hint<'a>(error: &io::Error, usual: &'a str) -> &'a str {
    if is_transient(error) { AGAIN } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_told_from_those_that_stay() {
        for number in [libc::EMFILE, libc::ENFILE, libc::EIO] {
            assert!(is_transient(&io::Error::from_raw_os_error(number)), "{number}");
        }
        for number in [libc::ENOENT, libc::EACCES, libc::ENOSPC, libc::EROFS] {
            assert!(!is_transient(&io::Error::from_raw_os_error(number)), "{number}");
        }
        assert!(!is_transient(&io::Error::other("Too many open files")));
    }

    #[test]
    fn the_cause_of_an_error_counts() {
        #[derive(Debug, thiserror::Error)]
        #[error("it could not be reached")]
        struct Unreachable(#[source] io::Error);
        assert!(is_caused_by_transient(&Unreachable(io::Error::from_raw_os_error(libc::EMFILE))));
        assert!(!is_caused_by_transient(&Unreachable(io::Error::from_raw_os_error(libc::ECONNREFUSED))));
    }
}
