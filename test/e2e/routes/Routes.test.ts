/** Access to every declared route, derived from the declarations, so that a new route is covered too. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { allows, atLeast, type Requirement, type Role } from "../../../src/domain/accounts/Access.ts"
import { Api } from "../../../src/http/Api.ts"
import { AgentKeyAuth, CallerAuth, ManageAuth, OperatorAuth, SessionAuth } from "../../../src/http/Auth.ts"
import { SameOrigin } from "../../../src/http/hosted/accounts/SameOrigin.ts"
import { keyOf, type Route } from "../../../src/http/Routes.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { unknownResourcePath, type Credential, foreignRequests, ownRequest, routes } from "./RouteRequests.ts"
import {
  ask,
  csrf,
  makeTenant,
  makeUser,
  makeWorld,
  type Owner,
  type Received,
  signIn,
  type World
} from "./RouteWorld.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

const ofOperator = routes.filter(({ path }) => path.startsWith("/api/operator/"))
const ofTokens = routes.filter(({ scope }) => scope !== undefined)
const ofSessions = routes.filter(({ role, scope }) => role !== undefined && scope === undefined)
const ofKeys = routes.filter(({ permission }) => permission !== undefined)
const isSafe = ({ method }: Route) => method === "GET" || method === "HEAD"

const requirements: ReadonlyArray<Requirement> = [
  "chat",
  "retrieve",
  "ingest",
  "skill_fetch",
  "trace_read",
  "visitor_tokens"
]
const roles: ReadonlyArray<Role> = ["viewer", "agent", "admin", "owner"]

const codeOf = ({ text }: Received): string => JSON.parse(text).error?.code

/** True where no list of `data` holds anything. */
const isEmpty = (data: unknown): boolean =>
  Array.isArray(data)
    ? data.length === 0
    : typeof data !== "object" || data === null || Object.values(data).every(isEmpty)

