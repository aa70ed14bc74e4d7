//! The table of all keys. A key that is not here does not exist; what is here has a reader in
//! `server.rs`, `agui.rs`, `adapter.rs`, `agents.rs`, `command.rs`, `models.rs`, `mcp_servers.rs` or
//! `react.rs`.

use super::schema::{Key, Kind, Variant, key};

/// The whole file.
pub static ROOT: Kind = Kind::Struct(&[
    key("server", Kind::Struct(SERVER), "Where and how the server listens."),
    key("agentscope", Kind::Struct(AGENTSCOPE), "Everything about agents and their surface."),
]);

const COUNT: Kind = Kind::Int { min: 1, max: 1_000_000_000 };

/// Key `server`.
const SERVER: &[Key] = &[
    key("host", Kind::Text, "Address to bind."),
    key("port", Kind::Int { min: 0, max: 65_535 }, "Port to bind; 0 picks a free one."),
    key("request-body-limit", Kind::Size, "Longest request body."),
    key("max-concurrent-runs", COUNT, "Runs at once; beyond it requests are answered with 429."),
    key(
        "shutdown-grace",
        Kind::Duration,
        "How long runs may go on when the server is told to end.",
    ),
    key("auth", Kind::Variants(AUTH), "How the server knows who asks; without it, it does not."),
];

/// Key `server.auth`.
const AUTH: &[Variant] = &[
    Variant { name: "none", keys: &[] },
    Variant {
        name: "trusted-header",
        keys: &[key("header", Kind::Text, "Header in which a proxy in front names the user.")],
    },
];

const AGENTSCOPE: &[Key] = &[
    key("agui", Kind::Struct(AGUI), "The AG-UI surface."),
    key("ca-files", Kind::List(&Kind::Text), "Certificate authorities beside the system's."),
    key("models", Kind::Map(&MODEL), "The models of react agents, by name."),
    key("mcp-servers", Kind::Map(&MCP_SERVER), "The MCP servers of react agents, by name."),
    key("agents", Kind::Map(&AGENT), "The agents, by id; without it the demo agents are served."),
];

static MODEL: Kind = Kind::Struct(&[
    key(
        "provider",
        Kind::Choice(&["openai", "anthropic", "gemini"]),
        "The wire it speaks; openai = chat completions, as many others have them too.",
    ),
    key("base-url", Kind::Text, "Where it is, e.g. `https://api.openai.com/v1`."),
    key("api-key", Kind::Text, "The key, if it needs one."),
    key("model", Kind::Text, "The provider's name of the model."),
    key("headers", Kind::Map(&Kind::Text), "Headers of every request."),
    key("parameters", Kind::Map(&Kind::Any), "Members of every request's body."),
    key("timeout", Kind::Duration, "Longest time without a byte; 0 = no limit."),
    key(
        "max-retries",
        Kind::Int { min: 0, max: 100 },
        "How often a request is repeated that failed before the first delta.",
    ),
    key("vision", Kind::Bool, "It takes images."),
]);

static MCP_SERVER: Kind = Kind::Struct(&[
    key("command", Kind::Text, "The program: a name on the PATH, or a path."),
    key("args", Kind::List(&Kind::Text), "Its arguments."),
    key("env", Kind::Map(&Kind::Text), "Its environment variables, by name."),
    key("cwd", Kind::Text, "The folder it runs in."),
    key("url", Kind::Text, "The endpoint, in place of a program."),
    key("headers", Kind::Map(&Kind::Text), "Headers of every request to the endpoint."),
    key("timeout", Kind::Duration, "Longest start, and longest call without progress."),
    key("scope", Kind::Choice(&["server", "thread"]), "Who shares it: all threads, or none."),
    key("optional", Kind::Bool, "A run goes on without it."),
    key(
        "elicitation",
        Kind::Choice(&["decline", "wait"]),
        "What becomes of questions in the middle of a call of the older protocol.",
    ),
]);

