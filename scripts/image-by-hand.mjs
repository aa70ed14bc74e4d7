#!/usr/bin/env node
// Goes through the Dockerfile without Docker: the build context as .dockerignore leaves it, the
// steps of the build stage in a clean folder, then the program as the image would start, check and
// stop it. What only an image has (base images, users, cache mounts) is left out and said.
//
// Usage: scripts/image-by-hand.mjs [FOLDER]     FOLDER is kept; without it a temporary one is used.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const project = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const kept = process.argv[2];
const work = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), "image-"));

const say = (text) => console.log(`== ${text}`);

/** The instructions of the Dockerfile by stage, continued lines joined. */
function stages() {
  const text = readFileSync(join(project, "Dockerfile"), "utf8");
  const lines = text.split("\n").filter((line) => !line.trim().startsWith("#"));
  const joined = lines.join("\n").replace(/\\\n/g, " ");
  const found = [];
  for (const line of joined.split("\n").filter((line) => line.trim())) {
    const [, name, rest] = /^(\S+)\s+(.*)$/.exec(line.trim());
    if (name === "FROM") found.push({ from: rest, steps: [] });
    else found.at(-1).steps.push({ name, rest: rest.replace(/\s+/g, " ") });
  }
  return found;
}

/** The rules of .dockerignore, in order; the last that matches decides. */
function ignoreRules() {
  const lines = readFileSync(join(project, ".dockerignore"), "utf8").split("\n");
  return lines.map((line) => line.trim()).filter((line) => line && !line.startsWith("#")).map((line) => {
    const keep = line.startsWith("!");
    const source = (keep ? line.slice(1) : line)
      .replace(/[.+^${}()|[\]]/g, "\\$&")
      .replace(/\*\*\//g, "\u0000")
      .replace(/\*/g, "[^/]*")
      .replace(/\u0000/g, "(.*/)?");
    return { keep, pattern: new RegExp(`^${source}(/.*)?$`) };
  });
}

/** Copies what a build would be sent. */
function makeContext(target) {
  const rules = ignoreRules();
  const ignored = (path) =>
    rules.reduce((ignored, rule) => (rule.pattern.test(path) ? !rule.keep : ignored), false);
  const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: project, encoding: "utf8", maxBuffer: 1 << 26,
  });
  let count = 0;
  for (const path of tracked.split("\n").filter((path) => path && !ignored(path))) {
    if (!existsSync(join(project, path))) continue;
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(project, path), join(target, path));
    count += 1;
  }
  say(`context: ${count} files, ${readdirSync(target).join(" ")}`);
}

/** Goes through one stage; gives its root, environment and the steps that start the program. */
function build(stage, root, from) {
  const state = { root, cwd: "/", env: {}, other: {} };
  const inRoot = (path) => join(root, path.startsWith("/") ? path : join(state.cwd, path));
  for (const { name, rest } of stage.steps) {
    if (name === "WORKDIR") {
      state.cwd = rest;
      mkdirSync(inRoot(rest), { recursive: true });
    } else if (name === "ENV") {
      const [key, value] = rest.split("=");
      state.env[key] = value;
    } else if (name === "COPY") {
      const words = rest.split(" ");
      const source = words[0].startsWith("--from=") ? from.root : context;
      const paths = words.filter((word) => !word.startsWith("--"));
      const to = paths.pop();
      for (const path of paths) {
        const own = existsSync(join(source, path));
        // What the base image of an earlier stage has is taken from this machine.
        const found = own || source === context ? join(source, path) : path;
        if (!existsSync(found)) throw new Error(`COPY ${path}: not there`);
        const target = to.endsWith("/") ? join(inRoot(to), path.split("/").at(-1)) : inRoot(to);
        mkdirSync(dirname(target), { recursive: true });
        cpSync(found, target, { recursive: true, dereference: true });
      }
      say(`COPY ${rest}`);
    } else if (name === "RUN") {
      run(rest, state, inRoot);
    } else {
      state.other[name] = rest;
    }
  }
  return state;
}

function run(rest, state, inRoot) {
  const command = rest.replace(/--mount=\S+ /g, "");
  if (command.startsWith("useradd")) return say(`left out: RUN ${command}`);
  say(`RUN ${command}`);
  mkdirSync(inRoot("/usr/local/bin"), { recursive: true });
  const options = { cwd: inRoot("."), stdio: "inherit" };
  if (command.startsWith("[")) {
    const [program, ...args] = JSON.parse(command);
    execFileSync(inRoot(`/usr/local/bin/${program}`), args, { ...options, env: state.env });
  } else {
    // The tools of this machine stand for those of the base image.
    const here = command.replaceAll("/usr/local/bin/", `${inRoot("/usr/local/bin")}/`);
    execFileSync("sh", ["-c", here], { ...options, env: { ...process.env, ...state.env } });
  }
}

/** Starts the program as the image does, asks for its health, and stops it. */
async function tryOut({ root, cwd, env, other }) {
  const program = (name) => join(root, "usr/local/bin", name);
  const [entry, ...args] = [...JSON.parse(other.ENTRYPOINT), ...JSON.parse(other.CMD)];
  const place = { cwd: join(root, cwd), env: { ...env, SERVER_PORT: `${await freePort()}` } };
  const server = spawn(program(entry), args, { ...place, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((done) => server.on("exit", (code, signal) => done(code ?? signal)));
  try {
    let log = "";
    await new Promise((done, fail) => {
      const read = (chunk) => {
        log += chunk;
        if (log.includes("listening")) done();
      };
      server.stdout.on("data", read);
      server.stderr.on("data", read);
      ended.then((code) => fail(new Error(`it ended with ${code}:\n${log}`)));
    });
    const [check, ...checkArgs] = JSON.parse(/CMD (\[.*\])/.exec(other.HEALTHCHECK)[1]);
    execFileSync(program(check), checkArgs, { ...place, stdio: "inherit" });
    server.kill(other.STOPSIGNAL);
    const code = await ended;
    if (code !== 0) throw new Error(`${other.STOPSIGNAL} ended it with ${code}:\n${log}`);
    say(`${entry} ${args.join(" ")}: started, healthy, stopped by ${other.STOPSIGNAL} with code 0`);
  } finally {
    server.kill("SIGKILL");
  }
}

/** A container has all ports for itself, this machine has not. */
async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, "127.0.0.1", done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

const context = join(work, "context");
try {
  mkdirSync(context, { recursive: true });
  makeContext(context);
  const [first, last] = stages();
  say(`FROM ${first.from}`);
  const built = build(first, join(work, "build"));
  say(`FROM ${last.from}`);
  const image = build(last, join(work, "image"), built);
  say(`files of the image: ${readdirSync(join(image.root, "usr/local/bin")).join(" ")}`);
  await tryOut(image);
} finally {
  if (!kept) rmSync(work, { recursive: true, force: true });
  else say(`kept ${relative(process.cwd(), work) || "."}`);
}
