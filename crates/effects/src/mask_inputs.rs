//! Masks the outcomes of effects before they are recorded: no fact and no prompt may hold the value of a secret, wherever
//! a tool, a command or a model got it from.

use abide_kernel::input::{Checked, Input, Removal, Reply};
use abide_kernel::tool::{Call, ToolCall};

use crate::secrets::Mask;
use crate::tools::ToolSet;

impl Mask {
    /// Masks the text in the outcomes of an effect.
    #[must_use]
    pub fn inputs(&self, mut inputs: Vec<Input>) -> Vec<Input> {
        if self.has_values() {
            inputs.iter_mut().for_each(|input| self.input(input));
        }
        inputs
    }

    fn input(&self, input: &mut Input) {
        match input {
            Input::FinishRound { reply, .. } => self.reply(reply),
            Input::FailRound { message, .. } => self.string(message),
            Input::FinishTool { result, .. } => drop(self.json(result)),
            Input::Checkpoint { recap, .. } => self.string(recap),
            Input::Compact { summary, .. } => summary.iter_mut().for_each(|summary| self.string(summary)),
            Input::EndTask { end, .. } => {
                self.string(&mut end.output_tail);
                self.strings(&mut end.evidence);
            }
            Input::FinishRemoval { removal, .. } => match removal {
                Ok(Removal { patch: _, branches, evidence }) => {
                    self.strings(branches);
                    self.strings(evidence);
                }
                Err(error) => self.string(error),
            },
            Input::FinishCheck {
                checked: Checked::Exited { output: text, .. } | Checked::NotDone { why: text },
                ..
            } => self.string(text),
            // The text in these is the runtime's own, or a person's.
            Input::Create { .. }
            | Input::CreateChild(_)
            | Input::Dismiss { .. }
            | Input::SupervisorHeard
            | Input::Configure { .. }
            | Input::Fork { .. }
            | Input::Start
            | Input::Stop
            | Input::Abort { .. }
            | Input::Shutdown { .. }
            | Input::Boot { .. }
            | Input::Quarantine { .. }
            | Input::Archive
            | Input::Queue(_)
            | Input::Deliver { .. }
            | Input::Wake { .. }
            | Input::FireDue
            | Input::FollowClock
            | Input::Act { .. }
            | Input::CountCutRound { .. }
            | Input::OverflowBaseline { .. }
            | Input::CreateTask(_)
            | Input::RunTask { .. }
            | Input::UseWorkspace(_)
            | Input::OccupyWorkspace { .. }
            | Input::HoldForDisk { .. }
            | Input::DiskHasRoom
            | Input::ReleaseTurns { .. }
            | Input::ReleaseWorkspace { .. }
            | Input::RecordRuntimeError { .. } => {}
        }
    }

    /// A model may have put a value together again that was masked where it read it.
    fn reply(&self, reply: &mut Reply) {
        self.string(&mut reply.text);
        reply.calls.iter_mut().for_each(|call| self.call(call));
        // Reasoning is signed by its provider: it can be given back as it is, or not at all.
        if reply.sealed.as_ref().is_some_and(|sealed| self.json(&mut sealed.clone())) {
            reply.sealed = None;
        }
    }

    fn call(&self, call: &mut Call) {
        self.string(&mut call.tool);
        let masked = self.json(&mut call.input);
        match &mut call.parsed {
            ToolCall::Refused(refusal) => {
                self.string(&mut refusal.message);
                self.string(&mut refusal.hint);
            }
            // Another text is another call. Its tool was among those of the turn, or it would have been refused.
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_) if masked => {
                call.parsed = ToolSet::every().parse(&call.tool, &call.input);
            }
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_) => {}
        }
    }
}
