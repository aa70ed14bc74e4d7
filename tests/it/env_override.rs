//! Environment variables over the file, in Spring's relaxed form.

use std::{path::PathBuf, time::Duration};

use agentscope_agui::config::{AgentKind, Config, ContextSource, ScriptedConfig};
use agui_adapter::options::{
    ConverterAction, Droppable, EnricherSpec, SubagentEvents, ToolMergeMode,
};

use super::support::config::load;

const TWO: &str = "agentscope:\n  agents:\n    support_bot: {type: scripted, turns: [{events: \
                   ['{\"text\":\"${lastUserText}\"}']}]}\n    Support.Desk: {type: scripted, turns: \
                   [{events: ['{}']}]}\n";

fn errors(variables: &[(&str, &str)]) -> String {
    load("", variables).expect_err("an invalid environment")
}

#[test]
fn scalars_lists_and_blocks_are_bound() {
    let loaded = load(
        "server: {port: 1}\nagentscope: {agui: {cors-allowed-origins: ['http://x.example']}}\n",
        &[
            ("SERVER_HOST", "0.0.0.0"),
            ("SERVER_PORT", "0"),
            ("SERVER_REQUESTBODYLIMIT", "1MiB"),
            ("AGENTSCOPE_AGUI_RUN_TIMEOUT", "PT2M"),
            ("AGENTSCOPE_AGUI_HEARTBEATINTERVAL", "0"),
            ("AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_0", "http://a.example"),
            ("AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_1", "http://b.example"),
            ("AGENTSCOPE_AGUI_DEFAULT_TOOL_MERGE_MODE", "frontendOnly"),
            ("AGENTSCOPE_AGUI_RUNTIME_CONTEXT_TENANT_HEADER", "X-Tenant-Id"),
            ("AGENTSCOPE_AGUI_ENRICHERS_0_TYPE", "drop"),
            ("AGENTSCOPE_AGUI_ENRICHERS_0_EVENT", "raw"),
            ("AGENTSCOPE_AGUI_CONVERTERS_0_CUSTOM", "noisy"),
            ("AGENTSCOPE_AGUI_CONVERTERS_0_DROP", "true"),
        ],
    );
    let config = loaded.expect("valid").config;
    assert_eq!((config.server.host.as_str(), config.server.port), ("0.0.0.0", 0));
    assert_eq!(config.server.request_body_limit, 1 << 20);
    assert_eq!(config.agui.run_timeout, Some(Duration::from_secs(120)));
    assert_eq!(config.agui.heartbeat_interval, None);
    assert_eq!(config.agui.cors_allowed_origins, ["http://a.example", "http://b.example"]);
    assert_eq!(config.agui.adapter.tool_merge_mode, ToolMergeMode::FrontendOnly);
    assert_eq!(
        config.agui.runtime_context.into_iter().collect::<Vec<_>>(),
        [("tenant".to_owned(), ContextSource::Header("X-Tenant-Id".to_owned()))]
    );
    let drop = EnricherSpec::Drop { event: Droppable::Raw, name: None };
    assert_eq!(config.agui.adapter.enrichers, [drop]);
    assert_eq!(config.agui.adapter.converters.len(), 1);
    assert_eq!(config.agui.adapter.converters[0].action, ConverterAction::Drop);
}

#[test]
fn agents_of_the_file_are_found_by_the_letters_of_their_id() {
    let config = load(
        TWO,
        &[
            ("AGENTSCOPE_AGENTS_SUPPORT_BOT_NAME", "Bot"),
            ("AGENTSCOPE_AGENTS_SUPPORTDESK_DESCRIPTION", "Desk"),
            ("AGENTSCOPE_AGENTS_SUPPORT_BOT_AGUI_RUN_TIMEOUT", "5s"),
        ],
    )
    .expect("valid")
    .config;
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["Support.Desk", "support_bot"]);
    assert_eq!(config.agents["support_bot"].name, "Bot");
    assert_eq!(config.agents["support_bot"].run_timeout, Some(Duration::from_secs(5)));
    assert_eq!(config.agents["Support.Desk"].description, "Desk");
}

