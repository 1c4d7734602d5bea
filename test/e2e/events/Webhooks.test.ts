/** Events out against a hostile receiver: none is missing, repeats share one id, each conversation's are in order. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { Webhook as Verifier } from "standardwebhooks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startCommand, removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

interface Seen {
  readonly id: string
  readonly path: string
  readonly type: string
  readonly runId: string
  readonly conversationId: string
  /** What it was answered. */
  readonly taken: boolean
}

/** What becomes of the first calls for each event; further ones are taken. */
type Fate = "error" | "redirect" | "cut" | "slow" | "large"
const fates: ReadonlyArray<Fate | undefined> = [
  "error",
  undefined,
  "redirect",
  "cut",
  "slow",
  "large",
  undefined
]

describe("Webhooks of a tenant", () => {
  const dataDir = temporaryFolder()
  const seen: Array<Seen> = []
  const headersOf = new Map<string, Http.IncomingHttpHeaders>()
  const bodies = new Map<string, string>()
  let events = 0
  const fateOf = new Map<string, Fate | undefined>()
  let strayed = 0

  const receiver = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const path = request.url ?? ""
      if (path === "/elsewhere") strayed++
      if (path === "/gone") return response.writeHead(410).end()
      // Never answers.
      if (path === "/dead") return
      const body = Buffer.concat(chunks).toString()
      const id = String(request.headers["webhook-id"])
      const { data, type } = JSON.parse(body)
      if (!fateOf.has(id)) fateOf.set(id, fates[events++ % fates.length])
      else fateOf.set(id, undefined)
      const fate = fateOf.get(id)
      seen.push({
        id,
        path,
        type,
        runId: data.runId,
        conversationId: data.conversationId,
        taken: fate === undefined
      })
      headersOf.set(id, request.headers)
      bodies.set(id, body)
      if (fate === "error") response.writeHead(500).end("Down for maintenance")
      else if (fate === "redirect") response.writeHead(307, { location: "/elsewhere" }).end()
      else if (fate === "cut") request.socket.destroy()
      else if (fate === "large") response.writeHead(200).end(Buffer.alloc(1_000_000, "x"))
      else if (fate === "slow") {
        response.writeHead(200)
        const drip = setInterval(() => response.write("."), 200)
        response.on("close", () => clearInterval(drip))
      } else response.writeHead(204).end()
      return undefined
    })
  })
  let spoke: Spoke
  let team: Team
  let address = ""

  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
    address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    // The endpoint outlives the server: its successor on that address gets the delivery.
    team = await makeTeam({ ...spoke, request: (...asked) => spoke.request(...asked) })
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    receiver.closeAllConnections()
    receiver.close()
    removeFolder(dataDir)
  })

  const endpoint = async (path: string, types = ["conversation.started", "turn.settled"]) => {
    const made = await team.owner("POST", "/api/webhook-endpoints", {
      url: `${address}${path}`,
      events: types
    })
    expect(made.status).toBe(201)
    return made.body.data as { webhook: { id: string }; secret: string }
  }

  it("are told of every turn in order, whatever they answer at first, across a kill", async () => {
    const { secret, webhook } = await endpoint("/hook")
    await endpoint("/dead", ["turn.settled"])
    const gone = await endpoint("/gone", ["turn.settled"])
    const { secret: key } = await team.key()
    const asked: Array<string> = []
    const say = async (conversationId?: string) => {
      const body = { message: "Hello", ...(conversationId === undefined ? {} : { conversationId }) }
      const answer = await spoke.request("POST", "/v1/chat", { key, body })
      expect(answer.status).toBe(200)
      asked.push(answer.body.data.runId)
      return String(answer.body.data.conversationId)
    }
    const conversations = await Promise.all(Array.from({ length: 4 }, () => say()))
    await Promise.all(conversations.map((id) => say(id)))
    await spoke.kill()
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    for (const id of conversations) await say(id)

    const taken = () =>
      seen.filter((one) => one.taken && one.type === "turn.settled").map(({ runId }) => runId)
    await until(
      async () => new Set(taken()).size,
      (count) => count === asked.length,
      150_000
    )
    expect(new Set(taken())).toEqual(new Set(asked))
    // One id for all repeats, and no event under two.
    const idsOf = new Map<string, Set<string>>()
    for (const { id, runId, type } of seen) {
      const name = `${type} ${runId}`
      if (type === "turn.settled") idsOf.set(name, (idsOf.get(name) ?? new Set()).add(id))
    }
    expect([...idsOf.values()].every((ids) => ids.size === 1)).toBe(true)
    for (const conversationId of conversations) {
      const told = seen.filter((one) => one.taken && one.conversationId === conversationId)
      const order = [...new Set(told.map(({ id }) => id))].map((id) => told.find((one) => one.id === id))
      expect(order.map((one) => one?.type)).toEqual([
        "conversation.started",
        "turn.settled",
        "turn.settled",
        "turn.settled"
      ])
      const runs = order.slice(1).map((one) => one?.runId ?? "")
      expect(runs.map((runId) => asked.indexOf(runId))).toEqual(
        runs.map((runId) => asked.indexOf(runId)).toSorted((a, b) => a - b)
      )
    }
    expect(strayed).toBe(0)
    const [id = ""] = bodies.keys()
    const headers = headersOf.get(id)
    expect(
      new Verifier(secret).verify(bodies.get(id) ?? "", {
        "webhook-id": id,
        "webhook-timestamp": String(headers?.["webhook-timestamp"]),
        "webhook-signature": String(headers?.["webhook-signature"])
      })
    ).toMatchObject({ type: expect.any(String) })

    const ended = await team.owner("GET", `/api/webhook-endpoints/${gone.webhook.id}`)
    expect(ended.body.data.webhook).toMatchObject({ status: "disabled", disabledReason: "gone" })
    const log = await team.owner("GET", `/api/webhook-endpoints/${webhook.id}/deliveries?limit=100`)
    expect(log.body.data.deliveries).toHaveLength(asked.length + conversations.length)
    expect(JSON.stringify(log.body.data)).not.toContain("whsec_")
  }, 240_000)

  it("never reach an address that the installation does not allow", async () => {
    const made = await team.owner("POST", "/api/webhook-endpoints", {
      url: "http://10.0.0.1/hook",
      events: ["turn.settled"]
    })
    const { id } = made.body.data.webhook
    await team.owner("POST", `/api/webhook-endpoints/${id}/test`)
    const log = await until(
      () => team.owner("GET", `/api/webhook-endpoints/${id}/deliveries`),
      ({ body }) => body.data.deliveries[0]?.attempts > 0
    )
    expect(log.body.data.deliveries[0]).toMatchObject({
      answerStatus: null,
      error: expect.stringMatching(/10\.0\.0\.1/)
    })
  })

  it("are the same for programs with an access token", async () => {
    const token = await team.owner("POST", "/api/tokens", { name: "CI", scopes: ["webhooks:write"] })
    const headers = { authorization: `Bearer ${token.body.data.secret}` }
    const manage = (method: string, path: string, body?: unknown) =>
      spoke.request(method, `/api/manage/v1/webhooks${path}`, {
        key: null,
        headers,
        ...(body === undefined ? {} : { body })
      })
    const made = await manage("POST", "", { url: `${address}/hook`, events: ["source.ready"] })
    expect(made.status).toBe(201)
    expect(made.body.data).toMatchObject({
      webhook: { id: expect.any(String), url: `${address}/hook`, events: ["source.ready"], status: "active" },
      secret: expect.stringMatching(/^whsec_/)
    })
    const { id } = made.body.data.webhook
    const rotated = await manage("POST", `/${id}/rotate`)
    expect(rotated.body.data.secret).not.toBe(made.body.data.secret)
    expect((await manage("PATCH", `/${id}`, { status: "disabled" })).body.data.webhook.status).toBe(
      "disabled"
    )
    expect((await manage("POST", `/${id}/test`)).status).toBe(409)
    expect((await manage("DELETE", `/${id}`)).status).toBe(200)
    expect((await manage("GET", `/${id}`)).status).toBe(404)
    const bad = await manage("POST", "", { url: "ftp://x", events: ["nothing"] })
    expect(bad.status).toBe(400)
  })

  it("are listened to and triggered on the command line, and forwarded to a local address with their signature", async () => {
    const token = await team.owner("POST", "/api/tokens", { name: "Listen", scopes: ["webhooks:write"] })
    const variables = {
      SPOKE_URL: spoke.url,
      SPOKE_TOKEN: String(token.body.data.secret),
      SPOKE_DATA_DIR: dataDir
    }
    const listener = startCommand(
      ["listen", "--event", "handoff.taken", "--forward-to", `${address}/local`],
      variables
    )
    try {
      const signing = await until(
        async () => /whsec_\S+/.exec(listener.output.stderr)?.[0],
        (secret) => secret !== undefined
      )
      const triggered = await run(["trigger", "handoff.taken"], variables)
      expect([triggered.code, triggered.stderr.trim()]).toEqual([
        0,
        "An example of handoff.taken was sent to a webhook."
      ])
      await until(
        async () => listener.output.stderr,
        (text) => text.includes("/local: ")
      )
      const { id = "" } = seen.find(({ path }) => path === "/local") ?? {}
      expect(listener.output.stdout).toContain(`handoff.taken ${id} {`)
      const sent = headersOf.get(id)
      expect(
        new Verifier(signing ?? "").verify(bodies.get(id) ?? "", {
          "webhook-id": id,
          "webhook-timestamp": String(sent?.["webhook-timestamp"]),
          "webhook-signature": String(sent?.["webhook-signature"])
        })
      ).toMatchObject({ type: "handoff.taken", data: { conversationId: "cnv_example", example: true } })
    } finally {
      await listener.stop()
    }
    const none = await run(["trigger", "handoff.taken"], variables)
    expect(none.stderr.trim()).toBe("No active webhook asks for handoff.taken.")
    const wrong = await run(["trigger", "turn.begun"], variables)
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      expect.stringContaining("It takes one of conversation.started")
    ])
  }, 60_000)
})
