//! `abide.toml` of a workspace: what it sets, and that nothing of it counts before its content is trusted.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::place::{Daemon, Place, Ran, document, text};

/// A place whose home has a model, and whose folder `work` has an `abide.toml`.
fn workspace(content: &str) -> Place {
    let place = Place::empty();
    place.write("home/config.toml", "model = \"ollama/big\"\n");
    place.write("work/abide.toml", content);
    place
}

/// `abide` in a folder of the place.
fn inside(place: &Place, folder: &str, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.current_dir(place.path(folder)).env("ABIDE_HOME", place.home());
    command
}

/// The model that agents get which are made in this folder, where it came from, and what was said on stderr.
fn model(place: &Place, folder: &str) -> (String, String, String) {
    let ran = Ran::of(inside(place, folder, &["config", "get", "model", "--json"]).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let got = document(&ran.out);
    let shown = |name: &str| got[name].as_str().unwrap().to_owned();
    (shown("value"), shown("origin"), ran.err)
}

fn real(place: &Place, name: &str) -> String {
    place.path(name).canonicalize().unwrap().display().to_string()
}

const SMALL: &str = "model = \"ollama/small\"\n";

#[test]
fn a_trusted_file_comes_between_the_environment_and_config_toml() {
    let place = workspace("# Ours.\nmodel = \"ollama/small\"\nfallback = [\"ollama/other\"]\n");
    let work = real(&place, "work");
    let trusted = place.json(&["config", "trust", "work"]);
    assert_eq!(trusted["workspace"], work.as_str());
    assert_eq!(trusted["file"], format!("{work}/abide.toml"));
    assert_eq!(trusted["settings"], json!({ "model": "ollama/small", "fallback": ["ollama/other"] }));
    assert_eq!(trusted["hash"].as_str().unwrap().len(), 64);
    assert_eq!(model(&place, "work"), ("ollama/small".into(), format!("abide.toml of {work}"), String::new()));
    let shown = Ran::of(inside(&place, "work", &["config", "show", "--origin"]).output().unwrap());
    let line = |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("model").contains("ollama/small") && line("model").contains("abide.toml of "), "{}", shown.out);
    assert!(line("fallback").contains("ollama/other") && line("log").ends_with("default"), "{}", shown.out);
    let mut command = inside(&place, "work", &["config", "get", "model", "--json"]);
    let set = Ran::of(command.env("ABIDE_MODEL", "ollama/set").output().unwrap());
    assert_eq!(document(&set.out)["origin"], "environment ABIDE_MODEL");
    // It counts in its own folder: not in one below, and not in one beside.
    fs::create_dir(place.path("work/below")).unwrap();
    for folder in ["work/below", "home"] {
        let (value, origin, err) = model(&place, folder);
        assert_eq!((value.as_str(), err.as_str()), ("ollama/big", ""));
        assert!(origin.starts_with("file "), "{origin}");
    }
    let said = place.says(&["config", "trust", "work"]);
    assert!(said.contains("is trusted as it is now") && said.contains("  model = ollama/small\n"), "{said}");
}

#[test]
fn nothing_is_used_of_a_file_that_is_not_trusted_or_changed() {
    let place = workspace(SMALL);
    let work = real(&place, "work");
    let unused = |why: &str| {
        let (value, origin, err) = model(&place, "work");
        assert_eq!(value, "ollama/big");
        assert!(origin.starts_with("file "), "{origin}");
        let command = format!("; look at it, then `abide config trust {work}`\n");
        assert_eq!(err, format!("abide: {work}/abide.toml {why}, so nothing of it is used{command}"));
    };
    unused("is not trusted");
    place.says(&["config", "trust", "work"]);
    assert_eq!(model(&place, "work").0, "ollama/small");
    place.write("work/abide.toml", format!("{SMALL}# one byte more\n"));
    unused("changed since it was trusted");
    place.write("work/abide.toml", SMALL);
    assert_eq!(model(&place, "work").0, "ollama/small", "the content that was trusted is trusted");
    place.write("work/abide.toml", "model = \"ollama/third\"\n");
    unused("changed since it was trusted");
    place.says(&["config", "trust", "work"]);
    assert_eq!(model(&place, "work").0, "ollama/third");
    assert_eq!(place.json(&["config", "untrust", "work"]), json!({ "workspace": work, "was_trusted": true }));
    unused("is not trusted");
    assert_eq!(place.json(&["config", "untrust", "work"])["was_trusted"], false);
}

