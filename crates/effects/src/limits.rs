//! Every bound of this crate, in one place.

/// Output of a command is held back for one to two of these where there are secrets, so that a value is masked that is
/// written in two pieces.
pub const MASK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);

/// A script's file. More is refused before it is parsed.
pub const SCRIPT_BYTES: u64 = 4 << 20;
/// How long a scripted round may take: a day.
pub const SCRIPT_DELAY_MAX_MS: u64 = 24 * 3_600_000;
/// How far back a script may look for a tool result.
pub const RESULT_BACK_MAX: u64 = 1_000;
/// A bound on text that is filled into the tool inputs of one round: a large result that is named often is large often.
pub const FILLED_IN_BYTES: usize = 8 << 20;
/// Messages that set off a `when` entry and whose place is still known, besides those of the running turn. A message
/// that comes again after that many others have done so starts its entry anew.
pub const PLAYS_MAX: usize = 16;
/// How much of a name or value that somebody else wrote is repeated in a refusal.
pub const QUOTED_CHARS: usize = 80;

/// How much of an answer's text waits to be told while more of it is there to be read.
pub const TOLD_AT_ONCE_BYTES: usize = 4 << 10;

/// Bounds on an answer of a model: text, arguments of one call, calls, reasoning to be given back, parts of any kind.
pub const ANSWER_TEXT_BYTES: usize = 1 << 20;
pub const ARGUMENTS_BYTES: usize = 1 << 20;
pub const ANSWER_CALLS: usize = 128;
pub const SEALED_BYTES: usize = 1 << 20;
pub const ANSWER_BLOCKS: usize = 1_024;
/// A bound on the stream of an answer: some wrap each word in two hundred bytes.
pub const ANSWER_STREAM_BYTES: usize = 128 << 20;
/// One event of it. The longest have a whole answer in them once more.
pub const EVENT_BYTES: usize = 8 << 20;
/// How much of an answer that is an error is read, and how much of what a provider says is repeated.
pub const ERROR_BODY_BYTES: usize = 64 << 10;
pub const PROVIDER_WORDS_CHARS: usize = 600;
/// The longest wait for a provider's list of models.
pub const CATALOGUE_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
pub const CATALOGUE_BYTES: usize = 8 << 20;
/// Models of one provider that are listed.
pub const CATALOGUE_MAX: usize = 200;
/// How long a provider may take to be reached, to begin an answer, to go on with it, and for all of it. A model that
/// reasons, or a machine at home that reads a long prompt, says nothing for minutes.
pub const MODEL_CONNECT: std::time::Duration = std::time::Duration::from_secs(20);
pub const MODEL_FIRST_BYTE: std::time::Duration = std::time::Duration::from_secs(600);
pub const MODEL_STALL: std::time::Duration = std::time::Duration::from_secs(300);
pub const MODEL_TOTAL: std::time::Duration = std::time::Duration::from_secs(3_600);
/// How long the connection of a complete answer may take to be free for the next.
pub const MODEL_DRAIN: std::time::Duration = std::time::Duration::from_millis(100);
/// The longest that a provider may ask to be left alone.
pub const RETRY_AFTER_MAX_MS: u64 = 24 * 3_600_000;

