//! Documents name the tests that hold their rules: the threat model in tables, the scheduler's contract and the
//! architecture as `crate: test`. A name without a test would be a promise that nothing holds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all functions in the Rust files below a folder, alone and as `file::name`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let file = path.file_stem().unwrap().to_string_lossy();
            let written = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(').map(|(name, _)| name));
            for name in written.chain(made_by_macro(&text)) {
                found.insert(name.to_owned());
                found.insert(format!("{file}::{name}"));
            }
        }
    }
}

/// A macro of the simulator makes a test of each line `name: bug;`.
fn made_by_macro(text: &str) -> impl Iterator<Item = &str> {
    let is_made = |line: &&str| line.contains(": Bug::") && line.ends_with(';');
    text.lines().map(str::trim).filter(is_made).filter_map(|line| line.split_once(':').map(|(name, _)| name))
}

/// The names in the last column of every table whose last column is called `test`.
fn named(document: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_table = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", .., "test", ""] => in_table = true,
            ["", .., last, ""] if in_table => {
                names.extend(last.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
            }
            _ => in_table = false,
        }
    }
    names.retain(|name| !name.is_empty() && !name.starts_with('-'));
    names
}

/// Crates and the tests of them that a document names as `crate: test, test`.
fn cited(document: &str) -> Vec<(&str, &str)> {
    let spans = document.split('`').skip(1).step_by(2);
    let of_crates = spans.filter_map(|span| span.split_once(": ")).filter(|(owner, _)| is_crate(owner));
    of_crates.flat_map(|(owner, names)| names.split(',').map(move |name| (owner, name.trim()))).collect()
}

fn is_crate(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_lowercase())
        && root().join("crates").join(name).is_dir()
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut there = BTreeSet::new();
    for folder in ["crates/effects/src", "crates/effects/tests", "crates/abide/tests"] {
        functions(&root().join(folder), &mut there);
    }
    for (document, least) in [("docs/sandbox.md", 50), ("docs/repositories.md", 15)] {
        let names = named(&fs::read_to_string(root().join(document)).unwrap());
        assert!(names.len() >= least, "{document} names {} tests", names.len());
        let missing: Vec<&String> = names.iter().filter(|name| !there.contains(*name)).collect();
        assert!(missing.is_empty(), "{document} names tests that do not exist: {missing:?}");
    }
}

#[test]
fn every_test_that_a_rule_names_exists() {
    for (document, least) in [("docs/scheduler.md", 200), ("docs/architecture.md", 50)] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let cited = cited(&text);
        assert!(cited.len() >= least, "{document} names {} tests", cited.len());
        for owner in cited.iter().map(|(owner, _)| *owner).collect::<BTreeSet<&str>>() {
            let mut there = BTreeSet::new();
            functions(&root().join("crates").join(owner), &mut there);
            let of_owner = cited.iter().filter(|(of, _)| *of == owner).map(|(_, name)| *name);
            let missing: Vec<&str> = of_owner.filter(|name| !there.contains(*name)).collect();
            assert!(missing.is_empty(), "{document} names tests of {owner} that do not exist: {missing:?}");
        }
    }
}
