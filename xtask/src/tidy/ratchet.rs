//! Figures that may only shrink, and the file that they are recorded in: `xtask/tidy.toml`.
//!
//! A figure within its table's limit needs no record. One above it needs a record that is at least as high, and a record
//! that nothing needs any more has to go. Tables are only ever lowered by `--update`; raising a figure is an edit by hand,
//! which a reviewer sees.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use anyhow::{Result, bail};

use super::{Finding, Location};

/// A figure in tenths, so that figures per thousand lines have one digit after the point and compare exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tenths(pub(super) usize);

impl Tenths {
    pub(super) fn whole(count: usize) -> Tenths {
        Tenths(count * 10)
    }

    /// Rounded up, so that a figure that grew never hides below the digit.
    pub(super) fn per_thousand(count: usize, lines: usize) -> Tenths {
        Tenths((count * 10_000).div_ceil(lines.max(1)))
    }

    fn parse(text: &str) -> Option<Tenths> {
        let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
        let tenths: usize = (tenths.len() == 1).then(|| tenths.parse().ok()).flatten()?;
        Some(Tenths(whole.parse::<usize>().ok()? * 10 + tenths))
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            tenths => write!(f, "{}.{tenths}", self.0 / 10),
        }
    }
}

/// The figures of one check, those within the limit too.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// A sentence about the figures, for the file.
    pub(super) about: &'static str,
    /// Figures up to this need no record.
    pub(super) limit: Tenths,
    pub(super) figures: BTreeMap<String, Figure>,
    /// How to lower a figure that is too high.
    pub(super) action: &'static str,
}

#[derive(Debug)]
pub(super) struct Figure {
    pub(super) value: Tenths,
    /// Where it comes from.
    pub(super) places: Vec<Location>,
}

/// The tables of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded(BTreeMap<String, BTreeMap<String, Tenths>>);

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) findings: Vec<Finding>,
    /// Records that are higher than what was measured.
    pub(super) could_be_lower: usize,
}

/// The part of TOML that the file needs: tables of `"key" = figure`, and comments.
pub(super) fn parse(text: &str) -> Result<Recorded> {
    let mut recorded = Recorded::default();
    let mut table = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = Some(recorded.0.entry(name.to_owned()).or_default());
            continue;
        }
        let entry = line.rsplit_once(" = ").and_then(|(key, figure)| {
            let key = key.strip_prefix('"')?.strip_suffix('"')?;
            Some((key.to_owned(), Tenths::parse(figure)?))
        });
        match (entry, &mut table) {
            (Some((key, figure)), Some(table)) => table.insert(key, figure),
            _ => bail!("xtask/tidy.toml:{}: {line:?} is neither a table nor `\"key\" = figure`", index + 1),
        };
    }
    Ok(recorded)
}

pub(super) fn compare(tables: &[Table], recorded: &Recorded) -> Compared {
    let mut compared = Compared::default();
    let none = BTreeMap::new();
    for table in tables {
        let records = recorded.0.get(table.name).unwrap_or(&none);
        for (key, figure) in &table.figures {
            let allowed = records.get(key).copied().unwrap_or(table.limit).max(table.limit);
            if figure.value > allowed {
                compared.findings.push(Finding {
                    place: figure.places.first().map_or_else(|| key.clone(), Location::to_string),
                    problem: format!("[{}] {key}: {}, allowed are {allowed}", table.name, figure.value),
                    action: table.action.to_owned(),
                    more: figure.places.iter().skip(1).map(Location::to_string).collect(),
                });
            }
        }
        for (key, record) in records {
            let value = table.figures.get(key).map_or(table.limit, |figure| figure.value);
            if value <= table.limit {
                compared.findings.push(Finding {
                    place: "xtask/tidy.toml".to_owned(),
                    problem: format!(
                        "[{}] {key}: recorded as {record}, and nothing is above {}",
                        table.name, table.limit
                    ),
                    action: "run `cargo xtask tidy --update`, which removes the record".to_owned(),
                    more: Vec::new(),
                });
            } else if value < *record {
                compared.could_be_lower += 1;
            }
        }
    }
    for name in recorded.0.keys().filter(|name| tables.iter().all(|table| table.name != name.as_str())) {
        compared.findings.push(Finding {
            place: "xtask/tidy.toml".to_owned(),
            problem: format!("there is no table [{name}]"),
            action: "run `cargo xtask tidy --update`, which removes it".to_owned(),
            more: Vec::new(),
        });
    }
    compared
}

