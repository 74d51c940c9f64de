//! The position in a script. It is kept in the carry, so it survives a restart, and a call that was cut off plays
//! again.
//!
//! Rounds play in order, whichever messages the calls are about. A message that sets off a `when` entry opens a *play*
//! of it, which goes before the main rounds:
//! - A message sets off an entry once. When it comes again (after a failure, a stop, a crash) it goes on in its own
//!   play, even where others were played in between.
//! - Interjections are messages too: one that sets off an entry opens a play of its own, and what its turn was playing
//!   goes on after that.
//! - The play that is on goes on with whatever message comes next, because an entry that waits for something is
//!   continued by the message that brings it. Only a play whose last round failed stays with its message, which will
//!   come again: another message must not take its rounds.
//! - A new play takes the place of the one that was on. After it come the main rounds, not the rest of the earlier one,
//!   unless that one's own message comes again.

use std::path::Path;
use std::sync::Arc;

use abide_kernel::effect::ModelCall;
use abide_kernel::id::MessageId;
use abide_kernel::message::Message;
use abide_kernel::provider;
use serde::Deserialize;
use serde_json::{Value, json};

use super::file::{Round, RoundOutcome, Script};
use crate::limits;
use crate::model::text_of;

#[derive(Debug, Default, Deserialize)]
pub(super) struct ScriptPosition {
    /// The file it is a place in. In another file it means nothing.
    script: String,
    /// The next of the main rounds.
    next: usize,
    /// Plays of entries, the one that is on last. Those that are played out stay: their messages are not new.
    #[serde(default)]
    plays: Vec<Play>,
}

/// One entry, played because of one message.
#[derive(Debug, Deserialize)]
struct Play {
    message_id: MessageId,
    /// The entry's text. It names the entry even when the file is edited: of two with one text only the first plays.
    contains: String,
    next: usize,
    /// Its last round failed in a way that brings the message again.
    #[serde(default)]
    failed: bool,
}

impl ScriptPosition {
    /// Another provider's carry is none of ours, and another file's place is none of this file's: either way the file
    /// plays from its beginning.
    pub(super) fn from_carry(carry: Option<&Value>, file: &Path) -> ScriptPosition {
        let script = file.to_string_lossy();
        let kept =
            carry.and_then(|carry| ScriptPosition::deserialize(carry).ok()).filter(|place| place.script == script);
        kept.unwrap_or_else(|| ScriptPosition { script: script.into_owned(), ..ScriptPosition::default() })
    }

    pub(super) fn to_carry(&self) -> Value {
        let mut carry = json!({ "script": self.script, "next": self.next });
        if !self.plays.is_empty() {
            carry["plays"] = self.plays.iter().map(Play::to_carry).collect();
        }
        carry
    }

    /// The round that this call plays; the place moves past it. Nothing: played out.
    pub(super) fn next_round<'s>(&mut self, script: &'s Script, call: &ModelCall) -> Option<&'s Round> {
        self.open_plays(script, call);
        match self.play_on(script, call) {
            Some(round) => Some(round),
            None => self.main_round(script),
        }
    }

    fn open_plays(&mut self, script: &Script, call: &ModelCall) {
        for message in messages(call) {
            if self.plays.iter().any(|play| play.message_id == message.message_id) {
                continue;
            }
            let text = text_of(message);
            if let Some(when) = script.when.iter().find(|when| text.contains(&when.contains)) {
                let (message_id, contains) = (message.message_id.clone(), when.contains.clone());
                self.plays.push(Play { message_id, contains, next: 0, failed: false });
            }
        }
        // The oldest go, but none of this call's: it would be new again at the next call, and so without end.
        let mut excess = self.plays.len().saturating_sub(limits::PLAYS_MAX);
        self.plays.retain(|play| {
            let stays = excess == 0 || play.is_of(call);
            excess -= usize::from(!stays);
            stays
        });
    }

    fn play_on<'s>(&mut self, script: &'s Script, call: &ModelCall) -> Option<&'s Round> {
        let own = self.plays.iter().rposition(|play| play.is_of(call) && play.round(script).is_some());
        let on = || self.plays.len().checked_sub(1).filter(|&last| !self.plays[last].failed);
        let mut play = self.plays.remove(own.or_else(on)?);
        let round = play.round(script);
        if let Some(round) = round {
            play.next += 1;
            play.failed = match &round.says {
                RoundOutcome::Reply { .. } => false,
                RoundOutcome::Error { error, .. } => provider::keeps_message(*error),
            };
        }
        self.plays.push(play);
        round
    }

    fn main_round<'s>(&mut self, script: &'s Script) -> Option<&'s Round> {
        if script.repeats && self.next >= script.rounds.len() {
            self.next = 0;
        }
        // Played out, the place stays at the end, so that rounds which are added to the file get played.
        let round = script.rounds.get(self.next)?;
        self.next += 1;
        Some(round)
    }
}

/// The message of the turn, then its interjections.
fn messages(call: &ModelCall) -> impl Iterator<Item = &Arc<Message>> {
    std::iter::once(&call.message).chain(&call.interjections)
}

impl Play {
    fn is_of(&self, call: &ModelCall) -> bool {
        messages(call).any(|message| message.message_id == self.message_id)
    }

    fn round<'s>(&self, script: &'s Script) -> Option<&'s Round> {
        script.find_entry(&self.contains)?.rounds.get(self.next)
    }

    fn to_carry(&self) -> Value {
        let Play { message_id, contains, next, failed } = self;
        let mut play = json!({ "message_id": message_id.as_str(), "contains": contains, "next": next });
        if *failed {
            play["failed"] = Value::Bool(true);
        }
        play
    }
}
