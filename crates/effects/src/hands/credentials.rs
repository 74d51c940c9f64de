//! What an agent's own commands get besides the usual environment: variables, secrets, answers for git, an ssh agent. It
//! is looked up when a command starts, so that a secret which was set or removed since is the current one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use abide_kernel::credentials::Credentials;
use abide_kernel::refusal::{ErrorCode, Refusal};

use super::Hands;
use crate::process::{Launch, SshAgent};
use crate::secrets::{self, SecretValue, Secrets};

/// Every provider of git takes a token with this name, or with any.
const GIT_USER: &str = "x-access-token";
const VARIABLES_MAX: usize = 64;
const VARIABLE_BYTES: usize = 16 << 10;
const HOST_BYTES: usize = 255;
const KNOWN_HOSTS_BYTES: usize = 64 << 10;

/// A part of credentials that can't be given, by its place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pub pointer: String,
    pub refusal: Refusal,
}

impl Misfit {
    fn new(pointer: impl Into<String>, refusal: Refusal) -> Misfit {
        Misfit { pointer: pointer.into(), refusal }
    }

    fn wrong_fields(pointer: impl Into<String>, problem: impl Into<String>) -> Misfit {
        Misfit::new(pointer, Refusal::new(ErrorCode::WrongFields, problem))
    }
}

/// `[USER@]HOST[:PORT]`.
struct GitHost<'a> {
    user: &'a str,
    host: &'a str,
}

impl GitHost<'_> {
    /// Only characters that mean nothing to git's patterns, to its settings and to a shell.
    fn parse(text: &str) -> Option<GitHost<'_>> {
        let (user, host) = text.rsplit_once('@').unwrap_or((GIT_USER, text));
        let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
        let word =
            |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c));
        let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        (text.len() <= HOST_BYTES && word(user) && word(name) && port_fits).then_some(GitHost { user, host })
    }
}

impl Hands {
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// Whether an agent can be given these here and now.
    pub fn check_credentials(&self, credentials: &Credentials) -> Result<(), Misfit> {
        let wrong = |pointer: String, problem: String| Misfit::wrong_fields(pointer, problem);
        for (name, value) in &credentials.env {
            let pointer = format!("/env/{name}");
            secrets::check_variable(name).map_err(|problem| wrong(pointer.clone(), problem))?;
            if value.len() > VARIABLE_BYTES || value.contains('\0') {
                let problem = format!("a variable has at most {VARIABLE_BYTES} bytes, and no NUL byte");
                return Err(wrong(pointer, problem));
            }
            if credentials.secrets.contains(name) {
                return Err(wrong(pointer, format!("{name} can't be a variable and a secret; take one of them away")));
            }
        }
        if credentials.env.len() + credentials.secrets.len() + credentials.git_credentials.len() > VARIABLES_MAX {
            return Err(wrong("/env".to_owned(), format!("an agent has at most {VARIABLES_MAX} of them in all")));
        }
        for (nth, name) in credentials.secrets.iter().enumerate() {
            self.check_secret(name, &format!("/secrets/{nth}"))?;
        }
        for (host, name) in &credentials.git_credentials {
            let pointer = format!("/git_credentials/{}", host.replace('~', "~0").replace('/', "~1"));
            if GitHost::parse(host).is_none() {
                let problem = format!("{host:?} is no host: write [USER@]HOST[:PORT], such as github.com");
                return Err(wrong(pointer, problem));
            }
            self.check_secret(name, &pointer)?;
            if self.0.secrets.values(&BTreeSet::from([name.clone()])).0[name].reveal().contains(['\n', '\r']) {
                return Err(wrong(pointer, format!("the secret {name} has several lines, and a password has one")));
            }
        }
        if credentials.ssh_agent {
            self.check_ssh_agent()?;
        } else if credentials.known_hosts.is_some() {
            let problem = "host keys are for ssh, which this agent has no keys for: give it the ssh agent, too";
            return Err(wrong("/known_hosts".to_owned(), problem.to_owned()));
        }
        if credentials.known_hosts.as_ref().is_some_and(|keys| keys.len() > KNOWN_HOSTS_BYTES || keys.contains('\0')) {
            let problem = format!("host keys are text of at most {KNOWN_HOSTS_BYTES} bytes");
            return Err(wrong("/known_hosts".to_owned(), problem));
        }
        Ok(())
    }

    fn check_secret(&self, name: &str, pointer: &str) -> Result<(), Misfit> {
        secrets::check_name(name).map_err(|problem| Misfit::wrong_fields(pointer, problem))?;
        if self.0.secrets.is_set(name) {
            return Ok(());
        }
        let message = format!("there is no secret {name}, neither in the home nor in the daemon's environment");
        Err(Misfit::new(pointer, Refusal::new(ErrorCode::NoSecret, message).fill("name", name)))
    }

