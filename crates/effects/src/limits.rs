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

/// A file that is written, edited or patched: it is held in memory, twice.
pub const FILE_BYTES: u64 = 8 << 20;
/// What ReadFile returns at most, in bytes and in lines, and how many lines when none are asked for.
pub const READ_BYTES: usize = 256 << 10;
pub const READ_LINES: u64 = 2_000;
pub const READ_LINES_MAX: u64 = 20_000;
/// How much of one line ReadFile returns.
pub const READ_LINE_BYTES: usize = 16 << 10;
/// How far into a file ReadFile looks, for the lines that are asked for and to count the rest.
pub const READ_LOOKED_AT_BYTES: u64 = 64 << 20;
/// Links that may lead to one another, as the system has it too.
pub const LINKS_FOLLOWED: usize = 40;
/// How often something is opened that others keep renaming.
pub const OPEN_TRIES: usize = 256;
/// Entries of a folder that are looked at for files a crash left behind.
pub const LEFTOVERS_LOOKED_AT: usize = 20_000;
/// How much of a path is repeated in a refusal.
pub const PATH_SHOWN: usize = 300;
/// Lines of a file that a refusal shows, and how much of each.
pub const LINES_SHOWN: usize = 12;
pub const LINE_SHOWN_CHARS: usize = 160;
/// A patch, the files in it, and all that they are before and after.
pub const PATCH_BYTES: usize = 8 << 20;
pub const PATCH_FILES_MAX: usize = 1_000;
pub const PATCH_HELD_BYTES: usize = 64 << 20;
/// Lines that are compared to find where the hunks of one file fit.
pub const PATCH_COMPARISONS: u64 = 20_000_000;
/// How far a hunk may have moved. Farther away it has to fit in one place only.
pub const PATCH_MOVED_LINES: usize = 100;
/// Names that one Glob or Grep looks at, and how deep in folders.
pub const WALK_ENTRIES: usize = 200_000;
pub const WALK_DEPTH: usize = 128;
pub const IGNORE_FILE_BYTES: u64 = 256 << 10;
pub const GLOB_MATCHES: usize = 1_000;
/// Lines that Grep returns when none are asked for, and at most; how much of each, and of all.
pub const GREP_MATCHES: u64 = 200;
pub const GREP_MATCHES_MAX: u64 = 2_000;
pub const GREP_LINE_BYTES: usize = 500;
pub const GREP_BYTES: usize = 256 << 10;
pub const GREP_CONTEXT_MAX: u64 = 20;
/// What one Grep reads of all files together, and what it holds of a line while it searches.
pub const GREP_READ_BYTES: u64 = 2 << 30;
pub const GREP_HEAP_BYTES: usize = 16 << 20;
/// What WebFetch returns when nothing is asked for, and at most.
pub const FETCH_BYTES: u64 = 256 << 10;
pub const FETCH_BYTES_MAX: u64 = 4 << 20;
pub const FETCH_HEADER_BYTES: usize = 64 << 10;
pub const FETCH_REDIRECTS: usize = 5;
/// From asking to the end of the answer, for each address on the way.
pub const FETCH_TIMEOUT_MS: u64 = 20_000;
