//! The secrets of a home: a private file each, and variables of the daemon's environment that an operator named as one. A
//! value goes into the environment of commands that were given it, and nowhere else: not into a fact, a log, an answer,
//! nor into a prompt.

mod inputs;
mod mask;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_private::{private_folder, read_regular, write_private};
use serde::Serialize;

use crate::sandbox::environment;
use crate::transient;

pub use mask::{Mask, MaskedStream, stand_in};

/// Shorter values would be found by chance in every other text.
pub const MIN_BYTES: usize = 8;
/// It has to fit into a variable with room to spare.
pub const MAX_BYTES: usize = 16 << 10;
/// How many a home may have: all of them are looked for in everything that is shown.
pub const SECRETS_MAX: usize = 256;
const NAME_BYTES: usize = 64;

/// The folder of the home that holds them.
const FOLDER: &str = "secrets";
/// The variables of the daemon's environment that are secrets, by name. No name of a secret begins with a dot.
const FROM_ENVIRONMENT: &str = ".environment.json";

/// Names that mean something to every command, or to the way in which it is run.
const RESERVED: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "HOME",
    "IFS",
    "OLDPWD",
    "PWD",
    "SHELL",
    "SHLVL",
    "SSH_AUTH_SOCK",
    "TERM",
    "TMPDIR",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
];
const RESERVED_BEGINNINGS: &[&str] = &["ABIDE_", "LD_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];

/// A value that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(String);

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue")
    }
}

impl SecretValue {
    /// Or what is wrong with it, without saying it.
    pub fn new(text: &str) -> Result<SecretValue, String> {
        if text.len() < MIN_BYTES {
            let why = "a shorter one would be found by chance in other texts";
            return Err(format!("a secret has at least {MIN_BYTES} bytes: {why}"));
        }
        if text.len() > MAX_BYTES {
            return Err(format!("a secret has at most {MAX_BYTES} bytes"));
        }
        if text.contains('\0') {
            return Err("a secret holds no NUL byte: no variable could".to_owned());
        }
        Ok(SecretValue(text.to_owned()))
    }

    /// For the environment of a command.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// Where a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    Home,
    Environment,
}

/// What is wrong with a name for a variable that is given to commands.
pub fn check_variable(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let fits = begins && name.len() <= NAME_BYTES && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    if !fits {
        let rule = format!("1 to {NAME_BYTES} of A-Z, a-z, 0-9 and _, and no digit first");
        return Err(format!("{name:?} is no name of a variable: {rule}"));
    }
    if RESERVED.contains(&name) || RESERVED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
        return Err(format!("{name} means something else to every command; choose another name"));
    }
    Ok(())
}

/// What is wrong with a name for a secret.
pub fn check_name(name: &str) -> Result<(), String> {
    check_variable(name)?;
    // Variables of these names are carried over from the daemon to every command.
    if environment::is_carried(name) {
        return Err(format!("{name} is a variable that every command gets; choose another name"));
    }
    Ok(())
}

/// The secrets of one home. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Secrets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// Variables of the daemon that may become secrets.
    environment: BTreeMap<String, SecretValue>,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: BTreeMap<String, SecretValue>,
    /// Variables of the daemon that were given to an agent.
    named: BTreeSet<String>,
    /// Values that were replaced or removed since the start. Files may hold them, so they are masked still.
    retired: Vec<(String, SecretValue)>,
    mask: Mask,
}

impl Secrets {
    /// `environment` is the daemon's, without what is no agent's business.
    pub fn open(home: &Path, environment: impl IntoIterator<Item = (String, String)>) -> io::Result<Secrets> {
        let folder = home.join(FOLDER);
        let usable = |(name, value): (String, String)| {
            check_name(&name).ok()?;
            Some((name, SecretValue::new(&value).ok()?))
        };
        let environment = environment.into_iter().filter_map(usable).collect();
        let state = RwLock::new(State { kept: read_all(&folder)?, named: read_named(&folder)?, ..State::default() });
        let secrets = Secrets(Arc::new(Inner { folder, environment, state }));
        secrets.change(|_| ());
        Ok(secrets)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state: RwLockWriteGuard<'_, State> = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut state);
        let named = state.named.iter().filter_map(|name| Some((name, self.0.environment.get(name)?)));
        let all = state.kept.iter().chain(named).chain(state.retired.iter().map(|(name, value)| (name, value)));
        let mask = Mask::new(all.map(|(name, value)| (name.as_str(), value.reveal())));
        state.mask = mask;
        changed
    }

