//! A disk without room: turns wait for it, and go on by themselves.

use crate::story::check;

#[test]
fn no_turn_starts_before_there_is_room() {
    check(
        "disk after=1m 5 bytes are free
         ---
         operator hi
         why
         wakers
         disk
         round done",
        "queued m1 operator_prompt
         WaitForTimer disk_reserve
         a waits for room on a disk (5 bytes are free): a command of it that took a lot of it was ended; it goes on by itself when there is room, so delete something.
         room on the disk
         disk has room
         StartModelTurn model_reentry_message m1
         turn local_continuation
         end completed
         processed m1
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_wait_that_nobody_renews_ends() {
    check(
        "operator hi
         round done
         ---
         disk after=1m 5 bytes are free
         advance 30s
         disk after=1m 4 bytes are free
         operator hi
         advance 45s
         crash
         advance 30s
         round done",
        "disk short: 5 bytes are free
         WaitForTimer disk_reserve
         disk short: 4 bytes are free
         WaitForTimer disk_reserve
         queued m2 operator_prompt
         WaitForTimer disk_reserve
         unchanged
         disk has room
         StartModelTurn model_reentry_message m2
         turn local_continuation
         end completed
         processed m2
         told result: done
         Sleep no_pending_scheduler_facts",
    );
}

#[test]
fn a_shortage_that_is_over_already_holds_nothing() {
    check(
        "---
         disk after=0s full
         disk after=1h full",
        "unchanged
         disk short: full
         WaitForTimer disk_reserve",
    );
}
