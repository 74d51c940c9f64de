//! The cost of putting a prompt together after a long life against after a short one: half of the records are turns
//! that were talked through, half are items and timers that are still open.

use abide_kernel::AgentState;
use abide_kernel::config::{Config, Identity};
use abide_kernel::id::AgentId;
use abide_kernel::input::{Answer, Input, NewMessage, Reply};
use abide_kernel::prompt::assemble::{Material, Room, Shown, Surroundings, digest};
use abide_kernel::prompt::situation::Situation;
use abide_kernel::prompt::talk::{Spoken, Talk, Told};
use abide_kernel::time::Time;
use abide_kernel::tool::{RecordCall, When};
use abide_kernel::vocabulary::CatchUp;

use super::World;

pub const SMALL: usize = 100;
pub const LARGE: usize = 10_000;
/// A hundred records fill it about.
const ROOM: Room = Room { budget_tokens: 6_000, tools_tokens: 0 };
/// Prompts that are measured: as many as there are from one summary to the next, some times over.
const MEASURED: usize = 120;

/// Talks through the records, and then measures the prompts of the turns that follow; how many that were.
pub fn measure(size: usize) -> u64 {
    let id = AgentId::new("bench").unwrap();
    let mut state = AgentState::empty(id.clone());
    let now = Time::from_ms(1_800_000_000_000);
    let mut world = World { state: &mut state, now, draws: 0, facts: Vec::new(), answer: Answer::Done };
    world.ask(Input::Create { identity: Identity::named(id), config: Config::default(), start: true });
    for n in 0..size / 4 {
        let (objective, todo) = (format!("item {n}"), Vec::new());
        world.act(RecordCall::CreateWorkItem { objective, plan: None, plan_status: None, todo, budget: None });
        let (summary, when) = (format!("timer {n}"), When::AfterMs(1_000_000 + n as u64));
        world.act(RecordCall::CreateTimer {
            summary,
            when,
            catch_up: CatchUp::Latest,
            work_item_id: None,
            check: None,
        });
    }
    for n in 0..size / 2 + MEASURED {
        let text = Some(format!("question {n} {}", "word ".repeat(n % 60)));
        world.ask(Input::Queue(NewMessage { text, ..NewMessage::default() }));
        world.decide();
        if n < size / 2 {
            prompt(&mut world, false);
        } else {
            prompt(&mut world, true);
        }
        let turn = world.state.turns.current.clone().unwrap();
        let reply = Reply { text: format!("answer {n}"), ..Reply::default() };
        world.ask(Input::FinishRound { exec_id: turn.exec_id, round: turn.round, reply });
    }
    MEASURED as u64
}

fn prompt(world: &mut World<'_>, counts: bool) {
    loop {
        let after = world.state.turns.compaction.as_ref().and_then(|made| made.through).unwrap_or(0);
        // The records that a reader of the ledger hands over.
        let recent = world.facts.iter().enumerate().skip(usize::try_from(after).unwrap());
        let told: Vec<Told> =
            recent.map(|(index, (at, fact))| Told { seq: index as u64 + 1, at: *at, fact: fact.clone() }).collect();
        let shown = if counts { measured_prompt(world.state, &told) } else { assembled(world.state, &told) };
        match shown {
            Shown::Ready(_) => return,
            Shown::Summarise(older) => {
                let before = Situation::of(world.state).unwrap().summary;
                let (through, summary) = (Some(older.through), Some(digest(before.as_ref(), &talk(&told), &older)));
                world.ask(Input::Compact { compacted_messages: older.messages, summary, through, usage: None });
            }
            Shown::TooMuch { .. } => panic!("it does not fit"),
        }
    }
}

#[inline(never)]
fn measured_prompt(state: &AgentState, told: &[Told]) -> Shown {
    assembled(state, told)
}

fn assembled(state: &AgentState, told: &[Told]) -> Shown {
    let situation = Situation::of(state).unwrap();
    let turns = talk(told);
    let surroundings = Surroundings::default();
    Material { situation: &situation, surroundings: &surroundings, turns: &turns, left_out: false, room: ROOM }
        .assemble()
}

fn talk(told: &[Told]) -> Vec<Spoken> {
    told.iter().cloned().collect::<Talk>().turns
}
