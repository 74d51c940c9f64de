//! `abide watch`: facts, as they become durable.

use abide_api::types::Event;
use serde_json::{Value, json};

use crate::cli::{PlaceArgs, WatchArgs};
use crate::connection::{self, block_on};
use crate::follow::Follow;
use crate::output::{Failed, Output, Paint, gist, one_line};

const GIST_BYTES: usize = 160;

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
        let mut follow = Follow::new(client, place, out, id, after, None);
        loop {
            let mut seen = follow.next().await?;
            if all {
                // The place in the feed of all agents, for `--after`; a seq counts one agent's facts only.
                seen.value["cursor"] = json!(seen.cursor);
            }
            if !out.line(&seen.value, || line(&seen.event, out))? {
                return Ok(());
            }
        }
    })
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

/// What a fact is about, in a few words: the fields that a person would look at first.
fn about(event: &Event) -> String {
    let data = &event.data;
    let text = |name: &str| data.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let change = text("previous_status").zip(text("next_status")).map(|(from, to)| format!("{from} -> {to}"));
    let calls = data.get("calls").and_then(Value::as_array).map(|calls| {
        let tools: Vec<&str> = calls.iter().filter_map(|call| call["tool"].as_str()).collect();
        if tools.is_empty() { String::new() } else { format!("calls {}", tools.join(", ")) }
    });
    let words = match event.kind.as_str() {
        "scheduler.decision" => vec![text("kind").map(str::to_owned), text("reason").map(str::to_owned)],
        "brief.recorded" => vec![text("kind").map(|kind| format!("{kind}:")), text("text").map(str::to_owned)],
        "message.queued" => vec![text("kind").map(str::to_owned), text("text").map(|text| format!("\"{text}\""))],
        "tool.started" | "tool.finished" => vec![text("tool").map(str::to_owned), text("status").map(str::to_owned)],
        "turn.assistant_round_recorded" => vec![text("text").map(|text| format!("\"{text}\"")), calls],
        "turn.terminal" => vec![text("terminal_kind").map(str::to_owned), text("error").map(str::to_owned)],
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
            let code = data.get("exit_code").and_then(Value::as_i64).map(|code| format!("exit {code}"));
            vec![which, text("action").map(str::to_owned), change, code, what]
        }
    };
    gist(&words.into_iter().flatten().collect::<Vec<_>>().join(" "), GIST_BYTES)
}