/// The records, lowered to the figures. No record is added, and a figure that grew leaves its record as it is.
pub(super) fn lowered(tables: &[Table], recorded: &Recorded) -> Recorded {
    let mut lower = Recorded::default();
    for table in tables {
        let Some(records) = recorded.0.get(table.name) else { continue };
        for (key, record) in records {
            let Some(figure) = table.figures.get(key).filter(|figure| figure.value > table.limit) else { continue };
            let entry = lower.0.entry(table.name.to_owned()).or_default();
            entry.insert(key.clone(), figure.value.min(*record));
        }
    }
    lower
}

const HEAD: &str = "\
# Exceptions to the checks of `cargo xtask tidy` (docs/testing.md). They may only shrink: `cargo xtask tidy --update` lowers
# and removes them, and never raises or adds one. After a rename, change the key by hand. `cargo xtask tidy --all` lists
# the places behind each figure.
";

pub(super) fn render(tables: &[Table], recorded: &Recorded) -> String {
    let mut text = HEAD.to_owned();
    for table in tables {
        let Some(records) = recorded.0.get(table.name).filter(|records| !records.is_empty()) else { continue };
        let _written = write!(text, "\n# {}\n[{}]\n", table.about, table.name);
        for (key, record) in records {
            let _written = writeln!(text, "\"{key}\" = {record}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Figure, Recorded, Table, Tenths, compare, lowered, parse, render};

    fn table(figures: &[(&str, usize)]) -> Vec<Table> {
        let figures = figures
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Figure { value: Tenths(*value), places: Vec::new() }));
        let figures = figures.collect();
        vec![Table { name: "lines", about: "Lines.", limit: Tenths(100), figures, action: "split it" }]
    }

    fn problems(figures: &[(&str, usize)], recorded: &str) -> Vec<String> {
        let compared = compare(&table(figures), &parse(recorded).unwrap());
        compared.findings.into_iter().map(|finding| finding.problem).collect()
    }

    /// Every figure above its limit, recorded as it is: the file of a tree that is accepted as a whole.
    fn as_measured(tables: &[Table]) -> Recorded {
        let mut recorded = Recorded::default();
        for table in tables {
            for (key, figure) in table.figures.iter().filter(|(_, figure)| figure.value > table.limit) {
                recorded.0.entry(table.name.to_owned()).or_default().insert(key.clone(), figure.value);
            }
        }
        recorded
    }

    #[test]
    fn a_figure_may_reach_its_record_and_no_more() {
        let record = "[lines]\n\"a\" = 12.5\n";
        assert!(problems(&[("a", 125)], record).is_empty());
        assert_eq!(problems(&[("a", 126)], record), ["[lines] a: 12.6, allowed are 12.5"]);
        assert_eq!(problems(&[("a", 125), ("b", 101)], record), ["[lines] b: 10.1, allowed are 10"]);
        assert!(problems(&[("b", 100)], "").is_empty());
    }

    #[test]
    fn a_record_that_nothing_needs_is_a_finding() {
        let stale = ["[lines] a: recorded as 12.5, and nothing is above 10"];
        assert_eq!(problems(&[("a", 100)], "[lines]\n\"a\" = 12.5\n"), stale);
        assert_eq!(problems(&[], "[lines]\n\"a\" = 12.5\n"), stale);
        assert_eq!(problems(&[], "[words]\n"), ["there is no table [words]"]);
    }

    #[test]
    fn an_update_lowers_and_removes_and_never_raises_or_adds() {
        let recorded = parse("[lines]\n\"grew\" = 11\n\"shrank\" = 20\n\"gone\" = 20\n\"within\" = 20\n").unwrap();
        let tables = table(&[("grew", 150), ("shrank", 150), ("within", 90), ("new", 150)]);
        assert_eq!(lowered(&tables, &recorded), parse("[lines]\n\"grew\" = 11\n\"shrank\" = 15\n").unwrap());
        assert_eq!(compare(&tables, &recorded).could_be_lower, 1);
    }

    #[test]
    fn a_file_reads_as_it_was_written() {
        let tables = table(&[("a b = c", 125), ("d", 3000)]);
        let recorded = as_measured(&tables);
        let text = render(&tables, &recorded);
        assert!(text.ends_with("\n# Lines.\n[lines]\n\"a b = c\" = 12.5\n\"d\" = 300\n"), "{text}");
        assert_eq!(parse(&text).unwrap(), recorded);
        assert!(parse("\"a\" = 1\n").is_err());
        assert!(parse("[lines]\na = 1\n").unwrap_err().to_string().contains("tidy.toml:2"));
    }

    #[test]
    fn figures_per_thousand_round_up() {
        assert_eq!(Tenths::per_thousand(1, 3000).to_string(), "0.4");
        assert_eq!(Tenths::per_thousand(5, 1000), Tenths::whole(5));
    }
}
