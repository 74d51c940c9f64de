//! Worktrees across crashes: none is left that nobody recorded, and no work in one is lost.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, git, tool};
use crate::served::{Served, until};

/// The content of an agent's folder of worktrees, notes included; the record of each existing worktree is left out.
fn there(served: &Served, agent: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(served.place.home().canonicalize().unwrap().join("worktrees").join(agent)) else {
        return Vec::new();
    };
    let mut there: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let all = there.clone();
    there.retain(|path| {
        let of =
            path.file_name().unwrap().to_str().unwrap().strip_prefix(".record-").map(|name| path.with_file_name(name));
        !of.is_some_and(|folder| all.contains(&folder))
    });
    there.sort();
    there
}

/// The worktrees that git lists, without the repository's own.
fn listed(repo: &Path) -> Vec<PathBuf> {
    let text = git(repo, &["worktree", "list", "--porcelain"]);
    let paths = text.lines().filter_map(|line| line.strip_prefix("worktree "));
    let mut paths: Vec<PathBuf> = paths.skip(1).map(PathBuf::from).collect();
    paths.sort();
    paths
}

/// The worktrees that the agent's records name.
fn recorded(served: &Served, agent: &str) -> Vec<PathBuf> {
    let items = served.items(&format!("/v1/agents/{agent}/workspaces"));
    let worktrees = items.iter().filter(|item| item["mode"] == "worktree" && item["status"] == "attached");
    let mut roots: Vec<PathBuf> = worktrees.map(|item| item["root"].as_str().unwrap().into()).collect();
    roots.sort();
    roots
}

fn patches(served: &Served, agent: &str) -> Vec<Value> {
    served.get(&format!("/v1/agents/{agent}/patches"))["items"].as_array().unwrap().clone()
}

fn branches(repo: &Path) -> Vec<String> {
    git(repo, &["branch", "--list", "abide/*", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
}

fn use_worktree(repo: &Path) -> Value {
    calls(tool("UseWorkspace", json!({ "path": repo, "mode": "worktree" })))
}

#[test]
fn a_worktree_that_was_being_made_is_recorded_or_cleared_away() {
    let mut served = Served::start();
    let repo = served.repository("repo", 400);
    for n in 0..5 {
        let agent = format!("maker-{n}");
        served.create_in(&agent, &repo, &json!([use_worktree(&repo), { "text": "After the cut." }]));
        let message = served.send(&agent, "make one");
        match n {
            // From the first sign of it on: a note, a folder, files in it.
            0 | 1 => until("something of it", || (!there(&served, &agent).is_empty()).then_some(())),
            2 => until("a repository of its own", || {
                there(&served, &agent).iter().any(|folder| folder.join(".git/HEAD").exists()).then_some(())
            }),
            3 => until("files", || {
                let folders = there(&served, &agent);
                folders.iter().any(|folder| folder.join("file-1").exists()).then_some(())
            }),
            _ => served.until_called(&agent, "UseWorkspace", 1),
        }
        served.kill_and_up();
        assert_eq!(served.until_told(&agent, &message)["text"], "After the cut.");
        let recorded = recorded(&served, &agent);
        assert_eq!(there(&served, &agent), recorded, "{agent}: nothing but what is recorded");
        let finished = served.facts(&agent, "tool.finished");
        let status = if recorded.is_empty() { "unknown" } else { "completed" };
        assert_eq!((finished.len(), &finished[0]["status"]), (1, &json!(status)), "{agent}");
    }
    assert_eq!((listed(&repo), branches(&repo)), (Vec::new(), Vec::new()), "the user's repository knows nothing of it");
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    served.stop_and_verify();
}

#[test]
fn what_nobody_recorded_is_saved_before_it_is_cleared_away() {
    let mut served = Served::start();
    let repo = served.repository("repo", 2);
    served.create_in(
        "worker",
        &repo,
        &json!([use_worktree(&repo), { "text": "Made." }, calls(exec("pwd", LONG_MS)), { "text": "Still here." }]),
    );
    let message = served.send("worker", "make one");
    served.until_told("worker", &message);
    let own = recorded(&served, "worker");
    served.stop();
    // As a crash leaves one: made and worked in, and in no record.
    let all = served.place.home().canonicalize().unwrap().join("worktrees/worker");
    let stray = all.join("stray");
    git(&repo, &["worktree", "add", "-q", "-b", "abide/worker-stray", stray.to_str().unwrap()]);
    fs::write(stray.join("file-0"), "work that was not committed\n").unwrap();
    fs::write(stray.join("new"), "a new file\n").unwrap();
    // Folders that are no worktrees are not removed.
    fs::create_dir(all.join("foreign")).unwrap();
    fs::write(all.join("foreign/file"), "somebody's\n").unwrap();
    served.up();
    let mut left = [own.clone(), vec![all.join("foreign")]].concat();
    left.sort();
    assert_eq!(there(&served, "worker"), left);
    assert_eq!(listed(&repo), Vec::<PathBuf>::new());
    let saved = patches(&served, "worker");
    assert_eq!((saved.len(), &saved[0]["branch"]), (1, &json!("abide/worker-stray")));
    git(&repo, &["am", "-q", saved[0]["path"].as_str().unwrap()]);
    assert_eq!(fs::read_to_string(repo.join("file-0")).unwrap(), "work that was not committed\n");
    assert_eq!(fs::read_to_string(repo.join("new")).unwrap(), "a new file\n");
    // Its own is as it was, and the agent goes on in it.
    let message = served.send("worker", "where are you");
    served.until_told("worker", &message);
    let said = served.results("worker", "ExecCommand")[0]["stdout"].as_str().unwrap().to_owned();
    assert_eq!(Path::new(said.trim()), own[0]);
    // The next boot finds nothing more to do.
    served.kill_and_up();
    assert_eq!(patches(&served, "worker").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_worktree_that_was_being_removed_is_removed_with_its_work_saved() {
    let mut served = Served::start();
    let repo = served.repository("repo", 400);
    for n in 0..3 {
        let agent = format!("leaver-{n}");
        let work = exec("for n in $(seq 50); do echo work > new-$n; done", LONG_MS);
        served.create_in(&agent, &repo, &json!([use_worktree(&repo), calls(work), { "text": "Worked." }]));
        let message = served.send(&agent, "work");
        served.until_told(&agent, &message);
        served.until_asleep(&agent);
        let root = recorded(&served, &agent)[0].clone();
        let item = root.to_str().unwrap().replace('/', "%2F");
        let answer = served.call("DELETE", &format!("/v1/agents/{agent}/workspaces/{item}"), &[], None);
        assert_eq!(answer.status, 200, "{}", answer.body);
        match n {
            0 => {}
            1 => until("a change in its folder", || (there(&served, &agent) != [root.clone()]).then_some(())),
            _ => until("a patch", || {
                let patches = served.place.home().join("agents").join(&agent).join("patches");
                fs::read_dir(patches).is_ok_and(|mut entries| entries.next().is_some()).then_some(())
            }),
        }
        served.kill_and_up();
        let removed = served.until_fact(&agent, "worktree.removed", |_| true);
        assert_eq!(removed["root"], json!(root));
        assert_eq!((there(&served, &agent), recorded(&served, &agent)), (Vec::new(), Vec::new()), "{agent}");
        assert!(!listed(&repo).contains(&root));
        let saved = patches(&served, &agent);
        assert!(saved.iter().any(|patch| patch["files_total"] == 50), "{agent}: {saved:?}");
    }
    served.stop_and_verify();
}
