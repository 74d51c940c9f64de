//! `abide token`: who may talk to the daemon.

use abide_api::types::{Scope, TokenCreate, TokenItem};

use crate::cli::{PlaceArgs, TokenCommand};
use crate::commands::plane;
use crate::connection::{self, block_on};
use crate::output::{Output, one_line};

pub fn run(command: &TokenCommand, place: &PlaceArgs, out: &Output) -> anyhow::Result<()> {
    let client = connection::find(place)?;
    match command {
        TokenCommand::Create { name, scope } => {
            let token = TokenCreate { name: name.clone(), scope: *scope };
            let made = block_on(async { Ok(client.create_token(&token).await?) })?;
            out.result(&made, || format!("{}\n", one_line(&made.token)))?;
            out.hint(&format!("this is the only time it is shown; `abide token revoke {}` ends it", made.token_id));
            Ok(())
        }
        TokenCommand::List => {
            let client = &client;
            let page = |after: Option<String>| async move { client.tokens(after.as_deref()).await };
            let tokens = block_on(async { Ok(client.all(page).await?) })?;
            out.result(&plane::page_of(&tokens), || {
                if tokens.is_empty() {
                    return "only the home's own token; `abide token create --name NAME --scope SCOPE` makes one\n"
                        .to_owned();
                }
                let row = |token: &TokenItem| {
                    let TokenItem { token_id, name, scope, created_at } = token;
                    let made = out.time_of(created_at);
                    vec![token_id.as_str().into(), name.as_str().into(), word(*scope).into(), made.into()]
                };
                out.columns(&["id", "name", "scope", "made"], &tokens.iter().map(row).collect::<Vec<_>>())
            })
        }
        TokenCommand::Revoke { id } => {
            let ended = block_on(async { Ok(client.revoke_token(id).await?) })?;
            out.result(&ended, || format!("{} is worthless now\n", one_line(id)))
        }
    }
}

fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Observer => "observer",
        Scope::Operator => "operator",
        Scope::Admin => "admin",
    }
}
