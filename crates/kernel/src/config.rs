//! Who an agent is, and what its operator set.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::credentials::{Credentials, CredentialsChange};
use crate::id::{AgentId, TaskId};
use crate::rule_folder::RuleFolder;
use crate::vocabulary::{AgentKind, Ownership, Role, Visibility};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub id: AgentId,
    pub kind: AgentKind,
    pub role: Role,
    pub visibility: Visibility,
    pub ownership: Ownership,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Whose task a child carries out. None for an agent that belongs to its operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Supervisor>,
    /// The agents that made it: its parent, its parent's maker, and so on up to one that a person made. Records of older
    /// versions lack it; `lineage` says what is known of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub makers: Vec<AgentId>,
    /// The folders of its makers that rules about paths begin at. Records of older versions lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule_folders: Vec<RuleFolder>,
}

/// Who set a child to work, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supervisor {
    pub agent_id: AgentId,
    /// The supervisor's task that this child is.
    pub task_id: TaskId,
    /// The agent at the top, which belongs to an operator.
    pub top: AgentId,
    /// How far below it: its own children are at 1.
    pub depth: u32,
}

impl Identity {
    /// A named agent that belongs to its operator.
    #[must_use]
    pub fn named(id: AgentId) -> Identity {
        Identity {
            id,
            kind: AgentKind::Named,
            role: Role::Orchestrator,
            visibility: Visibility::Public,
            ownership: Ownership::SelfOwned,
            parent: None,
            supervisor: None,
            makers: Vec::new(),
            rule_folders: Vec::new(),
        }
    }

    /// The agents that made it, nearest first. A policy judges its calls as theirs, too, so it must never get shorter.
    #[must_use]
    pub fn lineage(&self) -> Vec<AgentId> {
        if !self.makers.is_empty() {
            return self.makers.clone();
        }
        let Some(parent) = &self.parent else { return Vec::new() };
        let mut known = vec![parent.clone()];
        let Some(supervisor) = &self.supervisor else { return known };
        // An older record names the parent and the agent at the top. A child is called after its parent, so the agents
        // between the two are in the parent's name.
        let mut name = parent.as_str();
        while name != supervisor.top.as_str()
            && let Some((above, number)) = name.rsplit_once('.')
            && number.parse::<u32>().is_ok()
        {
            name = above;
            known.extend(AgentId::new(above));
        }
        if !known.contains(&supervisor.top) {
            known.push(supervisor.top.clone());
        }
        known
    }

    /// The lineage of an agent that this one makes.
    #[must_use]
    pub fn makers_of_made(&self) -> Vec<AgentId> {
        std::iter::once(self.id.clone()).chain(self.lineage()).collect()
    }

    /// The agent at the end of its lineage, which a person made; itself where a person made it. All agents with the same
    /// founder are one tree, and `tree_agents` bounds their number.
    #[must_use]
    pub fn founder(&self) -> AgentId {
        self.lineage().pop().unwrap_or_else(|| self.id.clone())
    }

    /// The agents that it ends with: its supervisor, that one's supervisor, and so on up to the top. None for an agent
    /// that belongs to its operator.
    #[must_use]
    pub fn supervisors(&self) -> Vec<AgentId> {
        let Some(supervisor) = &self.supervisor else { return Vec::new() };
        let mut line = self.lineage();
        if let Some(top) = line.iter().position(|maker| *maker == supervisor.top) {
            line.truncate(top + 1);
        }
        line
    }

    /// The agent at the top of the tree that this one is in: all agents of a tree work for the same operator's agent.
    #[must_use]
    pub fn top(&self) -> &AgentId {
        self.supervisor.as_ref().map_or(&self.id, |supervisor| &supervisor.top)
    }