    /// Finds the values of all secrets of the home: an agent may come upon a value that another one was given.
    #[must_use]
    pub fn mask(&self) -> Mask {
        self.state().mask.clone()
    }

    /// Durable when this returns.
    pub fn set(&self, name: &str, value: SecretValue) -> Result<(), Refusal> {
        check_name(name).map_err(|problem| wrong_name(&problem))?;
        let state = self.state();
        if state.kept.len() >= SECRETS_MAX && !state.kept.contains_key(name) {
            let message = format!("there are {SECRETS_MAX} secrets, and no more are kept");
            return Err(Refusal::new(ErrorCode::TooMany, message)
                .with_hint("remove those that no agent uses: abide secret list"));
        }
        drop(state);
        let file = self.0.folder.join(name);
        private_folder(&self.0.folder).map_err(|error| unwritable(&self.0.folder, &error))?;
        write_private(&file, value.reveal().as_bytes()).map_err(|error| unwritable(&file, &error))?;
        self.change(|state| {
            if let Some(old) = state.kept.insert(name.to_owned(), value.clone()).filter(|old| *old != value) {
                state.retired.push((name.to_owned(), old));
            }
        });
        Ok(())
    }

    /// Whether there was one. Commands that run have it until they end.
    pub fn remove(&self, name: &str) -> Result<bool, Refusal> {
        check_name(name).map_err(|problem| wrong_name(&problem))?;
        if !self.state().kept.contains_key(name) {
            return Ok(false);
        }
        let file = self.0.folder.join(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unwritable(&file, &error)),
            Ok(()) | Err(_) => {}
        }
        self.change(|state| state.retired.extend(state.kept.remove_entry(name)));
        Ok(true)
    }

    /// By name, those of the home and those of the daemon's environment that were given to an agent.
    #[must_use]
    pub fn list(&self) -> Vec<(String, SecretSource)> {
        let state = self.state();
        let kept = state.kept.keys().map(|name| (name.clone(), SecretSource::Home));
        let named = state.named.iter().filter(|name| self.0.environment.contains_key(*name));
        let named = named.map(|name| (name.clone(), SecretSource::Environment));
        // The home's own outranks a variable of the same name.
        named.chain(kept).collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.state().kept.contains_key(name) || self.0.environment.contains_key(name)
    }

    /// Values for a command, by name; and the names that there is no value for. A variable of the daemon is masked from
    /// here on, also after a restart.
    pub(crate) fn values(&self, names: &BTreeSet<String>) -> (BTreeMap<String, SecretValue>, Vec<String>) {
        self.name_variables(names);
        let state = self.state();
        let (mut values, mut missing) = (BTreeMap::new(), Vec::new());
        for name in names {
            match state.kept.get(name).or_else(|| self.0.environment.get(name)) {
                Some(value) => drop(values.insert(name.clone(), value.clone())),
                None => missing.push(name.clone()),
            }
        }
        (values, missing)
    }

    /// Remembers which variables of the daemon are secrets.
    pub fn name_variables(&self, names: &BTreeSet<String>) {
        let state = self.state();
        let is_new = |name: &&String| self.0.environment.contains_key(*name) && !state.named.contains(*name);
        let new: Vec<String> = names.iter().filter(is_new).cloned().collect();
        drop(state);
        if new.is_empty() {
            return;
        }
        let named = self.change(|state| {
            state.named.extend(new);
            state.named.clone()
        });
        // What can't be written is named again when the next command with it starts.
        let _later = private_folder(&self.0.folder)
            .and_then(|()| write_private(&self.0.folder.join(FROM_ENVIRONMENT), &serde_json::to_vec(&named)?));
    }
}

