//! A provider that refuses a request as one that makes no sense may have stumbled over an image in it; many look like one
//! to us and like none to somebody else. Shown again, it would spoil every request after that. So once a turn was
//! refused, its images are left out of what is shown later; and if it had none of its own, those that were shown with it.

use std::sync::Arc;

use serde_json::Value;

use super::image::{images_in, left_out};
use super::talk::{Piece, Spoken};
use crate::message::Message;

const WHY: &str = "a request that it was in was refused by the model's provider; it can be sent again";

/// A request of the last of these turns was refused.
pub(super) fn without_images(turns: &mut [Spoken]) {
    let Some((last, before)) = turns.split_last_mut() else { return };
    let first = !std::mem::replace(&mut last.refused, true);
    if first && !strip(last) {
        before.iter_mut().for_each(|turn| _ = strip(turn));
    }
}

/// There is something new in a turn, which may go on after it was refused.
pub(super) fn without_later_images(turn: &mut Spoken) {
    if turn.refused {
        strip(turn);
    }
}

/// Takes the images out of a turn. True: there were some.
fn strip(turn: &mut Spoken) -> bool {
    let mut any = false;
    for entry in turn.pieces.iter_mut().filter(|entry| has_images(entry.piece())) {
        any = true;
        match entry.change() {
            Piece::Heard(message) => {
                let json = message.json.as_ref().map(|json| left_out(json, WHY));
                *message = Arc::new(Message { json: json.map(Into::into), ..Message::clone(message) });
            }
            Piece::Round(round) => {
                let with_images = round.outcomes.values_mut().filter(|(_, result)| contains_images(result));
                with_images.for_each(|(_, result)| *result = left_out(result, WHY).into());
            }
            Piece::Note(_) => {}
        }
    }
    any
}

fn has_images(piece: &Piece) -> bool {
    match piece {
        Piece::Heard(message) => message.json.as_ref().is_some_and(|json| contains_images(json)),
        Piece::Round(round) => round.outcomes.values().any(|(_, result)| contains_images(result)),
        Piece::Note(_) => false,
    }
}

fn contains_images(json: &Value) -> bool {
    !images_in(json).0.is_empty()
}
