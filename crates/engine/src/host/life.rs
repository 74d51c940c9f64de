//! The life of one agent that is awake: take in what was posted, admit it, commit, act, decide, and rest.
//!
//! The loop owns the agent's state, its jobs and its box. It falls asleep when it has rested for a moment with nothing
//! under way; what it was is then in the ledger alone. If a commit is refused, nothing of it happened: askers are told,
//! the state is read again, and what the world has reported is put to it once more.

mod gate;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use abide_kernel::effect::Effect;
use abide_kernel::fact::{Fact, TaskEnd};
use abide_kernel::id::{AgentId, CallId, ExecId, TaskId, TimerId};
use abide_kernel::input::{Checked, Input};
use abide_kernel::provider::NO_JITTER;
use abide_kernel::time::Time;
use abide_kernel::vocabulary::{ProviderError, TaskKind, TaskStatus, ToolStatus};
use abide_ledger::CommitError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::fence::Stopping;
use super::in_order::InOrder;
use super::kin;
use super::loads::load;
use super::neighbours::{self, Caller};
use super::spawn_line::SpawnLine;
use super::trees::Maker;
use super::{AskError, Closing, Holding, Post, Shared};
use crate::core::{Answered, Asked, Core};
use gate::Birth;

/// How long an agent that rests stays awake: long enough that a conversation does not read it anew each time.
const LINGER_MS: u64 = 1_000;
/// The same where very many are awake.
const CROWD: usize = 4_096;
/// Crashes in a row, with no rest between, before an agent is left alone.
const CRASHES_MAX: u32 = 3;
/// Waits after a refused commit; the last one repeats.
const REFUSED_WAIT: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(5)];

type Reply = oneshot::Sender<Result<Answered, AskError>>;

/// Who waits for an answer; and, for a request under a key, the key, which is not let go before it is known.
struct Asker {
    reply: Reply,
    hold: Option<Arc<Holding>>,
}

impl Asker {
    /// Whoever hears the answer may ask again under the same key at once: the key is free by then.
    fn answer(self, answer: Result<Answered, AskError>) {
        drop(self.hold);
        // The asker may have gone; what it asked for is done all the same.
        let _unheard = self.reply.send(answer);
    }
}

struct Life {
    shared: Arc<Shared>,
    agent: AgentId,
    core: Core,
    posts: mpsc::Receiver<Post>,
    closing: watch::Receiver<Closing>,
    /// Who waits for which answer.
    askers: HashMap<u64, Asker>,
    tokens: u64,
    jobs: JoinSet<Vec<Input>>,
    running: HashMap<Id, Running>,
    /// What the world reported, until it is durable.
    reported: Vec<Input>,
    refused: usize,
    told_to_close: Closing,
    /// Children are made in order, and neighbours are spoken to in order.
    kin: SpawnLine,
    words: InOrder,
    /// Its supervisors, once it is known who they are.
    supervisors: Option<Vec<AgentId>>,
    /// Told when the fence has changed.
    fenced: watch::Receiver<()>,
    /// A stop of it that is not durable yet.
    stopping: Option<Stopping>,
    /// Effects that wait for what comes of a stop above it.
    withheld: Vec<Effect>,
    births: Vec<Birth>,
}

/// A job under way, and what has to be said if it is lost.
struct Running {
    handle: AbortHandle,
    what: What,
}

enum What {
    Round { exec_id: ExecId, round: u32 },
    Call { exec_id: ExecId, call_id: CallId },
    Task { task_id: TaskId },
    Check { timer_id: TimerId, due: Time },
    Other,
}

/// How a loop ended, other than by falling asleep.
enum End {
    Closed,
    Damaged(String),
}

/// Starts the loop of an agent. Whatever happens in it, the host hears of its end.
pub(super) fn spawn(shared: Arc<Shared>, agent: AgentId, posts: mpsc::Receiver<Post>) {
    let runtime = shared.runtime.clone();
    let entry = DirectoryEntry::new(shared, agent);
    runtime.spawn(async move {
        let DirectoryEntry { shared, agent } = &entry;
        let lived = AssertUnwindSafe(live(Arc::clone(shared), agent.clone(), posts)).catch_unwind().await;
        let ended = AssertUnwindSafe(end(shared, agent, lived)).catch_unwind().await;
        if ended.is_err() {
            // To tell of the end is not worth an agent: it is read again, as after any other crash.
            shared.directory.gone(agent);
            if shared.directory.crashes(agent) < CRASHES_MAX {
                shared.wake(agent);
            }
        }
    });
}

