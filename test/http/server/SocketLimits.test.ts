import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { makeSocketLimits, type SocketOwner } from "../../../src/http/realtime/SocketLimits.ts"

/** Sockets of owners, and which of them have been told to close. */
const opened = (sockets: number, perConversation: number) => {
  const acquireSlot = makeSocketLimits(sockets, perConversation)
  const closed: Array<string> = []
  /** False when there is no place. */
  const open = (name: string, owner: SocketOwner) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const slot = yield* Effect.exit(Scope.extend(acquireSlot(owner), scope))
      if (Exit.isFailure(slot)) return false
      yield* Effect.forkDaemon(Effect.map(slot.value, () => closed.push(name)))
      return true
    })
  return { closed, open }
}

const visitor = (tenantId: string, network: string, conversationId: string): SocketOwner => ({
  tenantId,
  network,
  conversationId
})

it.effect("One visitor's token opens a few sockets, and no more", () =>
  Effect.gen(function* () {
    const { open } = opened(100, 3)
    const one = visitor("ten_1", "192.0.2.1", "cnv_1")
    const answers = yield* Effect.forEach([1, 2, 3, 4, 5], () => open("one", one))
    expect(answers).toEqual([true, true, true, false, false])
    expect(yield* open("other", visitor("ten_1", "192.0.2.1", "cnv_2"))).toBe(true)
  })
)

it.effect("A visitor with many sockets is evicted for other visitors, also of the same tenant", () =>
  Effect.gen(function* () {
    const { closed, open } = opened(10, 3)
    for (let slot = 0; slot < 10; slot++)
      expect(yield* open(`h${slot}`, visitor("ten_1", "192.0.2.1", `cnv_${slot}`))).toBe(true)
    expect(yield* open("h10", visitor("ten_1", "192.0.2.1", "cnv_10"))).toBe(false)
    expect(yield* open("same tenant", visitor("ten_1", "192.0.2.2", "cnv_20"))).toBe(true)
    expect(yield* open("other tenant", visitor("ten_2", "192.0.2.3", "cnv_30"))).toBe(true)
    yield* Effect.yieldNow()
    expect(closed).toEqual(["h0", "h1"])
  })
)

it.effect("A tenant whose visitors have all sockets is evicted for another tenant", () =>
  Effect.gen(function* () {
    const { closed, open } = opened(10, 3)
    for (let slot = 0; slot < 10; slot++)
      expect(yield* open(`v${slot}`, visitor("ten_1", `192.0.2.${slot}`, `cnv_${slot}`))).toBe(true)
    for (let slot = 0; slot < 5; slot++)
      expect(yield* open(`o${slot}`, visitor("ten_2", "203.0.113.1", `cnv_o${slot}`))).toBe(true)
    // Now both have as many.
    expect(yield* open("o5", visitor("ten_2", "203.0.113.1", "cnv_p9"))).toBe(false)
    yield* Effect.yieldNow()
    expect([closed.length, closed.every((name) => name.startsWith("v"))]).toEqual([5, true])
  })
)

it.effect("A place is free again when its socket has closed, or was never opened", () =>
  Effect.gen(function* () {
    const acquireSlot = makeSocketLimits(1, 1)
    const owner = visitor("ten_1", "192.0.2.1", "cnv_1")
    for (let times = 0; times < 3; times++) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* acquireSlot(owner)
          expect(Exit.isFailure(yield* Effect.exit(Effect.scoped(acquireSlot(owner))))).toBe(true)
        })
      )
    }
  })
)
