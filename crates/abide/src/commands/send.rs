//! `abide send`: a message to an agent, and with `--wait` what it answers.

mod images;

use std::collections::BTreeSet;
use std::time::Duration;

use abide_api::Client;
use abide_api::types::{Accepted, AgentSummary, BriefView, MessageCreate, PostKind, TextDelta, WaitView, Why};
use abide_kernel::id::{BriefId, MessageId};
use abide_kernel::vocabulary::{BriefKind, DecisionKind, ProviderError, Reason, Status, WaitKind};
use serde::Serialize;
use serde_json::{Value, json};

use super::agent::stdin;
use crate::cli::{PlaceArgs, SendArgs};
use crate::connection::{self, block_on};
use crate::follow::{Follow, News, Seen};
use crate::output::{self, Failed, Output, Unanswered, gist, many_lines};

/// What is said of an answer that the model could not end.
const CUT: &str = "the answer is cut: the model had written as much as it may; ask it to go on, or raise max_output_tokens \
                   for it in config.toml";

/// How long a daemon may be away while its answer is waited for.
const AWAY: Duration = Duration::from_secs(60);

pub fn run(args: &SendArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let spoken = args.kind.is_none_or(|kind| kind == PostKind::OperatorPrompt);
    if args.wait && !spoken {
        return Err(Failed::Usage("--wait is for an operator_prompt: no other kind is answered".to_owned()).into());
    }
    let client = connection::find(place)?;
    let text = if args.text == "-" { stdin()? } else { args.text.clone() };
    if text.trim().is_empty() {
        return Err(Failed::Usage("there is nothing to send: the text is empty".to_owned()).into());
    }
    let (text, json) = match args.images.as_slice() {
        [] => (Some(text), None),
        files => (None, Some(images::with(&text, files)?)),
    };
    let message = MessageCreate { text, json, kind: args.kind, priority: args.priority, ..Default::default() };
    block_on(async {
        let accepted = client.send_message(args.id.as_str(), &message).await?;
        if let Some(warning) = &accepted.warning {
            out.note(warning);
        }
        if !args.wait {
            out.result(&accepted, || format!("queued as {} (seq {})\n", accepted.message_id, accepted.seq))?;
            return hint_if_stopped(&client, args, out).await;
        }
        let answer = answer(&client, args, &accepted, place, out);
        let Some(timeout) = args.timeout else { return answer.await };
        match tokio::time::timeout(timeout, answer).await {
            Ok(answered) => answered,
            Err(_) => Err(too_late(args, &accepted)),
        }
    })
}

async fn hint_if_stopped(client: &Client, args: &SendArgs, out: &Output) -> anyhow::Result<()> {
    let id = args.id.as_str();
    if out.has_hints() && client.agent(id).await?.agent.status == Status::Stopped {
        out.hint(&format!("{id} is stopped, and reads it once it starts: `abide agent start {id}`"));
    }
    Ok(())
}

fn too_late(args: &SendArgs, accepted: &Accepted) -> anyhow::Error {
    let (id, message) = (&args.id, &accepted.message_id);
    let said = format!(
        "{id} has not answered {message} yet, and will: `abide why {id}` says what it does, `abide briefs {id}` has the answer"
    );
    unanswered(accepted, output::Why::Timeout, said)
}

fn unanswered(accepted: &Accepted, why: output::Why, said: String) -> anyhow::Error {
    // A failure of a provider begins with its kind.
    let class = said.split(':').next().filter(|class| is_class(class)).map(str::to_owned);
    let message_id = accepted.message_id.clone();
    Failed::Unanswered(Box::new(Unanswered { said, message_id, why, class })).into()
}

fn is_class(word: &str) -> bool {
    ProviderError::parse(word).is_some()
}