fn scripted<'a>(config: &'a Config, id: &str) -> &'a ScriptedConfig {
    match &config.agents[id].kind {
        AgentKind::Scripted(scripted) => scripted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_can_come_from_the_environment_alone() {
    let config = load(
        TWO,
        &[
            ("AGENTSCOPE_AGENTS_EXTRA_TYPE", "scripted"),
            ("AGENTSCOPE_AGENTS_EXTRA_TURNS_0_EVENTS_0", "{\"type\":\"AGENT_START\"}"),
        ],
    )
    .expect("valid")
    .config;
    let scripted = scripted(&config, "extra");
    assert_eq!(scripted.turns[0].lines, [(1, "{\"type\":\"AGENT_START\"}".to_owned())]);
}

#[test]
fn placeholders_in_events_are_the_scripts_own() {
    let config = load(TWO, &[]).expect("valid").config;
    let scripted = scripted(&config, "support_bot");
    assert_eq!(scripted.turns[0].lines, [(1, "{\"text\":\"${lastUserText}\"}".to_owned())]);
}

#[test]
fn an_agent_can_leave_the_servers_way_with_sub_agents() {
    let text = "agentscope:\n  agui: {emit-subagent-events-as-native: true}\n  agents:\n    a: \
                {type: scripted, turns: [{events: ['{}']}]}\n    b: {type: scripted, turns: \
                [{events: ['{}']}], agui: {emit-subagent-events-as-native: false}}\n    c: {type: \
                scripted, turns: [{events: ['{}']}], agui: {subagent-events: custom}}\n";
    let config = load(text, &[]).expect("valid").config;
    let of = |id: &str| config.agents[id].adapter.subagent_events;
    assert_eq!(of("a"), SubagentEvents::Native);
    assert_eq!(of("b"), SubagentEvents::Auto);
    assert_eq!(of("c"), SubagentEvents::Custom);
}

#[test]
fn wrong_values_name_the_variable() {
    assert_eq!(
        errors(&[
            ("AGENTSCOPE_AGUI_ENABLE_REASONING", "maybe"),
            ("AGENTSCOPE_AGUI_SUBAGENT_EVENTS", "nativ"),
            ("SERVER_PORT", "many"),
        ])
        .lines()
        .collect::<Vec<_>>(),
        [
            "environment variable AGENTSCOPE_AGUI_ENABLE_REASONING: \
             agentscope.agui.enable-reasoning: expected true or false, found `maybe`",
            "environment variable AGENTSCOPE_AGUI_SUBAGENT_EVENTS: \
             agentscope.agui.subagent-events: expected one of auto, attributed, custom, native, \
             found `nativ`; did you mean `native`?",
            "environment variable SERVER_PORT: server.port: expected a whole number from 0 to \
             65535, found `many`",
        ]
    );
}

#[test]
fn events_of_a_script_are_numbered_for_their_commas() {
    let line = r#"{"a":1,"b":[2,3]}"#;
    let of = |name: &str| load(TWO, &[(name, line)]);
    let config = of("AGENTSCOPE_AGENTS_SUPPORT_BOT_TURNS_0_EVENTS_0").expect("valid").config;
    let scripted = scripted(&config, "support_bot");
    assert_eq!(scripted.turns[0].lines, [(1, line.to_owned())]);
    let whole = of("AGENTSCOPE_AGENTS_SUPPORT_BOT_TURNS_0_EVENTS").expect_err("no list of texts");
    assert!(whole.contains(" Valid names: ") || whole.contains("; valid names: "), "{whole}");
    assert!(whole.contains("AGENTSCOPE_AGENTS_<NAME>_TURNS_<N>_EVENTS_<N>"), "{whole}");
}

#[test]
fn a_script_that_a_variable_names_is_looked_for_in_the_working_directory() {
    let script = |name: &str| load("", &[("AGENTSCOPE_AGENTS_TEXT_SCRIPT", name)]);
    let config = script("config/demo/usage.jsonl").expect("tests run in the package's folder");
    let scripted = scripted(&config.config, "text");
    assert_eq!(scripted.turns[0].origin, PathBuf::from("config/demo/usage.jsonl"));
    assert_eq!(
        script("demo/usage.jsonl").expect_err("the program's own files are not in the way"),
        "environment variable AGENTSCOPE_AGENTS_TEXT_SCRIPT: agentscope.agents.text.script: the \
         file demo/usage.jsonl cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn the_enrichers_of_an_agent_replace_the_servers_with_the_timestamp() {
    let text = "agentscope:\n  agui: {enrichers: [{type: timestamp}]}\n  agents:\n    a: {type: \
                scripted, turns: [{events: ['{}']}]}\n    b: {type: scripted, turns: [{events: \
                ['{}']}], agui: {enrichers: []}}\n";
    let config = load(text, &[]).expect("valid").config;
    assert_eq!(config.agents["a"].adapter.enrichers, [EnricherSpec::Timestamp]);
    assert_eq!(config.agents["b"].adapter, agui_adapter::options::AdapterOptions::default());
}

#[test]
fn lists_have_no_gaps_and_one_source() {
    assert_eq!(
        errors(&[("AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_1", "*")]),
        "environment variable AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_1: \
         agentscope.agui.cors-allowed-origins[1]: items of a list are numbered from 0 without a gap"
    );
    assert_eq!(
        errors(&[
            ("AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS", "*"),
            ("AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_0", "*"),
        ]),
        "environment variable AGENTSCOPE_AGUI_CORS_ALLOWED_ORIGINS_0: \
         agentscope.agui.cors-allowed-origins[0]: another variable sets the whole list of which \
         this is an item"
    );
    assert_eq!(
        errors(&[("AGENTSCOPE_AGUI_PATHPREFIX", "/a"), ("AGENTSCOPE_AGUI_PATH_PREFIX", "/b"),]),
        "environment variable AGENTSCOPE_AGUI_PATH_PREFIX: agentscope.agui.path-prefix: \
         AGENTSCOPE_AGUI_PATHPREFIX sets the same key to another value"
    );
}

#[test]
fn a_constant_is_json_or_else_text() {
    for (text, value) in [
        ("[1, {\"a\": null}]", serde_json::json!([1, {"a": null}])),
        ("1.5", 1.5.into()),
        ("true", true.into()),
        ("\"1\"", "1".into()),
        ("007", "007".into()),
        ("12345678901234567890123", "12345678901234567890123".into()),
        ("production", "production".into()),
    ] {
        let name = "AGENTSCOPE_AGUI_RUNTIME_CONTEXT_STAGE_VALUE";
        let config = load("", &[(name, text)]).expect("valid").config;
        let expected = ContextSource::Value(value);
        assert_eq!(config.agui.runtime_context["stage"], expected, "{text}");
    }
}

#[test]
fn an_unknown_name_under_our_prefixes_lists_the_valid_ones() {
    let error = errors(&[("AGENTSCOPE_AGUI_PATH_PREFIXX", "/x")]);
    assert!(
        error.starts_with(
            "environment variable AGENTSCOPE_AGUI_PATH_PREFIXX: no configuration key has this \
             name; did you mean AGENTSCOPE_AGUI_PATH_PREFIX? Valid names: \
             AGENTSCOPE_AGUI_PATH_PREFIX, AGENTSCOPE_AGUI_CORS_ENABLED, "
        ),
        "{error}"
    );
    // A port of ours that there is not is no service of Kubernetes.
    let error = errors(&[("AGENTSCOPE_AGUI_PORT", "9000")]);
    assert!(
        error.starts_with(
            "environment variable AGENTSCOPE_AGUI_PORT: no configuration key has this name; "
        ),
        "{error}"
    );
}

#[test]
fn a_programs_variables_keep_their_names() {
    let file = "agentscope: {agents: {c: {type: command, command: sh, env: {Mode: a}}}}\n";
    let loaded = load(
        file,
        &[
            ("AGENTSCOPE_AGENTS_C_ENV_MODE", "b"),
            ("AGENTSCOPE_AGENTS_C_ENV_MODE_2", "c"),
            ("AGENTSCOPE_AGENTS_C_ENV_MODEL_KEY", "d"),
            ("AGENTSCOPE_AGENTS_C_ENV_http_proxy", "e"),
        ],
    );
    let config = loaded.expect("valid").config;
    let AgentKind::Command(command) = &config.agents["c"].kind else { panic!("no program") };
    let env: Vec<(&str, &str)> =
        command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("MODEL_KEY", "d"), ("MODE_2", "c"), ("Mode", "b"), ("http_proxy", "e")]);
}

