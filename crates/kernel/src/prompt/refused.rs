//! A provider that refuses a request as one that makes no sense may have stumbled over an image in it; many look like one
//! to us and like none to somebody else. Shown again, it would spoil every request after that. So once a turn was
//! refused, its images are left out of what is shown later; and if it had none of its own, those that were shown with it.

use std::sync::Arc;

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
    for piece in &mut turn.pieces {
        match piece {
            Piece::Heard(message) => {
                let json = message.json.as_ref().filter(|json| !images_in(json).0.is_empty());
                if let Some(json) = json.map(|json| left_out(json, WHY)) {
                    *message = Arc::new(Message { json: Some(json.into()), ..Message::clone(message) });
                    any = true;
                }
            }
            Piece::Round(round) => {
                for (_, result) in round.outcomes.values_mut() {
                    if !images_in(result).0.is_empty() {
                        *result = left_out(result, WHY);
                        any = true;
                    }
                }
            }
            Piece::Note(_) => {}
        }
    }
    any
}
