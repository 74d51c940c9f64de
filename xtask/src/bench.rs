//! `cargo xtask bench`: runs the bench programs, shows one table, writes `bench.json` into the target folder.
//!
//! A goal that is missed is shown, not an error: benchmarks are read by people, they are not tests with a clock. A bench
//! program that fails is an error, after the others have run.

mod row;
mod table;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{cargo, tools};
use row::Row;

/// Benches that count instructions: they re-run themselves under callgrind.
const COUNTING: &[&str] = &["kernel", "engine"];

/// One bench target of the workspace.
#[derive(Debug)]
struct Bench {
    package: String,
    name: String,
    /// Rows that it prints under another bench's name, as its package's manifest says: what a row measures and which
    /// crate can measure it are two things.
    rows: Vec<String>,
}

/// A bench to run.
#[derive(Debug)]
struct Chosen {
    bench: Bench,
    /// The names that asked for some of its rows; none when all of them were asked for.
    only: Vec<String>,
}

pub(crate) fn run(names: &[String]) -> Result<()> {
    let (benches, target_dir) = discover()?;
    let chosen = select(benches, names)?;
    if chosen.iter().any(|chosen| COUNTING.contains(&chosen.bench.name.as_str())) {
        tools::ensure_all(&[tools::VALGRIND])?;
    }

    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for chosen in &chosen {
        if let Err(error) = measure(chosen, &mut rows) {
            eprintln!("{error:#}");
            failed.push(chosen.bench.name.as_str());
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
        let rows = list(&package["metadata"]["bench"]["rows"]);
        let rows: Vec<String> = rows.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        for target in list(&package["targets"]) {
            if list(&target["kind"]).iter().any(|kind| kind == "bench")
                && let (Some(package), Some(name)) = (package["name"].as_str(), target["name"].as_str())
            {
                benches.push(Bench { package: package.to_owned(), name: name.to_owned(), rows: rows.clone() });
            }
        }
    }
    let target_dir = metadata["target_directory"].as_str().context("`cargo metadata` names no target_directory")?;
    Ok((benches, PathBuf::from(target_dir)))
}

/// `ledger` selects the bench `ledger`, and so does `ledger.append`, unless another bench prints that row; no name
/// selects all.
fn select(benches: Vec<Bench>, names: &[String]) -> Result<Vec<Chosen>> {
    let mut chosen: Vec<Chosen> = benches.into_iter().map(|bench| Chosen { bench, only: Vec::new() }).collect();
    if names.is_empty() {
        return Ok(chosen);
    }
    for name in names {
        let first_word = name.split('.').next().unwrap_or(name);
        let find = |is_it: &dyn Fn(&Bench) -> bool| chosen.iter().position(|chosen| is_it(&chosen.bench));
        let owner = find(&|bench| bench.name == *name)
            .or_else(|| find(&|bench| bench.rows.iter().any(|row| is_under(row, name))))
            .or_else(|| find(&|bench| bench.name == first_word));
        let Some(owner) = owner else {
            let known: Vec<&str> = chosen.iter().map(|chosen| chosen.bench.name.as_str()).collect();
            bail!("there is no bench for {name}; there is: {}", known.join(", "));
        };
        chosen[owner].only.push(name.clone());
    }
    chosen.retain(|chosen| !chosen.only.is_empty());
    for Chosen { bench, only } in &mut chosen {
        if only.contains(&bench.name) {
            only.clear();
        }
    }
    Ok(chosen)
}

/// `ledger.append` asks for `ledger.append.64` too.
fn is_under(row: &str, name: &str) -> bool {
    row.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Runs one bench and takes its rows as they come. The names of rows are passed on, so that a bench can measure only
/// those; rows that were not asked for are dropped here in any case.
fn measure(Chosen { bench, only }: &Chosen, rows: &mut Vec<Row>) -> Result<()> {
    let mut args = vec!["bench", "-p", &bench.package, "--bench", &bench.name];
    if !only.is_empty() {
        args.push("--");
        args.extend(only.iter().map(String::as_str));
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
        let benches = [("engine", vec!["ledger.boot".to_owned()]), ("kernel", vec![]), ("ledger", vec![])]
            .map(|(name, rows)| Bench { package: format!("abide-{name}"), name: name.to_owned(), rows });
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let shown = |chosen: super::Chosen| format!("{}[{}]", chosen.bench.name, chosen.only.join(" "));
        match select(benches.into(), &names) {
            Ok(chosen) => Ok(chosen.into_iter().map(shown).collect::<Vec<_>>().join(" ")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_select_benches_by_their_first_word() {
        assert_eq!(chosen(&[]), Ok("engine[] kernel[] ledger[]".into()));
        assert_eq!(chosen(&["kernel"]), Ok("kernel[]".into()));
        assert_eq!(chosen(&["ledger.append", "ledger.read"]), Ok("ledger[ledger.append ledger.read]".into()));
        assert_eq!(
            chosen(&["disk.append"]),
            Err("there is no bench for disk.append; there is: engine, kernel, ledger".into())
        );
    }

    #[test]
    fn a_row_selects_the_bench_that_prints_it() {
        assert_eq!(chosen(&["ledger.boot"]), Ok("engine[ledger.boot]".into()));
        assert_eq!(chosen(&["ledger"]), Ok("ledger[]".into()));
        assert_eq!(chosen(&["ledger.boot", "engine"]), Ok("engine[]".into()));
        assert_eq!(chosen(&["ledger.boot", "ledger.append"]), Ok("engine[ledger.boot] ledger[ledger.append]".into()));
    }
}
