// Validates JSON lines from stdin with the schemas of the official AG-UI package.
//
// In:  {"kind":"event"|"input"|"capabilities","value":…}
// Out: {"valid":true,"unknown":["/pointer", …]} or {"valid":false,"reason":"…"}, one line each.
//
// The package's schemas accept members that they do not know (its client strips them later, with
// a warning), so those are looked up here by walking the value along the schema.
import { createInterface } from "node:readline";
import { AgentCapabilitiesSchema, EventSchema, RunAgentInputSchema } from "@ag-ui/core/schemas";

const SCHEMAS = {
  event: EventSchema,
  input: RunAgentInputSchema,
  capabilities: AgentCapabilitiesSchema,
};

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const escape = (key) => key.replaceAll("~", "~0").replaceAll("/", "~1");

/** Pointers of the members of `value` that `schema` does not name. */
function unknownMembers(schema, value, path = "") {
  const { def } = schema._zod;
  switch (def.type) {
    case "optional":
    case "nullable":
    case "default":
      return unknownMembers(def.innerType, value, path);
    case "pipe":
      return unknownMembers(def.in, value, path);
    case "array":
      if (!Array.isArray(value)) return [];
      return value.flatMap((item, index) => unknownMembers(def.element, item, `${path}/${index}`));
    case "union": {
      const fitting = def.options.find((option) => option.safeParse(value).success);
      return fitting === undefined ? [] : unknownMembers(fitting, value, path);
    }
    case "object": {
      if (!isObject(value)) return [];
      // JSON Patch operations are open objects.
      const open = schema.meta()?.specOpen === true;
      return Object.entries(value).flatMap(([key, member]) => {
        const here = `${path}/${escape(key)}`;
        if (key in def.shape) return unknownMembers(def.shape[key], member, here);
        return open ? [] : [here];
      });
    }
    default:
      return [];
  }
}

function verdict({ kind, value }) {
  const schema = SCHEMAS[kind];
  const parsed = schema.safeParse(value);
  if (parsed.success) return { valid: true, unknown: unknownMembers(schema, value) };
  return { valid: false, reason: parsed.error.issues.map((issue) => issue.path.join("/")).join() };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(verdict(JSON.parse(line)))}\n`);
}
