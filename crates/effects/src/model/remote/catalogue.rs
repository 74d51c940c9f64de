//! The models that a provider lists. Only self-hosted servers are asked, because their models are known nowhere else.
//! The request has a short timeout, because a caller wants a list with or without them.

use serde_json::Value;

use super::{Remote, fault, http};
use crate::limits;
use crate::model::ProviderFailure;

impl Remote {
    /// The names of its provider's models, without the provider's own before them; in order, and not too many.
    pub async fn list_models(&self) -> Result<Vec<String>, ProviderFailure> {
        let looked = tokio::time::timeout(limits::CATALOGUE_WITHIN, self.fetch_catalogue()).await;
        let late =
            |_| Err(fault::timeout_failure(format!("no answer within {} s", limits::CATALOGUE_WITHIN.as_secs())));
        looked.unwrap_or_else(late).map_err(|failure| self.told(failure))
    }

    async fn fetch_catalogue(&self) -> Result<Vec<String>, ProviderFailure> {
        let url = format!("{}/models", self.provider.base_url);
        let mut answer = http::get(&url, self.headers()?).await?;
        if !answer.status().is_success() {
            let headers = answer.headers().clone();
            return Err(fault::of_status(
                answer.status().as_u16(),
                &headers,
                &http::read_beginning(&mut answer, Vec::new()).await,
            ));
        }
        let mut body = Vec::new();
        while let Some(piece) = http::next_chunk(&mut answer).await? {
            body.extend_from_slice(&piece);
            if body.len() > limits::CATALOGUE_BYTES {
                return Err(ProviderFailure::invalid("its list of models is too long"));
            }
        }
        names(&body).ok_or_else(|| ProviderFailure::invalid("what it answers is no list of models"))
    }
}

/// `{"data": [{"id"}]}`, as most serve it.
fn names(body: &[u8]) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let names = list.get("data")?.as_array()?.iter().filter_map(|model| model["id"].as_str());
    let fit = |name: &&str| !name.is_empty() && name.len() <= limits::QUOTED_CHARS && !name.contains(char::is_control);
    let mut names: Vec<String> = names.filter(fit).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(limits::CATALOGUE_MAX);
    Some(names)
}
