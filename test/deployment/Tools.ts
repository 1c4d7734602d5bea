/** Programs that check deployment files: those of SPOKE_TEST_DEPLOY_TOOLS (scripts/deploy-tools.mjs fills the folder), or the path's. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import * as Duration from "effect/Duration"
import { drainTimeouts } from "../../src/app/Live.ts"

export const root = Path.join(import.meta.dirname, "../..")
export const read = (...name: ReadonlyArray<string>) => Fs.readFileSync(Path.join(root, ...name), "utf8")

/** Maximum time from the closed listener to the end: `SPOKE_DRAIN_DELAY` comes before it. */
export const longestDrainSeconds = Duration.toSeconds(
  Duration.sum(drainTimeouts.requests, drainTimeouts.turns)
)

/** Undefined where no tools were installed. */
export const tools = process.env["SPOKE_TEST_DEPLOY_TOOLS"]

export const has = (program: string, args: ReadonlyArray<string>) => spawnSync(program, args).status === 0

/** The first of the folder and the path that runs. */
export const found = (name: string, args: ReadonlyArray<string>): string | undefined =>
  [...(tools === undefined ? [] : [Path.join(tools, name)]), name].find((program) => has(program, args))

/** A package of the folder. */
export const toolPackage = (name: string) => createRequire(Path.join(tools ?? root, "package.json"))(name)
