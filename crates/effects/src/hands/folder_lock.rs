//! Locks on folders: one agent at a time writes in a folder. An agent holds it from a turn's first command or writing tool
//! until the turn has ended and no command of it runs; nobody else writes in it, inside it or around it meanwhile. A call
//! that finds the folder held waits in line for a bounded time, without a thread of its own. Readers have no part in this.
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

use super::desk::Surroundings;
use super::{Hands, blocking};
use crate::limits::FOREIGN_FOLDER_LOOK_MS;
use crate::transient;
use crate::unlinked::FileIdentity;
use crate::workspace::{FolderMarks, ForeignHolder, MarkOwner};

#[derive(Debug)]
pub(super) struct FolderLocks {
    owner: MarkOwner,
    table: Mutex<Table>,
    /// Rung when a folder is free, or a call lets go of its claim.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Table {
    /// By folder, which orders those inside of another behind it.
    held: BTreeMap<PathBuf, Held>,
    of: HashMap<AgentId, Vec<PathBuf>>,
    /// First come, first served.
    waiting: Vec<Waiter>,
    last_ticket: u64,
}

#[derive(Debug)]
struct Held {
    /// Tells it from an earlier stay in the same folder.
    stay: u64,
    agent: AgentId,
    since: Time,
    /// It is not known yet whether another daemon's agent is there.
    unsure: bool,
    /// Calls that use it now.
    claims: usize,
    /// The agent's records say that it is held, so its loop asks for the release.
    recorded: bool,
    /// It goes as soon as nobody uses it: the turn has ended.
    ending: bool,
    /// For the other daemons of this machine. Taken away with this.
    #[allow(dead_code, reason = "keeping them is all there is to do")]
    marks: Option<FolderMarks>,
    /// With the identity of the folder that they are of.
    surroundings: Option<(FileIdentity, Surroundings)>,
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

/// A place in the line, until it is dropped.
struct Ticket<'a> {
    locks: &'a FolderLocks,
    number: u64,
}

/// A call uses a folder that its agent holds.
pub(super) struct Claim {
    hands: Hands,
    agent: AgentId,
    pub(super) root: PathBuf,
    stay: u64,
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
    fn edit<T>(&self, change: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let mut table = self.hands.0.folders.table();
        table.held.get_mut(&self.root).filter(|held| held.stay == self.stay).map(change)
    }

    /// The input that records the hold. From here on its loop asks for the release.
    pub(super) fn record(&self) -> Input {
        self.edit(|held| held.recorded = true);
        Input::OccupyWorkspace { workspace: self.root.display().to_string() }
    }

    /// No other daemon's agent is there; `marks` say so to other daemons, where there can be any.
    fn settle(&self, marks: Option<FolderMarks>) {
        self.edit(|held| {
            held.marks = marks;
            held.unsure = false;
        });
        self.hands.0.folders.changed.send_replace(());
    }

    /// The surroundings that were found since this very folder is held: git is asked once, not for every call.
    pub(super) fn surroundings(&self, folder: FileIdentity) -> Option<Surroundings> {
        let (found_of, surroundings) = self.edit(|held| held.surroundings.clone()).flatten()?;
        (found_of == folder).then_some(surroundings)
    }

    pub(super) fn keep_surroundings(&self, folder: FileIdentity, surroundings: &Surroundings) {
        self.edit(|held| held.surroundings = Some((folder, surroundings.clone())));
    }

    /// Whether this is the first command of a turn. Commands that a person starts belong to none, and always are.
    pub(super) fn begins_turn(&self, exec_id: Option<&ExecId>) -> bool {
        let begins = |held: &mut Held| {
            let first = exec_id.is_none() || held.refreshed.as_ref() != exec_id;
            held.refreshed = exec_id.cloned();
            first
        };
        self.edit(begins).unwrap_or(false)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let folders = &self.hands.0.folders;
        let forgotten = folders.unclaim(&self.root, self.stay);
        // A call that failed or was cut off took it, and no record tells the agent's loop to let go.
        if forgotten && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (hands, agent) = (self.hands.clone(), self.agent.clone());
            runtime.spawn(async move { hands.let_go(&agent).await });
        }
    }
}

