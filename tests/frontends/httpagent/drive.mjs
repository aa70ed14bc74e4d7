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
//   {"reload": true}                      a new page: all that the client has comes from the server
// and may add "abortAfter": n, which aborts the run from inside the n-th event, and
// "forget": true, before which the client drops all its messages.
// ANSWER: "approve" | {"approve": {edited arguments}} | "always" | "deny" | {"deny": "reason"}
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

import { copy, describe, httpAgent, playJobs, recordedRun, recording, resumeEntries } from "./client.mjs";

await playJobs(driveJob);

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
  await recording(record, async () => {
    const HttpAgent = await httpAgent(job.client);
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
  const run = { runId: `${job.threadId}-r${index + 1}`, aborted: step.abortAfter !== undefined };
  if (step.reload) return reload(agent, job, run);
  const parameters = {
    runId: run.runId,
    tools: job.tools ?? [],
    context: job.context ?? [],
    forwardedProps: job.forwardedProps ?? {},
  };
  if (step.resume !== undefined) {
    parameters.resume = resumeEntries(agent.pendingInterrupts, step.resume);
  }
  if (step.forget) agent.setMessages([]);
  for (const message of newMessages(step, index, previous)) agent.addMessage(message);
  return recordedRun(agent, run, parameters, () => {
    if (run.events.length === step.abortAfter) agent.abortRun();
  });
}

/** What a page does that was opened anew. */
async function reload(agent, job, run) {
  const HttpAgent = agent.constructor;
  const viewer = new HttpAgent({ url: `${job.url}/connect`, threadId: job.threadId });
  await recordedRun(viewer, run, { runId: run.runId });
  agent.setMessages(viewer.messages);
  agent.setState(viewer.state);
  agent.pendingInterrupts = viewer.pendingInterrupts;
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
