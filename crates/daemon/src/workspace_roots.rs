//! Where agents may work: below the folders of the setting `workspace_roots`; beyond them on an admin's word; in folders
//! of the system on an admin's explicit word; and never in the whole home folder of the daemon's user, in which keys and
//! settings lie. Judged by real paths. It concerns folders that a caller names: agents keep what is recorded.

use std::path::{Component, Path, PathBuf};

use abide_effects::workspace::{Workspace, apart_from_person, system_folder};
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_server::Reach;

/// In `workspace_roots`, the home folder of the daemon's user.
pub const PERSON: &str = "~";

/// Where a path lies, seen from the roots.
enum Position {
    BelowRoot,
    /// In a folder of the system that a wider root holds.
    SystemBelowRoot,
    System,
    Elsewhere,
}

#[derive(Debug, Clone)]
pub struct WorkspaceRoots {
    roots: Vec<PathBuf>,
    /// The home folder of the daemon's user.
    person: PathBuf,
}

impl WorkspaceRoots {
    /// `named` as the setting has them.
    pub fn new(named: &[String], person: &Path) -> WorkspaceRoots {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let root = |name: &String| match name.strip_prefix(PERSON) {
            Some("") => person.to_path_buf(),
            Some(rest) => person.join(rest.trim_start_matches('/')),
            None => PathBuf::from(name),
        };
        let roots = named.iter().map(root).map(real).collect();
        WorkspaceRoots { roots, person: real(person.to_path_buf()) }
    }

    /// Whether a caller with this reach may have agents work in a folder, by its real path.
    pub fn check(&self, folder: &Path, reach: Reach) -> Result<(), Refusal> {
        let shown = folder.display();
        apart_from_person(folder, &self.person)?;
        match (self.position(folder), reach) {
            (Position::BelowRoot, _) | (_, Reach::System) | (Position::Elsewhere, Reach::Beyond) => Ok(()),
            (Position::SystemBelowRoot | Position::System, Reach::Beyond) => {
                let message = format!("{shown} is a folder of the system");
                let hint = "choose another folder; if it has to be this one, say so: --force, or \"force\": true";
                Err(Refusal::new(ErrorCode::SystemFolder, message).with_hint(hint))
            }
            (Position::SystemBelowRoot, Reach::Roots) => {
                let message = format!("{shown} is a folder of the system");
                Err(Refusal::new(ErrorCode::SystemFolder, message)
                    .with_hint("choose another folder, or ask an admin to attach this one"))
            }
            (Position::System | Position::Elsewhere, Reach::Roots) => {
                let message =
                    format!("{shown} does not lie below the folders in which agents may work: {}", self.named());
                let hint = "choose a folder below one of them, have an admin attach this one, or add its root to the \
                    setting workspace_roots of the daemon";
                Err(Refusal::new(ErrorCode::OutsideRoots, message).with_hint(hint))
            }
        }
    }

    /// Whether such a caller may have agents work in the repository that a folder belongs to. Its files, its records and
    /// the objects that it takes from elsewhere can be read there, so all of them have to lie below a root. The rule about
    /// the whole home folder is about the folder alone: a repository of settings files may have its top there.
    pub fn check_repository(&self, folder: &Workspace, stores: &[PathBuf], reach: Reach) -> Result<(), Refusal> {
        let (Some(git), Reach::Roots) = (&folder.git, reach) else { return Ok(()) };
        let places = [("belongs to the working tree", &git.toplevel), ("has its records in", &git.common_dir)];
        let places = places.into_iter().chain(stores.iter().map(|store| ("takes objects from", store)));
        for (relation, place) in places {
            let why = match self.position(place) {
                Position::BelowRoot => continue,
                Position::SystemBelowRoot => "is a folder of the system".to_owned(),
                Position::System | Position::Elsewhere => {
                    format!("does not lie below the folders in which agents may work: {}", self.named())
                }
            };
            let message =
                format!("the repository of {} {relation} {}, which {why}", folder.path.display(), place.display());
            let hint = "use a clone that lies below one of them and holds its objects itself (git clone --no-local), have \
                an admin attach this one, or add that place to the setting workspace_roots of the daemon";
            return Err(Refusal::new(ErrorCode::OutsideRoots, message).with_hint(hint));
        }
        Ok(())
    }

