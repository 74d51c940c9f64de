//! `abide timer`: schedules that wake an agent.

use abide_api::types::{TimerCreate, TimerView};

use super::plane::{self, Plane};
use crate::cli::{OfAgent, PlaceArgs, TimerArgs, TimerCommand};
use crate::connection::{self, block_on};
use crate::output::{Cell, Output, gist, table};
use crate::span;

const PLANE: Plane<TimerView> = Plane {
    route: "timers",
    titles: &["status", "next", "when", "fired", "missed", "summary"],
    id: |timer| timer.timer_id.as_str(),
    row: |timer, out| {
        let next = timer.next_fire_at.map_or_else(|| "-".to_owned(), |at| out.time(at));
        let (fired, missed) = (timer.fire_count.to_string(), timer.missed_count.to_string());
        // One with a check may fire and say nothing.
        let checked = if timer.check.is_some() { " (with a check)" } else { "" };
        let summary = format!("{}{checked}", gist(&timer.summary, 80));
        vec![
            Cell::status(timer.status.as_str()),
            next.into(),
            schedule_text(timer).into(),
            fired.into(),
            missed.into(),
            summary.into(),
        ]
    },
    empty: "has no timers; `abide timer create --agent ID SUMMARY --every 1h` makes one",
};

pub fn run(command: &TimerCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        TimerCommand::Create(args) => create(args, place, out),
        TimerCommand::List(of) => plane::list(&PLANE, of, place, out),
        TimerCommand::Show { of, timer } => show(of, timer, place, out),
        TimerCommand::Cancel { of, timer } => plane::end(&PLANE, "cancelled", of, timer, place, out),
    }
}

/// How often it fires.
fn schedule_text(timer: &TimerView) -> String {
    match (timer.every_ms, &timer.cron, timer.time_zone.as_deref()) {
        (Some(ms), ..) => format!("every {}", span::rough(ms)),
        (None, Some(cron), None | Some("UTC")) => cron.clone(),
        (None, Some(cron), Some(zone)) => format!("{cron} in {zone}"),
        (None, None, _) => "once".to_owned(),
    }
}

fn show(of: &OfAgent, named: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let timer = block_on(async {
        let id = plane::named(&PLANE, &client, &of.agent, named).await?;
        Ok(client.timer(of.agent.as_str(), &id).await?)
    })?;
    out.result(&timer, || {
        let next: Vec<String> = timer.upcoming.iter().map(|at| out.time(*at)).collect();
        let mut rows = vec![
            ("timer", timer.timer_id.to_string()),
            ("status", timer.status.to_string()),
            ("summary", timer.summary.clone()),
            ("when", schedule_text(&timer)),
            ("next", if next.is_empty() { "-".to_owned() } else { next.join(", ") }),
            ("fired", timer.fire_count.to_string()),
            ("missed", timer.missed_count.to_string()),
        ];
        rows.extend(timer.last_fired_at.map(|at| ("last", out.time(at))));
        rows.extend(timer.catch_up.map(|catch_up| ("catch up", catch_up.to_string())));
        rows.extend(timer.check.clone().map(|check| ("check", check)));
        rows.extend(timer.checking.map(|due| ("checking", format!("for {}", out.time(due)))));
        table(&rows)
    })
}

fn create(args: &TimerArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let timer = TimerCreate {
        summary: args.summary.clone(),
        after_ms: args.after.map(span::as_ms),
        at: args.at.map(|at| at.to_string()),
        every_ms: args.every.map(span::as_ms),
        cron: args.cron.clone(),
        time_zone: args.time_zone.clone(),
        catch_up: args.catch_up,
        check: args.check.clone(),
    };
    let made = block_on(async { Ok(client.create_timer(args.of.agent.as_str(), &timer).await?) })?;
    out.result(&made, || {
        let times: Vec<String> = made.upcoming.iter().map(|at| out.time(*at)).collect();
        let when =
            if times.is_empty() { "it never fires".to_owned() } else { format!("it fires {}", times.join(", ")) };
        format!("made {}; {when}\n", made.timer_id)
    })
}
