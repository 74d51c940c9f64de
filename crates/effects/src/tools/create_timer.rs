//! `CreateTimer`: a message at a time, or again and again.

use abide_kernel::input::{Act, Does, Refusal, When};
use abide_kernel::limits::{TIMER_AHEAD_MAX_MS, TIMER_EVERY_MIN_MS};
use abide_kernel::time::Time;
use abide_kernel::vocabulary::CatchUp;
use serde_json::{Value, json};

use super::fields::{Fields, invalid};
use super::{Tool, object};

pub(super) const TOOL: Tool = Tool {
    name: "CreateTimer",
    description: "Have a message come to you later: once, or again and again. Say exactly one of after_ms, at, every_ms.",
    schema,
    instead: &[("cron", NO_CRON), ("time_zone", NO_CRON)],
    read,
};

const NO_CRON: &str = "calendar schedules can't be used yet: give `every_ms`, or `at` and a new timer each time.";

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
        }),
    )
}

fn read(fields: &Fields<'_>) -> Result<Does, Refusal> {
    let summary = fields.text("summary")?;
    let after_ms = fields.ms("after_ms", 0..=TIMER_AHEAD_MAX_MS)?;
    let at = fields.optional_text("at")?;
    let every_ms = fields.ms("every_ms", TIMER_EVERY_MIN_MS..=TIMER_AHEAD_MAX_MS)?;
    let when = match (after_ms, at, every_ms) {
        (Some(ms), None, None) => When::AfterMs(ms),
        (None, Some(at), None) => When::At(time(&at)?),
        (None, None, Some(ms)) => When::EveryMs(ms),
        (None, None, None) => {
            return Err(invalid("CreateTimer doesn't say when", "give one of `after_ms`, `at`, `every_ms`"));
        }
        (Some(_), Some(_), _) => return Err(twice("after_ms", "at")),
        (Some(_), _, Some(_)) => return Err(twice("after_ms", "every_ms")),
        (_, Some(_), Some(_)) => return Err(twice("at", "every_ms")),
    };
    Ok(Does::Act(Act::CreateTimer { summary, when, catch_up: CatchUp::Latest, work_item_id: None }))
}

fn time(text: &str) -> Result<Time, Refusal> {
    text.parse()
        .map_err(|bad| invalid(format!("`at` of CreateTimer: {bad}"), "give a time such as 2026-01-31T12:00:00Z"))
}

fn twice(one: &str, other: &str) -> Refusal {
    invalid(format!("CreateTimer has both `{one}` and `{other}`"), "give exactly one of `after_ms`, `at`, `every_ms`")
}
