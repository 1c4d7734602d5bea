import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { keyHeader, everyPermission, layer as PublicServer } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"

layer(PublicServer, { excludeTestServices: true })("GET /v1/usage", (it) => {
  const usage = (key: string) =>
    Effect.flatMap(TestServer, ({ call }) => call("GET", "/v1/usage", { headers: keyHeader(key) }))

  it.effect("answers with the documented fields and no others", () =>
    Effect.gen(function* () {
      expect(expectData(yield* usage("spk_all"))).toEqual({
        period: { start: "2025-01-01T00:00:00.000Z", end: "2025-02-01T00:00:00.000Z" },
        turns: { used: 3, limit: 100, overageEnabled: false },
        ingestionJobs: { used: 2, limit: 50 },
        sources: { active: 1, limit: 10 },
        tokens: { input: 1200, output: 300 }
      })
    })
  )

  it.effect(
    "is allowed with permissions for chat, retrieve, ingest, usage or *; a key with others only is 403",
    () =>
      Effect.gen(function* () {
        const refused = ["skill_fetch", "skills:read", "trace_read", "visitor_tokens"]
        for (const permission of everyPermission) {
          const answer = yield* usage(`spk_only_${permission}`)
          if (refused.includes(permission)) expectError(answer, 403, "FORBIDDEN")
          else expectData(answer)
        }
      })
  )

  it.effect("is 403 for an org-scoped key, and 500 for an agent key whose agent is missing", () =>
    Effect.gen(function* () {
      expectError(yield* usage("spk_org"), 403, "FORBIDDEN")
      expectError(yield* usage("spk_lost"), 500, "INTERNAL_ERROR")
      expectError(yield* usage("spk_plan"), 403, "PLAN_RESTRICTED")
      expectError(yield* usage("spk_nobody"), 401, "UNAUTHORIZED")
    })
  )
})
