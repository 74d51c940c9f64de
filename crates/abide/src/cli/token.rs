//! The arguments of `abide token`.

use abide_api::types::Scope;
use clap::Subcommand;

use super::word;

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; it is shown once
    Create {
        /// The name of its holder
        #[arg(long, value_name = "NAME")]
        name: String,
        /// observer: read only; operator: also send and change; admin: everything
        #[arg(long, value_name = "SCOPE", value_parser = scope)]
        scope: Scope,
    },
    /// List tokens, without their values
    List,
    /// Revoke a token
    Revoke {
        /// The token's id
        id: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    word(text, "observer, operator, admin")
}
