//! One entry of a work item's todo list.

use serde::{Deserialize, Serialize};

use crate::vocabulary::TodoState;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Todo {
    pub text: String,
    pub state: TodoState,
}
