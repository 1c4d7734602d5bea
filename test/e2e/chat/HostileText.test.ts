/**
 * Text that no store holds, at every place of every declared route where text is taken: made from the declarations, so that
 * a new field is tried too.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AST from "effect/SchemaAST"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Api } from "../../../src/http/Api.ts"
import { keyOf, type Route } from "../../../src/http/Routes.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { bodies, brandOf, files, isKind, routes, twinOf, undeclaredBodies } from "../routes/RouteRequests.ts"
import { csrf, makeTenant, makeWorld, type Owner, signIn, type World } from "../routes/RouteWorld.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

/** What is made of a text that would be taken. */
type Hostile = (text: string) => string

const asItIs: Hostile = (text) => text
const hostile: Readonly<Record<string, Hostile>> = {
  "NUL behind": (text) => `${text}\u0000`,
  "NUL alone": () => "\u0000",
  "half a pair behind": (text) => `${text}\ud800`,
  "half a pair in front": (text) => `\udc00${text}`
}

/** Texts that their fields take, by the names of these. */
const known: Readonly<Record<string, unknown>> = {
  // Formats of the widget.
  avatar: "S",
  clientSecret: "of the client",
  color: "#336699",
  channel: "whatsapp",
  allowedOrigins: ["https://shop.example"],
  agentId: undefined,
  domains: ["shop.example"],
  domain: "shop.example",
  issuer: "https://accounts.example",
  createdAt: "2026-11-21T08:00:00.000Z",
  email: "somebody@example.com",
  end: "2027-11-21T08:00:00.000Z",
  expiresAt: "2027-11-21T08:00:00.000Z",
  fileUrl: "https://shop.example/terms.txt",
  imageUrl: "https://shop.example/map.png",
  from: "/account/id",
  header: "X-Account",
  maxDepth: 1,
  message: "Hello",
  method: "POST",
  name: "some",
  parameters: { type: "object", properties: {} },
  password: "correct horse battery",
  reader: "feed",
  received: "1",
  refresh: "daily",
  sitemapUrl: "https://shop.example/sitemap.xml",
  start: "2026-11-21T08:00:00.000Z",
  text: "question\nTaken?",
  to: "query:account",
  url: "https://shop.example/"
}

/** Optional fields without which the others say too little. */
const always = new Set(["clientSecret", "url", "slot", "header", "message"])

/** Fields beside which another must not stand. */
const instead: Readonly<Record<string, string>> = {
  mcp: "http",
  messages: "message",
  conversationId: "id",
  settings: "version",
  cases: "runIds",
  group: "runIds",
  baselineVersion: "baseline"
}

/** Fields that mean something beside others alone. */
const companions: Readonly<Record<string, object>> = {
  retryOf: { sessionId: "none" },
  trigger: { id: "chat-1" }
}

/** Bodies beside those of the ids. */
const others: Readonly<Record<string, object>> = {
  "PATCH /api/tools/:id": { http: { method: "POST", url: "https://shop.example/" } },
  "POST /api/agents/:id/corrections": { runIds: ["run_none"] }
}

