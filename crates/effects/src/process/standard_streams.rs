//! The ends of a command's input and output: pipes, or a terminal of its own.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Launch;
use crate::limits;

/// The daemon's ends.
#[derive(Debug)]
pub(super) struct DaemonEnds {
    pub input: Option<OwnedFd>,
    /// Standard output, or all that comes from a terminal.
    pub output: Option<OwnedFd>,
    pub error: Option<OwnedFd>,
}

/// The command's: standard input, output and error.
pub(super) type CommandStreams = [OwnedFd; 3];

pub(super) fn open_streams(launch: &Launch) -> io::Result<(DaemonEnds, CommandStreams)> {
    match &launch.streams {
        Some(given) => {
            let [input, output, error] = given.as_ref();
            let theirs = [input.try_clone()?, output.try_clone()?, error.try_clone()?];
            Ok((DaemonEnds { input: None, output: None, error: None }, theirs))
        }
        None if launch.tty => open_terminal(launch.accepts_input),
        None => open_pipes(launch.accepts_input),
    }
}

fn open_pipes(accepts_input: bool) -> io::Result<(DaemonEnds, CommandStreams)> {
    let (output, their_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (error, their_error) = pipe_with(PipeFlags::CLOEXEC)?;
    // More than it may have is refused; then it is as large as it is.
    let _as_it_is = fcntl_setpipe_size(&output, limits::PIPE_BYTES);
    let (input, their_input) = if accepts_input {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        set_nonblocking(&ours)?;
        (Some(ours), theirs)
    } else {
        (None, File::open("/dev/null")?.into())
    };
    Ok((DaemonEnds { input, output: Some(output), error: Some(error) }, [their_input, their_output, their_error]))
}

fn open_terminal(accepts_input: bool) -> io::Result<(DaemonEnds, CommandStreams)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    // By the terminal itself, not by its name: a name means something else in another mount namespace.
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    tcsetwinsize(&theirs, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })?;
    set_nonblocking(&ours)?;
    let input = if accepts_input { Some(ours.try_clone()?) } else { None };
    let (second, third) = (theirs.try_clone()?, theirs.try_clone()?);
    Ok((DaemonEnds { input, output: Some(ours), error: None }, [theirs, second, third]))
}

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = fcntl_getfl(descriptor)?;
    Ok(fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)?)
}
