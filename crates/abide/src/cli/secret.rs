//! The words of `abide secret`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Keep a value, read from the standard input; a newline at its end is left out
    Set {
        /// The variable that commands find it in, such as GIT_TOKEN
        #[arg(value_parser = name)]
        name: String,
    },
    /// All secrets by name, and the agents that were given each
    List,
    /// Remove a value; commands that start later have it no more
    Remove {
        /// The secret
        #[arg(value_parser = name)]
        name: String,
    },
}

fn name(text: &str) -> Result<String, String> {
    crate::credentials::secret(text).map(|()| text.to_owned())
}
