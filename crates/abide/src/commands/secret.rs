//! `abide secret`: values that the commands of agents are given.

use std::io::{IsTerminal, Read};

use abide_api::types::{SecretItem, SecretSet};
use abide_effects::secrets::SecretValue;
use anyhow::Context;

use crate::cli::{PlaceArgs, SecretCommand};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::output::{Cell, Failed, Output};

pub fn run(command: &SecretCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    match command {
        SecretCommand::Set { name } => set(name, place, out),
        SecretCommand::List => list(place, out),
        SecretCommand::Remove { name } => remove(name, place, out),
    }
}

/// Never from the command line, which every user of the machine can see.
fn value(name: &str) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        let how = format!("write the value to the standard input: abide secret set {name} < FILE");
        return Err(Failed::Usage(how).into());
    }
    let mut text = String::new();
    let not_text = "can't read the standard input; a secret is UTF-8 text: encode other bytes, in base64 for example";
    std::io::stdin().lock().read_to_string(&mut text).context(not_text)?;
    let end = if text.ends_with("\r\n") { 2 } else { usize::from(text.ends_with('\n')) };
    text.truncate(text.len() - end);
    SecretValue::new(&text).map_err(Failed::Usage)?;
    Ok(text)
}

fn set(name: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let secret = SecretSet { value: value(name)? };
    let client = connection::find(place)?;
    let item = block_on(async { Ok(client.set_secret(name, &secret).await?) })?;
    out.result(&item, || match item.agents.is_empty() {
        true => format!("{name} is set\n"),
        false => format!("{name} is set; commands of {} have it from their next start on\n", item.agents.join(", ")),
    })?;
    if item.agents.is_empty() {
        out.hint(&format!("give it to an agent: abide agent set ID --secret {name}, or --git-credential HOST={name}"));
    }
    Ok(())
}

fn list(place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = &connection::find(place)?;
    let page = |after: Option<String>| async move { client.secrets(after.as_deref()).await };
    let secrets = block_on(async { Ok(client.all(page).await?) })?;
    out.result(&plane::page_of(&secrets), || {
        if secrets.is_empty() {
            return "no secrets; `abide secret set NAME < FILE` keeps one\n".to_owned();
        }
        let row = |SecretItem { name, source, agents }: &SecretItem| {
            let agents = if agents.is_empty() { "-".to_owned() } else { agents.join(", ") };
            vec![name.as_str().into(), Cell::from(source.as_str()), agents.into()]
        };
        out.columns(&["name", "source", "agents"], &secrets.iter().map(row).collect::<Vec<_>>())
    })
}

fn remove(name: &str, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    let item = block_on(async { Ok(client.remove_secret(name).await?) })?;
    out.result(&item, || {
        let mut text = format!("{name} is removed\n");
        let agents = item.agents.join(", ");
        match (item.source.as_str(), item.agents.is_empty()) {
            (_, true) => {}
            ("environment", false) => {
                text.push_str(&format!("the daemon has a variable of this name: {agents} get that from now on\n"));
            }
            (_, false) => text.push_str(&format!("commands of {agents} start without it from now on\n")),
        }
        text
    })
}
