/**
 * Drives the move of a tenant. The state of the move is stored in the two installations only, so the command may end at
 * any time and be run again. docs/design/placement.md describes the states.
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

/** The two installations of a move, and the addresses at which callers reach them. */
export interface Installations {
  readonly origin: Side
  readonly destination: Side
  /** Public addresses, which callers are redirected to. */
  readonly originAt: string
  readonly destinationAt: string
  readonly streams: number
  readonly report: (text: string) => Effect.Effect<void>
}

/** Time after a rollback in which the destination still tells callers where the tenant is served. */
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

const randomId = () => randomBytes(24).toString("base64url")

/** Asks both installations for their facts about the tenant. */
export const factsOf = ({ destination, origin }: Installations) =>
  Effect.all({ origin: origin.ask(new Wire.Facts()), destination: destination.ask(new Wire.Facts()) })

const shapeOf = ({ columns, table, types }: Wire.TableShape) => JSON.stringify([table, columns, types])

const checkSameSchema = ({ destination, origin }: InstallationFacts) => {
  if (origin.migrations.join() !== destination.migrations.join())
    return refused(
      `The origin has ${origin.migrations.length} migrations, the destination ${destination.migrations.length}. Upgrade the older one first; nothing was changed.`
    )
  const destinationShapes = new Set(destination.tables.map(shapeOf))
  const missing = origin.tables.find((table) => !destinationShapes.has(shapeOf(table)))
  return missing === undefined && origin.tables.length === destination.tables.length
    ? Effect.void
    : refused(`The table ${missing?.table ?? "list"} is not the same at both sides. Nothing was changed.`)
}

const isSameAddress = (one: string | null, other: string) =>
  one !== null && serverAddress(one) === serverAddress(other)

/**
 * Fails unless these are the two sides of one move. If only one side has the move, the other one has not begun it yet
 * or has ended it already. The addresses are compared, because a third installation has no move either, and would
 * otherwise be ordered to serve a tenant that it does not have.
 */
const checkSameMove = (
  { destinationAt, originAt }: Installations,
  { destination, origin }: InstallationFacts
) => {
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

/** Begins the move at both sides, or takes over a move that another command has begun. */
const beginMove = (
  installations: Installations,
  { destination: destinationFacts, origin: originFacts }: InstallationFacts
) =>
  Effect.gen(function* () {
    const { destination, destinationAt, origin, originAt, streams, report } = installations
    const driver = randomId()
    const move = originFacts.move?.move ?? destinationFacts.move?.move ?? randomId()
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
      report,
      sealKey: Redacted.make(randomId()),
      tables: originFacts.tables.map(({ table }) => table),
      unreadable: (count: number) => {
        unreadable.count += count
      }
    }
    const toDestination: Transfer.Transfer = { ...common, from: origin, to: destination }
    const toOrigin: Transfer.Transfer = { ...common, from: destination, to: origin }
    return { driver, atOrigin, atDestination, toDestination, toOrigin, unreadable }
  })

type MoveState = Effect.Effect.Success<ReturnType<typeof beginMove>>

/** When both sides are `away`, the decision was made, but the side that is to serve was not informed. Informs it. */
const finishDecision = ({ atDestination, atOrigin, toOrigin, driver, toDestination }: MoveState) =>
  Effect.gen(function* () {
    if (atOrigin.state !== "away" || atDestination.state !== "away") return
    // The side with fewer handovers is the one to serve.
    const isToDestination = atOrigin.handovers > atDestination.handovers
    const transfer = isToDestination ? toDestination : toOrigin
    // No side serves the tenant now, so most jobs are carried over afterwards.
    yield* carryJobs(transfer, Duration.zero)
    yield* transfer.to.ask(
      new Wire.Serve({ driver, handovers: (isToDestination ? atOrigin : atDestination).handovers })
    )
  })

/** The side that serves the tenant now. */
const findServingSide = (installations: Installations, current: MoveState) =>
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

