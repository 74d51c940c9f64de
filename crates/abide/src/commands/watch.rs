//! `abide watch`: facts, as they become durable, and what models say meanwhile.

use abide_api::types::{Event, TextDelta};
use serde::Serialize;

use crate::cli::{PlaceArgs, WatchArgs};
use crate::connection::{self, block_on};
use crate::follow::{Follow, StreamItem};
use crate::output::{Failed, Output, Paint, gist, one_line, spoken};

const GIST_BYTES: usize = 160;

/// A fact in JSON. Where all agents are watched it has its cursor in the feed for `--after`; a seq counts the facts of one
/// agent only.
#[derive(Serialize)]
struct FactLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a String>,
}

/// A piece of text in JSON.
#[derive(Serialize)]
struct TextLine<'a> {
    agent_id: &'a str,
    kind: &'static str,
    data: TextOfRound<'a>,
}

#[derive(Serialize)]
struct TextOfRound<'a> {
    exec_id: &'a str,
    round: u32,
    text: &'a str,
}

pub fn run(args: &WatchArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    if let (Some(id), Some(after)) = (&args.id, &args.after)
        && after.parse::<u64>().is_err()
    {
        return Err(Failed::Usage(format!("--after {after:?} is no seq of {id}: it takes a whole number")).into());
    }
    let client = connection::find(place)?;
    block_on(async {
        let id = args.id.as_ref().map(abide_kernel::id::AgentId::as_str);
        let after = match (id, &args.after) {
            (_, Some(after)) => Some(after.clone()),
            // From now on, and known by number, so that nothing is lost when the daemon restarts before the first fact.
            (Some(id), None) => Some(client.agent(id).await?.at_seq.to_string()),
            (None, None) => None,
        };
        let all = id.is_none();
        let mut follow = Follow::new(client, place, out, id, after);
        let mut speaker = Speaker::default();
        loop {
            let read_on = match follow.next().await? {
                StreamItem::Fact(fact) => {
                    let begin = speaker.end_text();
                    let shown = FactLine { event: &fact.event, cursor: all.then_some(&fact.cursor) };
                    out.line(&shown, || format!("{begin}{}", line(&fact.event, out)))?
                }
                StreamItem::Text(delta) => {
                    let agent = delta.agent_id.as_deref().or(id).unwrap_or_default();
                    let data = TextOfRound { exec_id: &delta.exec_id, round: delta.round, text: &delta.text };
                    let shown = TextLine { agent_id: agent, kind: TextDelta::EVENT, data };
                    // The reader of a file has the whole text in the facts.
                    !out.is_live() || out.line(&shown, || out.paint(Paint::Dim, &speaker.text_of(agent, &delta)))?
                }
            };
            if !read_on {
                return Ok(());
            }
        }
    })
}

/// The author of the text on the last line of the screen: an agent in a round of an execution.
#[derive(Debug, Default)]
struct Speaker(Option<(String, String, u32)>);

impl Speaker {
    /// The output for a piece of text. It continues the line of the same author, or begins a new one.
    fn text_of(&mut self, agent: &str, delta: &TextDelta) -> String {
        let who = (agent.to_owned(), delta.exec_id.clone(), delta.round);
        // Lines of text are indented, so that none can pass for a fact.
        let text = spoken(&delta.text).replace('\n', "\n  ");
        if self.0.as_ref() == Some(&who) {
            return text;
        }
        let begin = self.end_text();
        self.0 = Some(who);
        format!("{begin}{}: {text}", one_line(agent))
    }

    /// The output that ends the line of text, if there is one.
    fn end_text(&mut self) -> &'static str {
        if self.0.take().is_some() { "\n" } else { "" }
    }
}

fn line(event: &Event, out: &Output) -> String {
    let kind = out.paint(paint(&event.kind), &format!("{:<30}", one_line(&event.kind)));
    let line = format!("{}  {:<12}  {kind}  {}", one_line(&event.at), one_line(&event.agent_id), about(event));
    format!("{}\n", line.trim_end())
}

fn paint(kind: &str) -> Paint {
    match kind.split_once('.') {
        Some(("brief", _)) => Paint::Bold,
        Some(("scheduler" | "posture", _)) => Paint::Dim,
        Some((_, "failed" | "aborted" | "quarantined" | "error" | "provider_round_failed")) => Paint::Bad,
        Some(_) | None => Paint::Plain,
    }
}

/// A fact in a few words: the fields that a person would look at first.
fn about(event: &Event) -> String {
    let data = &event.data;
    let text = |name: &str| data.get(name)?.as_str().filter(|text| !text.is_empty());
    let change = text("previous_status").zip(text("next_status")).map(|(from, to)| format!("{from} -> {to}"));
    let calls = data.get("calls").and_then(|calls| calls.as_array()).map(|calls| {
        let tools: Vec<&str> = calls.iter().filter_map(|call| call["tool"].as_str()).collect();
        if tools.is_empty() { String::new() } else { format!("calls {}", tools.join(", ")) }
    });
    // It had more to say.
    let cut = data.get("cut").is_some_and(|cut| cut == true).then(|| "(cut)".to_owned());
    let words = match event.kind.as_str() {
        "scheduler.decision" => vec![text("kind").map(str::to_owned), text("reason").map(str::to_owned)],
        "brief.recorded" => vec![text("kind").map(|kind| format!("{kind}:")), cut, text("text").map(str::to_owned)],
        "message.queued" => vec![text("kind").map(str::to_owned), text("text").map(|text| format!("\"{text}\""))],
        "tool.started" | "tool.finished" => vec![text("tool").map(str::to_owned), text("status").map(str::to_owned)],
        "turn.assistant_round_recorded" => vec![cut, text("text").map(|text| format!("\"{text}\"")), calls],
        "turn.terminal" => vec![text("terminal_kind").map(str::to_owned), cut, text("error").map(str::to_owned)],
        _ => {
            let first = ["summary", "objective", "name", "text", "error", "reason", "blocked_by", "report", "command"];
            let what = first.iter().find_map(|name| text(name)).map(str::to_owned);
            let ids = [
                "task_id",
                "timer_id",
                "waiting_intent_id",
                "work_item_id",
                "trigger_id",
                "approval_id",
                "message_id",
                "exec_id",
            ];
            let which = ids.iter().find_map(|name| text(name)).map(str::to_owned);
            let code = data.get("exit_code").and_then(|code| code.as_i64()).map(|code| format!("exit {code}"));
            vec![which, text("action").map(str::to_owned), change, code, what]
        }
    };
    gist(&words.into_iter().flatten().collect::<Vec<_>>().join(" "), GIST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_together_stands_together() {
        let delta = |round, text: &str| TextDelta {
            agent_id: None,
            exec_id: "exec_1".to_owned(),
            round,
            text: text.to_owned(),
        };
        let mut speaker = Speaker::default();
        let mut screen = String::new();
        for (agent, round, text) in [("a", 1, "One "), ("a", 1, "two\n"), ("b", 1, "X\u{1b}[2J"), ("a", 1, "three")] {
            screen += &speaker.text_of(agent, &delta(round, text));
        }
        screen += speaker.end_text();
        screen += speaker.end_text();
        screen += &speaker.text_of("a", &delta(2, "again"));
        assert_eq!(screen, "a: One two\n  \nb: X\\u{1b}[2J\na: three\na: again");
        // A line of text is no entry of its own.
        screen = speaker.text_of("a", &delta(2, "!\n2026-01-01T00:00:00Z  a  control.applied"));
        assert_eq!(screen, "!\n  2026-01-01T00:00:00Z  a  control.applied");
    }
}
