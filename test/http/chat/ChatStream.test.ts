import { layer } from "@effect/vitest"
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Mailbox from "effect/Mailbox"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { expect } from "vitest"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { ConversationNotActive, RuntimeTimeout, TurnFailed } from "../../../src/domain/Errors.ts"
import { keyHeader, layer as PublicServer, Script, turn } from "../PublicServer.ts"
import { expectError, TestServer } from "../TestServer.ts"
import { chunksOf, event, parts, type Parts, result, textDelta, types } from "./UiStream.ts"

const streamOf = (script: Script["Type"], stream: Parts, changes: Parameters<typeof turn>[1] = {}) =>
  Ref.set(script.start, () => Effect.succeed(turn(stream, changes)))

const post = (key: string, body: unknown = { message: "Hi" }) =>
  Effect.flatMap(TestServer, ({ call }) => call("POST", "/v1/chat/stream", { headers: keyHeader(key), body }))

layer(PublicServer, { excludeTestServices: true })("POST /v1/chat/stream", (it) => {
  it.effect("answers with the headers of the protocol and of the turn", () =>
    Effect.gen(function* () {
      yield* streamOf(yield* Script, Stream.fromIterable(parts))
      const { headers, status, text } = yield* post("spk_all")
      expect(status).toBe(200)
      expect(headers.get("content-type")).toBe("text/event-stream")
      expect(headers.get("x-vercel-ai-ui-message-stream")).toBe("v1")
      expect(headers.get("x-accel-buffering")).toBe("no")
      expect(headers.get("cache-control")).toBe("no-cache, no-transform")
      expect(headers.get("x-run-id")).toBe("run_1")
      expect(headers.get("x-end-user-id")).toBe("usr_1")
      expect(headers.get("x-request-id")).toMatch(/^req_/)
      expect(text.startsWith(": stream-open\n\n")).toBe(true)
    })
  )

  it.effect("names no run and no end user if the turn has none", () =>
    Effect.gen(function* () {
      yield* streamOf(yield* Script, Stream.fromIterable(parts), { runId: null, endUserId: null })
      const { headers } = yield* post("spk_all")
      expect([headers.has("x-run-id"), headers.has("x-end-user-id")]).toEqual([false, false])
    })
  )

  it.effect("sends the parts in the order of the protocol, text in its boundaries, data-done last", () =>
    Effect.gen(function* () {
      yield* streamOf(yield* Script, Stream.fromIterable(parts))
      const { text } = yield* post("spk_all")
      const chunks = yield* Effect.promise(() => chunksOf(text))
      expect(types(chunks)).toEqual([
        "start",
        "data-agent-run-event",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-available",
        "tool-output-available",
        "tool-output-available",
        "tool-input-available",
        "tool-output-error",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "source-url",
        "source-document",
        "text-end",
        "finish-step",
        "data-agent-run-event",
        "file",
        "finish",
        "data-done"
      ])
      expect(chunks.at(-1)?.["data"]).toEqual({ result: JSON.parse(JSON.stringify(result)) })
    })
  )

  it.effect(
    "shows a key with trace_read everything, and a key with only chat neutral events and empty tools",
    () =>
      Effect.gen(function* () {
        yield* streamOf(yield* Script, Stream.fromIterable(parts))
        const full = (yield* post("spk_all")).text
        expect(full).toContain("Looked up order 4711")
        expect(full).toContain('"payload":{"order":"operator-only"}')
        expect(full).toContain("operator-only: no route")
        expect(full).toContain('"output":{"progress":"operator-only: half of it"},"preliminary":true')
        const { text } = yield* post("spk_chat")
        expect(text).not.toMatch(/operator-only|4711|payload/)
        const chunks = yield* Effect.promise(() => chunksOf(text))
        const tools = chunks.filter(({ type }) => type.startsWith("tool-"))
        expect(tools.map(({ input, output, errorText }) => input ?? output ?? errorText)).toEqual([
          {},
          {},
          {},
          "The tool did not answer."
        ])
        const seen = chunks.find(({ type }) => type === "data-agent-run-event")
        expect(Object.keys(seen?.["data"] ?? {}).sort()).toEqual([
          "id",
          "label",
          "runId",
          "sequence",
          "status",
          "timestamp",
          "type"
        ])
      })
  )

  it.effect("is read by the real client: text, sources, tools and data-done arrive in its message", () =>
    Effect.gen(function* () {
      yield* streamOf(yield* Script, Stream.fromIterable(parts))
      const { url } = yield* TestServer
      const { last, transient } = yield* Effect.promise(async () => {
        const transport = new DefaultChatTransport({
          api: `${url}/v1/chat/stream`,
          headers: keyHeader("spk_all"),
          prepareSendMessagesRequest: () => ({ body: { message: "Hi" } })
        })
        const stream = await transport.sendMessages({
          trigger: "submit-message",
          chatId: "chat",
          messageId: undefined,
          messages: [],
          abortSignal: undefined
        })
        const transient: Array<UIMessageChunk> = []
        const kept = stream.pipeThrough(
          new TransformStream<UIMessageChunk, UIMessageChunk>({
            transform: (chunk, controller) => {
              if (chunk.type === "data-agent-run-event") transient.push(chunk)
              controller.enqueue(chunk)
            }
          })
        )
        let last: UIMessage | undefined
        for await (const message of readUIMessageStream({ stream: kept, terminateOnError: true }))
          last = message
        return { last, transient }
      })
      expect(transient).toHaveLength(2)
      expect(last?.parts.map(({ type }) => type)).toEqual([
        "step-start",
        "text",
        "dynamic-tool",
        "dynamic-tool",
        "step-start",
        "text",
        "source-url",
        "source-document",
        "file",
        "data-done"
      ])
      const text = last?.parts.flatMap((part) => (part.type === "text" ? [part.text] : []))
      expect(text).toEqual(["Let me look. ", "Hello there"])
      expect(last?.parts.at(-1)).toMatchObject({
        data: { result: { reply: "Hello there", conversationId: "cnv_1" } }
      })
    })
  )

  it.effect("answers a request that is refused before the turn begins with a JSON error, not a stream", () =>
    Effect.gen(function* () {
      const { start } = yield* Script
      yield* Ref.set(start, () => Effect.fail(new ConversationNotActive({ message: "It is closed." })))
      const answer = yield* post("spk_all")
      expectError(answer, 409, "CONVERSATION_NOT_ACTIVE")
      expect(answer.headers.get("content-type")).toBe("application/json")
      expectError(yield* post("spk_all", { message: "" }), 400, "VALIDATION_ERROR")
      expectError(
        yield* post("spk_all", { message: "Hi", conversationId: "a", endUserId: "b" }),
        400,
        "VALIDATION_ERROR"
      )
    })
  )

  it.effect("ends a turn that fails while running with one error part and [DONE], never data-done", () =>
    Effect.gen(function* () {
      const script = yield* Script
      const begun = Stream.fromIterable(parts.slice(0, 4))
      const endings: ReadonlyArray<readonly [Parts, string]> = [
        [Stream.fail(new TurnFailed({ message: "secret" })), "TURN_FAILED"],
        [Stream.fail(new RuntimeTimeout({ message: "secret" })), "RUNTIME_TIMEOUT"],
        [Stream.die(new Error("secret")), "TURN_FAILED"],
        [Stream.failCause(Cause.interrupt(FiberId.none)), "TURN_FAILED"],
        [Stream.empty, "TURN_FAILED"],
        [
          Stream.fromIterable<TurnPart>([
            textDelta("x"),
            { _tag: "RunEvent", event: { ...event, payload: { big: 1n } } }
          ]),
          "TURN_FAILED"
        ]
      ]
      for (const [ending, code] of endings) {
        yield* streamOf(script, Stream.concat(begun, ending))
        const { status, text } = yield* post("spk_all")
        expect(status).toBe(200)
        const chunks = yield* Effect.promise(() => chunksOf(text))
        expect(chunks.filter(({ type }) => type === "error")).toEqual([{ type: "error", errorText: code }])
        expect(types(chunks).at(-1)).toBe("error")
        expect(types(chunks)).not.toContain("data-done")
        expect(text).not.toContain("secret")
      }
    })
  )

  it.effect("releases the turn when the client disconnects, and the turn continues", () =>
    Effect.gen(function* () {
      const script = yield* Script
      const { url } = yield* TestServer
      const released = yield* Deferred.make<void>()
      const mailbox = yield* Mailbox.make<TurnPart, TurnFailed>({ capacity: 4 })
      yield* streamOf(
        script,
        Mailbox.toStream(mailbox).pipe(
          Stream.ensuring(Effect.zipRight(mailbox.shutdown, Deferred.succeed(released, undefined)))
        )
      )
      yield* mailbox.offer(textDelta("Hello"))
      yield* Effect.promise(async () => {
        const controller = new AbortController()
        const response = await fetch(`${url}/v1/chat/stream`, {
          method: "POST",
          headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
          body: '{"message":"Hi"}',
          signal: controller.signal
        })
        await response.body?.getReader().read()
        controller.abort()
      })
      yield* Deferred.await(released)
      // The turn's own fiber is told, and is not stopped.
      expect(yield* mailbox.offer(textDelta("more"))).toBe(false)
    })
  )
})
