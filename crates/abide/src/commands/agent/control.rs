//! `abide agent start` and `abide agent stop`: one agent, several, or all of them. A failure of one agent is reported
//! and never keeps another one from being started or stopped.

use std::collections::BTreeSet;

use abide_api::types::AgentSummary;
use abide_api::{Client, ClientError};
use abide_kernel::id::AgentId;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::vocabulary::AgentKind;
use futures_util::StreamExt;
use futures_util::stream;

use super::{all, status_line};
use crate::cli::{AgentsArgs, PlaceArgs};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::output::{AgentFailure, Failed, Output, counted};

/// A stop takes as long as the agent needs to let go of its commands and folders, so that one after the other would
/// take minutes. The daemon serves others meanwhile, so that all at once would be too many.
const AT_ONCE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
}

impl Action {
    /// The word of the command, and of its route.
    fn as_str(self) -> &'static str {
        match self {
            Action::Start => "start",
            Action::Stop => "stop",
        }
    }

    fn participle(self) -> &'static str {
        match self {
            Action::Start => "started",
            Action::Stop => "stopped",
        }
    }
}

pub fn run(action: Action, args: &AgentsArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    if let [id] = &args.ids[..] {
        return one(id, action.as_str(), place, out);
    }
    let client = connection::find(place)?;
    let mut batch =
        Batch { action, client: &client, out, summaries: Vec::new(), failures: Vec::new(), printed: Ok(()) };
    let listed = block_on(async {
        match (args.all, action) {
            (false, _) => {
                batch.named(&args.ids).await;
                Ok(())
            }
            (true, Action::Start) => batch.start_all().await,
            (true, Action::Stop) => batch.stop_all().await,
        }
    });
    batch.finish(listed)
}

/// One agent, whose summary is the result; `action` may be a deprecated one.
pub fn one(id: &AgentId, action: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let summary = block_on(async { Ok(client.control(id.as_str(), action).await?) })?;
    if let Some(deprecated) = &summary.deprecated {
        out.note(&format!("`{action}` will go: {deprecated}"));
    }
    super::status(&summary, out)
}

/// Several agents, and what became of those that were asked so far.
struct Batch<'a> {
    action: Action,
    client: &'a Client,
    out: &'a Output,
    summaries: Vec<AgentSummary>,
    /// The exit codes of the failures, in the order of the agents.
    failures: Vec<u8>,
    /// Whether stdout took every line. If it did not, the other agents are still asked.
    printed: anyhow::Result<()>,
}

impl Batch<'_> {
    /// Each agent once, however often it is named. One that can't be started because it runs is a failure, as it is where
    /// it is named alone.
    async fn named(&mut self, ids: &[AgentId]) {
        let mut seen = BTreeSet::new();
        let ids = ids.iter().filter(|id| seen.insert(*id)).map(ToString::to_string).collect();
        let (client, action) = (self.client, self.action.as_str());
        self.ask(ids, async |id| client.control(id, action).await.map(Some)).await;
    }

    /// A child is left out: it starts with its task and never again.
    async fn start_all(&mut self) -> anyhow::Result<()> {
        let agents = all(self.client).await?.into_iter().filter(|agent| agent.kind != AgentKind::Child);
        let ids = agents.map(|agent| agent.id.to_string()).collect();
        let client = self.client;
        self.ask(ids, async |id| match client.control(id, Action::Start.as_str()).await {
            Err(ClientError::Refused(problem)) if problem.is(ErrorCode::NotStopped) => {
                unless_gone(client.agent(id).await)
            }
            answered => unless_gone(answered),
        })
        .await;
        Ok(())
    }

    /// An agent may make others until it is stopped, so that the list is read again until it has no new ones. Children are
    /// left out, because their supervisor dismisses them when it stops; where a supervisor can't be stopped, nobody does,
    /// and children are stopped as well.
    async fn stop_all(&mut self) -> anyhow::Result<()> {
        let mut seen = BTreeSet::new();
        loop {
            let with_children = !self.failures.is_empty();
            let agents =
                all(self.client).await?.into_iter().filter(|agent| with_children || agent.kind != AgentKind::Child);
            let ids: Vec<String> =
                agents.map(|agent| agent.id.to_string()).filter(|id| seen.insert(id.clone())).collect();
            if ids.is_empty() {
                return Ok(());
            }
            let client = self.client;
            self.ask(ids, async |id| unless_gone(client.control(id, Action::Stop.as_str()).await)).await;
        }
    }

    /// Asks some agents at a time. Results are printed in the order of the ids, so that they can be compared.
    async fn ask(&mut self, ids: Vec<String>, ask: impl AsyncFn(&str) -> Result<Option<AgentSummary>, ClientError>) {
        let ask = &ask;
        let asked = stream::iter(ids).map(|id| async move {
            let answered = ask(&id).await;
            (id, answered)
        });
        let mut answers = std::pin::pin!(asked.buffered(AT_ONCE));
        while let Some((id, answered)) = answers.next().await {
            match answered {
                Ok(None) => {}
                Ok(Some(summary)) => self.succeeded(summary),
                Err(error) => self.failed(id, error),
            }
        }
    }

    /// With --json all summaries are one document, which is printed at the end.
    fn succeeded(&mut self, summary: AgentSummary) {
        if !self.out.is_json() && self.printed.is_ok() {
            self.printed = self.out.result(&summary, || status_line(&summary));
        }
        self.summaries.push(summary);
    }

    fn failed(&mut self, agent_id: String, error: ClientError) {
        let error = anyhow::Error::new(error).context(AgentFailure { action: self.action.as_str(), agent_id });
        self.failures.push(Failed::code(&error));
        self.out.error(&error);
    }

    /// `listed` is an error where the list of agents could not be read, which may be after some of them were stopped.
    fn finish(self, listed: anyhow::Result<()>) -> anyhow::Result<()> {
        let Batch { action, out, summaries, failures, printed, .. } = self;
        let asked = summaries.len() + failures.len();
        if asked == 0 {
            listed?;
            return out.result(&plane::page_of(&summaries), || format!("no agents to {}\n", action.as_str()));
        }
        printed?;
        if out.is_json() {
            out.result(&plane::page_of(&summaries), String::new)?;
        }
        listed?;
        let Some(code) = failures.first().copied() else { return Ok(()) };
        let agents = counted(asked as u64, "agent");
        let what = format!("{} of {agents} could not be {}", failures.len(), action.participle());
        Err(Failed::Partly { what, code }.into())
    }
}

/// An agent that was deleted, or a child that ended, after the list was read has nothing left to start or stop.
fn unless_gone(answered: Result<AgentSummary, ClientError>) -> Result<Option<AgentSummary>, ClientError> {
    match answered {
        Err(ClientError::Refused(problem)) if problem.status == 404 => Ok(None),
        answered => answered.map(Some),
    }
}
