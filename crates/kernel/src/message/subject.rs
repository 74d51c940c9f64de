//! The subject of a message: its kind, together with the records that a message of this kind names. A constructor can't
//! combine a kind with ids that do not belong to it.
//!
//! Records from elsewhere can: fixtures leave ids out, and facts of older programs, or inputs of kinds that name nothing,
//! are read as they are. `Irregular` holds those; it has no public constructor besides the reading of a flat record.

use crate::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use crate::vocabulary::{MessageKind, TickKind};

#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A person wrote to the agent.
    OperatorPrompt { work_item_id: Option<WorkItemId>, labels: Labels },
    /// Another agent or a program wrote to it, or something came in by a trigger.
    Event { source: EventSource, trigger_id: Option<TriggerId>, work_item_id: Option<WorkItemId>, labels: Labels },
    /// A task has ended.
    TaskResult { task_id: TaskId, work_item_id: Option<WorkItemId> },
    /// An occurrence of a timer has come; the wait is the one that the timer was made for.
    TimerTick { timer_id: TimerId, waiting_intent_id: Option<WaitId>, work_item_id: Option<WorkItemId> },
    /// Runnable work is offered to the model.
    WorkTick { offer: OfferedItem, work_item_id: WorkItemId, idempotency_key: String },
    /// A reminder of what blocks a work item.
    Recheck { work_item_id: WorkItemId, idempotency_key: String },
    /// A wake hint is delivered.
    WakeHint { resource: Option<HintResource>, idempotency_key: String },
    /// A question was decided.
    ApprovalDecided { approval_id: ApprovalId, work_item_id: Option<WorkItemId> },
    /// A wait ended for another reason than what it waited for. `answers` is the operator's message that is still
    /// unanswered because of the wait.
    WaitEnded { waiting_intent_id: WaitId, work_item_id: Option<WorkItemId>, answers: Option<MessageId> },
    /// A combination that the other variants can't hold.
    Irregular(Box<Irregular>),
}

/// The ids and the key that a sender gave a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
    pub idempotency_key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSource {
    Channel,
    Webhook,
    Callback,
}

/// The work item that a work tick offers: the one in focus, or one from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedItem {
    Current,
    Queued,
}

impl OfferedItem {
    #[must_use]
    pub fn tick(self) -> TickKind {
        match self {
            OfferedItem::Current => TickKind::ContinueActive,
            OfferedItem::Queued => TickKind::QueuedAvailable,
        }
    }
}

/// The resource that a wake hint names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintResource {
    Wait(WaitId),
    Trigger(TriggerId),
    /// A name that is neither: it correlates.
    Correlation(String),
}

/// The subject of a record that no constructor makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Irregular(SubjectRecord);

/// A subject as it is stored: the kind, and every id that a message can name.
#[derive(Debug, Clone, PartialEq)]
pub struct SubjectRecord {
    pub kind: MessageKind,
    pub work_item_id: Option<WorkItemId>,
    pub task_id: Option<TaskId>,
    pub timer_id: Option<TimerId>,
    pub trigger_id: Option<TriggerId>,
    pub approval_id: Option<ApprovalId>,
    pub waiting_intent_id: Option<WaitId>,
    pub tick: Option<TickKind>,
    pub answers: Option<MessageId>,
    pub labels: Labels,
}

impl SubjectRecord {
    /// A record that names nothing but its kind.
    #[must_use]
    pub fn of(kind: MessageKind) -> SubjectRecord {
        SubjectRecord {
            kind,
            work_item_id: None,
            task_id: None,
            timer_id: None,
            trigger_id: None,
            approval_id: None,
            waiting_intent_id: None,
            tick: None,
            answers: None,
            labels: Labels::default(),
        }
    }

    /// The regular subject that its kind suggests, if it names what that subject needs.
    fn suggest_subject(&self) -> Option<Subject> {
        let work_item_id = self.work_item_id.clone();
        let event = |source| Subject::Event {
            source,
            trigger_id: self.trigger_id.clone(),
            work_item_id: self.work_item_id.clone(),
            labels: self.labels.clone(),
        };
        match self.kind {
            MessageKind::OperatorPrompt => Some(Subject::OperatorPrompt { work_item_id, labels: self.labels.clone() }),
            MessageKind::ChannelEvent => Some(event(EventSource::Channel)),
            MessageKind::WebhookEvent => Some(event(EventSource::Webhook)),
            MessageKind::CallbackEvent => Some(event(EventSource::Callback)),
            MessageKind::TaskResult => Some(Subject::TaskResult { task_id: self.task_id.clone()?, work_item_id }),
            MessageKind::TimerTick => {
                let (timer_id, waiting_intent_id) = (self.timer_id.clone()?, self.waiting_intent_id.clone());
                Some(Subject::TimerTick { timer_id, waiting_intent_id, work_item_id })
            }
            MessageKind::SystemTick => self.suggest_tick(self.tick?),
            MessageKind::InternalFollowup => Some(match &self.approval_id {
                Some(approval_id) => Subject::ApprovalDecided { approval_id: approval_id.clone(), work_item_id },
                None => Subject::WaitEnded {
                    waiting_intent_id: WaitId::new(self.labels.causation_id.as_ref()?),
                    work_item_id,
                    answers: self.answers.clone(),
                },
            }),
            MessageKind::TaskStatus | MessageKind::Control | MessageKind::BriefAck | MessageKind::BriefResult => None,
        }
    }

