use std::sync::Arc;

use agui_adapter::options::ToolMergeMode;
use agui_protocol::input::Tool as FrontendTool;

use super::*;
use crate::{
    agents::react::toolkit::{OwnTools, SubagentTool, Toolkit, ToolkitParts},
    config::react::Declared,
    tools::{Tool, ToolCall, ToolSpec, ToolStream},
};

struct Plain(ToolSpec);

impl Tool for Plain {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, _call: ToolCall) -> ToolStream {
        Box::pin(futures_util::stream::empty())
    }
}

fn tool(source: &str, name: &str, read_only: bool, destructive: bool) -> (Arc<str>, Arc<dyn Tool>) {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: Arc::new(json!({"type": "object"})),
        read_only,
        destructive,
    };
    (source.into(), Arc::new(Plain(spec)))
}

/// `read`, `write` and `wipe` of files, `search` of files and web, an external tool, a sub-agent,
/// and `paint` of the client's.
fn toolkit() -> Toolkit {
    let label = Declared {
        name: "print_label".to_owned(),
        description: String::new(),
        parameters: Arc::new(json!({"type": "object"})),
    };
    let researcher = SubagentTool { id: "researcher".to_owned(), description: String::new() };
    let own = OwnTools::new(
        &[
            tool("files", "read", true, false),
            tool("files", "write", false, false),
            tool("files", "wipe", false, true),
            tool("files", "search", true, true),
            tool("web", "search", false, true),
        ],
        &[label],
        &[researcher],
    );
    let paint = FrontendTool {
        name: "paint".to_owned(),
        description: String::new(),
        parameters: None,
        metadata: None,
    };
    let mode = ToolMergeMode::MergeFrontendPriority;
    Toolkit::build(ToolkitParts { own: &Arc::new(own), frontend: &[paint], mode })
}

/// The rules: `+` allow, `?` ask, `-` deny.
fn config(mode: PermissionMode, rules: &[&str]) -> PermissionConfig {
    let of = |sign: char| {
        rules.iter().filter_map(|rule| rule.strip_prefix(sign)).map(str::to_owned).collect()
    };
    PermissionConfig { mode, allow: of('+'), ask: of('?'), deny: of('-') }
}

fn verdict(mode: PermissionMode, rules: &[&str], tool: &str) -> Verdict {
    Permissions::new(&config(mode, rules), &[], None).decide(toolkit().get(tool).unwrap())
}

fn asks(name: &str) -> Verdict {
    let rule = json!({"tool_name": name, "rule_content": null, "behavior": "allow", "source": "suggested"});
    Verdict::Ask { suggested: vec![rule] }
}

fn by_rules() -> Verdict {
    deny("Permission denied by rules")
}

fn explore(name: &str) -> Verdict {
    deny(&format!("Permission denied for {name} (explore mode - read-only tools only)"))
}

fn nobody(name: &str) -> Verdict {
    deny(&format!("Permission denied for {name} (dont_ask mode - user not available)"))
}

const MODES: [PermissionMode; 5] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::Explore,
    PermissionMode::Bypass,
    PermissionMode::DontAsk,
];

/// What the five modes make of a call, in the order of [`MODES`].
fn table(rules: &[&str], tool: &str) -> [Verdict; 5] {
    MODES.map(|mode| verdict(mode, rules, tool))
}

fn all(verdict: Verdict) -> [Verdict; 5] {
    [(); 5].map(|()| verdict.clone())
}

use Verdict::Allow;

#[test]
fn what_no_rule_names_runs_unless_it_is_destructive() {
    assert_eq!(table(&[], "read"), all(Allow));
    for tool in ["write", "print_label", "researcher"] {
        assert_eq!(table(&[], tool), [Allow, Allow, explore(tool), Allow, Allow]);
    }
    let wipe = || asks("wipe");
    assert_eq!(table(&[], "wipe"), [wipe(), wipe(), explore("wipe"), Allow, nobody("wipe")]);
}