const MERGE_MODE: Key = key(
    "default-tool-merge-mode",
    Kind::Choice(&["MERGE_FRONTEND_PRIORITY", "FRONTEND_ONLY", "AGENT_ONLY"]),
    "Which tools an agent sees when the input brings some.",
);
const RUN_TIMEOUT: Key = key("run-timeout", Kind::Duration, "Longest run; 0 = no limit.");
const TOOL_OUTCOME: Key = key(
    "frontend-tool-outcome",
    Kind::Choice(&["pending", "interrupt"]),
    "How a run ends that called a tool of the front end.",
);
const STATE_EVENTS: Key = key("emit-state-events", Kind::Bool, "STATE_* events.");
const STEP_EVENTS: Key =
    key("emit-step-events", Kind::Bool, "STEP_* around model calls and tools.");
const TOOL_CALL_ARGS: Key = key("emit-tool-call-args", Kind::Bool, "TOOL_CALL_ARGS events.");
const TOKEN_USAGE: Key =
    key("emit-token-usage", Kind::Bool, "CUSTOM token_usage after each model call.");
const REASONING: Key = key("enable-reasoning", Kind::Bool, "The model's thinking is shown.");
const FINISH_AFTER_ERROR: Key = key(
    "emit-run-finished-after-error",
    Kind::Bool,
    "RUN_FINISHED behind RUN_ERROR, for old clients only; current ones reject it.",
);
const NATIVE: Key = key(
    "emit-subagent-events-as-native",
    Kind::Bool,
    "Events of sub-agents as the agent's own; the same as `subagent-events: native`.",
);
const SUBAGENT_EVENTS: Key = key(
    "subagent-events",
    Kind::Choice(&["auto", "attributed", "custom", "native"]),
    "How events of sub-agents are sent.",
);
const SYSTEM_MESSAGES: Key = key(
    "accept-client-system-messages",
    Kind::Bool,
    "System and developer messages of the client reach the agent.",
);
const HISTORY_LIMIT: Key = key(
    "history-limit",
    Kind::Int { min: 0, max: 1_000_000_000 },
    "Messages of the history given to a model; 0 = all.",
);
const ENRICHERS_KEY: Key =
    key("enrichers", Kind::List(&ENRICHER), "What is done to every event, in order.");
const CONVERTERS_KEY: Key =
    key("converters", Kind::List(&CONVERTER), "What is done to the agent's CUSTOM events.");

/// Key `agentscope.agui`.
pub const AGUI: &[Key] = &[
    key("path-prefix", Kind::Text, "Prefix of all routes."),
    key("cors-enabled", Kind::Bool, "CORS headers are sent."),
    key("cors-allowed-origins", Kind::List(&Kind::Text), "Origins that may call."),
    key("cors-allow-credentials", Kind::Bool, "Browsers may send credentials."),
    RUN_TIMEOUT,
    key("heartbeat-interval", Kind::Duration, "A comment line after such a silence; 0 = off."),
    key(
        "write-timeout",
        Kind::Duration,
        "A client that takes nothing for so long is cut off; 0 = never.",
    ),
    key("coalesce-window", Kind::Duration, "Events are gathered so long before a write; 0 = off."),
    key("default-agent-id", Kind::Text, "Agent for requests that name none."),
    key("enable-path-routing", Kind::Bool, "The agent may stand in the path."),
    key("agent-id-header", Kind::Text, "Header that names the agent."),
    MERGE_MODE,
    TOOL_OUTCOME,
    key("echo-input", Kind::Bool, "RUN_STARTED carries the input."),
    STATE_EVENTS,
    STEP_EVENTS,
    TOOL_CALL_ARGS,
    TOKEN_USAGE,
    REASONING,
    FINISH_AFTER_ERROR,
    NATIVE,
    SUBAGENT_EVENTS,
    key(
        "base-event-properties-enricher-enabled",
        Kind::Bool,
        "A timestamp on every event; the same as the enricher `timestamp`.",
    ),
    key(
        "sse-timeout",
        Kind::Duration,
        "Longest life of one response; then as interrupt-on-disconnect says; 0 = no limit.",
    ),
    key("interrupt-on-disconnect", Kind::Bool, "A run whose client leaves is stopped."),
    key("server-side-memory", Kind::Bool, "Histories are kept by the server."),
    key("max-thread-sessions", COUNT, "Threads kept on which nothing happens or waits."),
    key(
        "session-timeout-minutes",
        Kind::Int { min: 0, max: 1_000_000_000 },
        "How long such a thread is kept; 0 = for ever.",
    ),
    key("max-parked-threads", COUNT, "Threads kept that have open interrupts."),
    key("interrupt-ttl", Kind::Duration, "How long an interrupt can be resolved; 0 = for ever."),
    key(
        "on-unanswered-interrupts",
        Kind::Choice(&["reject", "cancel"]),
        "What a run without resume does on a thread with open interrupts.",
    ),
    key(
        "assume-peer",
        Kind::Choice(&["auto", "current", "legacy"]),
        "What clients are taken for; auto = by their protocolVersion.",
    ),
    SYSTEM_MESSAGES,
    HISTORY_LIMIT,
    key(
        "runtime-context",
        Kind::Map(&CONTEXT_SOURCE),
        "Values for agents and tools, by name, and where each comes from.",
    ),
    ENRICHERS_KEY,
    CONVERTERS_KEY,
];

