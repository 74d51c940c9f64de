//! Marks on folders, by which daemons see each other.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abide_effects::workspace::{FolderMarks, ForeignHolder, MarkOwner};

use super::Ground;

fn folder(path: PathBuf) -> PathBuf {
    fs::create_dir_all(&path).unwrap();
    path
}

fn mark(salt: u64, folder: &Path) -> Result<FolderMarks, ForeignHolder> {
    MarkOwner::new(salt).mark_folder(folder).unwrap()
}

#[test]
fn inside_and_around_count_and_beside_does_not() {
    let ground = Ground::empty();
    let middle = folder(ground.repo.join("middle"));
    let held = mark(1, &middle).unwrap();
    for (path, free) in [("", false), ("middle", false), ("middle/inner", false), ("middle-too", true), ("other", true)]
    {
        let wanted = folder(ground.repo.join(path));
        let seen = MarkOwner::new(2).find_foreign_holder(&wanted);
        let taken = mark(2, &wanted);
        assert_eq!((taken.is_ok(), seen.is_none()), (free, free), "{path}");
        if let Err(holder) = taken {
            assert_eq!(holder.pid, std::process::id());
            // The owner of the marks is not kept out by them.
            assert!(mark(1, &wanted).is_ok(), "{path}");
        }
    }
    drop(held);
    assert!(mark(2, &middle).is_ok());
}

/// A command of the agent may lock its own folder with `flock`; such a lock keeps no agent out.
#[test]
fn marks_and_other_locks_do_not_see_each_other() {
    let ground = Ground::empty();
    let place = folder(ground.repo.clone());
    let _held = mark(1, &place).unwrap();
    let locked = fs::File::open(&place).unwrap();
    locked.try_lock().unwrap();
    let inner = folder(place.join("inner"));
    fs::File::open(&inner).unwrap().try_lock().unwrap();
    assert!(mark(1, &inner).is_ok());
}

#[test]
fn of_many_that_come_at_once_at_most_one_gets_in() {
    let ground = Ground::empty();
    let places = ["", "a", "a/b", "a/b/c"].map(|path| folder(ground.repo.join(path)));
    let taken: Vec<_> = std::thread::scope(|scope| {
        let comers: Vec<_> = (0..16_u64)
            .map(|number| (number, &places[usize::try_from(number).unwrap() % places.len()]))
            .map(|(number, place)| scope.spawn(move || mark(number, place)))
            .collect();
        comers.into_iter().map(|comer| comer.join().unwrap()).collect()
    });
    assert!(taken.iter().filter(|taken| taken.is_ok()).count() <= 1);
}

/// Says to a copy of this test which folder it is to hold.
const HOLD: &str = "ABIDE_TEST_HOLD";

#[test]
fn a_process_that_is_killed_lets_go() {
    if let Some(place) = std::env::var_os(HOLD) {
        let _held = mark(1, Path::new(&place)).unwrap();
        println!("\nheld");
        // Until it is killed, or the process that waits for it is gone.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let ground = Ground::empty();
    let place = folder(ground.repo.clone());
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workspace::folder_mark::a_process_that_is_killed_lets_go", "--nocapture"])
        .env(HOLD, &place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(holder.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap() == "held"));
    assert_eq!(mark(1, &place).unwrap_err(), ForeignHolder { folder: place.clone(), pid: holder.id() });
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(mark(1, &place).is_ok());
}

#[test]
fn a_folder_that_is_not_there_is_nobodys() {
    let ground = Ground::empty();
    assert!(mark(1, &ground.repo.join("nowhere")).is_ok());
}
