//! `abide doctor`, where no daemon runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::place::{Place, document};

fn checks(report: &Value) -> BTreeMap<&str, &Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().map(|check| (check["name"].as_str().unwrap(), check)).collect()
}

#[test]
fn a_place_without_a_home_is_in_order() {
    let place = Place::empty();
    let ran = place.command(&["doctor", "--json"]).env("PATH", place.path("nothing")).output().unwrap();
    let report = document(&String::from_utf8(ran.stdout).unwrap());
    assert_eq!(report["ok"], true);
    let checks = checks(&report);
    assert_eq!(checks["home"]["found"], "home does not exist yet; the daemon makes it");
    assert_eq!(checks["daemon"]["verdict"], "warn");
    assert!(checks["daemon"]["fix"].as_str().unwrap().contains("abide daemon start"));
    assert_eq!(checks["ledger"]["verdict"], "ok");
    let missing = "there is no git in PATH that can be used";
    assert_eq!((&checks["git"]["verdict"], &checks["git"]["found"]), (&"warn".into(), &missing.into()));
    assert!(!place.home().exists(), "looking makes no home");
    let said = place.says(&["doctor"]);
    assert!(said.starts_with("VERDICT  WHAT       FOUND\nok       home       home does not exist yet"), "{said}");
    assert!(["sandbox", "processes", "memory"].iter().all(|name| checks.contains_key(*name)), "{report}");
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["verdict"] == "ok", check["fix"].is_null(), "what is not in order says what to do: {check}");
    }
}

#[test]
fn what_is_wrong_comes_with_what_to_do() {
    let place = Place::seeded();
    place.write("home/config.toml", "modell = \"x/y\"\n");
    let token = place.write("home/token", "secret\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = place.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(document(&ran.err)["error"], "2 checks failed");
    let report = document(&ran.out);
    assert_eq!(report["ok"], false);
    let checks = checks(&report);
    assert_eq!(checks["token"]["found"], "others may read home/token (mode 644)");
    assert_eq!(checks["token"]["fix"], "chmod 600 home/token");
    let found = checks["config"]["found"].as_str().unwrap();
    assert_eq!(found, "home/config.toml: no setting is called \"modell\"; did you mean model?");
    let ledger = checks["ledger"]["found"].as_str().unwrap();
    assert!(ledger.contains(&crate::home::seeded().facts_for_people()), "{ledger}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    place.write("home/config.toml", "log = \"warn\"\n");
    assert_eq!(place.json(&["doctor"])["ok"], true);
}

#[test]
fn a_low_limit_of_open_files_is_told() {
    let place = Place::empty();
    let check = |hard: u32| {
        let abide = place.command(&["doctor", "--json"]);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -n {hard} && exec \"$0\" doctor --json")]).arg(abide.get_program());
        shell.current_dir(abide.get_current_dir().unwrap()).env_clear().env("ABIDE_HOME", "home");
        let report = document(&String::from_utf8(shell.output().unwrap().stdout).unwrap());
        let check = checks(&report)["files"].clone();
        (check["verdict"].as_str().unwrap().to_owned(), check["found"].as_str().unwrap().to_owned())
    };
    assert_eq!(check(600), ("warn".to_owned(), "600 open at most; 300 connections at once".to_owned()));
    // As many as there may be.
    assert_eq!(check(4_608), ("ok".to_owned(), "4,608 open at most; 4,096 connections at once".to_owned()));
}
