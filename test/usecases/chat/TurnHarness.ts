/** The chat turn on a real database, with a scripted model and a scripted search. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { layerWords } from "../../../src/capabilities/GroundingChecker/Words.ts"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import {
  type ModelError,
  type ModelPart,
  type ModelRequest,
  ModelRuntime
} from "../../../src/capabilities/ModelRuntime.ts"
import * as RealtimeMemory from "../../../src/capabilities/Realtime/Memory.ts"
import { parseAllowList } from "../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerToolOAuth } from "../../../src/capabilities/IdentityProvider/ToolOAuth.ts"
import { layerAddresses } from "../../../src/capabilities/OutboundHttp/Addresses.ts"
import { layerUndici } from "../../../src/capabilities/OutboundHttp/Undici.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { type FoundChunk, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { CompleteTurnRequest } from "../../../src/domain/chat/ChatTurn.ts"
import { ChunkId, DocumentId, SourceId } from "../../../src/domain/Ids.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { ConversationFeedStore } from "../../../src/store/conversations/ConversationFeed.ts"
import { OtherModelCallStore } from "../../../src/store/billing/OtherModelCalls.ts"
import { OtherModelCalls } from "../../../src/usecases/billing/OtherModelCalls.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { PassageStore } from "../../../src/store/knowledge/Passages.ts"
import type { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"
import * as BuiltInTools from "../../../src/capabilities/ToolSources/BuiltIn.ts"
import { ToolConnectionStore } from "../../../src/store/agents/ToolConnections.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { TurnClaimStore } from "../../../src/store/chat/TurnClaims.ts"
import { Turns } from "../../../src/store/chat/Turns.ts"
import { UnansweredStore } from "../../../src/store/channels/Unanswered.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { ProcessLease } from "../../../src/usecases/chat/ProcessLease.ts"
import { RunningTurns } from "../../../src/usecases/chat/RunningTurns.ts"
import { RealtimeAccess } from "../../../src/usecases/chat/RealtimeAccess.ts"
import { ToolTokens } from "../../../src/usecases/agents/ToolTokens.ts"
import { ChatTools } from "../../../src/usecases/chat/tools/Tools.ts"
import { TurnSettings } from "../../../src/usecases/chat/TurnSettings.ts"
import { RealtimeFeed } from "../../../src/usecases/conversations/RealtimeFeed.ts"

export type Reply = (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>

/** What the model and the search answer; tests set them. */
export class Script extends Context.Tag("test/Script")<
  Script,
  {
    readonly reply: Ref.Ref<Reply>
    readonly chunks: Ref.Ref<ReadonlyArray<FoundChunk>>
    readonly requests: Ref.Ref<ReadonlyArray<ModelRequest>>
  }
>() {}

export const says = (...deltas: ReadonlyArray<string>): Reply => {
  const parts = deltas.map((delta): ModelPart => ({ _tag: "TextDelta", delta }))
  return () =>
    Stream.fromIterable([
      ...parts,
      { _tag: "Finish", reason: "stop", inputTokens: 11, outputTokens: deltas.length } as const
    ])
}

export const chunk = (place: number): FoundChunk => ({
  id: ChunkId.make(`chk_${place}`),
  documentId: DocumentId.make(`doc_${place}`),
  sourceId: SourceId.make("src_1"),
  sourceName: "Handbook",
  title: `Chapter ${place}`,
  heading: "",
  ordinal: 0,
  text: `Fact number ${place}.`,
  url: `https://example.test/${place}`,
  score: 0.9 - place / 100,
  lexical: 0.9,
  semantic: 0.9
})

const script = Layer.effect(
  Script,
  Effect.gen(function* () {
    return {
      reply: yield* Ref.make<Reply>(says("Hello")),
      chunks: yield* Ref.make<ReadonlyArray<FoundChunk>>([]),
      requests: yield* Ref.make<ReadonlyArray<ModelRequest>>([])
    }
  })
)

const model = (contextWindow: number) =>
  Layer.effect(
    ModelRuntime,
    Effect.map(Script, ({ reply, requests }) => ({
      defaultModel: "scripted",
      contextWindow,
      readsPassages: false,
      acceptsImages: false,
      readable: () => ["image/png" as const, "application/pdf" as const],
      reply: (request) =>
        Ref.update(requests, (all) => [...all, request]).pipe(
          Effect.zipRight(Ref.get(reply)),
          Effect.map((answer) => answer(request)),
          Stream.unwrap
        )
    }))
  )

const search = Layer.effect(
  VectorSearch,
  Effect.map(Script, ({ chunks }) => ({
    search: () => Effect.map(Ref.get(chunks), (found) => ({ chunks: found, degraded: false })),
    warm: Effect.succeed(true)
  }))
)

const embedder = Layer.succeed(Embedder, {
  profile: "none",
  dimensions: 1,
  lexicalWeight: () => 1,
  minScore: 0.25,
  maxBatch: 1,
  queryTimeout: "1 second",
  embedQuery: () => Effect.succeed(new Float32Array([1])),
  embedAll: (texts) => Effect.succeed(texts.map(() => new Float32Array([1])))
})

const box = DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")])

/** Tools of the tests live on this machine. */
const allowed = { allow: Either.getOrThrow(parseAllowList("127.0.0.1")) }
const outbound = layerUndici(allowed)

/** Tokens of tools with OAuth. */
export const tokens = ToolTokens.Default.pipe(
  Layer.provide(layerToolOAuth),
  Layer.provide([outbound, layerAddresses(allowed), ToolConnectionStore.Default])
)

export const settings = (timeout: Duration.DurationInput = "10 seconds", runtimeData = true) =>
  Layer.succeed(TurnSettings, {
    timeout: Duration.decode(timeout),
    runtimeData,
    realtimeUrl: "ws://127.0.0.1/api/realtime",
    drain: Duration.seconds(5)
  })

export type Knowledge = Layer.Layer<VectorSearch | Embedder, never, Script | SqlClient.SqlClient>

/** One process that runs turns; `knowledge` is what it searches, scripted where none is given. */
export const turnLayer = (
  timeout?: Duration.DurationInput,
  runtimeData?: boolean,
  knowledge: Knowledge = Layer.merge(search, embedder),
  tools: Layer.Layer<never, never, OutboundHttp> = BuiltInTools.layer,
  contextWindow = 8_000
) =>
  Layer.merge(ChatTurn.Default, OtherModelCalls.Default).pipe(
    Layer.provideMerge(RunningTurns.Default),
    Layer.provideMerge(
      Layer.mergeAll(
        ChatTools.Default.pipe(Layer.provide(tokens)),
        RealtimeAccess.Default,
        RealtimeFeed.Default,
        ProcessLease.Default
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        model(contextWindow),
        knowledge,
        layerWords,
        box,
        tools.pipe(Layer.provideMerge(outbound)),
        RealtimeMemory.layerMemory,
        settings(timeout, runtimeData)
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        script,
        AgentRunStore.Default,
        OtherModelCallStore.Default,
        ConversationFeedStore.Default,
        ToolStore.Default,
        TurnClaimStore.Default,
        PassageStore.Default,
        Turns.Default,
        UnansweredStore.Default,
        ProcessLeases.Default
      )
    )
  )

const decode = Schema.decodeUnknownSync(CompleteTurnRequest)

/** A request as it comes out of the route's schema. */
export const request = (fields: Readonly<Record<string, unknown>> = {}) =>
  decode({ message: "Hello?", ...fields })
