//! The subject of a message and its stored form: what was stored is read and written back byte for byte, whatever it
//! combines, and a combination that a constructor makes is read as the subject that was meant.

use abide_kernel::id::{ApprovalId, MessageId, TaskId, TimerId, TriggerId, WaitId, WorkItemId};
use abide_kernel::message::{EventSource, HintResource, Labels, Message, OfferedItem, Subject, SubjectRecord};
use abide_kernel::vocabulary::{MessageKind, TickKind};
use serde_json::json;

use crate::golden::golden;

fn item() -> Option<WorkItemId> {
    Some(WorkItemId::new("work_1"))
}

/// Every regular subject, with and without what is optional.
fn regular() -> Vec<Subject> {
    let labels = Labels { correlation_id: Some("build-7".to_owned()), ..Labels::default() };
    let key = || "key".to_owned();
    let mut subjects = Vec::new();
    for work_item_id in [None, item()] {
        let (task_id, timer_id) = (TaskId::new("task_1"), TimerId::new("timer_1"));
        let (approval_id, wait) = (ApprovalId::new("appr_1"), WaitId::new("wait_1"));
        let source = EventSource::Callback;
        let trigger_id = work_item_id.as_ref().map(|_| TriggerId::new("trig_1"));
        let answers = work_item_id.as_ref().map(|_| MessageId::new("msg_0"));
        subjects.extend([
            Subject::OperatorPrompt { work_item_id: work_item_id.clone(), labels: labels.clone() },
            Subject::Event { source, trigger_id, work_item_id: work_item_id.clone(), labels: Labels::default() },
            Subject::TaskResult { task_id, work_item_id: work_item_id.clone() },
            Subject::TimerTick {
                timer_id,
                waiting_intent_id: work_item_id.as_ref().map(|_| wait.clone()),
                work_item_id: work_item_id.clone(),
            },
            Subject::ApprovalDecided { approval_id, work_item_id: work_item_id.clone() },
            Subject::WaitEnded { waiting_intent_id: wait, work_item_id, answers },
        ]);
    }
    for offer in [OfferedItem::Current, OfferedItem::Queued] {
        subjects.push(Subject::WorkTick { offer, work_item_id: WorkItemId::new("work_1"), idempotency_key: key() });
    }
    subjects.push(Subject::Recheck { work_item_id: WorkItemId::new("work_1"), idempotency_key: key() });
    for resource in [
        None,
        Some(HintResource::Wait(WaitId::new("wait_1"))),
        Some(HintResource::Trigger(TriggerId::new("trig_1"))),
        Some(HintResource::Correlation("build-7".to_owned())),
    ] {
        subjects.push(Subject::WakeHint { resource, idempotency_key: key() });
    }
    subjects
}

#[test]
fn a_regular_subject_is_stored_and_read_as_itself() {
    for subject in regular() {
        let message = Message::new(MessageId::new("msg_1"), subject);
        let stored = serde_json::to_string(&message).unwrap();
        let read: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, message, "{stored}");
        assert!(!matches!(read.subject, Subject::Irregular(_)), "{stored}");
    }
}

/// Each member on its own, with every kind: most of these no constructor makes, and all of them are read.
#[test]
fn every_combination_is_written_as_it_was_read() {
    let whole: serde_json::Value = serde_json::from_slice(&golden()["message.queued"]).unwrap();
    let members = whole.as_object().unwrap();
    let needed = ["message_id", "kind", "origin", "trust", "priority"];
    let optional: Vec<&String> = members.keys().filter(|name| !needed.contains(&name.as_str())).collect();
    for kind in MessageKind::ALL {
        for (at, one) in optional.iter().enumerate() {
            for other in &optional[at..] {
                let mut stored = whole.clone();
                let fields = stored.as_object_mut().unwrap();
                fields.retain(|name, _| needed.contains(&name.as_str()) || name == *one || name == *other);
                fields.insert("kind".to_owned(), json!(kind));
                let read: Message = serde_json::from_value(stored.clone()).unwrap();
                assert_eq!(serde_json::to_value(&read).unwrap(), stored);
                assert_eq!(Subject::from(read.subject.to_record()), read.subject);
            }
        }
    }
}

/// The members are stored in the order in which they always were.
#[test]
fn a_stored_message_keeps_the_order_of_its_members() {
    let read: Message = serde_json::from_slice(&golden()["message.queued"]).unwrap();
    let stored = serde_json::to_string(&read).unwrap();
    let names = [
        "message_id",
        "kind",
        "origin",
        "trust",
        "priority",
        "text",
        "json",
        "work_item_id",
        "task_id",
        "timer_id",
        "trigger_id",
        "approval_id",
        "waiting_intent_id",
        "tick",
        "answers",
        "correlation_id",
        "causation_id",
        "idempotency_key",
        "self_caused",
    ];
    let places: Vec<usize> = names.iter().map(|name| stored.find(&format!("\"{name}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{stored}");
}

/// A fixture may leave out the item of a work tick: it is read, and names nothing.
#[test]
fn a_record_that_misses_an_id_is_irregular_and_names_what_it_has() {
    let record = SubjectRecord {
        tick: Some(TickKind::ContinueActive),
        labels: Labels { idempotency_key: Some("key".to_owned()), ..Labels::default() },
        ..SubjectRecord::of(MessageKind::SystemTick)
    };
    let subject = Subject::from(record);
    assert!(matches!(subject, Subject::Irregular(_)));
    assert_eq!((subject.kind(), subject.tick()), (MessageKind::SystemTick, Some(TickKind::ContinueActive)));
    assert_eq!((subject.work_item_id(), subject.idempotency_key()), (None, Some("key")));
}
