//! The global configuration of git in a command's private home: with it `git commit` works at once. A repository's own
//! settings win over it.

use std::path::Path;

use super::git::user_setting;
use super::mirror::KEPT;

/// The name of that file in the private home.
pub const FILE: &str = ".gitconfig";

/// The name of the remote that holds what was kept of worktrees. `git fetch abide` makes `abide/AGENT/BRANCH` of them.
pub(super) const REMOTE: &str = "abide";

/// The operator's identity as the author, else the agent's name. Garbage is collected before git ends: a process that it
/// left behind would be ended with the command.
#[must_use]
pub fn global_config(agent: &str, mirror: Option<&Path>) -> String {
    let own = user_setting("user.name", &[]).zip(user_setting("user.email", &[]));
    let (name, email) = own.unwrap_or_else(|| (agent.to_owned(), format!("{agent}@localhost")));
    let (name, email) = (quoted(&name), quoted(&email));
    let remote = mirror.and_then(Path::to_str).map(|mirror| {
        let url = quoted(mirror);
        format!(
            "[remote \"{REMOTE}\"]\n\turl = {url}\n\tfetch = +{KEPT}*:refs/remotes/{REMOTE}/*\n\ttagOpt = --no-tags\n"
        )
    });
    format!(
        "[user]\n\tname = {name}\n\temail = {email}\n[safe]\n\tdirectory = *\n\
         [gc]\n\tautoDetach = false\n[maintenance]\n\tautoDetach = false\n{}",
        remote.unwrap_or_default()
    )
}

fn quoted(value: &str) -> String {
    let value = value.replace(|c: char| c.is_control(), " ");
    format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
}
