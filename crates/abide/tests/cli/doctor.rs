//! `abide doctor`, where no daemon runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::place::{Place, document};

fn checks(report: &Value) -> BTreeMap<&str, &Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().map(|check| (check["name"].as_str().unwrap(), check)).collect()
}

#[test]
fn a_place_without_a_home_is_in_order() {
    let place = Place::empty();
    let report = place.json(&["doctor"]);
    assert_eq!(report["ok"], true);
    let checks = checks(&report);
    assert_eq!(checks["home"]["found"], "home does not exist yet; the daemon makes it");
    assert_eq!(checks["daemon"]["verdict"], "warn");
    assert!(checks["daemon"]["fix"].as_str().unwrap().contains("abide daemon start"));
    assert_eq!(checks["ledger"]["verdict"], "ok");
    assert_eq!((&checks["git"]["verdict"], &checks["git"]["found"]), (&"warn".into(), &"not found".into()), "no $PATH");
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
