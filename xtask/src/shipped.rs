//! The program that ships has no planted bug: the `planted` feature is off in every crate that `abide` is built from, and the
//! simulator is not among them.
//!
//! Asked of cargo's own resolution with `abide`'s normal and build dependencies, which is what `cargo build -p abide`
//! compiles. Dev-dependencies are left out on purpose: tests may plant.

use anyhow::{Result, ensure};

use crate::cargo;

const TREE: [&str; 9] = ["tree", "-p", "abide", "-e", "normal,build", "--prefix", "none", "-f", "{p}|{f}"];

/// The same question of everything with every feature. It must say yes, or the first question proves nothing.
const CONTROL: [&str; 9] =
    ["tree", "--workspace", "--all-features", "-e", "normal", "--prefix", "none", "-f", "{p}|{f}"];

pub(crate) fn check() -> Result<()> {
    let tree = cargo::read("cargo", &TREE)?;
    let planted = planted_in(&tree);
    ensure!(
        planted.is_empty(),
        "the `planted` feature is on in a shipped build, in {}: `cargo tree -p abide -e features` shows who turns it on",
        planted.join(", ")
    );
    ensure!(
        !tree.lines().any(|line| line.starts_with("abide-sim ")),
        "the simulator is part of a shipped build: `cargo tree -p abide -i abide-sim` shows who depends on it"
    );
    ensure!(
        !planted_in(&cargo::read("cargo", &CONTROL)?).is_empty(),
        "no crate has a `planted` feature that could be on: was it renamed? Then rename it in xtask/src/shipped.rs too"
    );
    println!("no `planted` feature in `abide` as shipped, no simulator either");
    Ok(())
}

/// The packages whose features, in lines of `package version (path)|feature,feature`, include `planted`.
fn planted_in(tree: &str) -> Vec<&str> {
    let mut packages: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.rsplit_once('|'))
        .filter(|(_, features)| features.split([',', ' ']).any(|feature| feature == "planted"))
        .map(|(package, _)| package.split(' ').next().unwrap_or(package))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::planted_in;

    #[test]
    fn a_planted_feature_is_seen_among_others_and_named_once() {
        let tree = "abide v0.1.0 (/src/abide)|\nserde v1.0.0|default,std (*)\n\
                    abide-kernel v0.1.0 (/src/kernel)|extra,planted (*)\nabide-kernel v0.1.0 (/src/kernel)|extra,planted\n";
        assert_eq!(planted_in(tree), ["abide-kernel"]);
        assert!(planted_in("abide-kernel v0.1.0 (/src/planted)|implanted\n").is_empty());
    }
}
