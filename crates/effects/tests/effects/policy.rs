//! Which calls a policy lets run, asks for and refuses; and which policies it refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use abide_effects::files::{self, Root};
use abide_effects::policy::{Caller, Policy};
use abide_kernel::id::AgentId;
use abide_kernel::refusal::ErrorCode;
use abide_kernel::rule_folder::RuleFolder;
use abide_kernel::tool::{ApprovalNeeded, ToolCall};
use abide_kernel::vocabulary::ApprovalDefault;
use serde_json::{Value, json};

use crate::calls::{file_call, parse};

fn judge(policy: &str, agent: &str, tool: &str, input: &Value) -> ToolCall {
    judge_as(policy, &[agent], None, tool, input)
}

/// The first of `lineage` makes the call; the others made it, nearest first.
fn judge_as(policy: &str, lineage: &[&str], workspace: Option<&Path>, tool: &str, input: &Value) -> ToolCall {
    let policy = Policy::parse(policy).unwrap_or_else(|fault| panic!("{policy}: {fault}"));
    let does = parse(tool, input);
    assert!(!matches!(does, ToolCall::Refused(_)), "{tool} {input} makes no sense: {does:?}");
    let lineage: Vec<AgentId> = lineage.iter().map(|name| AgentId::new(name).unwrap()).collect();
    let caller = Caller { agent: &lineage[0], makers: &lineage[1..], workspace, root: None, rule_folders: &[] };
    policy.judge(&caller, tool, input, does)
}

fn word(does: &ToolCall) -> &'static str {
    match does {
        ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) => "runs",
        ToolCall::NeedsApproval(_) => "asks",
        ToolCall::Refused(refusal) => {
            assert_eq!(refusal.code, ErrorCode::RefusedByPolicy);
            "refused"
        }
    }
}

