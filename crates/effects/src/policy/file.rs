//! A policy as it is written: TOML, read strictly. A key that nobody knows, or a name that matches no tool, is an error:
//! a typo must not read as "let it run".

use std::ops::Range;

use abide_kernel::limits::TIMER_AHEAD_MAX_MS;
use abide_kernel::vocabulary::ApprovalDefault;
use toml_edit::{Document, Item, Table};

use super::{Action, PolicyFault, Rule};
use crate::files::Pattern;
use crate::nearest::nearest_name;
use crate::policy::wild::Wild;
use crate::tools::{self, RulesOn};

/// Rules are looked at one by one, for every call.
const RULES_MAX: usize = 1_000;
const WHY_CHARS: usize = 300;
const TEXT_BYTES: usize = 1_000;

const KEYS: &[&str] = &["action", "tool", "command", "path", "agent", "deadline", "default", "why"];

const EXAMPLE: &str = "write [[rule]], and below it: action = \"ask\", tool = \"ExecCommand\", command = \"git push*\"";

struct Text<'a>(&'a str);

impl Text<'_> {
    fn fault(&self, span: Option<Range<usize>>, message: impl Into<String>, hint: impl Into<String>) -> PolicyFault {
        let before = span.and_then(|span| self.0.get(..span.start)).unwrap_or_default();
        PolicyFault { line: before.matches('\n').count() + 1, message: message.into(), hint: hint.into() }
    }

    fn unknown(&self, span: Option<Range<usize>>, what: &str, name: &str, known: &[&str]) -> PolicyFault {
        let hint = match nearest_name(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.fault(span, format!("no {what} is called {name:?}"), hint)
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Rule>, PolicyFault> {
    let source = Text(text);
    let document = Document::parse(text).map_err(|error| {
        source.fault(error.span(), format!("this is not TOML: {}", error.message().trim()), EXAMPLE)
    })?;
    let mut rules = Vec::new();
    for (name, item) in document.iter() {
        let span = document.key(name).and_then(toml_edit::Key::span);
        match (name, item) {
            ("rule", Item::ArrayOfTables(tables)) => {
                for table in tables {
                    rules.push(parse_rule(&source, table)?);
                }
            }
            ("rule", Item::None | Item::Value(_) | Item::Table(_)) => {
                return Err(source.fault(span, "rules are a list of tables", EXAMPLE));
            }
            (other, _) => return Err(source.unknown(span, "part of a policy", other, &["rule"])),
        }
    }
    match rules.get(RULES_MAX) {
        Some(rule) => {
            let message = format!("there are more than {RULES_MAX} rules");
            Err(PolicyFault { line: rule.line, message, hint: "join some of them with `*`".to_owned() })
        }
        None => Ok(rules),
    }
}

/// One rule's keys, each a text.
struct Fields<'a> {
    source: &'a Text<'a>,
    table: &'a Table,
}

impl<'a> Fields<'a> {
    fn span_of(&self, name: &str) -> Option<Range<usize>> {
        self.table.key(name).and_then(toml_edit::Key::span).or_else(|| self.table.span())
    }

    fn fault(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) -> PolicyFault {
        self.source.fault(self.span_of(name), message, hint)
    }

    fn get_text(&self, name: &str) -> Result<Option<&'a str>, PolicyFault> {
        let Some(item) = self.table.get(name) else { return Ok(None) };
        match item.as_str() {
            Some(text) if !text.trim().is_empty() && text.len() <= TEXT_BYTES => Ok(Some(text)),
            Some(_) => {
                Err(self.fault(name, format!("{name} is empty or too long"), "give it some words, or leave it out"))
            }
            None => Err(self.fault(name, format!("{name} is no text"), "write it in quotes")),
        }
    }
}

fn parse_rule(source: &Text<'_>, table: &Table) -> Result<Rule, PolicyFault> {
    let fields = Fields { source, table };
    for (name, _) in table.iter() {
        if !KEYS.contains(&name) {
            return Err(source.unknown(fields.span_of(name), "key of a rule", name, KEYS));
        }
    }
    let action = match fields.get_text("action")? {
        Some("allow") => Action::Allow,
        Some("ask") => Action::Ask,
        Some("deny") => Action::Deny,
        Some(other) => {
            return Err(source.unknown(fields.span_of("action"), "action", other, &["ask", "deny", "allow"]));
        }
        None => return Err(fields.fault("", "this rule has no action", "say action = \"ask\", \"deny\" or \"allow\"")),
    };
    let wild = |name: &str| fields.get_text(name).map(|text| text.map(Wild::new));
    let (tool, command, agent) = (wild("tool")?, wild("command")?, wild("agent")?);
    if let (Some(tool), Some(text)) = (&tool, fields.get_text("tool")?) {
        let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
        if !names.iter().any(|name| tool.matches(name)) {
            return Err(source.unknown(fields.span_of("tool"), "tool", text, &names));
        }
        for (key, about) in [("command", RulesOn::Command), ("path", RulesOn::Path)] {
            let about: Vec<&str> = tools::ALL.iter().filter(|tool| tool.rules == about).map(|tool| tool.name).collect();
            if table.contains_key(key) && !about.iter().any(|name| tool.matches(name)) {
                let hint = format!("{key} is about {}; leave one of the two out", about.join(", "));
                return Err(fields.fault(key, format!("{text} has no {key}"), hint));
            }
        }
    }
    if let (Some(_), Some(_)) = (&command, fields.get_text("path")?) {
        return Err(fields.fault("path", "no call has both a command and a path", "make two rules of it"));
    }
    let path = fields.get_text("path")?.map(Pattern::new).transpose();
    let path = path.map_err(|hint| fields.fault("path", "path is no pattern of paths in the workspace", hint))?;
    let (deadline_ms, default) = deadline(&fields, action)?;
    let why = fields.get_text("why")?.map(|why| why.chars().take(WHY_CHARS).collect());
    let line = fields.fault("", "", "").line;
    Ok(Rule { line, action, tool, command, path, agent, deadline_ms, default, why })
}

fn deadline(fields: &Fields<'_>, action: Action) -> Result<(Option<u64>, ApprovalDefault), PolicyFault> {
    let (deadline, default) = (fields.get_text("deadline")?, fields.get_text("default")?);
    if let (Some(name), true) = (deadline.map(|_| "deadline").or(default.map(|_| "default")), action != Action::Ask) {
        return Err(fields.fault(name, format!("only a rule that asks has a {name}"), "leave it out"));
    }
    let hint = "write a number and s, m, h or d, such as \"4h\"";
    let deadline_ms = match deadline {
        None => None,
        Some(text) => {
            Some(span_ms(text).ok_or_else(|| fields.fault("deadline", format!("{text:?} is no span"), hint))?)
        }
    };
    match (default, deadline_ms) {
        (None, _) => Ok((deadline_ms, ApprovalDefault::Deny)),
        (Some(_), None) => {
            Err(fields.fault("default", "a default holds once a deadline has passed", "say deadline = \"4h\", too"))
        }
        (Some(word), Some(_)) => {
            let known = ApprovalDefault::ALL.iter().copied().find(|known| known.as_str() == word);
            let unknown = || fields.source.unknown(fields.span_of("default"), "default", word, &["deny", "grant"]);
            known.map(|default| (deadline_ms, default)).ok_or_else(unknown)
        }
    }
}

fn span_ms(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let ms = digits.trim().parse::<u64>().ok()?.checked_mul(unit)?;
    (1..=TIMER_AHEAD_MAX_MS).contains(&ms).then_some(ms)
}
