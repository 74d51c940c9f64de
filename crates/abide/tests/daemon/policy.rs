//! The policy, from a model's call to a person's answer and back (issue 5.5).

use std::fs;

use serde_json::{Value, json};

use crate::hands::{LONG_MS, calls, exec, lines};
use crate::served::{Served, of_kind, until};

/// Every command that writes into the log.
const ASK: &str = "[[rule]]\naction = \"ask\"\ncommand = \"*>> log\"\nwhy = \"the log is precious\"\n";
const WRITE: &str = "echo ran >> log";

fn served(policy: &str) -> Served {
    let mut served = Served::down("");
    served.place.write("home/policy.toml", policy);
    served.up();
    served
}

impl Served {
    /// The approvals that were asked for, once there are so many.
    fn until_asked(&self, id: &str, count: usize) -> Vec<String> {
        until(&format!("{count} approvals of {id}"), || {
            let asked = self.facts(id, "approval.requested");
            let ids = asked.iter().map(|asked| asked["approval_id"].as_str().unwrap().to_owned());
            (asked.len() >= count).then(|| ids.collect())
        })
    }

    fn answer(&self, id: &str, approval: &str, word: &str) -> u16 {
        self.call("POST", &format!("/v1/agents/{id}/approvals/{approval}/{word}"), &[], None).status
    }
}

#[test]
fn a_call_waits_for_a_person_everywhere_and_is_made_once() {
    let mut served = served(ASK);
    let folder = served.folder("work");
    let log = folder.join("log");
    let other = exec("echo other >> log", LONG_MS);
    let rounds = json!([
        { "text": "I need the log.", "tools": [exec(WRITE, LONG_MS), exec("echo free > free", LONG_MS)] },
        calls(other),
        calls(exec(WRITE, LONG_MS)),
        calls(exec(WRITE, LONG_MS)),
        { "text": "Only once, then." },
    ]);
    served.create_in("worker", &folder, &rounds);
    let message = served.send("worker", "write the log");
    let first = served.until_asked("worker", 1).remove(0);
    let summary = served.until_asleep("worker");
    assert_eq!(lines(&log), 0, "nobody said yes");
    assert_eq!(lines(&folder.join("free")), 1, "the other call of the round ran");
    let result = &served.results("worker", "ExecCommand")[0];
    assert_eq!((&result["error"]["code"], &result["approval_id"]), (&json!("needs_approval"), &json!(first)));
    // Every surface says what is asked, and how it is answered.
    let asks = "ExecCommand: echo ran >> log [the log is precious]";
    assert_eq!(summary["decision"]["reason"], "approval_pending");
    assert_eq!(summary["scheduling_posture"], "waiting_for_operator");
    assert_eq!(summary["pending_approvals"][0]["summary"], asks);
    let why = served.get("/v1/agents/worker/why")["sentence"].as_str().unwrap().to_owned();
    assert!(why.contains(asks) && why.contains(&format!("abide approval grant --agent worker {first}")), "{why}");

    served.kill_and_up();
    assert_eq!(served.get("/v1/agents/worker")["pending_approvals"][0]["approval_id"], json!(first));
    assert_eq!(served.answer("worker", &first, "grant"), 200);
    // It makes another call first: that needs a yes of its own, and the first one still stands.
    let second = served.until_asked("worker", 2).remove(1);
    served.until_asleep("worker");
    assert_eq!(lines(&log), 0, "a yes is for one call");
    assert_eq!(served.answer("worker", &second, "deny"), 200);
    let third = served.until_asked("worker", 3).remove(2);
    served.until_asleep("worker");
    assert_eq!(lines(&log), 1, "the same call ran, and the same again did not");
    assert_eq!(served.answer("worker", &third, "deny"), 200);
    let told = until("the answer", || {
        let briefs = served.facts("worker", "brief.recorded");
        briefs.into_iter().find(|brief| brief["message_id"] == message.as_str() && brief["kind"] == "result")
    });
    assert_eq!((&told["text"], lines(&log)), (&json!("Only once, then."), 1));

    assert_eq!(served.answer("worker", &first, "deny"), 409, "it is decided once");
    let approvals = served.items("/v1/agents/worker/approvals");
    let statuses: Vec<&Value> = approvals.iter().map(|approval| &approval["status"]).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "granted").count(), 1, "{statuses:?}");
    let used = approvals.iter().find(|approval| approval["approval_id"] == first.as_str()).unwrap();
    assert!(used["used_at"].is_string(), "{used}");
    let events = served.events("worker");
    assert_eq!(of_kind(&events, "approval.used").len(), 1);
    served.stop_and_verify();
}

