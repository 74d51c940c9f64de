//! Who is awake: the boxes of all loops, and which agents can't be woken. The one lock of the host, held for moments.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abide_kernel::id::AgentId;
use tokio::sync::mpsc;

use super::{POSTS_MAX, Post};

#[derive(Debug, Default)]
pub(crate) struct Directory(Mutex<HashMap<AgentId, Slot>>, Mutex<HashMap<AgentId, u32>>);

#[derive(Debug)]
enum Slot {
    Awake(mpsc::Sender<Post>),
    /// Its records can't be read, or it crashes whenever it is woken. `start` tries it again.
    Broken(String),
}

pub(crate) enum Found {
    Awake(mpsc::Sender<Post>),
    Broken(String),
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Post::Ask { .. } => "Ask",
            Post::Look(_) => "Look",
            Post::Poke => "Poke",
        })
    }
}

impl Slot {
    fn found(&self) -> Found {
        match self {
            Slot::Awake(sender) => Found::Awake(sender.clone()),
            Slot::Broken(reason) => Found::Broken(reason.clone()),
        }
    }
}

impl Directory {
    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, agent: &AgentId) -> Option<Found> {
        self.lock().get(agent).map(Slot::found)
    }

    pub fn get_or_wake(&self, agent: &AgentId, wake: impl FnOnce(mpsc::Receiver<Post>)) -> Found {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(agent) {
            return slot.found();
        }
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        slots.insert(agent.clone(), Slot::Awake(sender.clone()));
        wake(posts);
        Found::Awake(sender)
    }

    /// Falls asleep if nobody has posted anything; else hands back what was posted, and a new box.
    pub fn fall_asleep(
        &self,
        agent: &AgentId,
        posts: &mut mpsc::Receiver<Post>,
    ) -> Result<(), (Vec<Post>, mpsc::Receiver<Post>)> {
        let mut slots = self.lock();
        // From here on nobody can post; whoever tries wakes the agent again, after this lock.
        posts.close();
        let mut left = Vec::new();
        while let Ok(post) = posts.try_recv() {
            left.push(post);
        }
        if left.is_empty() {
            slots.remove(agent);
            return Ok(());
        }
        let (sender, posts) = mpsc::channel(POSTS_MAX);
        slots.insert(agent.clone(), Slot::Awake(sender));
        Err((left, posts))
    }

    /// The loop of this agent is gone, however it went. The box of the next one, if there is one, is open and stays.
    pub fn gone(&self, agent: &AgentId) {
        let mut slots = self.lock();
        if matches!(slots.get(agent), Some(Slot::Awake(sender)) if sender.is_closed()) {
            slots.remove(agent);
        }
    }

    pub fn broken(&self, agent: &AgentId, reason: String) {
        self.lock().insert(agent.clone(), Slot::Broken(reason));
    }

    /// Counts one more crash, and says how often it has crashed since it last came to rest.
    pub fn count_crash(&self, agent: &AgentId) -> u32 {
        let mut crashes = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let count = crashes.entry(agent.clone()).or_default();
        *count += 1;
        *count
    }

    pub fn crashes(&self, agent: &AgentId) -> u32 {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).get(agent).copied().unwrap_or(0)
    }

    pub fn forget_crashes(&self, agent: &AgentId) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).remove(agent);
    }

    /// Forgets that an agent could not be woken. True if it could not.
    pub fn try_again(&self, agent: &AgentId) -> bool {
        let mut slots = self.lock();
        let broken = matches!(slots.get(agent), Some(Slot::Broken(_)));
        if broken {
            slots.remove(agent);
        }
        broken
    }
}