    fn check_ssh_agent(&self) -> Result<(), Misfit> {
        if !self.sandbox().shows_sockets() {
            return Err(Misfit::new("/ssh_agent", self.sandbox().no_ssh_agent()));
        }
        if self.ssh_socket().is_none() {
            let message = "the daemon has no ssh agent: SSH_AUTH_SOCK was not set when it started, or names no socket";
            return Err(Misfit::new("/ssh_agent", Refusal::new(ErrorCode::NoSshAgent, message)));
        }
        Ok(())
    }

    fn ssh_socket(&self) -> Option<PathBuf> {
        self.0.ssh_socket.clone().filter(|socket| socket.exists())
    }

    /// The names of what there is no value for.
    #[must_use]
    pub fn missing_credentials(&self, credentials: &Credentials) -> Vec<String> {
        let names = credentials.secret_names().into_iter();
        let mut missing: Vec<String> = names.filter(|name| !self.0.secrets.is_set(name)).collect();
        if credentials.ssh_agent && (self.ssh_socket().is_none() || !self.sandbox().shows_sockets()) {
            missing.push(SSH_AGENT.to_owned());
        }
        missing
    }

    /// The launch with what the agent was given; and what of that is not there.
    pub(super) fn give(&self, launch: Launch, credentials: &Credentials) -> (Launch, Vec<String>) {
        let mask_before = |launch| Launch { mask: self.0.secrets.mask(), ..launch };
        if credentials.is_empty() {
            return (mask_before(launch), Vec::new());
        }
        let (values, mut missing) = self.0.secrets.values(&credentials.secret_names());
        let own = credentials.secrets.iter().filter_map(|name| Some((name.clone(), values.get(name)?.clone())));
        let mut secrets: Vec<(String, SecretValue)> = own.collect();
        let mut environment: Vec<(String, String)> =
            credentials.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let git = GitAnswers::new(&credentials.git_credentials, &values);
        secrets.extend(git.passwords);
        environment.extend(git.environment);
        let socket = self.ssh_socket();
        if credentials.ssh_agent && socket.is_none() {
            missing.push(SSH_AGENT.to_owned());
        }
        let known_hosts = credentials.known_hosts.clone();
        let ssh_agent = credentials.ssh_agent.then_some(SshAgent { socket, known_hosts });
        (Launch { environment, secrets, ssh_agent, ..mask_before(launch) }, missing)
    }
}

/// Stands for the ssh agent among what is missing.
const SSH_AGENT: &str = "ssh-agent";

/// What a command starts without, in words.
pub(super) fn without(missing: &[String]) -> Option<String> {
    let named = missing.join(", ");
    (!missing.is_empty()).then(|| format!("started without {named}: given to this agent, and not set in the daemon"))
}

/// Settings for git by which it finds the passwords of hosts in variables. A helper is named for `https://HOST` alone, so
/// git asks it for no other host, not over http, and not after a redirect elsewhere. Helpers that a repository names for
/// the host are not asked.
struct GitAnswers {
    environment: Vec<(String, String)>,
    passwords: Vec<(String, SecretValue)>,
}

impl GitAnswers {
    fn new(hosts: &BTreeMap<String, String>, values: &BTreeMap<String, SecretValue>) -> GitAnswers {
        let (mut settings, mut passwords) = (Vec::new(), Vec::new());
        for (host, name) in hosts {
            let (Some(GitHost { user, host }), Some(value)) = (GitHost::parse(host), values.get(name)) else {
                continue;
            };
            let variable = format!("ABIDE_PASSWORD_{}", passwords.len());
            let helper = format!(
                "!f() {{ if [ \"$1\" = get ]; then printf 'username=%s\\npassword=%s\\n' '{user}' \"${variable}\"; fi; }}; f"
            );
            let key = format!("credential.https://{host}.helper");
            settings.push((key.clone(), String::new()));
            settings.push((key, helper));
            passwords.push((variable, value.clone()));
        }
        let mut environment = vec![("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned())];
        environment.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
        for (nth, (key, value)) in settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{nth}"), key));
            environment.push((format!("GIT_CONFIG_VALUE_{nth}"), value));
        }
        GitAnswers { environment, passwords }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_with_a_user_and_a_port() {
        for (text, user, host) in [
            ("github.com", GIT_USER, "github.com"),
            ("127.0.0.1:8443", GIT_USER, "127.0.0.1:8443"),
            ("alice@git.example", "alice", "git.example"),
        ] {
            let parsed = GitHost::parse(text).unwrap();
            assert_eq!((parsed.user, parsed.host), (user, host));
        }
        for wrong in ["", "*.example", "a b", "https://x", "host/path", "x:", "x:0", "'@x", "a\"b", "x:99999"] {
            assert!(GitHost::parse(wrong).is_none(), "{wrong}");
        }
    }
}