fn asked(policy: &str, tool: &str, input: &Value) -> ApprovalNeeded {
    match judge(policy, "a", tool, input) {
        ToolCall::NeedsApproval(ask) => *ask,
        other @ (ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::Refused(_)) => {
            panic!("{other:?}")
        }
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
    let ToolCall::Refused(refusal) = judge(policy, "other", "WebFetch", &fetch) else { panic!("it was let through") };
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
    assert_eq!(ask.call, parse("ExecCommand", &push));
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

/// A rule as one line: action, then `key=value` pairs.
fn rules(lines: &[&str]) -> String {
    let rule = |line: &&str| {
        let mut words = line.split(' ');
        let mut text = format!("[[rule]]\naction = \"{}\"\n", words.next().unwrap());
        for (key, value) in words.map(|word| word.split_once('=').unwrap()) {
            text.push_str(&format!("{key} = \"{}\"\n", value.replace('_', " ")));
        }
        text
    };
    lines.iter().map(rule).collect()
}

#[test]
fn what_holds_a_maker_back_holds_back_what_it_made() {
    let deny = rules(&["deny command=touch_* agent=worker"]);
    let trusted = rules(&["allow command=* agent=ops-*", "ask command=*"]);
    let strict = rules(&["allow command=ls agent=worker*", "deny command=* agent=worker"]);
    for (policy, lineage, command, expected) in [
        (&deny, &["worker"][..], "touch x", "refused"),
        (&deny, &["worker.1", "worker"], "touch x", "refused"),
        (&deny, &["worker.1.1", "worker.1", "worker"], "touch x", "refused"),
        (&deny, &["free", "worker.1", "worker"], "touch x", "refused"),
        (&deny, &["worker2"], "touch x", "runs"),
        (&deny, &["worker2", "boss"], "touch x", "runs"),
        (&trusted, &["ops-1"], "id", "runs"),
        (&trusted, &["ops-1", "ops-0"], "id", "runs"),
        (&trusted, &["ops-evil", "strict"], "id", "asks"),
        (&trusted, &["ops-evil", "ops-1", "strict"], "id", "asks"),
        (&trusted, &["strict", "ops-1"], "id", "asks"),
        (&strict, &["worker.1", "worker"], "ls", "runs"),
        (&strict, &["worker.1", "worker"], "id", "refused"),
        (&strict, &["other", "worker"], "ls", "refused"),
    ] {
        let does = judge_as(policy, lineage, None, "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), expected, "{lineage:?}: {command}");
    }
}

#[test]
fn a_continued_line_is_one_line() {
    let deny = rules(&["deny command=*rm_-rf*"]);
    let allow = rules(&["allow command=echo_*", "deny command=*"]);
    for (policy, command, expected) in [
        (&deny, "rm \\\n-rf x", "refused"),
        (&deny, "r\\\nm -rf x", "refused"),
        (&deny, "rm \\\r\n-rf x", "refused"),
        (&deny, "true; rm \\\n  -rf x", "refused"),
        (&allow, "echo a \\\n  b", "runs"),
        (&allow, "echo \"a \\\n  b\"", "runs"),
        // An escaped backslash continues nothing, and neither does one in single quotes or in a comment.
        (&allow, "echo a \\\\\nrm x", "refused"),
        (&allow, "echo 'a' # b \\\nrm x", "refused"),
        (&allow, "echo 'a\\\nrm x'", "refused"),
        (&allow, "echo $\\\n(rm x)", "refused"),
        (&allow, "echo a \\", "refused"),
    ] {
        assert_eq!(word(&judge(policy, "a", "ExecCommand", &json!({ "cmd": command }))), expected, "{command:?}");
    }
}

#[test]
fn a_command_that_redirects_is_not_allowed_by_what_it_begins_with() {
    let policy = rules(&["allow command=echo_*", "deny command=*"]);
    for command in [
        "echo hi >deploy/over",
        "echo hi > deploy/over",
        "echo hi >>log",
        "echo hi 2>err",
        "echo hi >&out",
        "echo hi &>out",
        "echo hi >|out",
        "echo hi <in",
        "echo hi <<E\nE",
        "echo hi <<<word",
        "echo <(id)",
        "echo >(id)",
        "echo hi <>file",
        "echo hi >/dev/nullx",
        "echo hi >/dev/null/../x",
        "echo hi >/dev/null\"x\"",
        "echo hi >/dev/\\\nnull",
        "echo hi >&1x",
        "echo hi 2>&1 >out",
        "echo 'a' >b 'c'",
        "echo a\\' >b \\'c",
        "echo \"a\\\"\" >b \"c\"",
        "echo $'a\\'' >b",
        "echo $\\\n'a\\'' >b",
        "echo ${x:-'} >b '}",
        "echo it # isn't\necho a >b 'c'",
        "echo a\\ #don' \n ' >b",
        "echo 'a >b",
    ] {
        let does = judge(&policy, "a", "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), "refused", "{command:?}");
    }
    for command in [
        "echo hi 2>&1",
        "echo hi >/dev/null",
        "echo hi > /dev/null",
        "echo hi >/dev/null 2>&1",
        "echo hi 2>>/dev/null; echo ho",
        "echo hi </dev/null",
        "echo hi 1>&2 | echo ho",
        "echo 'a > b'",
        "echo \"a < b\"",
        "echo a \\> b",
        "echo ${HOME}",
        "echo it # is",
    ] {
        let does = judge(&policy, "a", "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), "runs", "{command:?}");
    }
    // What is asked for is asked for wherever the output goes.
    let ask = rules(&["ask command=git_push*"]);
    assert_eq!(word(&judge(&ask, "a", "ExecCommand", &json!({ "cmd": "git push >log" }))), "asks");
    // Who allows everything allows that, too.
    let all = rules(&["allow command=*", "deny command=*"]);
    assert_eq!(word(&judge(&all, "a", "ExecCommand", &json!({ "cmd": "echo a >b" }))), "runs");
}

/// Every way in which sh or bash runs something else than the words that are written there, or makes words of them.
#[test]
fn a_command_that_expands_is_not_allowed_by_what_it_begins_with() {
    let policy = rules(&["allow command=echo_*", "allow command=./run_tests_*", "deny command=*"]);
    let cases = [
        ("commands", "echo $(id)"),
        ("commands", "echo \"$(id)\""),
        ("commands", "echo `id`"),
        ("commands, on two lines", "echo $\\\n(id)"),
        ("the prompt's expansion", "echo ${x:='\\140id\\073touch made\\140'} ${x@P}"),
        ("the prompt's expansion", "echo \"${x@P}\""),
        ("the prompt's expansion, on two lines", "echo $\\\n{x@P}"),
        ("the prompt's expansion, on two lines", "echo ${x\\\n@P}"),
        ("the prompt's expansion, before a comment", "echo ${x@P} # it"),
        ("an assignment", "echo ${x:=y}"),
        ("another variable's value", "echo ${!x}"),
        ("a part", "echo ${x:a[0]}"),
        ("a subscript, which is arithmetic", "echo ${x[0]}"),
        ("a default", "echo ${x:-y}"),
        ("no name", "echo ${}"),
        ("no end", "echo ${x"),
        ("a command in the shell itself", "echo ${ id; }"),
        ("arithmetic", "echo $((x=1))"),
        ("arithmetic, the old form", "echo $[a[0]]"),
        ("escapes", "echo $'\\x41'"),
        ("translations", "echo $\"it\""),
        ("a process for reading", "echo <(id)"),
        ("a process for writing", "echo >(id)"),
        ("a function", "echo () (id); echo hi"),
        ("a function", "echo() (id); echo hi"),
        ("a function, over several lines", "echo ()\n(id)\necho hi"),
        ("a function, before a comment", "echo () (id); echo hi # it"),
        ("a subshell", "(id)"),
        ("a group", "{ id; }"),
        ("two commands", "echo hi; id"),
        ("two commands", "echo hi\nid"),
        ("two commands", "echo hi & id"),
        ("two commands", "echo hi && id"),
        ("two commands", "echo hi || id"),
        ("a pipe", "echo hi | id"),
        ("a pipe with errors", "echo hi |& id"),
        ("a here-document", "echo <<E\n$x\nE"),
        ("a here-string", "echo <<<x"),
        ("a variable for the command", "PATH=. echo hi"),
        ("a variable for the command", "BASH_ENV=x echo hi"),
        ("a brace expansion as the program", "{echo,id}"),
        ("a pattern as the program", "/bin/ech? hi"),
        ("a home as the program", "~/echo hi"),
        ("a variable as the program", "$x hi"),
        ("a name as the program", "${x} hi"),
        ("an alias", "alias echo=id; echo hi"),
        ("words of the shell", "if echo hi; then id; fi"),
        ("words of the shell", "! echo hi"),
        ("a program whose name has another blank", "./run\u{a0}tests x"),
        ("a program whose name has another blank", "./run\u{b}tests x"),
        ("a program whose name has another blank", "./run\u{2003}tests x"),
        ("a line that is not continued", "echo a \\\\\nid"),
    ];
    for (form, command) in cases {
        let does = judge(&policy, "a", "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), "refused", "{form}: {command:?}");
    }
    // These make arguments of a program that is allowed, and no other program.
    for command in [
        "echo $HOME ${HOME} \"${HOME}\" \"$HOME\"",
        "echo '${x@P}'",
        "echo '(a)' \"(b)\" \\(c\\)",
        "echo {a,b}",
        "echo *.rs a?b [ab]",
        "echo ~ ~/x",
        "echo hi!",
        "echo hi\necho ho",
        "echo a\r\necho b",
        "./run tests all",
    ] {
        let does = judge(&policy, "a", "ExecCommand", &json!({ "cmd": command }));
        assert_eq!(word(&does), "runs", "{command:?}");
    }
}

#[test]
fn a_pattern_for_arguments_matches_a_command_without_any() {
    let allow = rules(&["allow command=git_status_*", "deny command=*"]);
    let ask = rules(&["ask command=git_push_*"]);
    for (policy, command, expected) in [
        (&allow, "git status", "runs"),
        (&allow, "git status -s", "runs"),
        (&allow, "git status; git status -s", "runs"),
        (&allow, "git status-all", "refused"),
        (&allow, "git statu", "refused"),
        (&ask, "git push", "asks"),
        (&ask, "git push origin", "asks"),
        (&ask, "git pushed", "runs"),
    ] {
        assert_eq!(word(&judge(policy, "a", "ExecCommand", &json!({ "cmd": command }))), expected, "{command:?}");
    }
}

#[test]
fn a_path_is_judged_by_where_it_leads() {
    let folder = tempfile::tempdir().unwrap();
    for made in ["deploy/inner", "docs", "src"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    fs::write(folder.path().join("deploy/prod.yml"), "x").unwrap();
    symlink("deploy", folder.path().join("lnk")).unwrap();
    symlink("../deploy/prod.yml", folder.path().join("docs/file")).unwrap();
    symlink("deploy/new", folder.path().join("dangling")).unwrap();
    symlink("/etc", folder.path().join("docs/out")).unwrap();
    let ask = rules(&["ask path=deploy/**"]);
    let allow = rules(&["allow path=docs/**", "deny path=**"]);
    let absolute = folder.path().join("lnk/x").display().to_string();
    for (policy, path, expected) in [
        (&ask, "lnk/prod.yml", "asks"),
        (&ask, "lnk/new", "asks"),
        (&ask, "lnk/more/new", "asks"),
        (&ask, "lnk/inner/../x", "asks"),
        (&ask, "dangling", "asks"),
        (&ask, "docs/file", "asks"),
        (&ask, &absolute, "asks"),
        (&ask, "src/new", "runs"),
        (&allow, "docs/new", "runs"),
        (&allow, "docs/more/new", "runs"),
        (&allow, "docs/file", "refused"),
        (&allow, "docs/out/x", "refused"),
    ] {
        let input = json!({ "path": path, "content": "x" });
        let does = judge_as(policy, &["a"], Some(folder.path()), "WriteFile", &input);
        assert_eq!(word(&does), expected, "{path}");
    }
    // A folder that is not made yet has no links in it.
    let missing = folder.path().join("missing");
    let input = json!({ "path": "docs/new", "content": "x" });
    assert_eq!(word(&judge_as(&allow, &["a"], Some(&missing), "WriteFile", &input)), "runs");
}

/// What a search finds under a policy: the paths, or the word for a call that does not run.
fn found(policy: &str, folder: &Path, tool: &str, input: &Value) -> String {
    let does = judge_as(policy, &["a"], Some(folder), tool, input);
    if word(&does) != "runs" {
        return word(&does).to_owned();
    }
    let agent = AgentId::new("a").unwrap();
    let caller = Caller { agent: &agent, makers: &[], workspace: Some(folder), root: None, rule_folders: &[] };
    let unseen = Policy::parse(policy).unwrap().unseen(&caller, tool, &file_call(tool, input).unwrap(), false);
    let root = Root::open(folder).unwrap().without_unseen(unseen);
    match files::run(&file_call(tool, input).unwrap(), &root) {
        Err(refusal) => refusal.code.word().to_owned(),
        Ok(result) => {
            let path = |found: &Value| found["path"].as_str().or(found.as_str()).unwrap().to_owned();
            let mut paths: Vec<String> = result["matches"].as_array().unwrap().iter().map(path).collect();
            if result["note"].as_str().is_some_and(|note| note.contains("policy")) {
                paths.push("(held back)".to_owned());
            }
            paths.join(" ")
        }
    }
}

#[test]
fn searches_leave_out_what_may_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for path in ["hidden/a", "hidden/deep/b", "src/c", "src/d.key"] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), "secret\n").unwrap();
    }
    symlink("hidden", folder.join("lnk")).unwrap();
    let read = rules(&["deny tool=ReadFile path=hidden/**"]);
    let any = rules(&["deny tool=* path=hidden/**"]);
    let ask = rules(&["ask tool=Grep path=hidden/**"]);
    let keys = rules(&["deny tool=Grep path=**/*.key"]);
    let only = rules(&["allow tool=Grep path=src/**", "deny tool=Grep path=**"]);
    let some = rules(&["allow tool=* path=hidden/deep/**", "deny tool=* path=hidden/**"]);
    let written = rules(&["deny path=hidden/**"]);
    let grep = |path: Option<&str>| ("Grep", json!({ "pattern": "secret", "path": path }));
    let glob = |pattern: &str, path: Option<&str>| ("Glob", json!({ "pattern": pattern, "path": path }));
    for (policy, (tool, input), expected) in [
        (&read, grep(Some("hidden")), "refused"),
        (&read, grep(Some("hidden/")), "refused"),
        (&read, grep(Some("hidden/a")), "refused"),
        (&read, grep(Some("hidden/deep")), "refused"),
        (&read, grep(Some("./src/../hidden")), "refused"),
        (&read, grep(Some("lnk")), "refused"),
        (&read, grep(Some("lnk/a")), "refused"),
        (&read, grep(None), "src/c src/d.key (held back)"),
        (&read, grep(Some(".")), "src/c src/d.key (held back)"),
        (&read, grep(Some("src")), "src/c src/d.key"),
        (&read, glob("**/*", Some("hidden")), "hidden/a hidden/deep/b"),
        (&any, glob("**/*", Some("hidden")), "refused"),
        (&any, glob("hidden/**", None), "refused"),
        (&any, glob("**/a", None), "(held back)"),
        (&ask, grep(Some("hidden")), "asks"),
        (&ask, grep(None), "src/c src/d.key (held back)"),
        (&keys, grep(None), "hidden/a hidden/deep/b src/c (held back)"),
        (&keys, grep(Some("src/d.key")), "refused"),
        (&only, grep(Some("src")), "src/c src/d.key"),
        (&only, grep(None), "refused"),
        (&some, grep(Some("hidden/deep")), "hidden/deep/b"),
        (&some, grep(Some("hidden")), "refused"),
        (&some, grep(None), "hidden/deep/b src/c src/d.key (held back)"),
        (&written, grep(Some("hidden")), "hidden/a hidden/deep/b"),
    ] {
        assert_eq!(found(policy, folder, tool, &input), expected, "{policy} {tool} {input}");
    }
}

/// Copies, renames, edits and patches tell what the old file says.
#[test]
fn a_file_that_may_not_be_read_is_not_copied_renamed_or_guessed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("hidden")).unwrap();
    fs::write(folder.path().join("hidden/a"), "secret\n").unwrap();
    let moved = |how: &str, from: &str, to: &str| {
        let header = format!("diff --git a/{from} b/{to}\nsimilarity index 100%\n{how} from {from}\n{how} to {to}\n");
        ("ApplyPatch", json!({ "patch": header }))
    };
    let patch = |path: &str| {
        let text = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-secret\n+x\n");
        ("ApplyPatch", json!({ "patch": text }))
    };
    let made = ("ApplyPatch", json!({ "patch": "--- /dev/null\n+++ b/hidden/new\n@@ -0,0 +1 @@\n+x\n" }));
    let edit = |path: &str| ("EditFile", json!({ "path": path, "old": "secret", "new": "x" }));
    let write = ("WriteFile", json!({ "path": "hidden/a", "content": "x" }));
    let read = rules(&["deny tool=ReadFile path=hidden/**"]);
    let ask = rules(&["ask tool=ReadFile path=hidden/**"]);
    let allow = rules(&["allow tool=ReadFile path=hidden/**", "deny tool=* path=**"]);
    for (policy, (tool, input), expected) in [
        (&read, moved("copy", "hidden/a", "shown"), "refused"),
        (&read, moved("rename", "hidden/a", "shown"), "refused"),
        (&read, moved("copy", "src/c", "hidden/c"), "runs"),
        (&read, patch("hidden/a"), "refused"),
        (&read, patch("src/c"), "runs"),
        (&read, edit("hidden/a"), "refused"),
        (&read, edit("src/c"), "runs"),
        (&ask, edit("hidden/a"), "asks"),
        // Nothing of the old file is told.
        (&read, made, "runs"),
        (&read, write, "runs"),
        // Leave to read is no leave to write.
        (&allow, edit("hidden/a"), "refused"),
    ] {
        let does = judge_as(policy, &["a"], Some(folder.path()), tool, &input);
        assert_eq!(word(&does), expected, "{policy} {tool} {input}");
    }
}

/// The link was another one when the call was judged.
#[test]
fn a_file_that_is_denied_is_not_opened_whatever_leads_there_by_then() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("hidden")).unwrap();
    fs::write(folder.path().join("hidden/a"), "secret\n").unwrap();
    symlink("hidden/a", folder.path().join("lnk")).unwrap();
    let agent = AgentId::new("a").unwrap();
    let caller = Caller { agent: &agent, makers: &[], workspace: Some(folder.path()), root: None, rule_folders: &[] };
    let copy = "diff --git a/lnk b/shown\nsimilarity index 100%\ncopy from lnk\ncopy to shown\n";
    for (tool, input, denied) in [
        ("ReadFile", json!({ "path": "lnk" }), "*"),
        ("WriteFile", json!({ "path": "lnk", "content": "x" }), "*"),
        ("EditFile", json!({ "path": "lnk", "old": "secret", "new": "x" }), "*"),
        ("EditFile", json!({ "path": "lnk", "old": "secret", "new": "x" }), "ReadFile"),
        ("Grep", json!({ "pattern": ".", "path": "lnk" }), "ReadFile"),
        ("ApplyPatch", json!({ "patch": copy }), "ReadFile"),
    ] {
        let policy = Policy::parse(&rules(&[&format!("deny tool={denied} path=hidden/**")])).unwrap();
        let call = file_call(tool, &input).unwrap();
        let root = Root::open(folder.path()).unwrap().without_unseen(policy.unseen(&caller, tool, &call, false));
        let refused = files::run(&call, &root).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied, "{tool}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("hidden/a")).unwrap(), "secret\n");
}

