/**
 * The agents' indexes: built on first use, updated by one fiber at a time, evicted least recently used first. The words
 * of a large agent are loaded first, so that it can be searched. Its vectors, which take most of the time, follow.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { generationKey, InProcessIndex } from "./InProcessIndex.ts"
import { LruCache } from "../../concurrency/LruCache.ts"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import type { Rows } from "./InProcessRows.ts"

/** Time-out for updating an agent. The next search tries again. */
const catchUpLimit = Duration.minutes(5)
/** Number of chunks read by one statement. Other work can run between two statements. */
const batch = 200
/** Number of vectors read by one statement beside searches. Adding one of a large model takes half a millisecond. */
const vectorBatch = 25
/** Number of agents that a process loads at the same time: one is read from the database while another is indexed. */
const maxConcurrentLoads = 2
/** Number of agents whose vectors are loaded at the same time. More would take all of the thread's time. */
const maxConcurrentVectorLoads = 1
/** Maximum number of agents that wait to be loaded; tenants take turns. */
const maxWaiting = 10_000
/** How long an agent's first search waits for its vectors, only while no other agent is being loaded. */
const vectorsTimeout = Duration.seconds(1)

/** The memory state of an agent. `index` is null until it has been loaded once. */
export interface AgentMemory {
  index: InProcessIndex | null
  /** The running update, which all searches share. */
  underway: Deferred.Deferred<void> | null
  /** The waiting or running load. */
  reading: Fiber.RuntimeFiber<void> | null
  /** The loading of its vectors, once its words are in memory. */
  vectors: Fiber.RuntimeFiber<void> | null
}

/** Dimensions of a profile; 0 when no configured embedder supports it. */
type DimensionsOf = (profile: string) => Effect.Effect<number>

export interface AgentsOptions {
  /** Memory for all indexes, in bytes. */
  readonly maxBytes: number
  /** Number of chunks above which an agent's words are loaded before its vectors. */
  readonly wordsFirstAbove: number
}

interface Source extends Pick<AgentsOptions, "wordsFirstAbove"> {
  readonly rows: Rows
  readonly dimensionsOf: DimensionsOf
}

const inBatches = <A>(
  ids: ReadonlyArray<string>,
  read: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<A>>,
  keep: (rows: ReadonlyArray<A>) => Effect.Effect<void>,
  size = batch
) =>
  Effect.gen(function* () {
    for (let from = 0; from < ids.length; from += size) {
      yield* keep(yield* read(ids.slice(from, from + size)))
      yield* yieldToEventLoop
    }
  })

const setVectors =
  (index: InProcessIndex) => (rows: ReadonlyArray<{ readonly id: string; readonly embedding: Uint8Array }>) =>
    Effect.sync(() => {
      for (const { embedding, id } of rows) index.setVector(id, embedding)
    })

/**
 * Reads everything newer than `held` and drops chunks that are no longer live. Starts from an empty index with `anew`,
 * or when the database is older than the index. It may stop at any point and be repeated: the index keeps its old
 * version until the end and is marked as changing, so a search does not use a part of the changes.
 */
const catchUp = (source: Source, agent: AgentScope, held: AgentMemory, anew: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { dimensionsOf, rows, wordsFirstAbove } = source
    const old = anew ? null : held.index
    const seen = old?.version ?? 0
    const changes = yield* rows.changes(agent, seen)
    const { profile } = changes
    if (changes.version < seen || (old !== null && old.profile !== profile)) {
      return yield* catchUp(source, agent, held, true)
    }
    const index = old ?? new InProcessIndex(yield* dimensionsOf(profile), profile)
    index.changing = true
    // First, because a chunk that was moved into a new generation or indexed again is dropped and read again.
    yield* index.retain(
      new Set(changes.live.map(([sourceId, generation]) => generationKey(sourceId, generation))),
      new Set([...changes.chunks, ...changes.excluded])
    )
    const known = changes.vectors.filter((id) => index.has(id))
    const added = changes.chunks.filter((id) => !index.has(id))
    const wordsFirst = old === null && index.comparable && added.length > wordsFirstAbove
    index.expect(added.length)
    yield* inBatches(
      added,
      (ids) => (wordsFirst ? rows.words(agent, ids) : rows.chunks(agent, profile, ids)),
      (found) =>
        Effect.sync(() => {
          for (const row of found) index.add(row)
        })
    )
    yield* inBatches(known, (ids) => rows.vectors(agent, profile, ids), setVectors(index))
    index.version = changes.version
    index.changing = false
    if (old === null) index.complete = !wordsFirst
    held.index = index
  })

/** Loads the vectors of chunks whose words are in memory. Chunks added since already have theirs. */
const readVectors = (rows: Rows, agent: AgentScope, held: AgentMemory, index: InProcessIndex) =>
  Effect.gen(function* () {
    yield* inBatches(
      yield* index.inTurn(Effect.sync(() => index.withoutVector)),
      // None for an index that was replaced.
      (some) => (held.index === index ? rows.vectors(agent, index.profile, some) : Effect.succeed([])),
      (found) => index.inTurn(setVectors(index)(found)),
      vectorBatch
    )
    if (held.index === index) index.complete = true
  })

