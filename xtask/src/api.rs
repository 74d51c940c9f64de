//! The API against its own document: schemathesis makes requests from `/openapi.json`, good and bad ones, and holds every
//! answer of a real daemon against it. The daemon has a home of its own, which is gone when this returns.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{cargo, tools};

/// One version, so that the same requests are made everywhere.
const SCHEMATHESIS: &str = "4.32.5";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
response_schema_conformance,negative_data_rejection";
/// Requests that are made up per operation, besides those that every boundary of its schema gets.
const EXAMPLES: &str = "20";
/// Endless, or as long as the ledger; the server's own tests have them. `task_run` would run whatever text is made up,
/// as many times as there are examples: what runs here is the list in `commands`, and wrong bodies are the tests' of the
/// server. `workspace_attach` stays: a path that is made up leads nowhere. `model_test` would ask the providers that the
/// environment of this machine names, and they charge for it.
const LEFT_OUT: [&str; 5] = ["event_stream", "event_stream_all", "ledger_export", "task_run", "model_test"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "`cargo xtask api` takes nothing");
    cargo::run("cargo", &["build", "-p", "abide"])?;
    check(&cargo::target().join("debug/abide"))
}

/// The API of this program.
pub(crate) fn check(abide: &Path) -> Result<()> {
    let target = cargo::target();
    let schemathesis = install(&target.join("schemathesis"))?;
    let folder = TemporaryFolder::new(target.join(format!("api-{}", std::process::id())))?;
    let daemon = Daemon::start(abide, &folder.0.join("home"))?;
    seed(&daemon)?;
    commands(&daemon)?;

    // First about agents that mostly do not exist, then about one that does.
    let resident = folder.0.join("resident.toml");
    fs::write(&resident, "[parameters]\n\"path.id\" = \"resident\"\n")?;
    hold(&schemathesis, &folder.0, &daemon, None)?;
    hold(&schemathesis, &folder.0, &daemon, Some(&resident))?;

    let report = daemon.ask("POST", "/v1/ledger/verify", &json!({}))?;
    ensure!(report["intact"] == true, "after all of it the ledger is damaged: {report}");
    daemon.stop()
}

/// The program in a virtual environment of its own; made when it is not there in this version.
fn install(venv: &Path) -> Result<PathBuf> {
    let program = venv.join("bin/st");
    let version = Command::new(&program).arg("--version").output();
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(SCHEMATHESIS)) {
        return Ok(program);
    }
    tools::ensure_all(&[tools::PYTHON_VENV])?;
    let venv_text = venv.to_str().context("the target folder's path is not UTF-8")?;
    cargo::run("python3", &["-m", "venv", "--clear", venv_text])?;
    let pip = venv.join("bin/pip");
    let pip = pip.to_str().context("the target folder's path is not UTF-8")?;
    let wanted = format!("schemathesis=={SCHEMATHESIS}");
    cargo::run(pip, &["install", "--quiet", "--disable-pip-version-check", &wanted])?;
    Ok(program)
}

/// One run over the document. What it says is shown only if something is wrong.
fn hold(schemathesis: &Path, folder: &Path, daemon: &Daemon, config: Option<&Path>) -> Result<()> {
    let mut command = Command::new(schemathesis);
    command.arg("--no-color");
    if let Some(config) = config {
        command.arg("--config-file").arg(config);
    }
    command.arg("run").arg(format!("{}/openapi.json", daemon.url));
    command.args(["--header", &format!("Authorization: Bearer {}", daemon.token)]);
    command.args(["--checks", CHECKS, "--max-examples", EXAMPLES, "--continue-on-failure"]);
    // The same requests on every run: nothing is drawn, nothing remembered.
    command.args(["--generation-deterministic", "--workers", "1"]);
    for operation in LEFT_OUT {
        command.args(["--exclude-operation-id", operation]);
    }
    if config.is_some() {
        // The resident stays.
        command.args(["--include-path-regex", r"\{id\}", "--exclude-operation-id", "agent_delete"]);
    }
    let output = command.current_dir(folder).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} does not start", schemathesis.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        print!("{said}{}", String::from_utf8_lossy(&output.stderr));
        bail!("the API is not what /openapi.json says ({})", output.status);
    }
    let count = said.lines().skip_while(|line| *line != "Test cases:").nth(1).unwrap_or("nothing was counted").trim();
    println!("schemathesis: {count}");
    Ok(())
}

