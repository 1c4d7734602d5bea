/**
 * A model and a search that do what the message says, so that a test decides when a turn says something, and sees when it is
 * interrupted. `hold <name>` says "First." and waits to be released, `silent <name>` waits before its first word, `fail`
 * fails, `flood` says thirty megabytes; anything else is answered at once. A retrieval of `hold <name>` waits as well.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { type ModelPart, ModelError, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../src/capabilities/VectorSearch.ts"
import * as InProcess from "../../src/capabilities/VectorSearch/InProcess.ts"
import { layerHashing } from "../HashingEmbedder.ts"

interface Held {
  readonly begun: Deferred.Deferred<void>
  readonly released: Deferred.Deferred<void>
  readonly interrupted: Deferred.Deferred<void>
}

const make = (): Held => ({
  begun: Effect.runSync(Deferred.make<void>()),
  released: Effect.runSync(Deferred.make<void>()),
  interrupted: Effect.runSync(Deferred.make<void>())
})

const finish: ModelPart = { _tag: "Finish", reason: "stop", inputTokens: 3, outputTokens: 5 }
const text = (delta: string): ModelPart => ({ _tag: "TextDelta", delta })

/** Deltas of a flood, and what each says: more than a stream and a turn hold for who does not read. */
export const flood = { deltas: 150_000, delta: "A".repeat(200) } as const

export interface Script {
  readonly layer: typeof layer extends (...given: never) => infer A ? A : never
  /** What the model has been given, as JSON, newest last. */
  readonly prompts: ReadonlyArray<string>
  /** Resolves once the model or the search works on what is held under `name`. */
  readonly begun: (name: string) => Promise<void>
  readonly release: (name: string) => Promise<void>
  /** Resolves once what is held under `name` has been interrupted. */
  readonly interrupted: (name: string) => Promise<void>
  readonly wasInterrupted: (name: string) => boolean
}

type Hold = (name: string) => Effect.Effect<void>

const scriptedModel = (prompts: Array<string>, hold: Hold) =>
  Layer.succeed(ModelRuntime, {
    defaultModel: "scripted",
    contextWindow: 32_000,
    readsPassages: false,
    acceptsImages: false,
    readable: () => [],
    reply: (request) =>
      Stream.suspend(() => {
        prompts.push(JSON.stringify(request.prompt))
        const [kind = "", name = ""] = request.question.split(" ")
        const last = Stream.fromEffect(Effect.as(hold(name), text("Last.")))
        const said: Record<string, Stream.Stream<ModelPart, ModelError>> = {
          fail: Stream.fail(new ModelError({ reason: "Rejected", message: "Scripted", retryable: false })),
          flood: Stream.rechunk(Stream.take(Stream.repeatValue(text(flood.delta)), flood.deltas), 1),
          hold: Stream.concat(Stream.make(text("First. ")), last),
          silent: last
        }
        const answer = Stream.make(
          text("Eighty "),
          text(request.passages.length > 0 ? "degrees [1]." : "degrees.")
        )
        return Stream.concat(said[kind] ?? Stream.rechunk(answer, 1), Stream.make(finish))
      })
  })

const scriptedSearch = (hold: Hold) =>
  Layer.effect(
    VectorSearch,
    Effect.map(VectorSearch, ({ search, warm }) => ({
      warm,
      search: (scope, query) => {
        const [kind, name] = query.text.split(" ")
        const waits = kind === "hold" && name?.startsWith("search-") === true
        return waits ? Effect.zipRight(hold(name), search(scope, query)) : search(scope, query)
      }
    }))
  ).pipe(Layer.provide(InProcess.layerInProcess({ maxBytes: 64 * 1_048_576 })))

const layer = (prompts: Array<string>, hold: Hold) =>
  Layer.merge(scriptedModel(prompts, hold), scriptedSearch(hold)).pipe(Layer.provideMerge(layerHashing()))

export const makeScript = (): Script => {
  const prompts: Array<string> = []
  const all = new Map<string, Held>()
  const held = (name: string): Held => {
    const found = all.get(name) ?? make()
    all.set(name, found)
    return found
  }
  const hold = (name: string) =>
    Effect.suspend(() => {
      const { begun, interrupted, released } = held(name)
      return Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(released)).pipe(
        Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
      )
    })
  const wait = (deferred: Deferred.Deferred<void>) => Effect.runPromise(Deferred.await(deferred))
  return {
    layer: layer(prompts, hold),
    prompts,
    begun: (name) => wait(held(name).begun),
    release: async (name) => void (await Effect.runPromise(Deferred.succeed(held(name).released, undefined))),
    interrupted: (name) => wait(held(name).interrupted),
    wasInterrupted: (name) => Effect.runSync(Deferred.isDone(held(name).interrupted))
  }
}
