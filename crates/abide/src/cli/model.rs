//! The arguments of `abide model`.

use clap::Subcommand;

use crate::model_name::parse_model_name;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List known models: key, context window, prices, agents that use each
    List,
    /// Test a model with one small call; exits 1 if it fails
    Test {
        /// PROVIDER/MODEL [default: the default model of agents]
        #[arg(value_parser = parse_model_name)]
        model: Option<String>,
    },
}
