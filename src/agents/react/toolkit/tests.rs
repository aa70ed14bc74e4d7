use agui_adapter::model::event::ResultState;
use futures_util::stream;

use super::*;
use crate::tools::{ToolCall, ToolEnd, ToolEvent, ToolSpec, ToolStream};

struct Plain(ToolSpec);

impl Tool for Plain {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, _call: ToolCall) -> ToolStream {
        Box::pin(stream::iter([ToolEvent::End(ToolEnd::text("", ResultState::Success))]))
    }
}

fn tool(source: &str, name: &str) -> (Arc<str>, Arc<dyn Tool>) {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: format!("{source}'s {name}"),
        parameters: Arc::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}})),
        read_only: false,
        destructive: false,
    };
    (source.into(), Arc::new(Plain(spec)))
}

fn frontend(name: &str, parameters: Option<Value>) -> FrontendTool {
    let (name, description) = (name.to_owned(), format!("the client's {name}"));
    FrontendTool { name, description, parameters, metadata: None }
}

fn own(tools: &[(Arc<str>, Arc<dyn Tool>)]) -> Arc<OwnTools> {
    let label = Declared {
        name: "print_label".to_owned(),
        description: "prints".to_owned(),
        parameters: Arc::new(json!({"type": "object", "properties": {}})),
    };
    let researcher =
        SubagentTool { id: "researcher".to_owned(), description: "looks up".to_owned() };
    Arc::new(OwnTools::new(tools, &[label], &[researcher]))
}

