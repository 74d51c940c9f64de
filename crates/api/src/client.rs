//! The typed client of the API, for the command line and every other surface that is not a browser.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::sse::{SseEvent, SseParser};
use crate::types::{
    Abort, Accepted, AgentChange, AgentCreate, AgentItem, AgentSummary, ApprovalView, BriefView, Compact, Deleted,
    Detached, EndConfirmation, Event, Exported, Fetched, Fork, Forked, Health, LedgerCompaction, LedgerStats,
    LedgerVerification, MessageCreate, MessageDetail, MessageView, ModelList, ModelTest, ModelTested, Page, Patch,
    SandboxPart, SecretItem, SecretSet, Surroundings, TaskInput, TaskRead, TaskRun, TaskStopped, TaskTaken, TaskView,
    TimerCreate, TimerCreated, TimerView, TokenCreate, TokenCreated, TokenItem, TranscriptEntry, Transfer,
    TriggerCreate, TriggerView, Verify, WaitView, Wake, Why, Woken, WorkItemBlock, WorkItemComplete, WorkItemCreate,
    WorkItemUpdate, WorkItemView, WorkspaceAttach, WorkspaceFetch, WorkspaceView,
};

/// The daemon bounds its answers; this is a bound for other servers at this address.
const ANSWER_MAX: usize = 64 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no daemon answers at {url} ({detail})")]
    Unreachable { url: String, detail: String },
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    #[error("{url} answered something that is not ours ({detail})")]
    Foreign { url: String, detail: String },
    #[error("{0:?} is no address of a daemon: write http://HOST:PORT")]
    BadUrl(String),
}

#[derive(Debug, Clone)]
pub struct Client {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    base: String,
    token: String,
    timeout: Duration,
}

/// A stream of events; dropping it ends it.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    parser: SseParser,
    ready: std::collections::VecDeque<SseEvent>,
}

impl Client {
    pub fn new(base: &str, token: &str) -> Result<Client, ClientError> {
        let base = base.trim_end_matches('/').to_owned();
        let parsed: Uri = base.parse().map_err(|_| ClientError::BadUrl(base.clone()))?;
        if parsed.scheme_str() != Some("http") || parsed.host().is_none() {
            return Err(ClientError::BadUrl(base));
        }
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        Ok(Client { http, base, token: token.to_owned(), timeout: TIMEOUT })
    }

