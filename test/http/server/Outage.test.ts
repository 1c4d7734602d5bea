import { SqlError } from "@effect/sql/SqlError"
import { describe, expect, it } from "vitest"
import { isOutage } from "../../../src/http/server/Outage.ts"

const failed = (cause: unknown) => new SqlError({ cause, message: "Failed to execute statement" })
const coded = (code: string) => failed(Object.assign(new Error("away"), { code }))

describe("A defect of the database", () => {
  it.each(["57P01", "57P03", "08006", "53100", "53300", "ECONNREFUSED", "ECONNRESET", "EPIPE"])(
    "is an outage when its code is %s",
    (code) => expect(isOutage(coded(code))).toBe(true)
  )
  it.each([
    "Connection terminated unexpectedly",
    "Connection terminated due to connection timeout",
    "timeout exceeded when trying to connect"
  ])("is an outage when the driver says: %s", (message) =>
    expect(isOutage(failed(new Error(message)))).toBe(true)
  )

  it.each(["23505", "42601", "22P05", "40P01", "57014"])("is not an outage when its code is %s", (code) =>
    expect(isOutage(coded(code))).toBe(false)
  )
  it("is not an outage if another service failed", () => {
    expect(isOutage(Object.assign(new Error("Connection terminated"), { code: "57P01" }))).toBe(false)
    expect(isOutage(failed(null))).toBe(false)
    expect(isOutage(undefined)).toBe(false)
  })
})
