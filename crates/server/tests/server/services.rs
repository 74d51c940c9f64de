//! The services of these tests: what is asked of it is counted, and nothing is done. Commands and folders
//! that are real are tested with the daemon that has hands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use abide_api::types::{
    DefaultModel, Fetched, FetchedBranch, ModelItem, ModelList, ModelTested, Patch, SandboxPart, Surroundings,
    TaskTaken, Transfer,
};
use abide_kernel::credentials::Credentials;
use abide_kernel::fact::{WorkspaceAttached, Worktree};
use abide_kernel::id::{AgentId, TaskId};
use abide_kernel::refusal::{ErrorCode, Refusal};
use abide_kernel::state::tool_placement::ToolPlacement;
use abide_kernel::state::workspace::Workspace;
use abide_kernel::views::task::OutputRead;
use abide_kernel::vocabulary::ReadStatus;
use abide_kernel::vocabulary::WorkspaceMode;
use abide_server::{FolderScope, ServiceFuture, ServiceResult, Services};
use serde_json::json;

#[derive(Debug, Default)]
pub struct CountingServices {
    /// Worktrees that were made.
    pub worktrees: AtomicU64,
    pub secrets: Mutex<BTreeSet<String>>,
}

/// A folder that is good begins with `/` and is not missing; there are three that not everybody may choose.
fn usable(path: &str, reach: FolderScope) -> Result<(), Refusal> {
    let (outside, system) = (path.starts_with("/outside"), path.starts_with("/system"));
    if outside && reach == FolderScope::Roots {
        return Err(Refusal::new(ErrorCode::OutsideRoots, "it lies elsewhere").with_hint("see workspace_roots"));
    }
    if system && reach != FolderScope::System {
        return Err(Refusal::new(ErrorCode::SystemFolder, "it is the system's").with_hint("say --force"));
    }
    if path.starts_with("/whole") {
        return Err(Refusal::new(ErrorCode::WholeHome, "it is all there is").with_hint("name a folder in it"));
    }
    let good = path.starts_with('/') && !path.contains("missing");
    good.then_some(())
        .ok_or_else(|| Refusal::new(ErrorCode::Missing, "it does not exist").with_hint("create the folder first"))
}

