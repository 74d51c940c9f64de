//! Programs that a repository names, and every call that makes the runtime use git: none of them runs outside of the
//! sandbox. An agent owns its worktree's repository, and in direct mode it could write the user's before it was
//! protected, so each setting is planted in both.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use abide_effects::sandbox::Mechanism;
use abide_effects::workspace::UnsavedWork;
use abide_kernel::time::Time;

use super::{Ground, git, put, try_git};

/// A ground with a program that leaves a trace outside of everything that a sandbox shows.
struct Trap {
    ground: Ground,
    program: PathBuf,
    trace: PathBuf,
}

impl Trap {
    fn new(mechanism: Mechanism) -> Trap {
        let mut ground = Ground::new();
        ground.mechanism = mechanism;
        ground.write(".gitattributes", "* filter=evil diff=evil merge=evil\nnot-utf8 filter=\\377\n");
        ground.commit("attributes");
        let trace = ground.dir.path().canonicalize().unwrap().join("trace");
        fs::create_dir(&trace).unwrap();
        // In the repository, so that a sandboxed git could start it, too.
        let program = ground.repo.join("program");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}/ran'\ncat\n", trace.display());
        put(&program, script);
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-q", "-m", "program"]);
        Trap { ground, program, trace }
    }

    /// Nothing ran where it could be seen.
    fn check(&self, what: &str) {
        let ran = self.trace.join("ran");
        assert!(!ran.exists(), "{what}: {}", fs::read_to_string(&ran).unwrap());
    }
}

/// A way to name a program, by the records of a repository and the folder of its files.
type Plant = fn(&Trap, &Path, &Path);

fn setting(trap: &Trap, records: &Path, key: &str) {
    git(
        trap.ground.dir.path(),
        &["config", "--file", records.join("config").to_str().unwrap(), key, trap.program.to_str().unwrap()],
    );
}

fn append(records: &Path, name: &str, text: &[u8]) {
    fs::create_dir_all(records.join(name).parent().unwrap()).unwrap();
    fs::OpenOptions::new().append(true).create(true).open(records.join(name)).unwrap().write_all(text).unwrap();
}

