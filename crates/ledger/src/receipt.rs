//! The promise of an answer: a future, and a blocking wait for callers without a runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::commit::Committed;
use crate::error::CommitError;
use crate::prepared::Prepared;

/// Resolves once the commit is on disk, or was refused.
///
/// Dropping it changes nothing: what was handed in is still committed.
#[derive(Debug)]
#[must_use = "nothing is acknowledged until the receipt resolves"]
pub struct Receipt(State);

#[derive(Debug)]
enum State {
    Ready(Option<Result<Committed, CommitError>>),
    Waiting(oneshot::Receiver<Answered>),
}

#[derive(Debug)]
struct Answered {
    result: Result<Committed, CommitError>,
    /// The commit goes back with the answer, to be freed by the thread that allocated it: memory that another thread frees
    /// has the two of them wait for each other, which was a seventh of the writer's time.
    _spent: Option<Prepared>,
}

/// The writing side of a receipt.
#[derive(Debug)]
pub(crate) struct Answer(oneshot::Sender<Answered>);

impl Answer {
    /// A caller that no longer listens has dropped its receipt; the commit stands.
    pub(crate) fn send(self, result: Result<Committed, CommitError>, spent: Option<Prepared>) {
        let _ = self.0.send(Answered { result, _spent: spent });
    }
}

impl Receipt {
    pub(crate) fn ready(answer: Result<Committed, CommitError>) -> Receipt {
        Receipt(State::Ready(Some(answer)))
    }

    pub(crate) fn waiting() -> (Answer, Receipt) {
        let (sender, receiver) = oneshot::channel();
        (Answer(sender), Receipt(State::Waiting(receiver)))
    }

    /// Blocks this thread. In async code, await the receipt instead.
    pub fn wait(self) -> Result<Committed, CommitError> {
        match self.0 {
            State::Ready(Some(answer)) => answer,
            waiting @ (State::Ready(None) | State::Waiting(_)) => block_on(Receipt(waiting)),
        }
    }

    /// The answer, if it is there already.
    pub fn try_take(&mut self) -> Option<Result<Committed, CommitError>> {
        match &mut self.0 {
            State::Ready(answer) => answer.take(),
            State::Waiting(receiver) => match receiver.try_recv() {
                Ok(answered) => Some(answered.result),
                Err(oneshot::error::TryRecvError::Empty) => None,
                Err(oneshot::error::TryRecvError::Closed) => Some(Err(CommitError::Closed)),
            },
        }
    }
}

impl Future for Receipt {
    type Output = Result<Committed, CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            // Polled again after it resolved: there is no second answer.
            State::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(CommitError::Closed))),
            // A sender dropped without a word is a ledger that went away.
            State::Waiting(receiver) => {
                let answered = Pin::new(receiver).poll(context);
                answered.map(|answered| answered.map_or(Err(CommitError::Closed), |answered| answered.result))
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    // One waker per thread, not per wait: a committer that waits in a loop allocates it once.
    static WAKER: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
}

/// Runs a future on this thread. Unlike a runtime's own, it may be called anywhere, also inside one.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    WAKER.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    })
}

/// The same, giving up after `timeout`.
pub(crate) fn block_on_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let deadline = Instant::now().checked_add(timeout);
    let mut future = pin!(future);
    WAKER.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return None,
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
    })
}