    fn suggest_tick(&self, tick: TickKind) -> Option<Subject> {
        let idempotency_key = self.labels.idempotency_key.clone()?;
        let work_item_id = self.work_item_id.clone();
        Some(match tick {
            TickKind::ContinueActive => {
                Subject::WorkTick { offer: OfferedItem::Current, work_item_id: work_item_id?, idempotency_key }
            }
            TickKind::QueuedAvailable => {
                Subject::WorkTick { offer: OfferedItem::Queued, work_item_id: work_item_id?, idempotency_key }
            }
            TickKind::Recheck => Subject::Recheck { work_item_id: work_item_id?, idempotency_key },
            TickKind::WakeHint => {
                let wait = self.waiting_intent_id.clone().map(HintResource::Wait);
                let trigger = || self.trigger_id.clone().map(HintResource::Trigger);
                let name = || self.labels.correlation_id.clone().map(HintResource::Correlation);
                Subject::WakeHint { resource: wait.or_else(trigger).or_else(name), idempotency_key }
            }
        })
    }
}

/// A record is regular exactly if the subject that its kind suggests is stored as the same record.
impl From<SubjectRecord> for Subject {
    fn from(record: SubjectRecord) -> Subject {
        let regular = record.suggest_subject().filter(|subject| subject.to_record() == record);
        regular.unwrap_or_else(|| Subject::Irregular(Box::new(Irregular(record))))
    }
}

/// A subject that names nothing but its kind.
impl From<MessageKind> for Subject {
    fn from(kind: MessageKind) -> Subject {
        Subject::from(SubjectRecord::of(kind))
    }
}

impl Subject {
    #[must_use]
    pub fn to_record(&self) -> SubjectRecord {
        let bare = SubjectRecord::of(self.kind());
        let key = |key: &String| Labels { idempotency_key: Some(key.clone()), ..Labels::default() };
        match self {
            Subject::OperatorPrompt { work_item_id, labels } => {
                SubjectRecord { work_item_id: work_item_id.clone(), labels: labels.clone(), ..bare }
            }
            Subject::Event { source: _, trigger_id, work_item_id, labels } => SubjectRecord {
                trigger_id: trigger_id.clone(),
                work_item_id: work_item_id.clone(),
                labels: labels.clone(),
                ..bare
            },
            Subject::TaskResult { task_id, work_item_id } => {
                SubjectRecord { task_id: Some(task_id.clone()), work_item_id: work_item_id.clone(), ..bare }
            }
            Subject::TimerTick { timer_id, waiting_intent_id, work_item_id } => SubjectRecord {
                timer_id: Some(timer_id.clone()),
                waiting_intent_id: waiting_intent_id.clone(),
                work_item_id: work_item_id.clone(),
                ..bare
            },
            Subject::WorkTick { work_item_id, idempotency_key, .. }
            | Subject::Recheck { work_item_id, idempotency_key } => SubjectRecord {
                tick: self.tick(),
                work_item_id: Some(work_item_id.clone()),
                labels: key(idempotency_key),
                ..bare
            },
            Subject::WakeHint { resource, idempotency_key } => {
                let correlation_id = resource.as_ref().map(|resource| resource.as_str().to_owned());
                SubjectRecord {
                    tick: self.tick(),
                    waiting_intent_id: self.waiting_intent_id().cloned(),
                    trigger_id: self.trigger_id().cloned(),
                    labels: Labels { correlation_id, ..key(idempotency_key) },
                    ..bare
                }
            }
            Subject::ApprovalDecided { approval_id, work_item_id } => {
                SubjectRecord { approval_id: Some(approval_id.clone()), work_item_id: work_item_id.clone(), ..bare }
            }
            Subject::WaitEnded { waiting_intent_id, work_item_id, answers } => SubjectRecord {
                work_item_id: work_item_id.clone(),
                answers: answers.clone(),
                labels: Labels { causation_id: Some(waiting_intent_id.to_string()), ..Labels::default() },
                ..bare
            },
            Subject::Irregular(record) => record.0.clone(),
        }
    }

    #[must_use]
    pub fn kind(&self) -> MessageKind {
        match self {
            Subject::OperatorPrompt { .. } => MessageKind::OperatorPrompt,
            Subject::Event { source: EventSource::Channel, .. } => MessageKind::ChannelEvent,
            Subject::Event { source: EventSource::Webhook, .. } => MessageKind::WebhookEvent,
            Subject::Event { source: EventSource::Callback, .. } => MessageKind::CallbackEvent,
            Subject::TaskResult { .. } => MessageKind::TaskResult,
            Subject::TimerTick { .. } => MessageKind::TimerTick,
            Subject::WorkTick { .. } | Subject::Recheck { .. } | Subject::WakeHint { .. } => MessageKind::SystemTick,
            Subject::ApprovalDecided { .. } | Subject::WaitEnded { .. } => MessageKind::InternalFollowup,
            Subject::Irregular(record) => record.0.kind,
        }
    }

