import { describe, expect, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { InboundEvent } from "../../../src/domain/channels/Channel.ts"
import { encodeEvent } from "../../../src/store/channels/InboundEvents.ts"

describe("An inbound event", () => {
  it("is encoded like its schema", () => {
    const encode = Schema.encodeSync(InboundEvent)
    FastCheck.assert(
      FastCheck.property(Arbitrary.make(InboundEvent), (event) => {
        // The schema loses a member of this name, because it assigns to it.
        FastCheck.pre(!JSON.stringify(event).includes("__proto__"))
        expect(JSON.parse(JSON.stringify(encodeEvent(event)))).toEqual(
          JSON.parse(JSON.stringify(encode(event)))
        )
      }),
      { numRuns: 300 }
    )
  })
})
