//! `cargo xtask bench`: runs the bench programs, shows one table, writes `bench.json` into the target folder.
//!
//! A goal that is missed is shown, not an error: benchmarks are read by people, they are not tests with a clock. A bench
//! program that fails is an error, after the others have run.

mod row;
mod table;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{cargo, tools};
use row::Row;

/// Benches that count instructions: they re-run themselves under callgrind.
const COUNTING: &[&str] = &["kernel"];

/// One bench target of the workspace.
#[derive(Debug)]
struct Bench {
    package: String,
    name: String,
}

pub(crate) fn run(names: &[String]) -> Result<()> {
    let (benches, target_dir) = discover()?;
    let benches = select(benches, names)?;
    if benches.iter().any(|bench| COUNTING.contains(&bench.name.as_str())) {
        tools::ensure_all(&[tools::VALGRIND])?;
    }

    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for bench in &benches {
        if let Err(error) = measure(bench, names, &mut rows) {
            eprintln!("{error:#}");
            failed.push(bench.name.as_str());
        }
    }

    print!("\n{}", table::render(&rows));
    let judged: Vec<bool> = rows.iter().filter_map(|row| row.met).collect();
    println!("\n{} of {} goals met", judged.iter().filter(|&&met| met).count(), judged.len());

    let path = target_dir.join("bench.json");
    let json = Value::Array(rows.into_iter().map(|row| row.json).collect());
    std::fs::write(&path, format!("{json:#}\n")).with_context(|| format!("writing {}", path.display()))?;
    println!("written to {}", path.display());
    ensure!(failed.is_empty(), "these benches failed: {}; what they printed is above", failed.join(", "));
    Ok(())
}

/// The bench targets that the workspace has, so that a new one needs no line here.
fn discover() -> Result<(Vec<Bench>, PathBuf)> {
    let text = cargo::read("cargo", &["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&text).context("reading `cargo metadata`")?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();

    let mut benches = Vec::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]) {
            if list(&target["kind"]).iter().any(|kind| kind == "bench")
                && let (Some(package), Some(name)) = (package["name"].as_str(), target["name"].as_str())
            {
                benches.push(Bench { package: package.to_owned(), name: name.to_owned() });
            }
        }
    }
    let target_dir = metadata["target_directory"].as_str().context("`cargo metadata` names no target_directory")?;
    Ok((benches, PathBuf::from(target_dir)))
}

/// `ledger` and `ledger.append` both select the bench `ledger`; no name selects all.
fn select(benches: Vec<Bench>, names: &[String]) -> Result<Vec<Bench>> {
    let bench_of = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    for name in names {
        ensure!(
            benches.iter().any(|bench| bench.name == bench_of(name)),
            "there is no bench for {name}; there is: {}",
            benches.iter().map(|bench| bench.name.as_str()).collect::<Vec<_>>().join(", ")
        );
    }
    let wanted = |bench: &Bench| names.is_empty() || names.iter().any(|name| bench_of(name) == bench.name);
    Ok(benches.into_iter().filter(wanted).collect())
}

/// `ledger.append` asks for `ledger.append.64` too.
fn is_under(row: &str, name: &str) -> bool {
    row.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Runs one bench and takes its rows as they come. The names of rows are passed on, so that a bench can measure only
/// those; rows that were not asked for are dropped here in any case.
fn measure(bench: &Bench, names: &[String], rows: &mut Vec<Row>) -> Result<()> {
    let prefix = format!("{}.", bench.name);
    let all = names.is_empty() || names.contains(&bench.name);
    let only: Vec<&str> = if all {
        Vec::new()
    } else {
        names.iter().map(String::as_str).filter(|name| name.starts_with(&prefix)).collect()
    };

    let mut args = vec!["bench", "-p", &bench.package, "--bench", &bench.name];
    if !only.is_empty() {
        args.push("--");
        args.extend(&only);
    }
    eprintln!("{}", cargo::line("cargo", &args));
    let mut child = cargo::command("cargo", &args).stdout(Stdio::piped()).spawn().context("`cargo` does not start")?;
    let stdout = child.stdout.take().context("a child with a piped stdout has one")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        match Row::parse(&line) {
            Ok(row) if only.is_empty() || only.iter().any(|name| is_under(&row.name, name)) => {
                eprintln!("  {}", row.name);
                rows.push(row);
            }
            Ok(_) => {}
            Err(_) if line.trim().is_empty() => {}
            Err(error) => eprintln!("{line}\n  ^ not a row: {error:#}"),
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "bench {} failed ({status})", bench.name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Bench, select};

    fn chosen(names: &[&str]) -> Result<String, String> {
        let benches =
            ["ledger", "kernel"].map(|name| Bench { package: format!("abide-{name}"), name: name.to_owned() });
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        match select(benches.into(), &names) {
            Ok(benches) => Ok(benches.iter().map(|bench| bench.name.as_str()).collect::<Vec<_>>().join(" ")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_select_benches_by_their_first_word() {
        assert_eq!(chosen(&[]), Ok("ledger kernel".into()));
        assert_eq!(chosen(&["kernel"]), Ok("kernel".into()));
        assert_eq!(chosen(&["ledger.append", "ledger.boot"]), Ok("ledger".into()));
        assert_eq!(chosen(&["disk.append"]), Err("there is no bench for disk.append; there is: ledger, kernel".into()));
    }
}