#[test]
fn names_of_others_are_ignored_with_one_warning() {
    let loaded = load(
        "",
        &[
            ("AGENTSCOPE_CONFIG", "elsewhere.yaml"),
            ("AGENTSCOPE_HOME", "/x"),
            ("AGENTSCOPE_STORE_TYPE", "redis"),
            ("AGENTSCOPE_AGUI_SERVICE_HOST", "10.0.0.1"),
            ("AGENTSCOPE_AGUI_SERVICE_PORT_HTTP", "80"),
            ("AGENTSCOPE_AGUI_PORT", "tcp://10.0.0.1:80"),
            ("AGENTSCOPE_AGUI_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("SERVER_PORT", "tcp://10.0.0.1:80"),
            ("SERVER_SOFTWARE", "x"),
            ("PATH", "/bin"),
        ],
    )
    .expect("valid");
    assert_eq!(loaded.config.server.port, 8080);
    assert_eq!(
        loaded.warnings,
        ["ignored environment variables that name no configuration key: \
          AGENTSCOPE_AGUI_PORT, AGENTSCOPE_AGUI_PORT_80_TCP_ADDR, AGENTSCOPE_AGUI_SERVICE_HOST, \
          AGENTSCOPE_AGUI_SERVICE_PORT_HTTP, AGENTSCOPE_HOME, AGENTSCOPE_STORE_TYPE, SERVER_PORT, \
          SERVER_SOFTWARE"]
    );
}