/// A file that is written, edited or patched: it is held in memory, twice.
pub const FILE_BYTES: u64 = 8 << 20;
/// The most that ReadFile returns, in bytes and in lines, and the number of lines by default.
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
/// The largest answer of git: the names of all files of a very large repository.
pub const GIT_OUTPUT_BYTES: u64 = 128 << 20;
/// How long git may take for one answer: to check out a very large repository, on a slow disk.
pub const GIT_PATIENCE: std::time::Duration = std::time::Duration::from_secs(900);
/// How long an untrusted git may do nothing at all.
pub const GIT_STALL: std::time::Duration = std::time::Duration::from_secs(10);
/// Settings, lists of ignored files and the like that are read of a repository.
pub const GIT_SETTINGS_BYTES: u64 = 1 << 20;
/// Repositories in one folder that are protected. Each takes some twenty mounts; the kernel allows 100,000.
pub const REPOSITORIES_MAX: usize = 1_000;
/// Entries of a folder that are searched for repositories before each command. More take longer than a command should.
pub const PROTECT_ENTRIES: usize = 2_000_000;
/// Entries of a git directory, loose objects left out, that are searched for links after each command. Twice of what may
/// lie in the whole folder before it.
pub const GIT_DIR_ENTRIES: usize = 4_000_000;
/// Files of git's settings that are searched for writable ones, and how deep includes may be nested, as git has it too.
pub const INCLUDES: usize = 64;
pub const INCLUDE_DEPTH: usize = 10;
/// Object stores that a repository may take objects from.
pub const ALTERNATES: usize = 64;
/// A tree that is checked out, compared or fetched: all entries, folders inside of each other, and the longest path, which
/// the system bounds too. The index of two million files has about [`GIT_INDEX_BYTES`].
pub const TREE_ENTRIES: u64 = 2_000_000;
pub const TREE_DEPTH: u64 = 512;
pub const TREE_PATH_BYTES: u64 = 4_096;
/// The files of a worktree that is made of an agent's repository. Those of a user's may fill the disk up to its reserve.
pub const TREE_BYTES: u64 = 16 << 30;
/// The room on a disk that a file takes beyond its content, at most, on usual file systems.
pub const FILE_ROOM_BYTES: u64 = 4 << 10;
/// Changed and untracked files that are saved or compared, and their bytes; and the patch that is written of them, which
/// has the content of deleted files too.
pub const UNCOMMITTED_FILES: usize = 200_000;
pub const UNCOMMITTED_BYTES: u64 = 1 << 30;
pub const UNCOMMITTED_PATCH_BYTES: u64 = 2 << 30;
/// How long comparing a folder with its last state may take, which is done after every round of a model.
pub const TREE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
/// Memory of its own that git may take where it works outside of a sandbox, but for the history of a user's repository.
pub const GIT_MEMORY_BYTES: u64 = 2 << 30;
/// A series of patches that is written of an agent's commits. A longer one helps nobody: the commits are in the mirror.
pub const SERIES_BYTES: u64 = 64 << 20;
/// Packs of a mirror before they are put together, and how long a mirror of no use stays.
pub const MIRROR_PACKS: usize = 50;
pub const MIRROR_UNUSED: std::time::Duration = std::time::Duration::from_secs(14 * 24 * 3_600);
/// The index of a repository that git looks at. One of two million files has about this size.
pub const GIT_INDEX_BYTES: u64 = 256 << 20;
/// Places of an index that may name the part that it shares with others.
pub const SHARED_INDEX_TRIES: usize = 16;
/// How much of git's complaints is repeated in a refusal.
pub const GIT_WORDS_BYTES: u64 = 4 << 10;
/// Entries of a folder outside git that are looked at to see whether it changed.
pub const SCAN_ENTRIES: usize = 50_000;
/// How long a boot waits for a git that outlived the daemon and still makes a worktree.
pub const MAKING_WAIT: std::time::Duration = std::time::Duration::from_secs(30);
/// How often a worktree that changes while it is saved is saved again.
pub const SAVE_TRIES: u32 = 3;
/// Names of files that a patch's story holds; their number is always told.
pub const PATCH_FILES: usize = 1_000;
/// Refs of a worktree that are kept, and those of them that are named one by one.
pub const KEPT_REFS: usize = 10_000;
pub const KEPT_NAMES: usize = 100;
/// Parents of one commit that gathers others.
pub const GATHERED_PARENTS: usize = 500;
/// Ignored files of an agent's own rules that are saved all the same, and their bytes.
pub const OWN_IGNORED_FILES: usize = 5_000;
pub const OWN_IGNORED_BYTES: u64 = 64 << 20;
/// Commits whose ignore files count, and how many of those.
pub const IGNORING_COMMITS: usize = 16;
pub const IGNORE_FILES: usize = 10_000;
/// Names that one line of evidence holds.
pub const EVIDENCE_NAMES: usize = 10;
/// Numbers that are tried to find a name that is not taken.
pub const NAME_TRIES: u32 = 10_000;
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
pub const TAKEN_BYTES: usize = 256 << 10;
pub const PIPE_BYTES: usize = 1 << 20;
/// How often the end of a running command's output is written to its file.
pub const TAIL_EVERY_MS: u64 = 1_000;
/// How long input may wait for a command to take it.
pub const INPUT_WAIT_MS: u64 = 5_000;
/// The private folders of a confined command that lie in memory, all together.
pub const SCRATCH_BYTES: u64 = 1 << 30;
/// How often the memory of a running command is looked at.
pub const MEMORY_TICK_MS: u64 = 250;
/// How many closed files and folders of the system are hidden from commands.
pub const CLOSED_PATHS: usize = 500;
/// How long the search for them may take before each command.
pub const CLOSED_WALK_MS: u64 = 3_000;
/// The same where all programs of the system are searched, once, when the daemon starts. A busy machine takes seconds.
pub const CLOSED_PROGRAMS_WALK_MS: u64 = 30_000;
/// How often the modes of the home are looked at while a command runs that could change them, and of how many files.
pub const HOME_TICK_MS: u64 = 250;
pub const HOME_ENTRIES: usize = 1_000;
/// How often the disks of running commands are looked at, and below how many times their reserve the
/// folders of commands are measured.
pub const DISK_LOOK_MS: u64 = 1_000;
pub const DISK_NEAR_TIMES: u64 = 4;
/// Entries below the folders of a command that are measured on such a disk; how long that may take for all commands
/// together, and at least and at most for one folder.
pub const DISK_WALK_ENTRIES: usize = 200_000;
pub const DISK_WALK_ALL_MS: u64 = 2_000;
pub const DISK_WALK_LEAST_MS: u64 = 50;
pub const DISK_WALK_MOST_MS: u64 = 500;
/// How many times as long as it takes to measure is waited before it is done again.
pub const DISK_REST_TIMES: u32 = 3;
/// How far back the room counts that a command took, while the disk has its reserve.
pub const DISK_LATELY: std::time::Duration = std::time::Duration::from_secs(600);
/// The part of the room that is missing which a command must have taken to be ended, unless all commands together took
/// half of it; and the part of the reserve that it must have taken in any case.
pub const DISK_BLAME_PART: u64 = 10;
pub const DISK_BLAME_LEAST_PART: u64 = 100;
/// The usual reserve of a disk: this, or this part of it, whichever is less.
pub const DISK_RESERVE_BYTES: u64 = 512 << 20;
/// Inodes that stay free on a disk, where they are less than that part of all.
pub const DISK_RESERVE_INODES: u64 = 10_000;
/// In a folder with too many files to count, a command is known to create some if one of so many was created lately.
pub const DISK_CREATED_PART: usize = 10_000;
pub const DISK_RESERVE_PERCENT: u64 = 3;
/// The machine's memory, where it does not say.
pub const MEMORY_UNKNOWN_BYTES: u64 = 4 << 30;
/// The largest order to a supervisor: a command line, an environment, rules.
pub const ORDERS_BYTES: usize = 4 << 20;
/// How much of what a failed sandbox said is repeated.
pub const COMPLAINT_BYTES: usize = 2_000;

