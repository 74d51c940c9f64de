//! The environment of a command, made from a list of permitted variables, so that no other variable is passed on.

use std::collections::BTreeMap;
use std::path::Path;

/// Carried over where they are set.
const CARRIED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "COLORTERM",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DENO_DIR",
    "GEM_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// A proxy is part of having network; one whose address names a user is a credential.
const PROXIES: &[&str] =
    &["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

/// Toolchains find themselves by the person's home; a confined command has another one.
const FROM_HOME: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("GOPATH", "go"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RUSTUP_HOME", ".rustup"),
];

/// The search path for programs where `PATH` is not set.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The values for a command's environment, besides the daemon's own variables.
#[derive(Debug)]
pub(crate) struct EnvironmentOptions<'a> {
    pub person: &'a Path,
    pub home: &'a Path,
    pub temporary: &'a Path,
    pub tty: bool,
    pub network: bool,
    /// Where it looks for programs.
    pub path: String,
    /// The variable by which what a command leaves behind is found again.
    pub marker: (&'a str, &'a str),
}

/// Whether a command may be given a variable of this name. A secret must not have one.
pub(crate) fn is_carried(name: &str) -> bool {
    CARRIED.contains(&name) || PROXIES.contains(&name) || name.starts_with("LC_")
}

pub(crate) fn build_environment(
    own: impl Iterator<Item = (String, String)>,
    given: &EnvironmentOptions<'_>,
) -> Vec<(String, String)> {
    let mut environment: BTreeMap<String, String> = own
        .filter(|(name, value)| match PROXIES.contains(&name.as_str()) {
            true => given.network && !value.contains('@'),
            false => is_carried(name),
        })
        .collect();
    for (name, folder) in FROM_HOME {
        let folder = given.person.join(folder);
        if !environment.contains_key(*name) && folder.is_dir() {
            environment.insert((*name).to_owned(), folder.to_string_lossy().into_owned());
        }
    }
    let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
    set("PATH", given.path.clone());
    set("HOME", given.home.to_string_lossy().into_owned());
    set("TMPDIR", given.temporary.to_string_lossy().into_owned());
    set("TERM", if given.tty { "xterm-256color" } else { "dumb" }.to_owned());
    set(given.marker.0, given.marker.1.to_owned());
    environment.into_iter().collect()
}
