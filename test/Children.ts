/** Runs TypeScript in real child processes, for tests that need another process (kill -9, locks, wake-ups). */
import { build } from "esbuild"
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { createInterface } from "node:readline"

const root = Path.resolve(import.meta.dirname, "..")

/** Bundles `code`, whose imports are relative to `test/`. Returns the path of the module; {@link discard} removes it. */
export const bundle = async (code: string): Promise<string> => {
  // Inside the project, so that node finds the packages.
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
  /** Sends SIGKILL and waits for the end of the process. */
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
