// What the drivers share: the releases of the official client, one recorded run, answers to
// interrupts, and keeping an eye on the console.

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

/** The class of the client of this release. */
export async function httpAgent(version) {
  const specifier = CLIENTS[version];
  if (specifier === undefined) throw new Error(`unknown client version ${version}`);
  const { HttpAgent } = await import(specifier);
  return HttpAgent;
}

/** Plays `work`; what it prints through console is kept in `record`. */
export function recording(record, work) {
  return currentRecord.run(record, work);
}

/**
 * Starts a run and records what an application sees of it. `onEvent(event, run)` is called with
 * each event, after it was recorded. The promise never rejects: see `rejected`.
 */
export async function recordedRun(agent, run, parameters, onEvent = () => {}) {
  Object.assign(run, {
    events: [],
    outcome: null,
    error: null,
    pendingInterrupts: [],
    pendingToolCalls: [],
    rejected: null,
  });
  let named = null;
  const subscriber = {
    onEvent({ event }) {
      run.events.push(copy(event));
      onEvent(event, run);
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

/**
 * One resume entry for every interrupt. ANSWER: "approve" | {"approve": {edited arguments}}
 * | "always" | "deny" | {"deny": "reason"} | "cancel" | {"answer": payload}; a list shorter than
 * the interrupts repeats its last answer. "always" accepts the rules that the interrupt suggests.
 */
export function resumeEntries(interrupts, answers) {
  if (!interrupts?.length) throw new Error("there is no interrupt to answer");
  const list = Array.isArray(answers) ? answers : [answers];
  return interrupts.map((interrupt, at) => ({
    interruptId: interrupt.id,
    ...resumeAnswer(list[Math.min(at, list.length - 1)], interrupt),
  }));
}

function resumeAnswer(answer, interrupt) {
  if (answer === "approve") return resolved({ approved: true });
  if (answer === "always") {
    return resolved({ approved: true, rules: interrupt.metadata["agentscope.suggestedRules"] });
  }
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

/**
 * Reads jobs from stdin, one per line, plays at most PARALLEL of them at once, and prints their
 * records in the same order, then `{"stray": []}`: warnings, unhandled rejections and uncaught
 * exceptions that belong to no job.
 */
export async function playJobs(play) {
  captureConsole();
  captureProcessFailures();
  const jobs = (await readStdin())
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
  const records = await inParallel(jobs, PARALLEL, play);
  for (const record of records) print(record);
  // Late rejections arrive in a turn of their own.
  await new Promise((resolve) => setImmediate(resolve));
  print({ stray });
}

/** Applies `work` to all items, at most `width` at once; results keep the order of the items. */
export async function inParallel(items, width, work) {
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

export function describe(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

export function copy(value) {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
