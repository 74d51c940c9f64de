//! `CreateTimer`: a message at a time, or again and again.

use abide_kernel::input::Refusal;
use abide_kernel::limits::{TIMER_AHEAD_MAX_MS, TIMER_EVERY_MIN_MS};
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, ToolCall, When};
use abide_kernel::vocabulary::CatchUp;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{RulesOn, Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CreateTimer",
    description: "Have a message come to you later: once, or again and again. Say exactly one of after_ms, at, every_ms, cron.",
    schema,
    instead: &[],
    rules: RulesOn::Name,
    parse,
};

const ONE_OF: &str = "give exactly one of `after_ms`, `at`, `every_ms`, `cron`";

fn schema() -> Value {
    object(
        &["summary"],
        json!({
            "summary": { "type": "string", "description": "What the timer is for; it comes with its message." },
            "after_ms": {
                "type": "integer", "minimum": 0, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "Once, so long from now.",
            },
            "at": { "type": "string", "format": "date-time", "description": "Once, at this time (RFC 3339)." },
            "every_ms": {
                "type": "integer", "minimum": TIMER_EVERY_MIN_MS, "maximum": TIMER_AHEAD_MAX_MS,
                "description": "Again and again, so far apart.",
            },
            "cron": {
                "type": "string",
                "description": "By the calendar: minute, hour, day of the month, month, day of the week. \
                    0 9 * * mon-fri is nine in the morning on weekdays.",
            },
            "time_zone": {
                "type": "string",
                "description": "Whose clocks cron is read off, such as Europe/Berlin. UTC where it is left out.",
            },
        }),
    )
}

fn parse(fields: &Fields<'_>) -> Result<ToolCall, Refusal> {
    let summary = fields.get_text("summary")?;
    let after_ms = fields.duration_ms("after_ms", 0..=TIMER_AHEAD_MAX_MS)?;
    let at = fields.optional_text("at")?;
    let every_ms = fields.duration_ms("every_ms", TIMER_EVERY_MIN_MS..=TIMER_AHEAD_MAX_MS)?;
    let cron = fields.optional_text("cron")?;
    let time_zone = fields.optional_text("time_zone")?;
    if time_zone.is_some() && cron.is_none() {
        return Err(invalid("CreateTimer has `time_zone` and no `cron`", "a time zone is for `cron` only"));
    }
    let given = [after_ms.map(|_| "after_ms"), at.as_ref().map(|_| "at"), every_ms.map(|_| "every_ms")];
    let given: Vec<&str> = given.into_iter().chain([cron.as_ref().map(|_| "cron")]).flatten().collect();
    if let [one, other, ..] = given[..] {
        return Err(invalid(format!("CreateTimer has both `{one}` and `{other}`"), ONE_OF));
    }
    let when = match (after_ms, at, every_ms, cron) {
        (Some(ms), ..) => When::AfterMs(ms),
        (_, Some(at), ..) => When::At(parse_time(&at)?),
        (_, _, Some(ms), _) => When::EveryMs(ms),
        (.., Some(cron)) => When::Cron { cron, time_zone: time_zone.unwrap_or_else(|| "UTC".to_owned()) },
        (None, None, None, None) => return Err(invalid("CreateTimer doesn't say when", ONE_OF)),
    };
    Ok(ToolCall::Record(RecordCall::CreateTimer {
        summary,
        when,
        catch_up: CatchUp::Latest,
        work_item_id: None,
        check: None,
    }))
}

fn parse_time(text: &str) -> Result<Time, Refusal> {
    text.parse()
        .map_err(|bad| invalid(format!("`at` of CreateTimer: {bad}"), "give a time such as 2026-01-31T12:00:00Z"))
}