#[test]
fn rules_for_other_tools_change_nothing() {
    let others = ["+read", "?write", "-print_label"];
    assert_eq!(verdict(PermissionMode::Default, &others, "researcher"), Allow);
    assert_eq!(verdict(PermissionMode::Default, &others, "wipe"), asks("wipe"));
}

#[test]
fn a_tool_that_says_it_is_read_only_destroys_nothing() {
    assert_eq!(table(&[], "files_search"), all(Allow));
}

#[test]
fn a_deny_rule_comes_before_everything() {
    for tool in ["read", "write", "wipe", "print_label", "researcher", "paint"] {
        let rules = [format!("+{tool}"), format!("?{tool}"), format!("-{tool}")];
        let rules = rules.each_ref().map(String::as_str);
        assert_eq!(table(&rules, tool), all(by_rules()), "{tool}");
    }
}

#[test]
fn an_ask_rule_comes_before_allow_rules_and_modes() {
    for tool in ["read", "write", "wipe", "print_label", "researcher"] {
        let rules = [format!("+{tool}"), format!("?{tool}")];
        let rules = rules.each_ref().map(String::as_str);
        let ask = || asks(tool);
        assert_eq!(table(&rules, tool), [ask(), ask(), ask(), ask(), nobody(tool)], "{tool}");
    }
}

#[test]
fn an_allow_rule_spares_the_ask_but_opens_nothing_in_explore() {
    assert_eq!(table(&["+wipe"], "wipe"), [Allow, Allow, explore("wipe"), Allow, Allow]);
}

#[test]
fn the_clients_own_tools_never_ask() {
    assert_eq!(table(&[], "paint"), all(Allow));
    assert_eq!(table(&["?paint"], "paint"), all(Allow));
}

#[test]
fn a_rule_names_a_tool_of_any_source_or_of_one() {
    let mode = PermissionMode::Default;
    for (rule, files, web) in [
        ("-search", by_rules(), by_rules()),
        ("-files:search", by_rules(), asks("web_search")),
        ("-web:search", Allow, by_rules()),
        ("-web_search", Allow, by_rules()),
        ("-other:search", Allow, asks("web_search")),
        ("-web:web_search", Allow, asks("web_search")),
        ("+search", Allow, Allow),
        ("+web:search", Allow, Allow),
        ("+files:search", Allow, asks("web_search")),
        ("?files:search", asks("files_search"), asks("web_search")),
    ] {
        assert_eq!(verdict(mode, &[rule], "files_search"), files, "{rule}");
        assert_eq!(verdict(mode, &[rule], "web_search"), web, "{rule}");
    }
    for (rule, tool) in [
        ("-files:wipe", "wipe"),
        ("-external:print_label", "print_label"),
        ("-subagent:researcher", "researcher"),
    ] {
        assert_eq!(verdict(mode, &[rule], tool), by_rules(), "{rule}");
    }
}

#[test]
fn a_rule_for_one_sources_tool_allows_no_tool_that_is_itself_called_so() {
    let own = OwnTools::new(&[tool("web", "files:wipe", false, true)], &[], &[]);
    let mode = ToolMergeMode::AgentOnly;
    let toolkit = Toolkit::build(ToolkitParts { own: &Arc::new(own), frontend: &[], mode });
    let entry = toolkit.get("files:wipe").unwrap();
    let decide = |rule: &str| {
        Permissions::new(&config(PermissionMode::Default, &[rule]), &[], None).decide(entry)
    };
    assert_eq!(decide("+files:wipe"), asks("files:wipe"));
    assert_eq!(decide("+web:files:wipe"), Allow);
    assert_eq!(decide("-files:wipe"), by_rules());
}

#[test]
fn deny_rules_of_the_agents_above_hold_and_are_handed_down() {
    let above = ["wipe".to_owned(), "web:search".to_owned()];
    let config = config(PermissionMode::Bypass, &["-write", "-wipe", "+search"]);
    let permissions = Permissions::new(&config, &above, None);
    let toolkit = toolkit();
    for tool in ["write", "wipe", "web_search"] {
        assert_eq!(permissions.decide(toolkit.get(tool).unwrap()), by_rules(), "{tool}");
    }
    assert_eq!(permissions.decide(toolkit.get("read").unwrap()), Allow);
    assert_eq!(permissions.denied_below(), ["write", "wipe", "web:search"]);
}

