//! The words of `abide task`.

use clap::{Args, Subcommand};

use super::OfAgent;

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// All of them, newest last
    List(OfAgent),
    /// One of them
    Show(OneTask),
    /// What it wrote
    Output {
        #[command(flatten)]
        task: OneTask,
        /// From this byte on, instead of the newest
        #[arg(long, value_name = "BYTE")]
        offset: Option<u64>,
        /// Go on as it writes, until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Write to it, if it accepts input
    Input {
        #[command(flatten)]
        task: OneTask,
        /// What to write, with a line end; - reads stdin and adds none
        text: String,
        /// Nothing comes after it: the task reads the end of its input
        #[arg(long)]
        close: bool,
    },
    /// Ask it to end, with everything it started; the second time it is forced
    Stop(OneTask),
    /// Run a command in the agent's workspace
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub struct OneTask {
    #[command(flatten)]
    pub of: OfAgent,
    /// The task, or the end of its id
    pub task: String,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub of: OfAgent,
    /// The command, for a shell; several words are joined, and what begins with - goes after --
    #[arg(required = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// Where, below the workspace
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// On a terminal of its own
    #[arg(long)]
    pub tty: bool,
    /// Let `task input` write to it
    #[arg(long)]
    pub accepts_input: bool,
    /// Print what it writes until it ends, and exit 1 if it fails
    #[arg(long)]
    pub wait: bool,
}
