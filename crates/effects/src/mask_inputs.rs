//! Masks the outcomes of effects before they are recorded: no fact and no prompt may hold the value of a secret,
//! whether a tool, a command or a model produced it.

use abide_kernel::input::{Checked, Input, Removal, Reply};
use abide_kernel::tool::{Call, ToolCall};

use crate::secrets::Mask;
use crate::tools::ToolSet;

impl Mask {
    /// Masks the text in the outcomes of an effect.
    #[must_use]
    pub fn mask_inputs(&self, mut inputs: Vec<Input>) -> Vec<Input> {
        if self.has_values() {
            inputs.iter_mut().for_each(|input| self.mask_input(input));
        }
        inputs
    }

    fn mask_input(&self, input: &mut Input) {
        match input {
            Input::FinishRound { reply, .. } => self.mask_reply(reply),
            Input::FailRound { message, .. } => self.mask_string(message),
            Input::FinishTool { result, .. } => drop(self.mask_json(result)),
            Input::Checkpoint { recap, .. } => self.mask_string(recap),
            Input::Compact { summary, .. } => summary.iter_mut().for_each(|summary| self.mask_string(summary)),
            Input::EndTask { end, .. } => {
                self.mask_string(&mut end.output_tail);
                self.mask_strings(&mut end.evidence);
            }
            Input::FinishRemoval { removal, .. } => match removal {
                Ok(Removal { patch: _, branches, evidence }) => {
                    self.mask_strings(branches);
                    self.mask_strings(evidence);
                }
                Err(error) => self.mask_string(error),
            },
            Input::FinishCheck {
                checked: Checked::Exited { output: text, .. } | Checked::NotDone { why: text },
                ..
            } => self.mask_string(text),
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
    fn mask_reply(&self, reply: &mut Reply) {
        self.mask_string(&mut reply.text);
        reply.calls.iter_mut().for_each(|call| self.mask_call(call));
        // Reasoning is signed by its provider: it can be given back as it is, or not at all.
        if reply.sealed.as_ref().is_some_and(|sealed| self.mask_json(&mut sealed.clone())) {
            reply.sealed = None;
        }
    }

    fn mask_call(&self, call: &mut Call) {
        self.mask_string(&mut call.tool);
        let masked = self.mask_json(&mut call.input);
        match &mut call.parsed {
            ToolCall::Refused(refusal) => {
                self.mask_string(&mut refusal.message);
                self.mask_string(&mut refusal.hint);
            }
            // Another text is another call. Its tool was among those of the turn, or it would have been refused.
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_) if masked => {
                call.parsed = ToolSet::every().parse(&call.tool, &call.input);
            }
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_) => {}
        }
    }
}
