//! The part of `why` about budgets: how much of each is used, when it begins anew, and how a person raises it.

use super::NAMED;
use crate::budget::{Limits, Reached, Spent, Used};
use crate::id::AgentId;
use crate::state::AgentState;
use crate::state::work::WorkItem;
use crate::vocabulary::Measure;

/// The sentence about an agent that may not go on. Empty where it may.
pub(crate) fn of_agent(state: &AgentState) -> String {
    let Some(Spent { reached, until }) = state.spent_limit() else { return String::new() };
    let (id, words) = (state.id(), reached.in_words());
    let granted = state.allowed_to_children().of(reached.measure).filter(|granted| *granted > 0);
    let held = match granted {
        Some(_) => " (with what its children at work were granted)",
        None => "",
    };
    match until {
        None => format!(
            "{id} has used up its budget: {words}{held}. Raise it to go on: `abide agent set {id} --max-{} N`.",
            budget_flag(reached.measure)
        ),
        Some(until) => format!(
            "{id} has used up its budget of the day: {words}{held}. It goes on at {until}, or when you raise it: \
             `abide agent set {id} --daily-{} N`.",
            budget_flag(reached.measure)
        ),
    }
}

/// The sentence about an item that no turn may be about.
pub(crate) fn of_item(agent: &AgentId, item: &WorkItem) -> String {
    let Some(reached) = item.spent() else { return String::new() };
    let (id, objective, words) = (&item.work_item_id, &item.objective, reached.in_words());
    format!(
        "{agent} has used up the budget of the work item {id} ({objective}): {words}. Raise it to go on with it: \
         `abide work update --agent {agent} {id} --max-{} N`.",
        budget_flag(reached.measure)
    )
}

fn budget_flag(measure: Measure) -> &'static str {
    match measure {
        Measure::Turns => "turns",
        Measure::Tokens => "tokens",
        Measure::Money => "usd",
        Measure::Wall => "hours",
    }
}

pub(super) fn would_wake(state: &AgentState, spent: &Spent) -> Vec<String> {
    let mut wakes: Vec<String> = spent.until.map(|until| format!("the next day, at {until}")).into_iter().collect();
    let holds = |grant: &Limits| grant.of(spent.reached.measure).is_some_and(|granted| granted > 0);
    let children = state.planes.tasks.children().filter(|task| holds(&task.granted));
    wakes.extend(
        children
            .take(NAMED)
            .map(|task| format!("the end of the child {}, which gives back what it did not use", task.task_id)),
    );
    wakes.push("a person who raises the budget".to_owned());
    wakes
}

/// The use of every limit there is, and the grants.
pub(super) fn notes(state: &AgentState) -> Vec<String> {
    let budget = &state.definition.config.budget;
    let line = |whose: &str, limits: Limits, used: Used, granted: Limits| {
        let of = Measure::ALL.iter().filter_map(|&measure| {
            let (max, used) = (limits.of(measure)?, used.of(measure));
            let held = granted.of(measure).filter(|granted| *granted > 0);
            let held = held.map(|_| " and grants to children").unwrap_or_default();
            let used = used.saturating_add(granted.of(measure).unwrap_or(0));
            Some(format!("{}{held}", Reached { measure, used, max }.in_words()))
        });
        let of: Vec<String> = of.collect();
        (!of.is_empty()).then(|| format!("{whose}: {}", of.join(", ")))
    };
    let granted = state.allowed_to_children();
    let in_all = line("used of its budget", budget.in_all(), state.used_with_children(), granted);
    let day = format!("used of its budget of the day that ends at {}", state.accounts.spending.day_ends());
    let today = line(&day, budget.daily, state.accounts.spending.today, granted);
    in_all.into_iter().chain(today).collect()
}
