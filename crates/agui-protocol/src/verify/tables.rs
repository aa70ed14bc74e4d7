//! The shapes of everything that can stand in an event, as tables. No logic.

use super::schema::{Member, Shape, Struct, Union};
use Shape::{
    Any, Bool, Int, List, Metadata, NonNull, Object, OneOf, Pointer, Str, StrOrList, Struct as Of,
    Union as OneShape,
};

/// The rule of everything that the schema does not describe.
pub(super) const GENERAL: &str = "VER-11";

/// The greatest integer that every JavaScript number holds exactly.
const MAX_SAFE: i64 = 9_007_199_254_740_991;

const fn req(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: true, rule: GENERAL }
}

const fn opt(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: false, rule: GENERAL }
}

impl Member {
    const fn rule(mut self, rule: &'static str) -> Self {
        self.rule = rule;
        self
    }
}

const fn closed(members: &'static [&'static [Member]]) -> Struct {
    Struct { members, open: false }
}

const fn open(members: &'static [&'static [Member]]) -> Struct {
    Struct { members, open: true }
}

const NOTHING_RESERVED: (&[&str], &str) = (&[], GENERAL);

// Parts.

static PART: &[Member] = &[opt("id", Str), opt("metadata", NonNull)];
static TEXT_PART: Struct = closed(&[PART, &[req("text", Str)]]);
static MEDIA_PART: Struct = closed(&[PART, &[req("source", OneShape(&SOURCE))]]);
static DATA: Struct = closed(&[&[req("value", Str), req("mimeType", Str).rule("TOOL-10")]]);
static URL: Struct = closed(&[&[req("value", Str), opt("mimeType", Str)]]);
static FILE: Struct = closed(&[&[req("value", Str), opt("provider", Str), opt("mimeType", Str)]]);
static SOURCE: Union = Union {
    tag: "type",
    variants: &[("data", &DATA), ("url", &URL), ("file", &FILE)],
    rule: "TOOL-10",
    reserved: NOTHING_RESERVED,
};
static CONTENT_PART: Union = Union {
    tag: "type",
    variants: &[
        ("text", &TEXT_PART),
        ("image", &MEDIA_PART),
        ("audio", &MEDIA_PART),
        ("video", &MEDIA_PART),
        ("document", &MEDIA_PART),
    ],
    rule: "TOOL-10",
    reserved: (
        &["reasoning", "thinking", "tool", "toolCall", "tool-call", "tool_call", "assistant"],
        "TOOL-11",
    ),
};
static PARTS: Shape = OneShape(&CONTENT_PART);

// Messages.

static STRING: Shape = Str;
static FUNCTION: Struct = closed(&[&[req("name", Str), req("arguments", Str).rule("SNAP-5")]]);
static TOOL_CALL: Struct = closed(&[&[
    req("id", Str).rule("SER-5"),
    req("type", OneOf(&["function"])).rule("SNAP-5"),
    req("function", Of(&FUNCTION)),
    opt("encryptedValue", Str),
    opt("metadata", Metadata).rule("META-1"),
]]);
static TOOL_CALLS: Shape = Of(&TOOL_CALL);
static MESSAGE: &[Member] = &[
    req("id", Str).rule("SER-5"),
    opt("subagentRunId", Str).rule("SNAP-6"),
    opt("metadata", Metadata).rule("META-1"),
];
static ENCRYPTED: &[Member] = &[opt("encryptedValue", Str)];
static NAMED: &[Member] = &[opt("name", Str)];
static TEXT: &[Member] = &[req("content", Str).rule("SNAP-5")];
static TEXT_OR_PARTS: &[Member] = &[req("content", StrOrList(&PARTS)).rule("SNAP-5")];
static USER: Struct = closed(&[MESSAGE, ENCRYPTED, NAMED, TEXT_OR_PARTS]);
static ASSISTANT: Struct = closed(&[
    MESSAGE,
    ENCRYPTED,
    NAMED,
    &[opt("content", Str).rule("SNAP-5"), opt("toolCalls", List(&TOOL_CALLS, 0))],
]);
static TOOL_MESSAGE: Struct = closed(&[
    MESSAGE,
    ENCRYPTED,
    TEXT_OR_PARTS,
    &[req("toolCallId", Str).rule("SER-5"), opt("error", Str)],
]);
static INSTRUCTIONS: Struct = closed(&[MESSAGE, ENCRYPTED, NAMED, TEXT]);
static REASONING: Struct = closed(&[MESSAGE, ENCRYPTED, TEXT]);
static ACTIVITY: Struct = closed(&[
    MESSAGE,
    &[req("activityType", Str).rule("ACT-3"), req("content", Object).rule("ACT-1")],
]);
static MESSAGE_UNION: Union = Union {
    tag: "role",
    variants: &[
        ("user", &USER),
        ("assistant", &ASSISTANT),
        ("tool", &TOOL_MESSAGE),
        ("system", &INSTRUCTIONS),
        ("developer", &INSTRUCTIONS),
        ("reasoning", &REASONING),
        ("activity", &ACTIVITY),
    ],
    rule: GENERAL,
    reserved: NOTHING_RESERVED,
};
static MESSAGES: Shape = OneShape(&MESSAGE_UNION);

