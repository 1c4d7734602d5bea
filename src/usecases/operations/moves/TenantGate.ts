/**
 * Admits requests and jobs of tenants that are served here. They wait while a move pauses the tenant. Callers of a
 * tenant that is served elsewhere get its address. Each process holds the moves of its installation in memory, and is
 * notified of changes.
 *
 * The database itself refuses writes of a tenant that is not served here, so a process that is notified late loses
 * nothing.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { workFor } from "../../../concurrency/CurrentOwner.ts"
import { forEveryTenant } from "../../../concurrency/TenantSession.ts"
import type { Move } from "../../../domain/accounts/TenantMove.ts"
import { ServiceUnavailable } from "../../../domain/Errors.ts"
import type { TenantId } from "../../../domain/Ids.ts"
import { MoveStore } from "../../../store/moves/Moves.ts"
import { pollInterval, TenantMoves } from "./TenantMoves.ts"

/** How long a request waits for the end of a pause. Pauses are shorter. */
const maxWait = Duration.seconds(5)
/** How late the end of a hold may be noticed. */
const heldPollInterval = Duration.millis(100)
/** For callers of a tenant that is served elsewhere. They need the other address first. */
const retryAfterSeconds = 60

type Moves = ReadonlyMap<TenantId, Move>

export const tenantPaused = new ServiceUnavailable({
  message: "This account is being moved. Try again in a moment.",
  details: { retryAfterSeconds: 2 }
})

/** For callers of a tenant that arrives here. It may be served at any moment. */
const arrivingRetryAfterSeconds = 1

const notServedHere = (message: string, servedAt: string | null, seconds = retryAfterSeconds) =>
  new ServiceUnavailable({
    message,
    details: { retryAfterSeconds: seconds, ...(servedAt === null ? {} : { servedAt }) }
  })

const refusalFor = ({ handovers, role, servedAt }: Move) => {
  if (servedAt === null) return notServedHere("This account is being imported. Try again later.", null)
  return role === "destination" && handovers === 0
    ? notServedHere(
        `This account is being moved here, and is served at ${servedAt} until then.`,
        servedAt,
        arrivingRetryAfterSeconds
      )
    : notServedHere(`This account is served at ${servedAt} now.`, servedAt)
}

const isHeld = ({ state }: Move) => state !== "serving" && state !== "away"
const isPausing = (move: Move | undefined) => move?.state === "pausing" || move?.state === "fenced"

export class TenantGate extends Effect.Service<TenantGate>()("usecases/operations/TenantGate", {
  dependencies: [MoveStore.Default],
  scoped: Effect.gen(function* () {
    const store = yield* MoveStore
    const moves = yield* TenantMoves
    const movesRef = yield* SubscriptionRef.make<Moves>(new Map())
    // Read with every request.
    let current: Moves = new Map()
    // One read at a time, so that an earlier one never replaces a later one.
    const oneAtATime = yield* Effect.makeSemaphore(1)

    const readMoves = Effect.gen(function* () {
      const found = yield* store.all
      if (found.length === 0 && current.size === 0) return
      current = new Map(found.map((move) => [move.tenantId, move]))
      yield* SubscriptionRef.set(movesRef, current)
    })

    const refresh = readMoves.pipe(
      Effect.zipRight(Effect.suspend(() => (current.size === 0 ? Effect.void : moves.releaseExpired))),
      forEveryTenant("operator"),
      oneAtATime.withPermits(1),
      Effect.catchAllCause((cause) => Effect.logWarning("Moves of tenants could not be read", cause))
    )
    yield* refresh
    const pause = Effect.suspend(() =>
      Effect.sleep([...current.values()].some(isHeld) ? heldPollInterval : pollInterval)
    )
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(pause, refresh)))
    yield* store.changed.pipe(
      Stream.runForEach(() => refresh),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.forkScoped
    )

    const awaitEndOfPause = (tenantId: TenantId) =>
      Effect.gen(function* () {
        const settled = Stream.runHead(
          Stream.filter(movesRef.changes, (all) => !isPausing(all.get(tenantId)))
        )
        yield* Effect.ignore(Effect.timeout(settled, maxWait))
        const move = current.get(tenantId)
        if (isPausing(move)) return yield* tenantPaused
        if (move?.state === "away") return yield* refusalFor(move)
      })

    /** From here on the fiber works for the tenant. Fails when it is not served here. */
    const enter = (tenantId: TenantId): Effect.Effect<void, ServiceUnavailable> => {
      const move = current.get(tenantId)
      const useTenant = workFor(tenantId)
      return move === undefined || move.state === "serving" || move.state === "draining"
        ? useTenant
        : Effect.zipRight(useTenant, awaitEndOfPause(tenantId))
    }

    /** Returns when the tenant is served elsewhere. */
    const whenAway = (tenantId: TenantId) =>
      Stream.runDrain(Stream.takeUntil(movesRef.changes, (all) => all.get(tenantId)?.state === "away"))

    /** `refresh` reads the moves at once, for a process that has changed one. */
    return { enter, whenAway, refresh } as const
  })
}) {}
