//! `abide approval`: questions that an agent asked, and what a person says to them.

use abide_api::types::ApprovalView;
use abide_kernel::vocabulary::ApprovalStatus;

use super::plane::{self, Plane, or_dash};
use crate::cli::{ApprovalCommand, OneApproval, PlaceArgs};
use crate::connection::{self, block_on};
use crate::output::{Cell, Output, gist};

const PLANE: Plane<ApprovalView> = Plane {
    route: "approvals",
    titles: &["status", "by", "deadline", "default", "summary"],
    id: |approval| approval.approval_id.as_str(),
    row: |approval, out| {
        let deadline = approval.deadline.map_or_else(|| "-".to_owned(), |at| out.time(at));
        vec![
            Cell::status(approval.status.as_str()),
            or_dash(approval.decided_by.as_deref()),
            deadline.into(),
            approval.default.as_str().into(),
            gist(&approval.summary, 80).into(),
        ]
    },
    empty: "has asked for no approval",
};

pub fn run(command: &ApprovalCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        ApprovalCommand::List(of) => {
            let is_open = |approval: &ApprovalView| approval.status == ApprovalStatus::Pending;
            plane::list_or_open(&PLANE, is_open, of, place, out)
        }
        ApprovalCommand::Grant(one) => decide(one, true, place, out),
        ApprovalCommand::Deny(one) => decide(one, false, place, out),
    }
}

fn decide(one: &OneApproval, grant: bool, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let agent = &one.of.agent;
    let decided = block_on(async {
        let id = plane::named(&PLANE, &client, agent, &one.approval).await?;
        Ok(client.decide_approval(agent.as_str(), &id, grant).await?)
    })?;
    out.result(&decided, || format!("{}: {}\n", decided.status, gist(&decided.summary, 200)))
}
