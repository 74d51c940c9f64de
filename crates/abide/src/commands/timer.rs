//! `abide timer`: schedules that wake an agent.

use abide_api::types::{Timer, TimerCreate};
use serde_json::json;

use super::plane::{self, Plane};
use crate::cli::{PlaceArgs, TimerArgs, TimerCommand};
use crate::connection::{self, block_on};
use crate::output::{Cell, Output, gist};
use crate::span;

const PLANE: Plane<Timer> = Plane {
    route: "timers",
    titles: &["status", "next", "every", "fired", "missed", "summary"],
    id: |timer| &timer.timer_id,
    row: |timer, out| {
        let next = timer.next_fire_at.as_deref().map_or_else(|| "-".to_owned(), |at| out.time(at));
        let every = timer.every_ms.map_or_else(|| "-".to_owned(), span::rough);
        let (fired, missed) = (timer.fire_count.to_string(), timer.missed_count.to_string());
        let summary = gist(&timer.summary, 80);
        vec![Cell::status(&timer.status), next.into(), every.into(), fired.into(), missed.into(), summary.into()]
    },
    empty: "has no timers; `abide timer create --agent ID SUMMARY --every 1h` makes one",
};

pub fn run(command: &TimerCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        TimerCommand::Create(args) => create(args, place, out),
        TimerCommand::List(of) => plane::list(&PLANE, of, place, out),
        TimerCommand::Cancel { of, timer } => plane::cancel(&PLANE, of, timer, place, out),
    }
}

fn create(args: &TimerArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let timer = TimerCreate {
        summary: args.summary.clone(),
        after_ms: args.after.map(span::as_ms),
        at: args.at.map(|at| at.to_string()),
        every_ms: args.every.map(span::as_ms),
        catch_up: args.catch_up,
    };
    let made = block_on(async { Ok(client.create_timer(args.of.agent.as_str(), &timer).await?) })?;
    out.result(&json!(made), || {
        let times: Vec<String> = made.upcoming.iter().map(|at| out.time(at)).collect();
        let when =
            if times.is_empty() { "it never fires".to_owned() } else { format!("it fires {}", times.join(", ")) };
        format!("made {}; {when}\n", made.timer_id)
    })
}