/// Agents with something in their records.
fn seed(daemon: &Daemon) -> Result<()> {
    for (path, body) in [
        ("/v1/agents", json!({ "id": "resident", "instructions": "stay" })),
        ("/v1/agents", json!({ "id": "stopped", "start": false })),
        ("/v1/agents/resident/messages", json!({ "text": "hello" })),
        ("/v1/agents/resident/messages", json!({ "json": { "n": 1 }, "kind": "webhook_event", "origin": "shop" })),
        ("/v1/agents/resident/timers", json!({ "summary": "every hour", "every_ms": 3_600_000 })),
        ("/v1/agents/resident/timers", json!({ "summary": "at once", "after_ms": 0 })),
        ("/v1/agents/resident/wake", json!({ "reason": "look", "body": "at this" })),
        ("/v1/agents/stopped/messages", json!({ "text": "kept" })),
        ("/v1/tokens", json!({ "name": "somebody", "scope": "observer" })),
    ] {
        daemon.ask("POST", path, &body)?;
    }
    Ok(())
}

/// A bounded list of commands, so that the planes of tasks and workspaces have something in them.
fn commands(daemon: &Daemon) -> Result<()> {
    for run in [
        json!({ "cmd": "echo hi" }),
        json!({ "cmd": "exit 3" }),
        json!({ "cmd": "cat", "accepts_input": true }),
        json!({ "cmd": "sleep 600", "tty": true }),
        json!({ "cmd": "true", "workdir": "nowhere" }),
    ] {
        let task = daemon.ask("POST", "/v1/agents/resident/tasks", &run)?;
        ensure!(task["task_id"].is_string(), "{run} became no task: {task}");
    }
    Ok(())
}

/// A folder that is removed when this is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(path: PathBuf) -> Result<TemporaryFolder> {
        fs::create_dir_all(&path).with_context(|| format!("can't make {}", path.display()))?;
        Ok(TemporaryFolder(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

/// `abide up` on a free port.
struct Daemon {
    child: Child,
    stdout: BufReader<ChildStdout>,
    url: String,
    token: String,
}

impl Daemon {
    fn start(program: &Path, home: &Path) -> Result<Daemon> {
        let mut child = Command::new(program)
            .args(["up", "--listen", "127.0.0.1:0", "--model", "script/echo", "--json", "--home"])
            .arg(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let stdout = child.stdout.take().context("the daemon has no stdout")?;
        let mut daemon = Daemon { child, stdout: BufReader::new(stdout), url: String::new(), token: String::new() };
        let ready = daemon.line()?;
        daemon.url = ready["url"].as_str().with_context(|| format!("{ready} names no url"))?.to_owned();
        daemon.token = fs::read_to_string(home.join("token"))?.trim().to_owned();
        Ok(daemon)
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("the daemon said {line:?}"))
    }

    /// One request on a connection of its own. Anything but success is an error.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let address = self.url.strip_prefix("http://").context("the daemon's url is not http")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let (token, body) = (&self.token, body.to_string());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("{path} answered {answer:?}"))?;
        ensure!(head.starts_with("HTTP/1.1 2"), "{method} {path} was refused: {body}");
        serde_json::from_str(body).with_context(|| format!("{path} answered {body:?}"))
    }

    /// Ends it as a person would, and sees that it ends well.
    fn stop(mut self) -> Result<()> {
        cargo::run("kill", &["-TERM", &self.child.id().to_string()])?;
        let last = self.line()?;
        ensure!(last["event"] == "stopped", "the daemon's last word was {last}");
        let status = self.child.wait()?;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Gone already, where it was stopped.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = self.child.kill();
            let _ended = self.child.wait();
        }
    }
}