    /// The same, for what takes as long as there is data: a check of the whole ledger, say.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(StatusCode, Incoming), ClientError> {
        let url = format!("{}{path}", self.base);
        let mut request = Request::builder().method(method).uri(&url);
        if !self.token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|_| ClientError::BadUrl(url.clone()))?;
        let unreachable = |detail: String| ClientError::Unreachable { url: self.base.clone(), detail };
        let sent = tokio::time::timeout(self.timeout, self.http.request(request));
        let answer = sent.await.map_err(|_| unreachable("it takes too long".to_owned()))?;
        let answer = answer.map_err(|error| unreachable(reason(&error)))?;
        Ok((answer.status(), answer.into_body()))
    }

    /// The body of an answer that is no refusal.
    async fn open(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Incoming, ClientError> {
        let (status, body) = self.send(method, path, body).await?;
        if status.is_success() {
            return Ok(body);
        }
        let bytes = self.whole(body).await?;
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => Err(ClientError::Refused(Box::new(problem))),
            Err(_) => Err(ClientError::Foreign { url: self.base.clone(), detail: format!("status {status}") }),
        }
    }

    async fn whole(&self, body: Incoming) -> Result<Bytes, ClientError> {
        let foreign = |detail: String| ClientError::Foreign { url: self.base.clone(), detail };
        let limited = http_body_util::Limited::new(body, ANSWER_MAX);
        Ok(limited.collect().await.map_err(|error| foreign(error.to_string()))?.to_bytes())
    }

    async fn typed<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let body = body.map(|body| serde_json::to_vec(body).unwrap_or_default());
        let answer = self.open(method, path, body).await?;
        let bytes = self.whole(answer).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ClientError::Foreign { url: self.base.clone(), detail: error.to_string() })
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.typed(Method::GET, path, None::<&()>).await
    }

    /// Whether it can serve and record; refused with 503 while it can't.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get("/readyz").await
    }

    /// Whether it lives, ready or not.
    pub async fn alive(&self) -> Result<Health, ClientError> {
        self.get("/healthz").await
    }

    pub async fn agents(&self, after: Option<&str>) -> Result<Page<AgentItem>, ClientError> {
        self.get(&format!("/v1/agents?{}", page_query(after))).await
    }

    /// All items of a list, page by page. Only a page without `next` is the last, however few items the others have.
    pub async fn all<T, F>(&self, mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>, ClientError>
    where
        F: Future<Output = Result<Page<T>, ClientError>>,
    {
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let found = page(after.clone()).await?;
            items.extend(found.items);
            match found.next {
                Some(next) if after.as_ref() == Some(&next) => {
                    let detail = format!("the page after {next:?} leads back to it");
                    return Err(ClientError::Foreign { url: self.base.clone(), detail });
                }
                Some(next) => after = Some(next),
                None => return Ok(items),
            }
        }
    }

    pub async fn create_agent(&self, new: &AgentCreate) -> Result<AgentSummary, ClientError> {
        self.typed(Method::POST, "/v1/agents", Some(new)).await
    }

    pub async fn agent(&self, id: &str) -> Result<AgentSummary, ClientError> {
        self.get(&format!("/v1/agents/{}", path_segment(id))).await
    }

    pub async fn models(&self) -> Result<ModelList, ClientError> {
        self.get("/v1/models").await
    }

    pub async fn test_model(&self, test: &ModelTest) -> Result<ModelTested, ClientError> {
        self.typed(Method::POST, "/v1/models/test", Some(test)).await
    }

    /// The guides and skills that its model is told of.
    pub async fn surroundings(&self, id: &str) -> Result<Surroundings, ClientError> {
        self.get(&format!("/v1/agents/{}/surroundings", path_segment(id))).await
    }

    pub async fn sandbox(&self) -> Result<SandboxPart, ClientError> {
        self.get("/v1/sandbox").await
    }

    /// The repositories whose objects are being copied into the home.
    pub async fn transfers(&self) -> Result<Page<Transfer>, ClientError> {
        self.get("/v1/transfers").await
    }

    pub async fn change_agent(&self, id: &str, change: &AgentChange) -> Result<AgentSummary, ClientError> {
        self.typed(Method::PATCH, &format!("/v1/agents/{}", path_segment(id)), Some(change)).await
    }

    pub async fn delete_agent(&self, id: &str) -> Result<Deleted, ClientError> {
        self.typed(Method::DELETE, &format!("/v1/agents/{}", path_segment(id)), None::<&()>).await
    }

    /// `start`, `stop`, and their old spellings.
    pub async fn control(&self, id: &str, action: &str) -> Result<AgentSummary, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/{action}", path_segment(id)), None::<&()>).await
    }

    pub async fn abort(&self, id: &str, abort: &Abort) -> Result<AgentSummary, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/abort", path_segment(id)), Some(abort)).await
    }

    pub async fn wake(&self, id: &str, wake: &Wake) -> Result<Woken, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/wake", path_segment(id)), Some(wake)).await
    }

    pub async fn send_message(&self, id: &str, message: &MessageCreate) -> Result<Accepted, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/messages", path_segment(id)), Some(message)).await
    }

    pub async fn why(&self, id: &str, at: Option<u64>) -> Result<Why, ClientError> {
        let at = at.map(|at| format!("?at={at}")).unwrap_or_default();
        self.get(&format!("/v1/agents/{}/why{at}", path_segment(id))).await
    }

    /// One message and its outcome, once its agent no longer works on it by itself, once it meets a delay that is not
    /// `known_delay`, or when the time is over.
    pub async fn wait_for_message(
        &self,
        id: &str,
        message_id: &str,
        wait: Duration,
        known_delay: &str,
    ) -> Result<MessageDetail, ClientError> {
        let (id, message, known, wait_ms) =
            (path_segment(id), path_segment(message_id), path_segment(known_delay), wait.as_millis());
        let path = format!("/v1/agents/{id}/messages/{message}?wait={wait_ms}ms&known_delay={known}");
        let patient = self.clone().with_timeout(self.timeout.saturating_add(wait));
        patient.typed(Method::GET, &path, None::<&()>).await
    }

    /// A page of a plane by its name in the route: `messages`, `briefs`, `timers`, …
    pub async fn plane<T: DeserializeOwned>(&self, id: &str, plane: &str, query: &str) -> Result<Page<T>, ClientError> {
        self.get(&format!("/v1/agents/{}/{plane}?{query}", path_segment(id))).await
    }

    pub async fn messages(&self, id: &str, query: &str) -> Result<Page<MessageView>, ClientError> {
        self.plane(id, "messages", query).await
    }

    pub async fn briefs(&self, id: &str, query: &str) -> Result<Page<BriefView>, ClientError> {
        self.plane(id, "briefs", query).await
    }

    pub async fn transcript(&self, id: &str, query: &str) -> Result<Page<TranscriptEntry>, ClientError> {
        self.plane(id, "transcript", query).await
    }

    pub async fn events(&self, id: &str, query: &str) -> Result<Page<Event>, ClientError> {
        self.plane(id, "events", query).await
    }

    pub async fn timers(&self, id: &str, query: &str) -> Result<Page<TimerView>, ClientError> {
        self.plane(id, "timers", query).await
    }

    pub async fn waits(&self, id: &str, query: &str) -> Result<Page<WaitView>, ClientError> {
        self.plane(id, "waits", query).await
    }

    pub async fn timer(&self, id: &str, timer: &str) -> Result<TimerView, ClientError> {
        self.typed(Method::GET, &format!("/v1/agents/{}/timers/{}", path_segment(id), path_segment(timer)), None::<&()>)
            .await
    }

    pub async fn create_timer(&self, id: &str, timer: &TimerCreate) -> Result<TimerCreated, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/timers", path_segment(id)), Some(timer)).await
    }

    /// With its URL, which is not said again.
    pub async fn create_trigger(&self, id: &str, trigger: &TriggerCreate) -> Result<TriggerView, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/triggers", path_segment(id)), Some(trigger)).await
    }

    /// With its new URL; the one before opens nothing any more.
    pub async fn rotate_trigger(&self, id: &str, trigger: &str) -> Result<TriggerView, ClientError> {
        let path = format!("/v1/agents/{}/triggers/{}/rotate", path_segment(id), path_segment(trigger));
        self.typed(Method::POST, &path, None::<&()>).await
    }

    /// Ends one item of a plane: `timers`, `waits`, `triggers`.
    pub async fn end(&self, id: &str, plane: &str, item: &str) -> Result<EndConfirmation, ClientError> {
        let path = format!("/v1/agents/{}/{plane}/{}", path_segment(id), path_segment(item));
        self.typed(Method::DELETE, &path, None::<&()>).await
    }

    pub async fn run_task(&self, id: &str, run: &TaskRun) -> Result<TaskView, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/tasks", path_segment(id)), Some(run)).await
    }

    pub async fn task(&self, id: &str, task: &str) -> Result<TaskView, ClientError> {
        self.get(&format!("/v1/agents/{}/tasks/{}", path_segment(id), path_segment(task))).await
    }

    /// The output of a task, after it ended or the time is over.
    pub async fn read_task(
        &self,
        id: &str,
        task: &str,
        offset: Option<u64>,
        wait_ms: u64,
    ) -> Result<TaskRead, ClientError> {
        let offset = offset.map(|offset| format!("&offset={offset}")).unwrap_or_default();
        self.get(&format!(
            "/v1/agents/{}/tasks/{}/output?wait_ms={wait_ms}{offset}",
            path_segment(id),
            path_segment(task)
        ))
        .await
    }

    pub async fn write_task(&self, id: &str, task: &str, input: &TaskInput) -> Result<TaskTaken, ClientError> {
        self.typed(
            Method::POST,
            &format!("/v1/agents/{}/tasks/{}/input", path_segment(id), path_segment(task)),
            Some(input),
        )
        .await
    }

    pub async fn stop_task(&self, id: &str, task: &str) -> Result<TaskStopped, ClientError> {
        self.typed(
            Method::POST,
            &format!("/v1/agents/{}/tasks/{}/stop", path_segment(id), path_segment(task)),
            None::<&()>,
        )
        .await
    }

    pub async fn attach_workspace(&self, id: &str, attach: &WorkspaceAttach) -> Result<WorkspaceView, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/workspaces", path_segment(id)), Some(attach)).await
    }

    pub async fn detach_workspace(&self, id: &str, root: &str, discard: bool) -> Result<Detached, ClientError> {
        let query = if discard { "?discard=true" } else { "" };
        let path = format!("/v1/agents/{}/workspaces/{}{query}", path_segment(id), path_segment(root));
        self.typed(Method::DELETE, &path, None::<&()>).await
    }

    pub async fn fetch_workspace(&self, id: &str, root: &str, fetch: &WorkspaceFetch) -> Result<Fetched, ClientError> {
        let path = format!("/v1/agents/{}/workspaces/{}/fetch", path_segment(id), path_segment(root));
        self.typed(Method::POST, &path, Some(fetch)).await
    }

    pub async fn patches(&self, id: &str, query: &str) -> Result<Page<Patch>, ClientError> {
        self.plane(id, "patches", query).await
    }

    pub async fn create_work_item(&self, id: &str, new: &WorkItemCreate) -> Result<WorkItemView, ClientError> {
        self.typed(Method::POST, &format!("/v1/agents/{}/work-items", path_segment(id)), Some(new)).await
    }

    pub async fn work_item(&self, id: &str, item: &str) -> Result<WorkItemView, ClientError> {
        self.get(&format!("/v1/agents/{}/work-items/{}", path_segment(id), path_segment(item))).await
    }

    pub async fn pick_work_item(&self, id: &str, item: &str) -> Result<WorkItemView, ClientError> {
        self.on_work_item(id, item, "pick", None::<&()>).await
    }

    pub async fn update_work_item(
        &self,
        id: &str,
        item: &str,
        update: &WorkItemUpdate,
    ) -> Result<WorkItemView, ClientError> {
        self.on_work_item(id, item, "update", Some(update)).await
    }

    pub async fn block_work_item(
        &self,
        id: &str,
        item: &str,
        block: &WorkItemBlock,
    ) -> Result<WorkItemView, ClientError> {
        self.on_work_item(id, item, "block", Some(block)).await
    }

    pub async fn complete_work_item(
        &self,
        id: &str,
        item: &str,
        complete: &WorkItemComplete,
    ) -> Result<WorkItemView, ClientError> {
        self.on_work_item(id, item, "complete", Some(complete)).await
    }

    async fn on_work_item(
        &self,
        id: &str,
        item: &str,
        action: &str,
        body: Option<&impl Serialize>,
    ) -> Result<WorkItemView, ClientError> {
        self.typed(
            Method::POST,
            &format!("/v1/agents/{}/work-items/{}/{action}", path_segment(id), path_segment(item)),
            body,
        )
        .await
    }

    /// Grants or denies it.
    pub async fn decide_approval(&self, id: &str, approval: &str, grant: bool) -> Result<ApprovalView, ClientError> {
        let action = if grant { "grant" } else { "deny" };
        let path = format!("/v1/agents/{}/approvals/{}/{action}", path_segment(id), path_segment(approval));
        self.typed(Method::POST, &path, None::<&()>).await
    }

    /// Its records, as the files of a fixture.
    pub async fn export_agent(&self, id: &str) -> Result<Exported, ClientError> {
        self.get(&format!("/v1/agents/{}/export", path_segment(id))).await
    }

    pub async fn ledger_stats(&self) -> Result<LedgerStats, ClientError> {
        self.get("/v1/ledger/stats").await
    }

    pub async fn verify_ledger(&self, verify: &Verify) -> Result<LedgerVerification, ClientError> {
        self.typed(Method::POST, "/v1/ledger/verify", Some(verify)).await
    }

    pub async fn compact_ledger(&self, compact: &Compact) -> Result<LedgerCompaction, ClientError> {
        self.typed(Method::POST, "/v1/ledger/compact", Some(compact)).await
    }

    pub async fn fork(&self, fork: &Fork) -> Result<Forked, ClientError> {
        self.typed(Method::POST, "/v1/ledger/fork", Some(fork)).await
    }

    pub async fn create_token(&self, token: &TokenCreate) -> Result<TokenCreated, ClientError> {
        self.typed(Method::POST, "/v1/tokens", Some(token)).await
    }

    pub async fn tokens(&self, after: Option<&str>) -> Result<Page<TokenItem>, ClientError> {
        self.get(&format!("/v1/tokens?{}", page_query(after))).await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<EndConfirmation, ClientError> {
        self.typed(Method::DELETE, &format!("/v1/tokens/{}", path_segment(id)), None::<&()>).await
    }

    pub async fn secrets(&self, after: Option<&str>) -> Result<Page<SecretItem>, ClientError> {
        self.get(&format!("/v1/secrets?{}", page_query(after))).await
    }

    pub async fn set_secret(&self, name: &str, secret: &SecretSet) -> Result<SecretItem, ClientError> {
        self.typed(Method::PUT, &format!("/v1/secrets/{}", path_segment(name)), Some(secret)).await
    }

    pub async fn remove_secret(&self, name: &str) -> Result<SecretItem, ClientError> {
        self.typed(Method::DELETE, &format!("/v1/secrets/{}", path_segment(name)), None::<&()>).await
    }

    /// Follows one agent, or all of them where none is named.
    pub async fn follow(&self, id: Option<&str>, after: Option<&str>) -> Result<Events, ClientError> {
        let path = id.map_or_else(
            || "/v1/events/stream".to_owned(),
            |id| format!("/v1/agents/{}/events/stream", path_segment(id)),
        );
        let after = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let body = self.open(Method::GET, &format!("{path}{after}"), None).await?;
        Ok(Events { body, parser: SseParser::default(), ready: std::collections::VecDeque::new() })
    }

    /// The body of a large answer, piece by piece.
    pub async fn download(
        &self,
        path: &str,
        mut piece: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<std::io::Result<()>, ClientError> {
        let mut body = self.open(Method::GET, path, None).await?;
        while let Some(frame) = body.frame().await {
            let broken = |detail: String| ClientError::Unreachable { url: self.base.clone(), detail };
            let frame = frame.map_err(|error| broken(error.to_string()))?;
            if let Some(data) = frame.data_ref()
                && let Err(error) = piece(data)
            {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}

impl Events {
    /// The next event; none when the other side ended the stream.
    pub async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.ready.extend(self.parser.push(data));
            }
        }
    }
}

/// The innermost reason: the outer ones only say that a request failed.
fn reason(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// The query of one page, as large as pages are.
#[must_use]
pub fn page_query(after: Option<&str>) -> String {
    let after = after.map(|after| format!("&after={}", path_segment(after))).unwrap_or_default();
    format!("limit=1000{after}")
}

/// An id as one part of a path.
#[must_use]
pub fn path_segment(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    id.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
