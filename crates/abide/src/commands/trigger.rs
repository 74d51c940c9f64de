//! `abide trigger`: URLs by which somebody outside reaches an agent.

use std::io::Read;
use std::path::Path;

use abide_api::types::{TriggerCreate, TriggerView};
use anyhow::Context;

use super::plane::{self, Plane};
use crate::cli::{OfAgent, PlaceArgs, TriggerArgs, TriggerCommand};
use crate::config::variable;
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output, gist};

const PLANE: Plane<TriggerView> = Plane {
    route: "triggers",
    titles: &["status", "delivers", "signed", "deliveries", "last", "name"],
    id: |trigger| trigger.trigger_id.as_str(),
    row: |trigger, out| {
        let last = trigger.last_delivered_at.map_or_else(|| "-".to_owned(), |at| out.time(at));
        vec![
            Cell::status(trigger.status.as_str()),
            trigger.delivery_mode.as_str().into(),
            if trigger.signed { "yes" } else { "no" }.into(),
            trigger.delivery_count.to_string().into(),
            last.into(),
            gist(&trigger.name, 80).into(),
        ]
    },
    empty: "has no triggers; `abide trigger create --agent ID NAME` makes one",
};

pub fn run(command: &TriggerCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        TriggerCommand::Create(args) => create(args, place, out),
        TriggerCommand::List(of) => plane::list(&PLANE, of, place, out),
        TriggerCommand::Rotate { of, trigger } => rotate(of, trigger, place, out),
        TriggerCommand::Revoke { of, trigger } => plane::end(&PLANE, "revoked", of, trigger, place, out),
    }
}

fn create(args: &TriggerArgs, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let secret = match (&args.secret_env, &args.secret_file) {
        (Some(name), _) => {
            let unset = || Failed::Usage(format!("--secret-env: ${name} is not set"));
            Some(variable(name).ok_or_else(unset)?)
        }
        (None, Some(file)) => Some(read(file)?),
        (None, None) => None,
    };
    let client = connection::find(place)?;
    let trigger = TriggerCreate {
        name: args.name.clone(),
        delivery_mode: args.mode,
        work_item_id: args.work_item.clone(),
        secret,
    };
    let made = block_on(async { Ok(client.create_trigger(args.of.agent.as_str(), &trigger).await?) })?;
    shown("made", &made, out)
}

/// A file usually ends with a newline that is not part of the secret.
fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("can't read the standard input")?;
    } else {
        text = std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn rotate(of: &OfAgent, named: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let rotated = block_on(async {
        let id = plane::named(&PLANE, &client, &of.agent, named).await?;
        Ok(client.rotate_trigger(of.agent.as_str(), &id).await?)
    })?;
    shown("rotated", &rotated, out)
}

fn shown(done: &str, trigger: &TriggerView, out: &Output) -> anyhow::Result<()> {
    out.result(&trigger, || {
        let url = trigger.url.as_deref().unwrap_or("it has no URL");
        let signed = if trigger.signed { "\ndeliveries must be signed with its secret" } else { "" };
        format!(
            "{done} {}; whoever knows this URL can use it, and it is not shown again:\n{url}{signed}\n",
            trigger.trigger_id
        )
    })
}
