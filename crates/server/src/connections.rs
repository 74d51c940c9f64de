//! The open connections: whose they are, which of them are idle, and which one is closed to make room for another. This is
//! the one place that bounds how many there are.
//!
//! A connection is anonymous until a request on it shows a good token or the URL of a trigger. It is idle while no request
//! on it is under way and everything that was answered is sent. Among those that may go, the one that has been idle for
//! longest goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::Limits;
use crate::shares::{Holder, share_of};

#[derive(Debug)]
pub(crate) struct Connections {
    /// All of them, then the anonymous ones, then those of any other holder.
    most: usize,
    most_anonymous: usize,
    share: usize,
    /// For an anonymous connection to send the head of a request.
    head: Duration,
    open: Mutex<Open>,
    closed_for_room: AtomicU64,
}

/// Ordered as connections are closed: idle ones before busy ones, and of these the one that became so first.
type Rank = (Activity, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Idle,
    Busy,
}

#[derive(Debug, Default)]
struct Open {
    /// Counts connections, and their changes between idle and busy.
    count: u64,
    entries: HashMap<u64, Entry>,
    /// By holder, in the order in which they are closed.
    ranks: HashMap<Holder, BTreeMap<Rank, u64>>,
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    rank: Rank,
    /// Since when it has had this rank.
    since: Instant,
    request_under_way: bool,
    /// Its reader does not take what was answered.
    unsent: bool,
    /// Rung when it has to go.
    close: Arc<Notify>,
}

/// The holder has all connections that it may have, and none of them is idle.
#[derive(Debug)]
pub(crate) struct ShareTaken;

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Connections> {
        let (most, share) = (limits.connections.max(1), share_of(limits.connections));
        Arc::new(Connections {
            most,
            most_anonymous: limits.anonymous.clamp(1, share),
            share,
            head: limits.head,
            open: Mutex::default(),
            closed_for_room: AtomicU64::new(0),
        })
    }

    /// Takes in a new connection, which is anonymous, and closes another where there is no room. None where every other
    /// one is busy for somebody who showed a token.
    pub(crate) fn admit(self: &Arc<Connections>) -> Option<Arc<Connection>> {
        let mut open = self.lock();
        if open.count_of(&Holder::Anonymous) >= self.most_anonymous {
            self.closed(open.close_first(&Holder::Anonymous, Activity::Busy));
        }
        if open.entries.len() >= self.most && !self.closed(open.make_room()) {
            return None;
        }
        let close = Arc::new(Notify::new());
        let id = open.insert(Arc::clone(&close));
        drop(open);
        Some(Arc::new(Connection { id, connections: Arc::clone(self), close }))
    }

    /// Closes an anonymous connection, an idle one first, for the file descriptor that it has.
    pub(crate) fn close_anonymous(&self) {
        self.closed(self.lock().close_first(&Holder::Anonymous, Activity::Busy));
    }

    /// Whether the next few anonymous connections may cost others their place.
    pub(crate) fn is_crowded(&self) -> bool {
        self.anonymous() * 2 > self.most_anonymous
    }

    pub(crate) fn open(&self) -> usize {
        self.lock().entries.len()
    }

    pub(crate) fn anonymous(&self) -> usize {
        self.lock().count_of(&Holder::Anonymous)
    }

    pub(crate) fn closed_for_room(&self) -> u64 {
        self.closed_for_room.load(Ordering::Relaxed)
    }

    fn closed(&self, closed: bool) -> bool {
        self.closed_for_room.fetch_add(u64::from(closed), Ordering::Relaxed);
        closed
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn count_of(&self, holder: &Holder) -> usize {
        self.ranks.get(holder).map_or(0, BTreeMap::len)
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn insert(&mut self, close: Arc<Notify>) -> u64 {
        let id = self.next();
        let (holder, rank, since) = (Holder::Anonymous, (Activity::Idle, id), Instant::now());
        self.ranks.entry(holder.clone()).or_default().insert(rank, id);
        let (request_under_way, unsent) = (false, false);
        self.entries.insert(id, Entry { holder, rank, since, request_under_way, unsent, close });
        id
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.unrank(&entry.holder, entry.rank);
        Some(entry)
    }

    fn unrank(&mut self, holder: &Holder, rank: Rank) {
        if let Some(ranks) = self.ranks.get_mut(holder) {
            ranks.remove(&rank);
            if ranks.is_empty() {
                self.ranks.remove(holder);
            }
        }
    }

    /// Closes the connection of this holder that has to go first, unless all of them are busier than this.
    fn close_first(&mut self, holder: &Holder, up_to: Activity) -> bool {
        let first = self.ranks.get(holder).and_then(BTreeMap::first_key_value);
        let Some((_, &id)) = first.filter(|((activity, _), _)| *activity <= up_to) else { return false };
        if let Some(entry) = self.remove(id) {
            entry.close.notify_one();
        }
        true
    }

    /// An idle anonymous connection goes first, then an idle one of the holder that has the most, then an anonymous one.
    /// No other holder loses a connection with a request under way.
    fn make_room(&mut self) -> bool {
        if self.close_first(&Holder::Anonymous, Activity::Idle) {
            return true;
        }
        let has_idle = |ranks: &BTreeMap<Rank, u64>| {
            ranks.first_key_value().is_some_and(|((activity, _), _)| *activity == Activity::Idle)
        };
        let idle = self.ranks.iter().filter(|(_, ranks)| has_idle(ranks));
        let largest = idle.max_by_key(|(_, ranks)| ranks.len()).map(|(holder, _)| holder.clone());
        match largest {
            Some(holder) => self.close_first(&holder, Activity::Idle),
            None => self.close_first(&Holder::Anonymous, Activity::Busy),
        }
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Entry)) {
        let order = self.next();
        let Some(entry) = self.entries.get_mut(&id) else { return };
        change(entry);
        let activity = if entry.request_under_way || entry.unsent { Activity::Busy } else { Activity::Idle };
        if activity != entry.rank.0 {
            let (holder, before) = (entry.holder.clone(), entry.rank);
            (entry.rank, entry.since) = ((activity, order), Instant::now());
            let rank = entry.rank;
            self.unrank(&holder, before);
            self.ranks.entry(holder).or_default().insert(rank, id);
        }
    }

    fn assign_holder(&mut self, id: u64, holder: &Holder) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.holder, holder.clone());
        let rank = entry.rank;
        self.unrank(&before, rank);
        self.ranks.entry(holder.clone()).or_default().insert(rank, id);
    }
}

