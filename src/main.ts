/** The command `spoke`: parses, runs, and says why it failed. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { hide } from "./app/cli/Hidden.ts"
import { program } from "./app/cli/Program.ts"

hide()
NodeRuntime.runMain(program(process.argv), { disableErrorReporting: true, disablePrettyLogger: true })
