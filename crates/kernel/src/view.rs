//! Records as surfaces show them: from the state's own types to the views.

use abide_views::agent::{AgentCredentials, IdentityView, ModelRest, RuleFolderView, SupervisorView, TroubleView};
use abide_views::approval::ApprovalView;
use abide_views::budget::{BudgetView, LimitsView, UsageView, UsedView};
use abide_views::decision::{ContinuationView, DecisionView};
use abide_views::message::OriginView;
use abide_views::task::{TaskOutput, TaskView};
use abide_views::timer::TimerView;
use abide_views::trigger::TriggerView;
use abide_views::wait::WaitView;
use abide_views::work_item::{TodoView, WorkItemView};
use abide_views::workspace::WorkspaceView;

use crate::budget::{Budget, Limits, Usage, Used};
use crate::config::{Identity, Supervisor};
use crate::continuation::Continuation;
use crate::credentials::Credentials;
use crate::decision::Decision;
use crate::fact::{Resource, Schedule};
use crate::limits;
use crate::message::Origin;
use crate::rule_folder::RuleFolder;
use crate::state::AgentState;
use crate::state::approval::Approval;
use crate::state::hint::Trigger;
use crate::state::model::{Backoff, ModelFailure};
use crate::state::task::Task;
use crate::state::timer::Timer;
use crate::state::waiting::Wait;
use crate::state::work::WorkItem;
use crate::state::workspace::Workspace;
use crate::todo::Todo;
use crate::vocabulary::{ApprovalStatus, Standing, TimerStatus, TriggerStatus, WaitStatus, WorkspaceStatus};

#[allow(clippy::cast_precision_loss, reason = "for display only; sums are kept in millionths")]
fn usd_of_micro(micro: u64) -> f64 {
    micro as f64 / 1e6
}

impl From<&Usage> for UsageView {
    fn from(usage: &Usage) -> UsageView {
        UsageView {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: usd_of_micro(usage.cost_micro_usd),
        }
    }
}

impl From<&Used> for UsedView {
    fn from(used: &Used) -> UsedView {
        UsedView { turns: used.turns, wall_ms: used.wall_ms, usage: (&used.usage).into() }
    }
}

impl From<&Limits> for LimitsView {
    fn from(limits: &Limits) -> LimitsView {
        LimitsView {
            max_turns: limits.max_turns,
            max_tokens: limits.max_tokens,
            max_usd: limits.max_micro_usd.map(usd_of_micro),
            max_wall_ms: limits.max_wall_ms,
        }
    }
}

impl Limits {
    /// As people see them; nothing where nothing is limited.
    pub(crate) fn view(&self) -> Option<LimitsView> {
        (!self.is_none()).then(|| self.into())
    }
}

impl From<&Budget> for BudgetView {
    fn from(budget: &Budget) -> BudgetView {
        let Budget { max_turns, max_tokens, max_micro_usd, max_wall_ms, daily } = budget;
        BudgetView {
            max_turns: *max_turns,
            max_tokens: *max_tokens,
            max_usd: max_micro_usd.map(usd_of_micro),
            max_wall_ms: *max_wall_ms,
            daily: Some(daily.into()),
        }
    }
}

impl From<&Identity> for IdentityView {
    fn from(identity: &Identity) -> IdentityView {
        let Identity { id, kind, role, visibility, ownership, parent, supervisor, makers, rule_folders } = identity;
        IdentityView {
            id: id.clone(),
            kind: *kind,
            role: *role,
            visibility: *visibility,
            ownership: *ownership,
            parent: parent.clone(),
            supervisor: supervisor.as_ref().map(SupervisorView::from),
            makers: makers.clone(),
            rule_folders: rule_folders.iter().map(RuleFolderView::from).collect(),
        }
    }
}

impl From<&Supervisor> for SupervisorView {
    fn from(supervisor: &Supervisor) -> SupervisorView {
        let Supervisor { agent_id, task_id, top, depth } = supervisor.clone();
        SupervisorView { agent_id, task_id, top, depth }
    }
}

impl From<&RuleFolder> for RuleFolderView {
    fn from(folder: &RuleFolder) -> RuleFolderView {
        let RuleFolder { folder, copy_of } = folder.clone();
        RuleFolderView { folder, copy_of }
    }
}