/// Every tool: name, description.
fn told(toolkit: &Toolkit) -> Vec<(String, String)> {
    toolkit.specs().iter().map(|spec| (spec.name.clone(), spec.description.clone())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn build(own: &Arc<OwnTools>, frontend: &[FrontendTool], mode: ToolMergeMode) -> Toolkit {
    Toolkit::build(ToolkitParts { own, frontend, mode })
}

const OWN: [(&str, &str); 4] = [
    ("echo", "everything's echo"),
    ("calculate", "builtin's calculate"),
    ("print_label", "prints"),
    ("researcher", "looks up"),
];

#[test]
fn both_sides_are_merged_and_the_clients_tool_wins_on_a_conflict() {
    let own = own(&[tool("everything", "echo"), tool("builtin", "calculate")]);
    let input = [frontend("paint", None), frontend("calculate", None)];
    let toolkit = build(&own, &input, ToolMergeMode::MergeFrontendPriority);
    assert_eq!(
        told(&toolkit),
        pairs(&[
            OWN[0],
            OWN[2],
            OWN[3],
            ("paint", "the client's paint"),
            ("calculate", "the client's calculate")
        ])
    );
    assert!(matches!(toolkit.get("calculate").unwrap().kind, EntryKind::Frontend));
    assert!(matches!(toolkit.get("echo").unwrap().kind, EntryKind::Server(_)));
    assert!(matches!(toolkit.get("print_label").unwrap().kind, EntryKind::External));
    assert!(
        matches!(&toolkit.get("researcher").unwrap().kind, EntryKind::Subagent(id) if id == "researcher")
    );
    assert!(toolkit.get("nothing").is_none());
}

#[test]
fn the_clients_tools_belong_to_their_run() {
    let own = own(&[tool("everything", "echo"), tool("builtin", "calculate")]);
    let input = [frontend("calculate", None)];
    let first = build(&own, &input, ToolMergeMode::MergeFrontendPriority);
    let second = build(&own, &[], ToolMergeMode::MergeFrontendPriority);
    assert!(matches!(first.get("calculate").unwrap().kind, EntryKind::Frontend));
    assert!(matches!(second.get("calculate").unwrap().kind, EntryKind::Server(_)));
    assert_eq!(told(&second), pairs(&OWN));
}

#[test]
fn frontend_only_hides_all_that_is_the_agents() {
    let own = own(&[tool("everything", "echo")]);
    let toolkit = build(&own, &[frontend("paint", None)], ToolMergeMode::FrontendOnly);
    assert_eq!(told(&toolkit), pairs(&[("paint", "the client's paint")]));
    for name in ["echo", "print_label", "researcher"] {
        assert!(toolkit.get(name).is_none(), "{name}");
    }
    let none = build(&own, &[], ToolMergeMode::FrontendOnly);
    assert_eq!(told(&none), pairs(&[]));
    assert!(none.get("echo").is_none());
}

#[test]
fn agent_only_ignores_what_the_client_offers() {
    let own = own(&[tool("everything", "echo"), tool("builtin", "calculate")]);
    let input = [frontend("paint", None), frontend("echo", None)];
    let toolkit = build(&own, &input, ToolMergeMode::AgentOnly);
    assert_eq!(told(&toolkit), pairs(&OWN));
    assert!(toolkit.get("paint").is_none());
    assert!(matches!(toolkit.get("echo").unwrap().kind, EntryKind::Server(_)));
}

#[test]
fn a_name_of_two_sources_gets_the_source_in_front() {
    let own = own(&[
        tool("a", "search"),
        tool("b", "search"),
        tool("b", "print_label"),
        tool("b", "read"),
    ]);
    let toolkit = build(&own, &[], ToolMergeMode::MergeFrontendPriority);
    assert_eq!(
        told(&toolkit),
        pairs(&[
            ("a_search", "a's search"),
            ("b_search", "b's search"),
            ("b_print_label", "b's print_label"),
            ("read", "b's read"),
            ("external_print_label", "prints"),
            ("researcher", "looks up"),
        ])
    );
    let entry = toolkit.get("a_search").unwrap();
    assert_eq!((entry.bare.as_str(), entry.qualified().as_deref()), ("search", Some("a:search")));
    assert!(toolkit.get("search").is_none());
    assert_eq!(
        own.notices(),
        [
            "several sources have a tool search: that of a is called a_search",
            "several sources have a tool search: that of b is called b_search",
            "several sources have a tool print_label: that of b is called b_print_label",
            "several sources have a tool print_label: that of external is called external_print_label",
        ]
    );
}

#[test]
fn a_name_that_comes_about_by_renaming_is_told_apart_too() {
    let own = own(&[tool("a", "x"), tool("b", "x"), tool("c", "a_x"), tool("b", "x")]);
    let toolkit = build(&own, &[], ToolMergeMode::MergeFrontendPriority);
    let names: Vec<String> = told(&toolkit).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a_x", "b_x", "c_a_x", "print_label", "researcher"]);
    assert_eq!(
        own.notices().last().unwrap(),
        "the tool b:x is left out: another one is called b_x"
    );
}

#[test]
fn of_the_clients_tools_the_first_of_a_name_counts_and_none_without_one() {
    let input = [
        frontend("paint", Some(json!({"properties": {"a": {}}}))),
        frontend("", None),
        frontend("  ", None),
        frontend("paint", Some(json!({"properties": {"b": {}}}))),
    ];
    let toolkit = build(&own(&[]), &input, ToolMergeMode::FrontendOnly);
    let specs = toolkit.specs();
    assert_eq!(specs.len(), 1);
    assert_eq!(*specs[0].parameters, json!({"properties": {"a": {}}, "type": "object"}));
}

#[test]
fn parameters_reach_the_model_as_an_object_with_properties() {
    let empty = json!({"type": "object", "properties": {}});
    for (sent, expected) in [
        (None, empty.clone()),
        (Some(Value::Null), empty.clone()),
        (Some(json!("nonsense")), empty.clone()),
        (Some(json!({})), empty.clone()),
        (
            Some(json!({"type": "object", "additionalProperties": false})),
            json!({"type": "object", "additionalProperties": false, "properties": {}}),
        ),
    ] {
        let toolkit = build(&own(&[]), &[frontend("t", sent)], ToolMergeMode::FrontendOnly);
        assert_eq!(*toolkit.specs()[0].parameters, expected);
    }
}

#[test]
fn arguments_are_held_against_the_schema_of_the_tool() {
    let toolkit = build(&own(&[tool("a", "count")]), &[], ToolMergeMode::AgentOnly);
    let count = toolkit.get("count").unwrap();
    assert_eq!(count.arguments(r#"{"n":1}"#).map(Value::Object), Ok(json!({"n": 1})));
    assert_eq!(
        count.arguments(r#"{"n":"one"}"#),
        Err(
            "The arguments do not fit the tool's schema: at /n: \"one\" is not of type \"integer\""
                .to_owned()
        )
    );
    let edited = json!({"n": "one"});
    assert_eq!(
        count.check(edited.as_object().unwrap()),
        Err("at /n: value is not of type \"integer\"".to_owned())
    );
    assert_eq!(
        toolkit.get("researcher").unwrap().arguments("{}"),
        Err("The arguments do not fit the tool's schema: \"task\" is a required property"
            .to_owned())
    );
}

#[test]
fn a_clients_schema_that_cannot_be_used_checks_nothing_but_that_there_is_an_object() {
    // Each definition uses the next one twice: checking it would take 2^40 steps.
    let mut definitions = Object::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "object"}));
    for schema in [
        json!({"$ref": "#/$defs/d0", "$defs": definitions}),
        json!({"properties": {"a": {"type": "nonsense"}}}),
    ] {
        let toolkit = build(&own(&[]), &[frontend("t", Some(schema))], ToolMergeMode::FrontendOnly);
        let entry = toolkit.get("t").unwrap();
        assert_eq!(entry.arguments(r#"{"a":1}"#).map(Value::Object), Ok(json!({"a": 1})));
        assert_eq!(
            entry.arguments("[]"),
            Err("The arguments must be a JSON object, not an array.".to_owned())
        );
    }
}

#[test]
fn a_toolkit_goes_where_its_run_goes() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Toolkit>();
    is_shared::<Arc<OwnTools>>();
}
