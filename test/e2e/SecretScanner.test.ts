/**
 * Secrets of every kind go through a whole server at its most talkative, and then everything it has said, sent, shown and
 * stored is searched for them.
 */
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { search } from "../../src/testing/SecretScanner.ts"
import { filesBelow } from "../Archives.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { otherVariables, recordCommands, variablesOf } from "./Engines.ts"
import { ask, csrf, makeTenant, type Received, type Sent, signIn } from "./routes/RouteWorld.ts"
import { command, removeFolder, run, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

const canary = (name: string) => `canary-${name}-7d1c0a93e5f24b68c2`

/** Given by the operator. */
const variables = {
  SPOKE_SECRET: canary("master-secret"),
  SPOKE_OPERATOR_TOKEN: canary("operator"),
  OPENAI_API_KEY: canary("provider"),
  CHANNEL_APP_SECRET: canary("app"),
  CHANNEL_VERIFY_TOKEN: canary("verify"),
  BILLING_WEBHOOK_SECRET: canary("billing"),
  OTEL_EXPORTER_OTLP_HEADERS: `x-team=${canary("collector")}`
}
/** Given by tenants and their people. */
const theirs = {
  accessToken: canary("channel"),
  slot: canary("slot"),
  tool: canary("tool"),
  password: canary("password")
}
const wrong = canary("wrong")

/** What `read` returns, or `otherwise` where the running database has removed the file or folder since it was listed. */
const unlessRemoved = <A>(read: () => A, otherwise: A): A => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return otherwise
    throw error
  }
}

/** Every file below `folder`, except those that hold secrets on purpose. */
const filesOf = (folder: string): ReadonlyArray<string> =>
  unlessRemoved(() => Fs.readdirSync(folder, { withFileTypes: true }), []).flatMap((entry) => {
    const path = Path.join(folder, entry.name)
    if (entry.isDirectory()) return filesOf(path)
    return entry.isFile() && entry.name !== "secrets.json" && entry.name !== "credentials.json" ? [path] : []
  })