    fn position(&self, path: &Path) -> Position {
        // It does not exist, and leads anywhere once a folder on the way is made.
        if path.components().any(|part| part == Component::ParentDir) {
            return Position::Elsewhere;
        }
        let system = system_folder(path, &self.person);
        let root = self.roots.iter().find(|root| path.starts_with(root));
        match (root, system) {
            // A root that lies in a folder of the system was named for what is below it.
            (Some(root), Some(system)) if root.starts_with(system) => Position::BelowRoot,
            (Some(_), None) => Position::BelowRoot,
            (Some(_), Some(_)) => Position::SystemBelowRoot,
            (None, Some(_)) => Position::System,
            (None, None) => Position::Elsewhere,
        }
    }

    fn named(&self) -> String {
        match self.roots.as_slice() {
            [] => "there are none".to_owned(),
            roots => roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(roots: &[&str], folder: &str, reach: Reach) -> &'static str {
        let roots: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        let roots = WorkspaceRoots::new(&roots, Path::new("/nowhere/anna"));
        roots.check(Path::new(folder), reach).map_or_else(|refusal| refusal.code.word(), |()| "ok")
    }

    #[test]
    fn a_folder_is_judged_by_where_it_lies_and_who_names_it() {
        for (roots, folder, [operator, admin, forced]) in [
            (&["~"][..], "/nowhere/anna/work", ["ok"; 3]),
            (&["~"], "/nowhere/anna", ["whole_home"; 3]),
            (&["~"], "/nowhere", ["whole_home"; 3]),
            (&["~"], "/nowhere/annabel", ["outside_roots", "ok", "ok"]),
            (&["~"], "/nowhere/bert/work", ["outside_roots", "ok", "ok"]),
            (&["~"], "/tmp/x", ["outside_roots", "ok", "ok"]),
            (&["~"], "/etc", ["outside_roots", "system_folder", "ok"]),
            (&["~"], "/usr/local/bin", ["outside_roots", "system_folder", "ok"]),
            (&["~"], "/root", ["outside_roots", "system_folder", "ok"]),
            (&["~"], "/var/lib/x", ["outside_roots", "system_folder", "ok"]),
            (&["~"], "/var/tmp/x", ["outside_roots", "ok", "ok"]),
            (&["~"], "/usrx", ["outside_roots", "ok", "ok"]),
            (&["~/code"], "/nowhere/anna/work", ["outside_roots", "ok", "ok"]),
            (&["~/code"], "/nowhere/anna/code/a", ["ok"; 3]),
            (&["/nowhere/srv", "~"], "/nowhere/srv", ["ok"; 3]),
            (&["/var/nowhere"], "/var/nowhere/site", ["ok"; 3]),
            (&["/"], "/etc/x", ["system_folder", "system_folder", "ok"]),
            (&["/"], "/data/x", ["ok"; 3]),
            (&[], "/data/x", ["outside_roots", "ok", "ok"]),
        ] {
            for (reach, expected) in [(Reach::Roots, operator), (Reach::Beyond, admin), (Reach::System, forced)] {
                assert_eq!(judged(roots, folder, reach), expected, "{roots:?} {folder} {reach:?}");
            }
        }
        // A service user's home may lie in a folder of the system.
        let service = WorkspaceRoots::new(&["~".to_owned()], Path::new("/var/lib/nowhere"));
        assert!(service.check(Path::new("/var/lib/nowhere/work"), Reach::Roots).is_ok());
        assert!(service.check(Path::new("/var/lib/other"), Reach::Roots).is_err());
        let elsewhere = WorkspaceRoots::new(&["/data".to_owned()], Path::new("/var/lib/nowhere"));
        assert!(elsewhere.check(Path::new("/var/lib/nowhere/work"), Reach::Beyond).is_ok());
    }
}
