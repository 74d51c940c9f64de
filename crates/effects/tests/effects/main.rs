//! The effects through their front door: models are called as the runtime calls them, tools are read as models say them.

#![allow(clippy::disallowed_methods, reason = "tests make files as users do")]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod calls;
mod command;
mod direct;
mod documented;
mod echo;
mod executor;
mod files_confined;
mod files_disk;
mod files_edit;
mod files_glob;
mod files_grep;
mod files_patch;
mod files_patch_git;
mod files_read;
mod files_stage;
mod files_write;
mod folders;
mod malformed;
mod model;
mod place;
mod policy;
mod providers;
mod script;
mod stage;
mod substitution;
mod surroundings;
mod swapped;
mod tool_files;
mod tools;
mod web;
mod workspace;