/** Checks a new move before anything is changed. A move that has begun is always continued. */
const checkMayBegin = ({ destination, origin }: InstallationFacts) => {
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
    yield* checkMayBegin(facts)
    yield* checkSameSchema(facts)
    yield* checkSameMove(installations, facts)
    const current = yield* beginMove(installations, facts)
    const { driver, toDestination, unreadable } = current
    if ((yield* findServingSide(installations, current)) === "destination") {
      yield* carryOver(toDestination)
      const moved: Moved = { tables: [], pausedMillis: null, unreadable: 0 }
      return moved
    }
    yield* toDestination.from.ask(new Wire.Release({ driver }))
    yield* Transfer.copy(toDestination)
    yield* installations.report("comparing")
    const tables = yield* Transfer.compare(toDestination)
    const pausedMillis = yield* cutOver(toDestination, options)
    yield* carryOver(toDestination)
    const moved: Moved = { tables, pausedMillis, unreadable: unreadable.count }
    return moved
  })

const removeRows = (side: Side, driver: string) =>
  side.ask(new Wire.RemoveSome({ driver })).pipe(Effect.repeat({ until: ({ more }) => !more }), Effect.asVoid)

/** Ends the move at a side, after `carryFirst` has carried over what waits there. */
const forgetMove = (
  side: Side,
  driver: string,
  carryFirst: Effect.Effect<unknown, MoveFailed> = Effect.void
) =>
  Effect.zipRight(carryFirst, side.ask(new Wire.Forget({ driver }))).pipe(
    Effect.repeat({ schedule: Schedule.spaced(jobsInterval), until: ({ changed }) => changed }),
    Effect.asVoid
  )

/** Ends a move that was cut over: the tenant is removed from the origin. */
export const confirm = (installations: Installations) =>
  Effect.gen(function* () {
    const { destination, origin } = installations
    const facts = yield* factsOf(installations)
    yield* checkSameMove(installations, facts)
    if (facts.destination.move === null)
      return yield* refused("The destination has no move of this tenant to confirm.")
    if (facts.origin.move === null && facts.origin.name === null) {
      // The origin has ended the move, and an earlier command ended after that.
      const driver = randomId()
      const { move: id } = facts.destination.move
      yield* destination.ask(
        new Wire.Begin({ driver, move: id, role: "destination", servedAt: installations.originAt })
      )
      return yield* forgetMove(destination, driver)
    }
    const current = yield* beginMove(installations, facts)
    if ((yield* findServingSide(installations, current)) === "origin")
      return yield* refused("The tenant has not been cut over: run the command without --confirm first.")
    const { driver, toDestination } = current
    yield* carryOver(toDestination)
    yield* removeRows(origin, driver)
    yield* forgetMove(origin, driver, carryJobs(toDestination))
    return yield* forgetMove(destination, driver)
  })

/** Undoes a move: the origin serves the tenant, with what has happened at the destination meanwhile. */
export const rollback = (installations: Installations, options: CutOverOptions) =>
  Effect.gen(function* () {
    const { destination, origin } = installations
    const facts = yield* factsOf(installations)
    yield* checkSameMove(installations, facts)
    if (facts.origin.move === null && facts.destination.move === null)
      return yield* refused("The tenant has no move to undo.")
    if (facts.origin.move === null && facts.origin.name === null)
      return yield* refused("The tenant was removed from the origin: move it back instead.")
    const current = yield* beginMove(installations, facts)
    const { toOrigin, driver, toDestination } = current
    let pausedMillis: number | null = null
    if ((yield* findServingSide(installations, current)) === "destination") {
      yield* toOrigin.from.ask(new Wire.Release({ driver }))
      yield* carryOver(toDestination)
      yield* Transfer.copyOriginals(toOrigin)
      yield* Transfer.catchUp(toOrigin)
      yield* installations.report("comparing")
      yield* Transfer.compare(toOrigin)
      pausedMillis = yield* cutOver(toOrigin, options)
    } else yield* origin.ask(new Wire.Release({ driver }))
    const wasAway = pausedMillis !== null || current.atDestination.handovers > 0
    if (wasAway) {
      yield* carryOver(toOrigin)
      // Meanwhile the requests that wait at the destination are redirected, and the origin's processes read that they
      // serve the tenant again. An earlier command may have ended before this.
      yield* Effect.sleep(redirectTime)
    }
    yield* removeRows(destination, driver)
    yield* forgetMove(destination, driver, carryJobs(toOrigin))
    yield* forgetMove(origin, driver)
    return { pausedMillis }
  })
