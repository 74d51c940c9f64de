//! Commands that documents show exist: `abide …` with its subcommands and options, and `cargo xtask …`.
//!
//! The command line of `abide` is read from docs/commands.md, which a test of `crates/abide` holds against the program
//! itself. So nothing needs to be built here.

use std::collections::{BTreeMap, BTreeSet};

use super::markdown::{Document, Line};
use super::{Finding, Location};

pub(super) const REFERENCE: &str = "docs/commands.md";

/// A command with its subcommands.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) below: BTreeMap<String, Command>,
    /// Options by name, and whether each takes a value.
    pub(crate) options: BTreeMap<String, bool>,
    /// It passes on options that are not its own.
    pub(crate) any_option: bool,
}

/// The command line as the reference lists it: rows that begin with `` `abide …` ``, their options in code spans.
pub(super) fn reference(document: &Document) -> Command {
    let mut root = Command::default();
    for text in &document.prose {
        let spans: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let Some((path, options)) = spans.split_first().filter(|_| text.starts_with("| `abide")) else { continue };
        let mut command = &mut root;
        for word in path.split(' ').skip(1) {
            command = command.below.entry(word.to_owned()).or_default();
        }
        for option in options.iter().filter(|option| option.starts_with('-')) {
            let (name, takes_value) = option.split_once(' ').map_or((*option, false), |(name, _)| (name, true));
            command.options.insert(name.to_owned(), takes_value);
        }
    }
    for always in ["--help", "-h", "--version", "-V"] {
        root.options.insert(always.to_owned(), false);
    }
    root
}

pub(super) fn check(documents: &[Document], abide: &Command, xtask: &Command) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in documents.iter().filter(|document| document.path != REFERENCE) {
        for line in code_lines(document).iter().chain(&document.code_spans()) {
            for words in commands(&line.text) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let problem = match words.as_slice() {
                    [program, rest @ ..] if program.rsplit('/').next() == Some("abide") => unknown(abide, rest),
                    ["cargo", "xtask", rest @ ..] => unknown(xtask, rest),
                    _ => None,
                };
                if let Some(problem) = problem {
                    findings.push(Finding {
                        place: Location::new(&document.path, line.line, &words.join(" ")).to_string(),
                        problem,
                        action: format!("show a command that exists ({REFERENCE}, `cargo xtask help`)"),
                        more: Vec::new(),
                    });
                }
            }
        }
    }
    findings
}

/// The lines of code blocks that may be commands, those that end in a backslash joined with the next. In a block with
/// prompts (`$ `), a line without one is output.
fn code_lines(document: &Document) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for block in &document.code {
        let prompts = block.iter().any(|line| line.text.starts_with("$ "));
        block_lines(block, prompts, &mut found);
    }
    found
}

fn block_lines(block: &[Line], prompts: bool, found: &mut Vec<Line>) {
    let mut goes_on = false;
    for line in block {
        let text = line.text.trim();
        if prompts && !goes_on && !text.starts_with("$ ") {
            continue;
        }
        let part = text.strip_suffix('\\').unwrap_or(text);
        match found.last_mut() {
            Some(last) if goes_on => last.text.push_str(part),
            _ => found.push(Line { line: line.line, text: part.to_owned() }),
        }
        goes_on = text.ends_with('\\');
    }
}

/// The commands of a line, as words. A quoted text is one word, and comments are left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let (mut word, mut quote, mut quoted) = (String::new(), None, false);
    let line = line.trim().trim_start_matches("$ ");
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                quoted = true;
            }
            (None, '#') if word.is_empty() => break,
            (None, ';' | ' ') => {
                let separates = matches!(word.as_str(), "|" | "||" | "&&" | "&") && !quoted;
                if separates {
                    found.push(Vec::new());
                } else if let Some(last) = found.last_mut().filter(|_| !word.is_empty() || quoted) {
                    last.push(std::mem::take(&mut word));
                }
                word.clear();
                quoted = false;
                if letter == ';' {
                    found.push(Vec::new());
                }
            }
            (None, _) => word.push(letter),
        }
    }
    for words in &mut found {
        // `NAME=value abide …`
        let variables = words.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
        words.drain(..variables);
    }
    found
}