/// The entry of one life in the directory, and its place among those that are counted. However the life ends, a panic
/// included, its entry goes: a box that nobody empties would keep the agent from being read again.
struct DirectoryEntry {
    shared: Arc<Shared>,
    agent: AgentId,
}

impl DirectoryEntry {
    fn new(shared: Arc<Shared>, agent: AgentId) -> DirectoryEntry {
        shared.alive.send_modify(|alive| *alive += 1);
        DirectoryEntry { shared, agent }
    }
}

impl Drop for DirectoryEntry {
    fn drop(&mut self) {
        self.shared.directory.gone(&self.agent);
        self.shared.alive.send_modify(|alive| *alive -= 1);
    }
}

/// What follows from how a loop ended.
async fn end(shared: &Arc<Shared>, agent: &AgentId, lived: std::thread::Result<Result<(), End>>) {
    match lived {
        Ok(Ok(()) | Err(End::Closed)) => {}
        Ok(Err(End::Damaged(reason))) => {
            shared.meter.quarantined.add(1);
            tracing::error!(%agent, reason, "left alone: its records can't be read");
            tokio::spawn(kin::tell_of_damage(Arc::clone(shared), agent.clone()));
        }
        Err(panic) => crashed(shared, agent, &said(&*panic)).await,
    }
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

/// A crash is recovered from like any other end: by reading the agent again, which cuts what was in flight. One that
/// keeps crashing is quarantined, and the others go on.
async fn crashed(shared: &Arc<Shared>, agent: &AgentId, reason: &str) {
    shared.meter.crashes.add(1);
    let crashes = shared.directory.count_crash(agent);
    tracing::error!(%agent, reason, crashes, "the loop of an agent crashed");
    shared.directory.gone(agent);
    if crashes < CRASHES_MAX {
        shared.wake(agent);
        return;
    }
    shared.meter.quarantined.add(1);
    let reason = format!("it crashed {crashes} times in a row: {reason}");
    let recorded = AssertUnwindSafe(quarantine(shared, agent, reason.clone())).catch_unwind().await;
    if !matches!(recorded, Ok(true)) {
        shared.directory.broken(agent, reason);
        shared.fence.dismiss([agent.clone()]);
    }
    shared.directory.forget_crashes(agent);
}

/// Records the quarantine, if the agent can be read at all.
async fn quarantine(shared: &Arc<Shared>, agent: &AgentId, reason: String) -> bool {
    let Ok(mut core) = load(shared, agent, false).await else { return false };
    let _stopping = shared.fence.stopping(agent);
    core.ask(Asked::new(0, Input::Quarantine { reason }));
    while let Some(commit) = core.poll(shared.clock.now(), shared.clock.entropy()) {
        if shared.ledger.commit(commit).await.is_err() {
            return false;
        }
        core.committed();
        shared.feed.publish(agent, core.durable());
    }
    let effects = core.take_outputs().effects;
    shared.fence.dismiss(gate::dismissed(&effects));
    tokio::spawn(kin::dismiss_for(Arc::clone(shared), agent.clone(), effects));
    // A child that crashes has nothing more to say, and somebody waits for it.
    if let Some(supervisor) = core.state().identity.supervisor.clone() {
        tokio::spawn(kin::tell_of_quarantine(Arc::clone(shared), agent.clone(), supervisor));
    }
    true
}

async fn live(shared: Arc<Shared>, agent: AgentId, mut posts: mpsc::Receiver<Post>) -> Result<(), End> {
    shared.meter.loads.add(1);
    let (mut closing, fenced) = (shared.closing.subscribe(), shared.fence.subscribe());
    let (core, asked) = match load_patiently(&shared, &agent, true, (&mut posts, None), &mut closing).await {
        Ok(loaded) => loaded,
        Err(End::Closed) => return Err(End::Closed),
        Err(End::Damaged(reason)) => {
            leave_alone(&shared, &agent, posts, &reason);
            return Err(End::Damaged(reason));
        }
    };
    let mut life = Life {
        shared,
        agent,
        core,
        posts,
        closing,
        askers: HashMap::new(),
        tokens: 0,
        jobs: JoinSet::new(),
        running: HashMap::new(),
        reported: Vec::new(),
        refused: 0,
        told_to_close: Closing::Open,
        kin: SpawnLine::default(),
        words: InOrder::default(),
        supervisors: None,
        fenced,
        stopping: None,
        withheld: Vec::new(),
        births: Vec::new(),
    };
    if life.core.state().seq > 0 {
        life.shared.trees.join(&life.core.state().identity);
    }
    asked.into_iter().for_each(|post| life.take(post));
    let lived = life.go_on().await;
    if let Err(End::Damaged(reason)) = &lived {
        leave_alone(&life.shared, &life.agent, life.posts, reason);
    }
    lived
}

/// Reads the agent. While the store can't be read, whoever asked before an attempt is told that it failed, and it is tried
/// again. What was taken from the box by then comes with the agent.
async fn load_patiently(
    shared: &Arc<Shared>,
    agent: &AgentId,
    boot: bool,
    (posts, first): (&mut mpsc::Receiver<Post>, Option<Post>),
    closing: &mut watch::Receiver<Closing>,
) -> Result<(Core, Vec<Post>), End> {
    let (mut attempt, mut asked) = (0, Vec::from_iter(first));
    loop {
        while let Ok(post) = posts.try_recv() {
            asked.push(post);
        }
        let damage = match load(shared, agent, boot).await {
            Ok(core) => return Ok((core, asked)),
            Err(damage) => damage,
        };
        let (reason, transient) = (damage.to_string(), damage.is_transient());
        let error = AskError::from(damage);
        asked.drain(..).for_each(|post| refuse(post, &error));
        if !transient {
            return Err(End::Damaged(reason));
        }
        tracing::warn!(%agent, reason, "an agent could not be read; it is tried again");
        let wait = REFUSED_WAIT[attempt.min(REFUSED_WAIT.len() - 1)];
        attempt += 1;
        // Whoever asks meanwhile is not kept waiting: the next attempt answers them.
        let post = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing != Closing::Open) => {
                refuse_all(posts, &AskError::Closing);
                return Err(End::Closed);
            }
            post = posts.recv() => post,
            () = tokio::time::sleep(wait) => None,
        };
        asked.extend(post);
    }
}

