//! `git push` to a real server on loopback: over https with a token, and over ssh with a key.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::hands::{LONG_MS, TASK, calls, exec, git, result, tool};
use crate::place::{Daemon, text};
use crate::secrets::{assert_nowhere, set_secret, without_bubblewrap};
use crate::served::{Served, until};

const TOKEN: &str = "glpat-t0ken/of+this house";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn ran(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A bare repository to push to.
fn remote(served: &Served) -> PathBuf {
    let folder = served.folder("remotes");
    git(&folder, &["init", "-q", "--bare", "-b", "main", "shop.git"]);
    let shop = folder.join("shop.git");
    git(&shop, &["config", "http.receivepack", "true"]);
    shop
}

fn branches(remote: &Path) -> String {
    git(remote, &["for-each-ref", "--format=%(refname:short)"])
}

/// A folder with a repository of one commit, whose `origin` is this.
fn workspace(served: &Served, name: &str, origin: &str) -> PathBuf {
    let folder = served.repository(name, 1);
    git(&folder, &["remote", "add", "origin", origin]);
    folder
}

/// An agent that pushes its branch when it is told to.
fn create(served: &Served, id: &str, folder: &Path, rounds: &Value, more: Value) {
    let model = served.script(id, &json!({ "rounds": rounds }));
    let mut body = json!({ "id": id, "model": model, "workspace": folder, "network": true });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    served.post("/v1/agents", &body);
}

fn push(branch: &str) -> Value {
    json!([calls(exec(&format!("git push origin HEAD:refs/heads/{branch}"), LONG_MS)), { "text": "Done." }])
}

/// How its push ended, with what git said.
fn pushed(served: &Served, id: &str) -> (bool, String) {
    let message = served.send(id, "push");
    served.until_told(id, &message);
    let ran = served.results(id, "ExecCommand").remove(0);
    (ran["exit_code"] == 0, ran["stderr"].as_str().unwrap_or_default().to_owned() + &ran.to_string())
}

struct Https {
    _server: Running,
    host: String,
    certificate: PathBuf,
    log: PathBuf,
}

fn https(served: &Served, remotes: &Path) -> Https {
    let (certificate, key) = (served.place.path("cert.pem"), served.place.path("key.pem"));
    let subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", text(&key), "-out"];
    ran("openssl", &[&request[..], &[text(&certificate)], &subject].concat());
    let log = served.place.path("requests");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/git_server.py");
    let mut server = Command::new("python3")
        .args([script, text(remotes), text(&certificate), text(&key), TOKEN, text(&log)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Https { _server: Running(server), host: format!("127.0.0.1:{}", port.trim()), certificate, log }
}

#[test]
fn an_agent_with_a_token_pushes_over_https_and_no_other_does() {
    let mut served = Served::start_offering(&["child"]);
    set_secret(&served, "GIT_TOKEN", TOKEN);
    let remote = remote(&served);
    let https = https(&served, remote.parent().unwrap());
    let origin = format!("https://{}/shop.git", https.host);
    // A file of the workspace: commands see few others.
    let certified = |name: &str| {
        let folder = workspace(&served, name, &origin);
        fs::copy(&https.certificate, folder.join("ca.pem")).unwrap();
        folder
    };
    let trust = |folder: &Path| json!({ "GIT_SSL_CAINFO": folder.join("ca.pem") });
    let answers = json!({ &https.host: "GIT_TOKEN" });

    let folder = certified("mine");
    create(&served, "given", &folder, &push("given"), json!({ "env": trust(&folder), "git_credentials": answers }));
    let (done, said) = pushed(&served, "given");
    assert!(done, "{said}");
    assert_eq!(branches(&remote), "given");

    // Another agent has nothing to answer with, and is not asked.
    let folder = certified("theirs");
    create(&served, "other", &folder, &push("other"), json!({ "env": trust(&folder) }));
    let (done, said) = pushed(&served, "other");
    assert!(!done && said.contains("could not read Username"), "{said}");

    // The token is for its host alone, and not for http.
    fs::write(&https.log, "").unwrap();
    let elsewhere = json!({ "git.example": "GIT_TOKEN" });
    let folder = certified("wrong");
    create(&served, "wrong", &folder, &push("wrong"), json!({ "env": trust(&folder), "git_credentials": elsewhere }));
    assert!(!pushed(&served, "wrong").0);
    assert!(!fs::read_to_string(&https.log).unwrap().contains("right"));

    // Children of one that says so, and of no other.
    served.script("child", &json!({ "rounds": push("child") }));
    let model = format!("script/{}", text(&served.place.path("child.json")));
    for (lead, for_children) in [("alone", false), ("family", true)] {
        let folder = certified(lead);
        let rounds = json!([
            calls(tool("SpawnAgent", json!({ "message": "push", "workspace_mode": "inherit", "model": model }))),
            calls(tool("WaitFor", json!({ "wake": "task_result", "resource": result(TASK, 1), "reason": "it" }))),
            { "text": "Done." },
        ]);
        let more = json!({ "env": trust(&folder), "git_credentials": answers, "for_children": for_children });
        create(&served, lead, &folder, &rounds, more);
        served.send(lead, "have it pushed");
        let child = format!("{lead}.1");
        let pushed = until("the child's push", || {
            let made = served.call("GET", &format!("/v1/agents/{child}/events"), &[], None);
            (made.status == 200).then(|| served.results(&child, "ExecCommand").into_iter().next()).flatten()
        });
        assert_eq!(pushed["exit_code"] == 0, for_children, "{lead}: {pushed}");
    }
    assert_eq!(branches(&remote), "child\ngiven");

    // After a kill as before it.
    served.kill_and_up();
    let task = served.run_task("given", "git push origin HEAD:refs/heads/again");
    served.until_task("given", &task, "completed");
    assert_eq!(branches(&remote), "again\nchild\ngiven");
    served.stop_and_verify();
    assert_nowhere(&served, "GIT_TOKEN", TOKEN);
}

/// An ssh server that takes one key, and an ssh agent that has it.
struct Ssh {
    _server: Running,
    _agent: Running,
    socket: PathBuf,
    port: u16,
    known_hosts: String,
}

fn ssh(served: &Served) -> Ssh {
    let folder = served.folder("ssh");
    // sshd wants folders and files that nobody else can write.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let at = |name: &str| folder.join(name);
    for key in ["host", "user"] {
        ran("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", text(&at(key))]);
    }
    fs::copy(at("user.pub"), at("authorized_keys")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {keys}\nPidFile none\nUsePAM no\n\
         StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n",
        host = at("host").display(),
        keys = at("authorized_keys").display(),
    );
    fs::write(at("sshd_config"), settings).unwrap();
    // The server separates its privileges in an empty folder that Debian makes when it starts the service.
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all("/run/sshd").unwrap();
    }
    let server = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f", text(&at("sshd_config"))])
        .stderr(fs::File::create(at("log")).unwrap())
        .spawn()
        .unwrap();
    let socket = at("agent.sock");
    let agent = Command::new("ssh-agent").args(["-D", "-a", text(&socket)]).stdout(Stdio::null()).spawn().unwrap();
    let ssh = Ssh { _server: Running(server), _agent: Running(agent), socket, port, known_hosts: String::new() };
    until("the ssh agent", || ssh.socket.exists().then_some(()));
    until("the ssh server", || TcpStream::connect(("127.0.0.1", port)).ok());
    let added = Command::new("ssh-add").arg(at("user")).env("SSH_AUTH_SOCK", &ssh.socket).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let host = fs::read_to_string(at("host.pub")).unwrap();
    let known_hosts = format!("[127.0.0.1]:{port} {host}");
    // A key that is in no file is in the agent alone.
    fs::remove_file(at("user")).unwrap();
    Ssh { known_hosts, ..ssh }
}

fn up(served: &mut Served, ssh: &Ssh) {
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("SSH_AUTH_SOCK", &ssh.socket);
    served.daemon = Some(Daemon::of(command));
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn an_agent_with_the_ssh_agent_pushes_over_ssh_and_no_other_does() {
    let mut served = Served::down("");
    let remote = remote(&served);
    let ssh = ssh(&served);
    up(&mut served, &ssh);
    let origin = format!("ssh://{}@127.0.0.1:{}{}", user(), ssh.port, remote.display());
    let known = |keys: &str| json!({ "ssh_agent": true, "known_hosts": keys });

    create(&served, "given", &workspace(&served, "mine", &origin), &push("given"), known(&ssh.known_hosts));
    let (done, said) = pushed(&served, "given");
    assert!(done, "{said}");
    assert_eq!(branches(&remote), "given");

    create(&served, "other", &workspace(&served, "theirs", &origin), &push("other"), json!({}));
    let (done, said) = pushed(&served, "other");
    assert!(!done, "{said}");

    // A host whose key is not the one that was given is not spoken to.
    let wrong = "[127.0.0.2]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    create(&served, "misled", &workspace(&served, "wrong", &origin), &push("misled"), known(wrong));
    let (done, said) = pushed(&served, "misled");
    assert!(!done && said.contains("Host key verification failed"), "{said}");

    // After a kill as before it; and without an agent the command starts, and says so.
    served.kill();
    up(&mut served, &ssh);
    let task = served.run_task("given", "git push origin HEAD:refs/heads/again");
    served.until_task("given", &task, "completed");
    assert_eq!(branches(&remote), "again\ngiven");
    served.kill();
    served.up();
    assert_eq!(served.get("/v1/agents/given")["execution"]["credentials"]["missing"], json!(["ssh-agent"]));
    let task = served.run_task("given", "git push origin HEAD:refs/heads/never");
    let ended = served.until_task("given", &task, "failed");
    assert!(ended["recovery"].as_str().unwrap().contains("started without ssh-agent"), "{ended}");
    assert_eq!(branches(&remote), "again\ngiven");

    // Landlock can't show one socket and no other: the command is refused, not started without.
    served.kill();
    let mut command = served.place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("SSH_AUTH_SOCK", &ssh.socket).env("PATH", without_bubblewrap(&served));
    served.daemon = Some(Daemon::of(command));
    let task = served.run_task("given", "true");
    let ended = served.until_task("given", &task, "failed");
    assert!(ended["evidence"].to_string().contains("ssh_agent_needs_bubblewrap"), "{ended}");
    served.stop_and_verify();
}
