//! The words that are written down: every closed set of names that facts, records and surfaces share.
//!
//! A word is declared once, with its spelling; parsing an unknown spelling is an error that lists the known ones.

mod meaning;
pub mod shown;
mod words;

pub use shown::{ReadStatus, TranscriptRole, TriggerStatus, WorkspaceStatus};
use words::words;

words! {
    /// The activity of an agent, as a surface shows it. Computed, never stored: see `agent::lifecycle`.
    Status {
        Booting = "booting",
        AwakeIdle = "awake_idle" | "awaiting_task",
        AwakeRunning = "awake_running",
        Asleep = "asleep",
        Stopped = "stopped" | "paused",
    }

    MessageKind {
        OperatorPrompt = "operator_prompt",
        ChannelEvent = "channel_event",
        WebhookEvent = "webhook_event",
        CallbackEvent = "callback_event",
        TimerTick = "timer_tick",
        SystemTick = "system_tick",
        TaskResult = "task_result",
        TaskStatus = "task_status",
        Control = "control",
        InternalFollowup = "internal_followup",
        /// Only ever read, in old records.
        BriefAck = "brief_ack",
        /// Only ever read, in old records.
        BriefResult = "brief_result",
    }

    OriginKind {
        Operator = "operator",
        Channel = "channel",
        Webhook = "webhook",
        Callback = "callback",
        Timer = "timer",
        System = "system",
        Task = "task",
        Agent = "agent",
    }

    Trust {
        TrustedOperator = "trusted_operator",
        TrustedSystem = "trusted_system",
        TrustedIntegration = "trusted_integration",
        UntrustedExternal = "untrusted_external",
    }

    /// Four queues, each first in first out, taken in this order.
    Priority {
        Interject = "interject",
        Next = "next",
        Normal = "normal",
        Background = "background",
    }

    QueueStatus {
        Queued = "queued",
        Dequeued = "dequeued",
        Processed = "processed",
        Interjected = "interjected",
        Aborted = "aborted",
        Dropped = "dropped",
        Parked = "parked",
    }

    /// Why the runtime made a system tick.
    TickKind {
        WakeHint = "wake_hint",
        ContinueActive = "continue_active",
        QueuedAvailable = "queued_available",
        Recheck = "recheck",
    }

    TaskKind {
        Command = "command_task",
        ChildAgent = "child_agent_task",
    }

    TaskStatus {
        Queued = "queued",
        Running = "running",
        Cancelling = "cancelling",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Interrupted = "interrupted",
    }

    /// Old records could say that a task blocks; live tasks never do: a wait says what is awaited.
    WaitPolicy {
        Blocking = "blocking",
        Background = "background",
    }

    WorkItemState {
        Open = "open",
        Completed = "completed",
    }

    PlanStatus {
        Draft = "draft",
        Ready = "ready",
        NeedsInput = "needs_input",
    }

    TodoState {
        Pending = "pending",
        InProgress = "in_progress",
        Completed = "completed",
    }

    /// Where a work item stands, derived from its own record and its open waits. Order is the order of the decision table.
    Standing {
        Runnable = "runnable",
        NeedsInput = "needs_input",
        WaitingForOperator = "waiting_for_operator",
        ProgressSpent = "progress_spent",
        /// Its own budget is spent: a person has to raise it.
        BudgetSpent = "budget_spent",
        WaitingForTask = "waiting_for_task",
        WaitingForExternal = "waiting_for_external",
        WaitingForTimer = "waiting_for_timer",
        /// Blocked, and a recheck will remind.
        BlockedUntilRecheck = "blocked_until_recheck",
        /// Blocked, and nothing will wake it.
        Stuck = "blocked",
        Completed = "completed",
    }

    /// Which work items a reader asks for. Every open one is current, queued, blocked or waiting, and may be several.
    WorkItemFilter {
        All = "all",
        Open = "open",
        Completed = "completed",
        Current = "current",
        /// Runnable, and not in focus.
        Queued = "queued",
        /// It says what blocks it.
        Blocked = "blocked",
        /// Held until something happens or somebody says something.
        Waiting = "waiting",
    }

    WaitKind {
        Operator = "operator_input",
        Task = "task_result",
        External = "external",
        Timer = "timer",
        /// A `Sleep` with a duration: holds ticks, never input.
        Sleep = "sleep",
    }

    Scope {
        Agent = "agent",
        WorkItem = "work_item",
    }

    /// Who made a record: what a model makes may wake it only so often.
    Maker {
        Model = "model",
        Person = "person",
    }

    /// Who registered a wait.
    WaitSource {
        Model = "model",
        Operator = "operator",
        /// The runtime asks the operator about something it will not decide; such a wait holds back no input.
        Runtime = "runtime",
    }

    WaitStatus {
        Active = "active",
        Triggered = "triggered",
        Cancelled = "cancelled",
    }

    DeliveryMode {
        EnqueueMessage = "enqueue_message",
        WakeHint = "wake_hint",
    }

    TimerStatus {
        Active = "active",
        Completed = "completed",
        Cancelled = "cancelled",
    }

    CatchUp {
        Latest = "latest",
        None = "none",
        All = "all",
    }

    MissedReason {
        /// Later occurrences came due before the earlier could be told.
        Coalesced = "coalesced",
        /// The timer does not catch up, and the occurrence was late.
        Skipped = "skipped",
        /// Its check command ended with another code than 0.
        CheckSaidNo = "check_said_no",
        /// The agent was stopped while the check ran.
        Stopped = "stopped",
        /// The timer was cancelled while the check ran.
        Cancelled = "cancelled",
        /// It fired before its time came, because the clock was ahead.
        FiredBefore = "fired_before",
    }

    /// Why something is due at another time than it was to be.
    MovedReason {
        ClockSetBack = "clock_set_back",
    }

    ApprovalStatus {
        Pending = "pending",
        Granted = "granted",
        Denied = "denied",
        Expired = "expired",
    }

    ApprovalDefault {
        Deny = "deny",
        Grant = "grant",
    }

    BriefKind {
        Ack = "ack",
        Result = "result",
        Failure = "failure",
    }

    /// The measure of a budget.
    Measure {
        Turns = "turns",
        Tokens = "tokens",
        Money = "micro_usd",
        /// Time spent in turns.
        Wall = "wall_ms",
    }

    TerminalKind {
        Completed = "completed",
        Aborted = "aborted",
        BaselineOverBudget = "baseline_over_budget",
        DeferredToFallback = "deferred_to_fallback",
        ProviderFailed = "provider_failed_needs_recovery",
    }

    /// Why an execution ended before its turn was done.
    AbortReason {
        /// An operator aborted this one execution.
        Abort = "abort",
        Stop = "stop",
        Shutdown = "shutdown",
        /// A hard limit was reached between two rounds.
        Budget = "budget",
        /// The process died under it.
        Cut = "cut",
    }

    ProviderError {
        RateLimited = "rate_limited",
        Overloaded = "overloaded",
        Timeout = "timeout",
        Disconnect = "disconnect",
        ContextLength = "context_length",
        Refusal = "refusal",
        Auth = "auth",
        Invalid = "invalid",
        /// Not called, or cut off: this machine is short of something for a moment, file descriptors for example.
        System = "system",
        /// Not called: money is limited, and nobody knows what it costs.
        Unpriced = "unpriced",
        /// Not called: the home has spent what it may spend on one day.
        HomeBudgetSpent = "home_budget_spent",
    }

    /// Why no turn of an agent starts, where that is not for the agent itself to mend.
    HoldCause {
        /// The home has spent what it may spend on one day.
        HomeBudget = "home_budget",
        /// The key of every model of the agent is missing, wrong or expired.
        ModelKey = "model_key",
    }

    /// How an agent works in a folder: in it, or in a git worktree of it.
    WorkspaceMode {
        Direct = "direct",
        Worktree = "worktree",
    }

    /// Where a child works: where its supervisor does, or in a git worktree of that.
    ChildWorkspace {
        Inherit = "inherit",
        Worktree = "worktree",
    }

    /// The effect of a tool call on the world: told to people and models. Recovery never asks.
    SideEffect {
        ReadOnly = "read_only",
        WorkspaceMutation = "workspace_mutation",
        ExternalMutation = "external_mutation",
        Unknown = "unknown",
    }

    ToolStatus {
        Running = "running",
        Completed = "completed" | "success",
        Failed = "failed" | "error",
        /// Cut off before its outcome was recorded; never run again by us.
        Unknown = "unknown",
    }

    /// Where interjections join. A round's end and the start of its tools are one instant here, and so are the last
    /// tool's end and the start of the next round: the earlier name of each pair is the one that is recorded.
    SafePoint {
        AfterModelRound = "after_model_round",
        BeforeTools = "before_tools",
        AfterToolResults = "after_tool_results",
        BeforeNextRound = "before_next_round",
    }

    ControlAction {
        Start = "start",
        Stop = "stop",
        Shutdown = "shutdown",
        Restart = "restart",
    }

    Boundary {
        Control = "control",
        Bootstrap = "bootstrap",
        Shutdown = "shutdown",
        LifecycleSleep = "lifecycle_sleep",
        MessageAdmission = "message_admission",
        Message = "message",
        Idle = "idle",
        Turn = "turn",
    }

    RequeueReason {
        Stop = "stop",
        Shutdown = "shutdown",
        Crash = "crash",
        Budget = "budget",
        ProviderBackoff = "provider_backoff",
        /// No turn of the agent starts for now: see `HoldCause`.
        TurnsHeld = "turns_held",
        /// Its model failed; another is tried at once.
        Fallback = "fallback",
        /// It waited for a model, and the agent has others now.
        ModelChanged = "model_changed",
        /// It waited for a model that has answered since.
        ModelBack = "model_back",
        /// It waits for the time that was left: see `ClockSetBack`.
        ClockSetBack = "clock_set_back",
        Unparked = "unparked",
        InterjectionReturned = "interjection_returned",
    }

    AgentKind {
        Default = "default",
        Named = "named",
        Child = "child",
    }

    Role {
        Orchestrator = "orchestrator",
        Execution = "execution",
    }

    Visibility {
        Public = "public",
        Private = "private",
    }

    Ownership {
        SelfOwned = "self_owned",
        ParentSupervised = "parent_supervised",
    }

    DecisionKind {
        StartModelTurn = "StartModelTurn",
        ReduceMessageOnly = "ReduceMessageOnly",
        EmitSystemTick = "EmitSystemTick",
        WaitForTask = "WaitForTask",
        WaitForExternalChange = "WaitForExternalChange",
        WaitForTimer = "WaitForTimer",
        WaitForOperator = "WaitForOperator",
        Sleep = "Sleep",
        StayIdle = "StayIdle",
        Stop = "Stop",
        Noop = "Noop",
    }

    Reason {
        Stopped = "stopped",
        ShutdownRequested = "shutdown_requested",
        Quarantined = "quarantined",
        TurnInProgress = "turn_in_progress",
        BudgetSpent = "budget_spent",
        HomeBudgetSpent = "home_budget_spent",
        ModelKey = "model_key",
        ModelReentryMessage = "model_reentry_message",
        LivenessOnlyMessage = "liveness_only_message",
        MessageParked = "message_parked",
        WakeHint = "wake_hint",
        DuplicateWakeHint = "duplicate_wake_hint",
        ContinueActive = "continue_active",
        QueuedAvailable = "queued_available",
        DuplicateTick = "duplicate_tick",
        SuppressedAfterReentry = "suppressed_after_reentry",
        WorkItemNeedsInput = "work_item_needs_input",
        ActiveOperatorWait = "active_operator_wait",
        ApprovalPending = "approval_pending",
        NoProgressBudgetSpent = "no_progress_budget_spent",
        WorkTicksSpent = "work_ticks_spent",
        SelfTurnsPaced = "self_turns_paced",
        DiskReserve = "disk_reserve",
        WorkItemTaskWait = "work_item_task_wait",
        ActiveTaskWait = "active_task_wait",
        WorkItemExternalWait = "work_item_external_wait",
        ActiveAgentWaitingIntents = "active_agent_waiting_intents",
        WorkItemTimerWait = "work_item_timer_wait",
        ActiveTimers = "active_timers",
        RecheckPending = "recheck_pending",
        TickBackoff = "tick_backoff",
        ProviderBackoff = "provider_backoff",
        WorkItemBlocked = "work_item_blocked",
        NoPendingSchedulerFacts = "no_pending_scheduler_facts",
        AlreadyAsleep = "already_asleep",
    }

    TriggerKind {
        OperatorInput = "operator_input",
        TaskResult = "task_result",
        ExternalEvent = "external_event",
        TimerFire = "timer_fire",
        InternalFollowup = "internal_followup",
        SystemTick = "system_tick",
    }

    ContinuationClass {
        ResumeExpectedWait = "resume_expected_wait",
        ResumeOverride = "resume_override",
        LocalContinuation = "local_continuation",
        LivenessOnly = "liveness_only",
    }

    ClosureOutcome {
        Completed = "completed",
        Continuable = "continuable",
        Failed = "failed",
        Waiting = "waiting",
    }

    WaitingReason {
        Operator = "awaiting_operator_input",
        Task = "awaiting_task_result",
        External = "awaiting_external_change",
        Timer = "awaiting_timer",
    }

    RuntimePosture {
        Awake = "awake",
        Sleeping = "sleeping",
    }

    Posture {
        Archived = "archived",
        ActiveTurn = "active_turn",
        HasQueuedInput = "has_queued_input",
        HasRunnableWork = "has_runnable_work",
        WaitingForTask = "waiting_for_task",
        WaitingForExternal = "waiting_for_external",
        WaitingForOperator = "waiting_for_operator",
        Blocked = "blocked",
        Idle = "idle",
        Unknown = "unknown",
    }

    /// The outcome of a submitted wake hint.
    Disposition {
        Triggered = "triggered",
        Coalesced = "coalesced",
        Parked = "parked",
        Ignored = "ignored",
    }

    /// The outcome of a delivery: a message, or a wake hint with its disposition.
    Delivered {
        Queued = "queued",
        Triggered = "triggered",
        Coalesced = "coalesced",
        Ignored = "ignored",
    }
}
