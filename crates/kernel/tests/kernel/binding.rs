//! Work follows the pick: tasks, waits, sleeps, approvals, timers and children belong to the item that was named, else to
//! the turn's, else to the one in focus, else to the agent (spec 5).

use crate::story::check;

/// A turn about no item, in which two items were made and the first turn has ended.
const TWO_ITEMS: &str = "operator hi
     round CreateWorkItem one ; CreateWorkItem two
     round UpdateWorkItem w1 blocked=rain ; UpdateWorkItem w2 blocked=snow
     round done
     operator go
     ---\n";

#[test]
fn a_pick_binds_the_running_turn() {
    check(
        &format!(
            "{TWO_ITEMS}
             round PickWorkItem w2 ; Tool make
             task t1 call=call6
             tool call6
             round WaitFor task t1"
        ),
        "w2 picked
         t1 created of w2
         wait1 task_result on t1 of w2
         end completed
         processed m2
         told ack: Waiting.
         WaitForTask work_item_task_wait w2 t1",
    );
}

#[test]
fn the_first_item_that_a_turn_makes_binds_it() {
    check(
        "operator hi
         round CreateWorkItem one ; CreateWorkItem two ; RequestApproval deploy
         decide",
        "queued m1 operator_prompt
         StartModelTurn model_reentry_message m1
         turn local_continuation
         w1 created
         w2 created
         wait1 operator_input on appr1 of w1
         appr1 asked of w1
         end completed
         processed m1
         told ack: Waiting.
         EmitSystemTick queued_available w2
         queued m2 system_tick work_queue:queued_available:w2:1
         StartModelTurn model_reentry_message m2 w2
         turn local_continuation of w2
         Noop turn_in_progress",
    );
}

#[test]
fn a_turn_that_picks_another_item_holds_that_one() {
    check(
        "person CreateWorkItem one
         round CreateWorkItem two
         round PickWorkItem w2
         ---
         round WaitFor external
         item w1
         item w2
         decide",
        "wait1 external of w2
         end completed
         processed m1
         WaitForExternalChange work_item_external_wait w2
         runnable revision 1
         waiting_for_external revision 1 current
         WaitForExternalChange work_item_external_wait w2",
    );
}

#[test]
fn every_record_of_a_turn_follows_the_pick() {
    check(
        &format!(
            "{TWO_ITEMS}
             round PickWorkItem w1
             round CreateTimer every=1h tea ; SpawnAgent look ; RequestApproval deploy ; Sleep 2h"
        ),
        "w1 picked
         timer1 at +3600s every 3600s of w1
         task1 created of w1
         w1 delegated to a.1
         wait1 operator_input on appr1 of w1
         appr1 asked of w1
         wait2 sleep on timer2 of w1
         timer2 at +7200s
         end completed
         processed m2
         told ack: Waiting.
         WaitForOperator approval_pending w1",
    );
}

#[test]
fn what_is_named_goes_before_the_turns_item() {
    check(
        &format!(
            "{TWO_ITEMS}
             round PickWorkItem w1
             round CreateTimer every=1h tea item=w2 ; WaitFor external c1 item=w2"
        ),
        "w1 picked
         timer1 at +3600s every 3600s of w2
         wait1 external on c1 of w2
         end completed
         processed m2
         told ack: Waiting.
         WaitForExternalChange work_item_external_wait w2",
    );
}

/// A person's records are made in no turn, whatever runs and whatever is in focus.
#[test]
fn a_persons_records_belong_to_what_the_person_named() {
    check(
        &format!(
            "{TWO_ITEMS}
             round PickWorkItem w1
             person CreateTimer every=1h tea
             person CreateTimer every=1h coffee item=w2
             task t1"
        ),
        "w1 picked
         timer1 at +3600s every 3600s
         timer2 at +3600s every 3600s of w2
         t1 created",
    );
}

#[test]
fn a_persons_pick_binds_no_turn() {
    check(
        &format!(
            "{TWO_ITEMS}
             round PickWorkItem w1
             person PickWorkItem w2
             round WaitFor external c1"
        ),
        "w1 picked
         w2 picked
         wait1 external on c1 of w1
         end completed
         processed m2
         told ack: Waiting.
         WaitForExternalChange work_item_external_wait w1",
    );
}

/// The item that a turn leaves has had its turn: nothing changed about it, so it is offered again later.
#[test]
fn the_item_that_is_left_has_had_its_turn() {
    check(
        "person CreateWorkItem one
         round CreateWorkItem two
         ---
         round PickWorkItem w2
         round WaitFor external c1
         why",
        "turn leaves w1 for w2
         w2 picked
         wait1 external on c1 of w2
         end completed
         processed m1
         WaitForExternalChange work_item_external_wait w2
         a sleeps until something outside happens, for \"two\" (c1): later.",
    );
}

/// A turn that joins an item is paid for by it; one whose budget is spent pays for none, and the turn stays where it was.
#[test]
fn an_item_pays_for_the_turns_that_join_it() {
    check(
        "person CreateWorkItem one max_turns=1
         round UpdateWorkItem w1 blocked=rain
         round done
         operator hi
         round PickWorkItem w1
         ---
         round WaitFor external c1
         person UpdateWorkItem w1 unblocked",
        "wait1 external on c1 of w1
         end completed
         processed m2
         told ack: Waiting.
         WaitForExternalChange work_item_external_wait w1
         w1 unblocked",
    );
}

/// A sleep lasts until a turn is about what it holds.
#[test]
fn a_pick_ends_the_sleep_of_the_item() {
    check(
        "operator hi
         round CreateWorkItem one ; Sleep 1h
         operator again
         ---
         round PickWorkItem w1",
        "wait1 cancelled: turn_started
         timer1 cancelled: wait_ended
         w1 picked",
    );
}

#[test]
fn a_result_is_about_the_item_of_its_task() {
    check(
        "operator hi
         round CreateWorkItem one ; CreateWorkItem two
         round PickWorkItem w1 ; Tool make
         task t1 call=call4
         tool call4
         round PickWorkItem w2 ; WaitFor external c1 ; UpdateWorkItem w1 blocked=rain
         ---
         task t1 ends
         round done",
        "t1 completed
         queued m2 task_result
         result of t1 in m2
         StartModelTurn model_reentry_message m2 w1 t1
         turn local_continuation of w1 shows t1
         read t1: round 1
         end completed
         processed m2
         WaitForExternalChange work_item_external_wait w2",
    );
}
