//! HTTP over the engine. It routes by the table of operations in `api`, checks who calls and how much they ask for, and
//! turns requests into inputs and states into shapes. It decides nothing about agents.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make files as users do"))]

mod access;
mod agent_row;
mod answers;
mod app;
mod body;
mod call;
mod connection;
mod connections;
mod gate;
mod hooks;
mod idempotency;
mod limits;
mod metrics;
mod problems;
mod router;
mod routes;
mod services;
mod shares;
mod site;

pub use access::{Access, fresh_token};
pub use app::{App, Options, ReadWorkspaceSettings, WorkspaceSettings};
pub use connection::Server;
pub use hooks::{Hooks, Rate, Secret, SecretStore};
pub use limits::Limits;
pub use routes::models_in_use;
pub use services::{FolderScope, ServiceFuture, ServiceResult, Services};