/// Follows the agent from the message on, until it is answered or it is certain that it will not be.
async fn answer(
    client: &Client,
    args: &SendArgs,
    accepted: &Accepted,
    place: &PlaceArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let id = args.id.as_str();
    let now = client.why(id, None).await?;
    if now.status == Status::Stopped {
        return Err(stopped(id, accepted));
    }
    // A budget that is spent by now may have been spent on the answer; spent when the message came, there will be none.
    if let Some(held) = held(&now, accepted)
        && self::held(&client.why(id, Some(accepted.seq)).await?, accepted).is_some()
    {
        return Err(held);
    }
    let after = Some(accepted.seq.to_string());
    let mut follow = Follow::new(client.clone(), place, out, Some(id), after, Some(AWAY));
    let mut awaited = Awaited::new(&accepted.message_id);
    let mut overheard = Overheard::default();
    // Whoever waits hears that it takes its time, once of each time.
    let mut told = None;
    let mut told_of_disk = now.decision.reason == Reason::DiskReserve;
    if told_of_disk {
        out.note(&now.sentence);
    }
    loop {
        let seen = match follow.next().await? {
            News::Fact(seen) => seen,
            News::Text(delta) => {
                out.overheard(overheard.hear(&delta));
                continue;
            }
        };
        match awaited.see(&seen) {
            Heard::Nothing => {}
            Heard::Result(brief) => {
                out.clear_progress();
                return said(&brief, accepted, out);
            }
            Heard::Failure(text) => return Err(failed(&connection::find(place)?.agent(id).await?, &text, accepted)),
            Heard::Later(until) => {
                if told.as_ref() != Some(&until) {
                    out.note(&later(&connection::find(place)?.agent(id).await?, &until));
                    told = Some(until);
                }
            }
            Heard::Stopped => return Err(stopped(id, accepted)),
            Heard::NoRoom => {
                if !std::mem::replace(&mut told_of_disk, true) {
                    out.note(&connection::find(place)?.why(id, None).await?.sentence);
                }
            }
            Heard::MayWait => {
                let why = connection::find(place)?.why(id, None).await?;
                if let Some(waits) = held(&why, accepted).or_else(|| waits_for_person(&why, accepted)) {
                    return Err(waits);
                }
            }
        }
    }
}

/// A brief, and the message that it answers. An answer that is no brief has null for its id.
#[derive(Serialize)]
struct AnswerShown<'a> {
    #[serde(flatten)]
    brief: &'a BriefView,
    brief_id: Option<&'a BriefId>,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

fn said(brief: &BriefView, accepted: &Accepted, out: &Output) -> anyhow::Result<()> {
    let brief_id = Some(&brief.brief_id).filter(|id| !id.as_str().is_empty());
    let warning = accepted.warning.as_deref();
    out.result(&AnswerShown { brief, brief_id, seq: accepted.seq, warning }, || many_lines(&brief.text))?;
    if brief.cut {
        out.note(CUT);
    }
    Ok(())
}

fn stopped(id: &str, accepted: &Accepted) -> anyhow::Error {
    let message = &accepted.message_id;
    let said = format!("{id} is stopped; {message} is kept, and read once it starts: `abide agent start {id}`");
    unanswered(accepted, output::Why::Stopped, said)
}

/// A failure that became a question is a person's to answer.
fn failed(summary: &AgentSummary, text: &str, accepted: &Accepted) -> anyhow::Error {
    let asked = |wait: &WaitView| wait.kind == WaitKind::Operator && wait.reason == text;
    let why = match summary.active_waiting_intents.iter().any(asked) {
        true => output::Why::WaitsForPerson,
        false => output::Why::Failed,
    };
    unanswered(accepted, why, gist(text, 2_000))
}

fn later(summary: &AgentSummary, until: &str) -> String {
    let id = &summary.identity.id;
    match &summary.model.trouble {
        Some(it) => {
            let failed = gist(&format!("{}: {}", it.error, it.message), 300);
            format!("{id} waits until {until} and asks again then: {} failed ({failed})", it.model)
        }
        None => format!("{id} waits until {until} and tries again then"),
    }
}

/// No turn of the agent starts until a person does something, or the next day begins.
fn held(why: &Why, accepted: &Accepted) -> Option<anyhow::Error> {
    let reason = why.decision.reason;
    let (outcome, class) = if reason == Reason::BudgetSpent {
        (output::Why::BudgetSpent, None)
    } else if reason == Reason::HomeBudgetSpent {
        (output::Why::BudgetSpent, Some(ProviderError::HomeBudgetSpent))
    } else if reason == Reason::ModelKey {
        (output::Why::WaitsForPerson, Some(ProviderError::Auth))
    } else {
        return None;
    };
    let (said, message_id) = (why.sentence.clone(), accepted.message_id.clone());
    let class = class.map(|class| class.as_str().to_owned());
    Some(Failed::Unanswered(Box::new(Unanswered { said, message_id, why: outcome, class })).into())
}

fn waits_for_person(why: &Why, accepted: &Accepted) -> Option<anyhow::Error> {
    let waits = why.decision.kind == DecisionKind::WaitForOperator;
    waits.then(|| unanswered(accepted, output::Why::WaitsForPerson, why.sentence.clone()))
}

/// The end of what the agent says at this moment. It is shown while one waits, and gone when the answer comes: the answer
/// alone is the result.
#[derive(Debug, Default)]
struct Overheard {
    round: (String, u32),
    text: String,
}

impl Overheard {
    fn hear(&mut self, delta: &TextDelta) -> &str {
        const KEPT_CHARS: usize = 200;
        let round = (delta.exec_id.clone(), delta.round);
        if self.round != round {
            *self = Overheard { round, text: String::new() };
        }
        self.text.push_str(&delta.text);
        if let Some((cut, _)) = self.text.char_indices().rev().nth(KEPT_CHARS) {
            self.text.drain(..cut);
        }
        &self.text
    }
}

