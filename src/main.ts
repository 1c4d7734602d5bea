/** The command `spoke`: parses, runs, and says why it failed. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { program } from "./app/cli/Program.ts"

NodeRuntime.runMain(program(process.argv), { disableErrorReporting: true, disablePrettyLogger: true })
