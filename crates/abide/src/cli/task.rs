//! The arguments of `abide task`.

use clap::{Args, Subcommand};

use super::OfAgent;

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// List tasks, newest last
    List(OfAgent),
    /// Show a task
    Show(OneTask),
    /// Show the output of a task
    Output {
        #[command(flatten)]
        task: OneTask,
        /// Start at this byte, instead of the newest output
        #[arg(long, value_name = "BYTE")]
        offset: Option<u64>,
        /// Keep printing until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Write to the input of a task that accepts input
    Input {
        #[command(flatten)]
        task: OneTask,
        /// The text to write, as a line; - reads stdin as it is
        text: String,
        /// Close the input after it
        #[arg(long)]
        close: bool,
    },
    /// Stop a task and its processes; a second stop kills them
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
    /// The command line of a shell; words are joined, and words that begin with - go after --
    #[arg(required = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// The working folder, below the workspace
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// Run it in a pseudo-terminal
    #[arg(long)]
    pub tty: bool,
    /// Keep its input open for `task input`
    #[arg(long)]
    pub accepts_input: bool,
    /// Print its output until it ends, and exit 1 if it fails
    #[arg(long)]
    pub wait: bool,
}
