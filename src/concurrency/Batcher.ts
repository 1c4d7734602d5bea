/**
 * Batches requests of the same kind. A request that arrives while no batch runs starts one at once. Requests that
 * arrive while a batch runs are sent together at the end of the current iteration of the event loop, so that batching
 * adds no delay. Effect's `RequestResolver.dataLoader` would delay every request by its window, also a single one.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as Scope from "effect/Scope"
import { yieldToEventLoop } from "./YieldToEventLoop.ts"

interface Waiter<A, B, E> {
  readonly item: A
  readonly answer: Deferred.Deferred<B, E>
}

/** The requests of one iteration of the event loop. */
interface Group<A, B, E> {
  readonly waiters: Set<Waiter<A, B, E>>
  serving: Fiber.Fiber<void> | null
}

/** The result of one request of the batch. */
const resultOf = <B, E>(exit: Exit.Exit<ReadonlyArray<B>, E>, place: number): Exit.Exit<B, E> =>
  Exit.flatMap(exit, (all) => {
    const result = all[place]
    return result === undefined
      ? Exit.die(new Error("The batch has no answer for one of its requests."))
      : Exit.succeed(result)
  })

/**
 * Calls `run` with up to `maxBatchSize` items. `run` returns one result per item, in order, or fails for all of them. A
 * batch is interrupted when all of its callers are interrupted, or when the scope closes.
 */
export const makeBatcher = <A, B, E>(
  maxBatchSize: number,
  run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E>
): Effect.Effect<(item: A) => Effect.Effect<B, E>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let runningCount = 0
    let open: Group<A, B, E> | null = null

    const countRunning = <R, E2>(self: Effect.Effect<R, E2>) =>
      Effect.suspend(() => {
        runningCount += 1
        return Effect.ensuring(
          self,
          Effect.sync(() => {
            runningCount -= 1
          })
        )
      })

    const serve = (group: Group<A, B, E>) =>
      Effect.suspend(() => {
        if (open === group) open = null
        const waiters = [...group.waiters]
        return Effect.onExit(run(waiters.map(({ item }) => item)), (exit) =>
          Effect.sync(() => {
            for (const [place, { answer }] of waiters.entries())
              Deferred.unsafeDone(answer, resultOf(exit, place))
          })
        )
      })

    const begin = (group: Group<A, B, E>) =>
      Effect.zipRight(yieldToEventLoop, serve(group)).pipe(
        countRunning,
        Effect.exit,
        Effect.asVoid,
        Effect.interruptible,
        Effect.forkIn(scope),
        Effect.map((fiber) => {
          group.serving = fiber
        })
      )

    const leave = (group: Group<A, B, E>, waiter: Waiter<A, B, E>) =>
      Effect.suspend(() => {
        group.waiters.delete(waiter)
        if (group.waiters.size > 0 || group.serving === null) return Effect.void
        if (open === group) open = null
        return Fiber.interruptFork(group.serving)
      })

    const join = (item: A): Effect.Effect<B, E> =>
      Effect.uninterruptibleMask((restore) => {
        const first = open === null || open.waiters.size >= maxBatchSize
        const group: Group<A, B, E> = open === null || first ? { waiters: new Set(), serving: null } : open
        const waiter = { item, answer: Deferred.unsafeMake<B, E>(FiberId.none) }
        group.waiters.add(waiter)
        open = group
        const begun = first ? begin(group) : Effect.void
        const answered = Effect.onInterrupt(restore(Deferred.await(waiter.answer)), () =>
          leave(group, waiter)
        )
        return Effect.zipRight(begun, answered)
      })

    const runAlone = (item: A): Effect.Effect<B, E> =>
      Effect.flatMap(Effect.exit(run([item])), (exit) => resultOf(exit, 0))

    return (item) => Effect.suspend(() => (runningCount === 0 ? countRunning(runAlone(item)) : join(item)))
  })
