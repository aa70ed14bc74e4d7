// Answers to interrupts, as they should come.

import assert from "node:assert/strict";

export const answering = {
  approve: (stage) => answer(stage, "approve"),
  deny: (stage) => answer(stage, { deny: "I still need it" }),
  edit: (stage) => answer(stage, { approve: { path: "b.pdf" } }),
  cancel: (stage) => answer(stage, "cancel"),

  async several(stage) {
    const page = stage.page("first", "several");
    await page.says("everything");
    await page.answers(["approve", { deny: "too dangerous" }, { answer: "red" }]);
    await end(stage, page);
  },

  async form(stage) {
    const page = stage.page("first", "form");
    await page.says("book a trip");
    await page.answers({ answer: { city: "Rome" } });
    await end(stage, page);
  },

  async "form-declined"(stage) {
    const page = stage.page("first", "form");
    await page.says("book a trip");
    await page.answers("cancel");
    await end(stage, page);
  },

  async "one-after-the-other"(stage) {
    const page = stage.page("first", "chain");
    await page.says("both");
    await page.answers("approve");
    await page.answers({ deny: "one is enough" });
    await end(stage, page);
  },

  /** A page that lost everything but the thread's id and the interrupts. */
  async "no-messages"(stage) {
    const first = stage.page("first", "approval");
    await first.says("delete it");
    const second = stage.page("second", "approval");
    await second.answers("approve", first.agent.pendingInterrupts);
    await end(stage, second);
  },

  /** CopilotKit sends the answer a second time, as the result of the call. */
  async "answered-twice-at-once"(stage) {
    const page = stage.page("first", "approval");
    await page.says("delete it");
    const toolCallId = page.agent.pendingInterrupts[0].toolCallId;
    page.agent.addMessage({ id: "copy", role: "tool", toolCallId, content: '{"approved":true}' });
    await page.answers("approve");
    page.done();
    const later = stage.page("later", "approval");
    await later.connects();
    later.done();
  },

  async "frontend-tool"(stage) {
    const page = stage.page("first", "page");
    const tools = [{ name: "paint", description: "Paints the page.", parameters: {} }];
    const asked = await page.says("paint it", { tools });
    const toolCallId = asked.pendingToolCalls[0].id;
    page.agent.addMessage({ id: "result", role: "tool", toolCallId, content: "painted" });
    await page.start("brings the result", { tools }).end;
    await end(stage, page);
  },

  async "frontend-tool-and-words"(stage) {
    const page = stage.page("first", "page");
    const tools = [{ name: "paint", description: "Paints the page.", parameters: {} }];
    const asked = await page.says("paint it", { tools });
    const toolCallId = asked.pendingToolCalls[0].id;
    page.agent.addMessage({ id: "result", role: "tool", toolCallId, content: "painted" });
    await page.says("and thank you", { tools });
    await end(stage, page);
  },
};

async function answer(stage, answer) {
  const page = stage.page("first", "approval");
  await page.says("delete it");
  await page.answers(answer);
  await page.says("and now?");
  await end(stage, page);
}

/** What is stored is what the page shows: a page that comes later shows the same. */
async function end(stage, page) {
  page.done();
  const later = stage.page("later", page.url.split("/").at(-1));
  await later.connects();
  later.done();
}

/** Both pages show the same. */
export function same(page, other) {
  assert.deepEqual(other.shown, page.shown);
}
