//! Broken models, MCP servers and react agents, and the errors that they give, to the letter.

use super::support::config::load;

/// The errors of a text without the excerpts.
fn messages(text: &str) -> Vec<String> {
    let errors = load(text, &[]).expect_err("an invalid text");
    errors.lines().filter(|line| !line.starts_with("  ")).map(str::to_owned).collect()
}

#[test]
fn models_that_cannot_be_reached() {
    assert_eq!(
        messages(
            "agentscope:\n  models:\n    a: {provider: opnai, model: m}\n    b: {base-url: \
             'http://x/v1'}\n    c: {model: m, base-url: 'x.example/v1'}\n    d: {model: m, \
             base-url: 'https://x/v1?a=b'}\n    e: {model: m, parameters: {stream: false}}\n    f:\n    \
             g: {modle: m}\n    h: {model: ''}\n    i: {model: m, headers: {'X Y': a}}\n    j: \
             {model: m, headers: {Content-Length: '5', X-A: a, x-a: b, Accept: c}}\n"
        ),
        [
            "test.yaml:3:19: agentscope.models.a.provider: expected one of openai, anthropic, gemini, \
             found `opnai`; did you mean `openai`?",
            "test.yaml:4:5: agentscope.models.b: `model` is missing",
            "test.yaml:5:29: agentscope.models.c.base-url: expected an address such as \
             `https://example.com/path`",
            "test.yaml:6:29: agentscope.models.d.base-url: the path of a request is appended to this \
             address: it has neither a query nor a fragment",
            "test.yaml:7:32: agentscope.models.e.parameters.stream: `stream` is the server's own and \
             cannot be replaced",
            "test.yaml:8:5: agentscope.models.f: `model` is missing",
            "test.yaml:9:9: agentscope.models.g.modle: unknown key; did you mean `model`? Valid keys: \
             provider, base-url, api-key, model, headers, parameters, timeout, max-retries, vision",
            "test.yaml:10:5: agentscope.models.h: `model` is missing",
            "test.yaml:11:29: agentscope.models.i.headers.\"X Y\": this cannot be the name of a header",
            "test.yaml:12:29: agentscope.models.j.headers.Content-Length: this header is the server's \
             own and cannot be replaced",
            "test.yaml:12:58: agentscope.models.j.headers.x-a: this header stands there already, in \
             other letters",
        ]
    );
}

#[test]
fn servers_that_cannot_be_reached() {
    assert_eq!(
        messages(
            "agentscope:\n  mcp-servers:\n    a: {}\n    b: {command: x, url: 'http://x'}\n    c: {url: \
             'http://x', args: [a]}\n    d: {command: x, headers: {A: b}}\n    e: {url: file:///x}\n    \
             f: {command: x, timeout: 0}\n    g: {command: ''}\n    http: {command: x}\n    'a:b': \
             {command: x}\n    h: {command: x, elicitation: waits}\n    i: {url: 'http://x', \
             headers: {Mcp-Session-Id: a}}\n"
        ),
        [
            "test.yaml:3:5: agentscope.mcp-servers.a: exactly one of `command` and `url` is needed",
            "test.yaml:4:5: agentscope.mcp-servers.b: exactly one of `command` and `url` is needed",
            "test.yaml:5:26: agentscope.mcp-servers.c.args: this key goes only with `command`",
            "test.yaml:6:21: agentscope.mcp-servers.d.headers: this key goes only with `url`",
            "test.yaml:7:14: agentscope.mcp-servers.e.url: expected an address such as \
             `https://example.com/path`",
            "test.yaml:8:30: agentscope.mcp-servers.f.timeout: expected more than 0: a server that \
             hangs must not hold a run for ever",
            "test.yaml:9:18: agentscope.mcp-servers.g.command: expected the name or the path of a \
             program",
            "test.yaml:10:5: agentscope.mcp-servers.http: `http` stands for other tools in permission \
             rules",
            "test.yaml:11:5: agentscope.mcp-servers.\"a:b\": the name of a server has 1 to 64 \
             characters out of A-Z, a-z, 0-9, `.`, `_` and `-`",
            "test.yaml:12:34: agentscope.mcp-servers.h.elicitation: expected one of decline, wait, \
             found `waits`; did you mean `wait`?",
            "test.yaml:13:36: agentscope.mcp-servers.i.headers.Mcp-Session-Id: this header is the \
             server's own and cannot be replaced",
        ]
    );
}