/// A workspace below the folder that rules begin at, or a worktree that shows its files elsewhere.
#[test]
fn a_path_is_judged_from_every_folder_that_rules_begin_at() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    for made in ["p/hidden/deep", "p/docs", "w/app/deploy", "w/docs"] {
        fs::create_dir_all(top.join(made)).unwrap();
    }
    symlink("deep", top.join("p/hidden/link")).unwrap();
    let name = |path: &str| top.join(path).display().to_string();
    let plain = |path: &str| RuleFolder::plain(&name(path));
    let copy = |path: &str, of: &str| RuleFolder { folder: name(path), copy_of: Some(name(of)) };
    let deny = rules(&["deny tool=* path=hidden/**"]);
    let deep = rules(&["deny tool=* path=hidden/deep/**"]);
    let deploy = rules(&["deny tool=* path=deploy/**"]);
    let docs = rules(&["allow tool=* path=docs/**", "deny tool=* path=**"]);
    let all = rules(&["allow tool=* path=**", "deny tool=*"]);
    for (policy, workspace, folders, path, expected) in [
        (&deny, "p", vec![plain("p")], "hidden/h", "refused"),
        (&deny, "p/hidden", vec![], "h", "runs"),
        (&deny, "p/hidden", vec![plain("p")], "h", "refused"),
        (&deny, "p/hidden/deep", vec![plain("p/hidden/deep"), plain("p")], "h", "refused"),
        (&deny, "p/docs", vec![plain("p")], "h", "runs"),
        (&deep, "p/hidden", vec![plain("p")], "link/h", "refused"),
        (&deep, "p/hidden", vec![plain("p")], "h", "runs"),
        // Only where it is allowed from every folder around it.
        (&docs, "p/docs", vec![plain("p")], "h", "refused"),
        (&docs, "p", vec![plain("p"), plain("p/docs")], "docs/h", "runs"),
        (&docs, "p/hidden", vec![plain("p")], "docs/h", "refused"),
        (&all, "p/hidden", vec![plain("p")], "h", "runs"),
        // A worktree of a repository below the folder, of one around it, and of one beside it.
        (&deny, "w", vec![copy("w", "p/hidden"), plain("p")], "h", "refused"),
        (&deny, "w", vec![copy("w", "p/docs"), plain("p")], "h", "runs"),
        (&deploy, "w", vec![copy("w", "r"), plain("r/app")], "app/deploy/x", "refused"),
        (&deploy, "w", vec![copy("w", "r"), plain("r/app")], "docs/deploy/x", "runs"),
        (&docs, "w", vec![copy("w", "r"), plain("r/app")], "docs/x", "runs"),
        (&deny, "w", vec![copy("w", "v"), copy("v", "p/hidden"), plain("p")], "h", "refused"),
        (&deny, "w", vec![copy("w", "v"), copy("v", "w")], "h", "runs"),
    ] {
        let (agent, workspace) = (AgentId::new("a").unwrap(), top.join(workspace));
        let caller =
            Caller { agent: &agent, makers: &[], workspace: Some(&workspace), root: None, rule_folders: &folders };
        let judged = Policy::parse(policy).unwrap();
        let input = json!({ "path": path, "content": "x" });
        let does = judged.judge(&caller, "WriteFile", &input, parse("WriteFile", &input));
        assert_eq!(word(&does), expected, "{path} in {}: {policy}", workspace.display());
        if policy.contains("allow") {
            continue;
        }
        // A search of the workspace leaves out the same files, or does not run.
        let file = workspace.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "x\n").unwrap();
        let search = json!({ "pattern": "x" });
        let found = match judged.judge(&caller, "Grep", &search, parse("Grep", &search)) {
            ToolCall::Refused(_) => 0,
            ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::NeedsApproval(_) => {
                let unseen = judged.unseen(&caller, "Grep", &file_call("Grep", &search).unwrap(), false);
                let root = Root::open(&workspace).unwrap().without_unseen(unseen);
                let result = files::run(&file_call("Grep", &search).unwrap(), &root).unwrap();
                result["matches"].as_array().unwrap().len()
            }
        };
        assert_eq!(found, usize::from(expected == "runs"), "search for {path} in {}: {policy}", workspace.display());
        fs::remove_file(file).unwrap();
    }
}

