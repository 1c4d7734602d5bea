/** The receivers under examples/receivers, against a real server, a Slack and a ticket system of ours. */
import { type ChildProcess, spawn } from "node:child_process"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { createInterface } from "node:readline"
import { Webhook as Signer } from "standardwebhooks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"
import { freePort } from "../../servers/FreePort.ts"

const secret = `whsec_${Buffer.from("a secret of these tests").toString("base64")}`
const examples = Path.resolve(import.meta.dirname, "../../../examples/receivers")

interface Told {
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: ReturnType<typeof JSON.parse>
}

describe("A receiver", () => {
  const folder = temporaryFolder()
  const told: Array<Told> = []
  /** What the next calls of the other service are answered; 200 when it is empty. */
  const answers: Array<[status: number, headers: Record<string, string>]> = []
  const service = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const [status, headers] = answers.shift() ?? [200, {}]
      if (status === 200)
        told.push({
          path: request.url ?? "",
          headers: request.headers,
          body: JSON.parse(Buffer.concat(chunks).toString())
        })
      response.writeHead(status, headers).end("ok")
    })
  })
  let url = ""
  const children = new Set<ChildProcess>()

  /** The process, and the address that it listens at. */
  const receiver = async (name: "slack" | "tickets", handled: string, key = secret, port = 0) => {
    const child = spawn(process.execPath, [Path.join(examples, `${name}.mjs`)], {
      env: {
        PATH: process.env["PATH"],
        PORT: String(port),
        SPOKE_WEBHOOK_SECRET: key,
        HANDLED_FILE: Path.join(folder, handled),
        SPOKE_APP_URL: "https://spoke.example.com",
        SLACK_WEBHOOK_URL: `${url}/slack`,
        TICKETS_URL: url,
        TICKETS_USER: "desk@example.com",
        TICKETS_TOKEN: "token"
      },
      stdio: ["ignore", "pipe", "inherit"]
    })
    children.add(child)
    const address = await new Promise<string>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`The receiver ended with ${code}.`)))
      createInterface(child.stdout).once("line", (line) => resolve(line.split(" ").at(-1) ?? ""))
    })
    const stop = () =>
      new Promise<number | null>((resolve) => {
        children.delete(child)
        child.once("exit", resolve)
        child.kill("SIGTERM")
      })
    return { address, stop }
  }

  const send = async (address: string, id: string, event: object, key = secret) => {
    const body = JSON.stringify({ timestamp: new Date().toISOString(), ...event })
    const now = new Date()
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
      "webhook-signature": new Signer(key).sign(id, now, body)
    }
    const answer = await fetch(address, { method: "POST", headers, body })
    await answer.arrayBuffer()
    return answer
  }

  beforeAll(async () => {
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
    url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  })

  afterAll(() => {
    for (const child of children) child.kill("SIGKILL")
    service.closeAllConnections()
    service.close()
    removeFolder(folder)
  })

  it("is told by a real server, and tells Slack", async () => {
    const dataDir = temporaryFolder()
    const spoke: Spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    try {
      const team = await makeTeam(spoke)
      const port = await freePort()
      const made = await team.owner("POST", "/api/webhook-endpoints", {
        url: `http://127.0.0.1:${port}/spoke`,
        events: ["handoff.requested"]
      })
      const { stop } = await receiver("slack", "real.txt", made.body.data.secret, port)
      await team.owner("POST", `/api/webhook-endpoints/${made.body.data.webhook.id}/test`)
      await until(
        () => Promise.resolve(told.map(({ body }) => body.text)),
        (texts) => texts.includes("Spoke reaches this channel."),
        30_000
      )
      await stop()
    } finally {
      await spoke.kill()
      removeFolder(dataDir)
    }
  })

  it("refuses what Spoke has not signed", async () => {
    const { address, stop } = await receiver("slack", "unsigned.txt")
    const other = `whsec_${Buffer.from("somebody else's").toString("base64")}`
    const before = told.length
    expect((await send(address, "evt_1", { type: "webhook.test", data: {} }, other)).status).toBe(401)
    expect((await fetch(address, { method: "POST", body: "{}" })).status).toBe(401)
    expect((await fetch(address)).status).toBe(405)
    expect((await fetch(address, { method: "POST", body: "x".repeat(2_000_000) })).status).toBe(413)
    expect(told).toHaveLength(before)
    expect(await stop()).toBe(0)
  })

  it("has an event sent again until Slack took it, and tells it once, across a restart", async () => {
    const first = await receiver("slack", "again.txt")
    const event = {
      type: "handoff.requested",
      data: { conversationId: "cnv_1", reason: "<!channel> Angry & loud" }
    }
    const before = told.length
    answers.push([429, { "retry-after": "7" }])
    const refused = await send(first.address, "evt_2", event)
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "7"])
    expect((await send(first.address, "evt_2", event)).status).toBe(204)
    expect((await send(first.address, "evt_2", event)).status).toBe(204)
    await first.stop()
    const second = await receiver("slack", "again.txt")
    expect((await send(second.address, "evt_2", event)).status).toBe(204)
    expect(told.slice(before).map(({ body }) => body.text)).toEqual([
      ":raising_hand: <https://spoke.example.com/app/conversations/cnv_1|A conversation> asks for a human. &lt;!channel&gt; Angry &amp; loud"
    ])
    await second.stop()
  })

  it("says something of each event that it is for, and takes the others", async () => {
    const { address, stop } = await receiver("slack", "all.txt")
    const before = told.length
    const events = {
      "turn.settled": { runId: "run_1" },
      "source.failed": { sourceId: "src_1" },
      "feedback.given": { conversationId: "cnv_1", rating: -1 },
      "budget.near": { limitNanoUsd: 1e11, percent: 80, period: "month", spentNanoUsd: 8.01e10 },
      "channel.failing": { agentId: "agt_1", channel: "whatsapp" },
      "channel.recovered": { agentId: "agt_1", channel: "whatsapp" },
      "gap.found": { agentId: "agt_1", count: 5, people: 3, runIds: [] }
    }
    for (const [place, [type, data]] of Object.entries(events).entries()) {
      expect((await send(address, `evt_all_${place}`, { type, data })).status).toBe(204)
    }
    const texts: ReadonlyArray<string> = told.slice(before).map(({ body }) => body.text)
    expect(texts).toHaveLength(Object.keys(events).length - 1)
    expect(texts.join("\n")).not.toContain("undefined")
    expect(texts[2]).toContain("$80.10 of $100.00")
    await stop()
  })

  it("opens one ticket for a conversation that asks for a human", async () => {
    const { address, stop } = await receiver("tickets", "tickets.txt")
    const before = told.length
    answers.push([500, {}])
    const event = { type: "handoff.requested", data: { conversationId: "cnv_7", reason: "A refund" } }
    expect((await send(address, "evt_3", event)).status).toBe(503)
    expect((await send(address, "evt_3", event)).status).toBe(204)
    expect((await send(address, "evt_4", { type: "turn.settled", data: {} })).status).toBe(204)
    const [ticket, ...others] = told.slice(before)
    expect(others).toEqual([])
    expect(ticket).toMatchObject({
      path: "/api/v2/tickets.json",
      headers: { "idempotency-key": "evt_3", authorization: expect.stringMatching(/^Basic /u) },
      body: {
        ticket: {
          external_id: "cnv_7",
          comment: { body: "A refund\n\nhttps://spoke.example.com/app/conversations/cnv_7" }
        }
      }
    })
    await stop()
  })
})
