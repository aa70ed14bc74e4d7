// Plays the scenarios of `threads/`: several pages of an application, each with an official client
// of its own, on one thread of a running server.
//
//   node threads.mjs < jobs.jsonl > records.jsonl
//
// Input: one job per line.
//   {
//     "name": "lost",                     a scenario
//     "client": "1.0.0",                  1.0.0 | 0.0.59
//     "threadId": "t1",
//     "url": "http://127.0.0.1:1/agui",   the server's path prefix
//     "gates": "/tmp/x"                   the folder of the gates of `threads/gated.mjs`
//   }
// Output: one record per job, in input order.
//   {
//     "name", "client", "threadId",
//     "acts": [{"page", "does", "events", ...}],   the runs, in the order of their beginning
//     "pages": {"first": {"messages", "state", "pendingInterrupts"}},
//     "seen": {},                         what else the scenario noted
//     "failure": text | null,             what went wrong
//     "warnings": [], "logs": []          as in `drive.mjs`
//   }
// and the last line of `drive.mjs`.

import { describe, httpAgent, playJobs, recording } from "./client.mjs";
import { answering } from "./threads/answering.mjs";
import { coming } from "./threads/coming.mjs";
import { refusing } from "./threads/refusing.mjs";
import { restoring } from "./threads/restoring.mjs";
import { Stage } from "./threads/stage.mjs";
import { stopping } from "./threads/stopping.mjs";

const SCENARIOS = { ...answering, ...coming, ...refusing, ...restoring, ...stopping };

await playJobs(play);

async function play(job) {
  const record = {
    name: job.name,
    client: job.client,
    threadId: job.threadId,
    acts: [],
    pages: {},
    seen: {},
    failure: null,
    warnings: [],
    logs: [],
  };
  await recording(record, async () => {
    try {
      const scenario = SCENARIOS[job.name];
      if (scenario === undefined) throw new Error(`unknown scenario ${job.name}`);
      await scenario(new Stage(job, record, await httpAgent(job.client)));
    } catch (error) {
      record.failure = describe(error);
    }
  });
  return JSON.parse(masked(JSON.stringify(record)));
}

/** Times and made-up ids differ from run to run; inside of texts nothing else can label them. */
function masked(text) {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>");
}
