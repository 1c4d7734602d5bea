/**
 * A move whose command, origin or destination is ended (-9) at one of its steps, and is then run again: there and back,
 * while turns go on. By default the steps of the hand-over are cut, each with one victim. `npm run test:moves` cuts every step
 * with every victim: 30 kills, 22 minutes on two busy cores, all completed.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as MoveTenant from "../../../src/app/moves/MoveTenant.ts"
import { overHttp, type Side } from "../../../src/app/moves/Side.ts"
import { MoveRequest } from "../../../src/domain/accounts/TenantMove.ts"
import { TenantId } from "../../../src/domain/Ids.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { makeTenant, makeWorld, type World } from "../routes/RouteWorld.ts"
import { removeFolder, type Spoke, temporaryFolder } from "../Spoke.ts"
import { embedded, onServer, query, rowsOf, serve, type Variables } from "./Installation.ts"
import { nothingLost, rowCount, startTraffic, lostOrDoubled } from "./Traffic.ts"
import { freePort } from "../../servers/FreePort.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

type Victim = "command" | "destination" | "origin"

/** Where a move is cut: before or behind the request of this number with this tag. */
interface Cut {
  readonly tag: MoveRequest["_tag"]
  readonly nth: number
  readonly when: "after" | "before"
}

const cuts: ReadonlyArray<Cut> = [
  { tag: "Begin", nth: 2, when: "before" },
  { tag: "WritePage", nth: 9, when: "after" },
  { tag: "WriteChanges", nth: 1, when: "after" },
  { tag: "Sample", nth: 5, when: "after" },
  { tag: "Hold", nth: 2, when: "after" },
  { tag: "Fence", nth: 1, when: "after" },
  { tag: "HandOver", nth: 1, when: "before" },
  { tag: "HandOver", nth: 1, when: "after" },
  { tag: "Serve", nth: 1, when: "after" },
  { tag: "RemoveSome", nth: 1, when: "after" }
]
const victims: ReadonlyArray<Victim> = ["command", "origin", "destination"]
const every = cuts.flatMap((cut) => victims.map((victim) => ({ cut, victim })))
const handOver: ReadonlySet<string> = new Set(["WriteChanges", "Fence", "HandOver", "Serve"])
/** The steps of the hand-over once each, with alternating victims. */
const some = every.filter(
  ({ cut }, place) => handOver.has(cut.tag) && place % 3 === Math.floor(place / 3) % 3
)
const chosen = process.env["SPOKE_PLACEMENT_KILLS"] === "all" ? every : some
/** Who is ended on the way back. The command behind its decision, which nobody knows of then but the two sides. */
const backVictim = ({ tag, when }: Cut, number: number): Victim =>
  tag === "HandOver" && when === "after" ? "command" : (victims[(number + 1) % victims.length] ?? "command")

const isRequest = Schema.is(MoveRequest)
const tagOf = (request: unknown) => (isRequest(request) ? request._tag : null)

