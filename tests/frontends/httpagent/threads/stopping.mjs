// Runs and interrupts that are cancelled by a call, and double clicks.

import assert from "node:assert/strict";

import { inParallel, resumeEntries } from "../client.mjs";
import { same } from "./answering.mjs";

export const stopping = {
  /** Everybody who watches sees the end, and the thread goes on. */
  async "cancel-while-running"(stage) {
    const first = stage.page("first", "endless");
    const run = first.startSaying("think");
    await run.saw("TEXT_MESSAGE_CONTENT");
    const second = stage.page("second", "endless");
    const joined = second.startConnecting();
    await joined.saw("TEXT_MESSAGE_START");
    stage.note("cancel", await stage.cancel());
    await Promise.all([run.end, joined.end]);
    assert.deepEqual(second.agent.messages, first.agent.messages);
    stage.note("cancel again", await stage.cancel());
    await first.says("stop");
    first.done();
  },

  async "cancel-while-asked"(stage) {
    const page = stage.page("first", "approval");
    await page.says("delete it");
    stage.note("cancel", await stage.cancel());
    const later = stage.page("later", "approval");
    await later.connects();
    later.done();
    await page.answers("approve");
    page.done();
    await page.says("and now?");
    page.done();
  },

  /** The answering run is cancelled; its answers are taken all the same. */
  async "cancel-while-answering"(stage) {
    const page = stage.page("first", "pensive");
    await page.says("think");
    const resume = resumeEntries(page.agent.pendingInterrupts, { answer: "boats" });
    const run = page.start("answers", { resume });
    await run.saw("TEXT_MESSAGE_CONTENT");
    stage.note("cancel", await stage.cancel());
    await run.end;
    // A client from before 1.0 saw an error and has to answer again.
    if (page.agent.pendingInterrupts.length > 0) await page.resumes("answers again", resume);
    assert.deepEqual(page.agent.pendingInterrupts, []);
    await page.says("more");
    page.done();
  },

  /** The page is closed behind the result of the call that it approved, and answers again. */
  async "cut-off-while-answering"(stage) {
    stage.gates(3);
    const page = stage.page("first", "gated");
    const asked = page.startSaying("ask me and wait");
    await Promise.all([stage.open(1), stage.open(2), asked.end]);
    const resume = resumeEntries(page.agent.pendingInterrupts, "approve");
    const cut = page.start("answers", { resume });
    await cut.saw("TOOL_CALL_RESULT");
    page.agent.abortRun();
    await cut.end;
    let again;
    do {
      again = await page.resumes("answers again", resume);
    } while (again.error?.code === "THREAD_BUSY");
    stage.note("answers again", again.events.map(({ type }) => type));
    // How often the stopped run was met is a matter of time.
    stage.forget();
    page.done();
  },

  /** A page that watches is told why the run of another one ends. */
  async "closed-while-watched"(stage) {
    const first = stage.page("first", "endless");
    const run = first.startSaying("think");
    await run.saw("TEXT_MESSAGE_CONTENT");
    const second = stage.page("second", "endless");
    const joined = second.startConnecting();
    await joined.saw("TEXT_MESSAGE_START");
    first.agent.abortRun();
    await Promise.all([run.end, joined.end]);
    await second.says("stop");
    second.done();
  },

  /** Two tabs approve at the same moment, 200 times. */
  async "double-click"(stage) {
    let [busy, late] = [0, 0];
    await inParallel(Array.from({ length: ROUNDS }, (_, n) => n), 8, async (n) => {
      const wasBusy = await doubleClick(stage.aside(n));
      if (wasBusy) busy += 1;
      else late += 1;
    });
    stage.note("rounds", busy + late);
    console.log(`the second answer came during the first one's run ${busy} times, after it ${late} times`);
  },
};

const ROUNDS = 200;

async function doubleClick(stage) {
  const first = stage.page("first", "approval");
  await first.says("delete it");
  const second = stage.twin(first, "second");
  const runs = await Promise.all([first.answers("approve"), second.answers("approve")]);
  const winners = runs.filter(({ events }) => events.some(({ type }) => type === "TOOL_CALL_RESULT"));
  assert.equal(winners.length, 1);
  const [winner, loser] = runs[0] === winners[0] ? [first, second] : [second, first];
  let lost = runs.find((run) => run !== winners[0]);
  const busy = lost.error !== null;
  if (busy) {
    assert.equal(lost.error.code, "THREAD_BUSY");
    assert.deepEqual(types(lost), ["RUN_STARTED", "RUN_ERROR"]);
    lost = await loser.answers("approve");
  }
  assert.deepEqual(types(lost), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]);
  assert.deepEqual(winner.agent.state, { executed: ['{"path":"a.pdf"}'] });
  assert.deepEqual(winner.agent.pendingInterrupts, []);
  same(winner, loser);
  const third = stage.page("third", "approval");
  await third.connects();
  same(winner, third);
  return busy;
}

function types({ events }) {
  return events.map(({ type }) => type);
}
