//! `abide wait`: what an agent waits for.

use abide_api::types::WaitView;
use abide_kernel::vocabulary::WaitStatus;

use super::plane::{self, Plane, or_dash};
use crate::cli::{PlaceArgs, WaitCommand};
use crate::output::{Cell, Output, gist};

const PLANE: Plane<WaitView> = Plane {
    route: "waits",
    titles: &["status", "kind", "for", "since", "reason"],
    id: |wait| wait.waiting_intent_id.as_str(),
    row: |wait, out| {
        let since = out.time(wait.created_at);
        let awaited = or_dash(wait.resource.as_deref());
        vec![
            Cell::status(wait.status.as_str()),
            wait.kind.as_str().into(),
            awaited,
            since.into(),
            gist(&wait.reason, 80).into(),
        ]
    },
    empty: "waits for nothing; `abide why ID` says what it does",
};

pub fn run(command: &WaitCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        WaitCommand::List(of) => plane::list_or_open(&PLANE, |wait| wait.status == WaitStatus::Active, of, place, out),
        WaitCommand::Cancel { of, wait } => plane::end(&PLANE, "cancelled", of, wait, place, out),
    }
}