// Run input (as an echo), usage, outcomes.

static TOOL: Struct = closed(&[&[
    req("name", Str),
    req("description", Str),
    opt("parameters", NonNull),
    opt("metadata", Metadata).rule("META-1"),
]]);
static TOOLS: Shape = Of(&TOOL);
static CONTEXT: Struct = closed(&[&[req("description", Str), req("value", Str)]]);
static CONTEXTS: Shape = Of(&CONTEXT);
static RESUME: Struct = closed(&[&[
    req("interruptId", Str).rule("SER-5"),
    req("status", OneOf(&["resolved", "cancelled"])),
    opt("payload", NonNull),
    opt("metadata", Metadata).rule("META-1"),
]]);
static RESUMES: Shape = Of(&RESUME);
static INPUT: Struct = closed(&[&[
    req("threadId", Str).rule("SER-5"),
    req("runId", Str).rule("SER-5"),
    opt("protocolVersion", Str),
    opt("parentRunId", Str).rule("SER-5"),
    opt("state", NonNull),
    req("messages", List(&MESSAGES, 0)),
    opt("tools", List(&TOOLS, 0)),
    opt("context", List(&CONTEXTS, 0)),
    opt("forwardedProps", NonNull),
    opt("resume", List(&RESUMES, 0)),
]]);
const fn count(name: &'static str) -> Member {
    opt(name, Int(0, MAX_SAFE)).rule("LIFE-20")
}
static USAGE: Struct = closed(&[&[
    opt("provider", Str),
    opt("model", Str),
    count("inputTokens"),
    count("outputTokens"),
    count("totalTokens"),
    count("reasoningTokens"),
    count("cachedInputTokens"),
    count("cacheWriteInputTokens"),
]]);
static USAGES: Shape = Of(&USAGE);
static USAGE_LIST: &[Member] = &[opt("usage", List(&USAGES, 0))];
static INTERRUPT: Struct = closed(&[&[
    req("id", Str).rule("INT-2"),
    req("reason", Str).rule("INT-2"),
    opt("subagentRunId", Str).rule("INT-3"),
    opt("message", Str).rule("INT-3"),
    opt("toolCallId", Str).rule("INT-3"),
    opt("responseSchema", Object).rule("INT-3"),
    opt("expiresAt", Str).rule("INT-3"),
    opt("metadata", Metadata).rule("INT-3"),
]]);
static INTERRUPTS: Shape = Of(&INTERRUPT);
static SUCCESS: Struct = closed(&[&[opt("pendingToolCallIds", List(&STRING, 0))]]);
static INTERRUPTED: Struct = closed(&[&[req("interrupts", List(&INTERRUPTS, 1)).rule("INT-1")]]);
static BARE: Struct = closed(&[]);
static OUTCOME: Union = Union {
    tag: "type",
    variants: &[("success", &SUCCESS), ("interrupt", &INTERRUPTED), ("cancelled", &BARE)],
    rule: GENERAL,
    reserved: NOTHING_RESERVED,
};
static SUSPENDED: Struct = closed(&[&[opt("interruptIds", List(&STRING, 0))]]);
static SUBAGENT_OUTCOME: Union = Union {
    tag: "type",
    variants: &[("success", &BARE), ("suspended", &SUSPENDED)],
    rule: "SUB-14",
    reserved: NOTHING_RESERVED,
};

// JSON Patch.

