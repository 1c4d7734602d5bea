/** Turns and searches in the lane: what `ChatHandlers` and `RetrieveHandlers` answer wherever there is no lane. */
import type { ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { KeyStore } from "../../capabilities/KeyStore.ts"
import { allows } from "../../domain/Access.ts"
import { ChatTurn } from "../../usecases/chat/ChatTurn.ts"
import type { RateLimits } from "../../usecases/RateLimits.ts"
import { Retrieve } from "../../usecases/Retrieve.ts"
import { PublicApi } from "../Api.ts"
import * as Direct from "../Direct.ts"
import type { Lane } from "../Lane.ts"
import * as Sse from "../Sse.ts"
import { complete, stream } from "./ChatApi.ts"
import { retrieve } from "./RetrieveApi.ts"

const drained = (response: ServerResponse) =>
  Effect.async<void>((resume) => {
    if (!response.writableNeedDrain) return resume(Effect.void)
    const done = () => resume(Effect.void)
    response.once("drain", done)
    return Effect.sync(() => response.off("drain", done))
  })

/** A client that does not read makes the writer wait; one that leaves ends it. */
const sinkOf = (response: ServerResponse, beats: boolean): Sse.Sink => ({
  beats,
  push: (text) => (response.write(text) ? Effect.void : drained(response)),
  add: (text) => void response.write(text)
})

export const layer: Layer.Layer<never, never, ChatTurn | KeyStore | Lane | RateLimits | Retrieve> =
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const turns = yield* ChatTurn
      const search = yield* Retrieve
      const streams = new Set<Sse.Sink>()
      yield* Sse.keepAlive(streams)

      const streamed =
        (tell: Parameters<typeof Sse.send>[0], full: boolean, beats: boolean) =>
        (response: ServerResponse) => {
          const sink = sinkOf(response, beats)
          return Effect.acquireUseRelease(
            Effect.sync(() => streams.add(sink)),
            () => Sse.send(tell, full, sink),
            () => Effect.sync(() => streams.delete(sink))
          )
        }

      yield* Direct.open(PublicApi, [
        Direct.whole(complete, turns.complete),
        Direct.whole(retrieve, search.run),
        Direct.route(stream, (key, payload, headers) =>
          Effect.map(turns.start(key, payload), (turn) => ({
            head: Sse.head(turn),
            body: streamed(turn.tell, allows(key.permissions, "trace_read"), Sse.wantsBeats(headers))
          }))
        )
      ])
    })
  )