#[test]
fn a_deadline_answers_by_its_default() {
    let rule = |default: &str| {
        format!("[[rule]]\naction = \"ask\"\nagent = \"{default}\"\ndeadline = \"1s\"\ndefault = \"{default}\"\n")
    };
    let mut served = served(&format!("{}{}", rule("deny"), rule("grant")));
    for (agent, ran) in [("deny", 0), ("grant", 1)] {
        let folder = served.folder(agent);
        let rounds = json!([calls(exec(WRITE, LONG_MS)), calls(exec(WRITE, LONG_MS)), { "text": "Done." }]);
        served.create_in(agent, &folder, &rounds);
        served.send(agent, "go");
        // Both asked first; a yes is used up, a no is asked about again.
        served.until_fact(agent, "approval.decided", |decided| decided["status"] == "expired");
        until("the second call", || (served.results(agent, "ExecCommand").len() >= 2).then_some(()));
        assert_eq!(lines(&folder.join("log")), ran, "{agent}");
        assert_eq!(served.facts(agent, "approval.used").len(), ran, "{agent}");
    }
    served.stop_and_verify();
}

#[test]
fn what_is_denied_never_runs_and_an_edit_counts_from_the_next_call_on() {
    let mut served = served("[[rule]]\naction = \"deny\"\ntool = \"Exec*\"\nwhy = \"no commands here\"\n");
    let folder = served.folder("work");
    let round = || [calls(exec(WRITE, LONG_MS)), json!({ "text": "Well." })];
    let rounds: Vec<Value> = [round(), round(), round()].into_iter().flatten().collect();
    served.create_in("worker", &folder, &json!(rounds));
    let go = |served: &Served| {
        let message = served.send("worker", "go");
        served.until_told("worker", &message);
        served.results("worker", "ExecCommand").pop().unwrap()
    };
    let refused = go(&served);
    assert_eq!(refused["error"]["code"], "refused_by_policy");
    assert!(refused["error"]["message"].as_str().unwrap().contains("no commands here"), "{refused}");
    // One that does not read changes nothing.
    served.place.write("home/policy.toml", "[[rule]]\naction = \"alow\"\n");
    assert_eq!(go(&served)["error"]["code"], "refused_by_policy");
    let report = served.place.run(&["doctor", "--json"]);
    assert!(report.out.contains("policy.toml, line 2: no action is called"), "{}", report.out);
    served.place.write("home/policy.toml", "# nothing is held back\n");
    assert_eq!(go(&served)["exit_code"], 0);
    assert_eq!(lines(&folder.join("log")), 1);
    served.stop_and_verify();
}

#[test]
fn a_policy_that_does_not_read_starts_no_daemon() {
    let served = Served::down("");
    served.place.write("home/policy.toml", "[[rule]]\naction = \"ask\"\ncomand = \"x\"\n");
    let error = served.place.refused(1, &["up", "--listen", "127.0.0.1:0"]);
    let said = "home/policy.toml, line 3: no key of a rule is called \"comand\"; did you mean command?";
    assert!(error.contains(said), "{error}");
    fs::remove_file(served.place.path("home/policy.toml")).unwrap();
}
