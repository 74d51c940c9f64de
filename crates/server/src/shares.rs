//! Room that many share: of everything that is limited, any one holder has at most half. So a holder that fills its own
//! half keeps nobody else out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whose a connection, a request or the memory of an answer is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// No good token was shown.
    Anonymous,
    /// All callers that know the URL of a trigger, together.
    Webhooks,
    /// By its id.
    Token(String),
}

/// Half of what there is, and one at least.
pub(crate) fn share_of(total: usize) -> usize {
    (total / 2).max(1)
}

#[derive(Debug)]
pub(crate) struct Shares {
    all: Arc<Semaphore>,
    total: usize,
    /// Those of holders that have a part of it.
    shares: Mutex<HashMap<Holder, Weak<Semaphore>>>,
}

/// A part of the room. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct HeldShare {
    share: Option<OwnedSemaphorePermit>,
    all: Option<OwnedSemaphorePermit>,
}

impl Shares {
    pub(crate) fn new(total: usize) -> Shares {
        let total = total.max(1);
        Shares { all: Arc::new(Semaphore::new(total)), total, shares: Mutex::default() }
    }

    /// Takes a part as soon as there is room. One that is larger than the holder's share is that share.
    pub(crate) async fn acquire(&self, holder: &Holder, wanted: usize) -> HeldShare {
        let wanted = self.bounded(wanted);
        // Neither semaphore is ever closed.
        let share = self.share(holder).acquire_many_owned(wanted).await.ok();
        let all = Arc::clone(&self.all).acquire_many_owned(wanted).await.ok();
        HeldShare { share, all }
    }

    /// The same at once; nothing where there is no room.
    pub(crate) fn try_acquire(&self, holder: &Holder, wanted: usize) -> Option<HeldShare> {
        let wanted = self.bounded(wanted);
        let share = self.share(holder).try_acquire_many_owned(wanted).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(wanted).ok()?;
        Some(HeldShare { share: Some(share), all: Some(all) })
    }

    pub(crate) fn in_use(&self) -> usize {
        self.total.saturating_sub(self.all.available_permits())
    }

    fn bounded(&self, wanted: usize) -> u32 {
        u32::try_from(wanted.min(share_of(self.total))).unwrap_or(u32::MAX)
    }

    fn share(&self, holder: &Holder) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(holder).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(share_of(self.total)));
        shares.insert(holder.clone(), Arc::downgrade(&share));
        share
    }
}

impl HeldShare {
    /// Gives back all but so much.
    pub(crate) fn shrink_to(&mut self, kept: usize) {
        for permit in [&mut self.share, &mut self.all].into_iter().flatten() {
            let surplus = permit.num_permits().saturating_sub(kept);
            drop(permit.split(surplus));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn token(name: &str) -> Holder {
        Holder::Token(name.to_owned())
    }

    #[tokio::test]
    async fn a_holder_waits_for_its_own_half_and_others_do_not() {
        let shares = Shares::new(64);
        let mut first = shares.acquire(&token("a"), 1_000).await;
        assert_eq!(shares.in_use(), 32, "its share");
        assert!(shares.try_acquire(&token("a"), 1).is_none());
        let wanted = token("a");
        let second = shares.acquire(&wanted, 1);
        tokio::pin!(second);
        assert!((&mut second).now_or_never().is_none());
        drop(shares.acquire(&token("b"), 1_000).await);
        drop(shares.try_acquire(&Holder::Anonymous, 1_000).unwrap());
        first.shrink_to(10);
        let second = second.await;
        assert_eq!(shares.in_use(), 11);
        drop((first, second));
        assert_eq!(shares.in_use(), 0);
        assert_eq!(shares.share(&token("b")).available_permits(), 32);
        assert_eq!(shares.shares.lock().unwrap().len(), 1, "holders of nothing are forgotten");
    }
}
