//! Credentials of the commands of an agent, as operators write them on a command line and in the settings.

use abide_effects::secrets::{check_name, check_variable};

/// `NAME=VALUE`.
pub fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is no variable: write NAME=VALUE"))?;
    check_variable(name)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of a secret.
pub fn check_secret_name(text: &str) -> Result<(), String> {
    check_name(text)
}

/// `[USER@]HOST[:PORT]=NAME`. Whether it is a host is for the daemon to say.
pub fn parse_git_credential(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} names no host and secret: write HOST=NAME, such as github.com=GIT_TOKEN");
    let (host, name) = text.split_once('=').filter(|(host, _)| !host.is_empty()).ok_or_else(wrong)?;
    check_name(name)?;
    Ok((host.to_owned(), name.to_owned()))
}
