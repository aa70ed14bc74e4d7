//! Models, MCP servers and react agents: what of the file and the environment becomes what.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use agentscope_agui::config::{
    self, AgentKind, Config, Environment, McpServerConfig, ModelConfig, ReactConfig, Source,
    mcp_servers::{Elicitation, McpScope, McpTransport},
    models::{Provider, Secret},
    react::{Builtin, Declared, HttpToolConfig, PermissionConfig, PermissionMode, ToolConfig},
};
use serde_json::{Value, json};

use super::support::config::load as load_with;

fn load(text: &str) -> Config {
    load_with(text, &[]).expect("a valid configuration").config
}

fn react<'a>(config: &'a Config, id: &str) -> &'a ReactConfig {
    match &config.agents[id].kind {
        AgentKind::React(react) => react,
        other => panic!("{other:?}"),
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn secrets(pairs: &[(&str, &str)]) -> BTreeMap<String, Secret> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect()
}

/// The least that is an agent.
const LEAST: &str = "agentscope: {models: {qwen: {model: qwen-plus}}, agents: {helper: {type: react, \
                     model: qwen}}}\n";

#[test]
fn a_model_and_an_agent_need_little_and_have_the_documented_defaults() {
    let config = load(LEAST);
    let model = ModelConfig {
        provider: Provider::OpenAi,
        base_url: "https://api.openai.com/v1".to_owned(),
        model: "qwen-plus".to_owned(),
        ..ModelConfig::default()
    };
    assert_eq!(config.models, BTreeMap::from([("qwen".to_owned(), model)]));
    let expected = ReactConfig { model: "qwen".to_owned(), ..ReactConfig::default() };
    assert_eq!(react(&config, "helper"), &expected);
    assert_eq!((config.agui.history_limit, config.agents["helper"].history_limit), (200, 200));
    assert_eq!((config.mcp_servers.len(), config.ca_files.len()), (0, 0));
}

#[test]
fn every_provider_has_an_address_of_its_own() {
    let config = load(
        "agentscope: {models: {a: {provider: Anthropic, model: m}, g: {provider: GEMINI, model: m}, \
         o: {provider: OpenAI, model: m}}}\n",
    );
    let models: Vec<_> =
        config.models.values().map(|m| (m.provider, m.base_url.as_str())).collect();
    assert_eq!(
        models,
        [
            (Provider::Anthropic, "https://api.anthropic.com/v1"),
            (Provider::Gemini, "https://generativelanguage.googleapis.com/v1beta"),
            (Provider::OpenAi, "https://api.openai.com/v1"),
        ]
    );
}

#[test]
fn a_models_keys_are_read_and_its_parameters_keep_their_types() {
    let config = load(
        "agentscope:\n  models:\n    m:\n      provider: anthropic\n      base-url: \
         http://127.0.0.1:8000/v1//\n      api-key: sk-1\n      model: claude\n      headers: {X-Team: \
         t0ken}\n      parameters:\n        temperature: 0.2\n        max_tokens: 4096\n        \
         thinking: {type: enabled, budget_tokens: 1024}\n        stop: [\"1\", ~, true]\n      \
         timeout: 0\n      max-retries: 0\n      vision: false\n",
    );
    let parameters = json!({
        "temperature": 0.2,
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stop": ["1", null, true],
    });
    let expected = ModelConfig {
        provider: Provider::Anthropic,
        base_url: "http://127.0.0.1:8000/v1".to_owned(),
        api_key: Some(Secret::new("sk-1")),
        model: "claude".to_owned(),
        headers: secrets(&[("X-Team", "t0ken")]),
        parameters: object(parameters),
        timeout: None,
        max_retries: 0,
        vision: false,
    };
    assert_eq!(config.models["m"], expected);
    // What is shown of a configuration shows no secret.
    let shown = format!("{config:?}");
    assert!(!shown.contains("sk-1") && !shown.contains("t0ken"), "{shown}");
}

