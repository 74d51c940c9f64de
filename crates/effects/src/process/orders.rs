//! The protocol between the daemon and a supervisor: frames of JSON over a socket pair, the first of them with the
//! descriptors that the command gets. This module only sends and receives.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::sandbox::{AllowedPath, Confinement};

/// The argument that makes our binary a supervisor.
pub(crate) const SUPERVISE: &str = "__supervise";

/// Everything a supervisor needs to know to start one command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub cwd: PathBuf,
    /// The paths that the command may write to, with their identity when that was decided.
    pub roots: Vec<AllowedPath>,
    /// Other paths that it may read. Only for a sandbox that shows these by their names.
    pub readable: Vec<AllowedPath>,
    pub environment: Vec<(String, String)>,
    /// Paths below the roots that the supervisor makes mount points before the command starts.
    pub pinned: Vec<PathBuf>,
    /// The same, read-only.
    pub read_only: Vec<PathBuf>,
    /// Files to be written before the command starts, in its private home.
    pub home_files: Vec<(PathBuf, String)>,
    /// The runtime's home, where the sandbox can't keep the command from changing its modes.
    pub open_home: Option<PathBuf>,
    pub tty: bool,
    /// The supervisor is the first process of a namespace that holds only what it starts.
    pub namespace: bool,
    pub confinement: Confinement,
    /// A limit on processes where no control group counts them: exceeding it ends the command.
    pub processes_max: Option<u32>,
    /// The system refuses its user's processes beyond this. A second line, for bombs that grow faster than anybody looks;
    /// it does not bind the superuser.
    pub user_processes_max: Option<u64>,
    /// No control group bounds the memory: more than this ends the command.
    pub memory_max: Option<u64>,
    /// The soft limit of open files; nothing: the supervisor's own.
    pub open_files: Option<u64>,
    /// Folders in memory that only this command has, and how much they may hold together. More than one folder only
    /// where one file system can't be shown in several places; then the supervisor adds them up.
    pub scratch: Vec<PathBuf>,
    pub scratch_max: u64,
    pub grace_ms: u64,
}

/// A request to a supervisor while its command runs. The end of the connection is the last request: end everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StopRequest {
    End,
    Kill,
}

impl StopRequest {
    /// Above 0, which stands for no request.
    pub(crate) fn urgency(self) -> u8 {
        match self {
            StopRequest::End => 1,
            StopRequest::Kill => 2,
        }
    }
}

/// A message of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Started,
    NotStarted { message: String },
    Ended { exit_code: Option<i32>, signal: Option<i32>, evidence: Vec<String> },
}

pub(crate) fn write_frame<T: Serialize>(mut to: impl Write, value: &T) -> io::Result<()> {
    let body = serde_json::to_vec(value)?;
    let mut frame = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    to.write_all(&frame)
}

/// The next frame; nothing once the other side is gone.
pub(crate) fn read_frame<T: DeserializeOwned>(mut from: impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
    if length > limits::ORDERS_BYTES {
        return Err(io::Error::other("a frame is too large"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// The command's input, output and error, ahead of the orders.
pub(crate) fn send_descriptors(to: &UnixStream, descriptors: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("no room for descriptors"));
    }
    rustix::net::sendmsg(to, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive_descriptors(from: &UnixStream) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    descriptors.try_into().map_err(|_| io::Error::other("three descriptors were to come"))
}

/// A supervisor's first byte. With it the system says who sent it: its process id as this process sees it, whatever
/// namespace it lives in. Nothing if it is gone before it spoke.
pub(crate) fn receive_hello(from: &UnixStream) -> io::Result<Option<i32>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received =
        rustix::net::recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmCredentials(who) = message {
            return Ok(Some(who.pid.as_raw_nonzero().get()));
        }
    }
    Err(io::Error::other("the system did not say who spoke"))
}
