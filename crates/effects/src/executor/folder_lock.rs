//! Locks on folders: one agent at a time writes in a folder. An agent holds it from a turn's first command or writing
//! tool until the turn has ended and no command of it runs; no other agent writes in it, inside it or around it
//! meanwhile. A call that finds the folder held waits in a queue for a bounded time, without a thread of its own.
//! Readers take no lock.
//!
//! Nothing here outlives the process. Between daemons of one machine, marks on the folders do the same.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abide_kernel::explain::{FolderHolder, FolderWait, HeldFolder};
use abide_kernel::id::{AgentId, ExecId};
use abide_kernel::input::{Input, Refusal};
use abide_kernel::refusal::ErrorCode;
use abide_kernel::time::Time;
use tokio::sync::watch;
use tokio::time::Instant;

use super::folder_lease::GitAccess;
use super::{Executor, run_blocking};
use crate::file_identity::FileIdentity;
use crate::limits::FOREIGN_FOLDER_LOOK_MS;
use crate::transient;
use crate::workspace::{FolderMarks, ForeignHolder, MarkOwner};

#[derive(Debug)]
pub(super) struct FolderLocks {
    owner: MarkOwner,
    table: Mutex<Table>,
    /// Notified when a folder is free, or a call releases its claim.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Table {
    /// By folder, which orders those inside of another behind it.
    held: BTreeMap<PathBuf, FolderHold>,
    of: HashMap<AgentId, Vec<PathBuf>>,
    /// First come, first served.
    waiting: Vec<Waiter>,
    last_ticket: u64,
}

#[derive(Debug)]
struct FolderHold {
    /// Distinguishes it from an earlier hold of the same folder.
    hold_id: u64,
    agent: AgentId,
    since: Time,
    /// Whether another daemon's agent is there is not known yet.
    unsure: bool,
    /// Calls that use it now.
    claims: usize,
    /// The agent's records say that it is held, so its loop asks for the release.
    recorded: bool,
    /// It is released as soon as no call uses it: the turn has ended.
    ending: bool,
    /// The marks for other daemons of this machine, removed with this value.
    #[allow(dead_code, reason = "keeping them is all there is to do")]
    marks: Option<FolderMarks>,
    /// With the identity of the folder that they are of.
    git_access: Option<(FileIdentity, GitAccess)>,
    /// The turn whose first command brought the worktree up to date with the user's branches.
    refreshed: Option<ExecId>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    agent: AgentId,
    root: PathBuf,
    since: Time,
    holder: Option<FolderHolder>,
}

/// A place in the queue, until it is dropped.
struct Ticket<'a> {
    locks: &'a FolderLocks,
    number: u64,
}

/// A call uses a folder that its agent holds.
pub(super) struct Claim {
    executor: Executor,
    agent: AgentId,
    pub(super) root: PathBuf,
    hold_id: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.locks.table().waiting.retain(|waiter| waiter.ticket != self.number);
        self.locks.changed.send_replace(());
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("agent", &self.agent).field("root", &self.root).finish_non_exhaustive()
    }
}

impl Claim {
    fn update<T>(&self, change: impl FnOnce(&mut FolderHold) -> T) -> Option<T> {
        let mut table = self.executor.0.folders.table();
        table.held.get_mut(&self.root).filter(|held| held.hold_id == self.hold_id).map(change)
    }

    /// The input that records the hold. From here on its loop asks for the release.
    pub(super) fn record_input(&self) -> Input {
        self.update(|held| held.recorded = true);
        Input::OccupyWorkspace { workspace: self.root.display().to_string() }
    }

    /// Confirms that no other daemon's agent is there. `marks` tell other daemons, where there can be any.
    fn confirm(&self, marks: Option<FolderMarks>) {
        self.update(|held| {
            held.marks = marks;
            held.unsure = false;
        });
        self.executor.0.folders.changed.send_replace(());
    }

    /// The git_access that were found since this very folder is held: git is asked once, not for every call.
    pub(super) fn git_access(&self, folder: FileIdentity) -> Option<GitAccess> {
        let (found_of, git_access) = self.update(|held| held.git_access.clone()).flatten()?;
        (found_of == folder).then_some(git_access)
    }

    pub(super) fn store_git_access(&self, folder: FileIdentity, git_access: &GitAccess) {
        self.update(|held| held.git_access = Some((folder, git_access.clone())));
    }

