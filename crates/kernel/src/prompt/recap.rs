//! Texts that stand for turns and rounds that are no longer shown. Two kinds: the rounds of a long turn, told from
//! their records alone; and earlier turns, told by a model where one can be had, and from their records where not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use super::assemble::Older;
use super::quote::{barred, quote_line};
use super::situation::Summary;
use super::talk::{Piece, Round, Spoken, assistant_item};
use super::{Prompt, words};
use crate::limits::{self, SUMMARY_BYTES, clip};
use crate::open_json::ToolOutput;
use crate::vocabulary::ToolStatus;

/// A call's input on one line.
const INPUT_BYTES: usize = 160;
/// A kept value of a result.
const VALUE_BYTES: usize = 160;
/// Kept values of one result.
const VALUES: usize = 12;
/// The words of a turn, where it is told in two lines.
const SAID_BYTES: usize = 400;

/// Handles, ids, exit codes, errors with their hints, and what points at things: what a later round may need.
const KEPT: &[&str] = &[
    "action",
    "agent_id",
    "approval_id",
    "branch",
    "brief_id",
    "code",
    "disposition",
    "ended",
    "error",
    "exit_code",
    "hint",
    "message",
    "message_id",
    "next_offset",
    "path",
    "plan_status",
    "signal",
    "state",
    "status",
    "task_id",
    "timer_id",
    "trigger_id",
    "url",
    "waiting_intent_id",
    "work_item_id",
];

/// One round as its records have it, without what was said or shown in it.
pub(super) fn round_line(round: &Round) -> String {
    let mut text = format!("round {}:", round.round);
    if round.calls.is_empty() {
        text.push_str(" no calls");
    }
    for call in &round.calls {
        let input = quote_line(&call.input.to_string(), INPUT_BYTES);
        let came_to = match round.outcomes.get(&call.call_id) {
            Some((ToolStatus::Unknown, _)) => "unknown: it was cut off".to_owned(),
            Some((status, result)) => format!("{status} {}", kept(result)),
            None => "not run".to_owned(),
        };
        let written = write!(text, "\n- {} {input}: {came_to}", call.tool);
        debug_assert!(written.is_ok());
    }
    text
}

fn kept(result: &ToolOutput) -> String {
    let mut found = Vec::new();
    collect(result, &mut found);
    let found: Vec<String> =
        found.iter().map(|(key, value)| format!("{key}={}", quote_line(value, VALUE_BYTES))).collect();
    found.join(" ")
}

fn collect(value: &Value, found: &mut Vec<(String, String)>) {
    for element in value.as_array().into_iter().flatten() {
        collect(element, found);
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        if found.len() == VALUES {
            return;
        }
        let plain = match member.as_str() {
            Some(text) => Some(text.to_owned()),
            None => (member.is_number() || member.is_boolean()).then(|| member.to_string()),
        };
        match plain {
            Some(plain) if KEPT.contains(&key.as_str()) => found.push((key.clone(), plain)),
            Some(_) => {}
            None => collect(member, found),
        }
    }
}

/// The prompt that asks a model to tell the turns that go out of sight. They are shown to it as data.
#[must_use]
pub fn summary_request(before: Option<&Summary>, talk: &[Spoken], older: &Older, most_tokens: u64) -> Prompt {
    let most_bytes = usize::try_from(most_tokens.saturating_mul(3)).unwrap_or(usize::MAX);
    let mut text = String::from("[abide to be summarised]\n");
    if let Some(before) = before {
        text.push_str("The summary so far:\n");
        text.push_str(&barred(&before.text));
        text.push_str("\nWhat happened after it:\n");
    }
    let turns: Vec<String> = talk.iter().take(older.turns).map(|turn| barred(&transcript(turn))).collect();
    let room = most_bytes.saturating_sub(text.len());
    // The newest count most; where even they don't fit, what lies between is left out.
    let mut kept = Vec::new();
    let mut used = 0;
    for turn in turns.iter().rev() {
        used += turn.len() + 1;
        if used > room && !kept.is_empty() {
            kept.push("(earlier turns are left out)".to_owned());
            break;
        }
        kept.push(clip(turn, room).to_owned());
    }
    kept.reverse();
    text.push_str(&kept.join("\n"));
    Prompt { system: words::SUMMARISE.to_owned(), items: vec![Arc::new(assistant_item(text))], stable: 0 }
}

