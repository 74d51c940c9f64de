//! Error codes: for every refusal of the kernel, the tools, the commands and the HTTP API one variant with its word, HTTP
//! status, usual hint and meaning. This table is the only place that has them; `docs/errors.md` is generated from it.
//!
//! A word is stable: programs rely on it, and recorded results contain it. Two codes may have the same word if they differ in
//! status or hint.

use std::fmt;

use serde::{Serialize, Serializer};

/// A row of the table. The hint says what to do next; a name in braces is filled in where the refusal is made. It is
/// empty where only that place knows what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRow {
    pub word: &'static str,
    pub status: u16,
    pub hint: &'static str,
    pub meaning: &'static str,
}

macro_rules! error_codes {
    ($(#[doc = $meaning:literal] $name:ident: $word:literal, $status:literal, $hint:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $name),*
        }

        impl ErrorCode {
            /// Every code, in the order of the words.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$name),*];

            #[must_use]
            pub const fn row(self) -> CodeRow {
                match self {
                    $(ErrorCode::$name => {
                        CodeRow { word: $word, status: $status, hint: $hint, meaning: $meaning }
                    })*
                }
            }
        }
    };
}

error_codes! {
    /// The approval was decided before.
    AlreadyDecided: "already_decided", 409, "each is decided once; send the agent a message instead";
    /// The patch creates a file that exists.
    AlreadyThere: "already_there", 409, "patch the file that is there, or delete it first";
    /// A hunk of the patch fits in several places.
    AmbiguousHunk: "ambiguous_hunk", 409, "give more lines around the change, or the right line numbers; nothing was changed";
    /// The agent was deleted.
    Archived: "archived", 404, "create one under another name";
    /// The cron expression does not parse.
    BadCron: "bad_cron", 422, "";
    /// The cursor of a list or a stream does not parse, or lies past its end.
    BadCursor: "bad_cursor", 400, "take the cursor from the page before, or resume with the id of an event";
    /// The working directory of the command cannot be used.
    BadFolder: "bad_folder", 409, "name a folder that exists, by its real path";
    /// The form does not parse.
    BadForm: "bad_form", 400, "";
    /// A header does not parse.
    BadHeader: "bad_header", 400, "";
    /// The `Idempotency-Key` is empty, too long or has other characters than visible ASCII.
    BadKey: "bad_key", 400, "";
    /// The path of the request is not UTF-8.
    BadPath: "bad_path", 400, "";
    /// A query parameter is unknown or does not parse.
    BadQuery: "bad_query", 400, "";
    /// The server redirects to an address that is not fetched.
    BadRedirect: "bad_redirect", 409, "";
    /// The workspace is being removed.
    BeingRemoved: "being_removed", 409, "use another workspace";
    /// The fetched content is not text.
    BinaryContent: "binary_content", 409, "save it with ExecCommand, for example curl -L -o FILE URL";
    /// The file is not text.
    BinaryFile: "binary_file", 409, "";
    /// The repository takes objects from another one by `objects/info/alternates`.
    BorrowedObjects: "borrowed_objects", 409, "";
    /// The branch of a worktree has a name outside its namespace.
    BranchName: "branch_name", 409, "begin with {prefix} and use letters, digits, - and /";
    /// The skill's file does not parse.
    BrokenSkill: "broken_skill", 409, "tell the operator, or put it right where it lies";
    /// An agent with a budget cannot create an agent of its own name beside it.
    BudgetBound: "budget_bound", 409, "leave name out: a child is granted a part of your budget; or ask the operator to make it";
    /// The remaining budget is too small to be divided with a child.
    BudgetTooSmall: "budget_too_small", 409, "do it yourself, or wait for a child that is at work";
    /// Another process renames folders of the path all the time.
    Busy: "busy", 409, "something is renaming folders there all the time: wait until it is done, try again";
    /// The branch is checked out in the user's repository.
    CheckedOut: "checked_out", 409, "switch to another branch there first, then fetch again";
    /// The daemon is shutting down.
    Closing: "closing", 503, "try again when it is back";
    /// The folder contains the home of the daemon.
    ContainsHome: "contains_home", 409, "choose a folder that does not contain it";
    /// The daemon failed while it answered.
    Crashed: "crashed", 503, "try again; with an Idempotency-Key a repeat is safe";
    /// The body of the request ended early.
    CutOff: "cut_off", 400, "";
    /// The model's answer reached its maximum length before the call was complete.
    CallCutOff: "cut_off", 409, "do it in smaller parts: several calls with less in each";
    /// Records in the ledger are damaged.
    Damaged: "damaged", 409, "`abide ledger verify` names what is damaged";
    /// Git found damaged objects in the repository.
    DamagedObjects: "damaged_objects", 409, "see what git fsck says in the repository; nothing was taken over";
    /// The folder's git directory is damaged.
    DamagedRepository: "damaged_repository", 409, "";
    /// The same delivery is being recorded at this moment.
    DeliveryUnderWay: "delivery_under_way", 409, "wait for its answer, then repeat it to read it";
    /// A disk is full.
    DiskFull: "disk_full", 409, "make room on that disk, or commit a smaller tree";
    /// The disk has less free space than the reserve.
    DiskReserve: "disk_reserve", 409, "make room, or wait until there is some";
    /// A message with this id was queued before.
    DuplicateMessage: "duplicate_message", 409, "do not send it again";
    /// A text that is required is empty.
    Empty: "empty", 422, "say something";
    /// The id is taken.
    Exists: "exists", 409, "choose another name";
    /// The export is larger than one answer may be.
    ExportTooLarge: "export_too_large", 409, "`abide ledger export --full FILE` exports everything; with the daemon stopped, `abide ledger export` exports one agent of any size";
    /// The server of the URL could not be reached.
    FetchFailed: "fetch_failed", 409, "look at the address; if it is right, try again later";
    /// The folder of the new worktree exists.
    FolderExists: "folder_exists", 409, "";
    /// The name of the new worktree is not a plain folder name.
    FolderName: "folder_name", 409, "choose another name";
    /// The `Host` header names another host.
    ForeignHost: "foreign_host", 403, "use localhost or 127.0.0.1";
    /// The request comes from a page of another origin.
    ForeignOrigin: "foreign_origin", 403, "";
    /// Another git process works in the repository.
    GitBusy: "git_busy", 409, "try again when it is done, or delete its index.lock if there is none; nothing was removed";
    /// `core.worktree` puts the files of the repository into another folder.
    GitElsewhere: "git_elsewhere", 409, "remove core.worktree from the repository's configuration";
    /// A git command failed.
    GitFailed: "git_failed", 409, "";
    /// A git command needed more memory than it may use.
    GitMemory: "git_memory", 409, "an object or a tree there is too large to be worked with; commit smaller ones";
    /// The file belongs to a git directory.
    GitRecords: "git_records", 409, "change it with git, as a command; a folder counts as a git directory if it has HEAD, objects and refs";
    /// A git command made no progress and was ended.
    GitStuck: "git_stuck", 409, "look for pipes among its files (find {path} -type p), or see whether its disk answers";
    /// The repository belongs to another user, and git does not trust it.
    GitUnsafe: "git_unsafe", 409, "make it yours, or trust it: git config --global --add safe.directory '{path}'";
    /// A child's budget is a grant of its supervisor and is not changed by hand.
    GrantedBudget: "granted_budget", 409, "raise the budget of {agent}; what it makes next is granted more";
    /// The home of the daemon cannot be written to.
    HomeUnwritable: "home_unwritable", 503, "";
    /// The time has passed.
    InThePast: "in_the_past", 422, "name a time that is to come, with its time zone";
    /// A file stands where the runtime keeps its own.
    InTheWay: "in_the_way", 409, "look at it and move it elsewhere; nothing was removed";
    /// The folder is in use by the agent's turn or commands.
    InUse: "in_use", 409, "";
    /// The command has closed its input.
    InputClosed: "input_closed", 409, "look at its output: it may have ended";
    /// The command does not read its input.
    InputFull: "input_full", 409, "it does not read; look at its output, and try again later";
    /// The folder lies inside a git directory.
    InsideGit: "inside_git", 409, "give the folder with the files, or clone the repository first";
    /// The folder lies in the home of the daemon.
    InsideHome: "inside_home", 409, "choose a folder outside of it";
    /// The input of a tool call does not have the form of its schema.
    InvalidInput: "invalid_input", 409, "";
    /// An operation on a file failed.
    Io: "io", 409, "";
    /// Reading or writing the file failed.
    IoError: "io_error", 409, "try again; if it stays so, tell the operator";
    /// The path names a folder, not a file.
    IsAFolder: "is_a_folder", 409, "name a file; Glob lists what is in a folder";
    /// The `Idempotency-Key` was used for another request.
    KeyReused: "key_reused", 422, "take a new key for a new request";
    /// The first request with this `Idempotency-Key` is being answered.
    KeyUnderWay: "key_under_way", 409, "wait for its answer, then repeat it to read it";
    /// The sender may not send messages of this kind.
    KindOriginMismatch: "kind_origin_mismatch", 422, "leave the origin out, or choose the kind that this sender may send";
    /// The child's work is over, and it is being archived.
    Leaving: "leaving", 409, "its supervisor hears of its end; spawn another";
    /// The message is too large.
    MessageTooLarge: "message_too_large", 413, "put the content into a file and send its path";
    /// The mirror in the home belongs to another repository.
    MirrorDiffers: "mirror_differs", 409, "if nothing in it is needed any more, delete the mirror {mirror}";
    /// The folder does not exist.
    Missing: "missing", 409, "create the folder first, or correct the path; nothing else is used in its place";
    /// The operator does not offer this model to agents.
    ModelNotOffered: "model_not_offered", 409, "";
    /// Another folder is at the path by now.
    Moved: "moved", 409, "";
    /// A file stands where the patch is to be saved.
    NameTaken: "name_taken", 409, "move it elsewhere, then try again";
    /// The approval policy requires a person's approval for the call.
    NeedsApproval: "needs_approval", 409, "make the very same call again: then they are asked";
    /// The worktree contains a repository with work of its own.
    NestedRepository: "nested_repository", 409, "push or move what is in it, and delete it or run git submodule deinit; nothing was removed";
    /// The agent has no network access.
    NetworkOff: "network_off", 409, "its operator can let it: abide agent set ID --network on, or PATCH /v1/agents/ID with {\"network\": true}";
    /// The schedule has no occurrence.
    NeverFires: "never_fires", 422, "look at its day and month: a day must exist in one of its months";
    /// There is no agent with this id.
    NoAgent: "no_agent", 404, "create it first";
    /// The agent has no such branch.
    NoBranch: "no_branch", 404, "";
    /// The folder is not in a git repository.
    NoGit: "no_git", 409, "use mode direct, or make it one: git init, then commit";
    /// There is no git program that the daemon may run.
    NoGitProgram: "no_git_program", 409, "install git, or put a folder with one that no agent can write into the daemon's PATH";
    /// The text to replace is not in the file.
    NoMatch: "no_match", 409, "";
    /// There is no such model.
    NoModel: "no_model", 422, "`abide model list` has those that are known";
    /// The operating system provides no random numbers.
    NoRandomness: "no_randomness", 503, "";
    /// A wait of this kind names no resource.
    NoResourceHere: "no_resource_here", 409, "leave resource out";
    /// There is no such path.
    NoRoute: "no_route", 404, "";
    /// The secret is not set.
    NoSecret: "no_secret", 409, "set it first: abide secret set {name} < FILE";
    /// The daemon has no ssh agent to share.
    NoSshAgent: "no_ssh_agent", 409, "start an ssh agent, set SSH_AUTH_SOCK, and start the daemon again";
    /// The agent has no fact with this number.
    NoSuchMoment: "no_such_moment", 404, "choose a seq from its events";
    /// No turn is running.
    NoTurn: "no_turn", 409, "look at `why` for what the agent does";
    /// The working directory of the command does not exist.
    NoWorkdir: "no_workdir", 409, "give a folder that is there, relative to the workspace";
    /// The agent has no folder, or its folder cannot be opened.
    NoWorkspace: "no_workspace", 409, "use a workspace first, or leave workspace_mode out";
    /// The binding is no worktree.
    NoWorktree: "no_worktree", 409, "detach it as a folder; its files stay";
    /// Worktrees are not available.
    NoWorktrees: "no_worktrees", 409, "leave workspace_mode out";
    /// The agent has no supervisor.
    NotAChild: "not_a_child", 409, "stop it instead";
    /// The path does not name a regular file.
    NotAFile: "not_a_file", 409, "";
    /// The path does not name a folder.
    NotAFolder: "not_a_folder", 409, "";
    /// Sleeping is not a wait for something.
    NotAWait: "not_a_wait", 409, "use Sleep";
    /// The folder is not the worktree that was made there.
    NotAWorktree: "not_a_worktree", 409, "look at the folder and move what is in it; nothing was removed";
    /// The folder is not attached to the agent.
    NotAttached: "not_attached", 409, "choose a folder that is attached, or ask the operator to attach this one: abide workspace attach";
    /// The work item is not blocked.
    NotBlocked: "not_blocked", 409, "say blocked_by too, or create a timer";
    /// The kernel cannot resolve paths beneath a folder.
    NotConfined: "not_confined", 409, "use Linux 5.6 or later, and a container whose filter of system calls allows openat2";
    /// The agents of the tree could not be counted.
    NotCounted: "not_counted", 409, "try again later";
    /// The branch in the user's repository has commits that the fetch would drop.
    NotFastForward: "not_fast_forward", 409, "keep them under another name first: {command}";
    /// There is no such agent, for a request that names it in its path.
    UnknownAgent: "not_found", 404, "`abide agent list` lists the agents (GET /v1/agents)";
    /// There is no such token.
    UnknownToken: "not_found", 404, "`abide token list` lists the tokens (GET /v1/tokens)";
    /// There is no such record or file.
    NotFound: "not_found", 404, "";
    /// The body is not JSON.
    NotJson: "not_json", 400, "send a JSON object with Content-Type: application/json";
    /// The child has nothing to report.
    NotLeaving: "not_leaving", 409, "leave it at work";
    /// The work item is completed.
    NotOpen: "not_open", 409, "list the open work items";
    /// The approval is not pending.
    NotPending: "not_pending", 409, "list the approvals; each is decided once";
    /// The other agent could not be reached.
    NotReached: "not_reached", 409, "try again later";
    /// The task is not running.
    NotRunning: "not_running", 409, "list the tasks";
    /// The folder is not searched.
    NotSearched: "not_searched", 409, "ask git about it, through ExecCommand";
    /// The delivery has no valid signature.
    NotSigned: "not_signed", 401, "sign it with the trigger's secret, as Standard Webhooks or as GitHub do, and check the sender's clock";
    /// The command has not started.
    NotStarted: "not_started", 409, "";
    /// The agent is not stopped.
    NotStopped: "not_stopped", 409, "";
    /// The reported status is not the end of a task.
    NotTerminal: "not_terminal", 409, "report how it ended";
    /// The body is not UTF-8.
    BodyNotUtf8: "not_utf8", 400, "";
    /// A name is not UTF-8.
    NameNotUtf8: "not_utf8", 409, "rename the folder, or make one with a plain name";
    /// The daemon cannot write in the folder.
    NotWritable: "not_writable", 409, "give the daemon's user the right to write there, or choose another folder";
    /// The caller may not do this.
    NotYours: "not_yours", 409, "";
    /// Nothing could ever end the wait.
    NothingWouldEndIt: "nothing_would_end_it", 409, "";
    /// Another agent works in the folder.
    Occupied: "occupied", 409, "try again when that turn and its tasks are over (Sleep ends yours until then), or work in a folder of your own: UseWorkspace with mode worktree";
    /// Two todo entries are in progress.
    OneInProgress: "one_in_progress", 422, "mark one at most";
    /// Only operators may interrupt a turn with a message.
    OnlyOperatorsInterject: "only_operators_interject", 422, "use the priority next, normal or background";
    /// The folder lies outside `workspace_roots`.
    OutsideRoots: "outside_roots", 403, "";
    /// The path leads out of the workspace.
    OutsideWorkspace: "outside_workspace", 409, "name a path relative to the workspace; links that lead out of it, and absolute links, are not followed. What lies outside has to be copied in, or UseWorkspace has to make it the workspace";
    /// There are too many requests.
    Overloaded: "overloaded", 429, "try again after the time in Retry-After; nothing was recorded";
    /// The repository lacks objects that it would fetch on demand.
    PartialClone: "partial_clone", 409, "";
    /// The offset lies past the end of the file.
    PastTheEnd: "past_the_end", 409, "give an `offset` within the file, counted from 1";
    /// The saved patch did not restore the worktree's files.
    PatchUnproven: "patch_unproven", 409, "commit the work in the worktree yourself; nothing was removed";
    /// The file may not be opened.
    PermissionDenied: "permission_denied", 409, "its permissions forbid it, or it is hidden from agents: ask the operator";
    /// The agent's records are damaged, and it is not run.
    Quarantined: "quarantined", 409, "`abide ledger verify` names what is damaged; `start` tries it again";
    /// The agent's queue is full.
    QueueFull: "queue_full", 429, "send it again later; nothing was recorded";
    /// The file may not be written.
    ReadOnly: "read_only", 409, "write elsewhere in the workspace, or ask the operator to change the daemon's PATH";
    /// The approval policy refuses the call.
    RefusedByPolicy: "refused_by_policy", 409, "do it another way, or tell the operator what you need (rule in line {line})";
    /// The path is not absolute.
    RelativePath: "relative_path", 409, "";
    /// The same call came to the same result several times.
    RepeatedCall: "repeated_call", 409, "do something else, or wait for what should change: WaitFor";
    /// The name is reserved for children.
    ReservedName: "reserved_name", 409, "choose a name that does not end in a dot and a number";
    /// The root folder cannot be a workspace.
    RootFolder: "root_folder", 409, "give the folder of one project";
    /// No sandbox works on this machine, and the settings require one.
    SandboxRequired: "sandbox_required", 409, "make one of them work, or set the sandbox to `auto` to run commands without one";
    /// The token's scope does not allow the request.
    Scope: "scope", 403, "ask for a token with that scope";
    /// The text to replace is in the file several times.
    SeveralMatches: "several_matches", 409, "give more of the lines around the one you mean, or say `all`: true to replace every one";
    /// The token was created and shown before.
    ShownOnce: "shown_once", 409, "revoke it and make another, under another key";
    /// The ssh agent is shared by bubblewrap only.
    SshAgentNeedsBubblewrap: "ssh_agent_needs_bubblewrap", 409, "install bubblewrap, or use a token: --git-credential";
    /// Another execution than the named one is running.
    StaleExec: "stale_exec", 409, "name the execution that runs, or none";
    /// Files of the worktree changed while it was being saved.
    StillWritten: "still_written", 409, "stop what writes there; nothing was removed";
    /// The agent is stopped.
    Stopped: "stopped", 409, "start it first: abide agent start {agent}";
    /// The ledger could not be read or written.
    Store: "store", 503, "see to the disk of the daemon's home, then send it again";
    /// The agent takes messages from its supervisor only.
    Supervised: "supervised", 409, "send it to {agent}";
    /// The supervisor was stopped or deleted.
    SupervisorEnded: "supervisor_ended", 409, "make no more agents";
    /// A branch of the user's repository is a symbolic reference.
    SymbolicRef: "symbolic_ref", 409, "delete that link, if you did not make it, then fetch again";
    /// The operating system refused to start the command.
    System: "system", 409, "end something, then try again";
    /// The folder belongs to the operating system.
    SystemFolder: "system_folder", 403, "";
    /// The command was started without input.
    TakesNoInput: "takes_no_input", 409, "start it with accepts_input";
    /// Tasks of the agent are open.
    TasksOpen: "tasks_open", 409, "try again soon";
    /// An agent cannot send a message to itself.
    ThatIsYou: "that_is_you", 409, "use CreateTimer";
    /// The server of the URL did not answer in time.
    Timeout: "timeout", 409, "try again later, or fetch less with `max_bytes`";
    /// The todo list is too long.
    TodoTooLong: "todo_too_long", 422, "keep it short; the plan is text";
    /// A repository or a tree is larger than its limit.
    TooBig: "too_big", 409, "use a smaller repository, or a folder without one";
    /// Children are nested too deep.
    TooDeep: "too_deep", 409, "";
    /// The time lies too far ahead.
    TooFarAhead: "too_far_ahead", 422, "choose a nearer time";
    /// The body of the request is too large.
    BodyTooLarge: "too_large", 413, "put the content into a file and send its path";
    /// The file or the patch is larger than its limit.
    FileTooLarge: "too_large", 409, "";
    /// The text is longer than its limit.
    TooLong: "too_long", 422, "put it into a file and name that";
    /// There are too many records of this kind.
    TooMany: "too_many", 409, "remove those that are not needed";
    /// The worktree has more branches than are kept.
    TooManyBranches: "too_many_branches", 409, "";
    /// The agent has too many children.
    TooManyChildren: "too_many_children", 409, "wait for one of them: WaitFor with wake task_result; or stop one: TaskStop";
    /// Too many commands of the agent are running.
    TooManyCommands: "too_many_commands", 409, "wait for some of them, or stop them: TaskList";
    /// Too many wake hints are pending.
    TooManyHints: "too_many_hints", 429, "send it again later";
    /// Symbolic links of the path form a loop.
    TooManyLinks: "too_many_links", 409, "the links lead round in a circle: name the file itself";
    /// Too many patches of the agent are kept.
    TooManyPatches: "too_many_patches", 409, "move some of them elsewhere";
    /// The URL redirects too often.
    TooManyRedirects: "too_many_redirects", 409, "fetch where it leads: {url}";
    /// The folder contains too many git repositories.
    TooManyRepositories: "too_many_repositories", 409, "the operator has to delete those that are not needed, with `rm -rf` in a shell of their own, or give the agent a worktree";
    /// Too many tasks of the agent are open.
    TooManyTasks: "too_many_tasks", 409, "end some of them first";
    /// The worktree has more untracked or ignored files than are saved.
    TooMuchIgnored: "too_much_ignored", 409, "delete those that can be made again, or give them up with all the rest: abide workspace detach --discard; nothing was removed";
    /// The worktree has more uncommitted changes than are saved.
    TooMuchUncommitted: "too_much_uncommitted", 409, "";
    /// The timer would fire too often.
    TooOften: "too_often", 422, "at least {interval}";
    /// Answering the request took too long.
    RequestTooSlow: "too_slow", 503, "try again later; with an Idempotency-Key a repeat is safe";
    /// The body of the request took too long to arrive.
    BodyTooSlow: "too_slow", 408, "";
    /// The tool is not available in this turn.
    ToolNotOffered: "tool_not_offered", 409, "";
    /// The tree of agents has reached its maximum size.
    TreeFull: "tree_full", 409, "wait until some of them have ended, stop some, or do it yourself";
    /// The git tree is larger than its limit.
    TreeTooLarge: "tree_too_large", 409, "";
    /// A trigger with this id exists.
    TriggerExists: "trigger_exists", 409, "list the triggers";
    /// The trigger delivers wake hints, not messages.
    TriggerOnlyWakes: "trigger_only_wakes", 409, "send a wake hint";
    /// The request has no valid token.
    Unauthorized: "unauthorized", 401, "send Authorization: Bearer TOKEN; the home's own token is in its file `token`";
    /// The repository has no commit.
    UnbornHead: "unborn_head", 409, "";
    /// A merge, a rebase or another operation of git is unfinished.
    UnderWay: "under_way", 409, "";
    /// The time zone is unknown.
    UnknownTimeZone: "unknown_time_zone", 422, "give a name from the IANA database, such as {example}";
    /// There is no such tool.
    UnknownTool: "unknown_tool", 409, "";
    /// The repository in the folder cannot be protected from the command.
    Unprotected: "unprotected", 409, "";
    /// The daemon may not read the folder.
    Unreadable: "unreadable", 409, "";
    /// The image does not parse.
    UnreadableImage: "unreadable_image", 409, "look at it with ExecCommand, for example file FILE; make it anew, or smaller, and read that";
    /// The content type is not supported.
    UnsupportedMedia: "unsupported_media", 415, "send JSON, text, a form, or one CloudEvent as JSON or in ce- headers";
    /// The text of the wake hint is too large.
    WakeTooLarge: "wake_too_large", 413, "send a message instead";
    /// The folder is the whole home folder of a person.
    WholeHome: "whole_home", 403, "name the folder of one project in it, or make one: mkdir {home}/work";
    /// The folder contains files that no command may read.
    WorkspaceTooWide: "workspace_too_wide", 409, "use a folder that holds the work and nothing else";
    /// The agent has a worktree.
    WorktreeLeft: "worktree_left", 409, "detach it first: what is not committed in it is saved as a patch";
    /// Fields of the request are missing, unknown or wrong.
    WrongFields: "wrong_fields", 422, "";
    /// The path does not support the method.
    WrongMethod: "wrong_method", 405, "";
    /// The name cannot be used.
    WrongName: "wrong_name", 422, "give it a name such as GIT_TOKEN";
    /// The value cannot be used.
    WrongValue: "wrong_value", 422, "give another value";
}