/// Answers a post that nothing comes of. Whoever only looks reads the ledger then.
fn refuse(post: Post, error: &AskError) {
    if let Post::Ask { reply, asked, .. } = post {
        // With the key of the request: see `Asker::answer`.
        drop(asked);
        // The asker may have gone.
        let _unheard = reply.send(Err(error.clone()));
    }
}

/// Closes the box, and answers everybody whose post is still in it.
fn refuse_all(posts: &mut mpsc::Receiver<Post>, error: &AskError) {
    posts.close();
    while let Ok(post) = posts.try_recv() {
        refuse(post, error);
    }
}

/// Answers everybody who posted to a loop that can't take it. Who comes later finds that out first: a box that is closed
/// and still in its place would only be tried again.
fn leave_alone(shared: &Shared, agent: &AgentId, mut posts: mpsc::Receiver<Post>, reason: &str) {
    shared.directory.broken(agent, reason.to_owned());
    // Nobody can stop its children any more, and nobody hears them.
    shared.fence.dismiss([agent.clone()]);
    refuse_all(&mut posts, &AskError::Damaged(reason.to_owned()));
}

impl Life {
    async fn go_on(&mut self) -> Result<(), End> {
        loop {
            self.take_posts();
            self.raise_fence();
            let (now, entropy) = (self.shared.clock.now(), self.shared.clock.entropy());
            if !self.pass_fence() {
                // The fence is there for as long as the host.
                let _there = self.fenced.changed().await;
                continue;
            }
            let Some(commit) = self.core.poll(now, entropy) else {
                self.hand_out();
                if self.withheld.is_empty() && self.rest(now).await? {
                    return Ok(());
                }
                continue;
            };
            match self.shared.ledger.commit(commit).await {
                Ok(_) => {
                    self.core.committed();
                    self.shared.latest_recorded.note(now);
                    self.reported.clear();
                    self.refused = 0;
                    self.shared.meter.commits.add(1);
                    self.hand_out();
                }
                Err(error) => self.begin_again(error).await?,
            }
        }
    }