static PATH: &[Member] = &[req("path", Pointer).rule("STATE-2")];
static WITH_VALUE: Struct = open(&[PATH, &[req("value", Any).rule("STATE-2")]]);
static WITHOUT_VALUE: Struct = open(&[PATH]);
static WITH_FROM: Struct = open(&[PATH, &[req("from", Pointer).rule("STATE-2")]]);
static OPERATION: Union = Union {
    tag: "op",
    variants: &[
        ("add", &WITH_VALUE),
        ("replace", &WITH_VALUE),
        ("test", &WITH_VALUE),
        ("remove", &WITHOUT_VALUE),
        ("move", &WITH_FROM),
        ("copy", &WITH_FROM),
    ],
    rule: "STATE-3",
    reserved: NOTHING_RESERVED,
};
static OPERATIONS: Shape = OneShape(&OPERATION);

// Events.

static BASE: &[Member] = &[
    opt("timestamp", Int(-MAX_SAFE, MAX_SAFE)).rule("META-5"),
    opt("rawEvent", NonNull).rule("META-4"),
    opt("metadata", Metadata).rule("META-1"),
];
static OWNED: &[Member] = &[opt("subagentRunId", Str).rule("SUB-1")];
static RUN: &[Member] = &[req("threadId", Str).rule("SER-5"), req("runId", Str).rule("SER-5")];
static MESSAGE_ID: &[Member] = &[req("messageId", Str).rule("SER-5")];
static CALL_ID: &[Member] = &[req("toolCallId", Str).rule("TOOL-24")];
static CONTINUED: &[Member] =
    &[opt("messageId", Str).rule("SER-5"), opt("delta", Str).rule("TXT-4")];
static DELTA: &[Member] = &[req("delta", Str).rule("TXT-4")];
static ARGS: &[Member] = &[req("delta", Str).rule("TOOL-2")];
static SPEAKER: &[Member] = &[
    opt("role", OneOf(&["developer", "system", "assistant", "user"])).rule("TXT-3"),
    opt("name", Str),
];
static SUBAGENT: &[Member] = &[req("subagentRunId", Str).rule("SUB-2")];
static FAILURE: &[Member] = &[req("message", Str).rule("LIFE-23"), opt("code", Str)];
static STEP: Struct = closed(&[BASE, OWNED, &[req("stepName", Str)]]);
static MESSAGE_CONTENT: Struct = closed(&[BASE, OWNED, MESSAGE_ID, DELTA]);
static MESSAGE_ONLY: Struct = closed(&[BASE, OWNED, MESSAGE_ID]);