    #[must_use]
    pub fn depth(&self) -> u32 {
        self.supervisor.as_ref().map_or(0, |supervisor| supervisor.depth)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    #[serde(default)]
    pub budget: Budget,
    /// Models that are tried, in this order, when the first fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// It has no model of its own: the one above is the settings', as they were when it was last awake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_model: bool,
    /// The same of the models that are tried after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_fallback: bool,
    /// Credentials that its commands have besides the usual environment. No agent that a model names has any.
    #[serde(default, skip_serializing_if = "Credentials::is_empty")]
    pub credentials: Credentials,
}

/// Limits that the settings set for every agent, at which it waits or a person is asked. Zero is no limit. Recorded in
/// each agent's stream, so that a decision of the past does not change with the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentLimits {
    /// Turns within an hour that it causes itself.
    pub self_turns_per_hour: u32,
    /// Model rounds of one turn.
    pub rounds_per_turn: u32,
}

impl Default for AgentLimits {
    /// The limits of an agent until its stream says otherwise. Streams rely on it: these numbers never change, whatever
    /// the settings of a later version are without a word from anybody.
    fn default() -> AgentLimits {
        AgentLimits { self_turns_per_hour: 240, rounds_per_turn: 500 }
    }
}

/// The models of the settings, for agents that have none of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultModels {
    pub model: String,
    pub fallback: Vec<String>,
    /// Somebody chose it. One that is only there for want of another does not take the place of what an agent has: a
    /// daemon that was started without its keys would turn all of them into an echo.
    pub chosen: bool,
}

/// A choice: one that an operator named for one agent, or the one that the settings have for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<T> {
    Own(T),
    Default(T),
}

/// The changes that an operator makes. A field that is left out stays as it is, also when somebody else changes it at
/// the same moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChange {
    pub model: Option<Choice<String>>,
    pub workspace: Option<String>,
    /// `Some(None)` takes them away.
    pub instructions: Option<Option<String>>,
    pub network: Option<bool>,
    pub budget: Option<Budget>,
    pub fallback: Option<Choice<Vec<String>>>,
    pub role: Option<Role>,
    pub credentials: CredentialsChange,
}

impl Config {
    #[must_use]
    pub fn with(&self, change: ConfigChange) -> Config {
        let model = change.model.unwrap_or_else(|| Choice::again(&self.model, self.default_model));
        let fallback = change.fallback.unwrap_or_else(|| Choice::again(&self.fallback, self.default_fallback));
        let (model, default_model) = model.told();
        let (fallback, default_fallback) = fallback.told();
        Config {
            model,
            workspace: change.workspace.or_else(|| self.workspace.clone()),
            instructions: change.instructions.unwrap_or_else(|| self.instructions.clone()),
            network: change.network.unwrap_or(self.network),
            budget: change.budget.unwrap_or_else(|| self.budget.clone()),
            fallback,
            default_model,
            default_fallback,
            credentials: self.credentials.with(change.credentials),
        }
    }

    /// The same, with what it has of the settings as they are now.
    #[must_use]
    pub fn following(&self, models: &DefaultModels) -> Config {
        let model = (self.default_model && models.chosen).then(|| Choice::Default(models.model.clone()));
        let fallback = self.default_fallback.then(|| Choice::Default(models.fallback.clone()));
        self.with(ConfigChange { model, fallback, ..ConfigChange::default() })
    }

    /// All models, in the order in which they are tried. A script that fails on purpose must not be paid for: it falls
    /// back on nothing that was not named for it.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let named = !(self.default_fallback && self.model.starts_with("script/"));
        let others = self.fallback.iter().filter(move |other| named && **other != self.model);
        std::iter::once(&self.model).chain(others).map(String::as_str)
    }
}

impl<T: Clone> Choice<T> {
    fn again(value: &T, default: bool) -> Choice<T> {
        if default { Choice::Default(value.clone()) } else { Choice::Own(value.clone()) }
    }

    /// The chosen value, and whether it is the settings'.
    fn told(self) -> (T, bool) {
        match self {
            Choice::Own(value) => (value, false),
            Choice::Default(value) => (value, true),
        }
    }
}
