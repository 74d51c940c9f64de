//! The user's own configuration of git, which only the user writes.

use std::process::{Command, Stdio};

use crate::programs;

/// A setting of the user's own configuration, which only the user writes. With `--type=path` a `~` is expanded.
pub(in crate::workspace) fn user_setting(key: &str, form: &[&str]) -> Option<String> {
    read_user_settings(key, form)?.pop()
}

/// All values of such a setting.
pub(in crate::workspace) fn user_settings(key: &str) -> Vec<String> {
    read_user_settings(key, &[]).unwrap_or_default()
}

fn read_user_settings(key: &str, form: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new(programs::find_program("git").ok()?);
    command.env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let output = command.args(["config", "--global", "-z"]).args(form).args(["--get-all", key]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split('\0').filter(|value| !value.is_empty()).map(str::to_owned).collect())
}
