//! The children that one agent is making: one after the other, and each only as long as it is wanted. A child that is
//! dismissed while it waits in line is not made; one that is being made is dismissed when it is there.

use std::collections::HashMap;
use std::sync::Arc;

use abide_kernel::id::TaskId;
use tokio::sync::watch;

use super::ticket_queue::{Ticket, TicketQueue};

#[derive(Debug, Default)]
pub(super) struct SpawnQueue {
    order: TicketQueue,
    stages: HashMap<TaskId, Arc<watch::Sender<Stage>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Making,
    /// Made or not: the dismissal finds out.
    Over,
    Withdrawn,
}

/// A child in the line. Dropped, it is over.
#[derive(Debug)]
pub(super) struct SpawnTicket {
    ticket: Ticket,
    stage: Arc<watch::Sender<Stage>>,
}

impl SpawnQueue {
    pub(super) fn enter(&mut self, task: &TaskId) -> SpawnTicket {
        self.stages.retain(|_, stage| matches!(*stage.borrow(), Stage::Waiting | Stage::Making));
        let stage = Arc::new(watch::Sender::new(Stage::Waiting));
        self.stages.insert(task.clone(), Arc::clone(&stage));
        SpawnTicket { ticket: self.order.take_ticket(), stage }
    }

    /// From here on the child is not made, unless it is being made already. That is what the future waits for, however
    /// often the child is dismissed.
    pub(super) fn withdraw(&mut self, task: &TaskId) -> impl Future<Output = ()> + use<> {
        let stage = self.stages.get(task).map(|stage| {
            become_if(stage, Stage::Waiting, Stage::Withdrawn);
            stage.subscribe()
        });
        async move {
            if let Some(mut stage) = stage {
                // A line that is gone makes nobody.
                let _gone = stage.wait_for(|stage| *stage != Stage::Making).await;
            }
        }
    }
}

impl SpawnTicket {
    pub(super) fn is_wanted(&self) -> bool {
        *self.stage.borrow() != Stage::Withdrawn
    }

    /// Returns when it is this child's turn. False if it is not wanted any more.
    pub(super) async fn wait_turn(&mut self) -> bool {
        self.ticket.wait_turn().await;
        become_if(&self.stage, Stage::Waiting, Stage::Making)
    }
}

impl Drop for SpawnTicket {
    fn drop(&mut self) {
        become_if(&self.stage, Stage::Making, Stage::Over);
        become_if(&self.stage, Stage::Waiting, Stage::Over);
    }
}

fn become_if(stage: &watch::Sender<Stage>, from: Stage, to: Stage) -> bool {
    stage.send_if_modified(|stage| {
        let is = *stage == from;
        if is {
            *stage = to;
        }
        is
    })
}
