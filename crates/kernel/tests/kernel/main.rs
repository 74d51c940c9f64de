//! The kernel's tests, through its front door: text in, text out.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "tests")]

mod accounts;
mod answers;
mod approvals;
mod bodies;
mod budgets;
mod calendar;
mod children;
mod clock;
mod closure;
mod compaction;
mod continuation;
mod decisions;
mod disks;
mod fairness;
mod fallbacks;
mod golden;
mod holds;
mod images;
mod ingress;
mod interjections;
mod invariants;
mod lifecycle;
mod loops;
mod matching;
mod pace;
mod pack;
mod parking;
mod prompt;
mod property;
mod reasons;
mod restart;
mod rests;
mod row_fingerprint;
mod rows;
mod shapes;
mod story;
mod tasks;
mod ticks;
mod timers;
mod triggers;
mod waits;
mod wakes;
mod why;
mod work_items;
