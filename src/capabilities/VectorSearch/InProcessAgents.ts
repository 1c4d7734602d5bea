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
const updateTimeout = Duration.minutes(5)
/** Number of chunks read by one statement. Other work can run between two statements. */
const chunksPerStatement = 200
/** Number of vectors read by one statement beside searches. Adding one of a large model takes half a millisecond. */
const vectorsPerStatement = 25
/** Number of agents that a process loads at the same time: one is read from the database while another is indexed. */
const maxConcurrentLoads = 2
/** Number of agents whose vectors are loaded at the same time. More would take all of the thread's time. */
const maxConcurrentVectorLoads = 1
/** Maximum number of agents that wait to be loaded; tenants take turns. */
const maxWaiting = 10_000
/** How long an agent's first search waits for its vectors, only while no other agent is being loaded. */
const vectorsTimeout = Duration.seconds(1)

/** What is in memory of an agent. `index` is null until it has been loaded once. */
export interface AgentEntry {
  index: InProcessIndex | null
  /** The running update, which all searches share. */
  update: Deferred.Deferred<void> | null
  /** The waiting or running load. */
  pendingLoad: Fiber.RuntimeFiber<void> | null
  /** The loading of its vectors, once its words are in memory. */
  vectorLoad: Fiber.RuntimeFiber<void> | null
}

/** Dimensions of a profile; 0 when no configured embedder supports it. */
type DimensionsOf = (profile: string) => Effect.Effect<number>

export interface AgentsOptions {
  /** Memory for all indexes, in bytes. */
  readonly maxBytes: number
  /** Number of chunks above which an agent's words are loaded before its vectors. */
  readonly wordsFirstAbove: number
}

interface LoadContext extends Pick<AgentsOptions, "wordsFirstAbove"> {
  readonly rows: Rows
  readonly dimensionsOf: DimensionsOf
}

const inBatches = <A>(
  ids: ReadonlyArray<string>,
  read: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<A>>,
  store: (rows: ReadonlyArray<A>) => Effect.Effect<void>,
  size = chunksPerStatement
) =>
  Effect.gen(function* () {
    for (let from = 0; from < ids.length; from += size) {
      yield* store(yield* read(ids.slice(from, from + size)))
      yield* yieldToEventLoop
    }
  })

const setVectors =
  (index: InProcessIndex) => (rows: ReadonlyArray<{ readonly id: string; readonly embedding: Uint8Array }>) =>
    Effect.sync(() => {
      for (const { embedding, id } of rows) index.setVector(id, embedding)
    })

/**
 * Reads everything newer than the index and drops chunks that are no longer live. Starts from an empty index with
 * `rebuild`, or when the database is older than the index. It may stop at any point and be repeated: the index keeps its
 * old version until the end and is marked as changing, so a search does not use a part of the changes.
 */
const updateIndex = (
  context: LoadContext,
  agent: AgentScope,
  entry: AgentEntry,
  rebuild: boolean
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { dimensionsOf, rows, wordsFirstAbove } = context
    const old = rebuild ? null : entry.index
    const seen = old?.version ?? 0
    const changes = yield* rows.changes(agent, seen)
    const { profile } = changes
    if (changes.version < seen || (old !== null && old.profile !== profile)) {
      return yield* updateIndex(context, agent, entry, true)
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
    index.reserve(added.length)
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
    entry.index = index
  })

/** Loads the vectors of chunks whose words are in memory. Chunks added since already have theirs. */
const loadVectors = (rows: Rows, agent: AgentScope, entry: AgentEntry, index: InProcessIndex) =>
  Effect.gen(function* () {
    yield* inBatches(
      yield* index.exclusively(Effect.sync(() => index.withoutVector)),
      // None for an index that was replaced.
      (some) => (entry.index === index ? rows.vectors(agent, index.profile, some) : Effect.succeed([])),
      (found) => index.exclusively(setVectors(index)(found)),
      vectorsPerStatement
    )
    if (entry.index === index) index.complete = true
  })

export interface Agents {
  /** The agent's entry, created if it has none. Its index may be older than the database. */
  readonly entryOf: (agentId: AgentId) => AgentEntry
  /** The agent's entry, if it has one. */
  readonly findEntry: (agentId: AgentId) => AgentEntry | undefined
  readonly drop: (agentId: AgentId) => void
  /** Updates the index, or waits for a running update. The update continues when the caller is interrupted. */
  readonly refresh: (
    agent: AgentScope,
    entry: AgentEntry,
    options: { readonly rebuild: boolean }
  ) => Effect.Effect<void>
  /** Begins to load the vectors that an index lacks, in the background, unless they are being loaded. */
  readonly addVectors: (agent: AgentScope, entry: AgentEntry) => Effect.Effect<void>
  /**
   * Waits until an agent that is not in memory can be searched, in a queue that is fair between tenants. If no other
   * agent waits, it also waits a little for the vectors. The work continues when the caller is interrupted.
   */
  readonly load: (scope: AgentScope, entry: AgentEntry) => Effect.Effect<void>
  /** Like `load`, and waits for its vectors too. */
  readonly loadFully: (scope: AgentScope) => Effect.Effect<void>
  /** Memory of all indexes, in bytes. */
  readonly bytes: () => number
}

