//! The names of models, as operators write them.

use std::path::Path;

use abide_daemon::models::ECHO;

/// `PROVIDER/MODEL`. A script's file is taken from the caller's folder and kept absolute, because the daemon has another.
pub fn parse_model_name(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no model: write PROVIDER/MODEL, such as {ECHO}");
    let (provider, name) = text.split_once('/').ok_or_else(wrong)?;
    if provider.is_empty() || name.is_empty() || text.contains(char::is_control) {
        return Err(wrong());
    }
    if provider != "script" && text.contains(char::is_whitespace) {
        return Err(format!("{text:?} is no model: no name of one has blanks in it"));
    }
    if provider != "script" || text == ECHO {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(Path::new(name)).map_err(|error| format!("{name:?}: {error}"))?;
    let path = path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("script/{path}"))
}
