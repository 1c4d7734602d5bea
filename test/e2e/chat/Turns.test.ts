/** Turns of a slow, silent or failing model on a real server, and what becomes of them when the server ends. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { production, removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const scope = Effect.runSync(Scope.make())
let stub: ModelStub.ModelStub
const dataDir = temporaryFolder()
let spoke: Spoke

const begin = async () => {
  stub.reset()
  spoke = await start(dataDir, {
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub-4711",
    SPOKE_EMBEDDING_MODEL: "offline",
    SPOKE_TURN_TIMEOUT: "3 seconds",
    SPOKE_RUNTIME_DATA: "disabled",
    // Four processes take longer than one to answer what is asked in it.
    SPOKE_DRAIN_DELAY: production ? "3 seconds" : "700 millis"
  })
}

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  await begin()
})

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => stub.reset())

const slow = { text: "One two three four five six seven eight.", gap: 150 }

const chat = (body: object) => spoke.request("POST", "/v1/chat", { body: { message: "Hello", ...body } })

const stream = (body: object) =>
  fetch(`${spoke.url}/v1/chat/stream`, {
    method: "POST",
    headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
    body: JSON.stringify({ message: "Hello", ...body })
  })

/** Turns that ended so, at whichever server. */
const counted = async (outcome: string) => {
  const texts = await Promise.all(spoke.each.map(async (url) => (await fetch(`${url}/metrics`)).text()))
  const line = new RegExp(`^spoke_turns_total\\{outcome="${outcome}"\\} (\\d+)$`, "mu")
  return texts.map((text) => Number(line.exec(text)?.[1])).reduce((sum, count) => sum + count, 0)
}

const seen = (count: number) =>
  until(
    async () => stub.requests.length,
    (length) => length >= count,
    10_000
  )

describe("A turn whose model", () => {
  it("fails is 500 TURN_FAILED without internal details, one that is silent 504 RUNTIME_TIMEOUT", async () => {
    for (const status of [400, 401, 403, 404, 429, 500, 503]) {
      stub.otherwise = { status, body: { error: { message: "internal-detail", code: "x" } } }
      const { body, status: answered } = await chat({})
      expect([status, answered, body.error.code]).toEqual([status, 500, "TURN_FAILED"])
      expect(JSON.stringify(body)).not.toContain("internal-detail")
    }
    stub.otherwise = { silent: "hang" }
    const late = await chat({})
    expect([late.status, late.body.error.code]).toEqual([504, "RUNTIME_TIMEOUT"])
    const streamed = await stream({})
    expect(streamed.status).toBe(200)
    const text = await streamed.text()
    expect(text).toContain('{"type":"error","errorText":"RUNTIME_TIMEOUT"}')
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true)
    expect(text).not.toContain("data-done")
    stub.otherwise = { text: "Well." }
    // A failed turn appends the user's message alone; the conversation goes on.
    for (const field of ["context", "toolContext", "toolCredentials"]) {
      const refused = await chat({ [field]: {} })
      expect([refused.status, refused.body.error.code]).toEqual([503, "RUNTIME_DATA_UNAVAILABLE"])
      const first = await chat({ [field]: {}, conversationId: "cnv_unknown" })
      expect(first.status).toBe(503)
    }
    expect((await chat({})).body.data.reply).toBe("Well.")
    expect(spoke.output()).not.toContain("sk-stub-4711")
    expect([await counted("failed"), await counted("timed_out"), await counted("complete")]).toEqual([
      7, 2, 1
    ])
  }, 40_000)

  it("is slow is settled though its client goes away, and the next one reads what was said", async () => {
    const { conversationId } = (await chat({ message: "First question" })).body.data
    stub.otherwise = slow
    const leaving = new AbortController()
    const before = stub.requests.length
    const response = await fetch(`${spoke.url}/v1/chat/stream`, {
      method: "POST",
      headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
      body: JSON.stringify({ message: "Second question", conversationId }),
      signal: leaving.signal
    })
    expect(response.status).toBe(200)
    await seen(before + 1)
    leaving.abort()
    stub.otherwise = { text: "Fine." }
    // It waits for its turn: the one that was left is settled first.
    expect((await chat({ message: "Third question", conversationId })).status).toBe(200)
    const heard = JSON.stringify(stub.requests.at(-1)?.body)
    for (const words of ["First question", "Second question", slow.text, "Third question"]) {
      expect(heard).toContain(words)
    }
  }, 40_000)
})

describe("SIGTERM", () => {
  it("answers 503 on /readyz at once, serves until the drain delay is over, settles streams, exits 0", async () => {
    const { conversationId } = (await chat({})).body.data
    const { length } = stub.requests
    stub.otherwise = { ...slow, gap: 200 }
    const streaming = await stream({ conversationId })
    await seen(length + 1)
    const ended = spoke.stop()
    const ready = await until(
      () => spoke.request("GET", "/readyz"),
      ({ status }) => status === 503,
      600
    )
    expect(ready.body.error.code).toBe("SERVICE_UNAVAILABLE")
    expect((await spoke.request("GET", "/healthz")).status).toBe(200)
    expect((await spoke.request("GET", "/v1/sources")).status).toBe(200)
    const text = await streaming.text()
    expect(text).toContain('"type":"data-done"')
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true)
    expect(await ended).toBe(0)
    await expect(spoke.request("GET", "/healthz")).rejects.toThrow("fetch failed")
    stub.otherwise = { text: "Welcome back." }
    await begin()
    expect((await chat({ conversationId, message: "Again" })).status).toBe(200)
    expect(JSON.stringify(stub.requests.at(-1)?.body)).toContain(slow.text)
  }, 40_000)
})

describe("A process killed (-9) during a turn", () => {
  // One of several cannot know at once that another is dead: its lease has to run out.
  const timeoutMs = production ? 40_000 : 5_000
  const name = production ? "within half a minute" : "at once"

  it(`leaves no run running: started again the conversation continues ${name}`, async () => {
    const { conversationId } = (await chat({ message: "First question" })).body.data
    const { length } = stub.requests
    stub.otherwise = { silent: "hang" }
    const cut = stream({ conversationId, message: "Lost question" }).then((response) => response.text())
    cut.catch(() => undefined)
    await seen(length + 1)
    await spoke.kill()
    await expect(cut).rejects.toThrow(/terminated|fetch failed/)
    await begin()
    stub.otherwise = { text: "Here again." }
    const began = performance.now()
    const answer = await until(
      () => chat({ conversationId, message: "Next question" }),
      ({ status }) => status === 200 || !production,
      timeoutMs
    )
    expect([answer.status, answer.body.data.reply]).toEqual([200, "Here again."])
    expect(performance.now() - began).toBeLessThan(timeoutMs)
    const heard = JSON.stringify(stub.requests.at(-1)?.body)
    for (const words of ["First question", "Lost question", "Next question"]) expect(heard).toContain(words)
  }, 90_000)
})