#[test]
fn a_placeholder_without_quotes_has_the_type_of_its_value() {
    let text = "agentscope:\n  models:\n    q:\n      model: m\n      parameters:\n        a: \
                ${T:0.2}\n        b: ${F:true}\n        c: ${N:007}\n        d: ${S:}\n        e: \
                \"${T:0.2}\"\n        f: ${X:some words}\n";
    let expected = json!({"a": 0.2, "b": true, "c": "007", "d": "", "e": "0.2", "f": "some words"});
    assert_eq!(Value::Object(load(text).models["q"].parameters.clone()), expected);
}

#[test]
fn a_key_without_a_value_is_none() {
    let text = "agentscope: {models: {local: {model: m, api-key: '${LOCAL_KEY:}'}}}\n";
    assert_eq!(load(text).models["local"].api_key, None);
}

/// A file in a folder of its own.
fn load_file(text: &str) -> Config {
    let source = Source::Text { name: PathBuf::from("conf/test.yaml"), text: text.to_owned() };
    config::load(source, &Environment::default()).expect("valid").config
}

#[test]
fn an_mcp_server_is_a_program_or_an_endpoint() {
    let config = load_file(
        "agentscope:\n  mcp-servers:\n    least: {command: npx}\n    all:\n      command: \
         bin/server\n      args: [-y, \"1\"]\n      env: {KEY: a}\n      cwd: work\n      timeout: \
         5s\n      scope: thread\n      optional: true\n      elicitation: wait\n    remote: {url: \
         'https://x.example/mcp', headers: {Authorization: Bearer a}}\n",
    );
    let least = McpServerConfig {
        transport: McpTransport::Stdio {
            command: "npx".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: "conf".into(),
        },
        timeout: Duration::from_secs(60),
        scope: McpScope::Server,
        optional: false,
        elicitation: Elicitation::Decline,
    };
    let all = McpServerConfig {
        transport: McpTransport::Stdio {
            command: "conf/bin/server".into(),
            args: vec!["-y".to_owned(), "1".to_owned()],
            env: secrets(&[("KEY", "a")]),
            cwd: "conf/work".into(),
        },
        timeout: Duration::from_secs(5),
        scope: McpScope::Thread,
        optional: true,
        elicitation: Elicitation::Wait,
    };
    let remote = McpServerConfig {
        transport: McpTransport::Http {
            url: "https://x.example/mcp".to_owned(),
            headers: secrets(&[("Authorization", "Bearer a")]),
        },
        ..least.clone()
    };
    let named = |name: &str, server| (name.to_owned(), server);
    assert_eq!(
        config.mcp_servers,
        BTreeMap::from([named("least", least), named("all", all), named("remote", remote)])
    );
}