    /// Everything in the box, without waiting.
    fn take_posts(&mut self) {
        while let Ok(post) = self.posts.try_recv() {
            self.take(post);
        }
        while let Some(done) = self.jobs.try_join_next_with_id() {
            self.take_outcome(done);
        }
    }

    fn take(&mut self, post: Post) {
        match post {
            Post::Ask { asked, reply, under } if under.is_empty() => self.admit(asked, reply),
            Post::Ask { asked, reply, under } => self.births.push(Birth { asked, reply, under }),
            // Between commits the state is what the ledger says.
            Post::Look(look) => look(self.core.state(), self.shared.clock.now()),
            Post::Poke => {}
        }
    }

    fn admit(&mut self, asked: Box<Asked>, reply: Reply) {
        self.tokens += 1;
        let hold = asked.claim.as_ref().and_then(|claim| claim.hold.clone());
        self.askers.insert(self.tokens, Asker { reply, hold });
        self.core.ask(Asked { token: self.tokens, ..*asked });
    }

    fn report(&mut self, inputs: Vec<Input>) {
        for input in &inputs {
            self.core.ask(Asked::new(0, input.clone()));
        }
        self.reported.extend(inputs);
    }

    fn take_outcome(&mut self, done: Result<(Id, Vec<Input>), JoinError>) {
        match done {
            Ok((id, inputs)) => {
                let job = self.running.remove(&id);
                let silent = inputs.is_empty();
                self.report(inputs);
                if let Some(job) = job.filter(|_| silent) {
                    self.report(lost(job.what, "it came to no result"));
                }
            }
            Err(error) => {
                let Some(job) = self.running.remove(&error.id()) else { return };
                match error.try_into_panic() {
                    Ok(panic) => {
                        tracing::error!(agent = %self.agent, reason = said(&*panic), "a job crashed");
                        self.report(lost(job.what, "it crashed"));
                    }
                    // What was ended on purpose has nothing to say, but may have to be paid.
                    Err(_) => {
                        if let What::Round { exec_id, .. } = &job.what {
                            self.report(self.shared.perform.cut_off(&self.agent, exec_id));
                        }
                    }
                }
            }
        }
    }

