//! The server through its front door: HTTP on loopback, a host on a real ledger behind it. Only the services that agents
//! act in is faked, and every answer is held against the OpenAPI document.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod access;
mod agents;
mod approvals;
mod connections;
mod daemon;
mod file_secrets;
mod hands;
mod history;
mod hooks;
mod http;
mod keys;
mod lifecycle;
mod lists;
mod models;
mod outcomes;
mod overload;
mod pages;
mod planes;
mod requests;
mod routes;
mod schema;
mod services;
mod streams;
mod tasks;
mod work_items;
mod workspaces;
