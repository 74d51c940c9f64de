//! A stage for models: messages in, answers out, with the carry kept as the ledger keeps it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use abide_effects::model::Providers;
use abide_effects::tools::ToolSet;
use abide_effects::{PastResults, ProviderFailure};
use abide_kernel::effect::ModelCall;
use abide_kernel::id::{ExecId, MessageId};
use abide_kernel::input::Reply;
use abide_kernel::message::Message;
use abide_kernel::open_json::ProviderState;
use abide_kernel::vocabulary::{MessageKind, Role};
use serde_json::Value;

/// Results, oldest first, as they happened.
#[derive(Default)]
pub struct Results(pub Vec<Value>);

impl PastResults for Results {
    fn tool_results(&self, count: usize) -> Result<Vec<Value>, ProviderFailure> {
        Ok(self.0.iter().rev().take(count).cloned().collect())
    }
}

/// An agent with a script of its own. Its time is virtual: delays cost nothing.
pub struct Stage {
    folder: tempfile::TempDir,
    pub model: String,
    pub carry: Option<ProviderState>,
    pub past: Results,
    pub joined: Vec<Arc<Message>>,
    exec: u32,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    pub fn of(script: &str) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (carry, past, joined) = (None, Results::default(), Vec::new());
        let mut stage = Stage { folder, model: String::new(), carry, past, joined, exec: 0, runtime };
        stage.write("play.json", script);
        stage.model = stage.name("play.json");
        stage
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// The name of the model that plays this file.
    pub fn name(&self, file: &str) -> String {
        format!("script/{}", self.path(file).display())
    }

    pub fn write(&self, file: &str, script: &str) {
        std::fs::write(self.path(file), script).unwrap();
    }

    /// A call about this message, as the kernel would ask for it.
    pub fn model_call(&self, message: &Message) -> ModelCall {
        ModelCall {
            model: self.model.clone(),
            message: Arc::new(message.clone()),
            interjections: self.joined.clone(),
            excerpts: Vec::new(),
            carry: self.carry.clone(),
            turn_seq: 1,
            situation: None,
            place: None,
            money_limited: false,
            role: Role::Orchestrator,
            author: Box::default(),
        }
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// One call, in an execution of its own.
    pub fn call(&mut self, message: &Message) -> Result<Reply, ProviderFailure> {
        self.exec += 1;
        let exec_id = ExecId::new(format!("exec_{}", self.exec));
        let (call, model) = (self.model_call(message), Providers::default().model(&self.model).unwrap());
        let outcome = self.run(model.call(&call, &ToolSet::every(), &exec_id, 1, &self.past));
        let carry = match &outcome {
            Ok(reply) => &reply.carry,
            Err(failure) => &failure.carry,
        };
        // The carry is written and read again, as after a restart; nothing new leaves the old one.
        if let Some(carry) = carry {
            self.carry = Some(serde_json::from_str(&carry.to_string()).unwrap());
        }
        outcome
    }

    /// Its answer, in one line.
    pub fn say(&mut self, message: &Message) -> String {
        match self.call(message) {
            Ok(reply) => {
                let tools = reply.calls.iter().map(|call| format!(" {}{}", call.tool, call.input));
                reply.text + &tools.collect::<String>()
            }
            Err(failure) => format!("{} retry {:?}", failure.error, failure.retry_after_ms),
        }
    }

    /// Its answer to a caller that gives up after this long, and drops the call: none, if it takes longer.
    pub fn say_within(&mut self, message: &Message, limit: Duration) -> Option<Reply> {
        let (call, model) = (self.model_call(message), Providers::default().model(&self.model).unwrap());
        let exec_id = ExecId::new("exec_short");
        let outcome = self.run(async {
            tokio::time::timeout(limit, model.call(&call, &ToolSet::every(), &exec_id, 1, &self.past)).await
        });
        outcome.ok().map(Result::unwrap)
    }
}

/// A message with an id of its own.
pub fn message(id: &str, text: &str) -> Message {
    let mut message = Message::new(MessageId::new(id), MessageKind::OperatorPrompt);
    message.text = Some(text.to_owned());
    message
}

pub fn json_message(id: &str, json: Value) -> Message {
    let mut message = Message::new(MessageId::new(id), MessageKind::WebhookEvent);
    message.json = Some(json.into());
    message
}
