//! A shell command as rules read it: whole, and in the parts that run one after the other.
//!
//! Rules that hold back look at every reading there is. Rules that let pass look at one reading only, and a command that
//! can't be read for certain is not let pass.

use super::wild::Wild;

/// Between commands, for rules that let pass.
const BETWEEN: [char; 5] = ['\n', '\r', ';', '&', '|'];
/// The same with brackets, for rules that hold back.
const BRACKETS: [char; 10] = ['\n', '\r', ';', '&', '|', '(', ')', '{', '}', '`'];
/// What is made up when the command runs.
const MADE_UP: [&str; 2] = ["`", "$("];
/// After these, quotes may mean something else than is read here.
const OTHER_QUOTES: [&str; 3] = ["${", "$'", "$\""];
const NOWHERE: &str = "/dev/null";

/// Whether the whole command or any part of it matches, with continued lines joined and as they are written.
pub(super) fn any_part_matches(command: &str, wanted: &Wild) -> bool {
    let joined = command.replace("\\\r\n", "").replace("\\\n", "");
    [command, joined.as_str()].into_iter().any(|text| {
        wanted.matches(&on_one_line(text))
            || parts(text, &BRACKETS).any(|part| wanted.matches(&part) || wanted.matches(without_words(&part)))
    })
}

/// Whether every part matches, nothing is made up when the command runs, and nothing is redirected.
pub(super) fn every_part_matches(command: &str, wanted: &Wild) -> bool {
    let Some(plain) = without_redirections(command) else { return false };
    let mut parts = parts(&plain, &BETWEEN).peekable();
    parts.peek().is_some() && parts.all(|part| wanted.matches(&part))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// The command with continued lines joined and harmless redirections left out: `N>&M`, `>/dev/null`, `</dev/null`. None
/// if anything else is redirected, or if it can't be told what is in quotes.
fn without_redirections(command: &str) -> Option<String> {
    // A sign may be spread over two lines.
    let joined = command.replace("\\\n", "");
    let has = |signs: &[&str]| signs.iter().any(|sign| command.contains(sign) || joined.contains(sign));
    if has(&MADE_UP) {
        return None;
    }
    // In a comment neither quotes nor a backslash at the end mean anything.
    let has_comment = |text: &str| {
        let begins_word = |at: usize| text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        text.match_indices('#').any(|(at, _)| begins_word(at))
    };
    if has_comment(command) || has_comment(&joined) || has(&OTHER_QUOTES) {
        let plain = !command.contains(['<', '>']) && !command.contains("\\\n");
        return plain.then(|| command.to_owned());
    }
    let mut quotes = Quotes::None;
    let (mut plain, mut rest) = (String::new(), command);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match (quotes, c) {
            (Quotes::None | Quotes::Double, '\\') => {
                let next = after.chars().next()?;
                if next != '\n' {
                    plain.extend([c, next]);
                }
                rest = &after[next.len_utf8()..];
                continue;
            }
            (Quotes::None, '<' | '>') => {
                rest = after_harmless(rest)?;
                // Its number is a word of its own, or part of the word before it.
                let word = plain.trim_end_matches(|c: char| c.is_ascii_digit());
                if word.is_empty() || word.ends_with(|c: char| c.is_whitespace() || BETWEEN.contains(&c)) {
                    plain.truncate(word.len());
                }
                plain.push(' ');
                continue;
            }
            (Quotes::None, '\'') => quotes = Quotes::Single,
            (Quotes::None, '"') => quotes = Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => quotes = Quotes::None,
            _ => {}
        }
        plain.push(c);
        rest = after;
    }
    (quotes == Quotes::None).then_some(plain)
}

/// What follows a redirection that changes no file.
fn after_harmless(text: &str) -> Option<&str> {
    let ends_word = |rest: &str| rest.chars().next().is_none_or(|c| c.is_whitespace() || BETWEEN.contains(&c));
    if let Some(target) = text.strip_prefix(">&") {
        let rest = target.trim_start_matches(|c: char| c.is_ascii_digit());
        return (rest.len() < target.len() && ends_word(rest)).then_some(rest);
    }
    let target = text.strip_prefix(">>").or_else(|| text.strip_prefix(['<', '>']))?;
    let rest = target.trim_start_matches([' ', '\t']).strip_prefix(NOWHERE)?;
    ends_word(rest).then_some(rest)
}

/// On one line, with single blanks.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parts<'a>(command: &'a str, signs: &'a [char]) -> impl Iterator<Item = String> + 'a {
    command.split(|c| signs.contains(&c)).map(on_one_line).filter(|part| !part.is_empty())
}

/// A command without what may stand before its name: words of the shell, and variables that it sets.
fn without_words(part: &str) -> &str {
    let mut rest = part;
    while let Some((word, after)) = rest.split_once(' ') {
        let sets = word
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        if !sets && !["then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec"].contains(&word) {
            break;
        }
        rest = after;
    }
    rest
}