    /// Whether this is the first command of a turn. Commands that a person starts belong to none, and always are.
    pub(super) fn begins_turn(&self, exec_id: Option<&ExecId>) -> bool {
        let begins = |held: &mut FolderHold| {
            let first = exec_id.is_none() || held.refreshed.as_ref() != exec_id;
            held.refreshed = exec_id.cloned();
            first
        };
        self.update(begins).unwrap_or(false)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let folders = &self.executor.0.folders;
        let forgotten = folders.release_claim(&self.root, self.hold_id);
        // A call that failed or was cut off took it, and no record tells the agent's loop to let go.
        if forgotten && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (executor, agent) = (self.executor.clone(), self.agent.clone());
            runtime.spawn(async move { executor.release_folders(&agent).await });
        }
    }
}

impl Table {
    /// Holds of other agents on the folder, inside it or around it.
    fn conflicting_holds<'a>(
        &'a self,
        agent: &'a AgentId,
        root: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a FolderHold)> {
        let around = root.ancestors().skip(1).filter_map(|folder| self.held.get_key_value(folder));
        let inside = self.held.range::<Path, _>((Bound::Included(root), Bound::Unbounded));
        let inside = inside.take_while(move |(folder, _)| folder.starts_with(root));
        around.chain(inside).filter(move |(_, held)| held.agent != *agent)
    }

    /// The first earlier waiter for an overlapping folder. Waiters for a folder of this very agent do not count.
    fn earlier_waiter(&self, ticket: u64, agent: &AgentId, root: &Path) -> Option<&Waiter> {
        let own = self.of.get(agent).into_iter().flatten().filter(|own| !self.held[*own].ending);
        let own: Vec<&PathBuf> = own.collect();
        let mut before = self.waiting.iter().filter(|waiter| waiter.ticket < ticket && waiter.agent != *agent);
        before.find(|waiter| overlap(&waiter.root, root) && !own.iter().any(|own| overlap(own, &waiter.root)))
    }

    fn remove(&mut self, root: &Path) {
        let Some(held) = self.held.remove(root) else { return };
        if let Some(of) = self.of.get_mut(&held.agent) {
            of.retain(|own| own != root);
            if of.is_empty() {
                self.of.remove(&held.agent);
            }
        }
    }
}

/// A folder that the agent holds, and whether it was taken now or by an earlier call.
struct EnteredFolder {
    hold_id: u64,
    taken: bool,
}