impl Table {
    /// Holds of others that lie in the folder, inside it or around it.
    fn in_the_way<'a>(&'a self, agent: &'a AgentId, root: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a Held)> {
        let around = root.ancestors().skip(1).filter_map(|folder| self.held.get_key_value(folder));
        let inside = self.held.range::<Path, _>((Bound::Included(root), Bound::Unbounded));
        let inside = inside.take_while(move |(folder, _)| folder.starts_with(root));
        around.chain(inside).filter(move |(_, held)| held.agent != *agent)
    }

    /// Those who came first and want the same. One who waits for this very agent is not waited for.
    fn first_come(&self, ticket: u64, agent: &AgentId, root: &Path) -> Option<&Waiter> {
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

/// A folder that the agent is in, and whether it was taken now or is held since an earlier call.
struct Entered {
    stay: u64,
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

    fn join(&self, agent: &AgentId, root: &Path, since: Time) -> Ticket<'_> {
        let mut table = self.table();
        table.last_ticket += 1;
        let ticket = table.last_ticket;
        table.waiting.push(Waiter { ticket, agent: agent.clone(), root: root.to_path_buf(), since, holder: None });
        Ticket { locks: self, number: ticket }
    }

    /// Enters the folder, if it is this one's turn.
    fn enter(&self, ticket: u64, agent: &AgentId, root: &Path, now: Time) -> Result<Entered, FolderHolder> {
        let mut table = self.table();
        let before = table.first_come(ticket, agent, root).map(|waiter| (waiter.agent.clone(), waiter.since));
        if let Some(held) = table.held.get_mut(root).filter(|held| held.agent == *agent) {
            if held.unsure {
                return Err(holder(agent.clone(), root, held.since));
            }
            // A turn that ended gives way to whoever waited meanwhile.
            if let Some((first, since)) = before.filter(|_| held.ending) {
                return Err(next_in_line(first, root, since));
            }
            held.ending = false;
            held.claims += 1;
            return Ok(Entered { stay: held.stay, taken: false });
        }
        if let Some((folder, held)) = table.in_the_way(agent, root).next() {
            return Err(holder(held.agent.clone(), folder, held.since));
        }
        if let Some((first, since)) = before {
            return Err(next_in_line(first, root, since));
        }
        // The ticket is used up with this.
        let held = Held {
            stay: ticket,
            agent: agent.clone(),
            since: now,
            unsure: true,
            claims: 1,
            recorded: false,
            ending: false,
            marks: None,
            surroundings: None,
            refreshed: None,
        };
        table.held.insert(root.to_path_buf(), held);
        table.of.entry(agent.clone()).or_default().push(root.to_path_buf());
        Ok(Entered { stay: ticket, taken: true })
    }

    fn wait_for(&self, ticket: u64, holder: &FolderHolder) {
        let mut table = self.table();
        if let Some(waiter) = table.waiting.iter_mut().find(|waiter| waiter.ticket == ticket) {
            waiter.holder = Some(holder.clone());
        }
    }

    /// A call is done with the folder. True where no call uses it any more and no record says that it is held.
    fn unclaim(&self, root: &Path, stay: u64) -> bool {
        let mut table = self.table();
        let Some(held) = table.held.get_mut(root).filter(|held| held.stay == stay) else { return false };
        held.claims -= 1;
        let forgotten = held.claims == 0 && !held.recorded;
        held.ending |= forgotten;
        drop(table);
        self.changed.send_replace(());
        forgotten
    }

    /// Lets no other agent in yet: the folders that the agent holds go once nothing of it runs.
    pub(super) fn end(&self, agent: &AgentId) {
        let mut table = self.table();
        let Table { held, of, .. } = &mut *table;
        for root in of.get(agent).into_iter().flatten() {
            if let Some(held) = held.get_mut(root) {
                held.ending = true;
            }
        }
    }

    /// Lets go of what is ending and not in use. False while a call uses some of it.
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

    /// Lets go of a folder that is about to be removed.
    pub(super) fn leave(&self, agent: &AgentId, root: &Path) {
        let mut table = self.table();
        if table.held.get(root).is_some_and(|held| held.agent == *agent) {
            table.remove(root);
        }
        drop(table);
        self.changed.send_replace(());
    }

    /// A folder that is held, and that nothing but the agent's records can let go of.
    pub(super) fn recorded(&self, agent: &AgentId) -> Option<String> {
        let table = self.table();
        let mut of = table.of.get(agent)?.iter();
        let root = of.find(|root| table.held[*root].recorded && !table.held[*root].ending)?;
        Some(root.display().to_string())
    }

    pub(super) fn holds(&self, agent: &AgentId, root: &Path) -> bool {
        self.table().held.get(root).is_some_and(|held| held.agent == *agent)
    }

    /// The folder that the agent holds, since when, and who waits for it.
    pub(super) fn held(&self, agent: &AgentId) -> Option<HeldFolder> {
        let table = self.table();
        let root = table.of.get(agent)?.last()?;
        let waiting = table.waiting.iter().filter(|waiter| waiter.agent != *agent && overlap(&waiter.root, root));
        let waiting = waiting.map(|waiter| waiter.agent.to_string()).collect();
        Some(HeldFolder { folder: root.display().to_string(), since: table.held[root].since, waiting })
    }

    /// The folder that a call of the agent waits for.
    pub(super) fn awaited(&self, agent: &AgentId) -> Option<FolderWait> {
        let table = self.table();
        let waiter = table.waiting.iter().find(|waiter| waiter.agent == *agent && waiter.holder.is_some())?;
        let folder = waiter.root.display().to_string();
        Some(FolderWait { folder, since: waiter.since, holder: waiter.holder.clone()? })
    }

    /// The agent of this daemon that keeps the agent from writing in the folder.
    fn other_holder(&self, agent: &AgentId, root: &Path) -> Option<FolderHolder> {
        let table = self.table();
        let (folder, held) = table.in_the_way(agent, root).next()?;
        Some(holder(held.agent.clone(), folder, held.since))
    }
}

