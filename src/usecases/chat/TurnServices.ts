/** The services that answering uses. What they read is read again when the database was away for a moment. */
import * as Effect from "effect/Effect"
import type * as Context from "effect/Context"
import { Embedder } from "../../capabilities/Embedder.ts"
import { GroundingChecker } from "../../capabilities/GroundingChecker.ts"
import { ModelRuntime } from "../../capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../capabilities/VectorSearch.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import { PassageStore } from "../../store/knowledge/Passages.ts"
import { ChatTools } from "./tools/Tools.ts"

export interface TurnServices {
  readonly search: Context.Tag.Service<typeof VectorSearch>
  readonly texts: Pick<PassageStore, "around" | "questions" | "chunksOf">
  readonly embedder: Context.Tag.Service<typeof Embedder>
  readonly runtime: Context.Tag.Service<typeof ModelRuntime>
  readonly checker: Context.Tag.Service<typeof GroundingChecker>
  readonly tools: Pick<ChatTools, "forTurn">
}

/** The services of {@link ChatTurn}. */
export const makeTurnServices: Effect.Effect<
  TurnServices,
  never,
  ChatTools | Embedder | GroundingChecker | ModelRuntime | PassageStore | VectorSearch
> = Effect.gen(function* () {
  const search = yield* VectorSearch
  const texts = yield* PassageStore
  return {
    search: { ...search, search: (...query) => retryDuringOutage(search.search(...query)) },
    texts: {
      around: (...of) => retryDuringOutage(texts.around(...of)),
      questions: (...of) => retryDuringOutage(texts.questions(...of)),
      chunksOf: (...of) => retryDuringOutage(texts.chunksOf(...of))
    },
    embedder: yield* Embedder,
    runtime: yield* ModelRuntime,
    checker: yield* GroundingChecker,
    tools: yield* ChatTools
  }
})
