/** Repeats of a turn with one Idempotency-Key over HTTP, and across the death of the process that ran it. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const scope = Effect.runSync(Scope.make())
const dataDir = temporaryFolder()
let stub: ModelStub.ModelStub
let spoke: Spoke

const begin = async () => {
  spoke = await start(dataDir, {
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub-4711",
    SPOKE_EMBEDDING_MODEL: "offline"
  })
}

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  await begin()
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => stub.reset())

const headers = (idempotencyKey: string) => ({ "idempotency-key": idempotencyKey })

const chat = (idempotencyKey: string, message = "Hello") =>
  spoke.request("POST", "/v1/chat", { body: { message }, headers: headers(idempotencyKey) })

const stream = (idempotencyKey: string) =>
  fetch(`${spoke.url}/v1/chat/stream`, {
    method: "POST",
    headers: {
      "x-api-key": spoke.apiKey,
      "content-type": "application/json",
      ...headers(idempotencyKey)
    },
    body: JSON.stringify({ message: "Hello" })
  })

const deltas = (text: string) =>
  [...text.matchAll(/"type":"text-delta","id":"[^"]+","delta":("(?:[^"\\]|\\.)*")/gu)]
    .map(([, delta = '""']) => JSON.parse(delta) as string)
    .join("")

const slow = { text: "One two three four five six.", gap: 100 }

describe("A turn with an Idempotency-Key", () => {
  it("is answered from the first turn on both routes, after a restart too", async () => {
    const first = await chat("both")
    const second = await stream("both")
    expect(second.headers.get("x-run-id")).toBe(first.body.data.runId)
    const text = await second.text()
    expect(deltas(text)).toBe(first.body.data.reply)
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
    await spoke.stop()
    await begin()
    const third = await chat("both")
    expect([third.body.data.reply, third.body.data.runId]).toEqual([
      first.body.data.reply,
      first.body.data.runId
    ])
    expect(stub.requests).toHaveLength(1)
    expect((await chat("both", "Another")).body.error.code).toBe("CONFLICT")
    expect((await chat("not visible ascii")).status).toBe(400)
  }, 60_000)

  it("is followed while it runs: the stream of the repeat is the reply", async () => {
    stub.otherwise = slow
    const first = await stream("running")
    await stub.request(0)
    const [one, two, whole] = await Promise.all([
      first.text(),
      stream("running").then((second) => second.text()),
      chat("running")
    ])
    expect([deltas(one), deltas(two), whole.body.data.reply]).toEqual([slow.text, slow.text, slow.text])
    expect(stub.requests).toHaveLength(1)
  }, 60_000)

  it("has a clear answer after its process was killed (-9), and is not run again", async () => {
    stub.otherwise = { silent: "hang" }
    const asked = chat("killed").catch(() => null)
    await stub.request(0)
    await spoke.kill()
    await asked
    stub.otherwise = { text: "Too late." }
    await begin()
    const repeated = await chat("killed")
    expect([repeated.status, repeated.body.error.code]).toEqual([500, "TURN_FAILED"])
    expect(repeated.body.error.message).toContain("stopped before the turn ended")
    expect(stub.requests).toHaveLength(1)
    expect((await chat("fresh")).body.data.reply).toBe("Too late.")
  }, 90_000)
})
