//! The ways of telling: a command, a webhook.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use abide_effects::programs;
use abide_effects::web::Url;
use abide_effects::webhook::{self, Secret};
use abide_kernel::limits::clip;
use abide_kernel::time::Time;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use super::Hidden;
use super::notice::Notice;
use crate::open_files;

/// How long a command may take to tell.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// A variable longer than this would keep a command from starting.
const VARIABLE_BYTES: usize = 32 << 10;

/// Runs `$1` with the soft limit of open files that the daemon was started with.
const WITH_LIMIT: &str = r#"ulimit -Sn "$0"; exec /bin/sh -c "$1""#;

#[derive(Debug, Clone)]
pub enum Sink {
    Command { command: String, folder: PathBuf, hidden: Hidden },
    Webhook { url: Url, secret: Option<Secret> },
}

pub const NAMES: [&str; 2] = ["command", "webhook"];

impl Sink {
    pub fn name(&self) -> &'static str {
        match self {
            Sink::Command { .. } => NAMES[0],
            Sink::Webhook { .. } => NAMES[1],
        }
    }

    /// Once; an error is what went wrong.
    pub async fn send(&self, notice: &Notice, now: Time) -> Result<(), String> {
        let (sink, notice) = (self.clone(), notice.clone());
        let sent = tokio::task::spawn_blocking(move || match sink {
            Sink::Command { command, folder, hidden } => {
                run(&command, &folder, &hidden.names(), &notice, COMMAND_TIMEOUT)
            }
            Sink::Webhook { url, secret } => {
                let event = json!({ "type": format!("abide.{}", notice.kind), "timestamp": notice.at, "data": notice });
                webhook::send_notification(&url, secret.as_ref(), &notice.id, now.as_ms() / 1_000, &event.to_string())
            }
        });
        sent.await.unwrap_or_else(|error| Err(format!("it could not be sent: {error}")))
    }
}

/// The operator's own command: not confined, with the daemon's environment but for the keys of models and the secrets of
/// agents. It runs in a folder that no agent can write: many programs load files of the folder that they run in. Its
/// output is thrown away.
fn run(command: &str, folder: &Path, hidden: &[String], notice: &Notice, limit: Duration) -> Result<(), String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let input = input(notice).map_err(|error| failed("its input can't be made", error))?;
    let mut shell = Command::new("/bin/sh");
    for name in hidden {
        shell.env_remove(name);
    }
    match open_files::soft_for_programs() {
        Some(soft) => shell.args(["-c", WITH_LIMIT, &soft.to_string(), command]),
        None => shell.args(["-c", command]),
    };
    let mut child = shell
        // Its programs are not looked for where agents can write.
        .env("PATH", programs::safe_path())
        .env("ABIDE_NOTIFY_ID", &notice.id)
        .env("ABIDE_NOTIFY_KIND", notice.kind.as_str())
        .env("ABIDE_AGENT", &notice.agent_id)
        .env("ABIDE_TEXT", clip(notice.text.as_deref().unwrap_or_default(), VARIABLE_BYTES).replace('\0', " "))
        .env("ABIDE_ANSWER", notice.answer.as_deref().unwrap_or_default())
        .current_dir(folder)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| failed("it can't be started", error))?;
    let began = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(match (status.code(), status.signal()) {
                    (Some(code), _) => format!("the command ended with exit code {code}"),
                    (None, signal) => format!("the command was ended by signal {}", signal.unwrap_or_default()),
                });
            }
            Ok(None) if began.elapsed() < limit => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(200));
            }
            Ok(None) => {
                end(&mut child);
                return Err(format!("the command took more than {} seconds", limit.as_secs()));
            }
            Err(error) => return Err(failed("it can't be waited for", error)),
        }
    }
}

/// A file in memory: a command that never reads it holds nobody up.
fn input(notice: &Notice) -> std::io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("notice", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, notice)?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file)
}

/// With everything that it started. It has not been waited for, so its number is still its own.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(pid, Signal::KILL);
    }
    let _ended = child.wait();
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use abide_kernel::time::Time;

    use super::super::notice::NoticeKind;
    use super::*;

    /// It ignores being asked, and so does what it started; a pipe that all of them hold says when all of them are gone.
    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let notice = Notice {
            id: "brief_1".to_owned(),
            kind: NoticeKind::Notify,
            agent_id: "a".to_owned(),
            at: Time::from_ms(1),
            seq: 1,
            text: Some("look".to_owned()),
            approval: None,
            answer: None,
        };
        let command = format!("trap '' TERM; exec > {}; echo begun; sleep 600 & sleep 600", pipe.display());
        let telling = std::thread::spawn(move || run(&command, Path::new("/"), &[], &notice, Duration::from_secs(1)));
        let mut said = String::new();
        File::open(&pipe).unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "begun\n");
        assert_eq!(telling.join().unwrap(), Err("the command took more than 1 seconds".to_owned()));
    }
}