fn read_all(folder: &Path) -> io::Result<BTreeMap<String, SecretValue>> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(at(folder, &error)),
    };
    let mut kept = BTreeMap::new();
    for file in files {
        // A file that was being written when the process ended has another name.
        let Ok(name) = file.file_name().into_string() else { continue };
        if check_name(&name).is_err() {
            continue;
        }
        let bytes = read_regular(&file.path()).map_err(|error| at(&file.path(), &error))?;
        let text = String::from_utf8(bytes).ok();
        // One that is damaged is not there: agents that name it are shown without it.
        if let Some(value) = text.and_then(|text| SecretValue::new(&text).ok()) {
            kept.insert(name, value);
        }
    }
    Ok(kept)
}

fn read_named(folder: &Path) -> io::Result<BTreeSet<String>> {
    let file = folder.join(FROM_ENVIRONMENT);
    match read_regular(&file) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(at(&file, &error)),
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn wrong_name(problem: &str) -> Refusal {
    Refusal::new(ErrorCode::WrongName, problem)
}

fn unwritable(path: &Path, error: &io::Error) -> Refusal {
    let hint = transient::hint(error, "look at the disk and the modes of the home");
    Refusal::new(ErrorCode::HomeUnwritable, format!("{} can't be written: {error}", path.display())).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text).unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_secret_is_kept_in_a_private_file_until_it_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(home.path(), []).unwrap();
        secrets.set("GIT_TOKEN", value("first value")).unwrap();
        let file = home.path().join("secrets/GIT_TOKEN");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Secrets::open(home.path(), []).unwrap();
        assert_eq!(again.list(), [("GIT_TOKEN".to_owned(), SecretSource::Home)]);
        assert_eq!(again.values(&names(&["GIT_TOKEN", "OTHER"])).1, ["OTHER"]);
        assert!(again.remove("GIT_TOKEN").unwrap());
        assert!(!again.remove("GIT_TOKEN").unwrap());
        assert!(!file.exists() && again.list().is_empty());
    }

    #[test]
    fn a_value_that_is_too_short_is_refused_and_not_repeated() {
        for wrong in ["seven77", "with a \0 byte"] {
            let said = SecretValue::new(wrong).unwrap_err();
            assert!(!said.contains(wrong), "{said}");
        }
        assert!(SecretValue::new("eight888").is_ok());
        assert_eq!(format!("{:?}", value("a long secret")), "SecretValue");
    }

    #[test]
    fn names_that_every_command_knows_are_refused() {
        for name in ["", "1A", "A-B", "PATH", "HOME", "LC_ALL", "LD_PRELOAD", "ABIDE_X", "../x", "http_proxy"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_variable("LANG").is_ok());
    }

    #[test]
    fn a_variable_of_the_daemon_is_a_secret_once_it_was_given() {
        let home = tempfile::tempdir().unwrap();
        let environment = || [("TOKEN", "from the daemon"), ("SHORT", "x")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let secrets = Secrets::open(home.path(), environment()).unwrap();
        assert!(secrets.list().is_empty() && secrets.is_set("TOKEN") && !secrets.is_set("SHORT"));
        assert_eq!(secrets.mask().text("from the daemon"), None);
        assert_eq!(secrets.values(&names(&["TOKEN"])).0["TOKEN"], value("from the daemon"));
        for secrets in [secrets, Secrets::open(home.path(), environment()).unwrap()] {
            assert_eq!(secrets.list(), [("TOKEN".to_owned(), SecretSource::Environment)]);
            assert_eq!(secrets.mask().text("from the daemon").as_deref(), Some("(secret TOKEN)"));
        }
    }

    #[test]
    fn a_value_that_was_replaced_is_masked_still() {
        let home = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(home.path(), []).unwrap();
        secrets.set("A", value("first value")).unwrap();
        secrets.set("A", value("second value")).unwrap();
        secrets.remove("A").unwrap();
        assert_eq!(secrets.mask().text("first value, second value").as_deref(), Some("(secret A), (secret A)"));
    }
}
