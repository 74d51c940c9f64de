//! The accounts of an agent: what it used, for its budget and for its pace.

use super::pace::Pace;
use super::spending::Spending;
use crate::budget::Usage;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accounts {
    /// Tokens and money of its own model calls.
    pub usage: Usage,
    pub spending: Spending,
    /// Recent turns that the agent caused itself.
    pub pace: Pace,
}
