//! Ingress: who may send what, and what is refused before it is recorded.

use abide_kernel::limits;
use abide_kernel::vocabulary::{MessageKind, OriginKind};

use crate::story::check;

#[test]
fn kind_and_origin_must_agree() {
    check(
        "message operator_prompt from=kid hi
         message task_result from=kid hi
         message channel_event from=kid hi",
        "refused kind_origin_mismatch
         refused kind_origin_mismatch
         queued m1 channel_event
         StartModelTurn model_reentry_message m1
         turn local_continuation",
    );
}

#[test]
fn only_an_operator_interjects() {
    check("event priority=interject news", "refused only_operators_interject");
}

#[test]
fn too_large_a_message_is_refused() {
    let text = "x".repeat(limits::MESSAGE_BYTES + 1);
    check(&format!("operator {text}"), "refused message_too_large");
}

#[test]
fn too_large_a_hint_is_refused() {
    let text = "x".repeat(limits::TEXT_BYTES + 1);
    check(&format!("wake {text}"), "refused wake_too_large");
}

#[test]
fn a_message_from_an_unknown_trigger_is_refused() {
    check(
        "person CreateTrigger hook
         person RevokeTrigger trig1
         ---
         event trigger=trig1 news",
        "refused not_found",
    );
}

#[test]
fn lanes_are_taken_in_their_order() {
    check(
        "operator a
         operator priority=background b
         operator c
         operator priority=next d
         ---
         queue
         round done
         round done
         round done",
        "m4 queued, m1 dequeued, m3 queued, m2 queued
         end completed
         processed m1
         told result: done
         StartModelTurn model_reentry_message m4
         turn local_continuation
         end completed
         processed m4
         told result: done
         StartModelTurn model_reentry_message m3
         turn local_continuation
         end completed
         processed m3
         told result: done
         StartModelTurn model_reentry_message m2
         turn local_continuation",
    );
}

/// Trust follows from how a message was admitted.
#[test]
fn trust_follows_from_the_origin() {
    let trust: Vec<String> = OriginKind::ALL.iter().map(|origin| format!("{origin} {}", origin.trust())).collect();
    let expected = [
        "operator trusted_operator",
        "channel untrusted_external",
        "webhook trusted_integration",
        "callback trusted_integration",
        "timer trusted_system",
        "system trusted_system",
        "task trusted_system",
        "agent untrusted_external",
    ];
    assert_eq!(trust, expected);
}

/// Every pair of kind and sender: an agent may send channel events, all others only what is theirs.
#[test]
fn each_kind_has_its_sender() {
    for kind in MessageKind::ALL {
        let senders: Vec<OriginKind> = OriginKind::ALL.iter().copied().filter(|origin| kind.admits(*origin)).collect();
        let mut expected = vec![kind.usual_origin()];
        if *kind == MessageKind::ChannelEvent {
            expected.push(OriginKind::Agent);
        }
        assert_eq!(senders, expected, "{kind}");
    }
}

/// It comes from outside the agent's own tree, so nothing in it is trusted.
#[test]
fn another_agents_message_is_recorded_whole() {
    check(
        "operator hi
         ---
         message channel_event from=b hi
         facts",
        r#"queued m2 channel_event
         message.queued {"message_id":"m2","kind":"channel_event","origin":{"kind":"agent","id":"b"},"trust":"untrusted_external","priority":"normal","text":"hi","self_caused":true}"#,
    );
}

#[test]
fn a_tick_of_another_kind_matches_no_external_wait() {
    check(
        "operator hi
         round WaitFor external c1
         ---
         message system_tick corr=c1 go",
        "queued m2 system_tick
         ReduceMessageOnly message_parked m2
         parked m2 behind wait1
         WaitForExternalChange active_agent_waiting_intents",
    );
}

#[test]
fn a_message_keeps_what_it_came_of() {
    check(
        "operator hi
         ---
         message webhook_event cause=m0 corr=c1 hi
         facts",
        r#"queued m2 webhook_event
         message.queued {"message_id":"m2","kind":"webhook_event","origin":{"kind":"webhook"},"trust":"trusted_integration","priority":"normal","text":"hi","correlation_id":"c1","causation_id":"m0"}"#,
    );
}
