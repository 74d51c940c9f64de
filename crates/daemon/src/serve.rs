//! Serving a home until a signal ends it. Nothing is left running, and nothing half written.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use abide_ledger::Ledger;
use abide_private::{is_open_to_others, private_folder};
use abide_server::{App, Limits, Server};
use rustix::process::Signal;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::address::AddressFile;
use crate::boot::{self, Booted};
use crate::error::{Action, StartError};
use crate::options::Options;
use crate::services::DaemonServices;
use crate::workspace_roots::WorkspaceRoots;
use crate::{disk_shortage, key_holds, logs, memory, mirror_upkeep, open_files};

/// How long threads may go on that nobody waits for any more.
const THREADS_END_WITHIN: Duration = Duration::from_millis(200);

/// Something that whoever started the daemon waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    Ready {
        url: &'a str,
        /// The home was made by this start.
        is_new: bool,
    },
    Stopped,
}

/// How a daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It shut down as it was asked to.
    Stopped,
    /// A second signal came while it shut down. Everything that was answered is durable; the exit code says which signal.
    Forced(u8),
}

/// Boots the home and serves it until SIGTERM or SIGINT.
pub fn run(
    home: &Path,
    ledger: Ledger,
    options: &Options,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<End, StartError> {
    // The output of commands stays there for as long as the ledger refers to it.
    let agents = home.join("agents");
    private_folder(&agents).action(|| format!("can't keep {} to ourselves", agents.display()))?;
    if is_open_to_others(home).unwrap_or(false) {
        let hint = format!("chmod 700 {}", home.display());
        tracing::warn!(home = %home.display(), hint, "other users of this machine can look into the home");
    }
    let token = boot::admin_token(home)?;
    let limits = Limits::for_open_files(open_files::raise());
    tracing::debug!(connections = limits.connections, "connections leave room for other open files");
    let runtime = start_threads(Builder::new_multi_thread().enable_all())?;
    // Requests have threads of their own: however many agents are at work, the kernel gives each thread its share.
    let requests = start_threads(Builder::new_multi_thread().worker_threads(2).thread_name("requests").enable_all())?;
    let ended = runtime.block_on(serve(home, ledger, &token, limits, options, report, requests.handle()));
    if let Ok(End::Forced(_)) = ended {
        requests.shutdown_background();
        runtime.shutdown_background();
    } else {
        // What still runs are reads that nobody will see.
        requests.shutdown_timeout(THREADS_END_WITHIN);
        runtime.shutdown_timeout(THREADS_END_WITHIN);
    }
    ended
}

fn start_threads(builder: &mut Builder) -> Result<Runtime, StartError> {
    builder.build().action(|| "can't start threads".to_owned())
}

async fn serve(
    home: &Path,
    ledger: Ledger,
    token: &str,
    limits: Limits,
    options: &Options,
    report: &mut dyn FnMut(Event<'_>),
    requests: &Handle,
) -> Result<End, StartError> {
    let no_handler = || "can't handle signals".to_owned();
    // First of all, so that no signal falls into the gap before.
    let mut terminate = signal(SignalKind::terminate()).action(no_handler)?;
    let mut interrupt = signal(SignalKind::interrupt()).action(no_handler)?;
    // By default this signal ends the process where a file would outgrow a limit on its size. Handled, the write fails
    // instead, as it does on a full disk.
    let _file_too_large = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).action(no_handler)?;

    let Booted { host, executor, hooks, policy, access, deltas, holds, is_new, sweeps, notifier, rebuild } =
        boot::boot(home, ledger, token, options).await?;
    tracing::debug!(?sweeps, "booted");
    let upkeep = [
        tokio::spawn(disk_shortage::report(host.clone(), executor.clone())),
        tokio::spawn(memory::give_back()),
        tokio::spawn(mirror_upkeep::tidy(executor.clone())),
        tokio::spawn(key_holds::release(host.clone(), holds.clone())),
    ];

    let (checked, priced) = (Arc::clone(&options.models), Arc::clone(&options.models));
    let roots = WorkspaceRoots::new(&options.workspace_roots, executor.person());
    let models = Arc::clone(&options.models);
    let app_options = abide_server::Options {
        limits,
        models: options.models.defaults(),
        credentials: options.credentials.clone(),
        check_model: Box::new(move |name| checked.check(name)),
        check_price: Box::new(move |name| priced.check_price(name)),
        workspace_settings: options.workspace_settings.clone(),
        services: Arc::new(DaemonServices { executor, policy, models, roots, holds }),
        hooks: Arc::clone(&hooks),
        deltas,
        log_lines_lost: logs::lost_lines,
        loopback: options.listen.ip().is_loopback(),
    };
    let app = App::new(host.clone(), access, app_options);
    let server = {
        let _requests_runtime = requests.enter();
        Server::bind(options.listen, Arc::clone(&app))
    };
    let cannot_listen = || format!("can't listen on {}", options.listen);
    let server = server.action(cannot_listen)?;
    let url = format!("http://{}", server.address().action(cannot_listen)?);
    hooks.listens_at(&url);
    let address_file = AddressFile::write(home, &url, &options.config_digest)?;
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    let serving = requests.spawn(server.serve(async {
        // Dropped or sent, it means the same.
        let _closed = closed.await;
    }));
    report(Event::Ready { url: &url, is_new });

    let first = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = first, "shutting down");
    app.close();
    upkeep.iter().for_each(tokio::task::JoinHandle::abort);
    let ending = async {
        host.shutdown(options.shutdown_grace, first).await;
        drop(close);
        // The server only ends; it has no other outcome.
        let _ended = serving.await;
    };
    let second = tokio::select! {
        () = ending => None,
        _ = terminate.recv() => Some(143),
        _ = interrupt.recv() => Some(130),
    };
    if second.is_some() {
        // Turns are not waited for any more, but recorded as given back: a moment, unless the disk is slow or full.
        tokio::select! {
            () = host.shutdown(Duration::ZERO, "second_signal") => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    drop(address_file);
    drop(notifier);
    drop(rebuild);
    report(Event::Stopped);
    Ok(second.map_or(End::Stopped, End::Forced))
}
