/** Personal data of customers on a real server: what its provider receives, and what each public route answers. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const scope = Effect.runSync(Scope.make())
const dataDir = temporaryFolder()
let stub: ModelStub.ModelStub
let spoke: Spoke
let team: Team
let key: string

const canaries = ["canary.person@mail.example", "+49 30 5550123", "4111 1111 1111 1111", "MB-998877"]
const message = `I am ${canaries.join(", ")}.`
const reply = `You are ${canaries.join(", ")}.`
const placeholders = "You are [email-1], [phone-1], [card-1], [member-1]."

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  spoke = await start(dataDir, { OPENAI_BASE_URL: stub.url, OPENAI_API_KEY: "sk-stub-4711" })
  team = await makeTeam(spoke)
  key = (await team.key({ permissions: ["*"] })).secret
  const masking = { patterns: [{ name: "member", pattern: "MB-\\d{6}" }] }
  const { body, status } = await team.owner("PATCH", `/api/agents/${team.agentId}`, { masking })
  expect(status).toBe(200)
  expect(body.data.agent.masking.kinds).toEqual(["email", "phone", "card"])
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => {
  stub.reset()
  stub.otherwise = { text: placeholders }
})

const expectNone = (text: string) => {
  for (const canary of canaries) expect(text).not.toContain(canary)
}

const sent = () => JSON.stringify(stub.requests.map(({ body, path }) => [path, body]))

const deltas = (frames: string) =>
  frames
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .map((frame) => JSON.parse(frame.slice("data: ".length)))

describe("Personal data of an agent that masks it", () => {
  it("is in the reply of every public route, and in nothing that the provider receives", async () => {
    const whole = await spoke.request("POST", "/v1/chat", { key, body: { message } })
    expect(whole.body.data.reply).toBe(reply)

    const stream = await fetch(`${spoke.url}/v1/chat/stream`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ message })
    })
    const parts = deltas(await stream.text())
    const streamed = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")
    expect([streamed, parts.at(-1).data.result.reply]).toEqual([reply, reply])

    for (const streams of [false, true]) {
      const completion = await fetch(`${spoke.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: team.agentId,
          stream: streams,
          messages: [
            { role: "user", content: message },
            { role: "assistant", content: reply },
            { role: "user", content: `Again: ${message}` }
          ]
        })
      })
      const text = await completion.text()
      const told = streams
        ? deltas(text)
            .map(({ choices }) => choices[0]?.delta?.content ?? "")
            .join("")
        : JSON.parse(text).choices[0].message.content
      expect(told).toBe(reply)
    }

    const { conversationId } = whole.body.data
    const again = await spoke.request("POST", "/v1/chat", { key, body: { message: "And?", conversationId } })
    expect(again.body.data.reply).toBe(reply)
    const stored = await spoke.request("GET", `/v1/conversations/${conversationId}/messages`, { key })
    expect(JSON.stringify(stored.body)).toContain(reply)
    expect(stub.requests.length).toBeGreaterThanOrEqual(5)
    expectNone(sent())
  })

  it("is counted in the trace and stands in no part of it, nor in the log, when a provider repeats what it refuses", async () => {
    const { body } = await spoke.request("POST", "/v1/chat", { key, body: { message } })
    const trace = await spoke.request("GET", `/v1/agent-runs/${body.data.runId}?limit=100`, { key })
    expectNone(JSON.stringify(trace.body))
    expect(JSON.stringify(trace.body)).toContain('"masking":{"card":1,"email":1,"phone":1,"member":1}')
    stub.otherwise = { status: 400, body: { error: { message: `Refused: ${message}`, type: "x" } } }
    const refused = await spoke.request("POST", "/v1/chat", { key, body: { message } })
    expect(refused.status).toBe(500)
    expectNone(JSON.stringify(refused.body))
    expectNone(spoke.output())
  })
})
