/** The command `spoke`: parses the arguments, runs the command, and reports failures. */
import * as V8 from "node:v8"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { maskProcessTitle } from "./app/cli/MaskArguments.ts"
import { flushed, ignoreClosedOutput, incomplete, note } from "./app/cli/Output.ts"
import { program } from "./app/cli/Program.ts"
import { exitCode, installSignalHandlers } from "./app/cli/Signals.ts"
import { failureCode } from "./app/cli/FailureMessage.ts"

/**
 * Garbage is collected when the heap is twice its size after the last collection. By default V8 lets a small heap grow
 * to four times that. This applies to this process and its threads, not to hosts of the library.
 */
V8.setFlagsFromString("--heap-growing-percent=100")

maskProcessTitle()
installSignalHandlers()
ignoreClosedOutput()
NodeRuntime.runMain(program(process.argv), {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, end) => {
    const code = Exit.match(exit, {
      onSuccess: () => 0,
      onFailure: (cause) => (Cause.isInterruptedOnly(cause) ? exitCode() : failureCode(cause))
    })
    const complete = Effect.if(Effect.zipRight(flushed, incomplete), {
      onTrue: () => Effect.as(note("The output could not be written: its disk is full."), Math.max(code, 1)),
      onFalse: () => Effect.succeed(code)
    })
    Effect.runCallback(complete, { onExit: (ended) => end(Exit.getOrElse(ended, () => code)) })
  }
})