/// The trust of one folder says nothing of another, whatever name leads there.
#[test]
fn a_folder_is_trusted_by_its_real_path() {
    let place = workspace(SMALL);
    symlink(place.path("work"), place.path("alias")).unwrap();
    place.says(&["config", "trust", "alias"]);
    assert_eq!(model(&place, "work").0, "ollama/small");
    place.write("other/abide.toml", SMALL);
    assert_eq!(model(&place, "other").0, "ollama/big");
    let records = place.home().join("trusted");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&records), 0o700);
    for record in fs::read_dir(&records).unwrap() {
        assert_eq!(mode(&record.unwrap().path()), 0o600);
    }
}

#[test]
fn only_a_regular_file_of_moderate_size_is_read() {
    let place = workspace(SMALL);
    place.says(&["config", "trust", "work"]);
    let file = place.path("work/abide.toml");
    place.write("elsewhere.toml", SMALL);
    let make: [(&str, &dyn Fn()); 4] = [
        ("it is a link", &|| symlink(place.path("elsewhere.toml"), &file).unwrap()),
        ("it is a pipe", &|| mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()),
        ("it is a folder", &|| fs::create_dir(&file).unwrap()),
        ("it has more than 65536 bytes", &|| File::create(&file).unwrap().set_len(1 << 40).unwrap()),
    ];
    for (problem, make) in make {
        fs::remove_file(&file).unwrap();
        make();
        let began = Instant::now();
        let (value, _, err) = model(&place, "work");
        assert_eq!(value, "ollama/big", "{problem}");
        assert!(err.contains("abide.toml is not read: ") && err.contains(problem), "{err}");
        let error = place.refused(1, &["config", "trust", "work"]);
        assert!(error.contains("can't read ") && error.contains(problem), "{error}");
        assert!(began.elapsed() < Duration::from_secs(20), "{problem}: nothing is waited for");
        if fs::remove_file(&file).is_err() {
            fs::remove_dir(&file).unwrap();
        }
        place.write("work/abide.toml", SMALL);
        assert_eq!(model(&place, "work").0, "ollama/small", "the file that was trusted is back");
    }
}

