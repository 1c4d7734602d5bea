/** Trials of a tool without a model: the functions that it offers, and the answer of one of them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../../domain/accounts/Account.ts"
import type { ToolId } from "../../../domain/agents/Tool.ts"
import type { ToolTrial, ToolTrialRequest } from "../../../domain/agents/ToolTrial.ts"
import { orNoSuch } from "../../../domain/Errors.ts"
import { toText } from "../../../domain/Json.ts"
import { ToolStore } from "../../../store/agents/Tools.ts"
import { ChatTools } from "./Tools.ts"

/** Maximum characters of an answer that are shown. */
const maxAnswerCharacters = 8_192

export class ToolTrials extends Effect.Service<ToolTrials>()("usecases/chat/tools/ToolTrials", {
  effect: Effect.gen(function* () {
    const store = yield* ToolStore
    const tools = yield* ChatTools

    /**
     * Calls a function as a turn would, with a real request. Without `arguments` no function is called.
     * Credentials are removed from what is returned.
     */
    const run = Effect.fn("ToolTrials.run")(function* (
      scope: TenantScope,
      id: ToolId,
      { arguments: input, function: name, ...values }: ToolTrialRequest
    ) {
      const found = yield* store.find(scope, id).pipe(orNoSuch("tool"))
      const begun = yield* Clock.currentTimeMillis
      const offered = yield* tools.forTrial(scope, found, values)
      const functions = offered.declarations
      const called = name ?? functions[0]?.name
      const failure = offered.unavailable[0]?.failure
      const outcome: ToolTrial["outcome"] =
        failure !== undefined
          ? { _tag: "failure", code: failure.code, message: failure.message }
          : input === undefined || called === undefined
            ? null
            : yield* Effect.match(
                offered.call(called, input, () => Effect.void),
                {
                  onFailure: ({ code, message }) => ({ _tag: "failure", code, message }) as const,
                  onSuccess: (value) => {
                    const text = toText(value)
                    return {
                      _tag: "answer",
                      text: text.slice(0, maxAnswerCharacters).toWellFormed(),
                      isCut: text.length > maxAnswerCharacters
                    } as const
                  }
                }
              )
      const trial: ToolTrial = { functions, outcome, milliseconds: (yield* Clock.currentTimeMillis) - begun }
      return trial
    }, Effect.scoped)

    return { run } as const
  })
}) {}
