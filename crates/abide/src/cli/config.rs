//! The words of `abide config`.

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
    /// Write one into config.toml; the rest of the file stays as it is
    Set {
        /// Its name
        key: String,
        /// What it should be
        value: String,
    },
    /// Take one out of config.toml
    Unset {
        /// Its name
        key: String,
    },
    /// A JSON schema of config.toml
    Schema,
}