fn accepting(rules: &[Value]) -> (Permissions, bool) {
    let mut permissions = Permissions::new(&config(PermissionMode::Default, &[]), &[], None);
    let more = permissions.accept(toolkit().get("wipe").unwrap(), rules);
    (permissions, more)
}

#[test]
fn an_accepted_rule_spares_the_next_ask_of_the_thread() {
    for rule in [
        json!({"tool_name": "wipe", "rule_content": null, "behavior": "allow", "source": "suggested"}),
        json!({"tool_name": "wipe", "behavior": "ALLOW"}),
        json!({"tool_name": "files:wipe", "behavior": "allow"}),
        json!("wipe"),
        json!("files:wipe"),
    ] {
        let (permissions, more) = accepting(&[rule]);
        assert!(more);
        let kept = permissions.kept();
        assert_eq!(kept, json!(["files:wipe"]));
        let later = |mode, rules: &[&str]| {
            Permissions::new(&config(mode, rules), &[], Some(&kept))
                .decide(toolkit().get("wipe").unwrap())
        };
        assert_eq!(
            MODES.map(|mode| later(mode, &[])),
            [Allow, Allow, explore("wipe"), Allow, Allow]
        );
        assert_eq!(MODES.map(|mode| later(mode, &["?wipe"])), all(Allow));
        assert_eq!(later(PermissionMode::Bypass, &["-wipe"]), by_rules());
    }
}

#[test]
fn a_rule_that_was_not_suggested_allows_nothing() {
    for rule in [
        json!({"tool_name": "web_search", "rule_content": null, "behavior": "allow"}),
        json!({"tool_name": "*", "rule_content": null, "behavior": "allow"}),
        json!({"tool_name": "wipe", "rule_content": "/tmp/*", "behavior": "allow"}),
        json!({"tool_name": "wipe", "rule_content": null, "behavior": "deny"}),
        json!({"tool_name": "wipe", "rule_content": null}),
        json!("web_search"),
        json!(null),
    ] {
        let (permissions, more) = accepting(std::slice::from_ref(&rule));
        assert!(!more, "{rule}");
        assert_eq!(permissions.kept(), json!([]), "{rule}");
        let toolkit = toolkit();
        assert_eq!(permissions.decide(toolkit.get("wipe").unwrap()), asks("wipe"), "{rule}");
        assert_eq!(permissions.decide(toolkit.get("web_search").unwrap()), asks("web_search"));
    }
}

#[test]
fn what_is_accepted_twice_is_kept_once() {
    let rule = json!({"tool_name": "wipe", "behavior": "allow"});
    let (mut permissions, _) = accepting(&[rule.clone(), rule.clone()]);
    assert!(!permissions.accept(toolkit().get("wipe").unwrap(), &[rule]));
    assert_eq!(permissions.kept(), json!(["files:wipe"]));
}

#[test]
fn an_accepted_tool_stays_that_of_its_source() {
    // Accepted while only one source had it.
    let kept = json!(["files:search"]);
    let config = config(PermissionMode::Default, &["?search"]);
    let permissions = Permissions::new(&config, &[], Some(&kept));
    let toolkit = toolkit();
    assert_eq!(permissions.decide(toolkit.get("files_search").unwrap()), Allow);
    assert_eq!(permissions.decide(toolkit.get("web_search").unwrap()), asks("web_search"));
}

#[test]
fn what_was_kept_in_another_form_allows_nothing() {
    for kept in [json!({"files:wipe": true}), json!("files:wipe"), json!([1, null])] {
        let permissions = Permissions::new(&config(PermissionMode::Default, &[]), &[], Some(&kept));
        assert_eq!(permissions.kept(), json!([]));
    }
}
