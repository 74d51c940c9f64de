//! Streams that are split, cut and damaged at every byte.

use abide_effects::ProviderFailure;
use abide_effects::model::remote::Protocol;
use abide_kernel::input::Reply;
use abide_kernel::tool::ToolCall;
use abide_kernel::vocabulary::ProviderError;

use super::provider::*;
use super::{anthropic, chat, responses};

/// Every protocol, with a stream that has all kinds of things in it.
fn streams() -> [(Protocol, Vec<u8>); 3] {
    [
        (Protocol::Anthropic, anthropic::everything().into_bytes()),
        (Protocol::Responses, responses::everything().into_bytes()),
        (Protocol::Chat, chat::everything().into_bytes()),
    ]
}

/// The outcome of each of the answers, one after another.
async fn outcomes(protocol: Protocol, answers: Vec<Answer>) -> Vec<Result<Reply, ProviderFailure>> {
    let count = answers.len();
    let provider = Loopback::new(answers);
    let remote = provider.remote(protocol);
    let mut outcomes = Vec::new();
    for _ in 0..count {
        outcomes.push(call(&remote, &hello()).await);
    }
    outcomes
}

#[tokio::test]
async fn pieces_of_any_size_make_the_same_reply() {
    for (protocol, stream) in streams() {
        let whole = Answer::stream(stream);
        let answers = [usize::MAX, 1, 2, 3, 7, 64, 1_000].map(|size| whole.clone().in_pieces_of(size));
        let replies = outcomes(protocol, answers.to_vec()).await;
        let first = replies[0].clone().unwrap();
        assert_eq!(first.calls.len(), 2);
        for reply in replies {
            assert_eq!(reply.unwrap(), first);
        }
    }
}

/// The end of lines is a matter of taste, and so are comments.
#[tokio::test]
async fn other_line_ends_make_the_same_reply() {
    for (protocol, stream) in streams() {
        let text = String::from_utf8(stream).unwrap();
        let mut answers = vec![Answer::stream(text.clone())];
        for end in ["\r\n", "\r"] {
            let text = format!("\u{feff}: hello\n\n{}", text.replace("\n\n", "\n: still here\n\n")).replace('\n', end);
            answers.push(Answer::stream(text).in_pieces_of(5));
        }
        let replies = outcomes(protocol, answers).await;
        for reply in &replies {
            assert_eq!(reply.as_ref().unwrap(), replies[0].as_ref().unwrap());
        }
    }
}

/// Until the last byte of its last event is there, a stream that is cut is a disconnect; from then on it is the reply.
#[tokio::test]
async fn cut_at_every_byte() {
    for (protocol, stream) in streams() {
        let whole = outcome(protocol, Answer::stream(stream.clone())).await.unwrap();
        let answers = (0..stream.len()).map(|at| Answer::stream(&stream[..at]).cut()).collect();
        for (at, outcome) in outcomes(protocol, answers).await.into_iter().enumerate() {
            let failure = outcome.expect_err(&format!("{protocol:?} cut at {at}"));
            assert_eq!(failure.error, ProviderError::Disconnect, "{protocol:?} cut at {at}: {failure:?}");
        }
        assert_eq!(outcome(protocol, Answer::stream(stream).cut()).await.unwrap(), whole);
    }
}

async fn outcome(protocol: Protocol, answer: Answer) -> Result<Reply, ProviderFailure> {
    outcomes(protocol, vec![answer]).await.remove(0)
}

/// The same where the server ends the body as if that had been all of it: never half a call.
#[tokio::test]
async fn ended_early_at_every_byte() {
    for (protocol, stream) in streams() {
        let whole = outcome(protocol, Answer::stream(stream.clone())).await.unwrap();
        let answers = (0..stream.len()).map(|at| Answer::stream(&stream[..at])).collect();
        for (at, outcome) in outcomes(protocol, answers).await.into_iter().enumerate() {
            match outcome {
                // Chat may end after its reason: then only the counting is missing.
                Ok(reply) => {
                    assert_eq!(protocol, Protocol::Chat, "{at}");
                    assert_eq!((reply.text, reply.calls), (whole.text.clone(), whole.calls.clone()), "{at}");
                }
                Err(failure) => assert_eq!(failure.error, ProviderError::Disconnect, "{at}: {failure:?}"),
            }
        }
    }
}

/// A byte that became another: a reply or a classified failure. Calls that run are calls of tools that were asked for,
/// or have a damaged name that is a tool's, which one byte can't make.
#[tokio::test]
async fn damaged_at_every_byte() {
    for (protocol, stream) in streams() {
        let damage = |at: usize| {
            let mut damaged = stream.clone();
            // Another letter, a broken one, a quote.
            damaged[at] = [damaged[at] ^ 1, 0xff, b'"'][at % 3];
            Answer::stream(damaged)
        };
        let answers = (0..stream.len()).map(damage).collect();
        for (at, outcome) in outcomes(protocol, answers).await.into_iter().enumerate() {
            let Ok(reply) = outcome else { continue };
            for call in &reply.calls {
                let expected = ["ReadFile", "TaskList"].contains(&call.tool.as_str());
                assert!(expected || matches!(call.parsed, ToolCall::Refused(_)), "{protocol:?} at {at}: {call:?}");
                assert!(call.input.is_object(), "{protocol:?} at {at}: {call:?}");
            }
        }
    }
}