export const makeAgents = (
  rows: Rows,
  dimensionsOf: DimensionsOf,
  { maxBytes, wordsFirstAbove }: AgentsOptions
): Effect.Effect<Agents, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const entries = new LruCache<AgentEntry>()
    const loadLimiter = new FairLimiter({
      name: "search-index-reads",
      permits: maxConcurrentLoads,
      maxWaiting
    })
    const vectorLimiter = new FairLimiter({
      name: "search-vector-reads",
      permits: maxConcurrentVectorLoads,
      maxWaiting
    })
    /** True when a caller would not have to wait. */
    const isFree = () =>
      loadLimiter.held + loadLimiter.waiting < maxConcurrentLoads &&
      vectorLimiter.held + vectorLimiter.waiting < maxConcurrentVectorLoads
    const bytesOf = ({ index }: AgentEntry) => index?.bytes ?? 1_024
    const context = { rows, dimensionsOf, wordsFirstAbove }

    const entryOf = (agentId: AgentId): AgentEntry => {
      const entry = entries.get(agentId) ?? {
        index: null,
        update: null,
        pendingLoad: null,
        vectorLoad: null
      }
      entries.set(agentId, entry)
      return entry
    }

    const addVectors: Agents["addVectors"] = (agent, entry) =>
      Effect.gen(function* () {
        const { index } = entry
        if (index === null || index.complete || index.loading) return
        index.loading = true
        entry.vectorLoad = yield* vectorLimiter
          .withPermit(agent.tenantId)(loadVectors(rows, agent, entry, index))
          .pipe(
            // Words decide meanwhile. The next search tries again.
            Effect.catchAllCause((cause) =>
              Effect.logWarning("An agent's vectors could not be read into memory", cause)
            ),
            Effect.interruptible,
            Effect.ensuring(
              Effect.sync(() => {
                index.loading = false
                if (entry.index === index) entry.vectorLoad = null
                entries.trimToCost(maxBytes, bytesOf)
              })
            ),
            Effect.withSpan("VectorSearch.readVectors", { attributes: { agentId: agent.agentId } }),
            Effect.forkIn(scope)
          )
        // An interruption between the mark and the fork would leave the mark for ever.
      }).pipe(Effect.uninterruptible)

    const runUpdate = (agent: AgentScope, entry: AgentEntry, rebuild: boolean) =>
      updateIndex(context, agent, entry, rebuild).pipe(
        Effect.timeoutFail({
          duration: updateTimeout,
          onTimeout: () => new Error("Reading an agent's chunks took too long.")
        }),
        Effect.orDie,
        Effect.zipRight(addVectors(agent, entry)),
        Effect.ensuring(
          Effect.sync(() => {
            entry.update = null
            entries.trimToCost(maxBytes, bytesOf)
          })
        ),
        Effect.withSpan("VectorSearch.catchUp", { attributes: { agentId: agent.agentId } })
      )

    const refresh: Agents["refresh"] = (agent, entry, { rebuild }) =>
      Effect.uninterruptibleMask((restore) => {
        if (entry.update !== null) return restore(Deferred.await(entry.update))
        const update = Deferred.unsafeMake<void>(FiberId.none)
        entry.update = update
        return Effect.interruptible(runUpdate(agent, entry, rebuild)).pipe(
          Effect.intoDeferred(update),
          Effect.forkIn(scope),
          Effect.zipRight(restore(Deferred.await(update)))
        )
      })

    const queueLoad = (agent: AgentScope, entry: AgentEntry) =>
      Effect.gen(function* () {
        if (entry.pendingLoad !== null) return entry.pendingLoad
        const loading = Effect.suspend(() =>
          entry.index === null ? refresh(agent, entry, { rebuild: true }) : Effect.void
        )
        entry.pendingLoad = yield* loadLimiter
          .withPermit(agent.tenantId)(loading)
          .pipe(
            Effect.orDie,
            Effect.ensuring(
              Effect.sync(() => {
                entry.pendingLoad = null
              })
            ),
            Effect.forkIn(scope)
          )
        return entry.pendingLoad
      })

    const awaitVectors = ({ vectorLoad }: AgentEntry) =>
      vectorLoad === null ? Effect.void : Effect.asVoid(Fiber.await(vectorLoad))

    const load: Agents["load"] = (agent, entry) =>
      Effect.gen(function* () {
        const wasFree = isFree()
        yield* Effect.flatMap(queueLoad(agent, entry), Fiber.join)
        if (wasFree) yield* Effect.timeoutOption(awaitVectors(entry), vectorsTimeout)
      })

    const loadFully: Agents["loadFully"] = (agent) =>
      Effect.gen(function* () {
        const entry = entryOf(agent.agentId)
        if (entry.index === null) yield* Effect.flatMap(queueLoad(agent, entry), Fiber.join)
        yield* awaitVectors(entry)
      })

    return {
      entryOf,
      findEntry: (agentId) => entries.get(agentId),
      drop: (agentId) => entries.delete(agentId),
      refresh,
      addVectors,
      load,
      loadFully,
      bytes: () => entries.totalCost(bytesOf)
    }
  })
