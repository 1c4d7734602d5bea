import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { ImportConversations } from "../../usecases/conversations/ImportConversations.ts"
import { Api } from "../Api.ts"

/** Maximum imports in memory; the others wait. */
const maxConcurrentImports = 2

export const ImportsHandlers = HttpApiBuilder.group(Api, "imports", (handlers) =>
  Effect.gen(function* () {
    const imports = yield* ImportConversations
    const semaphore = yield* Effect.makeSemaphore(maxConcurrentImports)
    return handlers.handleRaw("conversations", ({ request, urlParams }) =>
      // The boundary answers for a body that cannot be read.
      Effect.catchTag(request.text, "RequestError", Effect.die).pipe(
        Effect.flatMap((text) => imports.run(text, urlParams.agentId)),
        semaphore.withPermits(1)
      )
    )
  })
)