/// A yes is for one call: in the folder it was asked in, with links that lead where they led.
#[test]
fn the_same_words_elsewhere_are_another_call() {
    let folder = tempfile::tempdir().unwrap();
    for made in ["p/deploy", "p/docs", "q/deploy"] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    let link = folder.path().join("p/link");
    symlink("docs", &link).unwrap();
    let policy = rules(&["ask path=**", "ask tool=ExecCommand"]);
    let digest = |workspace: &str, tool: &str, input: &Value| match judge_as(
        &policy,
        &["a"],
        Some(&folder.path().join(workspace)),
        tool,
        input,
    ) {
        ToolCall::NeedsApproval(ask) => (ask.digest, ask.summary),
        other @ (ToolCall::Record(_) | ToolCall::Host(_) | ToolCall::Executor(_) | ToolCall::Refused(_)) => {
            panic!("{other:?}")
        }
    };
    let (run, write) = (json!({ "cmd": "make" }), json!({ "path": "link/x", "content": "" }));
    let before = digest("p", "WriteFile", &write);
    assert_eq!(before.1, "WriteFile link/x (leads to docs/x)");
    assert_eq!(digest("p", "WriteFile", &write), before);
    assert_eq!(digest("p", "ExecCommand", &run), digest("p", "ExecCommand", &run));
    assert_ne!(digest("p", "ExecCommand", &run).0, digest("q", "ExecCommand", &run).0);
    fs::remove_file(&link).unwrap();
    symlink("deploy", &link).unwrap();
    assert_ne!(digest("p", "WriteFile", &write).0, before.0);
}
