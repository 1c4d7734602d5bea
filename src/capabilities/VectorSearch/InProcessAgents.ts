/** The agents' indexes: built when first asked for, brought up to date by one fiber at a time, forgotten oldest first. */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"
import type { AgentId } from "../../domain/Ids.ts"
import { generationKey, InProcessIndex } from "./InProcessIndex.ts"
import { Recent } from "./InProcessRecent.ts"
import type { Rows } from "./InProcessRows.ts"

/** An agent with very much to read is given up after this, and read again by the next search. */
const catchUpLimit = Duration.minutes(5)
/** Chunks read by one statement; the process and the database do other things between two. */
const batch = 200

/** An agent's place in memory. `index` is null until it has been read once. */
export interface Held {
  index: InProcessIndex | null
  /** The catching up that is under way, which all searches share. */
  underway: Deferred.Deferred<void> | null
}

/** Dimensions of a profile; 0 when nothing at hand can embed a query for it. */
export type DimensionsOf = (profile: string) => Effect.Effect<number>

/** Lets timers and sockets have their turn, which a yield among fibers does not. */
const otherWork = Effect.async<void>((resume) => {
  const turn = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(turn))
})

const inBatches = <A>(
  ids: ReadonlyArray<string>,
  read: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<A>>,
  each: (row: A) => void
) =>
  Effect.gen(function* () {
    for (let from = 0; from < ids.length; from += batch) {
      for (const row of yield* read(ids.slice(from, from + batch))) each(row)
      yield* otherWork
    }
  })

/**
 * Reads everything newer than `held` and drops what is not live any more; from nothing with `anew`, or when the database
 * is older than the index. May stop at any point and be repeated: until the end the index keeps its old version, by which
 * no search that sees a half of the changes lets its result stand.
 */
const catchUp = (rows: Rows, dimensionsOf: DimensionsOf, agentId: AgentId, held: Held, anew: boolean) =>
  Effect.gen(function* () {
    const old = anew ? null : held.index
    const seen = old?.version ?? 0
    const changes = yield* rows.changes(agentId, seen)
    const { profile } = changes
    if (changes.version < seen || (old !== null && old.profile !== profile)) {
      return yield* catchUpAnew(rows, dimensionsOf, agentId, held)
    }
    const index = old ?? new InProcessIndex(yield* dimensionsOf(profile), profile)
    // First: a chunk that was carried over into a new generation is dropped with the old one and comes anew.
    index.retain(new Set(changes.live.map(([sourceId, generation]) => generationKey(sourceId, generation))))
    const known = changes.vectors.filter((id) => index.has(id))
    const added = changes.chunks.filter((id) => !index.has(id))
    index.expect(added.length)
    yield* inBatches(
      added,
      (ids) => rows.chunks(profile, ids),
      (row) => index.add(row)
    )
    yield* inBatches(
      known,
      (ids) => rows.vectors(profile, ids),
      (row) => index.setVector(row.id, row.embedding)
    )
    index.version = changes.version
    held.index = index
  })

const catchUpAnew = (
  rows: Rows,
  dimensionsOf: DimensionsOf,
  agentId: AgentId,
  held: Held
): Effect.Effect<void> => catchUp(rows, dimensionsOf, agentId, held, true)

export interface Agents {
  /** The agent's place; its index may be behind the database. */
  readonly hold: (agentId: AgentId) => Held
  /** Its place where it has one. */
  readonly held: (agentId: AgentId) => Held | undefined
  readonly forget: (agentId: AgentId) => void
  /** Brings it up to date, or waits for the one who does. The work goes on when the caller is interrupted. */
  readonly refresh: (agentId: AgentId, held: Held, options: { readonly anew: boolean }) => Effect.Effect<void>
}

export const makeAgents = (
  rows: Rows,
  dimensionsOf: DimensionsOf,
  maxBytes: number
): Effect.Effect<Agents, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const all = new Recent<Held>()

    const hold = (agentId: AgentId): Held => {
      const held = all.use(agentId) ?? { index: null, underway: null }
      all.put(agentId, held)
      return held
    }

    const work = (agentId: AgentId, held: Held, anew: boolean) =>
      catchUp(rows, dimensionsOf, agentId, held, anew).pipe(
        Effect.timeoutFail({
          duration: catchUpLimit,
          onTimeout: () => new Error("Reading an agent's chunks took too long.")
        }),
        Effect.orDie,
        Effect.ensuring(
          Effect.sync(() => {
            held.underway = null
            all.fit(maxBytes, ({ index }) => index?.bytes ?? 1_024)
          })
        ),
        Effect.withSpan("VectorSearch.catchUp", { attributes: { agentId } })
      )

    const refresh: Agents["refresh"] = (agentId, held, { anew }) =>
      Effect.uninterruptibleMask((restore) => {
        if (held.underway !== null) return restore(Deferred.await(held.underway))
        const underway = Deferred.unsafeMake<void>(FiberId.none)
        held.underway = underway
        return Effect.interruptible(work(agentId, held, anew)).pipe(
          Effect.intoDeferred(underway),
          Effect.forkIn(scope),
          Effect.zipRight(restore(Deferred.await(underway)))
        )
      })

    return { hold, held: (agentId) => all.use(agentId), forget: (agentId) => all.drop(agentId), refresh }
  })
