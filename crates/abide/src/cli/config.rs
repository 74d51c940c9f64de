//! The words of `abide config`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every setting
    Show {
        /// With --json: where each came from, too
        #[arg(long)]
        origin: bool,
    },
    /// One setting
    Get {
        /// Its name
        key: String,
    },
    /// Write one into config.toml, or several that need each other; the rest of the file stays as it is
    Set {
        /// Its name, and what it should be
        #[arg(required = true, num_args = 2.., value_names = ["KEY", "VALUE"])]
        pairs: Vec<String>,
    },
    /// Take one out of config.toml, or several
    Unset {
        /// Its name
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Trust the current content of a workspace's abide.toml: agents created there get its settings
    Trust {
        /// The workspace
        #[arg(value_name = "DIR")]
        workspace: PathBuf,
    },
    /// Withdraw the trust in a workspace's abide.toml
    Untrust {
        /// The workspace
        #[arg(value_name = "DIR")]
        workspace: PathBuf,
    },
    /// A JSON schema of config.toml
    Schema {
        /// Print the tables of docs/settings.md instead
        #[arg(long)]
        markdown: bool,
    },
}
