//! Who writes where.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use abide_effects::workspace::{Workspace, occupy};

use super::{Ground, refused};

fn folder(path: &Path) -> Workspace {
    fs::create_dir_all(path).unwrap();
    let identity = abide_effects::FileIdentity::of(path).unwrap();
    Workspace { path: path.to_owned(), identity, git: None }
}

#[test]
fn one_agent_at_a_time_and_the_other_is_told_who() {
    let ground = Ground::empty();
    let place = folder(&ground.repo);
    let held = occupy(&place, &ground.home, "ada").unwrap();
    let refusal = occupy(&place, &ground.home, "ben").unwrap_err();
    assert_eq!((refusal.code, refusal.hint.as_str()), ("occupied", "use mode worktree, or stop ada"));
    assert!(refusal.message.contains("ada is writing in"), "{}", refusal.message);
    assert_eq!(refused(occupy(&place, &ground.home, "ada")), "occupied");
    held.release().unwrap();
    occupy(&place, &ground.home, "ben").unwrap().release().unwrap();
}

#[test]
fn inside_and_around_count_and_beside_does_not() {
    let ground = Ground::empty();
    let middle = folder(&ground.repo.join("middle"));
    let _held = occupy(&middle, &ground.home, "ada").unwrap();
    for (path, free) in [("", false), ("middle/inner", false), ("middle-too", true), ("other", true)] {
        let taken = occupy(&folder(&ground.repo.join(path)), &ground.home, "ben");
        assert_eq!(taken.is_ok(), free, "{path}");
    }
    // The same agent may go on below.
    occupy(&folder(&ground.repo.join("middle/inner")), &ground.home, "ada").unwrap().release().unwrap();
}

#[test]
fn a_file_that_nobody_holds_holds_nobody_up() {
    let ground = Ground::empty();
    let place = folder(&ground.repo);
    // Without a release the file stays.
    drop(occupy(&place, &ground.home, "ada").unwrap());
    assert_eq!(fs::read_dir(ground.home.join("occupancy")).unwrap().count(), 2);
    let held = occupy(&folder(&ground.repo.join("inner")), &ground.home, "ben").unwrap();
    held.release().unwrap();
    // The door alone stays.
    assert_eq!(fs::read_dir(ground.home.join("occupancy")).unwrap().count(), 1);
}

/// Says to a copy of this test which ground it is to hold.
const HOLD: &str = "ABIDE_TEST_HOLD";

#[test]
fn a_process_that_is_killed_lets_go() {
    if let Some(ground) = std::env::var_os(HOLD) {
        let ground = Path::new(&ground);
        let _held = occupy(&folder(&ground.join("repo")), &ground.join("home"), "ada").unwrap();
        println!("\nheld");
        // Until it is killed, or whoever waits for it is gone.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let ground = Ground::empty();
    let place = folder(&ground.repo);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workspace::occupancy::a_process_that_is_killed_lets_go", "--nocapture"])
        .env(HOLD, ground.repo.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(holder.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap() == "held"));
    let refusal = occupy(&place, &ground.home, "ben").unwrap_err();
    assert!(refusal.message.starts_with("ada is writing in"), "{}", refusal.message);
    holder.kill().unwrap();
    holder.wait().unwrap();
    occupy(&place, &ground.home, "ben").unwrap().release().unwrap();
}

#[test]
fn of_many_that_come_at_once_one_gets_in() {
    let ground = Ground::empty();
    let places = ["", "a", "a/b", "a/b/c"].map(|path| folder(&ground.repo.join(path)));
    let agents: Vec<String> = (0..16).map(|number| format!("agent-{number}")).collect();
    let home = &ground.home;
    let taken: Vec<_> = std::thread::scope(|scope| {
        let places = &places;
        let comers: Vec<_> = agents
            .iter()
            .enumerate()
            .map(|(number, agent)| scope.spawn(move || occupy(&places[number % places.len()], home, agent)))
            .collect();
        comers.into_iter().map(|comer| comer.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 1);
}

#[test]
fn a_worktree_has_a_place_of_its_own() {
    let ground = Ground::new();
    let _held = occupy(&ground.workspace(), &ground.home, "ada").unwrap();
    let worktree = ground.worktree("one");
    occupy(&folder(&worktree.path), &ground.home, "ben").unwrap().release().unwrap();
}

#[test]
fn a_home_that_can_not_be_written_is_an_error() {
    let ground = Ground::new();
    let home = ground.repo.join("kept.txt");
    assert_eq!(refused(occupy(&ground.workspace(), &home, "ada")), "io");
}
