//! Which places of the machine a confined command may read, and which it must not even where it may read around them.
//! Only lists and questions about paths; who enforces them is chosen elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The system's own folders: programs, libraries, settings.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/run/current-system",
    "/sys/devices/system/cpu",
];

/// Where toolchains live below a person's home.
const TOOLCHAINS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo",
    ".deno",
    ".ghcup",
    ".goenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nodenv",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// Credentials for other services, below a person's home.
const SECRETS: &[&str] = &[
    ".abide",
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
];

/// Settings that commands need, below a person's home. One is hidden only where it has a credential in it.
const SETTINGS: &[&str] = &[".cargo/config", ".cargo/config.toml"];

const SYSTEM_SECRETS: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/kubernetes",
    "/etc/krb5.keytab",
    "/etc/letsencrypt",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
];

#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The home of the person the daemon runs as.
    pub person: PathBuf,
    /// Readable. As they are found: some are symbolic links.
    pub readable: Vec<PathBuf>,
    /// Not to be read, though some lie below what is readable.
    pub hidden: Vec<PathBuf>,
    /// Files and folders of the system that only the superuser can read. Hidden, unless they lie in a folder that a
    /// command is given.
    pub closed: Vec<PathBuf>,
}

impl Places {
    /// As this machine has them. `home` is the runtime's own.
    pub(crate) fn find(home: &Path, person: &Path, path_variable: &str) -> Places {
        let mut hidden: BTreeSet<PathBuf> = SYSTEM_SECRETS.iter().map(PathBuf::from).collect();
        hidden.extend(SECRETS.iter().map(|name| person.join(name)));
        hidden.extend(SETTINGS.iter().map(|name| person.join(name)).filter(|path| has_credential(path)));
        hidden.extend(host_keys());
        hidden.insert(home.to_path_buf());
        let hidden: Vec<PathBuf> = hidden.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect();

        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(TOOLCHAINS.iter().map(|name| person.join(name)));
        readable.retain(|path| path.symlink_metadata().is_ok());
        for folder in std::env::split_paths(path_variable) {
            let known = readable.iter().any(|path| folder.starts_with(path));
            // A folder that holds a secret or somebody's home is not one of programs.
            let wide = person.starts_with(&folder) || hidden.iter().any(|path| path.starts_with(&folder));
            let secret = hidden.iter().any(|path| folder.starts_with(path));
            if folder.is_absolute() && folder.is_dir() && !known && !wide && !secret {
                readable.push(folder);
            }
        }
        Places { person: person.to_path_buf(), readable, hidden, closed: Vec::new() }
    }

    /// The hidden places that lie in `folder`, or are it.
    pub(crate) fn hidden_below(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        self.hidden.iter().filter(move |path| path.starts_with(folder))
    }
}

fn host_keys() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/etc/ssh").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("ssh_host_") && name.ends_with("_key")
        })
        .map(|entry| entry.path())
}

/// `path`, or, where something hidden lies below it, what else is in it: for rules that can only allow.
pub(crate) fn paths_around(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|secret| path.starts_with(secret)) {
        return Vec::new();
    }
    if !hidden.iter().any(|secret| secret.starts_with(path)) {
        return vec![path.to_path_buf()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.flat_map(|entry| paths_around(&entry.path(), hidden)).collect()
}

/// Whether a file of settings sets a token or a password, or has an address with one. One that can't be read may.
fn has_credential(path: &Path) -> bool {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| {
        let line = line.to_ascii_lowercase();
        let named = ["token", "password", "secret"].iter().any(|word| line.contains(word));
        named
            || line
                .split("://")
                .skip(1)
                .any(|rest| rest.split(['/', '"', '\'']).next().is_some_and(|host| host.contains('@')))
    })
}
