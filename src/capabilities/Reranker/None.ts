/** The default: keeps candidates in the order of their scores. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Reranker } from "../Reranker.ts"

export const layerNone = Layer.succeed(Reranker, {
  widen: 1,
  rerank: (_, passages) => Effect.succeed(passages.map(() => 1))
})
