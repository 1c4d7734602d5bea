/** The entries of an audit log of the host: what they say, and for whom the work is done. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createSpoke } from "../../src/app/library/Library.ts"
import { authentication } from "../../src/app/library/Owner.ts"
import type { Spoke } from "../../src/client/Spoke.ts"
import { currentOwner, withOwner } from "../../src/concurrency/CurrentOwner.ts"
import type { SessionUser } from "../../src/domain/accounts/Access.ts"
import { TenantId, UserId } from "../../src/domain/Ids.ts"
import { AuditLog, AuditLogSql } from "../../src/effect.ts"
import { OperatorAuth } from "../../src/http/Auth.ts"
import { TenantGate } from "../../src/usecases/operations/moves/TenantGate.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-audit-"))
const url = "http://spoke.test"

interface Entry {
  readonly action: string
  readonly tenantId: string
  readonly owner: string
}

it("A request of the host to the operator's routes is work of the operator", async () => {
  const owner: SessionUser = {
    userId: UserId.make("mbr_1"),
    tenantId: TenantId.make("ten_1"),
    email: "owner@example.com",
    role: "owner",
    session: null
  }
  const gate = Layer.mock(TenantGate, { _tag: "usecases/operations/TenantGate", enter: () => Effect.void })
  const working = Effect.flatMap(OperatorAuth, (authenticated) =>
    Effect.zipRight(authenticated, FiberRef.get(currentOwner))
  )
  const request = HttpServerRequest.fromWeb(new Request(`${url}/api/operator/queues`))
  const found = working.pipe(
    Effect.provide(authentication(owner).pipe(Layer.provide(gate))),
    Effect.provideService(HttpServerRequest.HttpServerRequest, request),
    Effect.provideService(HttpServerRequest.ParsedSearchParams, {}),
    Effect.provideService(HttpRouter.RouteContext, HttpRouter.RouteContext.of(undefined as never)),
    withOwner("unknown")
  )
  expect(await Effect.runPromise(Effect.scoped(found))).toBe("operator")
})

describe("The audit log of a host", () => {
  const entries: Array<Entry> = []
  let spoke: Spoke

  const audit = Layer.effect(
    AuditLog,
    Effect.map(AuditLog, (own) => ({
      ...own,
      record: (entry: Parameters<typeof own.record>[0]) =>
        Effect.zipRight(
          Effect.map(FiberRef.get(currentOwner), (owner) => {
            entries.push({ action: entry.action, tenantId: entry.tenantId, owner })
          }),
          own.record(entry)
        )
    }))
  ).pipe(Layer.provide(AuditLogSql.layerSql))

  beforeAll(async () => {
    const admin = { email: "owner@example.com", password: "correct horse battery" }
    spoke = await createSpoke({ dataDir: Path.join(root, "data"), admin }, { replace: audit })
  })
  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
  })

  const send = async (path: string, headers: Readonly<Record<string, string>>, body: unknown) => {
    const answer = await spoke.fetch(
      new Request(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body)
      })
    )
    return { answer, body: JSON.parse(await answer.text()) }
  }

  it("is written for the tenant of the program, so that its work counts among the tenant's", async () => {
    await spoke.agents.create({ name: "Called" })
    const [made] = entries.filter(({ action }) => action === "agent.create")
    expect(made?.tenantId).toMatch(/^ten_/)
    expect(made?.owner).toBe(made?.tenantId)
  })

  it("names the changes of a file that are applied without the thresholds of publishing", async () => {
    const signedIn = await send(
      "/api/auth/login",
      { "x-spoke-csrf": "1" },
      { email: "owner@example.com", password: "correct horse battery" }
    )
    const cookie = signedIn.answer.headers.get("set-cookie")?.split(";")[0] ?? ""
    const made = await send(
      "/api/tokens",
      { cookie, "x-spoke-csrf": "1" },
      { name: "Deploy", scopes: ["agents:write"] }
    )
    const apply = async (instructions: string, force: boolean) => {
      entries.length = 0
      const { answer } = await send(
        "/api/manage/v1/apply",
        { authorization: `Bearer ${made.body.data.secret}` },
        { config: { agents: { Filed: { instructions } } }, force }
      )
      expect(answer.status).toBe(200)
      return entries.map(({ action }) => action)
    }
    expect(await apply("One", true)).toEqual(["agent.create"])
    expect(await apply("Two", false)).toEqual(["agent.update"])
    expect(await apply("Three", true)).toEqual(["agent.update_forced"])
  })
})