#[test]
fn an_agents_keys_are_read() {
    let config = load(
        "agentscope:\n  models: {qwen: {model: m}}\n  mcp-servers: {files: {command: x}, web: {url: \
         'http://w/mcp'}}\n  agents:\n    helper:\n      type: react\n      name: Helper\n      model: \
         qwen\n      sys-prompt: |\n        Thread {{threadId}}, run {{runId}}, {{context.user-id}}, \
         {{\"a\": 1}}, {{}}.\n      max-iters: 3\n      tools:\n        - mcp: files\n        - {mcp: \
         web, include: [search]}\n        - builtin: Get_Current_Time\n        - external: {name: \
         print, description: Prints., parameters: {type: object, properties: {n: {type: integer, \
         minimum: 1}}}}\n        - http:\n            name: weather\n            parameters: {type: \
         object, properties: {city: {type: string}}}\n            method: post\n            url: \
         https://w.example/{city}\n            headers: {X-Key: a}\n            timeout: 5s\n            \
         response-limit: 1KiB\n      tool-timeout: 0\n      parallel-tool-calls: false\n      \
         permission: {mode: AcceptEdits, allow: [\"builtin:get_current_time\", search], ask: \
         [\"files:write\", print], deny: [\"external:print\", other]}\n      subagents: [other]\n      \
         max-subagent-depth: 1\n      agui: {history-limit: 20}\n    other: {type: scripted, turns: \
         [{events: ['{}']}]}\n",
    );
    let declared = |name: &str, description: &str, parameters| Declared {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Arc::new(parameters),
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mcp = |server: &str, include: &[&str]| ToolConfig::Mcp {
        server: server.to_owned(),
        include: texts(include),
        exclude: Vec::new(),
    };
    let number = json!({"n": {"type": "integer", "minimum": 1}});
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let expected = ReactConfig {
        sys_prompt:
            "Thread {{threadId}}, run {{runId}}, {{context.user-id}}, {{\"a\": 1}}, {{}}.\n"
                .to_owned(),
        model: "qwen".to_owned(),
        max_iters: 3,
        tools: vec![
            mcp("files", &[]),
            mcp("web", &["search"]),
            ToolConfig::Builtin(Builtin::GetCurrentTime),
            ToolConfig::External(declared(
                "print",
                "Prints.",
                json!({"type": "object", "properties": number}),
            )),
            ToolConfig::Http(HttpToolConfig {
                declared: declared("weather", "", city),
                method: "POST".to_owned(),
                url: "https://w.example/{city}".to_owned(),
                headers: secrets(&[("X-Key", "a")]),
                timeout: Some(Duration::from_secs(5)),
                response_limit: 1024,
            }),
        ],
        tool_timeout: None,
        parallel_tool_calls: false,
        permission: PermissionConfig {
            mode: PermissionMode::AcceptEdits,
            allow: texts(&["builtin:get_current_time", "search"]),
            ask: texts(&["files:write", "print"]),
            deny: texts(&["external:print", "other"]),
        },
        subagents: texts(&["other"]),
        max_subagent_depth: 1,
    };
    assert_eq!(react(&config, "helper"), &expected);
    let limits = ["helper", "other"].map(|id| config.agents[id].history_limit);
    assert_eq!(limits, [20, 200]);
}

#[test]
fn a_tool_without_parameters_takes_none() {
    let text = "agentscope: {models: {q: {model: m}}, agents: {a: {type: react, model: q, tools: \
                [{external: {name: stop}}]}}}\n";
    let config = load(text);
    let ToolConfig::External(declared) = &react(&config, "a").tools[0] else { panic!() };
    assert_eq!(*declared.parameters, json!({"type": "object", "properties": {}}));
}

#[test]
fn members_of_a_schema_keep_their_order() {
    let text = "agentscope: {models: {q: {model: m}}, agents: {a: {type: react, model: q, tools: \
                [{external: {name: x, parameters: {type: object, properties: {z: {}, y: {enum: [2, \
                1]}, a: {}}, required: [z, a]}}}]}}}\n";
    let config = load(text);
    let ToolConfig::External(declared) = &react(&config, "a").tools[0] else { panic!() };
    assert_eq!(
        declared.parameters.to_string(),
        r#"{"type":"object","properties":{"z":{},"y":{"enum":[2,1]},"a":{}},"required":["z","a"]}"#
    );
}

#[test]
fn certificate_authorities_start_at_the_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), "").unwrap();
    let at = |file: &str| folder.path().join(file);
    let load = |text: &str| {
        let source = Source::Text { name: at("test.yaml"), text: text.to_owned() };
        config::load(source, &Environment::default())
    };
    let config =
        load("agentscope: {ca-files: [ca.pem], agui: {history-limit: 0}}\n").unwrap().config;
    assert_eq!(config.ca_files, [at("ca.pem")]);
    assert_eq!(config.agui.history_limit, 0);
    let missing = load("agentscope: {ca-files: [ca.pem, other.pem]}\n").unwrap_err().to_string();
    let file = at("test.yaml");
    let expected = format!(
        "{}:1:33: agentscope.ca-files[1]: the file {} cannot be read: No such file or directory (os \
         error 2)\n",
        file.display(),
        at("other.pem").display()
    );
    assert_eq!(missing.lines().next().unwrap(), expected.trim_end());
}

