//! The restrictions that a command applies to itself before it executes its program: no capabilities, Landlock's rules,
//! a filter of system calls. The daemon decides them, the supervisor prepares them, and the command's process applies
//! them; they can't be undone.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::landlock::{self, LandlockRules};
use super::seccomp::{self, SystemCalls};

/// The restrictions that a command applies to itself before it executes its program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Confinement {
    pub landlock: Option<LandlockRules>,
    pub calls: Option<SystemCalls>,
    /// Without the powers of the superuser, and without a way to get any.
    pub unprivileged: bool,
    /// Except for those over files that belong to others.
    pub powers_over_files: bool,
}

/// The superuser's powers over files that belong to others.
const FILE_POWERS: CapabilitySet = CapabilitySet::CHOWN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER);

/// A confinement with all that can fail early done.
#[derive(Debug)]
pub(crate) struct PreparedConfinement {
    landlock: Option<::landlock::RulesetCreated>,
    filters: Vec<seccompiler::BpfProgram>,
    unprivileged: bool,
    powers_over_files: bool,
}

impl PreparedConfinement {
    pub(crate) fn new(confinement: &Confinement) -> io::Result<PreparedConfinement> {
        let landlock = confinement.landlock.as_ref().map(landlock::ruleset).transpose()?;
        let filters =
            confinement.calls.map(seccomp::compile_programs).transpose().map_err(io::Error::other)?.unwrap_or_default();
        let Confinement { unprivileged, powers_over_files, .. } = *confinement;
        Ok(PreparedConfinement { landlock, filters, unprivileged, powers_over_files })
    }

    /// There is no way back.
    pub(crate) fn confine(self) -> io::Result<()> {
        if self.unprivileged {
            rustix::thread::set_no_new_privs(true)?;
            // The remaining capabilities are those that bubblewrap was told to leave: power over files, all of which it
            // chose.
            let kept = if self.powers_over_files { FILE_POWERS } else { CapabilitySet::empty() };
            let left = rustix::thread::capabilities(None)?.permitted & kept;
            let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
            rustix::thread::set_capabilities(None, sets)?;
        }
        if let Some(ruleset) = self.landlock {
            ruleset.restrict_self().map_err(io::Error::other)?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}