describe.skipIf(skipped)("A move that is cut", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  const places: Partial<Record<"destination" | "origin", { spoke: Spoke; readonly variables: Variables }>> =
    {}
  let mine: World

  const place = (role: "destination" | "origin") => {
    const found = places[role]
    if (found === undefined) throw new Error(`There is no ${role}.`)
    return found
  }

  const open = async (role: "destination" | "origin", variables: Variables) => {
    places[role] = { spoke: await serve(variables), variables }
  }

  const restart = async (role: "destination" | "origin") => {
    const { spoke, variables } = place(role)
    await spoke.kill()
    await open(role, variables)
  }

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const model = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    const at = async () => ({ ...model, PORT: String(await freePort()) })
    await open("origin", embedded(folder, "origin", await at()))
    await open("destination", await onServer(folder, "destination", await at()))
    const { spoke } = place("origin")
    mine = await makeWorld(spoke, await makeTenant(spoke, "mine"), "walnut")
    await spoke.stop()
  }, 180_000)

  afterAll(async () => {
    await Promise.all(Object.values(places).map(({ spoke }) => spoke.kill()))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  /** Sides whose requests are told to `around`. */
  const sides = (around: (side: Side) => Side) =>
    Effect.gen(function* () {
      const id = TenantId.make(mine.tenantId)
      const token = Redacted.make("operator")
      const [origin, destination] = [place("origin").spoke.url, place("destination").spoke.url]
      const both: MoveTenant.Installations = {
        origin: around(yield* overHttp("origin", id, origin, token)),
        destination: around(yield* overHttp("destination", id, destination, token)),
        originAt: origin,
        destinationAt: destination,
        streams: 2,
        report: () => Effect.void
      }
      return both
    })

  const options = { keepTurns: false, maxPause: Duration.seconds(10) }

  const whole = (back: boolean, around: (side: Side) => Side = (side) => side) =>
    Effect.gen(function* () {
      const both = yield* sides(around)
      return yield* back
        ? Effect.asVoid(MoveTenant.rollback(both, options))
        : Effect.asVoid(MoveTenant.move(both, options))
    }).pipe(Effect.provide(FetchHttpClient.layer))

  /** Runs a move up to the cut, where the victim is ended; then again, to its end. */
  const cutAt = async ({ nth, tag, when }: Cut, victim: Victim, back: boolean) => {
    const reached = await Effect.runPromise(Deferred.make<void>())
    let count = 0
    let isDead = false
    const strike =
      victim === "command"
        ? Effect.suspend(() => {
            isDead = true
            return Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)
          })
        : Effect.zipLeft(
            Effect.promise(() => restart(victim)),
            Deferred.succeed(reached, undefined)
          )
    const around = (side: Side): Side => ({
      ...side,
      ask: (request) => {
        // A command that is killed tells nobody.
        if (isDead) return Effect.never
        const isHere = tagOf(request) === tag && ++count === nth
        if (!isHere) return side.ask(request)
        return when === "before"
          ? Effect.zipRight(strike, side.ask(request))
          : Effect.zipLeft(side.ask(request), strike)
      }
    })
    const first = Effect.runFork(whole(back, around))
    let isComplete = false
    if (victim === "command") {
      await Effect.runPromise(Effect.raceFirst(Deferred.await(reached), Fiber.await(first)))
      await Effect.runPromise(Fiber.interrupt(first))
    } else {
      // The command waits for a server that is started again.
      isComplete = Exit.isSuccess(await Effect.runPromise(Fiber.await(first)))
    }
    const over = await Effect.runPromise(Deferred.isDone(reached))
    // There is nothing left to undo then.
    if (!(back && isComplete)) await Effect.runPromise(whole(back))
    return over
  }

  /** Turns of the tenant at the origin while `work` is done; then what must hold of them, and that nothing is left. */
  const during = async (name: string, mayFail: boolean, work: () => Promise<void>) => {
    const { variables } = place("origin")
    await open("origin", variables)
    const turns = startTraffic({
      key: mine.key,
      name,
      url: place("origin").spoke.url,
      everyMillis: 150,
      retries: true
    })
    await work()
    const asked = await turns.stop()
    await place("origin").spoke.stop()
    const given = asked
      .filter(({ acknowledged }) => !acknowledged)
      .map(({ refusals }) => refusals.at(-1) ?? "")
    // Turns that a killed process ran have failed, and say so under their key.
    expect(given.filter((refusal) => !mayFail || !refusal.startsWith("500"))).toEqual([])
    expect(asked.filter(({ acknowledged }) => acknowledged).length).toBeGreaterThan(5)
    expect(await lostOrDoubled(variables, mine.tenantId, asked)).toEqual(nothingLost)
    expect(await query(variables, "select * from tenant_moves")).toEqual([])
    expect(rowCount(await rowsOf(place("destination").variables, mine.tenantId))).toBe(0)
  }

  it.each(
    chosen.map(({ cut, victim }, number) => ({
      cut,
      victim,
      other: backVictim(cut, number),
      name: `${victim} ${cut.when} ${cut.tag} ${cut.nth}`
    }))
  )(
    "is completed by running it again, and no acknowledged turn is lost or doubled: $name",
    ({ cut, name, other, victim }) =>
      during(name.replaceAll(" ", "-"), true, async () => {
        // Rows are removed on the way back alone.
        const goesBack = cut.tag === "RemoveSome"
        if (goesBack) await Effect.runPromise(whole(false))
        else expect(await cutAt(cut, victim, false)).toBe(true)
        const isThere = !["Begin", "WritePage", "WriteChanges"].includes(cut.tag)
        if (isThere) expect(await cutAt(cut, goesBack ? victim : other, true)).toBe(true)
        else await Effect.runPromise(whole(true))
      }),
    600_000
  )

  it(
    "is the same when every request arrives twice",
    () =>
      during("again", false, async () => {
        // The answer to a decision is not the same twice; the state that follows it is.
        const twice = (side: Side): Side => ({
          ...side,
          ask: (request) => Effect.zipRight(side.ask(request), side.ask(request))
        })
        await Effect.runPromise(whole(false, twice))
        await Effect.runPromise(whole(true, twice))
      }),
    600_000
  )
})