/// What stands behind `#   ` in the shipped file below a line, as YAML.
fn commented(first: &str) -> Vec<String> {
    let shipped = include_str!("../../config/agentscope.yaml");
    let block = shipped.lines().skip_while(|line| *line != first);
    let lines = block.map_while(|line| line.strip_prefix("  #   "));
    lines.map(|line| line.replacen("#  ", "  ", 1)).collect()
}

#[test]
fn the_shipped_file_says_the_defaults_of_models_servers_and_react_agents() {
    let block = |first: &str| commented(first).join("\n    ");
    let text = format!(
        "agentscope:\n  models:\n    {}\n  mcp-servers:\n    {}\n  agents:\n    {}\n",
        block("  #   qwen:"),
        block("  #   files:"),
        block("  #   helper:")
    );
    let text = text.replacen("tools: []", "tools:", 1);
    let mut shown = load_file(&text);
    let mut short = load_file(
        "agentscope:\n  models: {qwen: {model: qwen-plus}}\n  mcp-servers: {files: {command: npx}, \
         remote: {url: 'http://127.0.0.1:9000/mcp'}}\n  agents: {helper: {type: react, model: qwen, \
         tools: [{mcp: files}, {builtin: calculate}, {external: {name: print_label, parameters: \
         {type: object}}}, {http: {name: weather, description: The weather of a city., parameters: \
         {type: object, properties: {city: {type: string}}, required: [city]}, url: \
         'https://weather.example.com/{city}', timeout: 2m}}]}}\n",
    );
    assert_eq!(shown.models, short.models);
    assert_eq!(react(&shown, "helper"), react(&short, "helper"));
    for config in [&mut shown, &mut short] {
        let McpTransport::Stdio { cwd, .. } =
            &mut config.mcp_servers.get_mut("files").unwrap().transport
        else {
            panic!("a program");
        };
        *cwd = cwd.components().collect();
    }
    assert_eq!(shown.mcp_servers, short.mcp_servers);
}

#[test]
fn variables_set_keys_of_models_and_servers_of_the_file_and_make_new_ones() {
    let text = "agentscope:\n  models: {Qwen-Plus: {model: m, parameters: {topP: 1}}}\n  mcp-servers: \
                {files: {command: x}}\n  agents: {a: {type: react, model: Qwen-Plus}}\n";
    let variables = [
        ("AGENTSCOPE_MODELS_QWEN_PLUS_API_KEY", "sk-1"),
        ("AGENTSCOPE_MODELS_QWENPLUS_BASEURL", "http://x/v1"),
        ("AGENTSCOPE_MODELS_QWEN_PLUS_PARAMETERS_TEMPERATURE", "0.5"),
        ("AGENTSCOPE_MODELS_QWEN_PLUS_PARAMETERS_ENABLE_THINKING", "true"),
        ("AGENTSCOPE_MODELS_QWEN_PLUS_PARAMETERS_THINKING", "{\"budget\": 8}"),
        ("AGENTSCOPE_MODELS_QWEN_PLUS_PARAMETERS_TOPP", "0123"),
        ("AGENTSCOPE_MODELS_QWEN_PLUS_PARAMETERS_USER", "me"),
        ("AGENTSCOPE_MODELS_OTHER_MODEL", "n"),
        ("AGENTSCOPE_MODELS_OTHER_MAX_RETRIES", "5"),
        ("AGENTSCOPE_MCP_SERVERS_FILES_ENV_TOKEN", "t"),
        ("AGENTSCOPE_MCPSERVERS_FILES_ARGS", "a,b"),
        ("AGENTSCOPE_MCPSERVERS_WEB_URL", "http://w/mcp"),
        ("AGENTSCOPE_AGENTS_A_TOOLS_0_MCP", "files"),
        ("AGENTSCOPE_AGENTS_A_PERMISSION_MODE", "dontAsk"),
        ("AGENTSCOPE_AGENTS_A_PERMISSION_DENY", "x,y"),
        ("AGENTSCOPE_AGENTS_A_MAXITERS", "2"),
        ("AGENTSCOPE_AGUI_HISTORY_LIMIT", "7"),
    ];
    let config = load_with(text, &variables).expect("valid").config;
    let qwen = &config.models["Qwen-Plus"];
    assert_eq!(
        (qwen.api_key.clone(), qwen.base_url.as_str()),
        (Some(Secret::new("sk-1")), "http://x/v1")
    );
    let parameters = json!({
        "topP": "0123", "temperature": 0.5, "enable_thinking": true, "thinking": {"budget": 8}, "user": "me",
    });
    assert_eq!(Value::Object(qwen.parameters.clone()), parameters);
    let other = &config.models["other"];
    assert_eq!((other.model.as_str(), other.max_retries), ("n", 5));
    let McpTransport::Stdio { args, env, .. } = &config.mcp_servers["files"].transport else {
        panic!("a program");
    };
    assert_eq!(
        (args.as_slice(), env),
        (&["a".to_owned(), "b".to_owned()][..], &secrets(&[("TOKEN", "t")]))
    );
    let web = McpTransport::Http { url: "http://w/mcp".to_owned(), headers: BTreeMap::new() };
    assert_eq!(config.mcp_servers["web"].transport, web);
    let agent = react(&config, "a");
    assert_eq!((agent.max_iters, agent.permission.mode), (2, PermissionMode::DontAsk));
    assert_eq!(agent.permission.deny, ["x", "y"]);
    assert_eq!(agent.tools.len(), 1);
    assert_eq!(config.agui.history_limit, 7);
}