/// One open connection. It is forgotten when the last handle to it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    connections: Arc<Connections>,
    close: Arc<Notify>,
}

/// A request that is under way, until the last byte of its answer was handed to the connection.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Connection>);

impl Connection {
    pub(crate) fn begin_request(self: &Arc<Connection>) -> ActiveRequest {
        self.connections.lock().change(self.id, |entry| entry.request_under_way = true);
        ActiveRequest(Arc::clone(self))
    }

    /// Whether something of what was answered waits for its reader.
    pub(crate) fn set_unsent(&self, unsent: bool) {
        self.connections.lock().change(self.id, |entry| entry.unsent = unsent);
    }

    /// A request on it showed whose it is. A holder that has all it may have loses its own oldest idle connection for it.
    pub(crate) fn show(&self, holder: &Holder) -> Result<(), ShareTaken> {
        let mut open = self.connections.lock();
        if open.entries.get(&self.id).is_none_or(|entry| entry.holder == *holder) {
            return Ok(());
        }
        if open.count_of(holder) >= self.connections.share {
            let closed = open.close_first(holder, Activity::Idle);
            if !self.connections.closed(closed) {
                return Err(ShareTaken);
            }
        }
        open.assign_holder(self.id, holder);
        Ok(())
    }

    /// Returns when it has to be closed: to make room, or because it is anonymous and sends no head.
    pub(crate) async fn must_close(&self) {
        let mut wake = Instant::now() + self.connections.head;
        loop {
            tokio::select! {
                () = self.close.notified() => return,
                () = tokio::time::sleep_until(wake) => {}
            }
            let now = Instant::now();
            match self.head_due() {
                Some(due) if due <= now => return,
                Some(due) => wake = due,
                None => wake = now + self.connections.head,
            }
        }
    }