/// What is known of the message so far.
#[derive(Debug)]
struct Awaited {
    /// The message; or the one that it joined, whose turn answers both.
    message_id: String,
    /// The turn about it ended, and the agent waits for something before it goes on.
    acknowledged: bool,
    /// What it has begun to wait for since the message came, and has not got yet.
    open: BTreeSet<String>,
    /// What it said when it had gone on and waited for nothing more.
    last_said: Option<Said>,
}

#[derive(Debug)]
struct Said {
    text: String,
    cut: bool,
}

#[derive(Debug, PartialEq)]
enum Heard {
    Nothing,
    Result(Box<BriefView>),
    Failure(String),
    /// Its model failed, and is asked again then.
    Later(String),
    Stopped,
    /// The agent has come to rest; whether for a person is to be asked.
    MayWait,
    /// No turn of it starts before a disk has room.
    NoRoom,
}

impl Awaited {
    fn new(message_id: &str) -> Awaited {
        Awaited { message_id: message_id.to_owned(), acknowledged: false, open: BTreeSet::new(), last_said: None }
    }

    fn see(&mut self, seen: &Seen) -> Heard {
        let data = &seen.event.data;
        let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
        let ours = text("message_id") == self.message_id;
        match seen.event.kind.as_str() {
            "brief.recorded" => self.brief(seen),
            "message.interjected" if ours => {
                self.message_id = text("joined").to_owned();
                Heard::Nothing
            }
            "message.requeued" if ours && text("reason") == "provider_backoff" => {
                Heard::Later(text("not_before").to_owned())
            }
            "message.dropped" if ours => Heard::Failure(format!("{} was dropped", self.message_id)),
            "posture.changed" | "control.applied" if text("next_status") == "stopped" => Heard::Stopped,
            "agent.archived" => Heard::Stopped,
            "wait.created" => {
                self.open.insert(text("waiting_intent_id").to_owned());
                Heard::Nothing
            }
            "wait.triggered" | "wait.cancelled" => {
                self.open.remove(text("waiting_intent_id"));
                Heard::Nothing
            }
            "turn.terminal" => {
                let gone_on = self.acknowledged && self.open.is_empty();
                let cut = data.get("cut") == Some(&Value::Bool(true));
                self.last_said = gone_on.then(|| Said { text: text("last_assistant_message").to_owned(), cut });
                Heard::Nothing
            }
            "scheduler.decision" if text("kind") == "WaitForOperator" => Heard::MayWait,
            "scheduler.decision" => match self.answer_without_brief(seen) {
                Some(answer) => Heard::Result(Box::new(answer)),
                None if text("reason") == Reason::DiskReserve.as_str() => Heard::NoRoom,
                None => Heard::Nothing,
            },
            _ => Heard::Nothing,
        }
    }

    fn brief(&mut self, seen: &Seen) -> Heard {
        let mut value = seen.event.data.clone();
        value["at"] = json!(seen.event.at);
        let Ok(brief) = serde_json::from_value::<BriefView>(value) else { return Heard::Nothing };
        let answers = match &brief.message_id {
            Some(message_id) => message_id.as_str() == self.message_id,
            // Said of its own accord, once it had gone on.
            None => self.acknowledged && brief.kind == BriefKind::Result,
        };
        match brief.kind {
            _ if !answers => Heard::Nothing,
            BriefKind::Result => Heard::Result(Box::new(brief)),
            BriefKind::Failure => Heard::Failure(brief.text),
            BriefKind::Ack => {
                self.acknowledged = true;
                Heard::MayWait
            }
        }
    }

