/**
 * One suite for every way to call Spoke: the library in its host's process, `spoke.fetch`, HTTP, and the typed client.
 * Intended differences:
 *
 * - A request that is aborted before its answer: `spoke.fetch` is a handler and answers 499, where the others reject with the
 *   signal's reason. After the answer has begun, its body ends with the reason everywhere.
 * - Keys: the library's methods need none. Tests of `UNAUTHORIZED` and `FORBIDDEN` are elsewhere.
 * - After the end: the library's methods reject with `CLOSED`, `spoke.fetch` answers 503, a server cannot be reached.
 * - An abort after the last byte: in Node 20 and 22 a body of `fetch` then never ends. The typed client works around that; code
 *   that uses `fetch` itself has to.
 * - Streams at shutdown: a server cuts unread connections after its grace; the library's stream can still be read up to that point.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { StreamPart } from "../../src/domain/chat/StreamPart.ts"
import { flood } from "./Script.ts"
import { type Calls, type System, transports } from "./Transports.ts"

const tea = "# Tea\n\nGreen tea is brewed at eighty degrees. Black tea is brewed with boiling water."

const all = async <A>(parts: AsyncIterable<A>) => {
  const found: Array<A> = []
  for await (const part of parts) found.push(part)
  return found
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => Promise.reject(new Error(`It was not rejected: ${JSON.stringify(value)}`)),
    (thrown: unknown) => thrown
  )

const textOf = (parts: ReadonlyArray<StreamPart>) =>
  parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join("")

const resultOf = (parts: ReadonlyArray<StreamPart>) =>
  parts.flatMap((part) => (part.type === "data-done" ? [part.data.result] : [])).at(-1)

/** Reads the stream until `text` has arrived; returns the iterator, which can go on, and the run's id. */
const until = async (parts: AsyncIterable<StreamPart>, text: string) => {
  const iterator = parts[Symbol.asyncIterator]()
  const seen: Array<StreamPart> = []
  let runId = ""
  while (!textOf(seen).includes(text)) {
    const { done, value } = await iterator.next()
    if (done === true) throw new Error(`The stream ended before it said ${text}`)
    seen.push(value)
    if (value.type === "data-agent-run-event") runId = value.data.runId
  }
  return { iterator, runId }
}

/** The messages of the newest conversation of `externalEndUserId`'s turn, once there are `count`. */
const settled = async ({ conversations, runs }: Calls, runId: string) => {
  await expect.poll(async () => (await runs.get(runId)).status).not.toBe("running")
  const run = await runs.get(runId)
  const { messages } = await conversations.get(run.conversationId ?? "")
  return { status: run.status, messages: messages.map(({ content }) => content) }
}

const leave = new Error("The caller has gone")