impl ErrorCode {
    /// The word on the wire, in recorded results and in `--json` output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().status
    }

    /// The exit code of a command that is refused with this code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        exit_code(self.status())
    }
}

/// The exit code of a command that gets this HTTP status. A state or a policy that forbids the request is 6. Wrong fields
/// (400, 422) are errors like any other, because the command line refuses with 2 whatever it can know to be wrong itself. A
/// wrong token, too many requests and a daemon that is not ready are errors of the moment.
#[must_use]
pub const fn exit_code(status: u16) -> u8 {
    match status {
        404 => 8,
        403 | 409 => 6,
        _ => 1,
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a document of the repository is read and written")]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::ErrorCode;

    const HEAD: &str = "\
# Error codes

<!-- generated by the test the_document_of_error_codes_is_up_to_date; do not edit -->

A request that is refused changes nothing. The HTTP API answers with `application/problem+json` (RFC 9457): `code` is a word of
this table, `detail` says what happened, `hint` what to do next, and `pointer` names the field of the body that is wrong. A
command prints both sentences on stderr, with `--json` as `{\"error\", \"code\", \"hint\"}`, and ends with the exit code. The result of
a model's tool call has the same words in `error`; such codes never reach the HTTP API if only tools produce them, and their
status is that of a conflict with the state.

A hint in the table is the usual one; words in braces are filled in. Where the cell is empty, the next step depends on the
request, and the refusal contains it. A field whose value is refused with one of the codes of 409 (a folder to attach, for example)
is answered with 422 and the `pointer` of the field.

The outcome of a message that `abide send --wait` shows has words of its own ([daemon.md](daemon.md#outcome-of-a-message)). Errors of model
providers have classes ([models.md](models.md)).

| code | HTTP status | exit code | meaning | usual hint |
|---|---|---|---|---|
";

    #[test]
    fn the_document_of_error_codes_is_up_to_date() {
        let mut rows: Vec<String> = ErrorCode::ALL.iter().map(|code| document_row(*code)).collect();
        rows.sort();
        let text = rows.iter().fold(HEAD.to_owned(), |mut text, row| {
            writeln!(text, "{row}").unwrap();
            text
        });
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        if std::env::var_os("ABIDE_WRITE_DOCUMENTS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "docs/errors.md is out of date: write it with \
             `ABIDE_WRITE_DOCUMENTS=1 cargo nextest run -p abide-views the_document_of_error_codes`"
        );
    }

    fn document_row(code: ErrorCode) -> String {
        let row = code.row();
        // A bar ends a cell, even within a code span.
        let cells = [row.meaning.trim(), row.hint].map(|cell| cell.replace('|', "\\|"));
        format!("| `{}` | {} | {} | {} | {} |", row.word, row.status, code.exit_code(), cells[0], cells[1])
    }

    #[test]
    fn codes_of_one_word_differ_in_status_or_hint() {
        for (nth, code) in ErrorCode::ALL.iter().enumerate() {
            let row = code.row();
            for other in &ErrorCode::ALL[..nth] {
                let other = other.row();
                assert!(row.word != other.word || (row.status, row.hint) != (other.status, other.hint), "{}", row.word);
            }
        }
    }

    #[test]
    fn words_statuses_and_meanings_have_their_form() {
        for code in ErrorCode::ALL {
            let row = code.row();
            assert!(row.word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'));
            assert!((400..600).contains(&row.status), "{}", row.word);
            assert!(row.meaning.trim().ends_with('.'), "{}", row.word);
            assert_eq!(row.hint.matches('{').count(), row.hint.matches('}').count(), "{}", row.word);
        }
    }
}
