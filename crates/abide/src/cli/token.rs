//! The words of `abide token`.

use abide_api::types::Scope;
use clap::Subcommand;

use super::word;

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is shown once
    Create {
        /// Who it is for
        #[arg(long, value_name = "NAME")]
        name: String,
        /// observer reads; operator talks to agents too; admin may do everything
        #[arg(long, value_name = "SCOPE", value_parser = scope)]
        scope: Scope,
    },
    /// All tokens, without what they are
    List,
    /// Make one worthless
    Revoke {
        /// The token's id
        id: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    word(text, "observer, operator, admin")
}
