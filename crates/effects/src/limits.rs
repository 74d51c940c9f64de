//! Every bound of this crate, in one place.

/// A script's file. More is refused before it is parsed.
pub const SCRIPT_BYTES: u64 = 4 << 20;
/// How long a scripted round may take: a day.
pub const SCRIPT_DELAY_MAX_MS: u64 = 24 * 3_600_000;
/// How far back a script may look for a tool result.
pub const RESULT_BACK_MAX: u64 = 1_000;
/// What may be filled in, in the tool inputs of one round: a large result that is named often is large often.
pub const FILLED_IN_BYTES: usize = 8 << 20;
/// Messages that set off a `when` entry and whose place is still known, besides those of the running turn. A message
/// that comes again after that many others have done so starts its entry anew.
pub const PLAYS_MAX: usize = 16;
/// How much of a name or value that somebody else wrote is repeated in a refusal.
pub const QUOTED_CHARS: usize = 80;

/// How long a command that was asked to end may take before it is made to.
pub const END_GRACE_MS: u64 = 5_000;
/// How long a supervisor may take beyond that to say that everything ended, before it is ended with the rest.
pub const SUPERVISOR_GRACE_MS: u64 = 5_000;
/// How long the supervisor of a command may take until the command runs.
pub const START_TIMEOUT_MS: u64 = 30_000;
/// How long output is still read once nothing of a command runs: what is in a pipe then comes at once.
pub const DRAIN_MS: u64 = 1_000;
/// How often a supervisor looks whether there are too many processes, where no control group counts them, and whether
/// those that were killed are gone.
pub const FAMILY_TICK_MS: u64 = 50;
/// How many times its processes a command's user may have before the system refuses more, where nobody but the
/// supervisor counts and it takes a moment to look.
pub const USER_PROCESSES_TIMES: u64 = 4;
/// The start of a command's output that is kept, and as much of its end; what lies between is counted.
pub const OUTPUT_HEAD_BYTES: usize = 512 << 10;
pub const OUTPUT_TAIL_BYTES: usize = 512 << 10;
/// The same for standard output and standard error apart, for the answer to a command that ends quickly.
pub const STREAM_HEAD_BYTES: usize = 64 << 10;
pub const STREAM_TAIL_BYTES: usize = 64 << 10;
/// How much is taken from a command's pipe at once, and how much the pipe may hold.
pub const READ_BYTES: usize = 256 << 10;
pub const PIPE_BYTES: usize = 1 << 20;
/// How often the end of a running command's output is written to its file.
pub const TAIL_EVERY_MS: u64 = 1_000;
/// How long input may wait for a command to take it.
pub const INPUT_WAIT_MS: u64 = 5_000;
/// The private folders of a confined command that lie in memory, each.
pub const SCRATCH_BYTES: u64 = 1 << 30;
/// What a supervisor is told at most: a command line, an environment, rules.
pub const ORDERS_BYTES: usize = 4 << 20;
/// How much of what a failed sandbox said is repeated.
pub const COMPLAINT_BYTES: usize = 2_000;
