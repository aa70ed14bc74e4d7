// Drives the official AG-UI client against a running server and reports what an application
// would have seen.
//
//   node drive.mjs < jobs.jsonl > records.jsonl
//
// The environment may say how many jobs are played at once (PARALLEL) and how long a run may take
// (RUN_TIMEOUT_MS).
//
// Input: one job per line.
//   {
//     "name": "approval-deny",            any text, returned as is
//     "client": "1.0.0",                  1.0.0 | 0.0.59 | 0.0.57
//     "url": "http://127.0.0.1:1/agui/x", where to POST
//     "threadId": "t1",
//     "headers": {}, "state": {}, "messages": [], "tools": [], "context": [],
//     "forwardedProps": {},               all optional
//     "steps": [ ... ]                    one run each, in order
//   }
// A step is one of
//   {"user": "text"}                      a user message; an array stands for content parts
//   {"messages": [ ... ]}                 these messages, as they are
//   {"resume": ANSWER | [ANSWER, ...]}    answers to the pending interrupts, in their order; a
//                                         list shorter than that repeats its last answer
//   {"toolResults": {"tool": "content"}}  a tool message for each pending call
// and may add "abortAfter": n, which aborts the run from inside the n-th event.
// ANSWER: "approve" | {"approve": {edited arguments}} | "deny" | {"deny": "reason"}
//       | "cancel" | {"answer": payload}
//
// Output: one record per job, in input order.
//   {
//     "name", "client", "threadId",
//     "runs": [{"runId", "events", "outcome", "error", "pendingInterrupts", "pendingToolCalls",
//               "aborted", "rejected"}],
//     "messages", "state",                what the client holds at the end
//     "rejected": text | null,            the run that was rejected, or the step that had nothing to
//                                         answer; no later step is played
//     "warnings": [],                     console.warn and console.error
//     "logs": []                          everything else printed through console
//   }
// and one last line {"stray": []}: warnings, unhandled rejections and uncaught exceptions that
// belong to no job. A caller must treat a non-empty list as a failure.

import { AsyncLocalStorage } from "node:async_hooks";
import { format } from "node:util";

const CLIENTS = {
  "1.0.0": "@ag-ui/client",
  "0.0.59": "ag-ui-client-0-0-59",
  "0.0.57": "ag-ui-client-0-0-57",
};
const PARALLEL = Number(process.env.PARALLEL ?? 8);
const RUN_TIMEOUT_MS = Number(process.env.RUN_TIMEOUT_MS ?? 60_000);

const currentRecord = new AsyncLocalStorage();
const stray = [];

captureConsole();
captureProcessFailures();
await main();

async function main() {
  const jobs = (await readStdin())
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
  const records = await inParallel(jobs, PARALLEL, driveJob);
  for (const record of records) print(record);
  // Late rejections arrive in a turn of their own.
  await new Promise((resolve) => setImmediate(resolve));
  print({ stray });
}

/** Plays all steps of one job and returns its record. */
async function driveJob(job) {
  const record = {
    name: job.name,
    client: job.client,
    threadId: job.threadId,
    runs: [],
    messages: [],
    state: null,
    rejected: null,
    warnings: [],
    logs: [],
  };
  await currentRecord.run(record, async () => {
    const specifier = CLIENTS[job.client];
    if (specifier === undefined) throw new Error(`unknown client version ${job.client}`);
    const { HttpAgent } = await import(specifier);
    const agent = new HttpAgent({
      url: job.url,
      headers: job.headers ?? {},
      threadId: job.threadId,
      initialMessages: job.messages ?? [],
      initialState: job.state ?? {},
    });
    try {
      for (const [index, step] of job.steps.entries()) {
        const run = await playStep(agent, job, step, index, record.runs.at(-1));
        record.runs.push(run);
        if (run.rejected !== null) break;
      }
      record.rejected = record.runs.at(-1)?.rejected ?? null;
    } catch (error) {
      // The conversation did not go as its steps expect, e.g. nothing is pending to be answered.
      record.rejected = `step ${record.runs.length + 1}: ${describe(error)}`;
    }
    record.messages = copy(agent.messages);
    record.state = copy(agent.state);
  });
  return record;
}

