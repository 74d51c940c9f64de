//! Jobs that must begin in the order in which they were asked for. Each is a task of its own, and tasks begin in any
//! order.

use tokio::sync::oneshot;

/// The end of a line of jobs.
#[derive(Debug, Default)]
pub(super) struct TicketQueue(Option<oneshot::Receiver<()>>);

/// A place in the line. Dropping it lets the next one go on, so an aborted job delays no other.
#[derive(Debug)]
pub(super) struct Ticket {
    before: Option<oneshot::Receiver<()>>,
    _leaves: oneshot::Sender<()>,
}

impl TicketQueue {
    pub(super) fn take_ticket(&mut self) -> Ticket {
        let (leaves, left) = oneshot::channel();
        Ticket { before: self.0.replace(left), _leaves: leaves }
    }
}

impl Ticket {
    /// Returns when everybody before has left.
    pub(super) async fn wait_turn(&mut self) {
        if let Some(before) = &mut self.before {
            // Nothing is ever sent: the closing of the channel is the signal.
            let _left = before.await;
            self.before = None;
        }
    }
}