export interface Agents {
  /** The agent's entry; its index may be older than the database. */
  readonly hold: (agentId: AgentId) => AgentMemory
  /** The agent's entry, if it has one. */
  readonly held: (agentId: AgentId) => AgentMemory | undefined
  readonly forget: (agentId: AgentId) => void
  /** Updates the index, or waits for a running update. The update continues when the caller is interrupted. */
  readonly refresh: (
    agent: AgentScope,
    held: AgentMemory,
    options: { readonly anew: boolean }
  ) => Effect.Effect<void>
  /** Begins to load the vectors that an index lacks, in the background, unless that is under way. */
  readonly addVectors: (agent: AgentScope, held: AgentMemory) => Effect.Effect<void>
  /**
   * Waits until an agent that is not in memory can be searched, in a queue that is fair between tenants. If no other
   * agent waits, it also waits a little for the vectors. The work continues when the caller is interrupted.
   */
  readonly read: (scope: AgentScope, held: AgentMemory) => Effect.Effect<void>
  /** Like `read`, and waits for its vectors too. */
  readonly readWhole: (scope: AgentScope) => Effect.Effect<void>
  /** Memory of all indexes, in bytes. */
  readonly bytes: () => number
}

export const makeAgents = (
  rows: Rows,
  dimensionsOf: DimensionsOf,
  { maxBytes, wordsFirstAbove }: AgentsOptions
): Effect.Effect<Agents, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const all = new LruCache<AgentMemory>()
    const turns = new FairLimiter({ name: "search-index-reads", permits: maxConcurrentLoads, maxWaiting })
    const vectorTurns = new FairLimiter({
      name: "search-vector-reads",
      permits: maxConcurrentVectorLoads,
      maxWaiting
    })
    /** True when a caller would not have to wait. */
    const isFree = () =>
      turns.held + turns.waiting < maxConcurrentLoads &&
      vectorTurns.held + vectorTurns.waiting < maxConcurrentVectorLoads
    const cost = ({ index }: AgentMemory) => index?.bytes ?? 1_024
    const source = { rows, dimensionsOf, wordsFirstAbove }

    const hold = (agentId: AgentId): AgentMemory => {
      const held = all.get(agentId) ?? {
        index: null,
        underway: null,
        reading: null,
        vectors: null
      }
      all.set(agentId, held)
      return held
    }

    const addVectors: Agents["addVectors"] = (agent, held) =>
      Effect.gen(function* () {
        const { index } = held
        if (index === null || index.complete || index.loading) return
        index.loading = true
        held.vectors = yield* vectorTurns
          .withPermit(agent.tenantId)(readVectors(rows, agent, held, index))
          .pipe(
            // Words decide meanwhile. The next search tries again.
            Effect.catchAllCause((cause) =>
              Effect.logWarning("An agent's vectors could not be read into memory", cause)
            ),
            Effect.interruptible,
            Effect.ensuring(
              Effect.sync(() => {
                index.loading = false
                if (held.index === index) held.vectors = null
                all.trimToCost(maxBytes, cost)
              })
            ),
            Effect.withSpan("VectorSearch.readVectors", { attributes: { agentId: agent.agentId } }),
            Effect.forkIn(scope)
          )
        // An interruption between the mark and the fork would leave the mark for ever.
      }).pipe(Effect.uninterruptible)

    const work = (agent: AgentScope, held: AgentMemory, anew: boolean) =>
      catchUp(source, agent, held, anew).pipe(
        Effect.timeoutFail({
          duration: catchUpLimit,
          onTimeout: () => new Error("Reading an agent's chunks took too long.")
        }),
        Effect.orDie,
        Effect.zipRight(addVectors(agent, held)),
        Effect.ensuring(
          Effect.sync(() => {
            held.underway = null
            all.trimToCost(maxBytes, cost)
          })
        ),
        Effect.withSpan("VectorSearch.catchUp", { attributes: { agentId: agent.agentId } })
      )

    const refresh: Agents["refresh"] = (agent, held, { anew }) =>
      Effect.uninterruptibleMask((restore) => {
        if (held.underway !== null) return restore(Deferred.await(held.underway))
        const underway = Deferred.unsafeMake<void>(FiberId.none)
        held.underway = underway
        return Effect.interruptible(work(agent, held, anew)).pipe(
          Effect.intoDeferred(underway),
          Effect.forkIn(scope),
          Effect.zipRight(restore(Deferred.await(underway)))
        )
      })

    const inLine = (agent: AgentScope, held: AgentMemory) =>
      Effect.gen(function* () {
        if (held.reading !== null) return held.reading
        const reading = Effect.suspend(() =>
          held.index === null ? refresh(agent, held, { anew: true }) : Effect.void
        )
        held.reading = yield* turns
          .withPermit(agent.tenantId)(reading)
          .pipe(
            Effect.orDie,
            Effect.ensuring(
              Effect.sync(() => {
                held.reading = null
              })
            ),
            Effect.forkIn(scope)
          )
        return held.reading
      })

    const vectorsOf = ({ vectors }: AgentMemory) =>
      vectors === null ? Effect.void : Effect.asVoid(Fiber.await(vectors))

    const read: Agents["read"] = (agent, held) =>
      Effect.gen(function* () {
        const alone = isFree()
        yield* Effect.flatMap(inLine(agent, held), Fiber.join)
        if (alone) yield* Effect.timeoutOption(vectorsOf(held), vectorsTimeout)
      })

    const readWhole: Agents["readWhole"] = (agent) =>
      Effect.gen(function* () {
        const held = hold(agent.agentId)
        if (held.index === null) yield* Effect.flatMap(inLine(agent, held), Fiber.join)
        yield* vectorsOf(held)
      })

    return {
      hold,
      held: (agentId) => all.get(agentId),
      forget: (agentId) => all.delete(agentId),
      refresh,
      addVectors,
      read,
      readWhole,
      bytes: () => all.totalCost(cost)
    }
  })