describe("No secret of the operator or of a tenant", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  const dataDir = Path.join(folder, "data")
  /** What left for others than those whom the secrets are for. */
  const collected: Array<string> = []
  const answers: Array<string> = []
  const tools: Array<string | undefined> = []
  let stub: ModelStub.ModelStub
  let spoke: Spoke
  let environment: Readonly<Record<string, string>> = {}
  let servers: Awaited<ReturnType<typeof recordCommands>> = null
  let key = ""
  let token = ""
  let webhook = { id: "", secret: "" }
  let cookie = ""

  const collector = Http.createServer((request, response) => {
    request.setEncoding("utf8").on("data", (text: string) => collected.push(text))
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"))
  })
  // Says back what it was given, as servers do when something goes wrong.
  const shop = Http.createServer((request, response) => {
    tools.push(request.headers.authorization)
    response.writeHead(request.url === "/fails" ? 500 : 200)
    response.end(`You sent ${request.headers.authorization}`)
  })
  const portOf = async (server: Http.Server) => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return (server.address() as AddressInfo).port
  }

  /** Asks, and keeps what is answered. */
  const say = async (method: string, path: string, sent: Sent = {}): Promise<Received> => {
    const received = await ask(spoke, method, path, sent)
    answers.push([received.status, ...[...received.headers].flat(), received.text].join("\n"))
    return received
  }
  const dataOf = async (received: Promise<Received>) => {
    const { status, text } = await received
    expect([status, status < 300]).toEqual([status, true])
    return JSON.parse(text).data
  }

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    environment = {
      ...variables,
      SPOKE_DATA_DIR: dataDir,
      OPENAI_BASE_URL: stub.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await portOf(collector)}`,
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_FETCH_ALLOW: "127.0.0.1",
      LOG_LEVEL: "trace"
    }
    spoke = await start(dataDir, environment)
    servers = await recordCommands(dataDir)
    environment = { ...environment, ...variablesOf(dataDir) }
    const owner = (await makeTenant(spoke, "canaries")).cookie
    const user = { email: "canaries@people.example", role: "owner", password: theirs.password }
    const added = await ask(spoke, "POST", "/api/users", { cookie: owner, headers: csrf, body: user })
    expect(added.status).toBe(201)
    cookie = await signIn(spoke, user.email, theirs.password)
    const mine = { cookie, headers: csrf }
    const { agent } = await dataOf(say("POST", "/api/agents", { ...mine, body: { name: "Canary" } }))
    // Shown this once, so that the answer is none of those that are searched.
    const made = await ask(spoke, "POST", `/api/agents/${agent.id}/keys`, {
      ...mine,
      body: { name: "All", permissions: ["*"], rateLimit: { requests: 60, window: 3_600 } }
    })
    key = JSON.parse(made.text).data.secret
    const access = await ask(spoke, "POST", "/api/tokens", { ...mine, body: { name: "All", scopes: ["*"] } })
    token = JSON.parse(access.text).data.secret
    const shopUrl = `http://127.0.0.1:${await portOf(shop)}`
    for (const [name, path, auth] of [
      ["look", "/", { kind: "bearer", slot: "shop" }],
      ["break", "/fails", { kind: "bearer", secret: theirs.tool }]
    ] as const) {
      const body = {
        name,
        description: "Looks",
        parameters: { type: "object", properties: {} },
        http: { method: "GET", url: `${shopUrl}${path}` },
        auth
      }
      await dataOf(say("POST", `/api/agents/${agent.id}/tools`, { ...mine, body }))
    }
    const hook = await ask(spoke, "POST", "/api/webhook-endpoints", {
      ...mine,
      body: { url: `${shopUrl}/events`, events: ["turn.settled"], payload: "full" }
    })
    const subscribed = JSON.parse(hook.text).data
    webhook = { id: subscribed.webhook.id, secret: subscribed.secret }
    const channel = { channel: "whatsapp", externalId: "pn_1", accessToken: theirs.accessToken }
    await dataOf(say("POST", `/api/agents/${agent.id}/channels`, { ...mine, body: channel }))
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    collector.close()
    shop.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  it("is in an answer, a log, a trace, a metric, the list of processes, the store, an archive or a diagnosis", async () => {
    const mine = { cookie, headers: csrf }
    const chat = { message: "Look it up", externalEndUserId: "ada", toolCredentials: { shop: theirs.slot } }
    const calls = [
      { name: "look", arguments: "{}" },
      { name: "break", arguments: "{}" }
    ]
    stub.script.push({ calls }, { text: "It is on its way." })
    expect((await say("POST", "/v1/chat", { key, body: chat })).status).toBe(200)
    expect(tools).toEqual(expect.arrayContaining([`Bearer ${theirs.slot}`, `Bearer ${theirs.tool}`]))
    stub.script.push({ calls }, { text: "It is on its way." })
    const streamed = await say("POST", "/v1/chat/stream", { key, body: chat })
    expect(streamed.text).toContain("on its way")
    await say("GET", `/v1/agent-runs/${streamed.headers.get("x-run-id")}`, { key })
    // A provider that says the key back, whole and in the middle of a reply.
    for (const answer of [{ status: 401 }, { status: 400 }] as const) {
      stub.script.push({ ...answer, body: { error: { message: `No key ${variables.OPENAI_API_KEY}` } } })
      await say("POST", "/v1/chat", { key, body: { message: "Again" } })
    }
    stub.script.push({ text: "Broken off in the middle", breaks: "garbage" })
    await say("POST", "/v1/chat/stream", { key, body: { message: "Again" } })

    const rpc = (name: string, given: unknown) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: given }
    })
    await say("POST", "/mcp", {
      headers: { authorization: `Bearer ${key}` },
      body: rpc("chat", { message: "Hi" })
    })
    await say("POST", "/mcp", { key, body: rpc("chat", { message: { [wrong]: wrong } }) })
    await say("POST", "/mcp", { headers: { authorization: `Bearer ${wrong}` }, body: {} })

    // Refused, wherever a secret may stand.
    for (const path of ["/v1/chat", "/v1/retrieve", "/v1/sources", "/nothing", "/mcp"]) {
      await say("POST", path, { key: wrong, body: { message: wrong } })
      await say("GET", `${path}?key=${wrong}`, { headers: { cookie: `spoke_session=${wrong}` } })
      await say("POST", path, { key, body: { toolCredentials: wrong, [wrong]: wrong } })
    }
    await say("POST", "/api/auth/login", {
      headers: csrf,
      body: { email: "canaries@example.com", password: wrong }
    })
    const bearer = { authorization: `Bearer ${token}` }
    expect((await say("GET", "/api/manage/v1/agents", { headers: bearer })).status).toBe(200)
    await say("GET", `/api/manage/v1/agents?token=${token}`)
    await say("POST", "/api/manage/v1/agents", { headers: bearer, body: { name: { [token]: token } } })
    await say("POST", "/v1/chat", { headers: bearer, body: { message: "Hi" } })
    await say("GET", "/api/operator/tenants", { headers: { authorization: `Bearer ${wrong}` } })
    for (const path of ["whatsapp", "messenger", "billing"]) {
      const signed = { "x-hub-signature-256": `sha256=${wrong}`, "stripe-signature": `t=1,v1=${wrong}` }
      await say("POST", `/api/webhooks/${path}`, { headers: signed, body: { object: wrong } })
      await say("GET", `/api/webhooks/${path}?hub.mode=subscribe&hub.verify_token=${wrong}&hub.challenge=1`)
    }
    // Until the key is used up.
    const last = await until(
      () => say("GET", "/v1/usage", { key }),
      ({ status }) => status === 429
    )
    expect(last.headers.get("ratelimit-remaining")).toBe("0")
    const listed = [
      "/api/agents",
      "/api/audit",
      "/api/tokens",
      "/api/channels",
      "/api/auth/me",
      "/api/usage",
      "/metrics",
      "/readyz"
    ]
    for (const path of [
      ...listed,
      "/openapi.json",
      "/openapi.full.json",
      "/openapi.compact.json",
      "/docs",
      "/",
      "/widget.js",
      "/widget-markdown.js"
    ]) {
      await say("GET", path, mine)
    }
    const [agent] = (await dataOf(say("GET", "/api/agents", mine))).agents
    await until(
      () => say("GET", `/api/webhook-endpoints/${webhook.id}/deliveries`, mine),
      ({ text }) => text.includes('"attempts":1')
    )
    await say("GET", "/api/webhook-endpoints", mine)
    for (const what of ["keys", "tools", "channels"])
      await say("GET", `/api/agents/${agent.id}/${what}`, mine)

    const processes = Fs.readdirSync("/proc").filter((name) => /^\d+$/u.test(name))
    const commands = processes.map((pid) => {
      try {
        return Fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")
      } catch {
        return ""
      }
    })
    expect(commands.some((line) => line.includes("dist/main.js"))).toBe(true)
    await until(
      () => Promise.resolve(collected.join("")),
      (text) => text.includes("resourceSpans") && text.includes("resourceLogs")
    )
    expect(await spoke.stop()).toBe(0)

    const archive = Path.join(folder, "archive")
    const exported = await run(["export", archive], environment)
    expect([exported.code, exported.stderr.length > 0]).toEqual([0, true])
    const examined = await run(["doctor"], environment)
    const unopened = await run(["import", archive], {
      ...environment,
      ...(await otherVariables(dataDir)),
      SPOKE_DATA_DIR: Path.join(folder, "other"),
      SPOKE_SECRET: canary("another-master")
    })
    expect(unopened.code).toBe(1)

    // In an embedded store all is in the data directory.
    const held = await servers?.stop()
    const places: ReadonlyArray<readonly [string, string]> = [
      ["answers", answers.join("\n")],
      ["output", spoke.output()],
      ["telemetry", collected.join("\n")],
      ["processes", commands.join("\n")],
      [
        "archive",
        filesBelow(archive)
          .map(({ bytes }) => bytes.toString("latin1"))
          .join("\n")
      ],
      ...[exported, examined, unopened].flatMap(({ stderr, stdout }, place) => [
        [`command ${place}`, `${stdout}\n${stderr}`] as const
      ]),
      ...(held === undefined
        ? []
        : [
            ["commands to Redis", held.commands] as const,
            ["values in Redis", held.values] as const,
            ["rows", held.rows] as const
          ]),
      ...[dataDir, ...(held === undefined ? [] : [held.folder])]
        .flatMap(filesOf)
        .map((file) => [file, unlessRemoved(() => Fs.readFileSync(file, "latin1"), "")] as const)
    ]
    // What is searched is what it is taken for.
    expect(places.length).toBeGreaterThan(100)
    expect(places.find(([name]) => name === "answers")?.[1]).toContain("on its way")
    expect(places.find(([name]) => name === "output")?.[1]).toContain("requestId")
    expect(places.find(([name]) => name === "archive")?.[1]).toContain("canaries@example.com")
    const stored = held?.folder ?? dataDir
    expect(
      places.some(([name, text]) => name.startsWith(stored) && text.includes("canaries@example.com"))
    ).toBe(true)
    if (held !== undefined) {
      expect(held.rows).toContain("canaries@example.com")
      expect(held.commands).toContain("publish")
      // The counter of a rate limit, which lasts for an hour.
      expect(held.values).toContain("spoke:rate:")
    }

    const [, session = ""] = cookie.split("=")
    const collectorsOwn = canary("collector")
    const secrets = [
      ...Object.values(variables).filter((value) => !value.includes(collectorsOwn)),
      ...Object.values(theirs),
      collectorsOwn,
      canary("another-master"),
      wrong,
      key,
      token,
      webhook.secret,
      webhook.secret.slice("whsec_".length),
      session
    ]
    expect(secrets.every((secret) => secret.length > 15)).toBe(true)
    expect(search(Object.fromEntries(secrets.entries()), places)).toEqual([])
  }, 300_000)

  it.runIf(process.platform === "linux")(
    "stays in the list of processes where it is an argument",
    async () => {
      const { spawn } = await import("node:child_process")
      const child = spawn(process.execPath, [command, "mcp", "--url", "http://127.0.0.1:9", "--key", wrong], {
        stdio: ["pipe", "ignore", "ignore"]
      })
      try {
        const line = await until(
          () => Promise.resolve(Fs.readFileSync(`/proc/${child.pid}/cmdline`, "utf8")),
          (text) => text.includes("***")
        )
        expect(line).not.toContain(wrong)
        expect(line).toContain("--key ***")
      } finally {
        child.kill("SIGKILL")
      }
    }
  )
})