    /// Why the runtime made it, for a system tick.
    #[must_use]
    pub fn tick(&self) -> Option<TickKind> {
        match self {
            Subject::WorkTick { offer, .. } => Some(offer.tick()),
            Subject::Recheck { .. } => Some(TickKind::Recheck),
            Subject::WakeHint { .. } => Some(TickKind::WakeHint),
            Subject::Irregular(record) => record.0.tick,
            Subject::OperatorPrompt { .. }
            | Subject::Event { .. }
            | Subject::TaskResult { .. }
            | Subject::TimerTick { .. }
            | Subject::ApprovalDecided { .. }
            | Subject::WaitEnded { .. } => None,
        }
    }

    #[must_use]
    pub fn work_item_id(&self) -> Option<&WorkItemId> {
        match self {
            Subject::OperatorPrompt { work_item_id, .. }
            | Subject::Event { work_item_id, .. }
            | Subject::TaskResult { work_item_id, .. }
            | Subject::TimerTick { work_item_id, .. }
            | Subject::ApprovalDecided { work_item_id, .. }
            | Subject::WaitEnded { work_item_id, .. } => work_item_id.as_ref(),
            Subject::WorkTick { work_item_id, .. } | Subject::Recheck { work_item_id, .. } => Some(work_item_id),
            Subject::WakeHint { .. } => None,
            Subject::Irregular(record) => record.0.work_item_id.as_ref(),
        }
    }

    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        if let Subject::TaskResult { task_id, .. } = self {
            return Some(task_id);
        }
        self.irregular()?.task_id.as_ref()
    }

    #[must_use]
    pub fn timer_id(&self) -> Option<&TimerId> {
        if let Subject::TimerTick { timer_id, .. } = self {
            return Some(timer_id);
        }
        self.irregular()?.timer_id.as_ref()
    }

    #[must_use]
    pub fn trigger_id(&self) -> Option<&TriggerId> {
        if let Subject::Event { trigger_id, .. } = self {
            return trigger_id.as_ref();
        }
        if let Subject::WakeHint { resource: Some(HintResource::Trigger(trigger_id)), .. } = self {
            return Some(trigger_id);
        }
        self.irregular()?.trigger_id.as_ref()
    }

    #[must_use]
    pub fn approval_id(&self) -> Option<&ApprovalId> {
        if let Subject::ApprovalDecided { approval_id, .. } = self {
            return Some(approval_id);
        }
        self.irregular()?.approval_id.as_ref()
    }

    /// The wait that the message may end: a wait that ended already is no such wait.
    #[must_use]
    pub fn waiting_intent_id(&self) -> Option<&WaitId> {
        if let Subject::TimerTick { waiting_intent_id, .. } = self {
            return waiting_intent_id.as_ref();
        }
        if let Subject::WakeHint { resource: Some(HintResource::Wait(waiting_intent_id)), .. } = self {
            return Some(waiting_intent_id);
        }
        self.irregular()?.waiting_intent_id.as_ref()
    }

    /// The operator's message that is still unanswered because of what this one is about.
    #[must_use]
    pub fn answers(&self) -> Option<&MessageId> {
        if let Subject::WaitEnded { answers, .. } = self {
            return answers.as_ref();
        }
        self.irregular()?.answers.as_ref()
    }

    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        if let Subject::WakeHint { resource, .. } = self {
            return resource.as_ref().map(HintResource::as_str);
        }
        self.labels()?.correlation_id.as_deref()
    }

    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        match self {
            Subject::WorkTick { idempotency_key, .. }
            | Subject::Recheck { idempotency_key, .. }
            | Subject::WakeHint { idempotency_key, .. } => Some(idempotency_key),
            Subject::OperatorPrompt { .. }
            | Subject::Event { .. }
            | Subject::TaskResult { .. }
            | Subject::TimerTick { .. }
            | Subject::ApprovalDecided { .. }
            | Subject::WaitEnded { .. }
            | Subject::Irregular(_) => self.labels()?.idempotency_key.as_deref(),
        }
    }

    /// The labels of a sender, where the message has one that can give it some.
    fn labels(&self) -> Option<&Labels> {
        match self {
            Subject::OperatorPrompt { labels, .. } | Subject::Event { labels, .. } => Some(labels),
            Subject::Irregular(record) => Some(&record.0.labels),
            Subject::TaskResult { .. }
            | Subject::TimerTick { .. }
            | Subject::WorkTick { .. }
            | Subject::Recheck { .. }
            | Subject::WakeHint { .. }
            | Subject::ApprovalDecided { .. }
            | Subject::WaitEnded { .. } => None,
        }
    }

    fn irregular(&self) -> Option<&SubjectRecord> {
        if let Subject::Irregular(record) = self { Some(&record.0) } else { None }
    }
}

impl HintResource {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            HintResource::Wait(id) => id.as_str(),
            HintResource::Trigger(id) => id.as_str(),
            HintResource::Correlation(name) => name,
        }
    }
}