/// Key `agui` of an agent: what may differ between agents.
const AGENT_AGUI: &[Key] = &[
    RUN_TIMEOUT,
    MERGE_MODE,
    TOOL_OUTCOME,
    STATE_EVENTS,
    STEP_EVENTS,
    TOOL_CALL_ARGS,
    TOKEN_USAGE,
    REASONING,
    FINISH_AFTER_ERROR,
    NATIVE,
    SUBAGENT_EVENTS,
    SYSTEM_MESSAGES,
    HISTORY_LIMIT,
    ENRICHERS_KEY,
    CONVERTERS_KEY,
];

static CONTEXT_SOURCE: Kind = Kind::Struct(&[
    key("header", Kind::Text, "The value of this request header."),
    key("query", Kind::Text, "The value of this query parameter."),
    key("principal", Kind::Bool, "true: who asks, as `server.auth` has established."),
    key("value", Kind::Any, "This constant."),
]);

static ENRICHER: Kind = Kind::Variants(&[
    Variant { name: "timestamp", keys: &[] },
    Variant { name: "raw-event", keys: &[] },
    Variant {
        name: "metadata",
        keys: &[key("set", Kind::Map(&Kind::Any), "Members put into every event's metadata.")],
    },
    Variant {
        name: "drop",
        keys: &[
            // Any text here: what may not be dropped gets an answer that says why.
            key("event", Kind::Text, "CUSTOM, RAW, REASONING, STEP, STATE or ACTIVITY."),
            key("name", Kind::Text, "Only CUSTOM events of this name."),
        ],
    },
]);

static CONVERTER: Kind = Kind::Struct(&[
    key("custom", Kind::Text, "Name of the agent's CUSTOM event."),
    key("rename", Kind::Text, "Send it under this name."),
    key("drop", Kind::Bool, "true: do not send it."),
    key("as", Kind::Choice(&["state", "activity", "step"]), "What it means."),
]);

const NAME: Key = key("name", Kind::Text, "Name shown to people.");
const DESCRIPTION: Key = key("description", Kind::Text, "Shown to people.");
const SWITCHES: Key =
    key("agui", Kind::Struct(AGENT_AGUI), "Switches that hold for this agent only.");

static AGENT: Kind = Kind::Variants(AGENTS);

