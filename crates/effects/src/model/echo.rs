//! `script/echo`: the answer is the question. What it takes to see the runtime work before there is a key.

use abide_kernel::effect::ModelCall;
use abide_kernel::input::Reply;

use super::{estimate, input_text};

/// The text of the turn's message, and on the lines after it the texts of what joined the turn.
pub(super) fn echo_reply(call: &ModelCall) -> Reply {
    let text = input_text(call);
    Reply { usage: estimate(&text, &text), text, ..Reply::default() }
}
