/** The tables of identity and persistence, row by row, as a complete reply and as a stream. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

interface Told {
  readonly conversationId?: string
  readonly endUserId?: string
  readonly reply: string
}

interface Outcome {
  readonly result: Told
  readonly runId: string | null
  /** As streamed; empty for a complete reply. */
  readonly events: ReadonlyArray<object>
  readonly text: string
}

const dataDir = temporaryFolder()
let spoke: Spoke
let known: Told

const complete = async (fields: object): Promise<Outcome> => {
  const { body, status } = await spoke.request("POST", "/v1/chat", {
    body: { message: "What is a source?", ...fields }
  })
  expect(status).toBe(200)
  return { result: body.data, runId: null, events: [], text: body.data.reply }
}

const streamed = async (fields: object): Promise<Outcome> => {
  const response = await fetch(`${spoke.url}/v1/chat/stream`, {
    method: "POST",
    headers: { "x-api-key": spoke.apiKey, "content-type": "application/json" },
    body: JSON.stringify({ message: "What is a source?", ...fields })
  })
  expect(response.status).toBe(200)
  return read(response)
}

const read = async (response: Response): Promise<Outcome> => {
  const chunks = (await response.text())
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    // Chunks differ by type; each is asserted on by what it must have.
    // oxlint-disable-next-line typescript/no-explicit-any
    .map((frame): any => JSON.parse(frame.slice(6)))
  const { result } = chunks.find(({ type }) => type === "data-done").data
  expect(response.headers.get("x-end-user-id") ?? undefined).toBe(result.endUserId)
  return {
    result,
    runId: response.headers.get("x-run-id"),
    events: chunks.filter(({ type }) => type === "data-agent-run-event").map(({ data }) => data),
    text: chunks.map(({ type, delta }) => (type === "text-delta" ? delta : "")).join("")
  }
}

beforeAll(async () => {
  spoke = await start(dataDir)
  known = (await complete({ externalEndUserId: "matrix" })).result
})

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
})

const targets = {
  "no identity field": () => ({}),
  endUserId: () => ({ endUserId: known.endUserId }),
  externalEndUserId: () => ({ externalEndUserId: "matrix" }),
  conversationId: () => ({ conversationId: known.conversationId })
} as const

const rows = Object.keys(targets).flatMap((target) =>
  [true, false].flatMap((persist) => [
    { target, persist, how: "POST /v1/chat", ask: complete },
    { target, persist, how: "POST /v1/chat/stream", ask: streamed }
  ])
)

describe.each(rows)("$how with $target and persist $persist", ({ ask, persist, target }) => {
  it("resolves identity and conversation as the tables say, and answers with the reply", async () => {
    const fields = Object.entries(targets).find(([name]) => name === target)?.[1]() ?? {}
    const { result, runId, text } = await ask({ ...fields, persist })
    expect(text).toBe(result.reply)
    expect(typeof result.reply).toBe("string")
    if (target === "conversationId") {
      expect(result.conversationId).toBe(known.conversationId)
      expect(result.endUserId).toBeUndefined()
    } else {
      expect(result.conversationId !== undefined).toBe(persist)
      expect(result.conversationId).not.toBe(known.conversationId)
      if (target !== "no identity field") expect(result.endUserId).toBe(known.endUserId)
      else expect(result.endUserId !== undefined).toBe(persist)
    }
    if (ask === streamed) expect(runId !== null).toBe(persist)
  })
})

describe("What was streamed", () => {
  it("equals what is read back: the trace event by event, the reply from the conversation", async () => {
    const { events, result, runId, text } = await streamed({ conversationId: known.conversationId })
    const trace = await spoke.request("GET", `/v1/agent-runs/${runId}?limit=100`)
    expect(trace.body.data).toMatchObject({
      id: runId,
      status: "complete",
      conversationId: result.conversationId,
      hasMore: false,
      nextCursor: null
    })
    expect(trace.body.data.events).toEqual(events)
    const again = await fetch(`${spoke.url}/v1/chat/stream/${runId}`, {
      headers: { "x-api-key": spoke.apiKey }
    })
    expect(await read(again)).toMatchObject({ text, result })
  })
})
