//! The table of operations: every route there is, who may call it, what it takes and what it answers. The server routes
//! by this table and the OpenAPI document is made from it, so neither knows one that the other does not.

use crate::types::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub id: &'static str,
    pub method: Method,
    pub path: &'static str,
    pub summary: &'static str,
    /// The least scope that may call it; none is open to everybody.
    pub scope: Option<Scope>,
    pub query: &'static [Param],
    pub body: Body,
    pub answer: Answer,
    /// Statuses of refusals besides those that every operation shares.
    pub problems: &'static [u16],
}

#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub about: &'static str,
    pub number: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Body {
    None,
    /// Nothing, or `{}`.
    Empty,
    Required(&'static str),
    Optional(&'static str),
    /// Data of the sender's own shape, in one of these types.
    Data(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
pub enum Answer {
    One(u16, &'static str),
    Page(&'static str),
    /// A JSON object whose keys are not fixed here.
    Object(u16),
    Text(&'static str),
    Events,
}

const LIMIT: Param = Param { name: "limit", about: "how many at most, 1 to 1000", number: true };
const AFTER: Param = Param { name: "after", about: "where the page before ended", number: false };
const AFTER_SEQ: Param = Param { name: "after", about: "facts after this seq", number: true };
const AFTER_ENTRY: Param = Param {
    name: "after",
    about: "where the page before ended: a seq, or SEQ.N within the fact after it",
    number: false,
};
const LAST: Param = Param { name: "last", about: "instead: the newest so many, oldest first", number: true };
const AT: Param = Param { name: "at", about: "as it was right after this fact", number: true };
const OFFSET: Param = Param { name: "offset", about: "from this byte on; left out: the newest", number: true };
const WAIT_MS: Param = Param { name: "wait_ms", about: "wait so long for its end, at most 25000", number: true };
const WAIT: Param = Param {
    name: "wait",
    about: "wait so long, at most 60s, until the agent no longer works on it: a number and a unit, 500ms or 30s",
    number: false,
};
const KNOWN_DELAY: Param = Param {
    name: "known_delay",
    about: "with wait: a delay with another delay_id than this ends the wait, too; empty for any delay",
    number: false,
};
const DISCARD: Param =
    Param { name: "discard", about: "true: give up what is in the worktree, instead of saving it", number: false };
const FILTER: Param = Param {
    name: "filter",
    about: "all, open, completed, current, queued (runnable, not current), blocked or waiting",
    number: false,
};
const WORK_ITEM: Param =
    Param { name: "work_item_id", about: "only those that belong to this work item", number: false };
const PAGE: &[Param] = &[LIMIT, AFTER];
const SEQ_PAGE: &[Param] = &[LIMIT, AFTER_SEQ, LAST];
const ENTRY_PAGE: &[Param] = &[LIMIT, AFTER_ENTRY, LAST];

const fn get(id: &'static str, path: &'static str, summary: &'static str, answer: Answer) -> Operation {
    Operation {
        id,
        method: Method::Get,
        path,
        summary,
        scope: Some(Scope::Observer),
        query: &[],
        body: Body::None,
        answer,
        problems: &[],
    }
}

const fn post(id: &'static str, path: &'static str, summary: &'static str, body: Body, answer: Answer) -> Operation {
    let get = get(id, path, summary, answer);
    Operation { method: Method::Post, scope: Some(Scope::Operator), body, problems: &[404, 409], ..get }
}

const fn page(id: &'static str, path: &'static str, summary: &'static str, of: &'static str) -> Operation {
    Operation { query: PAGE, problems: &[404], ..get(id, path, summary, Answer::Page(of)) }
}

const fn open(operation: Operation) -> Operation {
    Operation { scope: None, ..operation }
}

const fn admin(operation: Operation) -> Operation {
    Operation { scope: Some(Scope::Admin), ..operation }
}

const fn delete(id: &'static str, path: &'static str, summary: &'static str, answer: Answer) -> Operation {
    Operation {
        method: Method::Delete,
        scope: Some(Scope::Operator),
        problems: &[404, 409],
        ..get(id, path, summary, answer)
    }
}

const fn seq_page(id: &'static str, path: &'static str, summary: &'static str, of: &'static str) -> Operation {
    Operation { query: SEQ_PAGE, ..page(id, path, summary, of) }
}

const fn of_agent(operation: Operation) -> Operation {
    Operation { problems: &[404], ..operation }
}

use Answer::{Object, One, Page, Text};

const DELIVERIES: &[&str] =
    &["application/json", "application/cloudevents+json", "application/x-www-form-urlencoded", "text/plain"];

pub const OPERATIONS: &[Operation] = &[
    Operation { problems: &[], ..open(get("healthz", "/healthz", "The process lives", One(200, "Health"))) },
    Operation {
        problems: &[503],
        ..open(get("readyz", "/readyz", "The ledger can be read and written", One(200, "Health")))
    },
    get("metrics", "/metrics", "Counters for Prometheus", Text("text/plain; version=0.0.4")),
    open(get("openapi", "/openapi.json", "This document", Object(200))),
    Operation {
        problems: &[409],
        ..post("agent_create", "/v1/agents", "Create an agent", Body::Required("AgentCreate"), One(201, "AgentSummary"))
    },
    Operation { query: PAGE, ..get("agent_list", "/v1/agents", "Agents by id", Page("AgentItem")) },
    of_agent(get("agent_show", "/v1/agents/{id}", "The whole picture of one agent", One(200, "AgentSummary"))),
    Operation {
        method: Method::Patch,
        ..post(
            "agent_change",
            "/v1/agents/{id}",
            "Change its settings",
            Body::Required("AgentChange"),
            One(200, "AgentSummary"),
        )
    },
    delete("agent_delete", "/v1/agents/{id}", "Archive a stopped agent; its id is not used again", One(200, "Deleted")),
    post("agent_start", "/v1/agents/{id}/start", "Hand it to the scheduler", Body::Empty, One(200, "AgentSummary")),
    post("agent_stop", "/v1/agents/{id}/stop", "Stop it; messages are kept", Body::Empty, One(200, "AgentSummary")),
    post("agent_resume", "/v1/agents/{id}/resume", "Deprecated: start", Body::Empty, One(200, "AgentSummary")),
    post("agent_pause", "/v1/agents/{id}/pause", "Deprecated: stop", Body::Empty, One(200, "AgentSummary")),
    post(
        "agent_abort",
        "/v1/agents/{id}/abort",
        "End the running execution",
        Body::Optional("Abort"),
        One(200, "AgentSummary"),
    ),
    post("agent_wake", "/v1/agents/{id}/wake", "Have it look", Body::Required("Wake"), One(200, "Woken")),
    post(
        "message_create",
        "/v1/agents/{id}/messages",
        "Queue a message; answered once it is durable",
        Body::Required("MessageCreate"),
        One(202, "Accepted"),
    ),
    page("message_list", "/v1/agents/{id}/messages", "Messages and what became of them", "Message"),
    Operation {
        query: &[WAIT, KNOWN_DELAY],
        ..of_agent(get("message_show", "/v1/agents/{id}/messages/{item}", "One message, whole", One(200, "Message")))
    },
    Operation {
        query: ENTRY_PAGE,
        ..page("transcript", "/v1/agents/{id}/transcript", "What was said and done", "TranscriptEntry")
    },
    page("brief_list", "/v1/agents/{id}/briefs", "What was told to the operator", "Brief"),
    Operation { query: &[LIMIT, AFTER, WORK_ITEM], ..page("task_list", "/v1/agents/{id}/tasks", "Tasks", "Task") },
    post("task_run", "/v1/agents/{id}/tasks", "Run a command as a task", Body::Required("TaskRun"), One(201, "Task")),
    of_agent(get("task_show", "/v1/agents/{id}/tasks/{item}", "One task", One(200, "Task"))),
    Operation {
        problems: &[404, 422],
        query: &[OFFSET, WAIT_MS],
        ..of_agent(get(
            "task_output",
            "/v1/agents/{id}/tasks/{item}/output",
            "What a task wrote, perhaps once it has ended",
            One(200, "TaskRead"),
        ))
    },
    post(
        "task_input",
        "/v1/agents/{id}/tasks/{item}/input",
        "Write to a task that accepts input",
        Body::Required("TaskInput"),
        One(200, "TaskTaken"),
    ),
    post(
        "task_stop",
        "/v1/agents/{id}/tasks/{item}/stop",
        "Ask a task to end; the second time it is made to",
        Body::Empty,
        One(200, "TaskStopped"),
    ),
    page("workspace_list", "/v1/agents/{id}/workspaces", "Folders bound to it", "Workspace"),
    post(
        "workspace_attach",
        "/v1/agents/{id}/workspaces",
        "Bind a folder to it, and have it work there",
        Body::Required("WorkspaceAttach"),
        One(201, "Workspace"),
    ),
    Operation {
        query: &[DISCARD],
        ..delete(
            "workspace_detach",
            "/v1/agents/{id}/workspaces/{item}",
            "End a binding; a worktree goes once what is in it is saved",
            One(200, "Detached"),
        )
    },
    post(
        "workspace_fetch",
        "/v1/agents/{id}/workspaces/{item}/fetch",
        "Bring a branch of a worktree into the repository that it was made of",
        Body::Optional("WorkspaceFetch"),
        One(200, "Fetched"),
    ),
    page("patch_list", "/v1/agents/{id}/patches", "What was saved of removed worktrees", "Patch"),
    Operation {
        query: &[LIMIT, AFTER, FILTER],
        ..page("work_item_list", "/v1/agents/{id}/work-items", "Work items", "WorkItem")
    },
    post(
        "work_item_create",
        "/v1/agents/{id}/work-items",
        "Give it something to work on",
        Body::Required("WorkItemCreate"),
        One(201, "WorkItem"),
    ),
    of_agent(get("work_item_show", "/v1/agents/{id}/work-items/{item}", "One work item", One(200, "WorkItem"))),
    post(
        "work_item_pick",
        "/v1/agents/{id}/work-items/{item}/pick",
        "Give it the focus",
        Body::Empty,
        One(200, "WorkItem"),
    ),
    post(
        "work_item_update",
        "/v1/agents/{id}/work-items/{item}/update",
        "Change what is said of it; what is left out stays",
        Body::Required("WorkItemUpdate"),
        One(200, "WorkItem"),
    ),
    post(
        "work_item_block",
        "/v1/agents/{id}/work-items/{item}/block",
        "Say what keeps it from going on",
        Body::Required("WorkItemBlock"),
        One(200, "WorkItem"),
    ),
    post(
        "work_item_complete",
        "/v1/agents/{id}/work-items/{item}/complete",
        "Say that its objective is reached; it ends, with its waits",
        Body::Required("WorkItemComplete"),
        One(200, "WorkItem"),
    ),
    page("timer_list", "/v1/agents/{id}/timers", "Timers", "Timer"),
    post(
        "timer_create",
        "/v1/agents/{id}/timers",
        "Create a timer",
        Body::Required("TimerCreate"),
        One(201, "TimerCreated"),
    ),
    get("timer_show", "/v1/agents/{id}/timers/{item}", "A timer, and its next five occurrences", One(200, "Timer")),
    delete("timer_cancel", "/v1/agents/{id}/timers/{item}", "Cancel a timer", One(200, "Ended")),
    page("wait_list", "/v1/agents/{id}/waits", "What it waits and waited for", "Wait"),
    delete("wait_cancel", "/v1/agents/{id}/waits/{item}", "End a wait", One(200, "Ended")),
    page("trigger_list", "/v1/agents/{id}/triggers", "External triggers", "Trigger"),
    post(
        "trigger_create",
        "/v1/agents/{id}/triggers",
        "Make a trigger; its URL is shown once",
        Body::Required("TriggerCreate"),
        One(201, "Trigger"),
    ),
    post(
        "trigger_rotate",
        "/v1/agents/{id}/triggers/{item}/rotate",
        "Give it another URL; the one before opens nothing any more",
        Body::Empty,
        One(200, "Trigger"),
    ),
    delete("trigger_revoke", "/v1/agents/{id}/triggers/{item}", "Revoke a trigger", One(200, "Ended")),
    Operation {
        problems: &[401, 404, 409, 415],
        ..open(post(
            "hook_deliver",
            "/hooks/{token}",
            "Deliver by a trigger's URL; answered once it is durable",
            Body::Data(DELIVERIES),
            One(202, "Received"),
        ))
    },
    page("approval_list", "/v1/agents/{id}/approvals", "Approvals", "Approval"),
    post(
        "approval_grant",
        "/v1/agents/{id}/approvals/{item}/grant",
        "Say yes; each is decided once",
        Body::Empty,
        One(200, "Approval"),
    ),
    post(
        "approval_deny",
        "/v1/agents/{id}/approvals/{item}/deny",
        "Say no; each is decided once",
        Body::Empty,
        One(200, "Approval"),
    ),
    page("child_list", "/v1/agents/{id}/children", "Supervised children", "Task"),
    seq_page("decision_list", "/v1/agents/{id}/decisions", "What the scheduler decided", "DecisionEntry"),
    Operation {
        query: &[AT],
        ..of_agent(get(
            "why",
            "/v1/agents/{id}/why",
            "What it does or waits for, and which facts say so",
            One(200, "Why"),
        ))
    },
    seq_page("event_list", "/v1/agents/{id}/events", "Facts", "Event"),
    Operation {
        query: &[AFTER_SEQ],
        ..of_agent(get(
            "event_stream",
            "/v1/agents/{id}/events/stream",
            "Facts as they become durable, and text as it is spoken (text.delta)",
            Answer::Events,
        ))
    },
    Operation {
        query: &[AFTER],
        ..get(
            "event_stream_all",
            "/v1/events/stream",
            "Facts of all agents as they become durable, and text as it is spoken (text.delta)",
            Answer::Events,
        )
    },
    Operation {
        problems: &[404, 409],
        ..get("agent_export", "/v1/agents/{id}/export", "Its records, as files of a fixture", Object(200))
    },
    of_agent(get(
        "surroundings",
        "/v1/agents/{id}/surroundings",
        "Guides and skills of where it works, as its model is told of them now",
        One(200, "Surroundings"),
    )),
    get("sandbox", "/v1/sandbox", "What keeps commands where they belong on this machine", One(200, "SandboxPart")),
    Operation {
        query: PAGE,
        ..get(
            "transfer_list",
            "/v1/transfers",
            "Repositories whose objects are being copied into the home, and how far that is",
            Page("Transfer"),
        )
    },
    get("model_list", "/v1/models", "Models that can be named, and who serves them", One(200, "ModelList")),
    post(
        "model_test",
        "/v1/models/test",
        "One small call, to see whether a model answers",
        Body::Optional("ModelTest"),
        One(200, "ModelTested"),
    ),
    get("ledger_stats", "/v1/ledger/stats", "How much is in it", Object(200)),
    admin(post("ledger_verify", "/v1/ledger/verify", "Check every chain", Body::Optional("Verify"), Object(200))),
    admin(post(
        "ledger_compact",
        "/v1/ledger/compact",
        "Move old facts into segments",
        Body::Optional("Compact"),
        Object(200),
    )),
    post(
        "ledger_fork",
        "/v1/ledger/fork",
        "A stopped agent with the past of another",
        Body::Required("Fork"),
        Object(200),
    ),
    admin(get("ledger_export", "/v1/ledger/export", "The whole ledger, losslessly", Text("application/x-ndjson"))),
    admin(post(
        "token_create",
        "/v1/tokens",
        "Make a token; it is shown once",
        Body::Required("TokenCreate"),
        One(201, "TokenCreated"),
    )),
    admin(Operation {
        query: PAGE,
        ..get("token_list", "/v1/tokens", "Tokens, without what they are", Page("TokenItem"))
    }),
    admin(delete("token_revoke", "/v1/tokens/{item}", "Revoke a token", One(200, "Ended"))),
    admin(Operation {
        query: PAGE,
        ..get("secret_list", "/v1/secrets", "Secrets, without their values", Page("SecretItem"))
    }),
    admin(Operation {
        method: Method::Put,
        problems: &[409],
        ..post(
            "secret_set",
            "/v1/secrets/{item}",
            "Keep a value that agents can be given; it is never shown",
            Body::Required("SecretSet"),
            One(200, "SecretItem"),
        )
    }),
    admin(delete(
        "secret_remove",
        "/v1/secrets/{item}",
        "Remove a secret; commands that start later have it no more",
        One(200, "SecretItem"),
    )),
];
