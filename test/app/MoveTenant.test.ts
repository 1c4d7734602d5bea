/** A move of a tenant with an installation that is not one of its two sides. */
import { expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { describe } from "vitest"
import * as MoveTenant from "../../src/app/moves/MoveTenant.ts"
import { MoveFailed, type Side } from "../../src/app/moves/Side.ts"
import { type Move, MoveRequest } from "../../src/domain/accounts/TenantMove.ts"
import { TenantId } from "../../src/domain/Ids.ts"

const tenantId = TenantId.make("ten_1")
const [here, there, other] = ["https://us.example.com", "https://eu.example.com", "https://au.example.com"]

const moveOf = (move: Partial<Move>): Move => ({
  tenantId,
  move: "one",
  role: "origin",
  state: "serving",
  handovers: 0,
  servedAt: there,
  accounts: [],
  ...move
})
/** After the change of sides. */
const away = moveOf({ state: "away", handovers: 1 })
const arrived = moveOf({ role: "destination", state: "serving", handovers: 1, servedAt: here })

const isRequest = Schema.is(MoveRequest)

/** A side that tells its facts, and refuses anything that would change them. */
const sideOf = (name: string, move: Move | null, tenant: string | null, asked: Array<string>): Side => ({
  name,
  ask: (request) => {
    const tag = isRequest(request) ? request._tag : ""
    if (tag === "Facts")
      return Effect.orDie(
        Schema.validate(Schema.successSchema(request))({ migrations: [], tables: [], name: tenant, move })
      )
    asked.push(tag)
    return new MoveFailed({ reason: "taken", message: `${tag} was asked.` })
  },
  original: () => Effect.die("nothing is copied"),
  putOriginal: () => Effect.die("nothing is copied")
})

interface Given {
  readonly origin: Move | null
  readonly destination: Move | null
  readonly originAt?: string
  readonly destinationAt?: string
}

const commands = {
  move: MoveTenant.move,
  confirm: MoveTenant.confirm,
  rollback: MoveTenant.rollback
}

const outcome = (
  name: keyof typeof commands,
  { destination, destinationAt = there, origin, originAt = here }: Given
) =>
  Effect.gen(function* () {
    const asked: Array<string> = []
    const both: MoveTenant.Installations = {
      origin: sideOf("origin", origin, origin === null ? null : "Ada", asked),
      destination: sideOf("destination", destination, destination === null ? null : "Ada", asked),
      originAt,
      destinationAt,
      streams: 1,
      report: () => Effect.void
    }
    const options = { keepTurns: false, maxPause: Duration.seconds(1) }
    const failed: MoveFailed = yield* Effect.flip(Effect.asVoid(commands[name](both, options)))
    return { asked, message: failed.message }
  })

describe("A move is not continued", () => {
  it.effect.each(["move", "confirm", "rollback"] as const)(
    "by %s with another destination: a third installation would serve a tenant that it does not have",
    (name) =>
      Effect.gen(function* () {
        for (const origin of [away, moveOf({})]) {
          const { asked, message } = yield* outcome(name, { origin, destination: null, destinationAt: other })
          expect(asked).toEqual([])
          expect(message).toContain(`was begun with ${there}, not with ${other}`)
        }
      })
  )

  it.effect("with a destination that has lost its half, where it serves the tenant", () =>
    Effect.gen(function* () {
      const { asked, message } = yield* outcome("move", { origin: away, destination: null })
      expect(asked).toEqual([])
      expect(message).toContain(`was cut over to ${there}, which has no move of it any more`)
    })
  )

  it.effect("by confirm from another origin: the real one would keep its rows for ever", () =>
    Effect.gen(function* () {
      const { asked, message } = yield* outcome("confirm", {
        origin: null,
        destination: arrived,
        originAt: other
      })
      expect(asked).toEqual([])
      expect(message).toContain(`was begun from ${here}, not from ${other}`)
    })
  )
})

it.effect("A move is continued where only one side has heard of it, or still has it", () =>
  Effect.gen(function* () {
    const begun = moveOf({ servedAt: `${there}/` })
    expect((yield* outcome("move", { origin: begun, destination: null })).asked).toEqual(["Begin"])
    expect((yield* outcome("confirm", { origin: null, destination: arrived })).asked).toEqual(["Begin"])
  })
)
