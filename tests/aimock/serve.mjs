// Serves the models on a free port, prints its URL and ends with its stdin.

import { LLMock } from "@copilotkit/aimock";

// Each model reads the names of its own wire.
const usage = (input, output) => ({
  prompt_tokens: input,
  completion_tokens: output,
  input_tokens: input,
  output_tokens: output,
  promptTokenCount: input,
  candidatesTokenCount: output,
});

const mock = new LLMock({ port: 0, chunkSize: 5 });
mock.on({ userMessage: "hello" }, { content: "Hi there!", usage: usage(7, 3) });
mock.on(
  { userMessage: "think" },
  {
    content: "Because.",
    reasoning: "Why is it so?",
    reasoningSignature: "c2lnbmVk",
    usage: usage(9, 6),
  },
);
mock.on(
  { userMessage: "weather", hasToolResult: false },
  {
    toolCalls: [{ id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' }],
    reasoning: "Look it up.",
    reasoningSignature: "c2lnbmVk",
    usage: usage(20, 8),
  },
);
mock.on(
  { userMessage: "weather", toolResultContains: "/weather" },
  { content: "It is cold.", usage: usage(30, 4) },
);
mock.on(
  { userMessage: "refuse" },
  { error: { message: "slow down", type: "rate_limit_error" }, status: 429 },
);

console.log(await mock.start());
process.stdin.resume();
process.stdin.once("end", () => mock.stop());
