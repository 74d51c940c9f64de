//! Sentences of `why` and other surfaces about a folder that an agent holds or waits for. Records do not have this: it holds for
//! the moment in which the daemon was asked.

use abide_views::workspace::FolderHolderView;

use super::{WaitingOn, Why};
use crate::time::Time;

/// The agent that keeps others from writing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderHolder {
    /// None where it is an agent of another daemon.
    pub agent_id: Option<String>,
    /// That daemon's process.
    pub daemon_pid: Option<u32>,
    /// The folder that is held: the same, one inside it or one around it.
    pub folder: String,
    /// Not known of another daemon.
    pub since: Option<Time>,
    /// It does not hold the folder yet: it waits for it, and comes first.
    pub is_next: bool,
}

/// A folder that the agent holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFolder {
    pub folder: String,
    pub since: Time,
    /// The agents that wait for it.
    pub waiting: Vec<String>,
}

/// A call of the agent waits for a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderWait {
    pub folder: String,
    pub since: Time,
    pub holder: FolderHolder,
}

/// How an agent stands to folders at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderUse {
    pub held: Option<HeldFolder>,
    pub awaited: Option<FolderWait>,
    /// The holder of the folder that it works in.
    pub held_by: Option<FolderHolder>,
}

impl FolderHolder {
    /// `ada holds /w since …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{} {} {}{}", self.name(), self.does(), self.folder, self.since())
    }

    /// The same, and what it means for somebody who works there too.
    #[must_use]
    pub fn note(&self) -> String {
        let then = "commands and changes of files wait for that, reading does not; agents in worktrees do not wait";
        format!("{}, until its turn and its tasks are over; {then}", self.sentence())
    }

    /// As it goes out.
    #[must_use]
    pub fn view(&self) -> FolderHolderView {
        FolderHolderView {
            agent_id: self.agent_id.clone(),
            daemon_pid: self.daemon_pid,
            folder: self.folder.clone(),
            since: self.since,
            note: self.note(),
        }
    }

    fn name(&self) -> String {
        match (&self.agent_id, self.daemon_pid) {
            (Some(agent), _) => agent.clone(),
            (None, Some(pid)) => format!("an agent of another daemon (process {pid})"),
            (None, None) => "an agent of another daemon".to_owned(),
        }
    }

    fn does(&self) -> &'static str {
        if self.is_next { "is next in line for" } else { "holds" }
    }

    fn since(&self) -> String {
        self.since.map(|since| format!(" since {since}")).unwrap_or_default()
    }
}

/// Adds what the daemon knows of the folders at this moment.
pub fn add_folder_use(why: &mut Why, used: &FolderUse) {
    if let Some(FolderWait { folder, since, holder }) = &used.awaited {
        let held = format!("that {} {}{}", holder.name(), holder.does(), holder.since());
        let what = format!("the folder {folder} {held}");
        why.waiting_on.push(WaitingOn { what, since: Some(*since), seq: why.at_seq });
        why.sentence.push_str(&format!(" It waits for the folder {folder} {held}."));
    }
    if let Some(HeldFolder { folder, since, waiting }) = &used.held {
        let waits = match waiting.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} waits for it"),
            more => format!("; {} wait for it", more.join(", ")),
        };
        why.notes.push(format!("it holds {folder} since {since}, until its turn and its tasks are over{waits}"));
    }
    if let Some(holder) = &used.held_by {
        why.notes.push(holder.note());
    }
}