/// The part of one guide that a model is shown, and of all; and how many folders above the workspace may have one.
pub const GUIDE_BYTES: usize = 32 << 10;
pub const GUIDES_BYTES: usize = 64 << 10;
pub const GUIDES_ABOVE: usize = 32;
/// Skills that a model is told of, and what of each: its name and description stand in every prompt.
pub const SKILLS_MAX: usize = 64;
pub const SKILL_NAME_BYTES: usize = 64;
pub const SKILL_DESCRIPTION_BYTES: usize = 1_024;
/// The part of a skill that is read to find these, and how many names of a folder are looked at for skills.
pub const SKILL_HEAD_BYTES: u64 = 16 << 10;
pub const SKILLS_LOOKED_AT: usize = 1_000;
/// Files of a skill that are listed, and how deep in its folder.
pub const SKILL_FILES: usize = 200;
pub const SKILL_DEPTH: usize = 8;

/// How long a call waits for its command before it becomes a task, and the longest that may be.
pub const YIELD_MS: u64 = 10_000;
pub const YIELD_MAX_MS: u64 = 600_000;
/// How long writing tools, and the tasks of people, wait for a folder that another agent holds; and how often one is
/// looked at that an agent of another daemon holds, who rings no bell here.
pub const FOLDER_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
pub const FOREIGN_FOLDER_LOOK_MS: u64 = 100;
/// The part of each stream of its command that a call returns.
pub const COMMAND_OUTPUT_BYTES: u64 = 32 << 10;
pub const COMMAND_OUTPUT_MAX_BYTES: u64 = 256 << 10;
/// How long TaskOutput waits for a task, and the longest that may be.
pub const TASK_WAIT_MS: u64 = 30_000;
pub const TASK_WAIT_MAX_MS: u64 = 600_000;
/// The most that TaskOutput returns.
pub const TASK_OUTPUT_BYTES: usize = 32 << 10;
/// The most that goes to a task's input at once.
pub const INPUT_BYTES: usize = 64 << 10;
/// The end of a task's output, as its result carries it.
pub const RESULT_TAIL_BYTES: usize = 4 << 10;
/// Commands of one agent that run at the same time.
pub const COMMANDS_MAX: usize = 64;
/// Processes of one command.
pub const PROCESSES_MAX: u32 = 1_024;

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
/// The most that one Grep reads of all files together, and holds of a line while it searches.
pub const GREP_READ_BYTES: u64 = 2 << 30;
pub const GREP_HEAP_BYTES: usize = 16 << 20;
/// The bytes that WebFetch returns by default, and at most.
pub const FETCH_BYTES: u64 = 256 << 10;
pub const FETCH_BYTES_MAX: u64 = 4 << 20;
pub const FETCH_HEADER_BYTES: usize = 64 << 10;
pub const FETCH_REDIRECTS: usize = 5;
/// From asking to the end of the answer, for each address on the way.
pub const FETCH_TIMEOUT_MS: u64 = 20_000;
/// To see whether anybody answers at an address.
pub const KNOCK_TIMEOUT_MS: u64 = 5_000;
/// Tasks of one agent whose output is kept; that of older ones goes.
pub const OUTPUTS_KEPT: usize = 256;
/// The buffers of one socket, where the kernel does not say what it allows.
pub const SOCKET_BYTES: u64 = 8 << 20;
/// Every process may have this many files open, however little memory its command may use: the usual soft limit, with
/// which git, cargo and node work.
pub const OPEN_FILES_LEAST: u64 = 1_024;