fn transcript(turn: &Spoken) -> String {
    let mut text = format!("turn {} at {}", turn.turn_index, turn.at);
    for entry in &turn.pieces {
        let told = match entry.piece() {
            Piece::Heard(message) => {
                let said = message.text.clone().or_else(|| message.json.as_ref().map(|json| json.to_string()));
                format!("{} ({}): {}", message.origin.kind, message.trust, said.unwrap_or_default())
            }
            Piece::Round(round) if round.text.is_empty() => round_line(round),
            Piece::Round(round) => format!("agent: {}\n{}", round.text, round_line(round)),
            Piece::Note(note) => format!("note: {note}"),
        };
        text.push('\n');
        text.push_str(clip(&told, limits::RESULT_PREVIEW_BYTES * 2));
    }
    text
}

/// The same without a model: what was asked and what was answered, the newest last, as far as there is room.
#[must_use]
pub fn digest(before: Option<&Summary>, talk: &[Spoken], older: &Older) -> String {
    let mut lines: Vec<String> = talk.iter().take(older.turns).map(in_two_lines).collect();
    let mut room = SUMMARY_BYTES;
    let mut kept = Vec::new();
    while let Some(line) = lines.pop() {
        match room.checked_sub(line.len() + 1) {
            Some(left) => room = left,
            None => break,
        }
        kept.push(line);
    }
    kept.reverse();
    let earlier = before.map(|before| {
        // Its end is what happened last.
        let mut from = before.text.len().saturating_sub(room.min(SUMMARY_BYTES / 2));
        while !before.text.is_char_boundary(from) {
            from += 1;
        }
        before.text[from..].to_owned()
    });
    let text = earlier.into_iter().chain(kept).collect::<Vec<_>>().join("\n");
    clip(&text, SUMMARY_BYTES).to_owned()
}

fn in_two_lines(turn: &Spoken) -> String {
    let asked = turn.pieces.iter().find_map(|entry| match entry.piece() {
        Piece::Heard(message) => {
            let text = message.text.clone().or_else(|| message.json.as_ref().map(|json| json.to_string()));
            Some(format!("{}: {}", message.origin.kind, quote_line(&text.unwrap_or_default(), SAID_BYTES)))
        }
        Piece::Round(_) | Piece::Note(_) => None,
    });
    let mut tools: BTreeMap<&str, u32> = BTreeMap::new();
    for call in turn.rounds().flat_map(|round| &round.calls) {
        *tools.entry(call.tool.as_str()).or_default() += 1;
    }
    let tools: Vec<String> = tools.iter().map(|(tool, count)| format!("{tool} x{count}")).collect();
    let answer = turn.rounds().rev().find(|round| !round.text.is_empty()).map_or("", |round| &round.text);
    format!(
        "turn {} ({}), {}; calls: {}; answer: {}",
        turn.turn_index,
        turn.at,
        asked.unwrap_or_default(),
        if tools.is_empty() { "none".to_owned() } else { tools.join(", ") },
        quote_line(answer, SAID_BYTES),
    )
}

/// How many messages go out of sight with these turns.
pub(super) fn messages_in(turns: &[Spoken]) -> u64 {
    let heard = |turn: &Spoken| turn.pieces.iter().filter(|entry| matches!(entry.piece(), Piece::Heard(_))).count();
    u64::try_from(turns.iter().map(heard).sum::<usize>()).unwrap_or(u64::MAX)
}
