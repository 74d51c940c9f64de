//! `AgentSummary`: the one picture of an agent that every surface shows. Assembled on read from the state; nothing
//! ever reads it back to decide something.

use abide_views::agent::{AgentCredentials, AgentPart, AgentSummary, Execution, Lifecycle, ModelPart, ModelRest};
use abide_views::task::TaskView;

use crate::fact::Resource;
use crate::scheduler;
use crate::scheduler::closure::compute_closure;
use crate::scheduler::posture::compute_posture;
use crate::state::AgentState;
use crate::time::Time;
use crate::vocabulary::{Status, TaskKind, WaitKind};

/// How many records of one kind a summary shows; the planes have the rest.
const SHOWN: usize = 50;

/// The daemon adds the fields that no record of an agent has: see `AgentSummary::surround`.
#[must_use]
pub fn agent_summary(state: &AgentState, now: Time) -> AgentSummary {
    let children = state.planes.tasks.open().values().filter(|task| task.kind == TaskKind::ChildAgent);
    AgentSummary {
        identity: (&state.definition.identity).into(),
        agent: agent(state),
        scheduling_posture: compute_posture(state),
        decision: scheduler::decide(state, now).into(),
        closure: compute_closure(state),
        continuation: state.turns.last_continuation.as_ref().map(Into::into),
        lifecycle: lifecycle(state),
        model: model(state, now),
        execution: execution(state),
        active_children: children.take(SHOWN).map(TaskView::from).collect(),
        active_waiting_intents: state.planes.waits.open().values().take(SHOWN).map(Into::into).collect(),
        active_timers: state.planes.timers.active().values().take(SHOWN).map(Into::into).collect(),
        active_external_triggers: state.planes.triggers.values().take(SHOWN).map(Into::into).collect(),
        pending_approvals: state.planes.approvals.pending().values().take(SHOWN).map(Into::into).collect(),
        owed_results: state.planes.tasks.owed().values().take(SHOWN).map(TaskView::from).collect(),
        at_seq: state.seq,
        deprecated: None,
        warning: None,
    }
}

fn agent(state: &AgentState) -> AgentPart {
    let sleeps = state.planes.waits.open().values().filter(|wait| wait.kind == WaitKind::Sleep);
    let until = sleeps.filter_map(|wait| match &wait.resource {
        Some(Resource::Timer(id)) => state.planes.timers.get(id)?.next_fire_at,
        Some(Resource::Task(_) | Resource::Trigger(_) | Resource::Correlation(_) | Resource::Approval(_)) | None => {
            None
        }
    });
    AgentPart {
        status: state.status(),
        pending: state.planes.queue.pending() as u64,
        parked: state.planes.queue.parked() as u64,
        turn_index: state.turns.last_index,
        current_run_id: state.turns.current.as_ref().map(|turn| turn.exec_id.clone()),
        current_work_item_id: state.planes.work.current_id().cloned(),
        current_turn_work_item_id: state.turns.current.as_ref().and_then(|turn| turn.work_item_id().cloned()),
        sleeping_until: until.min(),
    }
}

fn model(state: &AgentState, now: Time) -> ModelPart {
    ModelPart {
        name: state.definition.config.model.clone(),
        default: state.definition.config.default_model,
        answered_by: state.models.calibration.model.clone(),
        cut: state.turns.last_terminal.as_ref().is_some_and(|last| last.is_truncated),
        fallback: state.definition.config.models().skip(1).map(str::to_owned).collect(),
        default_fallback: state.definition.config.default_fallback,
        // Prices are settings.
        priced: false,
        in_use: state.model_in_use(now).to_owned(),
        trouble: state.last_model_failure().map(Into::into),
        rests: state.models.backoffs.iter().map(ModelRest::from).collect(),
        usage: (&state.accounts.usage).into(),
        budget: (&state.definition.config.budget).into(),
        wall_ms: state.accounts.spending.wall_ms,
        today: (&state.accounts.spending.today).into(),
        today_until: state.accounts.spending.day_ends(),
        children: (&state.accounts.spending.children).into(),
        granted: (&state.allowed_to_children()).into(),
    }
}

/// The agent's folder. The executor of its tools adds the sandbox.
fn execution(state: &AgentState) -> Execution {
    let active = state.planes.workspaces.active();
    let configured = state.definition.config.workspace.as_ref();
    Execution {
        workspace: active.map(|workspace| &workspace.workspace).or(configured).cloned(),
        cwd: active.map(|workspace| &workspace.root).or(configured).cloned(),
        mode: active.map(|workspace| workspace.mode),
        branch: active.and_then(|workspace| workspace.worktree.as_ref()).map(|worktree| worktree.branch.clone()),
        commands: state.planes.tasks.commands() as u64,
        occupied: state.planes.workspaces.occupied().map(str::to_owned),
        network: state.definition.config.network,
        sandbox: None,
        disk_bytes: None,
        credentials: (!state.definition.config.credentials.is_empty())
            .then(|| AgentCredentials::from(&state.definition.config.credentials)),
        held_by: None,
    }
}

/// Whether an operator's message would be taken, and what to do where it would not, or would only be kept.
fn lifecycle(state: &AgentState) -> Lifecycle {
    let supervisor = state.definition.identity.supervisor.as_ref();
    let hint = match (supervisor, state.status()) {
        (Some(supervisor), _) => Some(format!("it works for {0}: send it to {0}", supervisor.agent_id)),
        (None, Status::Stopped) => Some("messages are kept; start the agent to have them worked on".to_owned()),
        (None, Status::Booting | Status::AwakeIdle | Status::AwakeRunning | Status::Asleep) => None,
    };
    Lifecycle { accepts_messages: supervisor.is_none() && !state.lifecycle.archived, hint }
}
