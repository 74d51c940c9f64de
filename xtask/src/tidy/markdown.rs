//! The documents: README.md, CONTRIBUTING.md and `docs/`, as far as the checks read them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::source::{files, relative};

#[derive(Debug, Default)]
pub(super) struct Document {
    /// From the root of the workspace.
    pub(super) path: String,
    /// Every line outside of code blocks; an empty one in place of each line of them.
    pub(super) prose: Vec<String>,
    pub(super) headings: Vec<Line>,
    /// The lines of each code block.
    pub(super) code: Vec<Vec<Line>>,
}

/// A line or a part of one, and the line's number from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) line: usize,
    pub(super) text: String,
}

pub(super) fn load(root: &Path) -> Result<Vec<Document>> {
    let mut paths = files(&root.join("docs"), "md")?;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    let parsed = paths.iter().map(|path| {
        let text = fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))?;
        Ok(parse(&relative(root, path), &text))
    });
    parsed.collect()
}

pub(super) fn parse(path: &str, text: &str) -> Document {
    let mut document = Document { path: path.to_owned(), ..Document::default() };
    let mut fence = None;
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        let trimmed = text.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => {
                fence = Some(marker);
                document.code.push(Vec::new());
            }
            (Some(open), Some(marker)) if open == marker => fence = None,
            (Some(_), _) => {
                document.code.last_mut().into_iter().for_each(|block| block.push(Line { line, text: text.to_owned() }));
            }
            (None, None) => {
                if let Some(heading) = heading(trimmed) {
                    document.headings.push(Line { line, text: heading.to_owned() });
                }
                document.prose.push(text.to_owned());
                continue;
            }
        }
        document.prose.push(String::new());
    }
    document
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim().trim_end_matches('#').trim_end())
}

impl Document {
    /// Whether it says at its top that a program wrote it.
    pub(super) fn is_generated(&self) -> bool {
        self.prose.iter().take(4).any(|line| line.starts_with("<!-- generated"))
    }

    /// Paragraphs, items, cells and headings, each where it begins and without the marks around it.
    pub(super) fn paragraphs(&self) -> Vec<Line> {
        let mut found: Vec<Line> = Vec::new();
        let mut goes_on = false;
        for (index, text) in self.prose.iter().enumerate() {
            let (line, trimmed) = (index + 1, text.trim());
            if trimmed.starts_with('|') {
                let cells = trimmed.trim_matches('|').split('|').map(plain).filter(|cell| !cell.is_empty());
                found.extend(cells.map(|text| Line { line, text }));
                goes_on = false;
            } else if trimmed.is_empty() {
                goes_on = false;
            } else if let (Some(last), true) = (found.last_mut(), goes_on && !begins_block(trimmed)) {
                last.text.push(' ');
                last.text.push_str(trimmed);
            } else {
                found.push(Line { line, text: plain(trimmed) });
                goes_on = heading(trimmed).is_none();
            }
        }
        found
    }

    /// The texts between backticks in prose.
    pub(super) fn code_spans(&self) -> Vec<Line> {
        let mut found = Vec::new();
        for (index, text) in self.prose.iter().enumerate() {
            let spans = text.split('`').skip(1).step_by(2);
            // An odd number of backticks: a span that goes on in the next line.
            let whole = if text.matches('`').count() % 2 == 0 { usize::MAX } else { text.matches('`').count() / 2 };
            found.extend(spans.take(whole).map(|text| Line { line: index + 1, text: text.to_owned() }));
        }
        found
    }
}

fn begins_block(line: &str) -> bool {
    let numbered = line.split_once(". ").is_some_and(|(number, _)| number.chars().all(|it| it.is_ascii_digit()));
    line.starts_with("- ") || line.starts_with("* ") || line.starts_with("> ") || numbered || heading(line).is_some()
}

fn plain(text: &str) -> String {
    let text = text.trim().trim_start_matches(['#', '-', '>', ' ']).replace("**", "");
    let digits = text.trim_start_matches(|it: char| it.is_ascii_digit());
    match digits.strip_prefix(". ") {
        Some(rest) if digits.len() < text.len() => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_document_is_prose_headings_and_code() {
        let document =
            parse("a.md", "# A `b`\ntext `c` and\n`d`\n```console\n# no heading\n$ abide up\n```\n## E ##\n");
        let headings: Vec<_> = document.headings.iter().map(|it| (it.line, it.text.as_str())).collect();
        assert_eq!(headings, [(1, "A `b`"), (8, "E")]);
        let lines: Vec<_> = document.code.concat().iter().map(|it| it.line).collect();
        assert_eq!(lines, [5, 6]);
        let spans: Vec<_> = document.code_spans().into_iter().map(|it| (it.line, it.text)).collect();
        assert_eq!(spans, [(1, "b".to_owned()), (2, "c".to_owned()), (3, "d".to_owned())]);
    }

    #[test]
    fn paragraphs_are_put_together_and_items_and_cells_are_not() {
        let document = parse("a.md", "one\ntwo\n\n- three\n  four\n- five\n1. six\n| a | **b** |\nseven\n");
        let found: Vec<_> = document.paragraphs().into_iter().map(|it| format!("{} {}", it.line, it.text)).collect();
        assert_eq!(found, ["1 one two", "4 three four", "6 five", "7 six", "8 a", "8 b", "9 seven"]);
    }
}
