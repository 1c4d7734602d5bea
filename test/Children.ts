/** Runs TypeScript in real child processes: what only another process can show (kill -9, locks, wake-ups). */
import { build } from "esbuild"
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { createInterface } from "node:readline"

const root = Path.resolve(import.meta.dirname, "..")

/** Bundles `code` (imports relative to `test/`) and answers the path of a module that node runs; remove it afterwards. */
export const bundle = async (code: string): Promise<string> => {
  // Inside the project, where node finds its packages.
  const outfile = Path.join(root, "dist", `test-${randomUUID()}.mjs`)
  await build({
    stdin: { contents: code, resolveDir: import.meta.dirname, loader: "ts" },
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "error"
  })
  return outfile
}

export interface Child {
  readonly process: ChildProcess
  /** Resolves to the next line of standard output, or undefined when there will be none. */
  readonly line: () => Promise<string | undefined>
  /** Kills it the hard way and waits for its end. */
  readonly kill: () => Promise<void>
}

export const run = (module: string, args: ReadonlyArray<string>): Child => {
  const child = spawn(process.execPath, [module, ...args], { stdio: ["pipe", "pipe", "inherit"], cwd: root })
  const ended = once(child, "exit")
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    process: child,
    line: async () => {
      const next = await lines.next()
      return next.done === true ? undefined : next.value
    },
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

export const discard = (module: string): void => Fs.rmSync(module, { force: true })
