//! Every pair of causes that can keep an agent from working at one time: the decision, its evidence and the sentence of
//! `why` are about the one that comes first, and the sentence begins with the one that needs a person (spec 5).

use abide_kernel::decide;
use abide_kernel::explain::why;

use crate::story::Story;

/// One cause: how it comes about, where it stands in the table of decisions, and how `why` tells it.
struct Cause {
    name: &'static str,
    /// Calls of a turn about the cause's own item, `ITEM`.
    about_item: &'static str,
    /// Calls of a turn about no item.
    about_agent: &'static str,
    /// Lines before the turns, and after them.
    before: &'static str,
    after: &'static str,
    /// Rows of the table, and the order within a row.
    row: (u8, u8),
    /// When it is due, in seconds.
    due: Option<u32>,
    kind: &'static str,
    reason: &'static str,
    /// How the sentence begins, with `ITEM` for the objective of the item.
    sentence: &'static str,
    needs_person: bool,
}

const fn cause(name: &'static str, row: (u8, u8), decision: (&'static str, &'static str)) -> Cause {
    Cause {
        name,
        about_item: "",
        about_agent: "",
        before: "",
        after: "",
        row,
        due: None,
        kind: decision.0,
        reason: decision.1,
        sentence: "",
        needs_person: false,
    }
}

const CAUSES: &[Cause] = &[
    Cause {
        after: "budget tokens=1",
        sentence: "a has used up its budget",
        needs_person: true,
        ..cause("budget", (3, 0), ("WaitForOperator", "budget_spent"))
    },
    Cause {
        after: "task k1\ntask k1 ends\nfail auth told=yes",
        sentence: "a has no model with a key that works",
        needs_person: true,
        ..cause("key", (3, 1), ("WaitForOperator", "model_key"))
    },
    Cause {
        about_item: "UpdateWorkItem ITEM status=needs_input",
        sentence: "a needs your input on \"ITEM\"",
        needs_person: true,
        ..cause("needs_input", (8, 0), ("WaitForOperator", "work_item_needs_input"))
    },
    Cause {
        about_item: "WaitFor operator item=ITEM",
        sentence: "a waits for your answer: later",
        needs_person: true,
        ..cause("operator_wait_of_item", (8, 1), ("WaitForOperator", "active_operator_wait"))
    },
    Cause {
        about_agent: "WaitFor operator",
        sentence: "a waits for your answer: later",
        needs_person: true,
        ..cause("operator_wait", (8, 2), ("WaitForOperator", "active_operator_wait"))
    },
    Cause {
        about_agent: "RequestApproval deploy",
        sentence: "a waits for your approval: deploy.",
        needs_person: true,
        ..cause("approval", (8, 3), ("WaitForOperator", "approval_pending"))
    },
    Cause {
        before: "task t1",
        about_item: "WaitFor task t1 item=ITEM",
        sentence: "a sleeps until the command t1 (make) ends, for \"ITEM\"",
        ..cause("task_wait_of_item", (9, 0), ("WaitForTask", "work_item_task_wait"))
    },
    Cause {
        before: "task t2",
        about_agent: "WaitFor task t2",
        sentence: "a sleeps until the command t2 (make) ends",
        ..cause("task_wait", (9, 1), ("WaitForTask", "active_task_wait"))
    },
    Cause {
        about_item: "WaitFor external c1 item=ITEM",
        sentence: "a sleeps until something outside happens, for \"ITEM\" (c1): later.",
        ..cause("external_wait_of_item", (10, 0), ("WaitForExternalChange", "work_item_external_wait"))
    },
    Cause {
        about_agent: "WaitFor external c2",
        sentence: "a sleeps until something outside happens (c2): later.",
        ..cause("external_wait", (10, 1), ("WaitForExternalChange", "active_agent_waiting_intents"))
    },
    Cause {
        about_item: "WaitFor timer after=50m item=ITEM",
        due: Some(3000),
        sentence: "a sleeps until +3000s, for \"ITEM\".",
        ..cause("timer_wait_of_item", (11, 0), ("WaitForTimer", "work_item_timer_wait"))
    },
    Cause {
        about_agent: "WaitFor timer after=40m",
        due: Some(2400),
        sentence: "a sleeps until +2400s.",
        ..cause("timer_wait", (11, 0), ("WaitForTimer", "active_timers"))
    },
    Cause {
        about_agent: "Sleep 30m",
        due: Some(1800),
        sentence: "a sleeps until +1800s.",
        ..cause("sleep", (11, 0), ("WaitForTimer", "active_timers"))
    },
    Cause {
        about_item: "UpdateWorkItem ITEM blocked=rain recheck=20m",
        due: Some(1200),
        sentence: "a sleeps until +1200s, when it looks again at what blocks \"ITEM\": rain.",
        ..cause("recheck", (11, 0), ("WaitForTimer", "recheck_pending"))
    },
    Cause {
        before: "person CreateWorkItem vain\nround done",
        due: Some(TICK_BACKOFF_S),
        sentence: "a worked on \"vain\" and nothing changed; it tries again at +TICKs",
        ..cause("tick_backoff", (11, 0), ("WaitForTimer", "tick_backoff"))
    },
    Cause {
        after: "operator priority=background late\nfail rate_limited after=10m",
        due: Some(600),
        sentence: "a waits until +600s and asks again then:",
        ..cause("provider_backoff", (11, 0), ("WaitForTimer", "provider_backoff"))
    },
    Cause {
        about_item: "UpdateWorkItem ITEM blocked=rain",
        sentence: "a is blocked on \"ITEM\" by rain, and nothing will unblock it by itself:",
        needs_person: true,
        ..cause("stuck", (12, 0), ("WaitForOperator", "work_item_blocked"))
    },
    Cause {
        before: "person CreateTimer every=5m tea",
        due: Some(300),
        sentence: "a sleeps until +300s.",
        ..cause("standing_timer", (13, 0), ("WaitForTimer", "active_timers"))
    },
    Cause {
        after: "operator fail\nfail refusal",
        sentence: "a has nothing to do: its last turn failed (provider_failed):",
        ..cause("failure", (14, 0), ("Sleep", "no_pending_scheduler_facts"))
    },
];