impl Services for CountingServices {
    fn read_output<'a>(
        &'a self,
        _: &'a AgentId,
        _: TaskId,
        offset: Option<u64>,
        _: u64,
    ) -> ServiceResult<'a, OutputRead> {
        let output = if offset.is_some() { "" } else { "hi\n" };
        let (status, output) = (ReadStatus::NotReady, output.to_owned());
        let read = OutputRead { status, output, skipped: 0, next_offset: 3, total_bytes: 3 };
        Box::pin(async { Ok(read) })
    }

    fn write_input<'a>(&'a self, _: &'a AgentId, _: TaskId, input: String, _: bool) -> ServiceResult<'a, TaskTaken> {
        Box::pin(async move {
            assert!(input != "panic", "as it was told");
            if input == "full" {
                return Err(Refusal::new(ErrorCode::InputFull, "it does not read").with_hint("try again later"));
            }
            Ok(TaskTaken { accepted: true, bytes: input.len() as u64 })
        })
    }

    fn fetch_branch<'a>(
        &'a self,
        agent: &'a AgentId,
        bound: Option<Workspace>,
        folder: String,
        branch: Option<String>,
    ) -> ServiceResult<'a, Fetched> {
        Box::pin(async move {
            if bound.is_none() {
                return Err(
                    Refusal::new(ErrorCode::NoBranch, "nothing was kept of it").with_hint("see: abide workspace list")
                );
            }
            let branch = format!("abide/{agent}/{}", branch.unwrap_or_else(|| "1".to_owned()));
            let branches = vec![FetchedBranch { branch, commit: "c0ffee".to_owned(), changed: true }];
            Ok(Fetched { repository: folder, branches })
        })
    }

    fn attach<'a>(
        &'a self,
        _: &'a AgentId,
        path: String,
        mode: WorkspaceMode,
        reach: FolderScope,
    ) -> ServiceResult<'a, WorkspaceAttached> {
        Box::pin(async move {
            usable(&path, reach)?;
            let bound = |root: String, worktree| WorkspaceAttached {
                workspace: path.clone(),
                root,
                mode,
                worktree,
                note: None,
            };
            Ok(match mode {
                WorkspaceMode::Direct => bound(path.clone(), None),
                WorkspaceMode::Worktree => {
                    let made = self.worktrees.fetch_add(1, Ordering::SeqCst) + 1;
                    let (branch, base_commit) = (format!("abide/a-{made}"), "c0ffee".to_owned());
                    let worktree = Worktree { branch, base_commit, repo: path.clone() };
                    bound(format!("/worktrees/{made}"), Some(worktree))
                }
            })
        })
    }

    fn check_workspace(&self, path: String, reach: FolderScope) -> ServiceResult<'_, String> {
        Box::pin(async move { usable(&path, reach).map(|()| path) })
    }

    fn patches<'a>(&'a self, _: &'a AgentId) -> ServiceResult<'a, Vec<Patch>> {
        let patch = Patch {
            name: "1.patch".to_owned(),
            path: "/patches/1.patch".to_owned(),
            bytes: 7,
            branch: Some("abide/a-1".to_owned()),
            base_commit: Some("c0ffee".to_owned()),
            saved_at: Some("2026-01-01T00:00:00Z".to_owned()),
            files: vec!["new".to_owned()],
            files_total: 1,
        };
        Box::pin(async { Ok(vec![patch]) })
    }

    fn transfers(&self) -> Vec<Transfer> {
        vec![Transfer { repository: "/shop".to_owned(), phase: "receiving".to_owned(), done: 9, total: 20 }]
    }

    fn check_credentials(&self, credentials: &Credentials) -> Result<(), (String, Refusal)> {
        let missing = self.missing_credentials(credentials);
        match missing.first() {
            Some(name) => Err((
                "/secrets/0".to_owned(),
                Refusal::new(ErrorCode::NoSecret, name.clone()).with_hint("set it first"),
            )),
            None => Ok(()),
        }
    }

    fn missing_credentials(&self, credentials: &Credentials) -> Vec<String> {
        let known = self.secrets.lock().unwrap();
        credentials.secret_names().into_iter().filter(|name| !known.contains(name)).collect()
    }

    fn secrets(&self) -> Vec<(String, String)> {
        self.secrets.lock().unwrap().iter().map(|name| (name.clone(), "home".to_owned())).collect()
    }

    fn set_secret(&self, name: &str, value: &str) -> Result<(), Refusal> {
        if value.len() < 8 {
            return Err(Refusal::new(ErrorCode::WrongValue, "it is too short").with_hint("give another"));
        }
        self.secrets.lock().unwrap().insert(name.to_owned());
        Ok(())
    }

    fn remove_secret(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.secrets.lock().unwrap().remove(name))
    }

    fn disk_use<'a>(&'a self, _: &'a AgentId) -> ServiceFuture<'a, Option<u64>> {
        Box::pin(async { Some(4_096) })
    }

    fn surroundings<'a>(&'a self, _: &'a AgentId, place: ToolPlacement) -> ServiceResult<'a, Surroundings> {
        let path = place.configured.unwrap_or_default();
        Box::pin(async move {
            let around = json!({
                "guides": [{ "path": path, "bytes": 7, "truncated": true }],
                "skills": [{ "name": "pdf", "description": "Reads PDF.", "source": "a/pdf" }],
                "broken": [{ "path": "a/b", "problem": "it is not text" }],
            });
            Ok(serde_json::from_value(around).unwrap())
        })
    }

    fn sandbox(&self, network: bool) -> SandboxPart {
        let enforced = if network { json!(["processes"]) } else { json!(["processes", "network"]) };
        let sandbox = json!({ "mode": "auto", "mechanism": "landlock", "enforced": enforced, "problems": [], "processes": "counted", "memory": "bounded" });
        serde_json::from_value(sandbox).unwrap()
    }

    fn models(&self, used: &BTreeMap<String, Vec<String>>) -> ModelList {
        let item = |(name, agents): (&String, &Vec<String>)| ModelItem {
            name: name.clone(),
            provider: "script".to_owned(),
            default: false,
            problem: None,
            window_tokens: None,
            max_output_tokens: None,
            context_tokens: None,
            images: false,
            found: None,
            prices: None,
            agents: agents.clone(),
            agents_total: agents.len() as u64,
        };
        let default =
            DefaultModel { name: "script/echo".into(), origin: "default".into(), note: None, fallback: Vec::new() };
        ModelList { items: used.iter().map(item).collect(), next: None, default, providers: Vec::new() }
    }

    fn find_models<'a>(
        &'a self,
        list: ModelList,
        _: &'a BTreeMap<String, Vec<String>>,
    ) -> ServiceFuture<'a, ModelList> {
        Box::pin(std::future::ready(list))
    }

    fn sees_images(&self, model: &str) -> Option<bool> {
        match model {
            "blind/m" => Some(false),
            "seeing/m" => Some(true),
            _ => None,
        }
    }

    fn test_model(&self, name: String) -> ServiceResult<'_, ModelTested> {
        Box::pin(async move {
            if !name.starts_with("script/") {
                return Err(Refusal::new(ErrorCode::NoModel, "no provider has it").with_hint("name another"));
            }
            Ok(ModelTested { model: name, ok: true, elapsed_ms: 1, usage: None, priced: true, error: None })
        })
    }
}