#[test]
fn secrets_of_models_servers_and_tools_are_masked() {
    let told = |text: &str| load(text, &[]).expect_err("an invalid text");
    assert_eq!(
        told("agentscope:\n  models:\n    a:\n      model: m\n      api-key: \"sk-1\\n\"\n"),
        "test.yaml:5:16: agentscope.models.a.api-key: only visible ASCII characters can be sent here; \
         a line end is none\n  5 |       api-key: ***\n    |                ^"
    );
    assert_eq!(
        told("agentscope: {models: {a: {model: m, headers: {X-Team: {a: sk-1}}}}}\n"),
        "test.yaml:1:55: agentscope.models.a.headers.X-Team: expected text, found a map of keys\n  \
         1 | agentscope: {models: {a: {model: m, headers: ***\n    |                                                 ^"
    );
    assert_eq!(
        told("agentscope: {mcp-servers: {a: {url: 'https://me:sk-1@x.example/'}}}\n"),
        "test.yaml:1:37: agentscope.mcp-servers.a.url: credentials do not belong into an address: use \
         a header\n  1 | agentscope: {mcp-servers: {a: {url: 'https:// ***\n    |                                     ^"
    );
    assert_eq!(
        told("agentscope: {mcp-servers: {a: {url: 'https://x.example/?apiKey=sk-1', argz: 1}}}\n"),
        "test.yaml:1:71: agentscope.mcp-servers.a.argz: unknown key; did you mean `args`? Valid keys: \
         command, args, env, cwd, url, headers, timeout, scope, optional, elicitation\n  1 | \
         agentscope: {mcp-servers: {a: {url: 'https://x.example/?apiKey= ***\n    |                                                                    ^"
    );
    let variables = [("AGENTSCOPE_MODELS_A_MODEL", "m"), ("AGENTSCOPE_MODELS_A_API_KEY", "sk-1\n")];
    assert_eq!(
        load("", &variables).expect_err("a line end"),
        "environment variable AGENTSCOPE_MODELS_A_API_KEY: agentscope.models.a.api-key: only visible \
         ASCII characters can be sent here; a line end is none"
    );
}

/// The errors of a react agent with these keys, which stand from line 6 on.
fn agent(keys: &str) -> Vec<String> {
    let told = messages(&format!(
        "agentscope:\n  models: {{qwen: {{model: m}}}}\n  mcp-servers: {{files: {{command: x}}, web: \
         {{url: 'http://w'}}}}\n  agents:\n    a:\n{keys}      type: react\n    b: {{type: react, model: \
         qwen}}\n"
    ));
    let rest = |line: String| line.replace("agentscope.agents.a.", "");
    told.into_iter().map(rest).collect()
}

#[test]
fn what_an_agent_names_must_exist() {
    assert_eq!(
        agent("      model: qwn\n      subagents: [c, a, b, b]\n      tools: [{mcp: flies}]\n"),
        [
            "test.yaml:6:14: model: there is no model `qwn`; did you mean `qwen`? Valid models: qwen",
            "test.yaml:7:19: subagents[0]: there is no agent `c`; agents: b",
            "test.yaml:7:22: subagents[1]: an agent cannot be its own sub-agent",
            "test.yaml:7:28: subagents[3]: this agent stands in the list already",
            "test.yaml:8:21: tools[0].mcp: there is no MCP server `flies`; did you mean `files`? Valid \
             MCP servers: files, web",
        ]
    );
    assert_eq!(
        agent("      max-iters: 1\n"),
        ["test.yaml:5:5: agentscope.agents.a: `model` is missing"]
    );
    assert_eq!(
        agent("      model: qwen\n      max-iters: 0\n      max-subagent-depth: 101\n"),
        [
            "test.yaml:7:18: max-iters: expected a whole number from 1 to 1000000000, found `0`",
            "test.yaml:8:27: max-subagent-depth: expected a whole number from 1 to 100, found `101`",
        ]
    );
}

#[test]
fn sub_agents_that_lead_back_are_told_once() {
    let text = "agentscope:\n  models: {q: {model: m}}\n  agents:\n    a: {type: react, model: q, \
                subagents: [d, b]}\n    b: {type: react, model: q, subagents: [c]}\n    c: {type: \
                react, model: q, subagents: [b, a]}\n    d: {type: react, model: q}\n";
    assert_eq!(
        messages(text),
        [
            "test.yaml:4:47: agentscope.agents.a.subagents[1]: sub-agents lead back to this agent: a → \
             b → c → a",
            "test.yaml:5:44: agentscope.agents.b.subagents[0]: sub-agents lead back to this agent: b → \
             c → b",
        ]
    );
}