describe.skipIf(skipped)("Every declared route", () => {
  const scope = Effect.runSync(Scope.make())
  const folders = [temporaryFolder(), temporaryFolder()] as const
  let variables: Readonly<Record<string, string>> = {}
  let spoke: Spoke
  let admin: Pg.Client
  let owner: Owner
  /** The victim; a neighbour of the same tenant; another tenant's resources. */
  let first: World
  let neighbour: World
  let stranger: World
  let strange: Owner
  const sessions = new Map<Role, { readonly email: string; readonly cookie: string }>()

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    const creator = new Pg.Client({ connectionString: server.href })
    await creator.connect()
    await creator.query("create database routes")
    await creator.end()
    server.pathname = "/routes"
    variables = {
      DATABASE_URL: server.href,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    spoke = await start(folders[0], { ...variables, SPOKE_OPERATOR_TOKEN: "operator" })
    admin = new Pg.Client({ connectionString: server.href })
    await admin.connect()
    // The sweep that compares passages writes whenever it is their turn: while somebody else has its lock, it does nothing.
    await admin.query("select pg_advisory_lock(hashtextextended('passage findings', 0))")
    owner = await makeTenant(spoke, "first")
    strange = await makeTenant(spoke, "strange")
    first = await makeWorld(spoke, owner, "quagga")
    neighbour = await makeWorld(spoke, owner, "okapi")
    stranger = await makeWorld(spoke, strange, "numbat")
    for (const role of roles) {
      const email = `${role}@roles.example`
      sessions.set(role, await makeUser(spoke, owner, email, role))
    }
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    await admin.end()
    for (const folder of folders) removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const needlesOf = ({ ids, mark }: World) => [...Object.values(ids), mark]

  /** Every row, in any table, that names something of the world. */
  const rowsOf = async (world: World): Promise<ReadonlyArray<string>> => {
    const { rows: tables } = await admin.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'public' order by 1"
    )
    const selects = tables.map(
      ({ name }) => `select '${name} ' || (to_jsonb(t) - 'last_used_at')::text as row from "${name}" t`
    )
    const { rows } = await admin.query<{ row: string }>(selects.join(" union all "))
    const needles = needlesOf(world)
    return rows
      .map(({ row }) => row)
      .filter((row) => needles.some((needle) => row.includes(needle)))
      .sort()
  }

  /** What an answer tells of the world. */
  const told = ({ headers, text }: Received, world: World) => {
    const all = [text, ...[...headers].map(([name, value]) => `${name}: ${value}`)].join("\n")
    return needlesOf(world).filter((needle) => all.includes(needle))
  }

  /** Asks as `mine` for what is the victim's: nothing is told, and nothing changes. */
  const pry = async (asked: ReadonlyArray<Route>, by: Credential, mine: World, victim: World) => {
    const found: Array<string> = []
    const before = await rowsOf(victim)
    expect(before.length).toBeGreaterThan(10)
    const who =
      by === "key"
        ? { key: mine.key }
        : by === "token"
          ? {}
          : { cookie: mine === stranger ? strange.cookie : owner.cookie }
    const headers = by === "token" ? { authorization: `Bearer ${mine.token}` } : csrf
    for (const route of asked) {
      const requests = foreignRequests(route, by, mine, victim)
      for (const { body, path } of requests) {
        const received = await ask(spoke, route.method, path, { ...who, body, headers })
        const listed =
          isSafe(route) &&
          received.status === 200 &&
          received.text.startsWith("{") &&
          isEmpty(JSON.parse(received.text).data)
        if (!listed && received.status !== 404) {
          found.push(`${route.method} ${path} is ${received.status} ${received.text.slice(0, 200)}`)
        }
        const leaks = told(received, victim)
        if (leaks.length > 0) found.push(`${route.method} ${path} tells ${leaks.join()}`)
      }
      if (isSafe(route)) {
        const { body, path } = ownRequest(route, by, mine)
        const received = await ask(spoke, route.method, path, { ...who, body, headers })
        if (received.status >= 400) found.push(`own ${path} is ${received.status} ${received.text}`)
        const leaks = told(received, victim)
        if (leaks.length > 0) found.push(`${route.method} ${path} tells ${leaks.join()}`)
      }
      const after = await rowsOf(victim)
      const changed = [
        ...after.filter((row) => !before.includes(row)).map((row) => `+ ${row}`),
        ...before.filter((row) => !after.includes(row)).map((row) => `- ${row}`)
      ]
      if (changed.length > 0) {
        found.push(`${keyOf(route)} changes ${changed.join("\n")}`)
        break
      }
    }
    expect(found).toEqual([])
  }

  it("is of one of the surfaces, or says why it is open", () => {
    expect(ofSessions.length).toBeGreaterThan(50)
    expect(ofKeys.length).toBeGreaterThan(25)
    expect(ofOperator.length).toBeGreaterThan(7)
    const others = routes.filter(
      (route) => ![...ofSessions, ...ofTokens, ...ofKeys, ...ofOperator].includes(route)
    )
    expect(others.map(keyOf).filter((key) => !key.includes("/api/webhooks/"))).toEqual([
      "POST /api/v1/chat",
      "POST /api/v1/retrieve",
      "POST /api/auth/login",
      "POST /api/auth/sso",
      "GET /api/auth/sso/callback",
      "POST /api/auth/passkey/challenge",
      "POST /api/auth/passkey",
      "GET /api/tool-sign-ins/callback",
      "POST /api/auth/password",
      "GET /healthz",
      "GET /readyz"
    ])
  })

  it("of the dashboard is 401 without a session, and for one that is none", async () => {
    for (const route of ofSessions) {
      for (const cookie of [undefined, "spoke_session=nobody"]) {
        const received = await ask(spoke, route.method, unknownResourcePath(route), {
          cookie,
          headers: csrf
        })
        expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 401, "UNAUTHORIZED"])
      }
    }
  })

  it("of the dashboard that changes something is 403 for a page of another site, and without word of its own", async () => {
    const { cookie } = owner
    const foreigners = [
      {},
      { origin: "https://evil.example" },
      { origin: "https://evil.example", ...csrf },
      { origin: "null", ...csrf },
      { "x-spoke-csrf": "0" }
    ]
    for (const route of ofSessions.filter((route) => !isSafe(route))) {
      for (const headers of foreigners) {
        const received = await ask(spoke, route.method, unknownResourcePath(route), {
          cookie,
          headers,
          body: {}
        })
        expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 403, "FORBIDDEN"])
      }
    }
  })

  it("that begins a session or chooses a password is 403 for a page of another site, too", async () => {
    for (const path of ["/api/auth/login", "/api/auth/password", "/api/auth/passkey"]) {
      for (const headers of [{}, { origin: "https://evil.example", ...csrf }, { "x-spoke-csrf": "0" }]) {
        const received = await ask(spoke, "POST", path, { headers, body: {} })
        expect([path, received.status, codeOf(received)]).toEqual([path, 403, "FORBIDDEN"])
      }
    }
  })

  it("that changes something by a cookie is declared to ask where the request comes from", () => {
    const unguarded: Array<string> = []
    HttpApi.reflect(Api, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint, middleware }) => {
        const keys = [...middleware].map(({ key }) => key)
        const checked = [SessionAuth, CallerAuth, SameOrigin, AgentKeyAuth, ManageAuth, OperatorAuth].some(
          ({ key }) => keys.includes(key)
        )
        if (!["GET", "HEAD"].includes(endpoint.method) && !checked) unguarded.push(endpoint.path)
      }
    })
    // Signed by their senders, and shims that say where they went.
    expect(unguarded.filter((path) => !path.startsWith("/api/webhooks/"))).toEqual([
      "/api/v1/chat",
      "/api/v1/retrieve"
    ])
  })

  for (const role of roles) {
    it(`of the dashboard takes ${role} for what the declared role allows`, async () => {
      const { cookie = "", email = "" } = sessions.get(role) ?? {}
      for (const route of ofSessions) {
        // A session ends with signing out.
        const used = route.path === "/api/auth/logout" ? await signIn(spoke, email) : cookie
        const received = await ask(spoke, route.method, unknownResourcePath(route), {
          cookie: used,
          headers: csrf,
          ...(isSafe(route) ? {} : { body: {} })
        })
        const admitted = route.role !== undefined && atLeast(role, route.role)
        if (admitted) {
          const { status } = received
          expect([keyOf(route), status, status < 500 && status !== 401 && status !== 403]).toEqual([
            keyOf(route),
            status,
            true
          ])
        } else {
          expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 403, "FORBIDDEN"])
        }
      }
    })
  }

  it(
    "of the dashboard is 404 or empty for another tenant's session, tells nothing and changes nothing",
    () => pry(ofSessions, "session", stranger, first),
    60_000
  )

  it("of the management interface is 401 for whatever is no access token: a session and an agent's key too", async () => {
    expect(ofTokens.length).toBeGreaterThan(4)
    const strangers = [
      {},
      { headers: { authorization: "Bearer spt_nobody" } },
      { headers: { authorization: `Bearer ${first.key}` } },
      { key: first.key },
      { key: first.token },
      { cookie: owner.cookie, headers: csrf }
    ]
    for (const route of ofTokens) {
      for (const who of strangers) {
        const received = await ask(spoke, route.method, unknownResourcePath(route), who)
        expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 401, "UNAUTHORIZED"])
      }
    }
  })

  it("of the management interface is 403 for a token of every other scope", async () => {
    const make = async (body: object): Promise<{ id: string; authorization: string }> => {
      const { cookie } = owner
      const received = await ask(spoke, "POST", "/api/tokens", { cookie, headers: csrf, body })
      const { secret, token } = JSON.parse(received.text).data
      return { id: token.id, authorization: `Bearer ${secret}` }
    }
    const resources = new Set(ofTokens.flatMap(({ scope }) => (scope === undefined ? [] : [scope.resource])))
    for (const resource of resources) {
      const about = ofTokens.filter(({ scope }) => scope?.resource === resource)
      // Access to agents includes their widgets.
      const granting = resource === "widget" ? ["widget", "agents"] : [resource]
      const others = [...resources].filter((other) => !granting.includes(other)).map((other) => `${other}:*`)
      for (const [scopes, refused] of [
        [others, about],
        [[`${resource}:read`, ...others], about.filter(({ scope }) => scope?.verb === "write")]
      ] as const) {
        const { authorization } = await make({ name: "Lesser", scopes })
        for (const route of refused) {
          const received = await ask(spoke, route.method, unknownResourcePath(route), {
            headers: { authorization }
          })
          expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 403, "FORBIDDEN"])
        }
      }
    }
  })

  it(
    "of the management interface is 404 or empty for another tenant's token, tells nothing and changes nothing",
    () => pry(ofTokens, "token", stranger, first),
    60_000
  )

  it("of the API and the widget is 401 for an access token", async () => {
    for (const route of ofKeys) {
      const headers = { authorization: `Bearer ${first.token}` }
      const received = await ask(spoke, route.method, unknownResourcePath(route), { headers })
      expect([keyOf(route), received.status]).toEqual([keyOf(route), 401])
    }
  })

  it("of the API and the widget is 401 without a key and for one that is none", async () => {
    for (const route of ofKeys) {
      for (const key of [undefined, "spk_nobody"]) {
        const received = await ask(spoke, route.method, unknownResourcePath(route), { key, headers: csrf })
        expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 401, "UNAUTHORIZED"])
      }
    }
  })

  it("of the API and the widget is 403 for a key without the permission, and for an organisation's key", async () => {
    const { cookie } = owner
    const make = async (path: string, body: object): Promise<string> => {
      const received = await ask(spoke, "POST", path, { cookie, headers: csrf, body })
      return JSON.parse(received.text).data.secret
    }
    const ofAgent = `/api/agents/${first.ids.AgentId}/keys`
    const lesser = new Map<string, string>()
    for (const held of requirements) {
      lesser.set(held, await make(ofAgent, { name: "Lesser", permissions: [held] }))
    }
    const organisation = await make("/api/keys", { name: "Org", scope: "org", permissions: ["*"] })
    for (const route of ofKeys) {
      for (const held of requirements) {
        if (route.permission === undefined || allows([held], route.permission)) continue
        const key = lesser.get(held)
        const received = await ask(spoke, route.method, unknownResourcePath(route), { key })
        expect([keyOf(route), held, received.status, codeOf(received)]).toEqual([
          keyOf(route),
          held,
          403,
          "FORBIDDEN"
        ])
      }
      const received = await ask(spoke, route.method, unknownResourcePath(route), { key: organisation })
      expect([keyOf(route), received.status, codeOf(received)]).toEqual([keyOf(route), 403, "FORBIDDEN"])
    }
  })

  it(
    "of the API and the widget is 404 or empty for another tenant's key, tells nothing and changes nothing",
    () => pry(ofKeys, "key", stranger, first),
    60_000
  )

  it(
    "of the API and the widget is 404 or empty for a key of another agent of the tenant",
    () => pry(ofKeys, "key", neighbour, first),
    60_000
  )

  it("that searches or answers from sources finds those of its agent alone", async () => {
    for (const { key } of [neighbour, stranger]) {
      for (const [path, body] of [
        ["/v1/retrieve", { query: "The secret of quagga", topK: 20 }],
        ["/v1/chat", { message: "What is kept?" }]
      ] as const) {
        const received = await ask(spoke, "POST", path, { key, body })
        expect([received.status, told(received, first)]).toEqual([200, []])
      }
    }
    const received = await ask(spoke, "POST", "/v1/retrieve", {
      key: first.key,
      body: { query: "The secret of quagga" }
    })
    expect(told(received, first)).toContain("quagga")
  })

  const mcp = { jsonrpc: "2.0", id: 1 } as const
  const called = (name: string, given: object) => ({
    ...mcp,
    method: "tools/call",
    params: { name, arguments: given }
  })

  it("and /mcp, which no declaration knows, is refused to whoever may not", async () => {
    const { cookie } = owner
    const make = async (path: string, body: object) =>
      JSON.parse((await ask(spoke, "POST", path, { cookie, headers: csrf, body })).text).data
    const ofAgent = `/api/agents/${first.ids.AgentId}/keys`
    const revoked = await make(ofAgent, { name: "Revoked", permissions: ["*"] })
    await ask(spoke, "DELETE", `/api/keys/${revoked.key.id}`, { cookie, headers: csrf })
    const lesser = await make(ofAgent, { name: "Lesser", permissions: ["ingest", "trace_read"] })
    const organisation = await make("/api/keys", { name: "Org", scope: "org", permissions: ["*"] })
    const site = { name: "Site", permissions: ["*"], allowedOrigins: ["https://good.example"] }
    const ofSite = await make(ofAgent, site)
    const evil = { origin: "https://evil.example" }
    const strangers: ReadonlyArray<readonly [Parameters<typeof ask>[3], number, string]> = [
      [{}, 401, "UNAUTHORIZED"],
      [{ key: "spk_nobody" }, 401, "UNAUTHORIZED"],
      [{ cookie, headers: csrf }, 401, "UNAUTHORIZED"],
      [{ key: revoked.secret }, 401, "UNAUTHORIZED"],
      [{ key: organisation.secret }, 403, "FORBIDDEN"],
      [{ key: lesser.secret }, 403, "FORBIDDEN"],
      [{ key: ofSite.secret, headers: evil }, 403, "FORBIDDEN"],
      [{ key: first.key, headers: evil }, 403, "FORBIDDEN"]
    ]
    const before = await rowsOf(first)
    for (const body of [{ ...mcp, method: "tools/list" }, called("chat", { message: "Who are you?" })]) {
      for (const [who, status, code] of strangers) {
        const received = await ask(spoke, "POST", "/mcp", { ...who, body })
        expect([received.status, codeOf(received)]).toEqual([status, code])
        expect(received.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null)
        expect(told(received, first)).toEqual([])
      }
    }
    expect(await rowsOf(first)).toEqual(before)
  })

  it("and /mcp tells a key nothing of another agent, and changes nothing there", async () => {
    const before = await rowsOf(first)
    const { ConversationId: conversationId, SourceId: source } = first.ids
    for (const { key } of [neighbour, stranger]) {
      const resumed = called("chat", { message: "Go on", conversationId })
      const answer = await ask(spoke, "POST", "/mcp", { key, body: resumed })
      expect(JSON.parse(answer.text).result).toMatchObject({ isError: true })
      expect(answer.text).toContain("CONVERSATION_NOT_FOUND")
      const search = { query: "The secret of the shop", filter: { sourceIds: [source] } }
      const found = await ask(spoke, "POST", "/mcp", { key, body: called("retrieve", search) })
      expect(JSON.parse(found.text).result.structuredContent?.chunks ?? []).toEqual([])
      expect([answer, found].flatMap((received) => told(received, first))).toEqual([])
    }
    expect(await rowsOf(first)).toEqual(before)
  })

  it("and /mcp answers a spent quota of turns as a tool's error, with its code", async () => {
    const poor = await makeTenant(spoke, "poor")
    const { key } = await makeWorld(spoke, poor, "pangolin")
    const entitlements = { publicApi: true, turns: 0, ingestionJobs: 9, sources: 9, overageEnabled: false }
    const limited = await ask(spoke, "PUT", `/api/operator/tenants/${poor.tenantId}/subscription`, {
      headers: { authorization: "Bearer operator" },
      body: { plan: "spent", entitlements }
    })
    expect(limited.status).toBe(200)
    const received = await ask(spoke, "POST", "/mcp", { key, body: called("chat", { message: "Hello" }) })
    expect([received.status, JSON.parse(received.text).result.isError]).toEqual([200, true])
    expect(JSON.parse(received.text).result.content[0].text).toMatch(/^TURN_LIMIT_EXCEEDED: /)
  })

  it("of the operator is 401 without the token or with another, and 503 where none is set", async () => {
    const unset = await start(folders[1], variables, ["--role", "api"])
    try {
      for (const route of ofOperator) {
        const path = unknownResourcePath(route)
        for (const headers of [{}, { authorization: "Bearer wrong" }, { authorization: "operator" }]) {
          const received = await ask(spoke, route.method, path, { headers })
          expect([keyOf(route), received.status, codeOf(received)]).toEqual([
            keyOf(route),
            401,
            "UNAUTHORIZED"
          ])
        }
        for (const who of [{ cookie: owner.cookie, headers: csrf }, { key: first.key }]) {
          expect([keyOf(route), (await ask(spoke, route.method, path, who)).status]).toEqual([
            keyOf(route),
            401
          ])
        }
        const received = await ask(unset, route.method, path, {
          headers: { authorization: "Bearer operator" }
        })
        expect([keyOf(route), received.status]).toEqual([keyOf(route), 503])
      }
    } finally {
      await unset.kill()
    }
  })
})
