/**
 * Combines several providers. An agent's model names one of them, `provider/model`. If a provider fails before its
 * first token, the next of a chain is tried. A failed provider is tried last for a while, as long as another one
 * answers.
 */
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { ModelError, ModelPart, ModelRequest, ModelRuntimeService } from "../ModelRuntime.ts"

export interface Routes {
  /** By name. Names contain no slash. */
  readonly providers: ReadonlyMap<string, ModelRuntimeService>
  /** The provider of models without a provider's name. */
  readonly base: string
  /** The model of agents that name none. */
  readonly defaultModel: string
  /** Models that are tried in order if the agent's own cannot answer. */
  readonly fallbacks: ReadonlyArray<string>
}

/** How long a failed provider is tried last, if it requests no pause. */
const defaultPause = Duration.seconds(10)
const maxPause = Duration.minutes(5)

interface Target {
  readonly provider: string
  readonly runtime: ModelRuntimeService
  readonly model: string
}

/** Another provider may be tried if this one did not begin to answer: nothing was sent to the client or billed. */
const mayTryNext = ({ problem, reason }: ModelError): boolean =>
  reason === "Unreachable" || reason === "RateLimited" || (reason === "Rejected" && problem !== undefined)

/**
 * The provider and the model that `name` means. If the text before its first slash is not a provider's name, it belongs
 * to the model's name, and the provider is `base`.
 */
export const readName = (
  name: string,
  providers: Pick<ReadonlyMap<string, unknown>, "has">,
  base: string
) => {
  const slash = name.indexOf("/")
  const provider = name.slice(0, Math.max(0, slash))
  return providers.has(provider)
    ? { provider, model: name.slice(slash + 1) }
    : { provider: base, model: name }
}

/** One runtime over all of `routes`. Its base must be among its providers. */
export const routed = (routes: Routes, base: ModelRuntimeService): ModelRuntimeService => {
  const { defaultModel, fallbacks, providers } = routes
  /** By failed provider: the monotonic time in milliseconds until which it is tried last. */
  const pausedUntil = new Map<string, number>()

  const targetOf = (name: string): Target => {
    const { model, provider } = readName(name, providers, routes.base)
    return { provider, runtime: providers.get(provider) ?? base, model }
  }

  const chainOf = (model: string | null): ReadonlyArray<Target> => {
    const targets = [model ?? defaultModel, ...fallbacks].map(targetOf)
    return targets.filter(
      ({ model: own, provider }, index) =>
        targets.findIndex((one) => one.provider === provider && one.model === own) === index
    )
  }

  const recordFailure = ({ provider }: Target, { retryAfter = defaultPause }: ModelError) =>
    Effect.zipRight(
      Effect.map(monotonicMillis, (now) => {
        pausedUntil.set(provider, now + Duration.toMillis(Duration.min(retryAfter, maxPause)))
      }),
      Effect.logWarning("A model's provider failed, and the next one is asked").pipe(
        Effect.annotateLogs({ provider })
      )
    )

  const ask = (
    request: ModelRequest,
    requested: Target | undefined,
    [target, ...others]: ReadonlyArray<Target>
  ): Stream.Stream<ModelPart, ModelError> => {
    if (target === undefined) return Stream.empty
    let hasBegun = false
    /** Whether the client knows which model answers. */
    let isAnnounced = target === requested
    const { model, provider, runtime } = target
    const announcement = { _tag: "Answering", model: `${provider}/${model}` } as const
    return runtime.reply({ ...request, model }).pipe(
      Stream.mapChunks((parts) => {
        // The first bytes of an answer may have no part.
        if (parts.length === 0) return parts
        hasBegun = true
        if (isAnnounced) return parts
        isAnnounced = true
        return Chunk.prepend<ModelPart, ModelPart>(parts, announcement)
      }),
      Stream.catchAll((error) =>
        hasBegun || others.length === 0 || !mayTryNext(error)
          ? Stream.fail(error)
          : Stream.unwrap(Effect.as(recordFailure(target, error), ask(request, requested, others)))
      )
    )
  }

  const qualifiedName = (name: string): string => {
    const { model, provider } = targetOf(name)
    return `${provider}/${model}`
  }

  return {
    defaultModel,
    models: [
      ...new Set([
        ...fallbacks.map(qualifiedName),
        ...[...providers].flatMap(([provider, { models = [] }]) =>
          models.map((model) => `${provider}/${model}`)
        )
      ])
    ],
    // The smallest window, because the prompt is built before it is known which provider answers.
    contextWindow: Math.min(...[...providers.values()].map(({ contextWindow }) => contextWindow)),
    readsPassages: false,
    acceptsImages: targetOf(defaultModel).runtime.acceptsImages,
    readable: (model) => {
      const target = targetOf(model ?? defaultModel)
      return target.runtime.readable(target.model)
    },
    billedAs: (model) => {
      const target = targetOf(model ?? defaultModel)
      return target.runtime.billedAs?.(target.model) ?? `${target.provider}/${target.model}`
    },
    reply: (request) =>
      Stream.unwrap(
        Effect.map(monotonicMillis, (now) => {
          const chain = chainOf(request.model)
          const isPaused = ({ provider }: Target) => (pausedUntil.get(provider) ?? 0) > now
          const ordered = [
            ...chain.filter((target) => !isPaused(target)),
            ...chain.filter((target) => isPaused(target))
          ]
          return ask(request, chain[0], ordered)
        })
      )
  }
}
