//! Which calls a policy lets run, asks for and refuses; and which policies it refuses.

use abide_effects::policy::Policy;
use abide_effects::tools;
use abide_kernel::id::AgentId;
use abide_kernel::input::{Ask, Does};
use abide_kernel::vocabulary::ApprovalDefault;
use serde_json::{Value, json};

fn judge(policy: &str, agent: &str, tool: &str, input: &Value) -> Does {
    let policy = Policy::parse(policy).unwrap_or_else(|fault| panic!("{policy}: {fault}"));
    let does = tools::read(tool, input);
    assert!(!matches!(does, Does::Refused(_)), "{tool} {input} makes no sense: {does:?}");
    policy.judge(&AgentId::new(agent).unwrap(), tool, input, does)
}

fn word(does: &Does) -> &'static str {
    match does {
        Does::Act(_) | Does::World(_) => "runs",
        Does::Ask(_) => "asks",
        Does::Refused(refusal) => {
            assert_eq!(refusal.code, "refused_by_policy");
            "refused"
        }
    }
}

fn asked(policy: &str, tool: &str, input: &Value) -> Ask {
    match judge(policy, "a", tool, input) {
        Does::Ask(ask) => *ask,
        other @ (Does::Act(_) | Does::World(_) | Does::Refused(_)) => panic!("{other:?}"),
    }
}

fn patch(paths: &[&str]) -> Value {
    let file = |path: &&str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n");
    json!({ "patch": paths.iter().map(file).collect::<String>() })
}