/** Places where a route takes but one value, or but certain names. */
const excused = [
  "PATCH /v1/sources/:id .config{name}",
  "PATCH /v1/sources/:id .config{}(any)",
  "PATCH /api/sources/:id .config{name}",
  "PATCH /api/sources/:id .config{}(any)",
  // A channel asks for certain secrets, and these ask for none.
  "POST /api/agents/:id/channels .secrets{name}",
  "POST /api/agents/:id/channels .secrets{}",
  "PATCH /api/channels/:id .secrets{name}",
  "PATCH /api/channels/:id .secrets{}",
  "POST /api/agents/:id/channels .settings{name}",
  "POST /api/agents/:id/channels .settings{}",
  "PATCH /api/channels/:id .settings{name}",
  "PATCH /api/channels/:id .settings{}",
  // What another installation's database wrote: rows of its tables, and places in them.
  ...[
    "._tag",
    ".driver",
    ".events[](any)",
    ".jobs[].event(any)",
    ".jobs[].id",
    ".jobs[].job(any)",
    ".refs[]",
    ".seqs[]"
  ].map((place) => `POST /api/operator/tenants/:id/move ${place}`),
  // An answer is for a challenge, and each challenge is for one answer.
  "POST /api/auth/passkeys .credential.id",
  "POST /api/auth/passkeys .credential.rawId",
  "POST /api/auth/passkeys .credential.response.attestationObject",
  "POST /api/auth/passkeys .credential.response.clientDataJSON",
  "POST /api/auth/passkeys .credential.type",
  "POST /api/auth/passkeys .name",
  // These are times.
  "POST /api/agents/:id/corrections .from",
  "POST /api/agents/:id/corrections .to",
  "POST /api/agents/:id/impact/replay .from",
  "POST /api/agents/:id/impact/replay .to",
  // A reader asks for certain settings.
  "POST /v1/sources .config.settings{name}",
  "POST /v1/sources .config.settings{}(any)",
  "POST /api/sources .config.settings{name}",
  "POST /api/sources .config.settings{}(any)",
  // The kind "oauth" is for MCP tools, and these are HTTP tools.
  "PATCH /api/tools/:id .auth.kind",
  "POST /api/agents/:id/tools .auth.kind",
  // What is tried before it is saved is tried by people, and these are asked with a key.
  "POST /api/v1/chat/stream .draft.grounding.mode",
  "POST /api/v1/chat/stream .draft.grounding.unsupported",
  "POST /api/v1/chat/stream .draft.instructions",
  "POST /api/v1/chat/stream .draft.model",
  "POST /api/v1/chat/stream .draft.style.length",
  "POST /api/v1/chat/stream .draft.style.tone",
  "POST /api/v1/chat/stream .draft.tools[]",
  "POST /api/v1/chat/stream .replaces",
  // Members may be assigned from the role agent on, and this one is a viewer.
  "PUT /api/conversations/:id/assignee .userId",
  // A server offers no tools of its own.
  "POST /api/agents .tools[]",
  "PATCH /api/agents/:id .tools[]",
  "POST /api/agents/:id/experiments .settings.tools[]",
  "POST /api/tokens .scopes[]",
  "POST /v1/chat .messages[](any)",
  "POST /v1/chat/stream .messages[](any)",
  "POST /v1/chat .responseSchema(any)",
  "POST /v1/chat/stream .responseSchema(any)",
  "POST /api/v1/chat/stream .responseSchema(any)",
  // A schema has its own keywords.
  "POST /api/agents/:id/cases .responseSchema(any)",
  "POST /api/agents/:id/experiments .cases[].responseSchema(any)",
  "POST /api/manage/v1/apply .config.agents{}.cases[].responseSchema(any)",
  "PUT /api/cases/:id .responseSchema(any)",
  // The same text is no JSON.
  "POST /api/agents/:id/cases/import .format",
  "POST /api/webhook-endpoints/:id/replay .from",
  "POST /api/webhook-endpoints/:id/replay .to"
]

const keys = new Set(routes.map(keyOf))
const counts = new Set(["turns", "ingestionJobs", "sources"])

interface Place {
  readonly where: string
  readonly value: (change: Hostile) => unknown
}

const isNothing = (ast: AST.AST) =>
  AST.isUndefinedKeyword(ast) || AST.isNeverKeyword(ast) || (AST.isLiteral(ast) && ast.literal === null)

/** A JSON value with texts and names at every depth. */
const anything = (change: Hostile) => ({
  type: "object",
  [change("name")]: [change("text"), { [change("inner")]: change("text") }]
})

/** Values and places of what a schema takes, as it is sent. */
class Sender {
  private readonly world: World
  constructor(world: World) {
    this.world = world
  }

