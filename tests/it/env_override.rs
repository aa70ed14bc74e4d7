//! Environment variables over the file, in Spring's relaxed form.

use std::{path::PathBuf, time::Duration};

use agentscope_agui::config::{self, AgentKind, ContextSource, Environment, Loaded, Source};
use agui_adapter::options::{
    ConverterAction, Droppable, EnricherSpec, SubagentEvents, ToolMergeMode,
};

const TWO: &str = "agentscope:\n  agents:\n    support_bot: {type: scripted, turns: [{events: \
                   ['{\"text\":\"${lastUserText}\"}']}]}\n    Support.Desk: {type: scripted, turns: \
                   [{events: ['{}']}]}\n";

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let environment: Environment = variables.iter().copied().collect();
    let source = Source::Text { name: PathBuf::from("test.yaml"), text: text.to_owned() };
    config::load(source, &environment).map_err(|errors| errors.to_string())
}

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
    let AgentKind::Scripted(scripted) = &config.agents["extra"].kind;
    assert_eq!(scripted.turns[0].lines, [(1, "{\"type\":\"AGENT_START\"}".to_owned())]);
}

#[test]
fn placeholders_in_events_are_the_scripts_own() {
    let config = load(TWO, &[]).expect("valid").config;
    let AgentKind::Scripted(scripted) = &config.agents["support_bot"].kind;
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
            ("AGENTSCOPE_AGUI_DEFAULT_AGENT_ID", "text2"),
        ])
        .lines()
        .map(|line| line.split("; agents: ").next().unwrap_or_default())
        .collect::<Vec<_>>(),
        [
            "environment variable AGENTSCOPE_AGUI_DEFAULT_AGENT_ID: \
             agentscope.agui.default-agent-id: there is no agent `text2`",
            "environment variable AGENTSCOPE_AGUI_ENABLE_REASONING: \
             agentscope.agui.enable-reasoning: expected true or false, found `maybe`",
            "environment variable AGENTSCOPE_AGUI_SUBAGENT_EVENTS: \
             agentscope.agui.subagent-events: expected one of auto, attributed, custom, native, \
             found `nativ`; did you mean `native`?",
        ]
    );
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
    for name in ["STORE_TYPE", "MODELS_QWEN_MODEL", "MCPSERVERS_A_URL", "MCP_SERVERS_A_URL"] {
        let name = format!("AGENTSCOPE_{name}");
        let prefix = name.split('_').take(if name.contains("MCP_S") { 3 } else { 2 });
        let prefix = prefix.collect::<Vec<_>>().join("_");
        assert_eq!(
            errors(&[(&name, "x")]),
            format!(
                "environment variable {name}: no configuration key has a name that begins with \
                 {prefix}"
            )
        );
    }
}

#[test]
fn names_of_others_are_ignored_with_one_warning() {
    let loaded = load(
        "",
        &[
            ("AGENTSCOPE_CONFIG", "elsewhere.yaml"),
            ("AGENTSCOPE_HOME", "/x"),
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
          AGENTSCOPE_AGUI_SERVICE_PORT_HTTP, AGENTSCOPE_HOME, SERVER_PORT, SERVER_SOFTWARE"]
    );
}
