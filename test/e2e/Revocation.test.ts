/**
 * Revocation of credentials (docs/security.md): requested on one process, proved on another. Where a bound is promised it
 * is waited for, and not a look longer.
 */
import { WebSocketConstructor } from "@effect/platform/Socket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../servers/ModelStub.ts"
import { binaries } from "../servers/PostgresServer.ts"
import { freshDatabase } from "./Fleet.ts"
import {
  ask,
  csrf,
  makeTenant,
  makeUser,
  makeWorld,
  type Owner,
  password,
  type World
} from "./routes/RouteWorld.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "./Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

const webSocket = Effect.runSync(Effect.provide(WebSocketConstructor, NodeSocket.layerWebSocketConstructor))

/** Longer than any process goes on believing a key. */
const second = () => new Promise((resolve) => setTimeout(resolve, 1_000))

describe.skipIf(skipped)("On every process", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  let variables: Readonly<Record<string, string>> = {}
  /** Where things are taken away, and where that is seen. */
  let here: Spoke
  let there: Spoke
  let owner: Owner
  let world: World
  let people = 0

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    variables = {
      DATABASE_URL: await freshDatabase(),
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator",
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    here = await start(folder, variables)
    there = await start(folder, variables, ["--role", "api"])
    owner = await makeTenant(here, "revocation")
    world = await makeWorld(here, owner, "quagga")
  }, 120_000)

  afterAll(async () => {
    await Promise.all([here.kill(), there.kill()])
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const own = async (method: string, path: string, body?: unknown, cookie = owner.cookie) => {
    const sent = { cookie, headers: csrf, ...(body === undefined ? {} : { body }) }
    const { status, text } = await ask(here, method, path, sent)
    return { status, data: JSON.parse(text).data }
  }

  const statusThere = async (path: string, who: { readonly key?: string; readonly cookie?: string }) =>
    (await ask(there, "GET", path, who)).status

  const member = (role = "agent") => makeUser(here, owner, `member${people++}@example.com`, role)

  const invite = async (id: string): Promise<string> =>
    (await own("POST", `/api/users/${id}/invitation`)).data.invitation.token

  const choose = async (token: string) =>
    (await ask(there, "POST", "/api/auth/password", { headers: csrf, body: { token, password } })).status

  const makeKey = async (agentId = world.ids.AgentId, more: object = {}) => {
    const body = { name: "Key", permissions: ["*"], ...more }
    const { data } = await own("POST", `/api/agents/${agentId}/keys`, body)
    const made: { readonly path: string; readonly key: string } = {
      path: `/api/keys/${data.key.id}`,
      key: data.secret
    }
    // Both have used it, and believe it for a while.
    for (const each of [here, there]) expect((await ask(each, "GET", "/v1/usage", made)).status).toBe(200)
    return made
  }

  it("a session ends at once with sign-out, demotion, removal and a new password", async () => {
    const events: ReadonlyArray<
      readonly [string, (user: { id: string; cookie: string }) => Promise<unknown>]
    > = [
      ["sign-out", ({ cookie }) => own("POST", "/api/auth/logout", undefined, cookie)],
      ["demotion", ({ id }) => own("PATCH", `/api/users/${id}`, { role: "viewer" })],
      ["removal", ({ id }) => own("DELETE", `/api/users/${id}`)],
      ["a new password", async ({ id }) => choose(await invite(id))]
    ]
    for (const [event, end] of events) {
      const user = await member()
      expect(await statusThere("/api/auth/session", user)).toBe(200)
      await end(user)
      expect([event, await statusThere("/api/auth/session", user)]).toEqual([event, 401])
    }
  })

  it("a role is what it is now, not what it was when the session began", async () => {
    const user = await member("viewer")
    expect(await statusThere("/api/audit", user)).toBe(403)
    await own("PATCH", `/api/users/${user.id}`, { role: "admin" })
    expect(await statusThere("/api/audit", user)).toBe(200)
  })

  it("an invitation is void at once after a change of the role, and after its maker's removal", async () => {
    const invited = await member()
    const changed = await invite(invited.id)
    await own("PATCH", `/api/users/${invited.id}`, { role: "admin" })
    expect(await choose(changed)).toBe(401)

    const maker = await member("admin")
    const { data } = await own("POST", `/api/users/${invited.id}/invitation`, undefined, maker.cookie)
    await own("DELETE", `/api/users/${maker.id}`)
    expect(await choose(data.invitation.token)).toBe(401)
    expect(await choose(await invite(invited.id))).toBe(200)
  })

  it("a key ends within a second when it is revoked, made inactive or expires, and with its agent", async () => {
    const doomed: string = (await own("POST", "/api/agents", { name: "Doomed" })).data.agent.id
    const revoked = await makeKey()
    const paused = await makeKey()
    const expiring = await makeKey()
    const ofAgent = await makeKey(doomed)
    const kept = await makeKey()
    await own("DELETE", revoked.path)
    await own("PATCH", paused.path, { active: false })
    await own("PATCH", expiring.path, { expiresAt: new Date(Date.now() + 200).toISOString() })
    await own("DELETE", `/api/agents/${doomed}`)
    await second()
    for (const made of [revoked, paused, expiring, ofAgent]) {
      expect(await statusThere("/v1/usage", made)).toBe(401)
    }
    expect(await statusThere("/v1/usage", kept)).toBe(200)
    // The bound holds for the widget's sessions and files, which need a key each time.
    const { SessionId, attachment } = world.ids
    const file = `/api/sdk/attachments/${attachment}?sessionId=${SessionId}`
    expect(await statusThere(file, kept)).toBe(200)
    expect(await statusThere(file, revoked)).toBe(401)
    expect(await statusThere(`/api/sdk/conversation?sessionId=${SessionId}`, revoked)).toBe(401)
    // The id of a run, or a cursor, opens nothing without a key.
    expect(await statusThere(`/v1/chat/stream/${world.ids.RunId}`, revoked)).toBe(401)
    await ask(here, "POST", "/v1/chat", { ...kept, body: { message: "Another conversation" } })
    const first = await ask(here, "GET", "/v1/conversations?limit=1", kept)
    const { nextCursor } = JSON.parse(first.text).data
    const next = `/v1/conversations?limit=1&cursor=${encodeURIComponent(nextCursor)}`
    expect([await statusThere(next, kept), await statusThere(next, revoked)]).toEqual([200, 401])
  })

  it("a key stays when the member who made it is removed: it is the tenant's", async () => {
    const maker = await member("admin")
    const body = { name: "Kept", permissions: ["usage.read"] }
    const { data } = await own("POST", `/api/agents/${world.ids.AgentId}/keys`, body, maker.cookie)
    await own("DELETE", `/api/users/${maker.id}`)
    await second()
    expect(await statusThere("/v1/usage", { key: data.secret })).toBe(200)
    const trail = await own("GET", "/api/audit?limit=100")
    expect(trail.data.entries).toContainEqual(
      expect.objectContaining({
        action: "key.create",
        target: data.key.id,
        actor: { type: "user", id: maker.id }
      })
    )
  })

  it("an organisation's key opens nothing, and nothing again once it is revoked", async () => {
    const { data } = await own("POST", "/api/keys", { name: "Org", scope: "org", permissions: ["*"] })
    expect(await statusThere("/v1/usage", { key: data.secret })).toBe(403)
    await own("DELETE", `/api/keys/${data.key.id}`)
    await second()
    expect(await statusThere("/v1/usage", { key: data.secret })).toBe(401)
  })

  it("a plan without the public API closes /v1 within a second", async () => {
    const other = await makeTenant(here, "planned")
    const agent = await own("POST", "/api/agents", { name: "Planned" }, other.cookie)
    const body = { name: "Key", permissions: ["*"] }
    const made = await own("POST", `/api/agents/${agent.data.agent.id}/keys`, body, other.cookie)
    const key: string = made.data.secret
    expect(await statusThere("/v1/usage", { key })).toBe(200)
    await ask(here, "PUT", `/api/operator/tenants/${other.tenantId}/subscription`, {
      headers: { authorization: "Bearer operator" },
      body: {
        plan: "closed",
        entitlements: { publicApi: false, turns: 9, ingestionJobs: 9, sources: 9, overageEnabled: false }
      }
    })
    await second()
    expect(await statusThere("/v1/usage", { key })).toBe(403)
  })

  /** A socket on the other process, once it is open. */
  const listen = async (token: string) => {
    const socket = webSocket(
      `${there.url.replace("http", "ws")}/api/realtime?token=${token}&lastMessageId=none`
    )
    const frames: Array<string> = []
    socket.addEventListener("message", ({ data }) => void frames.push(String(data)))
    const closed = new Promise<number>((resolve) =>
      socket.addEventListener("close", ({ code }) => resolve(code))
    )
    await new Promise((resolve) => socket.addEventListener("open", resolve))
    return { frames, closed, close: () => socket.close() }
  }

  it("a realtime token tells nothing more once its key or its session ends, and its socket closes", async () => {
    const key = await makeKey()
    const chatted = await ask(here, "POST", "/v1/chat", { ...key, body: { message: "Hello" } })
    const { conversationId, realtimeToken: ofKey } = JSON.parse(chatted.text).data
    const user = await member("viewer")
    const path = `/api/conversations/${conversationId}/realtime`
    const granted = await own("POST", path, undefined, user.cookie)
    const ofSession: string = granted.data.realtimeToken
    for (const [token, message, end] of [
      [ofKey, "After the key", () => own("DELETE", key.path)],
      [ofSession, "After the session", () => own("POST", "/api/auth/logout", undefined, user.cookie)]
    ] as const) {
      const socket = await listen(token)
      await end()
      await ask(here, "POST", "/v1/chat", { key: world.key, body: { message, conversationId } })
      expect(await socket.closed).toBe(4401)
      expect(socket.frames.filter((frame) => frame.includes(message))).toEqual([])
      const late = await listen(token)
      expect([await late.closed, late.frames]).toEqual([4401, []])
    }
  }, 60_000)

  it("an operator's token ends with the process that was started with it", async () => {
    const asked = async (spoke: Spoke, token: string) =>
      (await ask(spoke, "GET", "/api/operator/tenants", { headers: { authorization: `Bearer ${token}` } }))
        .status
    expect(await asked(there, "operator")).toBe(200)
    const renewed = await start(folder, { ...variables, SPOKE_OPERATOR_TOKEN: "renewed" }, ["--role", "api"])
    try {
      expect([await asked(renewed, "operator"), await asked(renewed, "renewed")]).toEqual([401, 200])
    } finally {
      await renewed.kill()
    }
  }, 60_000)
})