#[test]
fn tools_that_cannot_be_called() {
    let tools = |items: &str| agent(&format!("      model: qwen\n      tools:\n{items}"));
    let one_of = "exactly one of `mcp`, `builtin`, `external` and `http` is needed";
    assert_eq!(
        tools(
            "        - {include: [x]}\n        - {mcp: files, builtin: calculate}\n        - {builtin: \
             calculator}\n        - {mcp: files, include: [x], exclude: [y]}\n        - {mcp: files}\n        \
             - {builtin: ask_user, include: [x]}\n        - {builtin: ask-user}\n"
        ),
        [
            format!("test.yaml:8:11: tools[0]: {one_of}"),
            format!("test.yaml:9:11: tools[1]: {one_of}"),
            "test.yaml:10:21: tools[2].builtin: expected one of get_current_time, calculate, \
             update_state, update_plan, ask_user, found `calculator`; did you mean `calculate`?"
                .to_owned(),
            "test.yaml:11:38: tools[3].exclude: `include` says already which tools there are"
                .to_owned(),
            "test.yaml:12:11: tools[4]: this MCP server stands in the list already".to_owned(),
            "test.yaml:13:31: tools[5].include: this key goes only with `mcp`".to_owned(),
            "test.yaml:14:11: tools[6]: an earlier tool of this list has the name `ask_user`"
                .to_owned(),
        ]
    );
    assert_eq!(
        tools(
            "        - external: {}\n        - external: {name: a b}\n        - external: {name: c, \
             parameters: {type: string}}\n        - external: {name: d, parameters: {type: object, \
             properties: {n: {type: numbr}}}}\n        - external: {name: e, parameters: {type: object, \
             $ref: 'http://127.0.0.1:1/x.json'}}\n        - external: {name: calculate}\n        - builtin: \
             calculate\n"
        ),
        [
            "test.yaml:8:11: tools[0].external: `name` is missing",
            "test.yaml:9:28: tools[1].external.name: the name of a tool has 1 to 64 characters out of \
             A-Z, a-z, 0-9, `_` and `-`",
            "test.yaml:10:43: tools[2].external.parameters: the arguments of a tool are an object: \
             `type: object` is needed",
            "test.yaml:11:43: tools[3].external.parameters: not a JSON Schema: \"numbr\" is not valid \
             under any of the schemas listed in the 'anyOf' keyword (at `/properties/n/type`)",
            "test.yaml:12:43: tools[4].external.parameters: not a JSON Schema: Resource \
             'http://127.0.0.1:1/x.json' is not present in a registry and retrieving it failed: other \
             documents are not read (at ``)",
            "test.yaml:14:11: tools[6]: an earlier tool of this list has the name `calculate`",
        ]
    );
}

#[test]
fn urls_of_tools_that_cannot_be_filled() {
    let url = |url: &str| {
        let told = agent(&format!(
            "      model: qwen\n      tools:\n        - http:\n            name: x\n            \
             parameters: {{type: object, properties: {{city: {{}}, day: {{}}}}}}\n            url: \
             '{url}'\n"
        ));
        told.join("\n")
    };
    let at = |message: &str| format!("test.yaml:11:18: tools[0].http.url: {message}");
    let host = at("a parameter cannot choose scheme, host or port");
    for bad in ["http://{city}/", "http://x.{city}", "https://{city}:1/"] {
        assert_eq!(url(bad), host, "{bad}");
    }
    let braces = at("a parameter stands in braces: `{name}`");
    for bad in ["http://x/{city", "http://x/city}", "http://x/{}", "http://x/{{city}}"] {
        assert_eq!(url(bad), braces, "{bad}");
    }
    assert_eq!(
        url("http://x/{cty}?d={day}"),
        at(
            "there is no parameter `cty`; did you mean `city`? Valid properties of `parameters`: city, day"
        )
    );
    for bad in
        ["x.example/{city}", "http:///{city}", r"http://x\{city}", "http://x:{day}/", "{city}://x/"]
    {
        assert_eq!(url(bad), at("expected an address such as `https://example.com/path`"), "{bad}");
    }
    assert_eq!(url("http://x/{city}#y"), at("a request has no fragment (`#`)"));
    let told = agent(
        "      model: qwen\n      tools: [{http: {name: x, url: 'http://x', method: HEAD}}]\n",
    );
    assert_eq!(
        told,
        [
            "test.yaml:7:57: tools[0].http.method: expected one of GET, POST, PUT, PATCH, DELETE, found \
          `HEAD`"
        ]
    );
}

