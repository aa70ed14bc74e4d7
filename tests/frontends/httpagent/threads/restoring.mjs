// The lines that README.md prints: an agent that goes on where a thread stands.

import assert from "node:assert/strict";

import { restore } from "../restore.mjs";

export const restoring = {
  async "restore-while-asked"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.adopt("second", await restore(first.url, stage.threadId));
    assert.deepEqual(second.shown, first.shown);
    await second.answers("approve");
    await second.says("and now?");
    second.done();
  },

  async "restore-while-running"(stage) {
    stage.gates(2);
    const first = stage.page("first", "gated");
    const run = first.startSaying("a boat");
    await run.saw("TEXT_MESSAGE_CONTENT");
    let words = "";
    let began;
    const joined = new Promise((resolve) => {
      began = resolve;
    });
    const restored = restore(first.url, stage.threadId, {
      onTextMessageStartEvent: () => began(),
      onTextMessageContentEvent({ event }) {
        words += event.delta;
      },
    });
    await Promise.race([joined, restored]);
    await stage.open(1);
    await stage.open(2);
    const second = stage.adopt("second", await restored);
    await run.end;
    assert.deepEqual(second.shown, first.shown);
    stage.note("words that came while it was restored", words);
  },

  async "restore-at-rest"(stage) {
    const first = stage.page("first", "approval");
    await first.says("hello");
    const second = stage.adopt("second", await restore(first.url, stage.threadId));
    assert.deepEqual(second.shown, first.shown);
    await second.says("and now?");
    second.done();
  },
};
