//! The words of `abide model`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Every model that is known here: whether a key is set, its window, its prices, who thinks with it
    List,
    /// One small call, to see whether a model answers; exits 1 if it does not
    Test {
        /// PROVIDER/MODEL [default: what agents think with]
        #[arg(value_parser = crate::config::model)]
        model: Option<String>,
    },
}