const PLANTS: &[(&str, Plant)] = &[
    ("filter", |trap, records, _| {
        for key in ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process"] {
            setting(trap, records, key);
        }
    }),
    ("a filter with a name that is not UTF-8", |trap, records, _| {
        let program = trap.program.display();
        let text = format!("[filter \"X\"]\n\tclean = {program}\n\tsmudge = {program}\n");
        append(
            records,
            "config",
            &text.into_bytes().iter().map(|b| if *b == b'X' { 0xff } else { *b }).collect::<Vec<_>>(),
        );
        append(records, "info/attributes", b"* filter=\xff\n");
    }),
    ("diff", |trap, records, _| {
        for key in ["diff.external", "diff.evil.command", "diff.evil.textconv"] {
            setting(trap, records, key);
        }
    }),
    ("merge", |trap, records, _| setting(trap, records, "merge.evil.driver")),
    ("core.fsmonitor", |trap, records, _| setting(trap, records, "core.fsmonitor")),
    ("core.hooksPath and hooks", |trap, records, _| {
        let hooks = records.join("evil-hooks");
        for folder in [&hooks, &records.join("hooks")] {
            for name in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change", "pre-auto-gc"] {
                put(&folder.join(name), fs::read(&trap.program).unwrap());
                fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
            }
        }
        let config = records.join("config");
        git(
            trap.ground.dir.path(),
            &["config", "--file", config.to_str().unwrap(), "core.hooksPath", hooks.to_str().unwrap()],
        );
    }),
    ("commands of transports", |trap, records, _| {
        for key in [
            "core.sshCommand",
            "core.gitProxy",
            "credential.helper",
            "remote.origin.uploadpack",
            "uploadpack.packObjectsHook",
        ] {
            setting(trap, records, key);
        }
    }),
    ("gpg, pager, editor", |trap, records, _| {
        for key in
            ["gpg.program", "core.pager", "core.editor", "sequence.editor", "core.askPass", "trailer.evil.command"]
        {
            setting(trap, records, key);
        }
    }),
    ("include and includeIf", |trap, records, _| {
        let included = records.join("included");
        put(
            &included,
            format!(
                "[filter \"evil\"]\n\tclean = {0}\n\tsmudge = {0}\n[core]\n\tfsmonitor = {0}\n",
                trap.program.display()
            ),
        );
        let path = included.display();
        append(
            records,
            "config",
            format!("[include]\n\tpath = {path}\n[includeIf \"gitdir:/\"]\n\tpath = {path}\n").as_bytes(),
        );
    }),
    ("config.worktree", |trap, records, _| {
        append(records, "config", b"[extensions]\n\tworktreeConfig = true\n");
        append(
            records,
            "config.worktree",
            format!("[filter \"evil\"]\n\tclean = {}\n", trap.program.display()).as_bytes(),
        );
    }),
    ("info/attributes", |trap, records, _| {
        append(records, "info/attributes", b"* filter=other\n");
        setting(trap, records, "filter.other.clean");
        setting(trap, records, "filter.other.smudge");
    }),
    ("a submodule", |trap, _, files| {
        let sub = files.join("sub");
        fs::create_dir_all(&sub).unwrap();
        git(&sub, &["init", "-q"]);
        put(&sub.join("f"), "a");
        put(&sub.join(".gitattributes"), "* filter=evil\n");
        git(&sub, &["add", "-A"]);
        git(&sub, &["commit", "-q", "-m", "sub"]);
        try_git(files, &["add", "sub"]);
        setting(trap, &sub.join(".git"), "filter.evil.clean");
        setting(trap, &sub.join(".git"), "core.fsmonitor");
        put(&sub.join("f"), "b");
    }),
    ("alternates", |trap, records, _| {
        append(records, "objects/info/alternates", format!("{}\n", trap.ground.home.display()).as_bytes());
    }),
    ("commondir", |trap, records, _| {
        let other = trap.ground.repo.with_file_name("other");
        if !other.exists() {
            git(
                trap.ground.dir.path(),
                &["clone", "-q", "--bare", trap.ground.repo.to_str().unwrap(), other.to_str().unwrap()],
            );
            setting(trap, &other, "core.fsmonitor");
            setting(trap, &other, "filter.evil.clean");
        }
        put(&records.join("commondir"), other.to_str().unwrap());
    }),
    ("a replaced .git", |trap, records, files| {
        if records == files.join(".git") && files != trap.ground.repo {
            fs::remove_dir_all(records).unwrap();
            git(files, &["init", "-q"]);
            setting(trap, records, "core.fsmonitor");
            setting(trap, records, "filter.evil.clean");
        }
    }),
    (".git as a file", |trap, records, files| {
        if records == files.join(".git") && files != trap.ground.repo {
            let moved = files.join("records");
            fs::rename(records, &moved).unwrap();
            setting(trap, &moved, "filter.evil.clean");
            put(records, format!("gitdir: {}\n", moved.display()));
        }
    }),
    ("links in .git", |trap, records, _| {
        let outside = trap.trace.join("refs");
        fs::create_dir_all(&outside).unwrap();
        let _there = fs::remove_dir_all(records.join("refs/heads/abide"));
        let _there = symlink(&outside, records.join("refs/heads/abide"));
        let _there = fs::remove_dir_all(records.join("logs"));
        let _there = symlink(&outside, records.join("logs"));
    }),
    ("names that are not UTF-8", |_, _, files| {
        put(&files.join(OsStr::from_bytes(b"name-\xff")), "x");
    }),
];

/// Every call that makes the runtime use git, on a repository whose records were planted before and while it works.
fn use_everything(trap: &Trap, plant: Plant, what: &str) {
    let ground = &trap.ground;
    let repositories = ground.repositories();
    let time = Time::from_ms(1_000);
    // A worktree from before: its own repository is planted.
    let before = ground.worktree("before");
    put(&before.path.join("work"), "work");
    git(&before.path, &["-c", "filter.evil.required=false", "add", "work"]);
    git(&before.path, &["commit", "-q", "-m", "work"]);
    plant(trap, &before.path.join(".git"), &before.path);
    plant(trap, &ground.repo.join(".git"), &ground.repo);
    put(&ground.repo.join("kept.txt"), "changed");
    put(&before.path.join("kept.txt"), "changed");
    // Each call may refuse what it finds. It must not run it.
    if let Ok(workspace) = ground.check(&ground.repo) {
        let _tree = repositories.tree_hash(&workspace);
        for name in ["model", "person"] {
            if name == "person" {
                let _agreed = repositories.record_agreement(&workspace, |_, _| Ok(()));
            }
            let made = repositories.create_worktree(&workspace, &ground.worktrees().join(name), "abide/ada-x");
            trap.check(&format!("{what}: create for a {name}"));
            if let Ok(made) = made {
                put(&made.path.join("kept.txt"), "more");
                plant(trap, &made.path.join(".git"), &made.path);
                let _removed = repositories.remove_worktree(&made, UnsavedWork::Keep, &ground.patches(), time);
                trap.check(&format!("{what}: remove"));
            }
        }
    }
    if let Ok(workspace) = ground.check(&before.path) {
        let _tree = repositories.tree_hash(&workspace);
        // A child's worktree of an agent's own repository.
        let _child = repositories.create_worktree(&workspace, &ground.worktrees().join("child"), "abide/ada-c");
        trap.check(&format!("{what}: a worktree of a worktree"));
    }
    let _refreshed = repositories.refresh_user_refs(&before.path);
    trap.check(&format!("{what}: refresh"));
    let _fetched = repositories.fetch("ada", &ground.repo, Some(&before.path), None);
    trap.check(&format!("{what}: fetch"));
    let _cleared = repositories.clear_worktree(&before.path, &ground.patches(), time);
    trap.check(&format!("{what}: clear at boot"));
    assert!(!trap.trace.join("refs/ada").exists(), "{what}: a link led git out of the repository");
}