  example(ast: AST.AST, name: string): unknown {
    const brand = brandOf(ast)
    if (brand !== undefined && isKind(brand)) return this.world.ids[brand]
    if (known[name] !== undefined) return known[name]
    switch (ast._tag) {
      case "Transformation":
      case "Refinement":
        return this.example(ast.from, name)
      case "Suspend":
        return this.example(ast.f(), name)
      case "Literal":
        return ast.literal
      case "StringKeyword":
        return "text"
      case "NumberKeyword":
        return counts.has(name) ? 1_000_000 : 1
      case "BooleanKeyword":
        return true
      case "TupleType":
        return ast.rest.map(({ type }) => this.example(type, ""))
      case "TypeLiteral":
        // What a connector is given depends on its reader.
        if (ast.propertySignatures.some(({ name }) => name === "reader")) {
          return { reader: "feed", settings: { url: "https://shop.example/feed.xml" } }
        }
        return Object.fromEntries(
          ast.propertySignatures
            .filter(({ isOptional, name }) => !isOptional || always.has(String(name)))
            .map(({ name, type }) => [name, this.example(type, String(name))])
        )
      case "Union":
        return this.example(ast.types.find((type) => !isNothing(type)) ?? ast, name)
      default:
        return anything(asItIs)
    }
  }

  places(ast: AST.AST, name: string): ReadonlyArray<Place> {
    switch (ast._tag) {
      case "Transformation":
      case "Refinement":
        return this.places(ast.from, name).map((place) => ({
          ...place,
          // What the outer schema asks for, the inner one does not know.
          value: (change) => {
            const whole = place.where === "" ? this.example(ast, name) : undefined
            return typeof whole === "string" ? change(whole) : place.value(change)
          }
        }))
      case "Suspend":
        return []
      case "Literal": {
        const { literal } = ast
        return typeof literal === "string" ? [{ where: "", value: (change) => change(literal) }] : []
      }
      case "StringKeyword":
      case "TemplateLiteral":
        return [{ where: "", value: (change) => change(String(this.example(ast, name))) }]
      case "TupleType":
        return ast.rest.flatMap(({ type }) => {
          const listed = known[name]
          const one = Array.isArray(listed) ? listed[0] : undefined
          return this.places(type, "").map(({ value, where }) => ({
            where: `[]${where}`,
            value: (change: Hostile) => [typeof one === "string" ? change(one) : value(change)]
          }))
        })
      case "TypeLiteral":
        return [
          ...ast.propertySignatures.flatMap(({ name, type }) =>
            this.places(type, String(name)).map(({ value, where }) => ({
              where: `.${String(name)}${where}`,
              value: (change: Hostile) => ({ ...Object(this.example(ast, "")), [name]: value(change) })
            }))
          ),
          ...ast.indexSignatures.flatMap(({ type }) => [
            {
              where: "{name}",
              value: (change: Hostile) => ({
                ...Object(this.example(ast, "")),
                [change("name")]: this.example(type, "")
              })
            },
            ...this.places(type, "").map(({ value, where }) => ({
              where: `{}${where}`,
              value: (change: Hostile) => ({ ...Object(this.example(ast, "")), name: value(change) })
            }))
          ])
        ]
      case "Union":
        return ast.types.flatMap((type) => this.places(type, name))
      case "UnknownKeyword":
      case "ObjectKeyword":
      case "Declaration":
        return [{ where: "(any)", value: anything }]
      default:
        return []
    }
  }
}

interface Declared {
  readonly route: Route
  readonly query: Option.Option<Schema.Schema.All>
  readonly body: Option.Option<Schema.Schema.All>
}