/// The first backoff of an item that was offered in vain (`limits::TICK_BACKOFF_MS`).
const TICK_BACKOFF_S: u32 = 30;

/// Why two causes can't stand beside each other.
fn excludes(one: &Cause, other: &Cause) -> Option<&'static str> {
    let has = |name| one.name == name || other.name == name;
    let asks = ["operator_wait", "operator_wait_of_item"];
    match () {
        () if has("failure") && asks.iter().any(|name| has(name)) => Some("the message that fails is the answer"),
        () if has("failure") && has("provider_backoff") => Some("the newer of two failures is the last one"),
        () if (has("failure") || has("provider_backoff")) && has("sleep") => Some("the turn that fails ends the sleep"),
        () if has("key") && has("provider_backoff") => Some("a model that is left alone is not asked with any key"),
        () if has("failure") && has("key") => Some("without a key no turn can fail"),
        () if has("sleep") && has("tick_backoff") => Some("a sleep of the agent holds back all offers of work"),
        () => None,
    }
}

/// An agent that is kept by both.
fn told(one: &Cause, other: &Cause) -> Story {
    let causes = [(one, "first"), (other, "second")];
    let mut story = Story::begin();
    let mut tell = |line: &str| {
        let pair = format!("{} and {}", one.name, other.name);
        story.tell(line).unwrap_or_else(|problem| panic!("{pair}: `{line}`: {problem}"));
    };
    causes.iter().flat_map(|(cause, _)| cause.before.lines()).for_each(&mut tell);
    // Items are made and put to rest in one turn, so that nothing offers them in between.
    let items: Vec<_> = causes.iter().filter(|(cause, _)| !cause.about_item.is_empty()).collect();
    let vain = u32::from(causes.iter().any(|(cause, _)| cause.name == "tick_backoff"));
    if !items.is_empty() {
        let made: Vec<String> = items.iter().map(|(_, objective)| format!("CreateWorkItem {objective}")).collect();
        tell("message internal_followup priority=next go");
        tell(&format!("round {}", made.join(" ; ")));
        let held = items.iter().zip(1 + vain..);
        let held: Vec<String> =
            held.map(|((cause, _), number)| cause.about_item.replace("ITEM", &format!("w{number}"))).collect();
        tell(&format!("round {}", held.join(" ; ")));
        if !held.iter().any(|call| call.starts_with("WaitFor")) {
            tell("round done");
        }
    }
    // Only the calls that end a turn stand here, so one round is the whole turn.
    let agents: Vec<&str> = causes.iter().map(|(cause, _)| cause.about_agent).filter(|call| !call.is_empty()).collect();
    if !agents.is_empty() {
        tell("message internal_followup priority=next go");
        tell(&format!("round {}", agents.join(" ; ")));
    }
    let mut after: Vec<&str> = causes.iter().map(|(cause, _)| cause.after).filter(|lines| !lines.is_empty()).collect();
    // A budget that is spent lets no turn begin, and neither does a key that does not work.
    after.sort_by_key(|lines| (lines.starts_with("budget"), lines.contains("auth")));
    // The operator's message would be the answer.
    let asks = causes.iter().any(|(cause, _)| cause.name.starts_with("operator_wait"));
    let result = "task p1\ntask p1 ends\nfail rate_limited after=10m";
    after.iter_mut().filter(|lines| asks && lines.contains("rate_limited")).for_each(|lines| *lines = result);
    if after.iter().any(|lines| lines.starts_with("budget")) {
        tell("task u1");
        tell("task u1 ends");
        tell("round done tokens=1");
    }
    after.iter().flat_map(|lines| lines.lines()).for_each(&mut tell);
    story
}

