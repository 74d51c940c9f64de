//! Words that surfaces show and no fact holds.

use super::words::words;

words! {
    TriggerStatus {
        Active = "active",
        Revoked = "revoked",
    }

    /// The outcome of the binding of a folder.
    WorkspaceStatus {
        Attached = "attached",
        Removing = "removing",
        Detached = "detached",
        Removed = "removed",
    }

    /// Whose an entry of the transcript is.
    TranscriptRole {
        Input = "input",
        Assistant = "assistant",
        ToolCall = "tool_call",
        ToolResult = "tool_result",
        Note = "note",
    }

    /// How far a task was when its output was read.
    ReadStatus {
        /// It is over.
        Ready = "ready",
        Timeout = "timeout",
        NotReady = "not_ready",
    }
}
