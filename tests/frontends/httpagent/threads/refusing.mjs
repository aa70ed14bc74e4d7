// Requests that a thread with open interrupts, or with a run, refuses, and how a page goes on.

import assert from "node:assert/strict";

import { resumeEntries } from "../client.mjs";

export const refusing = {
  async partial(stage) {
    const first = stage.page("first", "several");
    await first.says("everything");
    const open = first.agent.pendingInterrupts;
    // The client itself refuses; nothing is sent.
    await first.answers("approve", open.slice(0, 1));

    const second = stage.page("second", "several");
    const some = await second.answers("approve", open.slice(0, 1));
    assert.deepEqual(named(some), open);
    const twice = resumeEntries([...open, open[1]], ["approve", "deny", { answer: "red" }, "approve"]);
    assert.deepEqual(named(await second.resumes("answers one twice", twice)), open);
    await second.answers(["approve", "deny", { answer: "red" }], named(some));
    second.done();
  },

  /** The page knows of no interrupt: it speaks, and learns from the error what is open. */
  async lost(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.page("second", "approval");
    const refused = await second.says("hello?");
    assert.deepEqual(named(refused), first.agent.pendingInterrupts);
    await second.answers("approve", named(refused));
    second.done();
  },

  async "bad-edit"(stage) {
    const page = stage.page("first", "approval");
    await page.says("delete it");
    await page.answers({ approve: ["b.pdf"] });
    await page.answers({ approve: { path: "b.pdf" } });
    page.done();
  },

  /** What does not fit the form is refused, and the question stays open. */
  async "bad-form"(stage) {
    const page = stage.page("first", "form");
    await page.says("book a trip");
    await page.answers({ answer: { city: 7 } });
    await page.answers({ answer: { city: "Rome" } });
    page.done();
  },

  async "other-agent"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const open = first.agent.pendingInterrupts;
    const astray = stage.page("second", "several");
    assert.deepEqual(named(await astray.answers("approve", open)), open);
    await first.answers("approve");
    first.done();
  },

  /** An answer that nobody asked for does not hinder the others. */
  async unknown(stage) {
    const page = stage.page("first", "approval");
    await page.says("delete it");
    const resume = resumeEntries(page.agent.pendingInterrupts, "approve");
    await page.resumes("answers more than was asked", [
      ...resume,
      { interruptId: "nobody:asked", status: "resolved", payload: { approved: true } },
    ]);
    page.done();
  },

  async busy(stage) {
    const first = stage.page("first", "endless");
    const run = first.startSaying("think");
    await run.saw("TEXT_MESSAGE_CONTENT");
    const second = stage.page("second", "endless");
    await second.says("stop");
    stage.note("cancel", await stage.cancel());
    await run.end;
    await second.says("stop");
    second.done();
  },

  /** Past its time an interrupt can only be cancelled. */
  async expired(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const open = first.agent.pendingInterrupts;
    await past(open[0].expiresAt);
    // The client itself refuses, if it looks at the time.
    if (stage.current) await first.answers("approve");
    const second = stage.page("second", "approval");
    assert.deepEqual(named(await second.answers("approve", open)), open);
    await first.answers("cancel");
    first.done();
  },

  /** A page that does not show what is too old is not locked out. */
  async "expired-and-forgotten"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    await past(first.agent.pendingInterrupts[0].expiresAt);
    const second = stage.page("second", "approval");
    await second.says("hello?");
    second.done();
    await first.answers("cancel");
    first.done();
  },

  /** A page that comes after the time is over. Client 0.0.59 could not even cancel. */
  async "expired-and-reloaded"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    await past(first.agent.pendingInterrupts[0].expiresAt);
    const second = stage.page("second", "approval");
    await second.connects();
    if (stage.current) await second.answers("cancel");
    await second.says("and now?");
    second.done();
  },

  /** With `on-unanswered-interrupts: cancel` words give up what was asked. */
  async "given-up"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.page("second", "approval");
    await second.says("hello?");
    second.done();
    await first.answers("approve");
    first.done();
  },
};

/** The interrupts that a refusal names. */
function named({ events }) {
  return events.at(-1).metadata["agentscope.openInterrupts"];
}

async function past(time) {
  const end = Date.parse(time);
  while (Date.now() <= end) {
    await new Promise((resolve) => setTimeout(resolve, end - Date.now() + 1));
  }
}