#[test]
fn unknown_names_of_models_and_servers_are_refused() {
    let told = |name: &str| {
        let told = load_with("", &[(name, "x")]).expect_err("no key has this name");
        told.split_once("; valid names:").or(told.split_once(" Valid names:")).unwrap().0.to_owned()
    };
    assert_eq!(
        told("AGENTSCOPE_MODELS_QWEN_APIKY"),
        "environment variable AGENTSCOPE_MODELS_QWEN_APIKY: no configuration key has this name; did \
         you mean AGENTSCOPE_MODELS_<NAME>_API_KEY?"
    );
    let told = load_with("", &[("AGENTSCOPE_MCPSERVERS_FILES", "x")]).expect_err("no key");
    let names =
        ["COMMAND", "ARGS", "ENV_<NAME>", "CWD", "URL", "HEADERS_<NAME>", "TIMEOUT", "SCOPE"];
    let names = names.into_iter().chain(["OPTIONAL", "ELICITATION"]);
    let names: Vec<_> = names.map(|key| format!("AGENTSCOPE_MCP_SERVERS_<NAME>_{key}")).collect();
    assert_eq!(told.split_once("alid names: ").unwrap().1, names.join(", "));
    let ignored = load_with("", &[("AGENTSCOPE_MODEL", "x")]).expect("another's").warnings;
    assert_eq!(
        ignored,
        ["ignored environment variables that name no configuration key: AGENTSCOPE_MODEL"]
    );
}

#[test]
fn rules_that_name_no_tool_are_warned_of_unless_a_server_may_have_it() {
    let warned = |tools: &str| {
        let text = format!(
            "agentscope: {{models: {{q: {{model: m}}}}, mcp-servers: {{s: {{command: x}}}}, agents: \
             {{a: {{type: react, model: q, tools: [{tools}], permission: {{ask: [send, b], deny: \
             [calculate]}}, subagents: [b]}}, b: {{type: react, model: q}}}}}}\n"
        );
        load_with(&text, &[]).expect("valid").warnings
    };
    assert_eq!(
        warned(""),
        // What is denied is denied to sub-agents as well, and may be meant for them.
        ["agent a: `send` under permission.ask names no tool of this agent"]
    );
    assert_eq!(warned("{mcp: s}"), Vec::<String>::new());
    assert_eq!(warned("{mcp: s, include: [send]}, {builtin: calculate}"), Vec::<String>::new());
    assert_eq!(
        warned("{mcp: s, exclude: [send]}"),
        ["agent a: `send` under permission.ask names no tool of this agent"]
    );
}