/** Plays one step: says what it has to say, then runs the agent to the end of the response. */
async function playStep(agent, job, step, index, previous) {
  const run = {
    runId: `${job.threadId}-r${index + 1}`,
    events: [],
    outcome: null,
    error: null,
    pendingInterrupts: [],
    pendingToolCalls: [],
    aborted: step.abortAfter !== undefined,
    rejected: null,
  };
  const parameters = {
    runId: run.runId,
    tools: job.tools ?? [],
    context: job.context ?? [],
    forwardedProps: job.forwardedProps ?? {},
  };
  if (step.resume !== undefined) {
    parameters.resume = resumeEntries(agent.pendingInterrupts, step.resume);
  }
  for (const message of newMessages(step, index, previous)) agent.addMessage(message);

  let named = null;
  const subscriber = {
    onEvent({ event }) {
      run.events.push(copy(event));
      if (run.events.length === step.abortAfter) agent.abortRun();
    },
    onRunFinishedEvent({ event, outcome, pendingToolCallIds }) {
      run.outcome = copy(event.outcome ?? outcome ?? null);
      named = pendingToolCallIds ?? null;
    },
    onRunErrorEvent({ event }) {
      run.error = { message: event.message, code: event.code ?? null };
    },
  };
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no end of the response within ${RUN_TIMEOUT_MS} ms`));
      agent.abortRun();
    }, RUN_TIMEOUT_MS);
  });
  try {
    await Promise.race([agent.runAgent(parameters, subscriber), timeout]);
  } catch (error) {
    run.rejected = describe(error);
  } finally {
    clearTimeout(timer);
  }
  run.pendingInterrupts = copy(agent.pendingInterrupts ?? []);
  run.pendingToolCalls = pendingToolCalls(agent.messages, named);
  return run;
}

/** The messages that a step adds before its run. */
function newMessages(step, index, previous) {
  if (step.user !== undefined) {
    return [{ id: `user-${index + 1}`, role: "user", content: step.user }];
  }
  if (step.messages !== undefined) return step.messages;
  if (step.toolResults !== undefined) {
    const calls = previous?.pendingToolCalls ?? [];
    if (calls.length === 0) throw new Error("a toolResults step needs a pending tool call");
    return calls.map(({ id, name }, at) => {
      if (!(name in step.toolResults)) throw new Error(`no result for the pending tool ${name}`);
      const content = step.toolResults[name];
      return { id: `tool-${index + 1}-${at + 1}`, role: "tool", toolCallId: id, content };
    });
  }
  if (step.resume !== undefined) return [];
  throw new Error(`a step that says nothing: ${JSON.stringify(step)}`);
}

/** One resume entry for every pending interrupt. */
function resumeEntries(interrupts, answers) {
  if (!interrupts?.length) throw new Error("a resume step needs a pending interrupt");
  const list = Array.isArray(answers) ? answers : [answers];
  return interrupts.map((interrupt, at) => ({
    interruptId: interrupt.id,
    ...resumeAnswer(list[Math.min(at, list.length - 1)]),
  }));
}

function resumeAnswer(answer) {
  if (answer === "approve") return resolved({ approved: true });
  if (answer === "deny") return resolved({ approved: false });
  if (answer === "cancel") return { status: "cancelled" };
  if ("approve" in answer) return resolved({ approved: true, editedArgs: answer.approve });
  if ("deny" in answer) return resolved({ approved: false, reason: answer.deny });
  if ("answer" in answer) return resolved(answer.answer);
  throw new Error(`not an answer: ${JSON.stringify(answer)}`);
}

function resolved(payload) {
  return { status: "resolved", payload };
}

/** Calls without a result: those that the server named, else what the transcript shows. */
function pendingToolCalls(messages, named) {
  const answered = new Set(messages.filter((m) => m.role === "tool").map((m) => m.toolCallId));
  const calls = messages
    .flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
    .map((call) => ({ id: call.id, name: call.function.name }))
    .filter(({ id }) => !answered.has(id));
  if (named === null) return calls;
  return named.map((id) => calls.find((call) => call.id === id) ?? { id, name: null });
}

/** Applies `work` to all items, at most `width` at once; results keep the order of the items. */
async function inParallel(items, width, work) {
  const results = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  return results;
}

/** Sends everything printed through console to the record of the job that printed it. */
function captureConsole() {
  for (const level of ["debug", "log", "info", "trace", "warn", "error"]) {
    console[level] = (...parts) => {
      const record = currentRecord.getStore();
      const text = `${level}: ${format(...parts)}`;
      const isWarning = level === "warn" || level === "error";
      if (record === undefined) {
        if (isWarning) stray.push(text);
        return;
      }
      (isWarning ? record.warnings : record.logs).push(text);
    };
  }
}

/** Keeps what would end or soil an ordinary Node process. */
function captureProcessFailures() {
  const keep = (what) => (error) => stray.push(`${what}: ${describe(error)}`);
  process.on("unhandledRejection", keep("unhandled rejection"));
  process.on("uncaughtException", keep("uncaught exception"));
  process.on("warning", keep("process warning"));
}

async function readStdin() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function describe(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function copy(value) {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
