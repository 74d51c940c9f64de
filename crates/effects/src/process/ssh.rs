//! How ssh in a command is told which agent to ask and which hosts to trust. The socket and the file of host keys are in
//! folders that only the command has.

use std::path::PathBuf;

use super::SshAgent;
use crate::sandbox::SSH_AGENT_SOCKET;

/// In a private folder, at a path that needs no quotes.
const KNOWN_HOSTS: &str = "/run/abide-known-hosts";

pub(super) fn known_hosts_file(agent: Option<&SshAgent>) -> Option<(PathBuf, String)> {
    Some((PathBuf::from(KNOWN_HOSTS), agent?.known_hosts.clone()?))
}

/// Settings of the user and of the machine are not read: in a user namespace ssh takes the owner of the machine's for a
/// stranger, and gives up.
pub(super) fn environment(agent: Option<&SshAgent>) -> Vec<(String, String)> {
    let Some(agent) = agent else { return Vec::new() };
    let mut words = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes -o UpdateHostKeys=no".to_owned();
    if agent.known_hosts.is_some() {
        words.push_str(&format!(" -o UserKnownHostsFile={KNOWN_HOSTS} -o GlobalKnownHostsFile=/dev/null"));
    } else {
        words.push_str(" -o UserKnownHostsFile=/dev/null");
    }
    let mut environment = vec![("GIT_SSH_COMMAND".to_owned(), words)];
    if agent.socket.is_some() {
        environment.push(("SSH_AUTH_SOCK".to_owned(), SSH_AGENT_SOCKET.to_owned()));
    }
    environment
}