/// The first error in the words after the program's name, if there is one.
fn unknown(root: &Command, words: &[&str]) -> Option<String> {
    let (mut command, mut path) = (root, Vec::<&str>::new());
    let (mut options, mut value_follows) = (BTreeSet::new(), false);
    for word in words {
        let word = word.trim_matches(['[', ']']);
        // An abbreviation: the rest is not spelled out.
        if word.contains('…') || word.contains("...") {
            break;
        }
        if word.starts_with(['>', '<']) || std::mem::take(&mut value_follows) {
            continue;
        }
        if word == "--" {
            break;
        }
        if word.starts_with('-') && word.len() > 1 {
            for option in word.split('|') {
                let name = option.split('=').next().unwrap_or(option).to_owned();
                let known = command.options.get(&name).or_else(|| root.options.get(&name));
                value_follows = known.copied().unwrap_or(false) && !option.contains('=');
                options.insert(name);
            }
            continue;
        }
        if command.below.is_empty() {
            continue;
        }
        // `agent create|set ID`: either of them.
        let alternatives: Vec<&str> = word.split('|').collect();
        let placeholder = word.chars().all(|it| it.is_uppercase() || matches!(it, '_' | '|'));
        if placeholder && !word.is_empty() {
            break;
        }
        if let Some(unknown) = alternatives.iter().find(|word| !command.below.contains_key(**word)) {
            path.push(unknown);
            return Some(format!("there is no command `{}`", path.join(" ")));
        }
        path.push(alternatives[0]);
        command = &command.below[alternatives[0]];
    }
    let known = |option: &String| command.options.contains_key(option) || root.options.contains_key(option);
    let option = options.iter().find(|option| !command.any_option && !known(option))?;
    Some(format!("`{}` has no option {option}", path.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::super::markdown::parse;
    use super::{Command, check, commands, reference};

    fn abide() -> Command {
        reference(&parse(
            "docs/commands.md",
            "| command | does | options |\n|---|---|---|\n| `abide` | | `--home DIR`, `--json` |\n| `abide up` | Runs | `--model M` |\n\
             | `abide agent` | | |\n| `abide agent create` | Makes | `--workspace DIR`, `--tree` |\n| `abide agent set` | | `--tree` |\n",
        ))
    }

    fn xtask() -> Command {
        let mut sim = Command { any_option: true, ..Command::default() };
        sim.options.insert("--seeds".to_owned(), true);
        let below = [("sim".to_owned(), sim), ("test".to_owned(), Command::default())];
        Command { below: below.into(), ..Command::default() }
    }

    fn problems(text: &str) -> Vec<String> {
        let documents = [parse("docs/a.md", text)];
        check(&documents, &abide(), &xtask()).into_iter().map(|it| format!("{}: {}", it.place, it.problem)).collect()
    }

    #[test]
    fn commands_of_code_blocks_exist() {
        let text = "```console\n$ abide --home agent up --model script/echo   # comment: abide none\n\
                    $ A=b abide agent create x --workspace=d > out; abide nothing\n```\n\
                    ```\nabide agent create --tee && cargo xtask tset\n```\n```\nabide is up\n\
                    $ echo \"abide none; abide none\" | target/release/abide agent make \\\n  --tree\nabide up\n```\n";
        assert_eq!(
            problems(text),
            [
                "docs/a.md:3 (abide nothing): there is no command `nothing`",
                "docs/a.md:6 (abide agent create --tee): `agent create` has no option --tee",
                "docs/a.md:6 (cargo xtask tset): there is no command `tset`",
                "docs/a.md:10 (target/release/abide agent make --tree): there is no command `agent make`",
            ]
        );
    }

    #[test]
    fn spans_may_abbreviate() {
        assert!(
            problems(
                "`abide agent create|set ID --tree|--json` `abide agent set --…` `abide COMMAND` `abide` `abide …`\n"
            )
            .is_empty()
        );
        assert!(problems("`cargo xtask sim --seeds 5 --world live` `abide agent create [--tree]`\n").is_empty());
        assert_eq!(problems("`abide agent create|sett ID`\n").len(), 1);
        assert_eq!(problems("`abide agent set --workspace DIR`\n").len(), 1);
        assert_eq!(problems("`abide agent set --tree|--none`\n").len(), 1);
    }

    #[test]
    fn a_line_is_read_as_a_shell_would() {
        assert_eq!(commands("$ a 'b c' \"d;e\" # f"), [vec!["a", "b c", "d;e"]]);
        assert_eq!(commands("a; b | c && d"), [vec!["a"], vec!["b"], vec!["c"], vec!["d"]]);
    }
}