    /// What it waited for has come, and it has gone on: what it said then is the answer, unless a brief brought one
    /// before this decision. A turn that nobody's message began leaves no brief by itself.
    fn answer_without_brief(&mut self, seen: &Seen) -> Option<BriefView> {
        let Said { text, cut } = self.last_said.take()?;
        let text = if text.is_empty() { "(It went on, and said nothing.)".to_owned() } else { text };
        let message_id = Some(MessageId::new(&self.message_id));
        let (brief_id, kind, at) = (BriefId::new(""), BriefKind::Result, seen.event.at.parse().ok()?);
        Some(BriefView { brief_id, kind, text, message_id, work_item_id: None, cut, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(events: &[(&str, Value)]) -> Heard {
        let mut awaited = Awaited::new("msg_1");
        for (kind, data) in events {
            let event =
                json!({ "seq": 9, "at": "2026-01-31T12:00:00.000Z", "agent_id": "a", "kind": kind, "data": data });
            let seen = Seen { event: serde_json::from_value(event.clone()).unwrap(), value: event, cursor: "9".into() };
            let heard = awaited.see(&seen);
            if !matches!(heard, Heard::Nothing | Heard::MayWait) {
                return heard;
            }
        }
        Heard::Nothing
    }

    fn brief(kind: &str, text: &str, message_id: Option<&str>) -> (&'static str, Value) {
        let mut value = json!({ "brief_id": "brief_1", "kind": kind, "text": text });
        if let Some(id) = message_id {
            value["message_id"] = json!(id);
        }
        ("brief.recorded", value)
    }

    fn result(heard: &Heard) -> &str {
        let Heard::Result(brief) = heard else { panic!("{heard:?}") };
        &brief.text
    }

    #[test]
    fn only_its_own_brief_answers_a_message() {
        let heard = hear(&[
            brief("result", "no", Some("msg_2")),
            brief("result", "no", None),
            brief("result", "yes", Some("msg_1")),
        ]);
        assert_eq!(result(&heard), "yes");
        assert_eq!(hear(&[brief("failure", "it\nbroke", Some("msg_1"))]), Heard::Failure("it\nbroke".into()));
        assert_eq!(hear(&[brief("failure", "other", None)]), Heard::Nothing);
    }

    #[test]
    fn a_disk_without_room_is_no_answer_and_does_not_hide_one() {
        let short = ("scheduler.decision", json!({ "kind": "WaitForTimer", "reason": "disk_reserve" }));
        assert_eq!(hear(std::slice::from_ref(&short)), Heard::NoRoom);
        let acknowledged = brief("ack", "Building.", Some("msg_1"));
        let terminal = ("turn.terminal", json!({ "last_assistant_message": "It is built." }));
        assert_eq!(result(&hear(&[acknowledged, terminal, short])), "It is built.");
    }

    #[test]
    fn a_message_that_joined_a_turn_is_answered_with_it() {
        let joined = ("message.interjected", json!({ "message_id": "msg_1", "joined": "msg_0" }));
        assert_eq!(result(&hear(&[joined, brief("result", "both", Some("msg_0"))])), "both");
    }

    #[test]
    fn after_an_acknowledgement_what_it_says_when_it_went_on_is_the_answer() {
        let wait = |kind: &'static str| (kind, json!({ "waiting_intent_id": "wait_1" }));
        let acknowledged = [wait("wait.created"), brief("ack", "Building.", Some("msg_1"))];
        let terminal = ("turn.terminal", json!({ "last_assistant_message": "It said hi." }));
        let rests = ("scheduler.decision", json!({ "kind": "WaitForTimer" }));
        let after = |more: &[(&'static str, Value)]| hear(&[&acknowledged, more].concat());
        let gone_on = [wait("wait.triggered"), terminal.clone(), rests.clone()];
        assert_eq!(result(&after(&gone_on)), "It said hi.");
        let told = brief("result", "told", None);
        assert_eq!(result(&after(&[wait("wait.triggered"), terminal.clone(), told, rests.clone()])), "told");
        // A turn about something else, while it still waits; and one before it was acknowledged.
        assert_eq!(after(&[terminal.clone(), rests.clone()]), Heard::Nothing);
        assert_eq!(hear(&[terminal, rests]), Heard::Nothing);
    }

    #[test]
    fn an_answer_that_was_cut_or_not_given_is_told_as_that() {
        let after = |terminal: Value| {
            let rests = ("scheduler.decision", json!({ "kind": "Sleep" }));
            let Heard::Result(brief) =
                hear(&[brief("ack", "Waiting.", Some("msg_1")), ("turn.terminal", terminal), rests])
            else {
                panic!("no result")
            };
            (brief.text, brief.cut)
        };
        let cut = json!({ "last_assistant_message": "As far as", "cut": true });
        assert_eq!(after(cut), ("As far as".to_owned(), true));
        assert_eq!(after(json!({})), ("(It went on, and said nothing.)".to_owned(), false));
    }

    #[test]
    fn a_later_try_of_its_own_message_is_told() {
        let requeued = |message: &str, reason: &str| {
            let until = "2026-01-31T12:00:02.000Z";
            ("message.requeued", json!({ "message_id": message, "reason": reason, "not_before": until }))
        };
        assert_eq!(hear(&[requeued("msg_1", "provider_backoff")]), Heard::Later("2026-01-31T12:00:02.000Z".into()));
        assert_eq!(hear(&[requeued("msg_2", "provider_backoff"), requeued("msg_1", "budget")]), Heard::Nothing);
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let stop = ("control.applied", json!({ "action": "stop", "next_status": "stopped" }));
        assert_eq!(hear(&[stop]), Heard::Stopped);
    }
}
