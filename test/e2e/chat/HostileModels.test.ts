/** Model providers that fail in every way there is, and clients that leave: what is told, what is kept, what goes on. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import type { StubAnswer } from "../../servers/ModelStub.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const text = "One two three four five six."

const failures: Readonly<Record<string, StubAnswer>> = {
  "answers 400": { status: 400 },
  "answers 401": { status: 401 },
  "answers 500": { status: 500 },
  "answers with a page": { raw: ["<html>Bad gateway</html>"], contentType: "text/html" },
  "answers with nothing": { raw: [] },
  "resets the connection": { silent: "reset" },
  "never answers": { silent: "hang" },
  "is cut off without a finish": { text, breaks: "cut" },
  "sends an error event": { text, breaks: "error" },
  "resets in the middle": { text, breaks: "reset" },
  "falls silent in the middle": { text, breaks: "hang" },
  "sends a frame that is no JSON": { text, breaks: "garbage" },
  "sends a frame of another shape": { text, breaks: "shape" }
}

const codeOf = (answer: StubAnswer) =>
  "silent" in answer && answer.silent === "hang"
    ? ([504, "RUNTIME_TIMEOUT"] as const)
    : "breaks" in answer && answer.breaks === "hang"
      ? ([504, "RUNTIME_TIMEOUT"] as const)
      : ([500, "TURN_FAILED"] as const)

for (const api of ["chat-completions", "responses"] as const)
  describe(`A turn at a provider of ${api}`, () => {
    const scope = Effect.runSync(Scope.make())
    const folder = temporaryFolder()
    let stub: ModelStub.ModelStub
    let spoke: Spoke

    beforeAll(async () => {
      stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
      spoke = await start(folder, {
        OPENAI_BASE_URL: stub.url,
        OPENAI_API_KEY: "sk-stub",
        SPOKE_OPENAI_API: api,
        SPOKE_EMBEDDING_MODEL: "offline",
        SPOKE_TURN_TIMEOUT: "3 seconds"
      })
    }, 60_000)

    beforeEach(() => stub.reset())

    afterAll(async () => {
      await spoke.stop()
      removeFolder(folder)
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })

    const post = (path: string, body: unknown, signal?: AbortSignal) =>
      fetch(`${spoke.url}${path}`, {
        method: "POST",
        headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal })
      })
    const partsOf = (streamed: string) => {
      const lines = streamed.split("\n").filter((line) => line.startsWith("data: "))
      expect(lines.at(-1)).toBe("data: [DONE]")
      return lines.slice(0, -1).map((line) => JSON.parse(line.slice(6)))
    }
    const trace = async (runId: string | null) =>
      (await spoke.request("GET", `/v1/agent-runs/${runId}?limit=100`)).body.data

    for (const [how, answer] of Object.entries(failures)) {
      const [status, code] = codeOf(answer)
      it(`that ${how} fails with ${status} ${code}, streamed and not, and never ends as a success`, async () => {
        stub.otherwise = answer
        const [complete, streamed] = await Promise.all([
          spoke.request("POST", "/v1/chat", { body: { message: "Hello?" } }),
          post("/v1/chat/stream", { message: "Hello?" }).then(async (response) => ({
            runId: response.headers.get("x-run-id"),
            status: response.status,
            parts: partsOf(await response.text())
          }))
        ])
        // By the time that the turn is told to have failed, its calls are over.
        expect(await Promise.all(stub.requests.map(({ over }) => over))).toHaveLength(stub.requests.length)
        expect([complete.status, complete.body.error.code]).toEqual([status, code])
        expect(streamed.status).toBe(200)
        const types: ReadonlyArray<string> = streamed.parts.map(({ type }) => type)
        expect(types.filter((type) => type === "error")).toHaveLength(1)
        expect(streamed.parts.find(({ type }) => type === "error").errorText).toBe(code)
        expect(types).not.toContain("finish")
        expect(types).not.toContain("data-done")
        const run = await trace(streamed.runId)
        expect([run.status, run.events.at(-1).type]).toEqual(["failed", "run.failed"])
        expect(JSON.stringify([complete.body, streamed.parts, run])).not.toMatch(/sk-|injected|Bad gateway/iu)
      }, 20_000)
    }

    /** Reads up to the first words of the reply, and leaves. */
    const leave = async (persist: boolean) => {
      const leaving = new AbortController()
      const response = await post("/v1/chat/stream", { message: "Hello?", persist }, leaving.signal)
      const decoder = new TextDecoder()
      let heard = ""
      for await (const chunk of response.body ?? []) {
        heard += decoder.decode(chunk, { stream: true })
        if (heard.includes('"text-delta"')) break
      }
      leaving.abort()
      return response.headers.get("x-run-id")
    }

    it("whose client leaves goes on to its end at the provider, and is kept", async () => {
      stub.otherwise = { text, gap: 30 }
      const runId = await leave(true)
      expect(await stub.requests[0]?.over).toBe(false)
      const run = await until(
        () => trace(runId),
        ({ status }) => status !== "running",
        10_000
      )
      expect([run.status, run.events.at(-1).type]).toEqual(["complete", "run.completed"])
    }, 20_000)

    it("whose client leaves ends its call at once when nothing of it is kept", async () => {
      // Without an end of its own: only the call's end ends it.
      stub.otherwise = { text, breaks: "hang" }
      const begun = performance.now()
      await leave(false)
      expect(await stub.requests[0]?.over).toBe(true)
      expect(performance.now() - begun).toBeLessThan(3_000)
    }, 20_000)

    it("after all of that is answered as ever", async () => {
      const { body, status } = await spoke.request("POST", "/v1/chat", { body: { message: "Hello?" } })
      expect([status, body.data.reply]).toEqual([200, "The stub says hello."])
    })
  })
