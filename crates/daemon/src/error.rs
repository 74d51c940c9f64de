//! Why a daemon does not start.

use std::error::Error;
use std::path::PathBuf;

use crate::policy_file::PolicyError;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting can't be followed. The text says which, and what to change.
    #[error("{0}")]
    Setting(String),
    /// The file with the home's own token holds none.
    #[error("{} holds no token; remove it, and a new one is made", .0.display())]
    NoToken(PathBuf),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("{action}")]
    Failed {
        /// The action that failed.
        action: String,
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
}

/// Names the action that an error prevented.
pub(crate) trait Action<T> {
    fn action(self, name: impl FnOnce() -> String) -> Result<T, StartError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Action<T> for Result<T, E> {
    fn action(self, name: impl FnOnce() -> String) -> Result<T, StartError> {
        self.map_err(|cause| StartError::Failed { action: name(), cause: cause.into() })
    }
}
