/**
 * Drives the move of a tenant. Nothing but the two installations knows how far it is, so the command may end at any time
 * and be run again. docs/design/placement.md has the states.
 */
import { randomBytes } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import * as Wire from "../../domain/accounts/TenantMove.ts"
import { serverAddress } from "../../domain/Address.ts"
import { cutOver, type CutOverOptions } from "./CutOver.ts"
import { MoveFailed, type Side } from "./Side.ts"
import { carryJobs } from "./Transfer.ts"
import * as Transfer from "./Transfer.ts"

/** The two installations, and what callers are told of them. */
export interface Installations {
  readonly origin: Side
  readonly destination: Side
  /** Addresses for callers. */
  readonly originAt: string
  readonly destinationAt: string
  readonly streams: number
  readonly tell: (text: string) => Effect.Effect<void>
}

/** Time after a rollback in which the destination still answers where the tenant is served. */
const redirectTime = Duration.seconds(5)
/** How often a side is asked whether its last jobs have ended. */
const jobsInterval = Duration.millis(200)

type Facts = Schema.WithResult.Success<Wire.Facts>

/** The facts of both installations. */
export interface InstallationFacts {
  readonly origin: Facts
  readonly destination: Facts
}

const refused = (message: string) => new MoveFailed({ reason: "refused", message })

const random = () => randomBytes(24).toString("base64url")

/** Asks both installations for their facts about the tenant. */
export const factsOf = ({ destination, origin }: Installations) =>
  Effect.all({ origin: origin.ask(new Wire.Facts()), destination: destination.ask(new Wire.Facts()) })

const shapeOf = ({ columns, table, types }: Wire.TableShape) => JSON.stringify([table, columns, types])

const sameSchema = ({ destination, origin }: InstallationFacts) => {
  if (origin.migrations.join() !== destination.migrations.join())
    return refused(
      `The origin has ${origin.migrations.length} migrations, the destination ${destination.migrations.length}. Upgrade the older one first; nothing was changed.`
    )
  const there = new Set(destination.tables.map(shapeOf))
  const missing = origin.tables.find((table) => !there.has(shapeOf(table)))
  return missing === undefined && origin.tables.length === destination.tables.length
    ? Effect.void
    : refused(`The table ${missing?.table ?? "list"} is not the same at both sides. Nothing was changed.`)
}

const isSameAddress = (one: string | null, other: string) =>
  one !== null && serverAddress(one) === serverAddress(other)

/**
 * Fails unless these are the two sides of one move. Of a move that one side has alone, the other side either has not
 * heard yet or has forgotten it already. A third installation knows nothing of it, too, and would serve a tenant that
 * it does not have.
 */
const sameMove = ({ destinationAt, originAt }: Installations, { destination, origin }: InstallationFacts) => {
  if (origin.move !== null && destination.move !== null)
    return origin.move.move === destination.move.move
      ? Effect.void
      : refused("The tenant has different moves at the two sides. End each with its own other side first.")
  if (origin.move !== null && !isSameAddress(origin.move.servedAt, destinationAt))
    return refused(
      `The move of the tenant was begun with ${origin.move.servedAt}, not with ${destinationAt}. Give that address, or end the move first. Nothing was changed.`
    )
  if (origin.move?.state === "away")
    return refused(
      `The tenant was cut over to ${destinationAt}, which has no move of it any more. Nothing was changed.`
    )
  if (destination.move !== null && !isSameAddress(destination.move.servedAt, originAt))
    return refused(
      `The move of the tenant was begun from ${destination.move.servedAt ?? "an archive"}, not from ${originAt}. Give that address, or end the move first. Nothing was changed.`
    )
  return Effect.void
}

/** Begins the move at both sides, or takes over its driving. `forth` and `back`: the two directions. */
const beginMove = (installations: Installations, { destination: there, origin: here }: InstallationFacts) =>
  Effect.gen(function* () {
    const { destination, destinationAt, origin, originAt, streams, tell } = installations
    const driver = random()
    const move = here.move?.move ?? there.move?.move ?? random()
    const atOrigin = yield* origin.ask(
      new Wire.Begin({ driver, move, role: "origin", servedAt: destinationAt })
    )
    const atDestination = yield* destination.ask(
      new Wire.Begin({ driver, move, role: "destination", servedAt: originAt })
    )
    const unreadable = { count: 0 }
    const common = {
      driver,
      streams,
      tell,
      sealKey: Redacted.make(random()),
      tables: here.tables.map(({ table }) => table),
      unreadable: (count: number) => {
        unreadable.count += count
      }
    }
    const forth: Transfer.Transfer = { ...common, from: origin, to: destination }
    const back: Transfer.Transfer = { ...common, from: destination, to: origin }
    return { driver, atOrigin, atDestination, forth, back, unreadable }
  })

type MoveState = Effect.Effect.Success<ReturnType<typeof beginMove>>

/** Both sides are away: the decision was made, and the other side has not heard of it. */
const finishDecision = ({ atDestination, atOrigin, back, driver, forth }: MoveState) =>
  Effect.gen(function* () {
    if (atOrigin.state !== "away" || atDestination.state !== "away") return
    // The side with fewer changes of sides is the one to serve.
    const isForth = atOrigin.handovers > atDestination.handovers
    const transfer = isForth ? forth : back
    // Nobody serves the tenant now, so the rest is carried over afterwards.
    yield* carryJobs(transfer, Duration.zero)
    yield* transfer.to.ask(
      new Wire.Serve({ driver, handovers: (isForth ? atOrigin : atDestination).handovers })
    )
  })

