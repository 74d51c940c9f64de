//! The words of packed bytes, version 1: names of members and spellings that facts, rows and states have in common.
//!
//! The place of a word is what is stored for it. Nothing here may change or move, also not what no program writes any
//! more; a test holds a digest of it against that.

/// The beginnings of ids.
pub(super) const PREFIXES: &[&str] =
    &["msg", "task", "work", "wait", "timer", "trig", "appr", "brief", "turn", "exec", "call"];

/// The first 224 cost one byte, the others two.
#[rustfmt::skip]
pub(super) const WORDS: &[&str] = &[
    "kind", "text", "message_id", "exec_id", "turn_id", "brief_id", "status", "seq", "at", "reason", "boundary",
    "evidence", "ignored", "model_reentry", "liveness_only", "turn_index", "round", "rounds", "usage", "input_tokens",
    "output_tokens", "cached_tokens", "cost_micro_usd", "terminal_kind", "last_assistant_message", "continuation",
    "trigger_kind", "class", "matched_waiting_reason", "answers", "origin", "trust", "priority", "previous_status",
    "next_status", "action", "agent_id", "approval_id", "at_seq", "behind", "blocked_by", "body", "budget",
    "budget_tokens", "call_id", "calls", "carry", "catch_up", "causation_id", "checkpoint", "child_agent_id",
    "command", "compacted_messages", "config", "correlation", "correlation_id", "count", "deadline", "decided_by",
    "decision", "default", "delivery_mode", "due", "elapsed_ms", "ends_turn", "epoch", "error", "every", "every_ms",
    "exit_code", "fire_count", "first", "force", "from", "generation", "given_up", "id", "idempotency_key",
    "identity", "input", "instructions", "joined", "json", "last", "main", "max_micro_usd", "max_tokens", "max_turns",
    "message", "missed_count", "model", "name", "needed_tokens", "network", "next_fire_at", "not_before", "objective",
    "output_bytes", "output_tail", "ownership", "parent", "plan", "plan_status", "presents", "previous", "recap",
    "recheck_at", "recovery", "replays", "report", "reported", "resource", "result", "retry_after_ms", "returned",
    "revision", "role", "run", "safe_point", "schedule", "signal", "source", "start", "state", "summary", "task_id",
    "task_ids", "task_kind", "task_status", "tick", "timer_id", "todo", "tool", "tree", "trigger_count", "trigger_id",
    "truncated", "visibility", "wait_policy", "waiting_intent_id", "work_item_id", "workspace", "approvals",
    "archived", "blocking", "briefs", "compaction", "control", "current", "decision_seq", "entries", "hints", "items",
    "last_continuation", "last_terminal", "last_trigger", "next_place", "open", "outside_epoch", "owed", "pending",
    "queue", "recent", "resting", "runtime_error", "shutdown", "superseded", "tasks", "timers", "tool_executions",
    "triggers", "turn", "undelivered", "unsent", "waits", "work", "work_tick", "bytes", "created_at", "decided_at",
    "ended_at", "last_fired_at", "output", "scope", "operator", "normal", "completed", "processed", "queued",
    "dequeued", "operator_prompt", "operator_input", "trusted_operator", "StartModelTurn", "Sleep",
    "model_reentry_message", "no_pending_scheduler_facts", "nothing_pending", "idle", "local_continuation",
    "no_wait_open", "asleep", "awake_idle", "awake_running", "lifecycle_sleep", "message_admission", "agent",
    "system", "runtime", "task", "timer", "webhook", "running", "runnable", "failed", "cancelled", "turn_running",
    "messages_queued", "trusted_system", "system_tick", "task_result", "timer_fire", "runtime_idle", "public",

    "EmitSystemTick", "ExecCommand", "Noop", "ReduceMessageOnly", "StayIdle", "Stop", "WaitForExternalChange",
    "WaitForOperator", "WaitForTask", "WaitForTimer", "abort", "aborted", "aborted_by_operator", "ack", "active",
    "active_agent_waiting_intents", "active_operator_wait", "active_task_wait", "active_timers", "active_turn",
    "after_model_round", "after_tool_results", "all", "already_asleep", "approval_pending", "attempts", "auth",
    "awaiting_external_change", "awaiting_operator_input", "awaiting_task_result", "awaiting_timer", "awake",
    "background", "baseline_over_budget", "before_next_round", "before_tools", "blank", "blocked",
    "blocked_until_recheck", "blocked_work_items", "bodies", "booting", "bootstrap", "brief_ack", "brief_result",
    "budget_spent", "busy", "callback", "callback_event", "cancelling", "channel", "channel_event", "child",
    "child_agent_task", "coalesced", "command_task", "context_length", "continuable", "continue_active",
    "control_plane_update", "control_stopped", "crash", "crashes", "crashes_since_round",
    "current_work_item_runnable", "cut", "deferred_to_fallback", "delegated", "delivery_count", "denied", "deny",
    "disconnect", "draft", "dropped", "duplicate_tick", "duplicate_wake_hint", "end", "ended_waits", "ends",
    "enqueue_message", "execution", "expired", "external", "external_event", "external_waits", "failure", "grant",
    "granted", "has_queued_input", "has_runnable_work", "held", "in_progress", "interject", "interjected",
    "interjection_returned", "internal_followup", "interrupted", "invalid", "last_at", "last_delivered_at",
    "last_text", "latest", "liveness_only_message", "message_parked", "mismatched_timer", "missed", "named",
    "needs_input", "next", "no_duplicate_tick_for_generation", "no_progress_budget_spent", "no_waiting_condition",
    "non_terminal_task_status", "none", "operator_waits", "orchestrator", "order", "overloaded", "parent_supervised",
    "parked", "phase", "place", "private", "problem", "process_ended", "progress_spent", "progressed",
    "provider_backoff", "provider_failed_needs_recovery", "provider_failures", "quarantined", "queued_available",
    "queued_work_item_runnable", "rate_limited", "ready", "recheck", "recheck_pending", "refusal", "restart",
    "result_message", "result_read", "results_owed", "resume_expected_wait", "resume_override", "rounds_recorded",
    "self_owned", "self_turns", "shutdown_at_once", "shutdown_requested", "skipped", "sleep", "sleeping",
    "stale_exec", "started_at", "stop", "stopped", "suppressed_after_reentry", "taken", "task_waits", "tasks_open",
    "tasks_running", "tick_backoff", "tick_under_way", "ticks", "timeout", "timer_cancelled", "timer_completed",
    "timer_tick", "trigger_only_wakes", "triggered", "trusted_integration", "turn_in_progress", "turn_started",
    "unknown", "unparked", "untrusted_external", "wait_ended", "wait_for_found_it_owed", "waiting",
    "waiting_for_external", "waiting_for_operator", "waiting_for_task", "waiting_for_timer", "wake_hint",
    "wake_tick_under_way", "webhook_event", "work_item", "work_item_blocked", "work_item_completed",
    "work_item_external_wait", "work_item_needs_input", "work_item_not_runnable", "work_item_task_wait",
    "work_item_timer_wait", "work_items", "work_ready",
];
