//! A shell command as rules read it: whole, and in the parts that run one after the other.
//!
//! Rules that hold back look at every reading there is. Rules that let pass look at one reading only, and a command that
//! can't be read for certain is not let pass.

use super::wild::Wild;

/// Between commands, for rules that let pass.
const BETWEEN: [char; 5] = ['\n', '\r', ';', '&', '|'];
/// The same with brackets, for rules that hold back.
const BRACKETS: [char; 10] = ['\n', '\r', ';', '&', '|', '(', ')', '{', '}', '`'];
/// Expansions that run commands, evaluate arithmetic (which may run commands, too) or spell characters in another way.
/// Inside of single quotes, too: text that a later expansion may read as a command.
const EXPANSIONS: [&str; 5] = ["`", "$(", "$[", "$'", "$\""];
/// Subshells, functions, arithmetic commands and patterns. `echo () (id)` defines a function that the next `echo` calls.
const PARENTHESES: [char; 2] = ['(', ')'];
const NOWHERE: &str = "/dev/null";

/// Whether the whole command or any part of it matches, with continued lines joined and as they are written.
pub(super) fn any_part_matches(command: &str, wanted: &Wild) -> bool {
    let joined = command.replace("\\\r\n", "").replace("\\\n", "");
    [command, joined.as_str()].into_iter().any(|text| {
        wanted.matches_command(&on_one_line(text))
            || parts(text, &BRACKETS)
                .any(|part| wanted.matches_command(&part) || wanted.matches_command(without_words(&part)))
    })
}

/// Whether every part matches, and nothing is substituted, defined or redirected.
pub(super) fn every_part_matches(command: &str, wanted: &Wild) -> bool {
    let Some(plain) = without_redirections(command) else { return false };
    let mut parts = parts(&plain, &BETWEEN).peekable();
    parts.peek().is_some() && parts.all(|part| wanted.matches_command(&part))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// The command with continued lines joined and harmless redirections left out: `N>&M`, `>/dev/null`, `</dev/null`. None
/// if anything else is redirected, if anything but `$NAME` and `${NAME}` is expanded, or if it can't be told what is in
/// quotes.
fn without_redirections(command: &str) -> Option<String> {
    // A sign may be spread over two lines.
    let joined = command.replace("\\\n", "");
    if EXPANSIONS.iter().any(|sign| command.contains(sign) || joined.contains(sign)) || has_other_blanks(command) {
        return None;
    }
    // In a comment neither quotes nor a backslash at the end mean anything.
    let has_comment = |text: &str| {
        let begins_word = |at: usize| text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        text.match_indices('#').any(|(at, _)| begins_word(at))
    };
    if has_comment(command) || has_comment(&joined) {
        let expands = command.match_indices("${").any(|(at, _)| after_name(&command[at..]).is_none());
        let plain = !command.contains(['<', '>']) && !command.contains(PARENTHESES) && !command.contains("\\\n");
        return (plain && !expands).then(|| command.to_owned());
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
            (Quotes::None, '(' | ')') => return None,
            (Quotes::None | Quotes::Double, '$') if joined_start(after) == Some('{') => {
                let name_end = after_name(rest)?;
                plain.push_str(&rest[..rest.len() - name_end.len()]);
                rest = name_end;
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

/// The character that the shell reads next: continued lines are joined.
fn joined_start(text: &str) -> Option<char> {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("\\\n") {
        rest = after;
    }
    rest.chars().next()
}

/// Characters that may follow a `${NAME}`. Every other form may assign (`${x:=y}`), evaluate (`${x@P}`, `${!x}`) or
/// hold quotes.
fn after_name(text: &str) -> Option<&str> {
    let (name, rest) = text.strip_prefix("${")?.split_once('}')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(rest)
}

/// Blanks that patterns take for blanks and a shell for parts of a word: `./run` and `tests` with one of these between
/// them name one program.
fn has_other_blanks(command: &str) -> bool {
    command.contains(|c: char| c.is_whitespace() && ![' ', '\t', '\n', '\r'].contains(&c))
}

/// The targets of a redirection that changes no file.
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
