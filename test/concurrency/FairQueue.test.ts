import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { FairQueue, type Waiter } from "../../src/concurrency/FairQueue.ts"

const step = FastCheck.record({
  kind: FastCheck.constantFrom("add", "add", "shift", "delete", "pause", "resume"),
  owner: FastCheck.constantFrom("a", "b", "c"),
  which: FastCheck.nat(20)
})

describe("A fair queue", () => {
  it.prop(
    "knows the owners of its items, and no others",
    { maxSize: FastCheck.nat(6), steps: FastCheck.array(step, { maxLength: 40 }) },
    ({ maxSize, steps }) => {
      const queue = new FairQueue<number>(maxSize)
      const added: Array<Waiter<number>> = []
      for (const [place, { kind, owner, which }] of steps.entries()) {
        if (kind === "shift") queue.shift()
        else if (kind === "pause") queue.pause(owner)
        else if (kind === "resume") queue.resume(owner)
        else if (kind === "add") {
          const made = queue.add(owner, place)
          if (made !== null) added.push(made.waiter)
        } else {
          const waiter = added[which]
          if (waiter !== undefined) queue.delete(waiter)
        }
        const owners = Array.from(queue, (waiter) => waiter.owner)
        expect(queue.size).toBe(owners.length)
        expect(queue.owners).toBe(new Set(owners).size)
        for (const name of ["a", "b", "c"])
          expect(queue.sizeOf(name)).toBe(owners.filter((one) => one === name).length)
      }
    }
  )
})
