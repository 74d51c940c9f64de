//! The tools that our commands call: which are here, and how to get one that is not.
//!
//! Tools that need no root are installed. Tools that need root are installed too when we are root on Debian, and otherwise
//! named with the line that installs them. No C compiler in the list: rustc linked this program with it.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::cargo::{answers, line, read, run};

pub(crate) enum Source {
    /// A component of the Rust toolchain, or Debian's package of it where the toolchain is Debian's.
    Component { name: &'static str, package: &'static str },
    /// A program in the crate registry.
    Crate { install: &'static [&'static str] },
    /// A Debian package.
    Package { name: &'static str },
}

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The call that succeeds exactly when the tool is here.
    pub(crate) probe: (&'static str, &'static [&'static str]),
    pub(crate) source: Source,
}

pub(crate) const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    probe: ("cargo", &["fmt", "--version"]),
    source: Source::Component { name: "rustfmt", package: "rustfmt" },
};

pub(crate) const CLIPPY: Tool = Tool {
    name: "clippy",
    probe: ("cargo", &["clippy", "--version"]),
    source: Source::Component { name: "clippy", package: "rust-clippy" },
};

/// Without its self-update, which we never use: it brings an HTTP client and TLS to compile.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    probe: ("cargo", &["nextest", "--version"]),
    source: Source::Crate {
        install: &["install", "--locked", "cargo-nextest", "--no-default-features", "--features", "default-no-update"],
    },
};

/// Lists the mutants of the kernel.
pub(crate) const MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    probe: ("cargo", &["mutants", "--version"]),
    source: Source::Crate { install: &["install", "--locked", "cargo-mutants"] },
};

pub(crate) const GIT: Tool =
    Tool { name: "git", probe: ("git", &["--version"]), source: Source::Package { name: "git" } };

/// The strongest sandbox for commands; the tests force each kind in turn.
pub(crate) const BUBBLEWRAP: Tool =
    Tool { name: "bubblewrap", probe: ("bwrap", &["--version"]), source: Source::Package { name: "bubblewrap" } };

/// The server that the tests push to over ssh. They start it themselves, on a port of loopback; Debian's package may start
/// one of its own where a service manager runs.
pub(crate) const SSHD: Tool = Tool {
    name: "openssh-server",
    probe: ("test", &["-x", "/usr/sbin/sshd"]),
    source: Source::Package { name: "openssh-server" },
};

/// `ssh`, `ssh-agent` and `ssh-keygen`.
pub(crate) const SSH: Tool =
    Tool { name: "openssh-client", probe: ("ssh", &["-V"]), source: Source::Package { name: "openssh-client" } };

/// Makes the certificate of the server that the tests push to over https.
pub(crate) const OPENSSL: Tool =
    Tool { name: "openssl", probe: ("openssl", &["version"]), source: Source::Package { name: "openssl" } };

/// Debian leaves out of python3 what a virtual environment begins with.
pub(crate) const PYTHON_VENV: Tool = Tool {
    name: "python3 with venv",
    probe: ("python3", &["-c", "import venv, ensurepip"]),
    source: Source::Package { name: "python3-venv" },
};

/// For the model server that the tests ask, which wants this version.
pub(crate) const NODE: Tool = Tool {
    name: "node 20 or later",
    probe: ("node", &["--eval", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"]),
    source: Source::Package { name: "nodejs" },
};

pub(crate) const NPM: Tool =
    Tool { name: "npm", probe: ("npm", &["--version"]), source: Source::Package { name: "npm" } };

/// Changes the clock of a daemon under test.
pub(crate) const FAKETIME: Tool =
    Tool { name: "faketime", probe: ("faketime", &["--version"]), source: Source::Package { name: "faketime" } };

pub(crate) const VALGRIND: Tool =
    Tool { name: "valgrind", probe: ("valgrind", &["--version"]), source: Source::Package { name: "valgrind" } };

/// Makes sure that each is here; an error says what to type.
pub(crate) fn ensure_all(tools: &[Tool]) -> Result<()> {
    for tool in tools {
        if is_here(tool) {
            continue;
        }
        println!("{} is missing", tool.name);
        match tool.source {
            Source::Component { name, package } => {
                if answers("rustup", &["--version"]) {
                    install("rustup", &["component", "add", name])?;
                } else {
                    install_package(package)?;
                }
            }
            Source::Crate { install: args } => install("cargo", args)?,
            Source::Package { name } => install_package(name)?,
        }
        ensure!(
            is_here(tool),
            "{} was installed, yet `{}` does not answer: is the folder of its programs in PATH?",
            tool.name,
            line(tool.probe.0, tool.probe.1)
        );
    }
    Ok(())
}

fn is_here(tool: &Tool) -> bool {
    answers(tool.probe.0, tool.probe.1)
}

fn install(program: &str, args: &[&str]) -> Result<()> {
    println!("installing: {}", line(program, args));
    run(program, args)
}

fn install_package(name: &str) -> Result<()> {
    let debian = Path::new("/etc/debian_version").exists();
    let root = read("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    match (debian, root) {
        (true, true) => {
            // A fresh machine's package lists are empty or old; one that is merely old still installs.
            install("apt-get", &["update"]).or_else(|error| {
                println!("{error}; going on with the package lists that are here");
                anyhow::Ok(())
            })?;
            install("env", &["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", name])
        }
        (true, false) => {
            bail!("installing {name} needs root. Run:\n\n    sudo apt-get install {name}\n\nand try again")
        }
        (false, _) => bail!("install {name} with this system's package manager (Debian: apt-get install {name})"),
    }
}