#[test]
fn rules_of_permission_that_hold_for_nothing() {
    assert_eq!(
        agent(
            "      model: qwen\n      tools: [{mcp: files}, {builtin: calculate}]\n      permission:\n        \
             mode: defalt\n        allow: ['', ':x', 'files:', 'flies:x', 'web:x', \
             'builtin:calculat', 'http:x', x]\n        ask: [x, 'files:y']\n        deny: ['files:y', x]\n"
        ),
        [
            "test.yaml:9:15: permission.mode: expected one of default, accept_edits, explore, bypass, \
             dont_ask, found `defalt`; did you mean `default`?",
            "test.yaml:10:17: permission.allow[0]: a rule is `tool` or `source:tool`",
            "test.yaml:10:21: permission.allow[1]: a rule is `tool` or `source:tool`",
            "test.yaml:10:27: permission.allow[2]: a rule is `tool` or `source:tool`",
            "test.yaml:10:37: permission.allow[3]: there is no source of tools `flies`; did you mean \
             `files`? Valid sources of this agent: builtin, files",
            "test.yaml:10:48: permission.allow[4]: there is no source of tools `web`; sources of this \
             agent: builtin, files",
            "test.yaml:10:57: permission.allow[5]: there is no tool `calculat`; did you mean \
             `calculate`? Valid tools of this source: calculate",
            "test.yaml:10:77: permission.allow[6]: there is no source of tools `http`; sources of this \
             agent: builtin, files",
            "test.yaml:10:87: permission.allow[7]: the same rule stands under `deny` already",
            "test.yaml:11:15: permission.ask[0]: the same rule stands under `deny` already",
            "test.yaml:11:18: permission.ask[1]: the same rule stands under `deny` already",
        ]
    );
}

#[test]
fn a_tool_that_cannot_be_read_gives_no_other_error() {
    assert_eq!(
        agent(
            "      model: qwen\n      tools: [{builtin: calculater}]\n      permission: {allow: \
             ['builtin:calculate', ':']}\n"
        ),
        [
            "test.yaml:7:25: tools[0].builtin: expected one of get_current_time, calculate, \
             update_state, update_plan, ask_user, found `calculater`; did you mean `calculate`?",
            "test.yaml:8:49: permission.allow[1]: a rule is `tool` or `source:tool`",
        ]
    );
}

#[test]
fn placeholders_of_a_prompt_that_there_are_not() {
    let known = "there are {{threadId}}, {{runId}} and {{context.<key>}} with a key of the runtime \
                 context";
    for (name, near) in [
        ("threadID", "; did you mean `threadId`?"),
        ("user", ""),
        ("context.", ""),
        ("context", ""),
    ] {
        assert_eq!(
            agent(&format!("      model: qwen\n      sys-prompt: 'Hello {{{{{name}}}}}'\n")),
            [format!(
                "test.yaml:7:19: sys-prompt: unknown placeholder `{{{{{name}}}}}`{near}; {known}"
            )]
        );
    }
}

#[test]
fn keys_of_other_agents_and_of_the_server() {
    assert_eq!(
        agent(
            "      model: qwen\n      script: x\n      temperature: 1\n      agui: {max-iters: 1}\n"
        ),
        [
            "test.yaml:7:7: script: unknown key; valid keys: type, name, description, sys-prompt, \
             model, max-iters, tools, tool-timeout, parallel-tool-calls, permission, subagents, \
             max-subagent-depth, agui",
            "test.yaml:8:7: temperature: unknown key; valid keys: type, name, description, sys-prompt, \
             model, max-iters, tools, tool-timeout, parallel-tool-calls, permission, subagents, \
             max-subagent-depth, agui",
            "test.yaml:9:14: agui.max-iters: unknown key; valid keys: run-timeout, \
             default-tool-merge-mode, frontend-tool-outcome, emit-state-events, emit-step-events, \
             emit-tool-call-args, emit-token-usage, enable-reasoning, emit-run-finished-after-error, \
             emit-subagent-events-as-native, subagent-events, accept-client-system-messages, \
             history-limit, enrichers, converters",
        ]
    );
}
