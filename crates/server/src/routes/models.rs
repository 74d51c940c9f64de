//! Models: which can be named, and whether one answers. What is known of them is for whoever started the server to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use abide_api::types::ModelTest;
use abide_api::{ErrorCode, Problem};
use abide_kernel::config::DefaultModels;
use abide_kernel::limits;
use abide_ledger::{Ledger, ReadError};

use super::{Met, blocking, json};
use crate::agent_row::{AgentRow, readable_agent_row};
use crate::body;
use crate::call::Call;
use crate::problems;

const BATCH: usize = 1_000;

/// The model of an agent as its row has it; for one that has none of its own, the settings' as they are now.
pub(super) fn model_of(row: &AgentRow, defaults: &DefaultModels) -> String {
    match row.default_model && defaults.chosen {
        true => defaults.model.clone(),
        false => row.model.clone(),
    }
}

/// The agents that think with each model, by its name. Those that are archived think no more.
pub fn models_in_use(ledger: &Ledger, defaults: &DefaultModels) -> Result<BTreeMap<String, Vec<String>>, ReadError> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut place = None;
    loop {
        let streams = ledger.streams(place.as_ref(), BATCH)?;
        for (stream, _) in &streams {
            // Agents come first among the streams.
            let Some(name) = stream.agent_name() else { return Ok(used) };
            if let Some(row) = readable_agent_row(ledger, stream)?
                && !row.archived
            {
                used.entry(model_of(&row, defaults)).or_default().push(name.to_owned());
            }
        }
        match streams.last() {
            Some((stream, _)) if streams.len() == BATCH => place = Some(stream.clone()),
            Some(_) | None => return Ok(used),
        }
    }
}

pub(super) async fn list(call: Call) -> Met {
    let app = Arc::clone(&call.app);
    let list = blocking(move || {
        let used =
            models_in_use(app.host.ledger(), &app.options.models).map_err(|error| problems::unreadable(&error))?;
        Ok((app.options.services.models(&used), used))
    });
    let (list, used) = list.await?;
    Ok(json(200, &call.app.options.services.find_models(list, &used).await))
}

pub(super) async fn test(call: Call) -> Met {
    let wrong = |detail: &str| Problem::new(ErrorCode::WrongFields, detail).pointer("/model");
    let test: ModelTest = body::json_or_default(&call.body)?;
    let model = test.model.unwrap_or_else(|| call.app.options.models.model.clone());
    if model.len() > limits::LINE_BYTES {
        return Err(wrong("the name of the model is too long"));
    }
    let tested = call.app.options.services.test_model(model).await;
    Ok(json(200, &tested.map_err(|refusal| wrong(&refusal.message).hint(refusal.hint))?))
}
