// Pages that come to a thread: reloads, second tabs, clients that were away.

import assert from "node:assert/strict";

import { same } from "./answering.mjs";

export const coming = {
  async "reload-while-asked"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.page("second", "approval");
    await second.connects();
    same(first, second);
    await second.answers("approve");
    second.done();
    const third = stage.page("third", "approval");
    await third.connects();
    third.done();
  },

  /** In the middle of a text, and in the middle of a call's arguments. */
  async "reload-while-running"(stage) {
    stage.gates(2);
    const first = stage.page("first", "gated");
    const run = first.startSaying("a boat");
    await run.saw("TEXT_MESSAGE_CONTENT");

    const second = stage.page("second", "gated");
    const inText = second.startConnecting();
    await inText.saw("TEXT_MESSAGE_START");
    stage.note("second sees on arrival", second.shown);
    await stage.open(1);
    await run.saw("TOOL_CALL_ARGS", ({ delta }) => delta === '{"boat":');

    const third = stage.page("third", "gated");
    const inArguments = third.startConnecting();
    await inArguments.saw("TOOL_CALL_START");
    stage.note("third sees on arrival", third.shown);
    await stage.open(2);

    await Promise.all([run.end, inText.end, inArguments.end]);
    same(first, second);
    same(first, third);
    first.done();
  },

  /** The first page is gone, the second one follows the run and answers what it asks. */
  async "reload-then-answer"(stage) {
    stage.gates(2);
    const first = stage.page("first", "gated");
    const run = first.startSaying("ask me");
    await run.saw("TEXT_MESSAGE_CONTENT");
    const second = stage.page("second", "gated");
    const joined = second.startConnecting();
    await joined.saw("TEXT_MESSAGE_START");
    first.agent.abortRun();
    await run.end;
    await stage.open(1);
    await stage.open(2);
    await joined.end;
    await second.answers("approve");
    second.done();
    const third = stage.page("third", "gated");
    await third.connects();
    same(second, third);
  },

  /** Nobody watches while the run goes on. */
  async "away-while-running"(stage) {
    stage.gates(2);
    const first = stage.page("first", "gated");
    const run = first.startSaying("a boat");
    await run.saw("TEXT_MESSAGE_CONTENT");
    first.agent.abortRun();
    await run.end;
    await stage.open(1);
    await stage.open(2);
    const second = stage.page("second", "gated");
    // The run may be over by now or not; either way the page shows all of it.
    await second.startConnecting().end;
    const third = stage.page("third", "gated");
    await third.connects();
    same(second, third);
    stage.note("second sees", second.shown);
    // How much the pages saw before they were closed is a matter of time.
    stage.forget();
  },

  async "away-while-asked"(stage) {
    stage.gates(2);
    const first = stage.page("first", "gated");
    const run = first.startSaying("ask me");
    await run.saw("TEXT_MESSAGE_CONTENT");
    first.agent.abortRun();
    await run.end;
    await stage.open(1);
    await stage.open(2);
    const second = stage.page("second", "gated");
    await second.connects();
    assert.equal(second.agent.pendingInterrupts.length, 1);
    await second.answers("approve");
    stage.note("second sees", second.shown);
    // How much the pages saw before they were closed is a matter of time.
    stage.forget();
  },

  /** A second page answers, the first one then answers the same. */
  async "answers-again"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.twin(first, "second");
    await second.answers("approve");
    await first.answers("approve");
    assert.deepEqual(first.agent.pendingInterrupts, []);
    first.done();
    second.done();
    await first.says("and now?");
    first.done();
  },

  /** The first answer led to a next question, which the page that answers again is told. */
  async "answers-again-while-asked"(stage) {
    const first = stage.page("first", "chain");
    await first.says("both");
    const second = stage.twin(first, "second");
    await second.answers("approve");
    await first.answers("approve");
    assert.deepEqual(first.agent.pendingInterrupts, second.agent.pendingInterrupts);
    await first.answers("deny");
    first.done();
  },

  /** An old answer together with new words is a new run. */
  async "answers-again-with-words"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.twin(first, "second");
    await second.answers("approve");
    const pending = first.agent.pendingInterrupts;
    first.agent.addMessage({ id: "more", role: "user", content: "and now?" });
    await first.answers("approve", pending);
    assert.deepEqual(first.agent.pendingInterrupts, []);
    first.done();
  },
};