const declared: ReadonlyArray<Declared> = (() => {
  const all: Array<Declared> = []
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const route = routes.find((one) => keyOf(one) === keyOf(endpoint))
      if (route === undefined) throw new Error(`${keyOf(endpoint)} is in no table.`)
      const body = Option.orElse(endpoint.payloadSchema, () =>
        Option.fromNullable(undeclaredBodies[keyOf(endpoint)])
      )
      all.push({ route, query: endpoint.urlParamsSchema, body })
    }
  })
  // Those that end something come last.
  const last = ({ route: { method, path } }: Declared) => method === "DELETE" || path.endsWith("/logout")
  return [...all.filter((one) => !last(one)), ...all.filter(last)]
})()

/** How a text stands in an address; halves of pairs as the bytes that they would have. */
const inAddress = (text: string) =>
  Array.from(text, (character) => {
    const code = character.charCodeAt(0)
    if (character.length === 2 || code < 0xd800 || code > 0xdfff) return encodeURIComponent(character)
    return `%ED%${(0xa0 + ((code - 0xd800) >> 6)).toString(16)}%${(0x80 + (code & 0x3f)).toString(16)}`
  }).join("")

/** A form that no browser sends: raw texts, with lone surrogates as bytes that are not UTF-8. */
const formOf = (fields: ReadonlyArray<readonly [name: string, text: string]>, fileName: string) => {
  const part = (head: string, text: string) =>
    `--cut\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}\r\n`
  const text = [
    ...fields.map(([name, value]) => part(`name="${name}"`, value)),
    part(`name="file"; filename="${fileName}"`, `Some text ${fileName}.`),
    "--cut--\r\n"
  ].join("")
  return Buffer.concat(
    Array.from(text, (character) => {
      const code = character.charCodeAt(0)
      return character.length === 1 && code >= 0xd800 && code <= 0xdfff
        ? Buffer.from([0xed, 0xa0 + ((code - 0xd800) >> 6), 0x80 + (code & 0x3f)])
        : Buffer.from(character)
    })
  )
}

