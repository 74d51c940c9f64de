//! `abide send`: a message to an agent, and with `--wait` the answer to it.

mod images;
mod wait;

use abide_api::Client;
use abide_api::types::{Accepted, BriefView, MessageCreate, MessageDetail, MessageOutcome, PostKind};
use abide_kernel::id::BriefId;
use abide_kernel::vocabulary::{BriefKind, ProviderError, Status};
use serde::Serialize;

use super::agent::stdin;
use crate::cli::{PlaceArgs, SendArgs};
use crate::clock;
use crate::connection::{self, block_on};
use crate::output::{Failed, Output, Unanswered, Why, gist, many_lines};

/// The note beside an answer that the model could not end.
const CUT: &str = "the answer is cut: the model had written as much as it may; ask it to go on, or raise max_output_tokens \
                   for it in config.toml";

/// The answer of an agent whose records have only its acknowledgement.
const UNKNOWN_ANSWER: &str = "(It was answered in a later turn; the transcript has it.)";

/// How much of an error is shown.
const ERROR_BYTES: usize = 2_000;

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
        files => (None, Some(images::message_with_images(&text, files)?)),
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
        let waiting = wait::wait(client, args.id.as_str(), &accepted, place, out);
        let detail = match args.timeout {
            None => waiting.await?,
            Some(timeout) => match tokio::time::timeout(timeout, waiting).await {
                Ok(detail) => detail?,
                Err(_) => return Err(too_late(args, &accepted)),
            },
        };
        out.clear_progress();
        finish(detail, &accepted, out)
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
    unanswered(accepted, Why::Timeout, said, None, None)
}

fn unanswered(
    accepted: &Accepted,
    why: Why,
    said: String,
    class: Option<ProviderError>,
    hint: Option<String>,
) -> anyhow::Error {
    let (message_id, class) = (accepted.message_id.clone(), class.map(|class| class.to_string()));
    Failed::Unanswered(Box::new(Unanswered { said, message_id, why, class, hint })).into()
}

/// The result of the command: the answer, or an error that says why there is none.
fn finish(detail: MessageDetail, accepted: &Accepted, out: &Output) -> anyhow::Result<()> {
    let MessageDetail { message, outcome, briefs } = detail;
    let refuse = |why, said, class, hint| Err(unanswered(accepted, why, said, class, hint));
    match outcome {
        MessageOutcome::Answered { answer, cut } => {
            let result = briefs.into_iter().rev().find(|brief| brief.kind == BriefKind::Result);
            let without_brief = |text: String| BriefView {
                brief_id: BriefId::new(""),
                kind: BriefKind::Result,
                text,
                message_id: Some(message.message_id),
                work_item_id: None,
                cut,
                at: clock::now(),
            };
            let brief = match (answer, result) {
                (None, Some(brief)) => brief,
                (answer, _) => without_brief(answer.unwrap_or_else(|| UNKNOWN_ANSWER.to_owned())),
            };
            print_answer(&brief, accepted, out)
        }
        MessageOutcome::Failed { error, class, hint } => {
            refuse(Why::Failed, gist(&error, ERROR_BYTES), class, Some(hint))
        }
        MessageOutcome::WaitsForPerson { question, class } => {
            refuse(Why::WaitsForPerson, gist(&question, ERROR_BYTES), class, None)
        }
        MessageOutcome::BudgetSpent { sentence, class } => refuse(Why::BudgetSpent, sentence, class, None),
        MessageOutcome::Stopped { sentence } => refuse(Why::Stopped, sentence, None, None),
        MessageOutcome::Aborted {} => refuse(Why::Failed, "Aborted by the operator.".to_owned(), None, None),
        MessageOutcome::UnderWay { sentence, .. } => refuse(Why::Timeout, sentence, None, None),
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

fn print_answer(brief: &BriefView, accepted: &Accepted, out: &Output) -> anyhow::Result<()> {
    let brief_id = Some(&brief.brief_id).filter(|id| !id.as_str().is_empty());
    let warning = accepted.warning.as_deref();
    out.result(&AnswerShown { brief, brief_id, seq: accepted.seq, warning }, || many_lines(&brief.text))?;
    if brief.cut {
        out.note(CUT);
    }
    Ok(())
}
