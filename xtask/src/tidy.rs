//! `cargo xtask tidy`: rules about the source tree that neither the compiler nor clippy knows. docs/testing.md lists them.
//!
//! It reads files and nothing else: no build, no network, no history. A finding has a place, the problem and what to do.

mod commands;
mod cycles;
mod generated;
mod imports;
mod json;
mod lexer;
mod links;
mod markdown;
mod ratchet;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

pub(crate) use self::commands::Command;
use self::ratchet::Table;
use crate::cargo;

/// Where the exceptions are recorded.
const RECORDS: &str = "xtask/tidy.toml";
/// Places that a finding shows, unless all are asked for.
const PLACES: usize = 20;

/// A rule that is broken.
#[derive(Debug)]
struct Finding {
    place: String,
    problem: String,
    /// How to mend it.
    action: String,
    /// Further places of the same problem.
    more: Vec<String>,
}

/// A line of a file, and what stands there.
#[derive(Debug, Clone, Default)]
struct Location {
    path: String,
    line: usize,
    text: String,
}

impl Location {
    fn new(path: &str, line: usize, text: &str) -> Location {
        Location { path: path.to_owned(), line, text: text.to_owned() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " ({})", self.text) }
    }
}

/// All that was measured and found in a tree.
struct Measured {
    tables: Vec<Table>,
    findings: Vec<Finding>,
}

/// `xtask` is the tree of our own commands, for those that documents show.
pub(crate) fn run(args: &[String], xtask: &Command) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => check(xtask),
        ["--update"] => update(xtask),
        ["--all"] => list(xtask),
        _ => bail!("`cargo xtask tidy` takes --update, which lowers {RECORDS}, or --all, which lists every place"),
    }
}

pub(crate) fn check(xtask: &Command) -> Result<()> {
    let root = cargo::root();
    let mut measured = measure(&root, xtask)?;
    let recorded = ratchet::parse(&read_records(&root)?)?;
    let compared = ratchet::compare(&measured.tables, &recorded);
    measured.findings.extend(compared.findings);
    for finding in &measured.findings {
        println!("{}\n    {}\n    next: {}", finding.place, finding.problem, finding.action);
        for place in finding.more.iter().take(PLACES) {
            println!("    also {place}");
        }
        if let Some(rest) = finding.more.len().checked_sub(PLACES).filter(|rest| *rest > 0) {
            println!("    and {rest} more: `cargo xtask tidy --all` lists them");
        }
    }
    if compared.could_be_lower > 0 {
        println!("{} records could be lower: run `cargo xtask tidy --update`", compared.could_be_lower);
    }
    ensure!(measured.findings.is_empty(), "{} findings", measured.findings.len());
    println!("tidy: nothing found");
    Ok(())
}

fn update(xtask: &Command) -> Result<()> {
    let root = cargo::root();
    let measured = measure(&root, xtask)?;
    let recorded = ratchet::parse(&read_records(&root)?)?;
    let lowered = ratchet::lowered(&measured.tables, &recorded);
    fs::write(root.join(RECORDS), ratchet::render(&measured.tables, &lowered))?;
    check(xtask)
}

/// Every place that counts towards a figure above its limit, recorded or not.
fn list(xtask: &Command) -> Result<()> {
    for table in &measure(&cargo::root(), xtask)?.tables {
        println!("# {}\n[{}]", table.about, table.name);
        for (key, figure) in table.figures.iter().filter(|(_, figure)| figure.value > table.limit) {
            println!("\"{key}\" = {}", figure.value);
            for place in &figure.places {
                println!("    {place}");
            }
        }
        println!();
    }
    Ok(())
}

fn read_records(root: &Path) -> Result<String> {
    fs::read_to_string(root.join(RECORDS)).with_context(|| format!("{RECORDS} can't be read"))
}

fn measure(root: &Path, xtask: &Command) -> Result<Measured> {
    let sources = source::load(root)?;
    let documents = markdown::load(root)?;
    let mut tables = vec![
        cycles::table(&sources),
        sizes::files(&sources),
        sizes::functions(&sources),
        json::values(&sources),
        json::macros(&sources),
    ];
    tables.extend(words::tables(&sources, &documents));

    let mut findings = links::check(root, &documents);
    let reference = documents.iter().find(|document| document.path == commands::REFERENCE);
    let reference = reference.with_context(|| format!("{} is not there", commands::REFERENCE))?;
    findings.extend(commands::check(&documents, &commands::reference(reference), xtask));
    findings.extend(generated::check(root, &documents)?);
    Ok(Measured { tables, findings })
}