describe("Text that no store holds", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  let spoke: Spoke
  let owner: Owner
  let world: World
  let sender: Sender

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(folder, {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    })
    owner = await makeTenant(spoke, "first")
    world = await makeWorld(spoke, owner, "quagga")
    sender = new Sender(world)
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const ask = async (
    { method, path, permission, role, scope }: Route,
    address: string,
    body?: { readonly type: string; readonly bytes: string | Uint8Array }
  ) => {
    const operators = path.startsWith("/api/operator/")
    const headers = {
      ...(operators ? { authorization: `Bearer ${spoke.operatorToken}` } : {}),
      ...(scope === undefined ? {} : { authorization: `Bearer ${world.token}` }),
      ...(permission === undefined ? {} : { "x-api-key": world.key }),
      // Signing out ends a session.
      ...(permission === undefined && scope === undefined && role !== undefined
        ? { cookie: path.endsWith("/logout") ? await signIn(spoke, "first@example.com") : owner.cookie }
        : {}),
      ...(body === undefined ? {} : { "content-type": body.type }),
      ...csrf
    }
    const response = await fetch(`${spoke.url}${address}`, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(30_000),
      ...(body === undefined ? {} : { body: body.bytes })
    })
    const text = await response.text()
    // Ten experiments of an organisation may wait or run. One more would be refused for their number.
    const [experiment] = response.status === 201 ? (/"exp_\w+/u.exec(text) ?? []) : []
    if (experiment !== undefined)
      await fetch(`${spoke.url}/api/experiments/${experiment.slice(1)}/cancel`, {
        method: "POST",
        headers: { cookie: owner.cookie, ...csrf }
      })
    return { status: response.status, text }
  }

  /** The route's address, with real ids. */
  const addressOf = ({ method, path }: Route) =>
    path.replace(/:(\w+)/g, (parameter, name: string) => {
      const kind = files[`${method} ${path} ${parameter}`]
      const own: Readonly<Record<string, string>> = {
        agentId: world.ids.AgentId,
        jobId: world.ids.IngestionJobId,
        runId: world.ids.RunId,
        name: "ingestion"
      }
      const collection = /^\/(?:v1|api)\/(?:operator\/|manage\/v1\/)?([\w-]+)/.exec(path)?.[1] ?? ""
      const ids: Readonly<Record<string, string>> = {
        agents: world.ids.AgentId,
        keys: world.ids.KeyId,
        cases: world.ids.TestCaseId,
        experiments: world.ids.ExperimentId,
        corrections: world.ids.CorrectionId,
        tools: world.ids.ToolId,
        "webhook-endpoints": world.ids.WebhookId,
        webhooks: world.ids.WebhookId,
        budgets: world.ids.BudgetId,
        channels: world.ids.ChannelId,
        sources: world.ids.SourceId,
        "ingestion-jobs": world.ids.IngestionJobId,
        conversations: world.ids.ConversationId,
        "agent-runs": world.ids.RunId,
        "end-users": world.ids.EndUserId,
        users: world.ids.UserId,
        tenants: world.tenantId
      }
      return kind === undefined ? (own[name] ?? ids[collection] ?? "none_1") : world.ids[kind]
    })

  const broken = ({ status }: { readonly status: number }) => status >= 500 && status !== 503

  it("is never a 500 in an address", async () => {
    const found: Array<string> = []
    let tried = 0
    for (const { query, route } of declared) {
      const asked = [...route.path.matchAll(/:\w+/g)].flatMap(([parameter]) =>
        // Of nothing that there is: what removes something would remove it.
        Object.values(hostile).map((change) => route.path.replace(parameter, inAddress(change("none_1"))))
      )
      const places = Option.match(query, {
        onNone: () => [],
        onSome: ({ ast }) => sender.places(ast, "")
      })
      for (const { value } of places) {
        for (const change of Object.values(hostile)) {
          const parameters = Object.entries(Object(value(change))).map(
            ([name, given]) => `${name}=${inAddress(String(given))}`
          )
          asked.push(`${addressOf(route)}?${parameters.join("&")}`)
        }
      }
      if (route.method === "DELETE" && places.length > 0) throw new Error("Nothing here would be left.")
      for (const address of asked) {
        tried++
        const answer = await ask(route, address.replace(/:\w+/g, "none_1"))
        if (broken(answer)) found.push(`${route.method} ${address}: ${answer.status} ${answer.text}`)
      }
    }
    expect(found).toEqual([])
    expect(tried).toBeGreaterThan(250)
  }, 240_000)

  it("is never a 500 in a form", async () => {
    const found: Array<string> = []
    const forms = declared.filter(({ body }) =>
      Option.exists(body, ({ ast }) => HttpApiSchema.getMultipart(ast) !== undefined)
    )
    expect(forms.length).toBeGreaterThan(2)
    for (const { route } of forms) {
      for (const [what, change] of Object.entries({ usual: asItIs, ...hostile })) {
        const form = (fields: ReadonlyArray<readonly [string, string]>, fileName: string) =>
          ask(route, route.path, {
            type: "multipart/form-data; boundary=cut",
            bytes: formOf([["agentId", world.ids.AgentId], ...fields], fileName)
          })
        const answers = [
          await form([["name", change("Some name")]], "some.txt"),
          await form([[change("name"), "Some name"]], "some.txt"),
          await form([], change("some.txt")),
          await form([["agentId", change(world.ids.AgentId)]], "some.txt")
        ]
        for (const answer of answers) {
          if (broken(answer)) found.push(`${keyOf(route)} ${what}: ${answer.status} ${answer.text}`)
        }
        if (what === "usual" && !route.path.includes("bulk")) expect(answers[0]?.status).toBe(201)
      }
    }
    expect(found).toEqual([])
  }, 120_000)

  it("is never a 500 in lines, in messages of MCP and in answers that the hosted stream takes as a form", async () => {
    const odd = Object.values(hostile)
    for (const change of odd) {
      const operators = routes.find(({ path }) => path === "/api/operator/import/conversations")
      const message = { role: "user", content: change("Hello"), createdAt: "2024-05-01T09:30:00.000Z" }
      const line = JSON.stringify({
        id: change("one"),
        agentId: world.ids.AgentId,
        externalEndUserId: change("ada"),
        messages: [message]
      })
      if (operators === undefined) throw new Error("Nothing is imported any more.")
      const imported = await ask(operators, operators.path, { type: "application/x-ndjson", bytes: line })
      expect(imported.status).toBe(200)

      const streamed = routes.find(({ path }) => path === "/api/v1/chat/stream")
      if (streamed === undefined) throw new Error("Nothing is streamed any more.")
      const form = new FormData()
      form.append("message", "Hello")
      form.append("context", JSON.stringify(anything(change)))
      form.append("toolCredentials", JSON.stringify({ [change("slot")]: change("value") }))
      const whole = new Response(form)
      const answer = await ask(streamed, streamed.path, {
        type: whole.headers.get("content-type") ?? "",
        bytes: new Uint8Array(await whole.arrayBuffer())
      })
      expect([answer.status, answer.text.includes("data-done")]).toEqual([200, true])

      for (const params of [
        { name: change("retrieve"), arguments: { query: change("q"), filter: { sourceIds: [change("x")] } } },
        { name: "chat", arguments: { message: change("Hello"), conversationId: change("none_1") } },
        { name: "retrieve", arguments: anything(change) }
      ]) {
        const asked = { jsonrpc: "2.0", id: change("1"), method: "tools/call", params }
        const told = await fetch(`${spoke.url}/mcp`, {
          method: "POST",
          headers: { authorization: `Bearer ${world.key}`, "content-type": "application/json" },
          body: JSON.stringify(asked)
        })
        const text = await told.text()
        expect([told.status, text.includes("INTERNAL_ERROR")]).toEqual([200, false])
      }
    }
  }, 120_000)

  it("is never a 500 in a body, wherever a text or a JSON value may stand", async () => {
    const found: Array<string> = []
    const untried: Array<string> = []
    let tried = 0
    for (const { body, route } of declared) {
      // What a route of the management interface is given its twin of the dashboard is given too, and the handler is one.
      const twin = twinOf(keyOf(route))
      if (Option.isNone(body) || (twin !== keyOf(route) && keys.has(twin))) continue
      const { ast } = body.value
      if (HttpApiSchema.getMultipart(ast) !== undefined) continue
      const encoding = HttpApiSchema.getEncoding(ast)
      if (encoding.kind !== "Json") continue
      const base = { ...bodies[keyOf(route)]?.(), ...others[keyOf(route)] }
      for (const { value, where } of sender.places(ast, "")) {
        const [, field = ""] = /^\.(\w+)/.exec(where) ?? []
        const send = (change: Hostile) => {
          const whole = Object(value(change))
          const { [instead[field] ?? ""]: _, ...rest } = { ...base }
          return ask(route, addressOf(route), {
            type: "application/json",
            bytes: JSON.stringify(Array.isArray(whole) ? whole : { ...rest, ...companions[field], ...whole })
          })
        }
        // Else nothing is tried but the refusal of something else.
        const usual = await send(asItIs)
        if (usual.status === 400 || usual.status >= 500) {
          const place = `${keyOf(route)} ${where}`
          untried.push(excused.includes(place) ? place : `${place}: ${usual.status} ${usual.text}`)
        }
        for (const name of ["NUL behind", "half a pair behind"]) {
          tried++
          const answer = await send(hostile[name] ?? asItIs)
          if (broken(answer)) found.push(`${keyOf(route)} ${where} ${name}: ${answer.status}`)
        }
      }
    }
    expect(found).toEqual([])
    expect(new Set(untried)).toEqual(new Set(excused))
    expect(tried).toBeGreaterThan(300)
  }, 600_000)
})