/// Every event of AG-UI 1.0.
pub(super) static EVENT: Union = Union {
    tag: "type",
    rule: "PASS-7",
    reserved: (
        &[
            "THINKING_START",
            "THINKING_END",
            "THINKING_TEXT_MESSAGE_START",
            "THINKING_TEXT_MESSAGE_CONTENT",
            "THINKING_TEXT_MESSAGE_END",
        ],
        "REAS-7",
    ),
    variants: &[
        (
            "RUN_STARTED",
            &closed(&[
                BASE,
                RUN,
                &[
                    opt("protocolVersion", Str).rule("VER-2"),
                    opt("parentRunId", Str).rule("SER-5"),
                    opt("input", Of(&INPUT)).rule("IN-22"),
                ],
            ]),
        ),
        (
            "RUN_FINISHED",
            &closed(&[
                BASE,
                RUN,
                USAGE_LIST,
                &[opt("result", NonNull), opt("outcome", OneShape(&OUTCOME))],
            ]),
        ),
        ("RUN_ERROR", &closed(&[BASE, FAILURE, USAGE_LIST])),
        ("STEP_STARTED", &STEP),
        ("STEP_FINISHED", &STEP),
        ("TEXT_MESSAGE_START", &closed(&[BASE, OWNED, MESSAGE_ID, SPEAKER])),
        ("TEXT_MESSAGE_CONTENT", &MESSAGE_CONTENT),
        ("TEXT_MESSAGE_END", &MESSAGE_ONLY),
        ("TEXT_MESSAGE_CHUNK", &closed(&[BASE, OWNED, CONTINUED, SPEAKER])),
        (
            "TOOL_CALL_START",
            &closed(&[
                BASE,
                OWNED,
                CALL_ID,
                &[req("toolCallName", Str), opt("parentMessageId", Str).rule("TOOL-6")],
            ]),
        ),
        ("TOOL_CALL_ARGS", &closed(&[BASE, OWNED, CALL_ID, ARGS])),
        ("TOOL_CALL_END", &closed(&[BASE, OWNED, CALL_ID])),
        (
            "TOOL_CALL_CHUNK",
            &closed(&[
                BASE,
                OWNED,
                &[
                    opt("toolCallId", Str).rule("TOOL-24"),
                    opt("toolCallName", Str),
                    opt("parentMessageId", Str).rule("TOOL-6"),
                    opt("delta", Str).rule("TOOL-2"),
                ],
            ]),
        ),
        (
            "TOOL_CALL_RESULT",
            &closed(&[
                BASE,
                OWNED,
                MESSAGE_ID,
                CALL_ID,
                &[
                    req("content", StrOrList(&PARTS)).rule("TOOL-8"),
                    opt("role", OneOf(&["tool"])).rule("TOOL-9"),
                ],
            ]),
        ),
        ("STATE_SNAPSHOT", &closed(&[BASE, OWNED, &[req("snapshot", Any).rule("STATE-1")]])),
        (
            "STATE_DELTA",
            &closed(&[BASE, OWNED, &[req("delta", List(&OPERATIONS, 0)).rule("STATE-2")]]),
        ),
        ("MESSAGES_SNAPSHOT", &closed(&[BASE, &[req("messages", List(&MESSAGES, 0))]])),
        (
            "ACTIVITY_SNAPSHOT",
            &closed(&[
                BASE,
                OWNED,
                MESSAGE_ID,
                &[
                    req("activityType", Str).rule("ACT-3"),
                    req("content", Object).rule("ACT-1"),
                    opt("replace", Bool).rule("ACT-5"),
                ],
            ]),
        ),
        (
            "ACTIVITY_DELTA",
            &closed(&[
                BASE,
                OWNED,
                MESSAGE_ID,
                &[
                    req("activityType", Str).rule("ACT-3"),
                    req("patch", List(&OPERATIONS, 0)).rule("STATE-2"),
                ],
            ]),
        ),
        ("REASONING_START", &MESSAGE_ONLY),
        ("REASONING_END", &MESSAGE_ONLY),
        (
            "REASONING_MESSAGE_START",
            &closed(&[
                BASE,
                OWNED,
                MESSAGE_ID,
                &[req("role", OneOf(&["reasoning"])).rule("REAS-4")],
            ]),
        ),
        ("REASONING_MESSAGE_CONTENT", &MESSAGE_CONTENT),
        ("REASONING_MESSAGE_END", &MESSAGE_ONLY),
        ("REASONING_MESSAGE_CHUNK", &closed(&[BASE, OWNED, CONTINUED])),
        (
            "REASONING_ENCRYPTED_VALUE",
            &closed(&[
                BASE,
                OWNED,
                &[
                    req("subtype", OneOf(&["tool-call", "message"])).rule("REAS-9"),
                    req("entityId", Str).rule("REAS-8"),
                    req("encryptedValue", Str).rule("REAS-8"),
                ],
            ]),
        ),
        (
            "SUBAGENT_STARTED",
            &closed(&[
                BASE,
                SUBAGENT,
                &[
                    req("name", Str).rule("SUB-3"),
                    opt("description", Str),
                    opt("parentSubagentRunId", Str),
                    opt("parentToolCallId", Str),
                    opt("parentMessageId", Str),
                ],
            ]),
        ),
        (
            "SUBAGENT_FINISHED",
            &closed(&[
                BASE,
                SUBAGENT,
                &[
                    opt("result", NonNull).rule("SUB-14"),
                    opt("outcome", OneShape(&SUBAGENT_OUTCOME)).rule("SUB-14"),
                ],
            ]),
        ),
        (
            "SUBAGENT_ERROR",
            &closed(&[BASE, SUBAGENT, &[req("message", Str).rule("SUB-12"), opt("code", Str)]]),
        ),
        ("RAW", &closed(&[BASE, OWNED, &[req("event", Any).rule("PASS-1"), opt("source", Str)]])),
        (
            "CUSTOM",
            &closed(&[
                BASE,
                OWNED,
                &[req("name", Str).rule("PASS-2"), req("value", Any).rule("PASS-2")],
            ]),
        ),
    ],
};
