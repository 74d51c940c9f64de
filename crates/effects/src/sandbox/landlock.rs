//! Landlock: an allow-list of files, ports and peers that a process lays upon itself and all its children, without any
//! privilege. It can't forbid below what it allows, so what is hidden must lie outside of everything that is allowed.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use serde::{Deserialize, Serialize};

use super::AllowedPath;

/// The newest version that was looked at; an older kernel does what it can, and [`probe`] says what that is.
const NEWEST: ABI = ABI::V6;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LandlockRules {
    /// Nothing: another mechanism sees to files.
    pub files: Option<FileRules>,
    pub network: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileRules {
    /// Of the system: links are followed.
    pub read: Vec<PathBuf>,
    /// Readable besides.
    pub given: Vec<AllowedPath>,
    pub write: Vec<AllowedPath>,
}

/// Devices that everybody may use. No terminals but one's own, and no shared memory: others of the same user have theirs
/// there.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The rules as the kernel takes them; to be laid upon a process with `restrict_self`.
pub(crate) fn ruleset(rules: &LandlockRules) -> io::Result<RulesetCreated> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(io::Error::other)?;
    if !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(io::Error::other)?;
    }
    let Some(files) = &rules.files else { return ruleset.create().map_err(io::Error::other) };
    let all = AccessFs::from_all(NEWEST);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut created = ruleset.handle_access(all).and_then(Ruleset::create).map_err(io::Error::other)?;
    created = created
        .add_rules(path_beneath_rules(&files.read, AccessFs::from_read(NEWEST)))
        .and_then(|created| created.add_rules(path_beneath_rules(DEVICES, device)))
        .map_err(io::Error::other)?;
    let given = files.given.iter().map(|root| (root, AccessFs::from_read(NEWEST)));
    for (root, access) in given.chain(files.write.iter().map(|root| (root, all))) {
        let opened = root.open()?;
        let is_file = !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode).is_dir();
        let access = if is_file { access & AccessFs::from_file(NEWEST) } else { access };
        created = created.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)?;
    }
    Ok(created)
}

/// The features of this kernel's Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LandlockAbility {
    pub version: u32,
}

impl LandlockAbility {
    pub(crate) fn ports(self) -> bool {
        self.version >= 4
    }

    pub(crate) fn peers(self) -> bool {
        self.version >= 6
    }
}

/// Really tried, on a thread that ends with it: a file outside of the rules must be refused.
pub(crate) fn probe() -> Result<LandlockAbility, String> {
    let tried = std::thread::spawn(|| {
        let inside = Path::new("/usr").to_path_buf();
        let rules = LandlockRules {
            files: Some(FileRules { read: vec![inside], given: Vec::new(), write: Vec::new() }),
            network: false,
        };
        let status = ruleset(&rules)?.restrict_self().map_err(io::Error::other)?;
        let version = match status.landlock {
            LandlockStatus::NotEnabled => return Err(io::Error::other("Landlock is not enabled in this kernel")),
            LandlockStatus::NotImplemented => return Err(io::Error::other("this kernel has no Landlock")),
            LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        };
        if status.ruleset == RulesetStatus::NotEnforced || std::fs::read_dir("/").is_ok() {
            return Err(io::Error::other("Landlock is there and refuses nothing"));
        }
        Ok(LandlockAbility { version })
    });
    match tried.join() {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("Landlock could not be tried".to_owned()),
    }
}