fn all_of(mechanism: Mechanism) {
    for (what, plant) in PLANTS {
        let trap = Trap::new(mechanism);
        use_everything(&trap, *plant, what);
    }
}

/// Each way once, and each mechanism: the ways take turns. All ways with each mechanism are a longer test.
#[test]
fn no_program_that_a_repository_names_runs_outside_of_the_sandbox() {
    let mechanisms = [Mechanism::Bubblewrap, Mechanism::None, Mechanism::Landlock];
    for (number, (what, plant)) in PLANTS.iter().enumerate() {
        let trap = Trap::new(mechanisms[number % mechanisms.len()]);
        use_everything(&trap, *plant, what);
    }
}

#[test]
#[ignore = "the whole product takes minutes: cargo xtask hostile"]
fn every_way_to_name_a_program_with_every_mechanism() {
    for mechanism in [Mechanism::Bubblewrap, Mechanism::Landlock, Mechanism::None] {
        all_of(mechanism);
    }
}

/// A background task flips the settings while the runtime works on the repository.
#[test]
fn settings_that_change_while_git_works_are_not_obeyed() {
    for mechanism in [Mechanism::Bubblewrap, Mechanism::None] {
        let trap = Trap::new(mechanism);
        let ground = &trap.ground;
        let config = ground.repo.join(".git/config");
        let good = fs::read(&config).unwrap();
        let program = trap.program.display();
        let evil = format!(
            "{}[filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n[core]\n\tfsmonitor = {program}\n",
            String::from_utf8(good.clone()).unwrap()
        );
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let next = ground.repo.join(".git/next");
                for text in [evil.as_bytes(), good.as_slice()].iter().cycle() {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    fs::write(&next, text).unwrap();
                    fs::rename(&next, &config).unwrap();
                }
            });
            let repositories = ground.repositories();
            for number in 0..5 {
                let workspace = repositories.validate(&ground.repo).unwrap();
                assert!(repositories.tree_hash(&workspace).is_some());
                let folder = ground.worktrees().join(format!("n-{number}"));
                let made = repositories.create_worktree(&workspace, &folder, "abide/ada-x").unwrap();
                put(&made.path.join("kept.txt"), "changed");
                repositories.remove_worktree(&made, UnsavedWork::Keep, &ground.patches(), Time::from_ms(1)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        trap.check("a race");
    }
}

/// The other tests prove something only if the planted programs would run, and if the calls get as far as git.
#[test]
fn an_ordinary_git_runs_the_planted_program_and_the_runtime_works_without_it() {
    for name in ["filter", "core.fsmonitor", "core.hooksPath and hooks", "include and includeIf", "a submodule"] {
        let trap = Trap::new(Mechanism::Bubblewrap);
        let (_, plant) = PLANTS.iter().find(|(what, _)| *what == name).unwrap();
        plant(&trap, &trap.ground.repo.join(".git"), &trap.ground.repo);
        put(&trap.ground.repo.join("kept.txt"), "changed");
        assert!(trap.ground.tree(&trap.ground.workspace()).is_some(), "{name}");
        let worktree = trap.ground.worktree("one");
        put(&worktree.path.join("kept.txt"), "changed");
        assert!(trap.ground.remove(&worktree).unwrap().patch.is_some(), "{name}");
        trap.check(name);
        try_git(&trap.ground.repo, &["status"]);
        try_git(&trap.ground.repo, &["add", "kept.txt"]);
        assert!(trap.trace.join("ran").exists(), "{name}: the trap does not work");
    }
}
