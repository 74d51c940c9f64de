//! The pure heart of Abide: what happened (facts), what is (state), what comes next (scheduler), and why.
//!
//! Nothing here reads a clock, an environment, a file or a source of randomness: time and new ids arrive with the
//! input. So the same code runs live, in replay, in `why --at`, in forks and in the simulator, and gives the same answer.

pub mod act_result;
pub mod budget;
pub mod calendar;
pub mod config;
pub mod continuation;
pub mod credentials;
pub mod decision;
pub mod effect;
pub mod explain;
pub mod fact;
pub mod fixture;
pub mod input;
pub mod invariants;
pub mod limits;
pub mod message;
pub mod open_json;
pub mod outcome;
pub mod pack;
#[cfg(feature = "planted")]
pub mod planted;
pub mod prompt;
pub mod provider;
pub mod read_rows;
pub mod refusal;
pub mod rule_folder;
pub mod rules;
pub mod scheduler;
pub mod state;
pub mod summary;
pub mod todo;
pub mod tool;
pub mod transcript;
pub mod view;
pub mod visible;
pub mod wake;

pub use abide_views as views;
pub use abide_views::{id, time, vocabulary};
pub use decision::Decision;
pub use fact::Fact;
pub use rules::execute::carry_out;
pub use rules::{Admitted, admit};
pub use scheduler::decide;
pub use state::AgentState;
