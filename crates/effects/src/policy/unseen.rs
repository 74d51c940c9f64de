//! The files that a call must not reach although the call itself may run: a search of a whole folder is let run, and
//! leaves out what a rule holds back below it. Asked again when a file is opened, so a link that is swapped after the
//! call was judged gets nobody past a `deny`.

use std::path::Path;

use abide_kernel::tool::FileCall;

use super::spellings::Spellings;
use super::subject::Subject;
use super::{Action, Caller, Policy};
use crate::files::{ExcludesFiles, Pattern};
use crate::tools::CallSubject;

#[derive(Debug, Clone)]
pub struct Unseen {
    /// The rules about this caller and tool, in order; one without a path decides for every file.
    rules: Vec<(Action, Option<Pattern>)>,
    /// Files that a person has to be asked about are left out as well: nobody said yes to this call.
    leaves_out_asked: bool,
    spellings: Spellings,
}

impl Policy {
    /// None if the call may reach every file. `approved`: a person said yes to this very call.
    #[must_use]
    pub fn unseen(&self, caller: &Caller<'_>, tool: &str, call: &FileCall, approved: bool) -> Option<Unseen> {
        if !self.looks_at_files() {
            return None;
        }
        let subject = Subject::new(CallSubject::of_file(call), caller, true);
        let mut rules = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.about(tool, true, &subject).is_some() && rule.binds(caller)) {
            if rule.command.is_some() || !subject.is_about_files(rule.tool.is_some()) && rule.path.is_some() {
                continue;
            }
            rules.push((rule.action, rule.path.clone()));
            if rule.path.is_none() {
                break;
            }
        }
        let unseen = Unseen { rules, leaves_out_asked: !approved, spellings: subject.into_spellings() };
        let holds_back = unseen.rules.iter().any(|(action, path)| path.is_some() && unseen.holds_back(*action));
        holds_back.then_some(unseen)
    }
}

impl ExcludesFiles for Unseen {
    fn leaves_out(&self, path: &Path) -> bool {
        let matches = |action: Action, pattern: &Pattern| {
            self.spellings.match_path(path, action == Action::Allow, |spelling| pattern.matches(spelling))
        };
        let about = |(action, pattern): &&(Action, Option<Pattern>)| {
            pattern.as_ref().is_none_or(|pattern| matches(*action, pattern))
        };
        let deciding = self.rules.iter().find(about);
        deciding.is_some_and(|(action, pattern)| pattern.is_some() && self.holds_back(*action))
    }
}

impl Unseen {
    fn holds_back(&self, action: Action) -> bool {
        match action {
            Action::Deny => true,
            Action::Ask => self.leaves_out_asked,
            Action::Allow => false,
        }
    }
}
