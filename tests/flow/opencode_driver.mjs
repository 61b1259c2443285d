// Lines of JSON on stdin -> calls of the plugin's hooks, as OpenCode makes them -> what each left, a line of JSON each.
import { createInterface } from "node:readline";

const [plugin, directory] = process.argv.slice(2);
const told = { sessions: {}, agents: [] }; // what OpenCode knows itself
const client = {
  session: { get: async ({ path }) => ({ data: told.sessions[path.id] ?? { id: path.id } }) },
  app: { agents: async () => ({ data: told.agents }) },
};
const module = await import(plugin);
const hooks = await Object.values(module)[0]({ client, directory, worktree: directory });
for await (const line of createInterface({ input: process.stdin })) {
  const { hook, input, output, client: known } = JSON.parse(line);
  Object.assign(told, known);
  if (hook === "leave") break;
  const began = performance.now();
  const returned = await hooks[hook]?.(input, output);
  const ms = performance.now() - began;
  process.stdout.write(
    `${JSON.stringify({ output, returned, ms, hooks: Object.keys(hooks), exports: Object.keys(module) })}\n`,
  );
}
process.exit(0); // as OpenCode ends: it does not wait for what is under way