/// The types of agents.
pub static AGENTS: &[Variant] = &[
    Variant {
        name: "scripted",
        keys: &[
            NAME,
            DESCRIPTION,
            key("turns", Kind::List(&TURN), "The turns; the first that matches is played."),
            key("script", Kind::Text, "File of the only turn."),
            SWITCHES,
        ],
    },
    Variant {
        name: "command",
        keys: &[
            NAME,
            DESCRIPTION,
            key("command", Kind::Text, "The program: a name on the PATH, or a path."),
            key("args", Kind::List(&Kind::Text), "Its arguments."),
            key("env", Kind::Map(&Kind::Text), "Its environment variables, by name."),
            key("cwd", Kind::Text, "The folder it runs in."),
            key("line-limit", Kind::Size, "Longest line that it may write."),
            key("silence-timeout", Kind::Duration, "Longest time without a line; 0 = no limit."),
            key("kill-grace", Kind::Duration, "Time between SIGTERM and SIGKILL."),
            SWITCHES,
        ],
    },
    Variant {
        name: "react",
        keys: &[
            NAME,
            DESCRIPTION,
            key("sys-prompt", Kind::Text, "Instructions."),
            key("model", Kind::Text, "Name of its model in `agentscope.models`."),
            key("max-iters", COUNT, "Model calls of one reply at most."),
            key("tools", Kind::List(&TOOL), "Where its tools come from."),
            key("tool-timeout", Kind::Duration, "Longest call of a tool; 0 = no limit."),
            key("parallel-tool-calls", Kind::Bool, "The tools of one answer run at once."),
            key("permission", Kind::Struct(PERMISSION), "Which tools run, ask first, or do not."),
            key("subagents", Kind::List(&Kind::Text), "Agents that are offered as tools."),
            key(
                "max-subagent-depth",
                Kind::Int { min: 1, max: 100 },
                "How deep sub-agents may nest below this agent.",
            ),
            SWITCHES,
        ],
    },
];

static TOOL: Kind = Kind::Struct(&[
    key("mcp", Kind::Text, "Tools of this server in `agentscope.mcp-servers`."),
    key("include", Kind::List(&Kind::Text), "Only these of its tools."),
    key("exclude", Kind::List(&Kind::Text), "All of its tools but these."),
    key(
        "builtin",
        Kind::Choice(&["get_current_time", "calculate", "update_state", "update_plan", "ask_user"]),
        "A tool of the server's own.",
    ),
    key(
        "external",
        Kind::Struct(&[TOOL_NAME, TOOL_DESCRIPTION, TOOL_PARAMETERS]),
        "A tool that somebody else executes; its result comes with the next run.",
    ),
    key(
        "http",
        Kind::Struct(&[
            TOOL_NAME,
            TOOL_DESCRIPTION,
            TOOL_PARAMETERS,
            key("method", Kind::Choice(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "The method."),
            key("url", Kind::Text, "The address; `{parameter}` stands for an argument."),
            key("headers", Kind::Map(&Kind::Text), "Headers of every request."),
            key("timeout", Kind::Duration, "Longest request, in place of `tool-timeout`."),
            key("response-limit", Kind::Size, "Longest response body."),
        ]),
        "A tool that is an HTTP request.",
    ),
]);

const TOOL_NAME: Key = key("name", Kind::Text, "Name, for the model.");
const TOOL_DESCRIPTION: Key = key("description", Kind::Text, "What it does, for the model.");
const TOOL_PARAMETERS: Key =
    key("parameters", Kind::Map(&Kind::Any), "JSON Schema of the arguments, an object.");

/// Rules are `tool` or `source:tool`.
const PERMISSION: &[Key] = &[
    key(
        "mode",
        Kind::Choice(&["default", "accept_edits", "explore", "bypass", "dont_ask"]),
        "What becomes of calls that no rule decides.",
    ),
    key("allow", Kind::List(&Kind::Text), "Tools that run."),
    key("ask", Kind::List(&Kind::Text), "Tools that ask first."),
    key("deny", Kind::List(&Kind::Text), "Tools that do not run."),
];

static TURN: Kind = Kind::Struct(&[
    key("when", Kind::Struct(WHEN), "When it is played; all conditions must hold."),
    key("script", Kind::Text, "File with the lines."),
    key("events", Kind::List(&Kind::Verbatim), "The lines themselves."),
]);

const WHEN: &[Key] = &[
    key("text", Kind::Text, "The last user message contains it, case ignored."),
    key(
        "resume",
        Kind::Choice(&["approved", "denied", "cancelled", "answered", "any"]),
        "How the run's resume answers.",
    ),
    key("tool-result", Kind::Text, "The last message is a result of this tool."),
    key("always", Kind::Bool, "true: always."),
];

#[cfg(test)]
mod tests;