describe.each(transports)("Over $name", ({ name, open }) => {
  let system: System
  let calls: Calls

  beforeAll(async () => {
    system = await open()
    calls = system.calls
    const { source } = await calls.sources.upload({ file: tea, fileName: "tea.md" })
    await calls.sources.ready(source.id)
  })
  afterAll(() => system.close())

  it("a turn is answered with its citations, and stored", async () => {
    const { citations, conversationId = "", endUserId, reply } = await calls.chat({ message: "Green tea?" })
    expect([reply, citations.length, typeof endUserId]).toEqual(["Eighty degrees [1].", 1, "string"])
    const { messages } = await calls.conversations.get(conversationId)
    expect(messages.map(({ content, role }) => [role, content])).toEqual([
      ["user", "Green tea?"],
      ["assistant", "Eighty degrees [1]."]
    ])
  })

  it("a streamed turn has the parts of the protocol, and its result is what is stored", async () => {
    const parts = await all(calls.stream({ message: "Green tea?" }))
    const said = parts.map(({ type }) => type).filter((type) => type !== "data-agent-run-event")
    expect([...new Set(said)]).toEqual([
      "start",
      "start-step",
      "text-start",
      "text-delta",
      "source-document",
      "text-end",
      "finish-step",
      "finish",
      "data-done"
    ])
    const { conversationId = "", reply } = resultOf(parts) ?? {}
    expect(textOf(parts)).toBe(reply)
    const { messages } = await calls.conversations.get(conversationId)
    expect(messages.at(-1)?.content).toBe(reply)
  })

  it("a conversation goes on, for the one it belongs to", async () => {
    const first = await calls.chat({ message: "Green tea?", externalEndUserId: "someone" })
    const again = await calls.chat({ message: "Black tea?", externalEndUserId: " someone " })
    expect(again.endUserId).toBe(first.endUserId)
    const { conversationId = "" } = first
    await calls.chat({ message: "And cold?", conversationId })
    expect((await calls.conversations.get(conversationId)).messages).toHaveLength(4)
    const { conversations } = await calls.conversations.list({ endUserId: first.endUserId })
    expect(conversations.map(({ id }) => id).toSorted()).toEqual(
      [conversationId, again.conversationId].toSorted()
    )
    expect(await rejection(calls.chat({ message: "Hi", conversationId: "cnv_none" }))).toMatchObject({
      code: "CONVERSATION_NOT_FOUND",
      status: 404
    })
    expect(await rejection(calls.chat({ message: "Hi", endUserId: "usr_none" }))).toMatchObject({
      code: "END_USER_NOT_FOUND",
      status: 404
    })
    expect(
      await rejection(calls.chat({ message: "Hi", endUserId: "usr_none", externalEndUserId: "x" }))
    ).toMatchObject({ code: "VALIDATION_ERROR", status: 400 })
  })

  it("a turn that is not to be stored leaves nothing but its count", async () => {
    const before = (await calls.usage()).turns.used
    const result = await calls.chat({ message: "Green tea?", persist: false })
    expect([result.conversationId, result.endUserId]).toEqual([undefined, undefined])
    const parts = await all(calls.stream({ message: "Green tea?", persist: false }))
    const runIds = parts.flatMap((part) => (part.type === "data-agent-run-event" ? [part.data.runId] : []))
    expect(await rejection(calls.runs.get(runIds[0] ?? ""))).toMatchObject({ code: "NOT_FOUND" })
    expect((await calls.usage()).turns.used).toBe(before + 2)
  })

  it("runtime fields reach whom they are for, and nobody else", async () => {
    const runtime = {
      context: { plan: "visible-gold" },
      toolContext: { account: "hidden-4711" },
      toolCredentials: { crm: "hidden-token" }
    }
    const parts = await all(calls.stream({ message: "Green tea?", ...runtime }))
    const prompt = system.script.prompts.at(-1) ?? ""
    expect(prompt).toContain("visible-gold")
    expect(prompt).not.toContain("hidden-")
    expect(JSON.stringify(parts)).not.toMatch(/visible-gold|hidden-/u)
    const tooMuch = { context: { text: "x".repeat(70_000) } }
    expect(await rejection(calls.chat({ message: "Hi", ...tooMuch }))).toMatchObject({
      code: "VALIDATION_ERROR",
      status: 400
    })
  })

  it("a retrieval finds chunks by words and meaning", async () => {
    const { chunks } = await calls.retrieve({ query: "How is green tea brewed?", topK: 1 })
    expect(chunks).toHaveLength(1)
    expect(Object.keys(chunks[0] ?? {}).toSorted()).toEqual([
      "documentId",
      "id",
      "score",
      "sourceName",
      "text",
      "url"
    ])
    expect(chunks[0]?.text).toContain("eighty degrees")
  })

  it("sources are made, read, changed, read again and removed", async () => {
    const { source } = await calls.sources.upload({ file: "Cold brew takes a night.", fileName: "cold.md" })
    expect((await calls.sources.ready(source.id)).status).toBe("READY")
    expect((await calls.sources.update(source.id, { name: "Cold" })).name).toBe("Cold")
    expect((await calls.sources.list()).sources.map(({ name }) => name)).toContain("Cold")
    expect((await calls.sources.sync(source.id)).sourceId).toBe(source.id)
    await calls.sources.ready(source.id)
    expect(await calls.sources.delete(source.id)).toEqual({ id: source.id, deleted: true })
    expect(await rejection(calls.sources.get(source.id))).toMatchObject({ code: "NOT_FOUND", status: 404 })
  })

  it("what is refused says why, by code, status, issues and the request's id", async () => {
    const requestId = expect.stringMatching(/./u)
    expect(await rejection(calls.chat({ message: " " }))).toMatchObject({
      code: "VALIDATION_ERROR",
      status: 400,
      requestId,
      details: { issues: expect.any(Array) }
    })
    expect(await rejection(all(calls.stream({ message: " " })))).toMatchObject({
      code: "VALIDATION_ERROR",
      status: 400,
      requestId
    })
    expect(await rejection(calls.retrieve({ query: "x", topK: 21 }))).toMatchObject({
      code: "VALIDATION_ERROR"
    })
    expect(await rejection(calls.runs.get("run_none"))).toMatchObject({ code: "NOT_FOUND", status: 404 })
  })

  it("a turn that fails does so by code: of the call, or as the last part of its stream", async () => {
    expect(await rejection(calls.chat({ message: "fail" }))).toMatchObject({
      code: "TURN_FAILED",
      status: 500
    })
    const parts = await all(calls.stream({ message: "fail" }))
    expect(parts.at(-1)).toEqual({ type: "error", errorText: "TURN_FAILED" })
  })

  it("a call that is aborted before it starts is rejected with the reason, and nothing has begun", async () => {
    const before = await calls.usage()
    const prompts = system.script.prompts.length
    const signal = AbortSignal.abort(leave)
    expect(await rejection(calls.chat({ message: "Green tea?" }, { signal }))).toBe(leave)
    expect(await rejection(all(calls.stream({ message: "Green tea?" }, { signal })))).toBe(leave)
    expect(await rejection(calls.retrieve({ query: "Green tea?", topK: 1 }, { signal }))).toBe(leave)
    expect((await calls.usage()).turns.used).toBe(before.turns.used)
    expect(system.script.prompts).toHaveLength(prompts)
  })

  it("a turn whose caller goes before the first word is answered and stored all the same", async () => {
    for (const how of ["chat", "stream"] as const) {
      const name = `before-${how}`
      const caller = new AbortController()
      const externalEndUserId = name
      const request = { message: `silent ${name}`, externalEndUserId }
      const turn = how === "chat" ? calls.chat(request, caller) : all(calls.stream(request, caller))
      const rejected = rejection(turn)
      await system.script.begun(name)
      caller.abort(leave)
      expect(await rejected).toBe(leave)
      await system.script.release(name)
      const { endUserId } = await calls.chat({ message: "Green tea?", externalEndUserId, persist: false })
      await expect
        .poll(async () => (await calls.conversations.list({ endUserId })).conversations[0]?.messageCount)
        .toBe(2)
      expect(system.script.wasInterrupted(name)).toBe(false)
    }
  })

  it("a stream that is aborted ends at once with the reason; its turn is answered and stored all the same", async () => {
    const caller = new AbortController()
    const { iterator, runId } = await until(calls.stream({ message: "hold aborted" }, caller), "First.")
    const next = rejection(iterator.next())
    caller.abort(leave)
    expect(await next).toBe(leave)
    expect((await iterator.next()).done).toBe(true)
    expect((await calls.runs.get(runId)).status).toBe("running")
    await system.script.release("aborted")
    expect(await settled(calls, runId)).toEqual({
      status: "complete",
      messages: ["hold aborted", "First. Last."]
    })
  })

  it.skipIf(name === "HTTP")(
    "a stream that is aborted while nobody waits for its next part has nothing more to say",
    async () => {
      const caller = new AbortController()
      const { iterator, runId } = await until(calls.stream({ message: "hold idle" }, caller), "First.")
      await system.script.release("idle")
      await settled(calls, runId)
      caller.abort(leave)
      expect(await rejection(iterator.next())).toBe(leave)
    }
  )

  it("a stream that is left in the middle is answered and stored all the same", async () => {
    const { iterator, runId } = await until(calls.stream({ message: "hold left" }), "First.")
    await iterator.return?.()
    await system.script.release("left")
    expect((await settled(calls, runId)).messages).toEqual(["hold left", "First. Last."])
  })

  it("a turn that is not to be stored ends with its caller", async () => {
    const caller = new AbortController()
    const stream = calls.stream({ message: "hold gone-stream", persist: false }, caller)
    const { iterator } = await until(stream, "First.")
    const next = rejection(iterator.next())
    const chat = rejection(calls.chat({ message: "silent gone-chat", persist: false }, caller))
    await system.script.begun("gone-chat")
    caller.abort(leave)
    expect(await Promise.all([next, chat])).toEqual([leave, leave])
    await system.script.interrupted("gone-stream")
    await system.script.interrupted("gone-chat")
  })

  it("a retrieval ends with its caller", async () => {
    const caller = new AbortController()
    const name = `search-${crypto.randomUUID()}`
    const search = rejection(calls.retrieve({ query: `hold ${name}`, topK: 1 }, caller))
    await system.script.begun(name)
    caller.abort(leave)
    expect(await search).toBe(leave)
    await system.script.interrupted(name)
  })

  it("to stop a turn is something else: what was said is kept, and the stream is told to its end", async () => {
    const { iterator, runId } = await until(calls.stream({ message: "hold stopped" }), "First.")
    expect((await calls.runs.stop(runId)).status).toBe("complete")
    const rest: Array<StreamPart> = []
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
      rest.push(next.value)
    expect(resultOf(rest)?.reply).toBe("First. ")
    expect((await settled(calls, runId)).messages).toEqual(["hold stopped", "First. "])
    await system.script.interrupted("stopped")
  })

  it("a stream that was lost can be followed again", async () => {
    const caller = new AbortController()
    const { iterator, runId } = await until(calls.stream({ message: "hold followed" }, caller), "First.")
    caller.abort(leave)
    expect(await rejection(iterator.next())).toBe(leave)
    const again = all(calls.runs.follow(runId))
    await system.script.release("followed")
    expect(resultOf(await again)?.reply).toBe("First. Last.")
  })

  it("a stream that nobody reads is settled and stored, and can be read later", async () => {
    const before = (await calls.usage()).turns.used
    const { read } = await system.unread("Green tea?")
    await expect.poll(async () => (await calls.usage()).turns.used).toBe(before + 1)
    expect(resultOf(await read())?.reply).toBe("Eighty degrees [1].")
  })
})

