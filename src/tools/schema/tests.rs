use serde_json::json;

use super::*;

fn trip() -> Arguments {
    Arguments::compile(&json!({
        "type": "object",
        "required": ["city"],
        "properties": {
            "city": {"type": "string"},
            "people": {"type": "integer", "minimum": 1},
            "stops": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": false,
    }))
    .unwrap()
}

fn refused(text: &str) -> String {
    trip().parse(text).unwrap_err()
}

#[test]
fn arguments_that_fit_are_read_as_they_stand() {
    let arguments = trip().parse(r#" {"stops":["b","a"],"city":"Oslo"} "#).unwrap();
    assert_eq!(Value::Object(arguments), json!({"stops": ["b", "a"], "city": "Oslo"}));
}

#[test]
fn no_text_means_no_arguments() {
    let free = Arguments::compile(&json!({"type": "object"})).unwrap();
    assert_eq!(free.parse(""), Ok(Object::new()));
    assert_eq!(free.parse(" \n\t"), Ok(Object::new()));
    let begins = "The arguments do not fit the tool's schema";
    assert_eq!(refused(""), format!("{begins}: \"city\" is a required property"));
}

#[test]
fn what_is_no_object_is_told_as_what_it_is() {
    assert_eq!(refused("[]"), "The arguments must be a JSON object, not an array.");
    assert_eq!(refused("null"), "The arguments must be a JSON object, not null.");
    assert_eq!(refused("\"{}\""), "The arguments must be a JSON object, not a string.");
    assert_eq!(
        refused(r#"{"city":"#),
        "The arguments are not valid JSON: EOF while parsing a value at line 1 column 8"
    );
    assert_eq!(
        refused(r#"{"city":"a"}{"city":"b"}"#),
        "The arguments are not valid JSON: trailing characters at line 1 column 13"
    );
}

#[test]
fn every_fault_has_its_place() {
    assert_eq!(
        refused(r#"{"city":5,"people":0,"stops":["a",null]}"#),
        "The arguments do not fit the tool's schema: at /city: 5 is not of type \"string\"; \
         at /people: 0 is less than the minimum of 1; at /stops/1: null is not of type \"string\""
    );
    assert_eq!(
        refused(r#"{"city":"a","town":"b"}"#),
        "The arguments do not fit the tool's schema: Additional properties are not allowed \
         ('town' was unexpected)"
    );
}

#[test]
fn faults_stay_short_however_much_is_wrong() {
    let stops: Vec<Value> = (0..1000).map(|n| json!(n)).collect();
    let all = refused(&json!({"city": "", "stops": stops}).to_string());
    assert_eq!(all.matches("at /stops/").count(), 5);
    let long = "x".repeat(10_000);
    assert_eq!(
        refused(&json!({"city": [long]}).to_string()),
        "The arguments do not fit the tool's schema: at /city: value is not of type \"string\""
    );
    let name = "y".repeat(1000);
    let told = refused(&json!({"city": "", (name): 1}).to_string());
    assert!(told.chars().count() < 400, "{told}");
}

#[test]
fn text_that_is_too_long_or_too_deep_is_not_read() {
    let long = json!({"city": "x".repeat(MAX_TEXT)}).to_string();
    assert_eq!(refused(&long), "The arguments are longer than 1048576 bytes.");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(
        refused(&deep),
        "The arguments are not valid JSON: recursion limit exceeded at line 1 column 132"
    );
}

#[test]
fn what_a_person_typed_is_not_repeated() {
    let check = |arguments: Value| match arguments {
        Value::Object(arguments) => trip().check(&arguments),
        other => panic!("{other}"),
    };
    assert_eq!(check(json!({"city": "Oslo"})), Ok(()));
    assert_eq!(
        check(json!({"city": ["secret"]})),
        Err("at /city: value is not of type \"string\"".to_owned())
    );
    assert_eq!(check(json!({})), Err("\"city\" is a required property".to_owned()));
}

#[test]
fn the_schema_names_its_draft() {
    let tuple = |schema: &str, items: &str| {
        let schema = json!({
            "$schema": schema,
            "properties": {"at": {(items): [{"type": "number"}, {"type": "number"}]}},
        });
        Arguments::compile(&schema).unwrap().parse(r#"{"at":[1,"x"]}"#).is_err()
    };
    assert!(tuple("http://json-schema.org/draft-07/schema#", "items"));
    assert!(tuple("https://json-schema.org/draft/2020-12/schema", "prefixItems"));
}

#[test]
fn formats_are_for_the_tool_to_judge() {
    for draft in
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        let schema = json!({"$schema": draft, "properties": {"at": {"type": "string", "format": "date-time"}}});
        let arguments = Arguments::compile(&schema).unwrap();
        assert!(arguments.parse(r#"{"at":"2026-12-24T18:00:00"}"#).is_ok(), "{draft}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_says_why() {
    assert_eq!(
        Arguments::compile(&json!({"properties": {"a": {"type": "text"}}})).map(|_| ()),
        Err("at /properties/a/type: \"text\" is not valid under any of the schemas listed in the \
             'anyOf' keyword"
            .to_owned())
    );
    let remote = Arguments::compile(&json!({"$ref": "http://127.0.0.1:9/schema.json"}));
    assert!(remote.is_err());
    let file = Arguments::compile(&json!({"$ref": "file:///etc/hostname"}));
    assert!(file.is_err());
}

#[test]
fn a_schema_may_refer_to_itself() {
    let tree = Arguments::compile(&json!({
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    }))
    .unwrap();
    assert!(tree.parse(r#"{"children":[{"children":[]}]}"#).is_ok());
    assert_eq!(
        tree.parse(r#"{"children":[{"children":[1]}]}"#),
        Err("The arguments do not fit the tool's schema: at /children/0/children/0: \
             1 is not of type \"object\""
            .to_owned())
    );
    assert_eq!(Arguments::compile(&json!({"$ref": "#"})).unwrap().parse("{}"), Ok(Object::new()));
}

#[test]
fn a_pattern_that_tries_for_ever_gives_up() {
    let pattern = |pattern: &str| {
        Arguments::compile(&json!({"properties": {"x": {"pattern": pattern}}})).unwrap()
    };
    let text = json!({"x": format!("{}!", "a".repeat(200_000))}).to_string();
    let begins = "The arguments do not fit the tool's schema: at /x";
    for costly in ["^((?=a)a+)+$", "^(?:(?!b)a)*c$"] {
        let fault = "Error executing regex: Max limit for backtracking count exceeded";
        assert_eq!(pattern(costly).parse(&text), Err(format!("{begins}: {fault}")));
    }
    let fault = "value does not match \"^(a+)+$\"";
    assert_eq!(pattern("^(a+)+$").parse(&text), Err(format!("{begins}: {fault}")));
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"allOf": [{"$dynamicRef": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        assert!(Arguments::compile(&schema).unwrap().parse(r#"{"x":1}"#).is_ok(), "{schema}");
    }
}