impl Hands {
    /// Has the agent hold the folder, for one call. Waits for whoever is in the way, for so long at most.
    pub(super) async fn claim(&self, agent: &AgentId, root: &Path, wait: Duration) -> Result<Claim, Refusal> {
        let (folders, deadline) = (&self.0.folders, Instant::now() + wait);
        let mut changed = folders.changed.subscribe();
        let ticket = folders.join(agent, root, (self.0.moment)().0);
        loop {
            changed.mark_unchanged();
            let entered = folders.enter(ticket.number, agent, root, (self.0.moment)().0);
            let (holder, foreign) = match entered {
                Ok(entered) => {
                    let (hands, agent, root) = (self.clone(), agent.clone(), root.to_path_buf());
                    let claim = Claim { hands, agent, root, stay: entered.stay };
                    if !entered.taken {
                        return Ok(claim);
                    }
                    // The home is this daemon's alone.
                    if claim.root.starts_with(&self.0.home) {
                        claim.settle(None);
                        return Ok(claim);
                    }
                    match self.mark(&claim.root).await? {
                        Ok(marks) => {
                            claim.settle(Some(marks));
                            return Ok(claim);
                        }
                        Err(foreign) => {
                            folders.leave(&claim.agent, &claim.root);
                            drop(claim);
                            changed.mark_unchanged();
                            (of_foreign(&foreign), true)
                        }
                    }
                }
                Err(holder) => (holder, false),
            };
            folders.wait_for(ticket.number, &holder);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => return Err(occupied(&holder, root, wait)),
                // The sender is there for as long as this is.
                _ = changed.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(FOREIGN_FOLDER_LOOK_MS)), if foreign => {}
            }
        }
    }

    async fn mark(&self, root: &Path) -> Result<Result<FolderMarks, ForeignHolder>, Refusal> {
        let (owner, folder) = (self.0.folders.owner, root.to_path_buf());
        let marked = blocking(move || owner.mark(&folder)).await;
        marked.map_err(|error| {
            let message = format!("{} could not be taken: {error}", root.display());
            Refusal::new(ErrorCode::Io, message)
                .with_hint(transient::hint(&error, "see that the daemon can open the folder"))
        })
    }

    /// Lets go of what the agent holds, once no call uses it and nothing of what it started runs: that may write there.
    pub(super) async fn let_go(&self, agent: &AgentId) {
        let mut changed = self.0.folders.changed.subscribe();
        loop {
            self.0.tasks.all_over(agent).await;
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
        blocking(move || owner.look(&folder)).await.map(|foreign| of_foreign(&foreign))
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn holder(agent: AgentId, folder: &Path, since: Time) -> FolderHolder {
    let folder = folder.display().to_string();
    FolderHolder { agent_id: Some(agent.to_string()), daemon_pid: None, folder, since: Some(since), is_next: false }
}

fn next_in_line(agent: AgentId, folder: &Path, since: Time) -> FolderHolder {
    FolderHolder { is_next: true, ..holder(agent, folder, since) }
}

fn of_foreign(foreign: &ForeignHolder) -> FolderHolder {
    let folder = foreign.folder.display().to_string();
    FolderHolder { agent_id: None, daemon_pid: Some(foreign.pid), folder, since: None, is_next: false }
}

fn occupied(holder: &FolderHolder, root: &Path, wait: Duration) -> Refusal {
    let wanted = root.display().to_string();
    let meant = if holder.folder == wanted { String::new() } else { format!(", and {wanted} overlaps with it") };
    let message = format!("{}{meant}; this call waited {} ms for it", holder.sentence(), wait.as_millis());
    Refusal::new(ErrorCode::Occupied, message)
}
