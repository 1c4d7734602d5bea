import { describe, expect, it } from "@effect/vitest"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { type ErrorCode, errors } from "../../src/domain/Errors.ts"

/** Every code with its status, as documented. */
const documented: Record<ErrorCode, number> = {
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  PLAN_RESTRICTED: 403,
  VALIDATION_ERROR: 400,
  NOT_FOUND: 404,
  LIMIT_EXCEEDED: 429,
  TURN_LIMIT_EXCEEDED: 429,
  CONVERSATION_NOT_FOUND: 404,
  CONVERSATION_NOT_ACTIVE: 409,
  END_USER_NOT_FOUND: 404,
  RUNTIME_DATA_UNAVAILABLE: 503,
  TURN_FAILED: 500,
  RUNTIME_TIMEOUT: 504,
  GONE: 410,
  UNSUPPORTED_ATTACHMENT_TYPE: 400,
  UNSUPPORTED_TYPE: 400,
  FILE_TOO_LARGE: 400,
  INTERNAL_ERROR: 500,
  PAGINATION_NOT_READY: 503,
  ARTIFACT_DELETE_CONFLICT: 409,
  ARTIFACT_DELETE_UNAVAILABLE: 503,
  INVALID_SIGNATURE: 400,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  SERVICE_UNAVAILABLE: 503,
  NOT_CONFIGURED: 503
}

describe("Every documented error", () => {
  it("has a class", () => {
    expect(Object.keys(errors).sort()).toEqual(Object.keys(documented).sort())
  })

  for (const [code, error] of Object.entries(errors)) {
    it(`${code} has the documented code and status, and a message`, () => {
      const failure = new error({ message: "What to fix." })
      expect([failure._tag, failure.message]).toEqual([code, "What to fix."])
      expect(HttpApiSchema.getStatusError(error)).toBe(
        Object.entries(documented).find(([one]) => one === code)?.[1]
      )
      expect(failure).not.toHaveProperty("details")
    })
  }
})
