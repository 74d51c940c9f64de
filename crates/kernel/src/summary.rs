//! `AgentSummary`: the one picture of an agent that every surface shows. Assembled on read from the state; nothing
//! ever reads it back to decide something.

use abide_views::agent::{AgentCredentials, AgentPart, AgentSummary, Execution, Lifecycle, ModelPart, ModelRest};
use abide_views::task::TaskView;

use crate::fact::Resource;
use crate::scheduler;
use crate::scheduler::closure::closure;
use crate::scheduler::posture::posture;
use crate::state::AgentState;
use crate::time::Time;
use crate::vocabulary::{Status, TaskKind, WaitKind};

/// How many records of one kind a summary shows; the planes have the rest.
const SHOWN: usize = 50;

/// What no agent's records hold is left for the daemon to add: see `AgentSummary::surround`.
#[must_use]
pub fn agent_summary(state: &AgentState, now: Time) -> AgentSummary {
    let children = state.tasks.open().values().filter(|task| task.kind == TaskKind::ChildAgent);
    AgentSummary {
        identity: (&state.identity).into(),
        agent: agent(state),
        scheduling_posture: posture(state),
        decision: scheduler::decide(state, now).into(),
        closure: closure(state),
        continuation: state.last_continuation.as_ref().map(Into::into),
        lifecycle: lifecycle(state),
        model: model(state, now),
        execution: execution(state),
        active_children: children.take(SHOWN).map(TaskView::from).collect(),
        active_waiting_intents: state.waits.open().values().take(SHOWN).map(Into::into).collect(),
        active_timers: state.timers.active().values().take(SHOWN).map(Into::into).collect(),
        active_external_triggers: state.triggers.values().take(SHOWN).map(Into::into).collect(),
        pending_approvals: state.approvals.pending().values().take(SHOWN).map(Into::into).collect(),
        owed_results: state.tasks.owed().values().take(SHOWN).map(TaskView::from).collect(),
        at_seq: state.seq,
        deprecated: None,
        warning: None,
    }
}

fn agent(state: &AgentState) -> AgentPart {
    let sleeps = state.waits.open().values().filter(|wait| wait.kind == WaitKind::Sleep);
    let until = sleeps.filter_map(|wait| match &wait.resource {
        Some(Resource::Timer(id)) => state.timers.get(id)?.next_fire_at,
        Some(Resource::Task(_) | Resource::Trigger(_) | Resource::Correlation(_) | Resource::Approval(_)) | None => {
            None
        }
    });
    AgentPart {
        status: state.status(),
        pending: state.queue.pending() as u64,
        parked: state.queue.parked() as u64,
        turn_index: state.turn_index,
        current_run_id: state.turn.as_ref().map(|turn| turn.exec_id.clone()),
        current_work_item_id: state.work.current_id().cloned(),
        current_turn_work_item_id: state.turn.as_ref().and_then(|turn| turn.work_item_id.clone()),
        sleeping_until: until.min(),
    }
}

fn model(state: &AgentState, now: Time) -> ModelPart {
    ModelPart {
        name: state.config.model.clone(),
        default: state.config.default_model,
        answered_by: state.measure.model.clone(),
        cut: state.last_terminal.as_ref().is_some_and(|last| last.cut),
        fallback: state.config.models().skip(1).map(str::to_owned).collect(),
        default_fallback: state.config.default_fallback,
        // Prices are settings.
        priced: false,
        in_use: state.model_in_use(now).to_owned(),
        trouble: state.trouble().map(Into::into),
        rests: state.rests.iter().map(ModelRest::from).collect(),
        usage: (&state.usage).into(),
        budget: (&state.config.budget).into(),
        wall_ms: state.spending.wall_ms,
        today: (&state.spending.today).into(),
        today_until: state.spending.day_ends(),
        children: (&state.spending.children).into(),
        granted: (&state.granted()).into(),
    }
}

/// Where it works. What confines it there is for whoever runs its tools to say.
fn execution(state: &AgentState) -> Execution {
    let active = state.workspaces.active();
    let configured = state.config.workspace.as_ref();
    Execution {
        workspace: active.map(|workspace| &workspace.workspace).or(configured).cloned(),
        cwd: active.map(|workspace| &workspace.root).or(configured).cloned(),
        mode: active.map(|workspace| workspace.mode),
        branch: active.and_then(|workspace| workspace.worktree.as_ref()).map(|worktree| worktree.branch.clone()),
        commands: state.tasks.commands() as u64,
        occupied: state.workspaces.occupied().map(str::to_owned),
        network: state.config.network,
        sandbox: None,
        disk_bytes: None,
        credentials: (!state.config.credentials.is_empty()).then(|| AgentCredentials::from(&state.config.credentials)),
        held_by: None,
    }
}

/// Whether an operator's message would be taken, and what to do where it would not, or would only be kept.
fn lifecycle(state: &AgentState) -> Lifecycle {
    let supervisor = state.identity.supervisor.as_ref();
    let hint = match (supervisor, state.status()) {
        (Some(supervisor), _) => Some(format!("it works for {0}: send it to {0}", supervisor.agent_id)),
        (None, Status::Stopped) => Some("messages are kept; start the agent to have them worked on".to_owned()),
        (None, Status::Booting | Status::AwakeIdle | Status::AwakeRunning | Status::Asleep) => None,
    };
    Lifecycle { accepts_messages: supervisor.is_none() && !state.archived, hint }
}
