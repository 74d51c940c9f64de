//! The arguments of `abide secret`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Store a value from the standard input, without its trailing newline
    Set {
        /// The name of its environment variable, such as GIT_TOKEN
        #[arg(value_parser = name)]
        name: String,
    },
    /// List secrets by name, and the agents that have each
    List,
    /// Remove a secret; later commands do not get it
    Remove {
        /// The secret
        #[arg(value_parser = name)]
        name: String,
    },
}

fn name(text: &str) -> Result<String, String> {
    crate::credentials::check_secret_name(text).map(|()| text.to_owned())
}
