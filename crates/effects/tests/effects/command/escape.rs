//! What a confined command must not be able to do, tried.
use abide_kernel::refusal::ErrorCode;

use super::{STAND_IN, World, in_each_sandbox, until};
use abide_effects::process::Launch;
use abide_effects::sandbox::Mechanism;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

in_each_sandbox!(
    writes_only_in_its_workspace,
    makes_no_program_that_runs_as_its_owner,
    opens_the_home_to_no_other_user,
    keeps_nothing_in_private_folders,
    reads_no_token_and_no_other_folder,
    reads_no_secrets_of_the_system,
    reads_nothing_of_the_system_that_only_root_can_read,
    reads_toolchains_without_their_credentials,
    renames_nothing_around_a_secret,
    has_no_way_to_loopback,
    follows_no_link_out,
    loses_a_race_of_links,
    sees_nothing_of_other_processes,
    traces_nobody_outside,
    signals_nobody_outside,
    has_no_way_to_abstract_sockets,
    has_no_way_to_sockets_with_a_path,
    has_no_powers,
    cannot_end_or_read_its_supervisor,
    inherits_no_descriptors,
    a_workspace_around_the_home_shows_nothing_of_it,
    a_workspace_that_was_turned_elsewhere_is_refused,
    a_workspace_of_another_user_can_be_worked_in,
    reads_and_writes_what_it_is_given_besides,
);

async fn refused(world: &World, command: &str) {
    let (text, code) = world.say(command).await;
    assert_ne!(code, Some(0), "{command}: {text}");
}

async fn writes_only_in_its_workspace(world: World) {
    let outside = world.path("outside");
    let (text, code) =
        world.say("echo x > inside && mkdir d && mv inside d/moved && cat d/moved && touch $TMPDIR/t $HOME/h").await;
    assert_eq!((text.as_str(), code), ("x\n", Some(0)));
    refused(&world, &format!("echo x > {}/new", outside.display())).await;
    refused(&world, &format!("echo x > {}/file", outside.display())).await;
    refused(&world, &format!("rm {}/file", outside.display())).await;
    refused(&world, &format!("ln {}/file inside", outside.display())).await;
    refused(&world, &format!("truncate -s0 {}/file", outside.display())).await;
    for place in ["/etc/abide-test", "/usr/abide-test", "/abide-test"] {
        refused(&world, &format!("touch {place}")).await;
        assert!(!std::path::Path::new(place).exists());
    }
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "not yours");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

