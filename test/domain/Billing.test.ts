import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { type BillingEvent, creditsOf } from "../../src/domain/billing/Billing.ts"
import { TenantId } from "../../src/domain/Ids.ts"

const tenantId = TenantId.make("ten_1")

const paid = (credits: number, of: number, refunded: number): ReadonlyArray<BillingEvent> => {
  const event = { created: 1, rank: 0, object: "pi_1" }
  return [
    { ...event, id: "evt_1", tenantId, fact: { _tag: "Purchase", credits } },
    { ...event, id: "evt_2", tenantId: null, fact: { _tag: "Refund", of, refunded } }
  ]
}

describe("The turns that are left after a refund", () => {
  it("are whole ones, also where turns times the amount exceed what a number holds exactly", () => {
    expect(creditsOf(paid(10, 3, 1), tenantId)).toBe(6)
    expect(creditsOf(paid(999_999_999, 9_007_199_254_740_991, 1), tenantId)).toBe(999_999_998)
    expect(creditsOf(paid(999_999_999, 9_007_199_254_740_991, 9_007_199_254_740_991), tenantId)).toBe(0)
  })

  it.prop(
    "are the largest whole number that is within the share of the amount that was kept",
    {
      credits: FastCheck.integer({ min: 1, max: 1_000_000_000 }),
      of: FastCheck.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      share: FastCheck.double({ min: 0, max: 1, noNaN: true })
    },
    ({ credits, of, share }) => {
      const refunded = Math.min(of, Math.floor(of * share))
      const left = BigInt(creditsOf(paid(credits, of, refunded), tenantId))
      const kept = BigInt(credits) * BigInt(of - refunded)
      expect(left * BigInt(of) <= kept).toBe(true)
      expect((left + 1n) * BigInt(of) > kept).toBe(true)
    }
  )
})
