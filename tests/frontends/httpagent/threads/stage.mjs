// A thread of a running server, and the pages of an application that show it.

import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";

import { copy, recordedRun, resumeEntries } from "../client.mjs";

/** A thread and what a scenario can do with it. */
export class Stage {
  #job;
  #record;
  #HttpAgent;

  constructor(job, record, HttpAgent) {
    this.#job = job;
    this.#record = record;
    this.#HttpAgent = HttpAgent;
  }

  /** Whether the client speaks AG-UI 1.0. */
  get current() {
    return this.#job.client === "1.0.0";
  }

  get threadId() {
    return this.#job.threadId;
  }

  /** Opens a page that knows the thread's id and nothing else. */
  page(name, agentId) {
    const url = `${this.#job.url}/${agentId}`;
    const agent = new this.#HttpAgent({ url, threadId: this.#job.threadId });
    return new Page(name, agent, url, this.#record);
  }

  /** A page with an agent that was made elsewhere. */
  adopt(name, agent) {
    return new Page(name, agent, agent.url, this.#record);
  }

  /** A second page that shows what `page` shows, as a second tab does. */
  twin(page, name) {
    const agent = page.agent.clone();
    agent.pendingInterrupts = copy(page.agent.pendingInterrupts);
    return new Page(name, agent, page.url, this.#record);
  }

  /** Notes something for the comparison. */
  note(key, value) {
    this.#record.seen[key] = copy(value);
  }

  /** A thread of its own, whose runs are left out of the comparison. */
  aside(n) {
    const threadId = `${this.#job.threadId}-${n}`;
    const record = { ...this.#record, acts: [], pages: {}, seen: {} };
    return new Stage({ ...this.#job, threadId }, record, this.#HttpAgent);
  }

  /** Leaves the runs so far out of the comparison. */
  forget() {
    this.#record.acts.length = 0;
  }

  /** Asks the server to cancel what the thread does; gives the status. */
  async cancel() {
    const url = `${this.#job.url}/threads/${encodeURIComponent(this.#job.threadId)}/cancel`;
    return (await fetch(url, { method: "POST" })).status;
  }

  /** Makes the gates 1 to `count` of the thread, all closed. */
  gates(count) {
    for (let n = 1; n <= count; n++) execFileSync("mkfifo", [this.#gate(n)]);
  }

  /** Opens a gate; resolves when the agent has come to it. */
  open(n) {
    return writeFile(this.#gate(n), "");
  }

  #gate(n) {
    return path.join(this.#job.gates, `${this.#job.threadId}.${n}`);
  }
}

/** A page with a client of its own. */
class Page {
  #record;
  #count = 0;

  constructor(name, agent, url, record) {
    this.name = name;
    this.agent = agent;
    this.url = url;
    this.#record = record;
  }

  /** What an application would show. */
  get shown() {
    const { messages, state, pendingInterrupts } = this.agent;
    return copy({ messages, state, pendingInterrupts });
  }

  /** Notes what the page shows now as its last view. */
  done() {
    this.#record.pages[this.name] = this.shown;
  }

  /** Says something and waits for the answer. */
  says(text, parameters = {}) {
    return this.startSaying(text, parameters).end;
  }

  /** Says something; see `start`. */
  startSaying(text, parameters = {}) {
    this.#count += 1;
    this.agent.addMessage({ id: `${this.name}-u${this.#count}`, role: "user", content: text });
    return this.start(`says ${text}`, parameters);
  }

  /** Answers interrupts, by default those that its client knows. */
  answers(answers, interrupts = this.agent.pendingInterrupts) {
    const resume = resumeEntries(interrupts, answers);
    return this.resumes(`answers ${JSON.stringify(answers)}`, resume);
  }

  /** Sends these resume entries. */
  resumes(does, resume) {
    return this.start(does, { resume }).end;
  }

  /** Shows the thread as it is and follows its run to the end. */
  connects() {
    return this.startConnecting().end;
  }

  /** The same; see `start`. */
  startConnecting() {
    this.agent.url = `${this.url}/connect`;
    const run = this.start("connects", {});
    const back = (act) => {
      this.agent.url = this.url;
      return act;
    };
    return { ...run, end: run.end.then(back) };
  }

  /** Starts a run: `end` resolves to what was seen of it, `saw` when such an event has come. */
  start(does, parameters) {
    const act = { page: this.name, does };
    this.#record.acts.push(act);
    const waiting = [];
    const onEvent = (event) => {
      for (const { fits, resolve } of waiting) if (fits(event)) resolve(event);
    };
    const end = recordedRun(this.agent, act, { tools: [], ...parameters }, onEvent);
    const saw = (type, holds = () => true) => {
      const fits = (event) => event.type === type && holds(event);
      const came = act.events.find(fits);
      if (came !== undefined) return Promise.resolve(came);
      const ended = end.then(() => {
        throw new Error(`the run of ${this.name} ended without ${type}`);
      });
      return Promise.race([new Promise((resolve) => waiting.push({ fits, resolve })), ended]);
    };
    return { act, end, saw };
  }
}