/// Such a program lends the daemon's user to everybody who can reach the workspace.
async fn makes_no_program_that_runs_as_its_owner(world: World) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |name: &str| fs::metadata(world.path("root").join(name)).unwrap().permissions().mode();
    // Modes that tools keep from a file that somebody else made so.
    fs::write(world.path("root/kept"), "").unwrap();
    fs::set_permissions(world.path("root/kept"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::copy("/bin/true", world.path("root/x")).unwrap();
    for command in ["chmod 4755 x", "chmod u+s x", "install -m 4755 /bin/true x", "cp -p kept x"] {
        refused(&world, command).await;
        assert_eq!(mode("x") & 0o4000, 0, "{command}");
    }
    refused(&world, "tar -cf kept.tar kept && mkdir out && tar -xpf kept.tar -C out").await;
    assert_eq!(mode("out/kept") & 0o4000, 0);
    // A program that is replaced by another one does not keep the mode either.
    let (_, code) = world.say("cat /bin/true > kept").await;
    assert_eq!((code, mode("kept") & 0o6000), (Some(0), 0));
    // Files that a folder's group shares are ordinary; the superuser's group is the system's.
    let (_, code) = world.say("mkdir shared && chmod g+s shared").await;
    assert_eq!(code == Some(0), !rustix::process::geteuid().is_root());
    let (_, code) = world.say("mkdir sticky && chmod 1777 sticky && chmod 755 x").await;
    assert_eq!(code, Some(0));
}

/// With Landlock a command can change modes of files that its user owns; those of the home are set back.
async fn opens_the_home_to_no_other_user(world: World) {
    use std::os::unix::fs::PermissionsExt;
    let (home, token, shared) = (world.path("home"), world.path("home/token"), world.path("home/shared"));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let set = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    // A mode that the operator chose stays.
    fs::write(&shared, "").unwrap();
    for (path, mode) in [(&home, 0o700), (&token, 0o600), (&shared, 0o640)] {
        set(path, mode);
    }
    let open = format!("chmod 666 {0}/token {0}/shared; chmod 755 {0}", home.display());
    world.say(&open).await;
    assert_eq!([&home, &token, &shared].map(|path| mode(path)), [0o700, 0o600, 0o640]);
    // Not only when it ends.
    let process = world.start(&format!("{open}; touch tried; sleep 1000")).await;
    until("it has tried", || world.path("root/tried").exists()).await;
    until("the modes are as they were", || [&home, &token].map(|path| mode(path)) == [0o700, 0o600]).await;
    process.end(true);
    process.wait().await;
    // A home that the daemon's user can't enter any more serves nobody.
    world.say(&format!("chmod 000 {0}/token {0}", home.display())).await;
    assert_eq!([&home, &token].map(|path| mode(path)), [0o700, 0o600]);
}

async fn keeps_nothing_in_private_folders(world: World) {
    let name = format!("abide-test-{}", std::process::id());
    let places = ["$TMPDIR", "$HOME", "/tmp", "/var/tmp", "/run", "/dev/shm"];
    let each = |command: &str| -> String { places.map(|place| format!("{command} {place}/{name}\n")).concat() };
    let (text, code) = world.say(&format!("{}test -e $TMPDIR/{name} && test -e $HOME/{name}", each("touch"))).await;
    assert_eq!(code, Some(0), "{text}");
    for place in ["/tmp", "/var/tmp", "/run", "/dev/shm"] {
        assert!(!std::path::Path::new(place).join(&name).exists(), "{place} is the machine's");
    }
    let (text, _) = world.say(&each("ls 2>/dev/null")).await;
    assert_eq!(text, "", "the next command finds nothing of it");
}

async fn reads_no_token_and_no_other_folder(world: World) {
    refused(&world, &format!("cat {}", world.path("home/token").display())).await;
    refused(&world, &format!("ls {}", world.path("home").display())).await;
    refused(&world, &format!("cat {}", world.path("outside/file").display())).await;
    refused(&world, "ls ~/.ssh /home/* /root/.ssh 2>/dev/null | grep .").await;
}

async fn reads_no_secrets_of_the_system(world: World) {
    refused(&world, "cat /etc/shadow").await;
    refused(&world, "cat /etc/ssh/ssh_host_*_key | grep .").await;
    let (text, code) = world.say("grep -c root /etc/passwd").await;
    assert_eq!((text.trim(), code), ("1", Some(0)));
}

/// A daemon of root has commands of root, which are refused nothing by the modes of root's own files.
async fn reads_nothing_of_the_system_that_only_root_can_read(world: World) {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        println!("not tested here: only the superuser can make such files");
        return;
    }
    let folder = tempfile::Builder::new().prefix("abide-test-").tempdir_in("/etc").unwrap();
    let set = |name: &str, mode| {
        fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(folder.path().join("closed")).unwrap();
    for name in ["secret", "public", "closed/inside"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    for (name, mode) in [("", 0o755), ("secret", 0o640), ("public", 0o644), ("closed/inside", 0o644), ("closed", 0o750)]
    {
        set(name, mode);
    }
    let at = folder.path().display();
    refused(&world, &format!("cat {at}/secret | grep .")).await;
    refused(&world, &format!("cat {at}/closed/inside | grep .")).await;
    assert_eq!(world.say(&format!("cat {at}/public")).await, ("public".to_owned(), Some(0)));
    let (found, _) = world
        .say(
            "find /etc /opt /usr -xdev -type f ! -perm /005 2>/dev/null | while read f; do
             head -c1 \"$f\" 2>/dev/null | grep -q . && echo \"$f\"; done",
        )
        .await;
    assert_eq!(found, "");
    // A folder that a command is given is given with all its files.
    let launch = Launch { root: folder.path().to_owned(), cwd: folder.path().to_owned(), ..world.launch("cat secret") };
    let process = world.processes.start(launch).await.unwrap();
    process.wait().await;
    assert_eq!(process.output().stdout.whole().unwrap(), b"secret");
}

async fn reads_toolchains_without_their_credentials(world: World) {
    let cargo = world.path("person/.cargo");
    fs::create_dir_all(cargo.join("bin")).unwrap();
    for (name, text) in [
        ("config.toml", "# token\n[source.mirror]\nregistry = \"https://mirror.example/a@b\"\n"),
        ("config", "[http]\nproxy = \"http://ann:secret@proxy.example\"\n"),
        ("credentials.toml", "secret"),
        ("../.netrc", "secret"),
    ] {
        fs::write(cargo.join(name), text).unwrap();
    }
    // The home of the person is the process's, so this takes another process.
    let command = "cat $CARGO_HOME/config.toml $CARGO_HOME/config $CARGO_HOME/credentials.toml > seen; cat $CARGO_HOME/../.netrc ~/.netrc >> seen; touch $CARGO_HOME/new; touch up";
    let mut start = std::process::Command::new(STAND_IN);
    start.arg(world.path("home")).arg(world.path("root")).arg(world.mechanism.as_str()).arg(command);
    start.stdout(std::process::Stdio::null());
    let mut daemon = start.env("HOME", world.path("person")).env_remove("CARGO_HOME").spawn().unwrap();
    until("it has looked", || world.path("root/up").exists()).await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    // Its group and its scratch folder go, as they would when it is back.
    let _swept = world.processes.sweep();
    let settings = fs::read_to_string(cargo.join("config.toml")).unwrap();
    assert_eq!(fs::read_to_string(world.path("root/seen")).unwrap(), settings);
    assert!(!cargo.join("new").exists());
}

async fn renames_nothing_around_a_secret(world: World) {
    if world.mechanism == Mechanism::Landlock {
        println!("not tested here: such a workspace is refused");
        return;
    }
    let person = world.path("person");
    fs::create_dir_all(person.join(".config/gh")).unwrap();
    fs::write(person.join(".config/gh/hosts.yml"), "secret").unwrap();
    // The home of the person is the process's, so this takes another process; and what one command moved would be
    // found by the next.
    for command in ["mv .config moved; touch up", "cat */gh/* .config/gh/* > seen; touch up"] {
        let mut start = std::process::Command::new(STAND_IN);
        start.arg(world.path("home")).arg(&person).arg(world.mechanism.as_str()).arg(command);
        start.stdout(std::process::Stdio::null());
        let mut daemon = start.env("HOME", &person).spawn().unwrap();
        until("it has tried", || person.join("up").exists()).await;
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        fs::remove_file(person.join("up")).unwrap();
    }
    let _swept = world.processes.sweep();
    assert_eq!(fs::read_to_string(person.join("seen")).unwrap(), "");
    assert!(person.join(".config/gh/hosts.yml").exists());
}

async fn has_no_way_to_loopback(world: World) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    refused(&world, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    refused(
        &world,
        &format!(
            "exec 3<>/dev/udp/127.0.0.1/{port} && echo x >&3 && test -z \"$(ls /sys/class/net 2>/dev/null)\" && false"
        ),
    )
    .await;
    let mut launch = world.launch(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo there"));
    launch.network = true;
    let process = world.processes.start(launch).await.unwrap();
    assert_eq!(process.wait().await.exit_code, Some(0), "an agent that has the network has it");
}

async fn follows_no_link_out(world: World) {
    std::os::unix::fs::symlink(world.path("outside"), world.path("root/link")).unwrap();
    std::os::unix::fs::symlink(world.path("home/token"), world.path("root/token")).unwrap();
    refused(&world, "echo x > link/file").await;
    refused(&world, "cat link/file").await;
    refused(&world, "cat token").await;
    assert_eq!(fs::read_to_string(world.path("outside/file")).unwrap(), "not yours");
}

async fn loses_a_race_of_links(world: World) {
    let command = format!(
        "mkdir -p real; echo mine > real/file
         ( for i in $(seq 300); do ln -sfn real link; ln -sfn {} link; done ) &
         for i in $(seq 300); do cat link/file 2>/dev/null; echo x > link/file 2>/dev/null; done; wait; true",
        world.path("outside").display()
    );
    let (text, _) = world.say(&command).await;
    assert!(!text.contains("not yours"));
    assert_eq!(fs::read_to_string(world.path("outside/file")).unwrap(), "not yours");
}

async fn sees_nothing_of_other_processes(world: World) {
    let own = std::process::id();
    for file in ["environ", "maps", "root/etc/hostname", "cwd/", "fd/"] {
        refused(&world, &format!("test $$ != {own} && ls -l /proc/{own}/{file} && cat /proc/{own}/{file}")).await;
    }
    refused(&world, &format!("test $$ != {own} && head -c1 /proc/{own}/mem")).await;
    let (text, _) = world.say("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^CARGO_MANIFEST_DIR").await;
    assert_eq!(text, "");
}

async fn traces_nobody_outside(world: World) {
    let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = victim.id();
    // A debugger is not everywhere; a program that reads another's memory takes the same permission.
    let program = format!(
        "perl -e '$r = syscall(101, 16, {pid}, 0, 0); exit($r == 0 ? 0 : 1)'" // PTRACE_ATTACH
    );
    if cfg!(target_arch = "x86_64") {
        refused(&world, &program).await;
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("TracerPid:\t0"));
    victim.kill().unwrap();
    victim.wait().unwrap();
}

async fn signals_nobody_outside(world: World) {
    let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    refused(&world, &format!("test $$ != {0} && kill -9 {0}", victim.id())).await;
    assert_eq!(victim.try_wait().unwrap(), None);
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// Connects to what the arguments name: a path, or `@NAME` for an abstract one.
const CONNECT: &str = r#"perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1;
    $n = shift; $n =~ s/^@/\0/; connect(S, pack_sockaddr_un($n)) or exit 2; exit 0'"#;

async fn has_no_way_to_abstract_sockets(world: World) {
    let name = format!("abide-test-{}-{:?}", std::process::id(), world.mechanism);
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    for network in [false, true] {
        let mut launch = world.launch(&format!("{CONNECT} @{name}"));
        launch.network = network;
        let process = world.processes.start(launch).await.unwrap();
        assert_ne!(process.wait().await.exit_code, Some(0), "network {network}");
    }
}

async fn has_no_way_to_sockets_with_a_path(world: World) {
    let path = world.path("outside/socket");
    let _listener = UnixListener::bind(&path).unwrap();
    refused(&world, &format!("{CONNECT} {}", path.display())).await;
}

async fn has_no_powers(world: World) {
    let (text, _) = world
        .say("grep -E 'Cap(Prm|Eff|Inh|Amb)|NoNewPrivs|Seccomp:' /proc/self/status | awk '{print $2}' | sort -u")
        .await;
    assert_eq!(text, "0000000000000000\n1\n2\n");
    refused(&world, "mount -t tmpfs x $PWD").await;
    refused(&world, "mknod dev b 8 0").await;
}

async fn cannot_end_or_read_its_supervisor(world: World) {
    let (text, code) = world.say("kill -9 $PPID; kill -STOP $PPID; cat /proc/$PPID/environ | head -c 10; readlink /proc/$PPID/fd/3 /proc/$PPID/exe; echo still here").await;
    assert_eq!((text.as_str(), code), ("still here\n", Some(0)));
}

async fn inherits_no_descriptors(world: World) {
    // Open in this process, and not marked to be closed: as a careless library leaves them.
    let careless = fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).unwrap();
    let (text, _) = world.say("ls /proc/self/fd").await;
    assert_eq!(text, "0\n1\n2\n3\n", "the last one is the folder that is listed");
}

async fn a_workspace_around_the_home_shows_nothing_of_it(world: World) {
    let mut launch = world.launch("cat home/token; ls home; echo x > outside/file");
    (launch.root, launch.cwd) = (world.path(""), world.path(""));
    launch.root = launch.root.components().collect();
    match (world.mechanism, world.processes.start(launch).await) {
        (Mechanism::Bubblewrap, Ok(process)) => {
            process.wait().await;
            assert_eq!(process.output().stdout.whole().unwrap(), b"");
            assert_eq!(fs::read_to_string(world.path("outside/file")).unwrap(), "x\n", "the rest is its workspace");
        }
        // It can't hide a part of what it allows.
        (Mechanism::Landlock, Err(error)) => assert_eq!(error.code, ErrorCode::WorkspaceTooWide),
        (mechanism, other) => panic!("{mechanism:?} {other:?}"),
    }
    let mut launch = world.launch("true");
    launch.root = world.path("home");
    assert_eq!(world.processes.start(launch).await.unwrap_err().code, ErrorCode::WorkspaceTooWide);
}

async fn a_workspace_that_was_turned_elsewhere_is_refused(world: World) {
    // What an agent that may write to a folder could do to the workspace of another below it.
    fs::remove_dir(world.path("root")).unwrap();
    std::os::unix::fs::symlink(world.path("outside"), world.path("root")).unwrap();
    assert_eq!(world.processes.start(world.launch("echo x > file")).await.unwrap_err().code, ErrorCode::BadFolder);
    assert_eq!(fs::read_to_string(world.path("outside/file")).unwrap(), "not yours");
}

async fn a_workspace_of_another_user_can_be_worked_in(world: World) {
    if !rustix::process::geteuid().is_root() || world.mechanism == Mechanism::Landlock {
        println!("not tested here: it takes the superuser, and a sandbox in which that is safe");
        return;
    }
    std::os::unix::fs::chown(world.path("root"), Some(12345), Some(12345)).unwrap();
    let (text, code) = world.say("echo x > file && cat file && cat /proc/self/status | grep CapEff").await;
    assert_eq!((text.as_str(), code), ("x\nCapEff:\t000000000000000b\n", Some(0)));
    refused(&world, "cat /etc/shadow").await;
    refused(&world, "chmod 777 /etc/passwd").await;
}

async fn reads_and_writes_what_it_is_given_besides(world: World) {
    fs::create_dir(world.path("git")).unwrap();
    let outside = world.path("outside/file");
    let mut launch = world.launch(&format!("cat {0}; touch ../git/there; echo x > {0}", outside.display()));
    (launch.extra_read, launch.extra_write) = (vec![outside.clone()], vec![world.path("git")]);
    let process = world.processes.start(launch).await.unwrap();
    assert_ne!(process.wait().await.exit_code, Some(0));
    assert_eq!(process.output().stdout.whole().unwrap(), b"not yours");
    assert!(world.path("git/there").exists());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not yours");
    // A link that took its place leads nowhere.
    fs::remove_file(&outside).unwrap();
    std::os::unix::fs::symlink(world.path("home/token"), &outside).unwrap();
    let mut launch = world.launch(&format!("cat {}", outside.display()));
    launch.extra_read = vec![outside];
    let process = world.processes.start(launch).await.unwrap();
    assert_ne!(process.wait().await.exit_code, Some(0));
}