    /// What is durable is published, answered and performed.
    fn hand_out(&mut self) {
        let outputs = self.core.take_outputs();
        self.mark(&outputs);
        if !outputs.facts.is_empty() {
            let turns = outputs.facts.iter().filter(|(_, _, fact)| matches!(fact, Fact::TurnStarted(_))).count();
            self.shared.meter.turns.add(turns as u64);
            self.shared.meter.facts.add(outputs.facts.len() as u64);
            self.shared.feed.publish(&self.agent, self.core.durable());
            self.shared.perform.recorded(&self.agent, outputs.facts);
        }
        for (token, answer) in outputs.answers {
            if let Some(asker) = self.askers.remove(&token) {
                asker.answer(answer.map_err(AskError::Refused));
            }
        }
        for effect in outputs.effects {
            self.begin(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        let effect = match kin::job(&self.shared, &self.agent, effect, &mut self.kin) {
            Ok(job) => return self.start(What::Other, job),
            Err(effect) => effect,
        };
        let state = self.core.state();
        let effect = match neighbours::job(&self.shared, || Caller::of(state), effect, &mut self.words) {
            Ok((exec_id, call_id, job)) => return self.start(What::Call { exec_id, call_id }, job),
            Err(effect) => effect,
        };
        let what = match &effect {
            Effect::EndExec { exec_id } => {
                return self.end_jobs(|what| match what {
                    What::Round { exec_id: of, .. } | What::Call { exec_id: of, .. } => of == exec_id,
                    What::Task { .. } | What::Check { .. } | What::Other => false,
                });
            }
            Effect::EndCheck { timer_id } => {
                return self.end_jobs(|what| match what {
                    What::Check { timer_id: of, .. } => of == timer_id,
                    What::Round { .. } | What::Call { .. } | What::Task { .. } | What::Other => false,
                });
            }
            Effect::RunCheck { timer_id, due, .. } => What::Check { timer_id: timer_id.clone(), due: *due },
            Effect::CallModel { exec_id, round, .. } => What::Round { exec_id: exec_id.clone(), round: *round },
            Effect::RunTool { exec_id, call_id, .. } | Effect::AnswerCall { exec_id, call_id, .. } => {
                What::Call { exec_id: exec_id.clone(), call_id: call_id.clone() }
            }
            Effect::StartTask { task_id, .. } | Effect::AwaitTask { task_id } => {
                What::Task { task_id: task_id.clone() }
            }
            Effect::EndTask { .. }
            | Effect::CloseTask { .. }
            | Effect::ReleaseWorkspace { .. }
            | Effect::RemoveWorktree { .. }
            | Effect::SpawnChild { .. }
            | Effect::DismissChild { .. }
            | Effect::ReportToSupervisor { .. }
            | Effect::ForgetSecret { .. } => What::Other,
        };
        match self.shared.perform.perform(&self.agent, effect) {
            Some(job) if matches!(what, What::Round { .. }) => {
                let (shared, state) = (Arc::clone(&self.shared), self.core.state());
                let founder = state.identity.founder();
                let maker = Maker { id: self.agent.clone(), founder, room: state.room_for_children() };
                let answered = async move {
                    let mut inputs = job.await;
                    shared.trees.promise(&shared, &maker, &mut inputs).await;
                    inputs
                };
                self.start(what, Box::pin(answered));
            }
            Some(job) => self.start(what, job),
            None => self.report(lost(what, "nothing here does that")),
        }
    }

    fn start(&mut self, what: What, job: BoxFuture<'static, Vec<Input>>) {
        let handle = self.jobs.spawn(job);
        self.running.insert(handle.id(), Running { handle, what });
    }

    fn end_jobs(&mut self, which: impl Fn(&What) -> bool) {
        for job in self.running.values().filter(|job| which(&job.what)) {
            job.handle.abort();
        }
    }

    /// Whether anything is under way that only this process can see to its end.
    fn is_busy(&self) -> bool {
        let state = self.core.state();
        let commands = state.tasks.open().values().any(|task| task.kind == TaskKind::Command);
        let children = state.tasks.children().any(|task| task.status != TaskStatus::Running);
        state.turn.is_some() || commands || children || !self.jobs.is_empty()
    }

    /// Waits until something happens. True when the agent fell asleep. What was due by `looked` has been seen to.
    async fn rest(&mut self, looked: Time) -> Result<bool, End> {
        if self.close()? {
            return Ok(false);
        }
        self.shared.directory.forget_crashes(&self.agent);
        let now = self.shared.clock.now();
        let runnable = self.core.state().is_runnable();
        let due = self.core.state().next_due().filter(|_| runnable);
        let (busy, supervised) = (self.is_busy(), self.is_supervised());
        let crowded = *self.shared.alive.borrow() > CROWD;
        let linger = if crowded || self.core.state().seq == 0 { 0 } else { LINGER_MS };
        // What is due and did not fire is a bug of ours; it must not become a loop that never rests.
        if due.is_some_and(|due| due <= looked) {
            tracing::error!(agent = %self.agent, ?due, "something is due, and nothing came of it");
        }
        let due = due.map(|due| if due <= looked { now.plus_ms(LINGER_MS) } else { due });
        let until = match due {
            Some(due) if busy || due < now.plus_ms(linger) => due,
            Some(_) | None if busy => Time::MAX,
            Some(_) | None => now.plus_ms(linger),
        };
        tokio::select! {
            biased;
            _ = self.closing.changed() => Ok(false),
            _ = self.fenced.changed(), if supervised => Ok(false),
            post = self.posts.recv() => {
                if let Some(post) = post {
                    self.take(post);
                }
                Ok(false)
            }
            Some(done) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => {
                self.take_outcome(done);
                Ok(false)
            }
            () = self.shared.clock.sleep_towards(until) => Ok(!busy && self.fall_asleep()),
        }
    }

    /// True when nobody has posted anything and nothing is due.
    fn fall_asleep(&mut self) -> bool {
        let now = self.shared.clock.now();
        let state = self.core.state();
        if state.is_runnable() && state.next_due().is_some_and(|due| due <= now) {
            return false;
        }
        match self.shared.directory.fall_asleep(&self.agent, &mut self.posts) {
            Ok(()) => {
                self.shared.perform.rests(&self.agent);
                self.shared.due_changed.notify_one();
                true
            }
            Err((left, posts)) => {
                self.posts = posts;
                for post in left {
                    self.take(post);
                }
                false
            }
        }
    }

    /// A shutdown lets a turn come to its next safe point. True when there is something to commit first.
    fn close(&mut self) -> Result<bool, End> {
        let wanted = *self.closing.borrow_and_update();
        let Some(input) = wanted.as_input() else { return Ok(false) };
        if !self.is_busy() {
            refuse_all(&mut self.posts, &AskError::Closing);
            return Err(End::Closed);
        }
        if self.told_to_close != Closing::Open && (self.told_to_close.is_at_once() || !wanted.is_at_once()) {
            return Ok(false);
        }
        self.told_to_close = wanted;
        self.report(vec![input]);
        Ok(true)
    }

    /// Nothing of the last commit was kept. Whoever asked is told, and the state is read again.
    async fn begin_again(&mut self, error: CommitError) -> Result<(), End> {
        self.stopping = None;
        self.shared.meter.commits_refused.add(1);
        tracing::warn!(agent = %self.agent, %error, "a commit was refused");
        for (_, asker) in self.askers.drain() {
            asker.answer(Err(AskError::Store(error.to_string())));
        }
        if let CommitError::Damaged(damage) = &error {
            return Err(End::Damaged(damage.to_string()));
        }
        let wait = REFUSED_WAIT[self.refused.min(REFUSED_WAIT.len() - 1)];
        self.refused += 1;
        // Whoever asks meanwhile is not kept waiting: they are refused at once, or go on at once.
        let post = tokio::select! {
            biased;
            post = self.posts.recv() => post,
            () = tokio::time::sleep(wait) => None,
        };
        let from = (&mut self.posts, post);
        let (core, asked) = load_patiently(&self.shared, &self.agent, false, from, &mut self.closing).await?;
        self.core = core;
        let reported = std::mem::take(&mut self.reported);
        self.report(reported);
        asked.into_iter().for_each(|post| self.take(post));
        Ok(())
    }
}

/// What to say of a job that will not say it itself.
fn lost(what: What, why: &str) -> Vec<Input> {
    match what {
        What::Round { exec_id, round } => {
            let message = format!("the model was called, and {why}");
            vec![Input::FailRound {
                exec_id,
                round,
                error: ProviderError::Invalid,
                retry_after_ms: None,
                message,
                carry: None,
                jitter: NO_JITTER,
                spent: None,
                announce: true,
            }]
        }
        What::Call { exec_id, call_id } => {
            let result = json!({ "error": { "code": "crashed", "message": format!("the tool was called, and {why}"),
                "hint": "what it did is not known; look before you call it again" } });
            vec![Input::FinishTool { exec_id, call_id, status: ToolStatus::Unknown, result, reads: None }]
        }
        What::Task { task_id } => {
            let evidence = vec![format!("it was being run, and {why}")];
            let end = TaskEnd { task_id, evidence, ..TaskEnd::default() };
            vec![Input::EndTask { status: TaskStatus::Interrupted, end }]
        }
        What::Check { timer_id, due } => {
            let checked = Checked::NotDone { why: format!("it was being run, and {why}") };
            vec![Input::FinishCheck { timer_id, due, checked }]
        }
        What::Other => Vec::new(),
    }
}