#[test]
fn commands_are_matched_whole_and_in_parts() {
    let push = "[[rule]]\naction = \"ask\"\ncommand = \"git push*\"";
    let status =
        "[[rule]]\naction = \"allow\"\ncommand = \"git status*\"\n[[rule]]\naction = \"deny\"\ncommand = \"*\"";
    for (policy, command, expected) in [
        (push, "git push", "asks"),
        (push, "git push origin main", "asks"),
        (push, "  git \t push  --force", "asks"),
        (push, "cd app && git push", "asks"),
        (push, "make;git push", "asks"),
        (push, "make\ngit push", "asks"),
        (push, "if make; then git push; fi", "asks"),
        (push, "echo $(git push 2>&1)", "asks"),
        (push, "(git push)", "asks"),
        (push, "GIT_TRACE=1 git push", "asks"),
        (push, "make || ! git push", "asks"),
        (push, "git pull", "runs"),
        (push, "echo git push", "runs"),
        (push, "mygit push", "runs"),
        (status, "git status", "runs"),
        (status, "git status --short\ngit status", "runs"),
        (status, "git status; rm -rf .", "refused"),
        (status, "git status && git push", "refused"),
        (status, "git status $(rm -rf .)", "refused"),
        (status, "git status `rm -rf .`", "refused"),
        (status, "git status | sh", "refused"),
        (status, "make", "refused"),
    ] {
        let does = judge(policy, "a", "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), expected, "{command:?}");
    }
    // What a running shell is told counts as much.
    let input = json!({ "task_id": "task_1", "input": "git push\n" });
    assert_eq!(word(&judge(push, "a", "TaskInput", &input)), "asks");
    // A rule about commands is about nothing else.
    assert_eq!(word(&judge(push, "a", "WriteFile", &json!({ "path": "git push", "content": "" }))), "runs");
}

#[test]
fn paths_are_matched_by_where_they_lead() {
    let deploy = "[[rule]]\naction = \"ask\"\npath = \"deploy/**\"";
    let docs = "[[rule]]\naction = \"allow\"\npath = \"docs/**\"\n[[rule]]\naction = \"deny\"\npath = \"**\"";
    let write = |path: &str| ("WriteFile", json!({ "path": path, "content": "x" }));
    let edit = |path: &str| ("EditFile", json!({ "path": path, "old": "a", "new": "b" }));
    for (policy, (tool, input), expected) in [
        (deploy, write("deploy/prod.yml"), "asks"),
        (deploy, edit("deploy/a/b/c"), "asks"),
        (deploy, write("./deploy//prod.yml"), "asks"),
        (deploy, write("src/../deploy/prod.yml"), "asks"),
        (deploy, write("/srv/app/deploy/prod.yml"), "asks"),
        (deploy, write("src/deploy.rs"), "runs"),
        (deploy, write("src/deploy/x"), "runs"),
        (deploy, ("ApplyPatch", patch(&["src/a", "deploy/b"])), "asks"),
        (deploy, ("ApplyPatch", patch(&["src/a", "src/b"])), "runs"),
        (deploy, ("ReadFile", json!({ "path": "deploy/prod.yml" })), "runs"),
        (docs, write("docs/a.md"), "runs"),
        (docs, write("docs/../src/a.rs"), "refused"),
        (docs, ("ApplyPatch", patch(&["docs/a", "docs/b"])), "runs"),
        (docs, ("ApplyPatch", patch(&["docs/a", "src/b"])), "refused"),
    ] {
        assert_eq!(word(&judge(policy, "a", tool, &input)), expected, "{tool} {input}");
    }
    let secrets = "[[rule]]\naction = \"deny\"\ntool = \"ReadFile\"\npath = \".env\"";
    assert_eq!(word(&judge(secrets, "a", "ReadFile", &json!({ "path": ".env" }))), "refused");
    assert_eq!(word(&judge(secrets, "a", "WriteFile", &json!({ "path": ".env", "content": "" }))), "runs");
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = "
        [[rule]]
        action = \"allow\"
        agent = \"trusted-*\"
        [[rule]]
        action = \"deny\"
        tool = \"WebFetch\"
        why = \"nothing leaves\"
        [[rule]]
        action = \"ask\"
        tool = \"*File\"
        [[rule]]
        action = \"ask\"
        tool = \"CreateTimer\"";
    let fetch = json!({ "url": "https://example.com/" });
    let read = json!({ "path": "a" });
    let timer = json!({ "summary": "s", "after_ms": 5 });
    for (agent, tool, input, expected) in [
        ("trusted-1", "WebFetch", &fetch, "runs"),
        ("other", "WebFetch", &fetch, "refused"),
        ("other", "ReadFile", &read, "asks"),
        ("other", "CreateTimer", &timer, "asks"),
        ("other", "ExecCommand", &json!({ "cmd": "ls" }), "runs"),
    ] {
        assert_eq!(word(&judge(policy, agent, tool, input)), expected, "{agent} {tool}");
    }
    let Does::Refused(refusal) = judge(policy, "other", "WebFetch", &fetch) else { panic!("it was let through") };
    assert!(refusal.message.contains("nothing leaves"), "{}", refusal.message);
    // A rule that names no tool leaves the agent's own records alone, and nobody is asked whether to ask.
    let all = "[[rule]]\naction = \"ask\"";
    assert_eq!(word(&judge(all, "a", "ExecCommand", &json!({ "cmd": "ls" }))), "asks");
    assert_eq!(word(&judge(all, "a", "CreateTimer", &timer)), "runs");
    let any = "[[rule]]\naction = \"ask\"\ntool = \"*\"";
    assert_eq!(word(&judge(any, "a", "CreateTimer", &timer)), "asks");
    assert_eq!(word(&judge(any, "a", "RequestApproval", &json!({ "summary": "s" }))), "runs");
    assert_eq!(word(&judge("", "a", "ExecCommand", &json!({ "cmd": "ls" }))), "runs");
}

#[test]
fn a_person_is_asked_about_the_very_call() {
    let policy = "[[rule]]\naction = \"ask\"\ndeadline = \"4h\"\ndefault = \"grant\"\nwhy = \"pushes need a person\"";
    let push = json!({ "cmd": "git push", "workdir": "app" });
    let ask = asked(policy, "ExecCommand", &push);
    assert_eq!(ask.summary, "ExecCommand: git push (in app) [pushes need a person]");
    assert_eq!((ask.deadline_ms, ask.default), (Some(4 * 3_600_000), ApprovalDefault::Grant));
    assert_eq!(ask.then, tools::read("ExecCommand", &push));
    // The order of keys says nothing; anything else makes another call of it.
    let same: Value = serde_json::from_str("{\"workdir\":\"app\",\"cmd\":\"git push\"}").unwrap();
    assert_eq!(asked(policy, "ExecCommand", &same).digest, ask.digest);
    for other in [json!({ "cmd": "git push" }), json!({ "cmd": "git push ", "workdir": "app" })] {
        assert_ne!(asked(policy, "ExecCommand", &other).digest, ask.digest, "{other}");
    }
    let file = asked(policy, "ApplyPatch", &patch(&["a", "b"])).summary;
    assert_eq!(file, "ApplyPatch a, b [pushes need a person]");
    let hidden = asked(policy, "ExecCommand", &json!({ "cmd": "ls \u{1b}[2K\u{202e}hsup" })).summary;
    assert!(hidden.starts_with("ExecCommand: ls \\u{1b}[2K\\u{202e}hsup"), "{hidden}");
    let long = asked(policy, "ExecCommand", &json!({ "cmd": "é".repeat(5_000) })).summary;
    assert!(long.len() < 4_000 && long.contains("10000 bytes in all"), "{long}");
}

#[test]
fn a_policy_that_makes_no_sense_is_refused_with_its_line() {
    for (text, line, says, hint) in [
        ("rule = 5", 1, "list of tables", "[[rule]]"),
        ("[[rule]]\naction = ", 2, "not TOML", "[[rule]]"),
        ("\n\n[[rules]]\naction = \"ask\"", 3, "no part of a policy is called \"rules\"", "did you mean rule?"),
        ("[[rule]]\naction = \"ask\"\n\n[[rule]]\ntool = \"ReadFile\"", 4, "no action", "action = \"ask\""),
        ("[[rule]]\naction = \"aks\"", 2, "no action is called \"aks\"", "did you mean ask?"),
        (
            "[[rule]]\naction = \"ask\"\ncomand = \"x\"",
            3,
            "no key of a rule is called \"comand\"",
            "did you mean command?",
        ),
        ("[[rule]]\naction = \"ask\"\ntool = \"ExecComand\"", 3, "no tool is called", "did you mean ExecCommand?"),
        ("[[rule]]\naction = \"ask\"\ntool = 7", 3, "tool is no text", "in quotes"),
        ("[[rule]]\naction = \"ask\"\ncommand = \" \"", 3, "command is empty", "leave it out"),
        ("[[rule]]\naction = \"ask\"\ntool = \"Read*\"\ncommand = \"x\"", 4, "has no command", "ExecCommand"),
        ("[[rule]]\naction = \"ask\"\ntool = \"ExecCommand\"\npath = \"x\"", 4, "has no path", "WriteFile"),
        ("[[rule]]\naction = \"ask\"\ncommand = \"x\"\npath = \"y\"", 4, "both", "two rules"),
        ("[[rule]]\naction = \"ask\"\npath = \"/etc/*\"", 3, "no pattern", "relative"),
        ("[[rule]]\naction = \"ask\"\ndeadline = \"soon\"", 3, "no span", "4h"),
        ("[[rule]]\naction = \"ask\"\ndeadline = \"0s\"", 3, "no span", "4h"),
        ("[[rule]]\naction = \"ask\"\ndefault = \"deny\"", 3, "deadline", "deadline = \"4h\""),
        ("[[rule]]\naction = \"ask\"\ndeadline = \"1d\"\ndefault = \"gran\"", 4, "no default", "did you mean grant?"),
        ("[[rule]]\naction = \"deny\"\ndeadline = \"1d\"", 3, "only a rule that asks", "leave it out"),
    ] {
        let fault = Policy::parse(text).expect_err(text);
        assert_eq!(fault.line, line, "{text}: {fault}");
        assert!(fault.message.contains(says), "{text}: {fault}");
        assert!(fault.hint.contains(hint), "{text}: {fault}");
    }
}
