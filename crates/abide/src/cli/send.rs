//! The arguments of `abide send`.

use std::path::PathBuf;
use std::time::Duration;

use abide_api::types::{PostKind, Priority};
use abide_kernel::id::AgentId;
use clap::Args;

use super::word;
use crate::span;

#[derive(Debug, Args)]
pub struct SendArgs {
    /// The agent
    pub id: AgentId,
    /// The text of the message; - reads stdin
    pub text: String,
    /// A PNG, JPEG, GIF or WebP to attach; repeatable
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,
    /// Wait for the answer and print it; exits 4 if the agent waits for a person, 5 if its budget is reached
    #[arg(long)]
    pub wait: bool,
    /// How long to wait: 30, 30s, 5m
    #[arg(long, value_name = "S", requires = "wait", value_parser = span::seconds)]
    pub timeout: Option<Duration>,
    /// interject joins a running turn; next, normal and background are queued
    #[arg(long, value_name = "P", value_parser = priority)]
    pub priority: Option<Priority>,
    /// operator_prompt, channel_event, webhook_event or callback_event
    #[arg(long, value_name = "K", value_parser = post_kind)]
    pub kind: Option<PostKind>,
}

fn priority(text: &str) -> Result<Priority, String> {
    word(text, "interject, next, normal, background")
}

fn post_kind(text: &str) -> Result<PostKind, String> {
    word(text, "operator_prompt, channel_event, webhook_event, callback_event")
}