/** Who serves the tenant now. */
const serving = (installations: Installations, current: MoveState) =>
  Effect.gen(function* () {
    yield* finishDecision(current)
    const { destination, origin } = yield* factsOf(installations)
    if (origin.move !== null && origin.move.state !== "away") return "origin" as const
    if (destination.move !== null && destination.move.state !== "away") return "destination" as const
    return yield* refused("Neither side serves the tenant. Run the command again.")
  })

export interface Moved {
  readonly tables: ReadonlyArray<Transfer.TableComparison>
  /** How long requests of the tenant waited at most; null when it was cut over before. */
  readonly pausedMillis: number | null
  /** Secrets that could not be opened at the origin, and have to be entered again. */
  readonly unreadable: number
}

/** Carries over jobs and events that arrived at the side that no longer serves the tenant. */
const carryOver = (transfer: Transfer.Transfer) =>
  Effect.zipRight(carryJobs(transfer), Transfer.copyEvents(transfer))

/** Before anything is changed. A move that has begun is continued, whatever it finds. */
const mayBegin = ({ destination, origin }: InstallationFacts) => {
  if (origin.move !== null) return Effect.void
  if (destination.move !== null && origin.name === null)
    return refused("The tenant was removed from the origin already. End the move with --confirm.")
  if (origin.name === null) return refused("The origin has no such tenant.")
  return destination.name !== null && destination.move === null
    ? refused("The destination has a tenant with this id already.")
    : Effect.void
}

/** Moves the tenant to the destination. Nothing is lost when it is run again. */
export const move = (installations: Installations, options: CutOverOptions) =>
  Effect.gen(function* () {
    const facts = yield* factsOf(installations)
    yield* mayBegin(facts)
    yield* sameSchema(facts)
    yield* sameMove(installations, facts)
    const current = yield* beginMove(installations, facts)
    const { driver, forth, unreadable } = current
    if ((yield* serving(installations, current)) === "destination") {
      yield* carryOver(forth)
      const moved: Moved = { tables: [], pausedMillis: null, unreadable: 0 }
      return moved
    }
    yield* forth.from.ask(new Wire.Release({ driver }))
    yield* Transfer.copy(forth)
    yield* installations.tell("comparing")
    const tables = yield* Transfer.compare(forth)
    const pausedMillis = yield* cutOver(forth, options)
    yield* carryOver(forth)
    const moved: Moved = { tables, pausedMillis, unreadable: unreadable.count }
    return moved
  })

const removeAll = (side: Side, driver: string) =>
  side.ask(new Wire.RemoveSome({ driver })).pipe(Effect.repeat({ until: ({ more }) => !more }), Effect.asVoid)

/** Ends the move at a side, after `carried` has brought over what waits there. */
const forgotten = (side: Side, driver: string, carried: Effect.Effect<unknown, MoveFailed> = Effect.void) =>
  Effect.zipRight(carried, side.ask(new Wire.Forget({ driver }))).pipe(
    Effect.repeat({ schedule: Schedule.spaced(jobsInterval), until: ({ changed }) => changed }),
    Effect.asVoid
  )

/** Ends a move that was cut over: the tenant is removed from the origin. */
export const confirm = (installations: Installations) =>
  Effect.gen(function* () {
    const { destination, origin } = installations
    const facts = yield* factsOf(installations)
    yield* sameMove(installations, facts)
    if (facts.destination.move === null)
      return yield* refused("The destination has no move of this tenant to confirm.")
    if (facts.origin.move === null && facts.origin.name === null) {
      // The origin has forgotten it, and the command ended then.
      const driver = random()
      const { move: id } = facts.destination.move
      yield* destination.ask(
        new Wire.Begin({ driver, move: id, role: "destination", servedAt: installations.originAt })
      )
      return yield* forgotten(destination, driver)
    }
    const current = yield* beginMove(installations, facts)
    if ((yield* serving(installations, current)) === "origin")
      return yield* refused("The tenant has not been cut over: run the command without --confirm first.")
    const { driver, forth } = current
    yield* carryOver(forth)
    yield* removeAll(origin, driver)
    yield* forgotten(origin, driver, carryJobs(forth))
    return yield* forgotten(destination, driver)
  })

/** Undoes a move: the origin serves the tenant, with what has happened at the destination meanwhile. */
export const rollback = (installations: Installations, options: CutOverOptions) =>
  Effect.gen(function* () {
    const { destination, origin } = installations
    const facts = yield* factsOf(installations)
    yield* sameMove(installations, facts)
    if (facts.origin.move === null && facts.destination.move === null)
      return yield* refused("The tenant has no move to undo.")
    if (facts.origin.move === null && facts.origin.name === null)
      return yield* refused("The tenant was removed from the origin: move it back instead.")
    const current = yield* beginMove(installations, facts)
    const { back, driver, forth } = current
    let pausedMillis: number | null = null
    if ((yield* serving(installations, current)) === "destination") {
      yield* back.from.ask(new Wire.Release({ driver }))
      yield* carryOver(forth)
      yield* Transfer.copyOriginals(back)
      yield* Transfer.catchUp(back)
      yield* installations.tell("comparing")
      yield* Transfer.compare(back)
      pausedMillis = yield* cutOver(back, options)
    } else yield* origin.ask(new Wire.Release({ driver }))
    const wasAway = pausedMillis !== null || current.atDestination.handovers > 0
    if (wasAway) {
      yield* carryOver(back)
      // Requests that wait there are told, too, and the origin's processes read that they serve the tenant again. An
      // earlier command may have ended before this.
      yield* Effect.sleep(redirectTime)
    }
    yield* removeAll(destination, driver)
    yield* forgotten(destination, driver, carryJobs(back))
    yield* forgotten(origin, driver)
    return { pausedMillis }
  })
