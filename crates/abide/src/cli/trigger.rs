//! The arguments of `abide trigger`.

use std::path::PathBuf;

use abide_api::types::DeliveryMode;
use clap::{Args, Subcommand};

use super::{OfAgent, word};

#[derive(Debug, Subcommand)]
pub enum TriggerCommand {
    /// Create a trigger; its URL is shown once
    Create(TriggerArgs),
    /// List triggers, newest last
    List(OfAgent),
    /// Replace the URL of a trigger; the old one stops working
    Rotate {
        #[command(flatten)]
        of: OfAgent,
        /// The trigger, or the end of its id
        trigger: String,
    },
    /// Revoke a trigger; its URL stops working
    Revoke {
        #[command(flatten)]
        of: OfAgent,
        /// The trigger, or the end of its id
        trigger: String,
    },
}

#[derive(Debug, Args)]
#[group(id = "secret", multiple = false, args = ["secret_env", "secret_file"])]
pub struct TriggerArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// A name for its source
    pub name: String,
    /// The effect of a delivery: enqueue_message or wake_hint
    #[arg(long, value_name = "MODE", value_parser = delivery_mode)]
    pub mode: Option<DeliveryMode>,
    /// The work item that deliveries are about
    #[arg(long, value_name = "ITEM")]
    pub work_item: Option<String>,
    /// Deliveries must be signed with the secret in this variable
    #[arg(long, value_name = "VAR")]
    pub secret_env: Option<String>,
    /// Deliveries must be signed with the secret in this file; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

fn delivery_mode(text: &str) -> Result<DeliveryMode, String> {
    word(text, "enqueue_message, wake_hint")
}
