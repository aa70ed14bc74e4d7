// restore.mjs
import { HttpAgent } from "@ag-ui/client";

export async function restore(url, threadId, subscriber = {}) {
  const viewer = new HttpAgent({ url: `${url}/connect`, threadId });
  await viewer.runAgent({}, subscriber);
  const { messages, state, pendingInterrupts } = viewer;
  const agent = new HttpAgent({ url, threadId, initialMessages: messages, initialState: state });
  return Object.assign(agent, { pendingInterrupts });
}
