// An agent whose words wait for gates: named pipes `<GATES>/<thread>.<n>`. Reading one ends when
// somebody has opened it for writing and closed it again.

import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const [line] = await firstLine();
const { input, resume } = JSON.parse(line);

if (resume.length > 0) answered();
else spoken();

function spoken() {
  const asks = JSON.stringify(input.messages).includes("ask me");
  say({ type: "AGENT_START", replyId: "r1" });
  say({ "@": "state", set: { executed: [], progress: 1 } });
  call("look", "look_up", ['{"word":"tide"}']);
  result("look", "low tide");
  text("The tide ");
  gate(1);
  text("is low. ");
  call("book", "book_boat", ['{"boat":']);
  gate(2);
  say({ type: "TOOL_CALL_DELTA", replyId: "r1", toolCallId: "book", delta: '"small"}' });
  say({ type: "TOOL_CALL_END", replyId: "r1", toolCallId: "book" });
  if (asks) {
    const asked = { type: "tool_use", id: "book", name: "book_boat", input: { boat: "small" } };
    say({ type: "REQUIRE_USER_CONFIRM", replyId: "r1", toolCalls: [asked] });
  } else {
    result("book", "booked");
    say({ "@": "state", patch: [{ op: "replace", path: "/progress", value: 2 }] });
    text("The boat is yours.");
  }
  say({ type: "AGENT_END", replyId: "r1" });
}

function answered() {
  say({ type: "AGENT_START", replyId: "r2" });
  // A call that has its result already must not be executed again.
  if (!resume[0].settled) {
    say({ "@": "state", patch: [{ op: "add", path: "/executed/-", value: "book" }] });
    result("book", "booked");
    if (asksToWait()) gate(3);
  }
  text("The boat is yours.");
  say({ type: "AGENT_END", replyId: "r2" });
}

function asksToWait() {
  return JSON.stringify(input.messages).includes("and wait");
}

function text(delta) {
  say({ type: "TEXT_BLOCK_DELTA", replyId: "r1", blockId: "b", delta });
}

function call(id, name, pieces) {
  say({ type: "TOOL_CALL_START", replyId: "r1", toolCallId: id, toolCallName: name });
  for (const delta of pieces) {
    say({ type: "TOOL_CALL_DELTA", replyId: "r1", toolCallId: id, delta });
  }
}

function result(id, delta) {
  say({ type: "TOOL_RESULT_TEXT_DELTA", replyId: "r1", toolCallId: id, delta });
  say({ type: "TOOL_RESULT_END", replyId: "r1", toolCallId: id, state: "success" });
}

function gate(n) {
  readFileSync(`${process.env.GATES}/${input.threadId}.${n}`);
}

function say(event) {
  writeSync(1, `${JSON.stringify(event)}\n`);
}

async function firstLine() {
  for await (const line of createInterface({ input: process.stdin })) return [line];
  throw new Error("no line came");
}