#[test]
fn of_every_pair_the_first_decides_and_a_person_is_named_first() {
    let mut pairs = 0;
    for (index, one) in CAUSES.iter().enumerate() {
        for other in &CAUSES[index + 1..] {
            if excludes(one, other).is_some() {
                continue;
            }
            for (first, second) in [(one, other), (other, one)] {
                check_pair(first, second);
                pairs += 1;
            }
        }
    }
    assert!(pairs > 300, "{pairs} pairs were told");
}

fn check_pair(first: &Cause, second: &Cause) {
    let story = told(first, second);
    let pair = format!("{} and {}", first.name, second.name);
    let by_table = |cause: &Cause| (cause.row.0, if cause.row.0 == 11 { cause.due } else { None }, cause.row.1);
    let decides = if by_table(first) <= by_table(second) { first } else { second };
    let decision = decide(&story.state, story.now);
    let decided = (decision.kind.as_str(), decision.reason.as_str());
    assert_eq!(decided, (decides.kind, decides.reason), "{pair}");

    let objective = |cause: &Cause| if std::ptr::eq(cause, first) { "first" } else { "second" };
    let sentence_of =
        |cause: &Cause| cause.sentence.replace("ITEM", objective(cause)).replace("TICK", &TICK_BACKOFF_S.to_string());
    let mut people: Vec<&Cause> = [first, second].into_iter().filter(|cause| cause.needs_person).collect();
    people.sort_by_key(|cause| by_table(cause));
    let begins = people.first().copied().unwrap_or(decides);
    let told = why(&story.state, decision.clone());
    let sentence = story.short(&told.sentence);
    assert!(sentence.starts_with(&sentence_of(begins)), "{pair}: {sentence}");
    assert!(sentence.contains(&sentence_of(decides)), "{pair}: {sentence}");

    // Evidence, headline and time are of the same fact.
    let evidence = story.short(&decision.evidence.join(", "));
    if let Some(due) = decides.due {
        assert!(evidence.contains(&format!("+{due}s")), "{pair}: {evidence}");
    }
    let other = if std::ptr::eq(decides, first) { second } else { first };
    if let Some(due) = other.due {
        let time = format!("+{due}s");
        assert!(!evidence.contains(&time) && !sentence.contains(&time), "{pair}: {evidence}; {sentence}");
    }
    let failed = first.name == "failure" || second.name == "failure";
    let tells = sentence.contains("last turn failed") || decides.row.0 == 3;
    assert!(!failed || tells, "{pair}: {sentence}");
}