#[test]
fn a_file_that_is_wrong_is_not_trusted() {
    let place = workspace("");
    let script = place.write("demo.json", r#"{ "rounds": [] }"#);
    let unnamed = format!("model = \"script/{}\"", text(&script));
    let cases = [
        ("modle = \"ollama/x\"", "no setting is called \"modle\"; did you mean model?"),
        ("model = 5", "model takes text in quotes, not a number"),
        ("model = \"ollma/x\"", "model: there is no provider \"ollma\""),
        ("model = \"script/demo.json\"", "model: write the whole path of the script"),
        ("fallback = [\"ollama/x\", \"script/demo.json\"]", "fallback: write the whole path of the script"),
        (unnamed.as_str(), "model: a workspace may name a script only if config.toml names it too"),
        ("sandbox = \"off\"", "a workspace may not set sandbox: it belongs in config.toml of the home"),
        ("[sandbox]\nmode = \"off\"", "a workspace may not set sandbox: it belongs in config.toml of the home"),
        ("[agent]\nsecrets = [\"TOKEN\"]", "a workspace may not set agent.secrets: it belongs in config.toml"),
        ("\"agent.secrets\" = [\"TOKEN\"]", "write agent.secrets without quotes around its dots"),
        ("model = ", "is not TOML"),
    ];
    for (content, wanted) in cases {
        place.write("work/abide.toml", content);
        let error = place.refused(1, &["config", "trust", "work"]);
        assert!(error.contains("work/abide.toml") && error.contains(wanted), "{content}: {error}");
        assert!(model(&place, "work").2.contains("is not trusted"), "{content}");
    }
    place.write("work/abide.toml", &unnamed);
    place.write("home/config.toml", format!("[models.\"script/{}\"]\n", text(&script)));
    place.says(&["config", "trust", "work"]);
    assert_eq!(model(&place, "work").0, format!("script/{}", text(&script)));
    // A script that the operator names no longer is no longer the workspace's to name.
    place.write("home/config.toml", "");
    let error = Ran::of(inside(&place, "work", &["config", "show"]).output().unwrap());
    assert!(error.code == Some(1) && error.err.contains("may name a script only"), "{}", error.err);
    assert!(place.run(&["config", "trust", "nowhere"]).err.contains("can't find nowhere"));
}

fn made(place: &Place, args: &[&str]) -> Value {
    let command = [&["agent", "create"], args, &["--workspace", "work", "--json"]].concat();
    let ran = place.run(&command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    document(&ran.out)
}

#[test]
fn agents_that_are_made_in_the_workspace_get_what_it_sets() {
    let place = Place::empty();
    let script = place.write("demo.json", r#"{ "rounds": [{ "text": "As the workspace wants it." }] }"#);
    let name = format!("script/{}", text(&script));
    place.write("home/config.toml", format!("[models.{name:?}]\n"));
    place.write("work/abide.toml", format!("model = {name:?}\nfallback = [\"script/echo\"]\n"));
    let daemon = Daemon::start(&place, &[]);
    let before = made(&place, &["before"]);
    assert_eq!(before["model"]["name"], "script/echo");
    let warning = before["warning"].as_str().unwrap();
    assert!(warning.contains("abide.toml is not trusted") && warning.contains("`abide config trust "), "{warning}");
    // A daemon that runs needs no restart for it.
    place.says(&["config", "trust", "work"]);
    let trusted = made(&place, &["trusted"]);
    assert_eq!((&trusted["model"]["name"], &trusted["model"]["fallback"]), (&json!(name), &json!(["script/echo"])));
    assert_eq!(trusted["warning"], Value::Null);
    assert_eq!(place.run(&["send", "trusted", "--wait", "go"]).out, "As the workspace wants it.\n");
    let own = made(&place, &["own", "--model", "script/echo"]);
    assert_eq!(
        (&own["model"]["name"], &own["model"]["fallback"]),
        (&json!("script/echo"), &json!([])),
        "no model is asked twice"
    );
    let default = made(&place, &["default", "--model", "default", "--fallback", "none"]);
    assert_eq!((&default["model"]["name"], &default["model"]["default"]), (&json!("script/echo"), &json!(true)));
    assert_eq!(default["model"]["fallback"], json!([]));
    // Elsewhere nothing of it counts.
    fs::create_dir(place.path("work/below")).unwrap();
    let below = place.json(&["agent", "create", "below", "--workspace", "work/below"]);
    assert_eq!((&below["model"]["name"], &below["warning"]), (&json!("script/echo"), &Value::Null));
    place.write("work/abide.toml", "model = \"ollama/evil\"\n");
    let changed = place.run(&["agent", "create", "changed", "--workspace", "work"]);
    assert!(
        changed.err.contains("changed since it was trusted") && changed.out.contains("with script/echo"),
        "{changed:?}"
    );
    let shown = place.json(&["agent", "show", "trusted"]);
    assert_eq!(shown["model"]["name"], name.as_str(), "those that are there keep what they got");
    drop(daemon);
    place.says(&["config", "trust", "work"]);
    let mut command = place.command(&["up", "--listen", "127.0.0.1:0", "--json"]);
    command.env("ABIDE_MODEL", "script/echo");
    let _daemon = Daemon::of(command);
    let outranked = made(&place, &["outranked"]);
    assert_eq!(outranked["model"]["name"], "script/echo", "the daemon's environment outranks the workspace");
}

#[test]
fn a_trusted_file_that_does_not_fit_any_more_makes_no_agent() {
    let place = Place::empty();
    let script = place.write("demo.json", r#"{ "rounds": [] }"#);
    let name = format!("script/{}", text(&script));
    place.write("home/config.toml", format!("[models.{name:?}]\n"));
    place.write("work/abide.toml", format!("model = {name:?}\n"));
    place.says(&["config", "trust", "work"]);
    let _daemon = Daemon::start(&place, &[]);
    fs::remove_file(&script).unwrap();
    let ran = place.run(&["agent", "create", "a", "--workspace", "work"]);
    assert!(
        ran.code != Some(0) && ran.err.contains("work/abide.toml: ") && ran.err.contains("does not exist"),
        "{ran:?}"
    );
}

#[test]
fn doctor_lists_what_is_trusted_and_what_changed_since() {
    let place = workspace(SMALL);
    for folder in ["changed", "gone"] {
        place.write(&format!("{folder}/abide.toml"), SMALL);
        place.says(&["config", "trust", folder]);
    }
    place.says(&["config", "trust", "work"]);
    place.write("changed/abide.toml", "model = \"ollama/other\"\n");
    fs::remove_dir_all(place.path("gone")).unwrap();
    let ran = place.run(&["doctor", "--json"]);
    let checks = document(&ran.out);
    let found = |folder: &str| {
        let path = format!("/{folder}/abide.toml");
        let checks = checks["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["found"].as_str().unwrap().contains(&path)).unwrap();
        assert_eq!(check["name"], "abide.toml");
        (
            check["verdict"].as_str().unwrap(),
            check["found"].as_str().unwrap(),
            check["fix"].as_str().unwrap_or_default(),
        )
    };
    assert!(matches!(found("work"), ("ok", text, "") if text.ends_with("/work/abide.toml is trusted")));
    let (verdict, text, fix) = found("changed");
    assert!(
        verdict == "warn" && text.contains("changed since it was trusted") && fix.contains("config trust"),
        "{fix}"
    );
    let (verdict, text, fix) = found("gone");
    assert!(verdict == "warn" && text.contains("does not exist any more") && fix.contains("config untrust"), "{fix}");
    assert_eq!(place.json(&["config", "untrust", "gone"])["was_trusted"], true);
}
