//! `abide why`: what an agent does or waits for.

use abide_kernel::decide;
use abide_kernel::explain::{Why, why};
use abide_kernel::fixture::Fixture;
use abide_kernel::scheduler::decision::Decision;

use crate::cli::WhyArgs;
use crate::folder;
use crate::output::{Output, one_line};

pub fn run(args: &WhyArgs, out: &Output) -> anyhow::Result<()> {
    let fixture = folder::load(&args.fixture)?;
    let why = why(&fixture.state, next(&fixture));
    out.result(&serde_json::to_value(&why)?, || text(&why))
}

/// What comes next. A replay leaves the queue aside; an agent with a message in it is not one with nothing to do.
fn next(fixture: &Fixture) -> Decision {
    let next = decide(&fixture.state, fixture.now);
    let idle = fixture.decision();
    // Without the queue in it, it is the same one, and the fixture's has the unknown events as evidence too.
    if (next.kind, next.reason) == (idle.kind, idle.reason) { idle } else { next }
}

fn text(why: &Why) -> String {
    let mut text = format!("{}\n", one_line(&why.sentence));
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            for line in lines {
                text.push_str(&format!("  {}\n", one_line(&line)));
            }
        }
    };
    let since = |on: &abide_kernel::explain::WaitingOn| match on.since {
        Some(time) if time > abide_kernel::time::Time::EPOCH => format!("{}, since {time} (seq {})", on.what, on.seq),
        Some(_) | None => format!("{} (seq {})", on.what, on.seq),
    };
    list("Waiting on", why.waiting_on.iter().map(since).collect());
    list("What would wake it", why.would_wake.clone());
    let decision = &why.decision;
    list(
        &format!("Because (decision {}, {}, at seq {})", decision.kind, decision.reason, why.at_seq),
        decision.evidence.clone(),
    );
    list("Ignored", decision.ignored.clone());
    text
}