impl FolderLocks {
    pub(super) fn new(salt: u64) -> FolderLocks {
        let (changed, _) = watch::channel(());
        FolderLocks { owner: MarkOwner::new(salt), table: Mutex::default(), changed }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, agent: &AgentId, root: &Path, since: Time) -> Ticket<'_> {
        let mut table = self.table();
        table.last_ticket += 1;
        let ticket = table.last_ticket;
        table.waiting.push(Waiter { ticket, agent: agent.clone(), root: root.to_path_buf(), since, holder: None });
        Ticket { locks: self, number: ticket }
    }

    /// Takes the folder if the ticket is the next one.
    fn try_enter(&self, ticket: u64, agent: &AgentId, root: &Path, now: Time) -> Result<EnteredFolder, FolderHolder> {
        let mut table = self.table();
        let before = table.earlier_waiter(ticket, agent, root).map(|waiter| (waiter.agent.clone(), waiter.since));
        if let Some(held) = table.held.get_mut(root).filter(|held| held.agent == *agent) {
            if held.unsure {
                return Err(agent_holder(agent.clone(), root, held.since));
            }
            // After a turn the folder is given to the next caller in the queue.
            if let Some((first, since)) = before.filter(|_| held.ending) {
                return Err(next_in_line(first, root, since));
            }
            held.ending = false;
            held.claims += 1;
            return Ok(EnteredFolder { hold_id: held.hold_id, taken: false });
        }
        if let Some((folder, held)) = table.conflicting_holds(agent, root).next() {
            return Err(agent_holder(held.agent.clone(), folder, held.since));
        }
        if let Some((first, since)) = before {
            return Err(next_in_line(first, root, since));
        }
        // The ticket is used up with this.
        let held = FolderHold {
            hold_id: ticket,
            agent: agent.clone(),
            since: now,
            unsure: true,
            claims: 1,
            recorded: false,
            ending: false,
            marks: None,
            git_access: None,
            refreshed: None,
        };
        table.held.insert(root.to_path_buf(), held);
        table.of.entry(agent.clone()).or_default().push(root.to_path_buf());
        Ok(EnteredFolder { hold_id: ticket, taken: true })
    }

    fn set_awaited(&self, ticket: u64, holder: &FolderHolder) {
        let mut table = self.table();
        if let Some(waiter) = table.waiting.iter_mut().find(|waiter| waiter.ticket == ticket) {
            waiter.holder = Some(holder.clone());
        }
    }

    /// Ends a call's use of the folder. True if no call uses it any more and no record says that it is held.
    fn release_claim(&self, root: &Path, hold_id: u64) -> bool {
        let mut table = self.table();
        let Some(held) = table.held.get_mut(root).filter(|held| held.hold_id == hold_id) else { return false };
        held.claims -= 1;
        let forgotten = held.claims == 0 && !held.recorded;
        held.ending |= forgotten;
        drop(table);
        self.changed.send_replace(());
        forgotten
    }

    /// Marks the agent's folders to be released once nothing of it runs. No other agent gets them before.
    pub(super) fn end_holds(&self, agent: &AgentId) {
        let mut table = self.table();
        let Table { held, of, .. } = &mut *table;
        for root in of.get(agent).into_iter().flatten() {
            if let Some(held) = held.get_mut(root) {
                held.ending = true;
            }
        }
    }

    /// Releases folders that are ending and not in use. False while a call uses one of them.
    fn release_ending(&self, agent: &AgentId) -> bool {
        let mut table = self.table();
        let ending = |table: &Table| -> Vec<PathBuf> {
            let of = table.of.get(agent).into_iter().flatten();
            of.filter(|root| table.held[*root].ending).cloned().collect()
        };
        for root in ending(&table) {
            if table.held[&root].claims == 0 {
                table.remove(&root);
            }
        }
        let released = ending(&table).is_empty();
        drop(table);
        self.changed.send_replace(());
        released
    }

    /// Releases a folder that is about to be removed.
    pub(super) fn release_folder(&self, agent: &AgentId, root: &Path) {
        let mut table = self.table();
        if table.held.get(root).is_some_and(|held| held.agent == *agent) {
            table.remove(root);
        }
        drop(table);
        self.changed.send_replace(());
    }

    /// A held folder that only the agent's records can release.
    pub(super) fn recorded_folder(&self, agent: &AgentId) -> Option<String> {
        let table = self.table();
        let mut of = table.of.get(agent)?.iter();
        let root = of.find(|root| table.held[*root].recorded && !table.held[*root].ending)?;
        Some(root.display().to_string())
    }

    pub(super) fn holds(&self, agent: &AgentId, root: &Path) -> bool {
        self.table().held.get(root).is_some_and(|held| held.agent == *agent)
    }

    /// The folder that the agent holds, since when, and who waits for it.
    pub(super) fn held_folder(&self, agent: &AgentId) -> Option<HeldFolder> {
        let table = self.table();
        let root = table.of.get(agent)?.last()?;
        let waiting = table.waiting.iter().filter(|waiter| waiter.agent != *agent && overlap(&waiter.root, root));
        let waiting = waiting.map(|waiter| waiter.agent.to_string()).collect();
        Some(HeldFolder { folder: root.display().to_string(), since: table.held[root].since, waiting })
    }

    /// The folder that a call of the agent waits for.
    pub(super) fn awaited_folder(&self, agent: &AgentId) -> Option<FolderWait> {
        let table = self.table();
        let waiter = table.waiting.iter().find(|waiter| waiter.agent == *agent && waiter.holder.is_some())?;
        let folder = waiter.root.display().to_string();
        Some(FolderWait { folder, since: waiter.since, holder: waiter.holder.clone()? })
    }

    /// The agent of this daemon that keeps the agent from writing in the folder.
    fn other_holder(&self, agent: &AgentId, root: &Path) -> Option<FolderHolder> {
        let table = self.table();
        let (folder, held) = table.conflicting_holds(agent, root).next()?;
        Some(agent_holder(held.agent.clone(), folder, held.since))
    }
}