    /// When an anonymous connection must have sent its next head; none for others, and while a request is under way.
    fn head_due(&self) -> Option<Instant> {
        let open = self.connections.lock();
        let entry = open.entries.get(&self.id)?;
        let waits = entry.holder == Holder::Anonymous && entry.rank.0 == Activity::Idle;
        waits.then_some(entry.since + self.connections.head)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.connections.lock().change(self.0.id, |entry| entry.request_under_way = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(connections: usize, anonymous: usize) -> Arc<Connections> {
        Connections::new(&Limits { connections, anonymous, ..Limits::default() })
    }

    fn is_open(connection: &Connection) -> bool {
        connection.connections.lock().entries.contains_key(&connection.id)
    }

    fn token(name: &str) -> Holder {
        Holder::Token(name.to_owned())
    }

    /// A connection that has shown a token.
    fn admit(all: &Arc<Connections>, name: &str) -> Arc<Connection> {
        let connection = all.admit().unwrap();
        connection.show(&token(name)).unwrap();
        connection
    }

    #[test]
    fn anonymous_ones_with_a_request_under_way_go_last_and_do_go() {
        let all = connections(100, 3);
        let opened: Vec<_> = (0..3).map(|_| all.admit().unwrap()).collect();
        let busy = [opened[0].begin_request(), opened[1].begin_request()];
        let fourth = all.admit().unwrap();
        assert_eq!(opened.iter().map(|one| is_open(one)).collect::<Vec<_>>(), [true, true, false]);
        let also_busy = fourth.begin_request();
        let fifth = all.admit().unwrap();
        assert_eq!(opened.iter().map(|one| is_open(one)).collect::<Vec<_>>(), [false, true, false], "then the oldest");
        assert!(is_open(&fourth) && is_open(&fifth));
        assert_eq!((all.open(), all.anonymous(), all.closed_for_room()), (3, 3, 2));
        drop((busy, also_busy));
    }

    #[test]
    fn an_answer_that_waits_for_its_reader_is_under_way() {
        let all = connections(100, 2);
        let (slow, idle) = (all.admit().unwrap(), all.admit().unwrap());
        let request = slow.begin_request();
        slow.set_unsent(true);
        drop(request);
        let _next = all.admit().unwrap();
        assert!(is_open(&slow) && !is_open(&idle));
        slow.set_unsent(false);
        let _another = all.admit().unwrap();
        assert!(is_open(&slow), "it became idle last");
    }

    #[test]
    fn of_all_tokens_the_one_with_the_most_gives_up_an_idle_one() {
        let all = connections(5, 5);
        let opened: Vec<_> = ["a", "b", "b", "c", "c"].iter().map(|name| admit(&all, name)).collect();
        let busy: Vec<_> = opened[3..].iter().map(Connection::begin_request).collect();
        let sixth = all.admit().unwrap();
        assert_eq!(opened.iter().map(|one| is_open(one)).collect::<Vec<_>>(), [true, false, true, true, true]);
        let rest = [opened[0].begin_request(), opened[2].begin_request(), sixth.begin_request()];
        let seventh = all.admit().unwrap();
        assert!(!is_open(&sixth), "an anonymous one goes before somebody's request");
        seventh.show(&Holder::Webhooks).unwrap();
        let last = seventh.begin_request();
        assert!(all.admit().is_none());
        drop((busy, rest, last));
    }

    #[test]
    fn a_connection_counts_for_whoever_showed_a_token_on_it_last() {
        let all = connections(4, 2);
        let shared = admit(&all, "a");
        let others = [admit(&all, "b"), admit(&all, "b")];
        let busy: Vec<_> = others.iter().map(Connection::begin_request).collect();
        let request = shared.begin_request();
        assert!(shared.show(&token("b")).is_err(), "its half is taken");
        drop(busy);
        shared.show(&token("b")).unwrap();
        assert!(!is_open(&others[0]) && is_open(&others[1]));
        drop((request, shared, others));
        assert_eq!(all.open(), 0);
        assert!(all.lock().ranks.is_empty(), "holders of nothing are forgotten");
    }
}