impl From<Decision> for DecisionView {
    fn from(decision: Decision) -> DecisionView {
        let Decision { kind, reason, boundary, model_reentry, liveness_only, .. } = decision;
        let Decision { message_id, work_item_id, task_id, ignored, evidence, .. } = decision;
        DecisionView {
            kind,
            reason,
            boundary,
            model_reentry,
            liveness_only,
            message_id,
            work_item_id,
            task_id,
            ignored,
            evidence,
        }
    }
}

impl From<&Continuation> for ContinuationView {
    fn from(continuation: &Continuation) -> ContinuationView {
        let Continuation { trigger_kind, class, model_reentry, matched_waiting_reason, evidence } =
            continuation.clone();
        ContinuationView { trigger_kind, class, model_reentry, matched_waiting_reason, evidence }
    }
}

impl From<&Origin> for OriginView {
    fn from(origin: &Origin) -> OriginView {
        OriginView { kind: origin.kind, id: origin.id.clone() }
    }
}

impl From<&Backoff> for ModelRest {
    fn from(rest: &Backoff) -> ModelRest {
        ModelRest { model: rest.model.clone(), error: rest.error, until: rest.until, failures: rest.failures }
    }
}

impl From<&ModelFailure> for TroubleView {
    fn from(trouble: &ModelFailure) -> TroubleView {
        let ModelFailure { model, error, message, at } = trouble.clone();
        TroubleView { model, error, message, at }
    }
}

/// The component that runs the commands says which of them are not set.
impl From<&Credentials> for AgentCredentials {
    fn from(credentials: &Credentials) -> AgentCredentials {
        let Credentials { env, secrets, git_credentials, ssh_agent, known_hosts, for_children } = credentials.clone();
        AgentCredentials {
            env,
            secrets: secrets.into_iter().collect(),
            git_credentials,
            ssh_agent,
            known_hosts,
            for_children,
            missing: None,
        }
    }
}

impl From<&AgentCredentials> for Credentials {
    fn from(view: &AgentCredentials) -> Credentials {
        let AgentCredentials { env, secrets, git_credentials, ssh_agent, known_hosts, for_children, missing: _ } =
            view.clone();
        let secrets = secrets.into_iter().collect();
        Credentials { env, secrets, git_credentials, ssh_agent, known_hosts, for_children }
    }
}

impl From<&Wait> for WaitView {
    fn from(wait: &Wait) -> WaitView {
        WaitView {
            waiting_intent_id: wait.waiting_intent_id.clone(),
            scope: wait.scope(),
            kind: wait.kind,
            work_item_id: wait.work_item_id.clone(),
            source: wait.source,
            resource: wait.resource.as_ref().map(|resource| Resource::as_str(resource).to_owned()),
            delivery_mode: wait.delivery_mode,
            status: WaitStatus::Active,
            trigger_count: wait.trigger_count.into(),
            reason: wait.reason.clone(),
            created_at: wait.created_at,
            seq: wait.seq,
            answers: wait.answers.clone(),
        }
    }
}

impl From<&Timer> for TimerView {
    fn from(timer: &Timer) -> TimerView {
        let (every_ms, cron, time_zone) = match timer.schedule.clone() {
            Schedule::Once { .. } => (None, None, None),
            Schedule::Every { every_ms, .. } => (Some(every_ms), None, None),
            Schedule::Cron { cron, time_zone } => (None, Some(cron), Some(time_zone)),
        };
        TimerView {
            timer_id: timer.timer_id.clone(),
            summary: timer.summary.clone(),
            next_fire_at: timer.next_fire_at,
            every_ms,
            cron,
            time_zone,
            status: TimerStatus::Active,
            fire_count: timer.fire_count,
            missed_count: timer.missed_count,
            last_fired_at: timer.last_fired_at,
            catch_up: Some(timer.catch_up),
            check: timer.check.clone(),
            checking: timer.checking.map(|checking| checking.due),
            made_by: timer.made_by,
            upcoming: Vec::new(),
        }
    }
}

