//! Rules for single texts of settings. Each function returns the text as it is stored, or an error.

use std::path::Path;

use abide_daemon::workspace_roots::PERSON;
use abide_effects::web::Url;

use crate::credentials;

pub fn command(text: &str) -> Result<String, String> {
    not_empty(text, "say what to run, such as notify-send \"$ABIDE_TEXT\"")
}

pub fn secret_variable(text: &str) -> Result<String, String> {
    not_empty(text, "name the environment variable that holds the webhook's secret")
}

fn not_empty(text: &str, hint: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err(format!("it is empty: {hint}")) } else { Ok(text.to_owned()) }
}

pub fn webhook(text: &str) -> Result<String, String> {
    Url::parse(text).map_err(|hint| format!("{text:?} is no address to send to: {hint}"))?;
    Ok(text.to_owned())
}

/// Where URLs begin, without a slash at the end.
pub fn public_url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let fits =
        !rest.starts_with('/') && !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || "?#@".contains(c));
    if url.is_empty() || fits {
        return Ok(url.to_owned());
    }
    Err(format!("{text:?} is no address: write https://HOST, perhaps with a path"))
}

/// Absolute, or below the home folder of the daemon's user.
pub fn folder(text: &str) -> Result<String, String> {
    let below_person = text == PERSON || text.starts_with("~/");
    if below_person || Path::new(text).is_absolute() {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no absolute path: write /path/to/folder, or ~/folder"))
}

pub fn known_hosts(text: &str) -> Result<String, String> {
    match Path::new(text).is_absolute() {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no absolute path of a file with host keys")),
    }
}

pub fn agent_variable(text: &str) -> Result<String, String> {
    credentials::parse_variable(text).map(|_| text.to_owned())
}

pub fn agent_secret(text: &str) -> Result<String, String> {
    credentials::check_secret_name(text).map(|()| text.to_owned())
}

pub fn agent_git_credential(text: &str) -> Result<String, String> {
    credentials::parse_git_credential(text).map(|_| text.to_owned())
}