impl Executor {
    /// Has the agent hold the folder for one call. Waits for conflicting holders for at most this long.
    pub(super) async fn claim_folder(&self, agent: &AgentId, root: &Path, wait: Duration) -> Result<Claim, Refusal> {
        let (folders, deadline) = (&self.0.folders, Instant::now() + wait);
        let mut changed = folders.changed.subscribe();
        let ticket = folders.enqueue(agent, root, (self.0.moment)().0);
        loop {
            changed.mark_unchanged();
            let entered = folders.try_enter(ticket.number, agent, root, (self.0.moment)().0);
            let (holder, foreign) = match entered {
                Ok(entered) => {
                    let (executor, agent, root) = (self.clone(), agent.clone(), root.to_path_buf());
                    let claim = Claim { executor, agent, root, hold_id: entered.hold_id };
                    if !entered.taken {
                        return Ok(claim);
                    }
                    // The home is this daemon's alone.
                    if claim.root.starts_with(&self.0.home) {
                        claim.confirm(None);
                        return Ok(claim);
                    }
                    match self.mark_folder(&claim.root).await? {
                        Ok(marks) => {
                            claim.confirm(Some(marks));
                            return Ok(claim);
                        }
                        Err(foreign) => {
                            folders.release_folder(&claim.agent, &claim.root);
                            drop(claim);
                            changed.mark_unchanged();
                            (foreign_holder(&foreign), true)
                        }
                    }
                }
                Err(holder) => (holder, false),
            };
            folders.set_awaited(ticket.number, &holder);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => return Err(occupied_refusal(&holder, root, wait)),
                // The sender is there for as long as this is.
                _ = changed.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(FOREIGN_FOLDER_LOOK_MS)), if foreign => {}
            }
        }
    }

    async fn mark_folder(&self, root: &Path) -> Result<Result<FolderMarks, ForeignHolder>, Refusal> {
        let (owner, folder) = (self.0.folders.owner, root.to_path_buf());
        let marked = run_blocking(move || owner.mark_folder(&folder)).await;
        marked.map_err(|error| {
            let message = format!("{} could not be taken: {error}", root.display());
            Refusal::new(ErrorCode::Io, message)
                .with_hint(transient::hint(&error, "see that the daemon can open the folder"))
        })
    }

    /// Releases the agent's folders once no call uses them and no command of it runs, because that may write there.
    pub(super) async fn release_folders(&self, agent: &AgentId) {
        let mut changed = self.0.folders.changed.subscribe();
        loop {
            self.0.tasks.wait_until_over(agent).await;
            changed.mark_unchanged();
            if self.0.folders.release_ending(agent) {
                return;
            }
            let _there = changed.changed().await;
        }
    }

    /// The holder that keeps the agent from writing in the folder at this moment.
    pub async fn folder_holder(&self, agent: &AgentId, folder: &Path) -> Option<FolderHolder> {
        if let Some(holder) = self.0.folders.other_holder(agent, folder) {
            return Some(holder);
        }
        if folder.starts_with(&self.0.home) || self.0.folders.holds(agent, folder) {
            return None;
        }
        let (owner, folder) = (self.0.folders.owner, folder.to_path_buf());
        run_blocking(move || owner.find_foreign_holder(&folder)).await.map(|foreign| foreign_holder(&foreign))
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn agent_holder(agent: AgentId, folder: &Path, since: Time) -> FolderHolder {
    let folder = folder.display().to_string();
    FolderHolder { agent_id: Some(agent.to_string()), daemon_pid: None, folder, since: Some(since), is_next: false }
}

fn next_in_line(agent: AgentId, folder: &Path, since: Time) -> FolderHolder {
    FolderHolder { is_next: true, ..agent_holder(agent, folder, since) }
}

fn foreign_holder(foreign: &ForeignHolder) -> FolderHolder {
    let folder = foreign.folder.display().to_string();
    FolderHolder { agent_id: None, daemon_pid: Some(foreign.pid), folder, since: None, is_next: false }
}

fn occupied_refusal(holder: &FolderHolder, root: &Path, wait: Duration) -> Refusal {
    let wanted = root.display().to_string();
    let meant = if holder.folder == wanted { String::new() } else { format!(", and {wanted} overlaps with it") };
    let message = format!("{}{meant}; this call waited {} ms for it", holder.sentence(), wait.as_millis());
    Refusal::new(ErrorCode::Occupied, message)
}
