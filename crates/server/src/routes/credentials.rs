//! What the commands of an agent are given: who may give it, and whether it can be given.

use abide_api::types::{AgentChange, Scope};
use abide_api::{ErrorCode, Problem};
use abide_kernel::credentials::{Credentials, CredentialsChange};

use crate::app::App;
use crate::call::Call;
use crate::problems;

/// What a request changes. Whoever can have a secret put into the environment of a command can read it, so that takes an
/// admin's token; variables that are no secrets are an operator's to set.
pub(super) fn change(call: &Call, change: &AgentChange) -> Result<CredentialsChange, Problem> {
    let AgentChange { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, .. } = change;
    let privileged = [
        ("/secrets", secrets.is_some()),
        ("/git_credentials", git_credentials.is_some()),
        ("/ssh_agent", ssh_agent.is_some()),
        ("/known_hosts", known_hosts.is_some()),
        ("/for_children", for_children.is_some()),
    ];
    let first = privileged.into_iter().find(|(_, named)| *named);
    if let (Some((pointer, _)), scope @ (Scope::Operator | Scope::Observer)) = (first, call.caller.scope) {
        let name = pointer.trim_start_matches('/');
        let detail = format!("{name} takes the scope admin; the token {} has {scope:?}", call.caller.name);
        let hint = "leave it out, or ask for a token with that scope";
        return Err(Problem::new(ErrorCode::Scope, detail.to_lowercase()).hint(hint).pointer(pointer));
    }
    Ok(CredentialsChange {
        env: env.clone(),
        secrets: secrets.as_ref().map(|names| names.iter().cloned().collect()),
        git_credentials: git_credentials.clone(),
        ssh_agent: *ssh_agent,
        known_hosts: known_hosts.clone().map(|keys| (!keys.is_empty()).then_some(keys)),
        for_children: *for_children,
    })
}

pub(super) fn check(app: &App, credentials: &Credentials) -> Result<(), Problem> {
    app.options
        .services
        .check_credentials(credentials)
        .map_err(|(pointer, refusal)| problems::of_refusal(refusal).pointer(pointer))
}