/// A timer with its next occurrences, for a caller that asks about this one.
#[must_use]
pub fn timer_ahead(timer: &Timer) -> TimerView {
    TimerView {
        upcoming: timer.schedule.upcoming_occurrences(timer.next_fire_at, limits::UPCOMING_SHOWN),
        ..timer.into()
    }
}

impl From<&Approval> for ApprovalView {
    fn from(approval: &Approval) -> ApprovalView {
        ApprovalView {
            approval_id: approval.approval_id.clone(),
            tool: approval.tool.clone(),
            summary: approval.summary.clone(),
            status: ApprovalStatus::Pending,
            deadline: approval.deadline,
            default: approval.default,
            decided_by: None,
            decided_at: None,
            used_at: None,
        }
    }
}

impl From<&Trigger> for TriggerView {
    fn from(trigger: &Trigger) -> TriggerView {
        TriggerView {
            trigger_id: trigger.trigger_id.clone(),
            name: trigger.name.clone(),
            delivery_mode: trigger.delivery_mode,
            work_item_id: trigger.work_item_id.clone(),
            url: None,
            signed: trigger.signed,
            status: TriggerStatus::Active,
            delivery_count: trigger.delivery_count,
            last_delivered_at: trigger.last_delivered_at,
        }
    }
}

impl From<&Task> for TaskView {
    fn from(task: &Task) -> TaskView {
        let end = task.end.as_ref();
        TaskView {
            task_id: task.task_id.clone(),
            kind: task.kind,
            status: task.status,
            summary: task.summary.clone(),
            command: task.command.clone(),
            work_item_id: task.work_item_id.clone(),
            child_agent_id: task.child_agent_id.clone(),
            created_at: task.created_at,
            ended_at: task.ended_at,
            exit_code: end.and_then(|end| end.exit_code).map(i64::from),
            signal: end.and_then(|end| end.signal).map(i64::from),
            output: Some(TaskOutput {
                bytes: end.map_or(0, |end| end.output_bytes),
                truncated: end.is_some_and(|end| end.truncated),
            }),
            recovery: task.recovery.clone(),
            evidence: end.map(|end| end.evidence.clone()).unwrap_or_default(),
            granted: task.granted.view(),
            used: end.and_then(|end| end.used.as_ref()).map(UsedView::from),
        }
    }
}

impl From<&Todo> for TodoView {
    fn from(todo: &Todo) -> TodoView {
        TodoView { text: todo.text.clone(), state: todo.state }
    }
}

impl AgentState {
    /// An item of this agent, and where it stands.
    #[must_use]
    pub fn work_item_view(&self, item: &WorkItem) -> WorkItemView {
        WorkItemView {
            work_item_id: item.work_item_id.clone(),
            revision: item.revision,
            objective: item.objective.clone(),
            state: item.state,
            plan_status: Some(item.plan_status),
            plan: item.plan.clone(),
            todo: item.todo.iter().map(TodoView::from).collect(),
            blocked_by: item.blocked_by.clone(),
            recheck_at: item.recheck_at,
            readiness: self.planes.work.readiness(&item.work_item_id).unwrap_or(Standing::Completed),
            current: self.planes.work.current_id() == Some(&item.work_item_id),
            report: item.report.clone(),
            budget: item.budget.view(),
            used: Some((&item.used).into()),
        }
    }

    /// A folder of this agent, and whether it works there.
    #[must_use]
    pub fn workspace_view(&self, workspace: &Workspace) -> WorkspaceView {
        let worktree = workspace.worktree.as_ref();
        WorkspaceView {
            workspace: workspace.workspace.clone(),
            root: workspace.root.clone(),
            mode: workspace.mode,
            branch: worktree.map(|worktree| worktree.branch.clone()),
            base_commit: worktree.map(|worktree| worktree.base_commit.clone()),
            status: if workspace.removing { WorkspaceStatus::Removing } else { WorkspaceStatus::Attached },
            active: self.planes.workspaces.active().is_some_and(|active| active.root == workspace.root),
            occupied: self.planes.workspaces.occupied() == Some(workspace.root.as_str()),
            kept: workspace.kept.clone(),
            patch: None,
            attached_at: workspace.attached_at,
            note: workspace.note.clone(),
            held_by: None,
        }
    }
}