describe.each(transports)("At the end of a service over $name", ({ open }) => {
  // Each has a service of its own, and mostly waits.
  it.concurrent(
    "calls under way are answered, streams are told to their end, and nothing more begins",
    async () => {
      const { calls, close, script } = await open()
      const chat = calls.chat({ message: "silent chat" })
      const { iterator, runId } = await until(calls.stream({ message: "hold stream" }), "First.")
      await script.begun("chat")
      const ended = close()
      await script.release("chat")
      await script.release("stream")
      expect((await chat).reply).toBe("Last.")
      const rest: Array<StreamPart> = []
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
        rest.push(next.value)
      expect([runId === "", resultOf(rest)?.reply]).toEqual([false, "First. Last."])
      await ended
      expect(await rejection(calls.usage())).toBeInstanceOf(Error)
    }
  )

  it.concurrent("streams that nobody reads hold nobody up", async () => {
    const { close, unread } = await open({ SPOKE_TURN_TIMEOUT: "8 seconds" })
    await unread("Green tea?")
    await unread("flood")
    await close()
  })

  it.concurrent(
    "a turn that nobody reads ends at its time limit, however much it has to say",
    async ({ expect }) => {
      const { calls, close, unread } = await open({ SPOKE_TURN_TIMEOUT: "3 seconds" })
      const { read, runId } = await unread("flood")
      await expect.poll(async () => (await calls.runs.get(runId)).status, { timeout: 30_000 }).toBe("failed")
      const parts = await read()
      expect(parts.at(-1)).toEqual({ type: "error", errorText: "RUNTIME_TIMEOUT" })
      expect(textOf(parts).length).toBeLessThan(flood.deltas * flood.delta.length)
      await close()
    }
  )
})
