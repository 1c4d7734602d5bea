/** The command `spoke`: parses, runs, and says why it failed. */
import * as V8 from "node:v8"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { hide } from "./app/cli/Hidden.ts"
import { program } from "./app/cli/Program.ts"
import { heed } from "./app/cli/Signals.ts"

/**
 * Garbage is looked for when the heap is twice what the last look left; by itself V8 lets a small one grow to four times
 * that. For this process and its threads: a host of the library decides for itself.
 */
V8.setFlagsFromString("--heap-growing-percent=100")

hide()
heed()
NodeRuntime.runMain(program(process.argv), { disableErrorReporting: true, disablePrettyLogger: true })
