import type * as Client from "ai"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { describe, expect, it } from "vitest"
import type { TurnPart } from "../../src/domain/chat/ChatTurn.ts"
import { TurnFailed } from "../../src/domain/Errors.ts"
import * as Sse from "../../src/http/Sse.ts"
import { parts, reasoningDelta } from "./chat/UiStream.ts"

/** The majors that people use; what is called here has one shape in all of them. */
const majors: Readonly<Record<string, () => Promise<unknown>>> = {
  "AI SDK 5": () => import("ai5"),
  "AI SDK 6": () => import("ai"),
  "AI SDK 7": () => import("ai7")
}

const body = (stream: Stream.Stream<TurnPart, TurnFailed>) =>
  Effect.runPromise(Stream.mkString(Stream.decodeText(Sse.body(stream, true))))

/** What the client of that major makes of the bytes: its last message, its data parts, its error. */
const read = async (load: () => Promise<unknown>, bytes: string) => {
  const { DefaultChatTransport, readUIMessageStream } = (await load()) as typeof Client
  const transport = new DefaultChatTransport({
    api: "http://127.0.0.1/v1/chat/stream",
    fetch: () => Promise.resolve(new Response(bytes, { headers: { "content-type": "text/event-stream" } }))
  })
  const stream = await transport.sendMessages({
    trigger: "submit-message",
    chatId: "chat",
    messageId: undefined,
    messages: [{ id: "1", role: "user", parts: [{ type: "text", text: "Hello?" }] }],
    abortSignal: undefined
  })
  let message: Client.UIMessage | undefined
  const errors: Array<string> = []
  const onError = (error: unknown) => void errors.push(error instanceof Error ? error.message : String(error))
  for await (const next of readUIMessageStream({ stream, onError, terminateOnError: false })) message = next
  return { parts: message?.parts ?? [], errors }
}

const ofType = (message: Awaited<ReturnType<typeof read>>, type: string) =>
  message.parts.filter((part) => part.type === type)

describe.each(Object.entries(majors))("A stream read by %s", (_, load) => {
  it("has the text, the sources, a tool that answered, one that failed, and the settled result", async () => {
    const message = await read(load, await body(Stream.fromIterable(parts)))
    expect(message.errors).toEqual([])
    const text = ofType(message, "text").map((part) => ("text" in part ? part.text : ""))
    expect(text.join("")).toBe("Let me look. Hello there")
    expect(ofType(message, "source-url")).toMatchObject([{ url: "https://example.test/1" }])
    expect(ofType(message, "source-document")).toHaveLength(1)
    const tools = message.parts.filter((part) => "toolCallId" in part)
    expect(tools).toMatchObject([
      { toolCallId: "call_1", state: "output-available" },
      { toolCallId: "call_2", state: "output-error" }
    ])
    expect(ofType(message, "data-done")).toMatchObject([{ data: { result: { reply: "Hello there" } } }])
  })

  it("has the model's reasoning in separate parts, and the same text", async () => {
    const thinking = parts.flatMap((part): ReadonlyArray<TurnPart> =>
      part._tag === "TextDelta"
        ? [reasoningDelta("Hm, "), reasoningDelta("so."), part, reasoningDelta("And?")]
        : [part]
    )
    const message = await read(load, await body(Stream.fromIterable(thinking)))
    expect(message.errors).toEqual([])
    const reasoning = ofType(message, "reasoning").map((part) => ("text" in part ? part.text : ""))
    expect(reasoning.join("|")).toBe("Hm, so.|And?|Hm, so.|And?Hm, so.|And?")
    expect(ofType(message, "reasoning").every((part) => "state" in part && part.state === "done")).toBe(true)
    const text = ofType(message, "text").map((part) => ("text" in part ? part.text : ""))
    expect(text.join("")).toBe("Let me look. Hello there")
  })

  it("with requested heartbeats gives the same message", async () => {
    const bytes = await body(Stream.fromIterable(parts))
    const beat = 'data: {"type":"data-heartbeat","data":{},"transient":true}\n\n'
    const beating = bytes.replaceAll(/(?<=\n\n)(?=data: \{)/gu, beat)
    expect(beating.split(beat).length).toBeGreaterThan(10)
    expect(await read(load, beating)).toEqual(await read(load, bytes))
  })

  it("that fails ends in the documented code and without a result", async () => {
    const failing = Stream.concat(
      Stream.fromIterable(parts.slice(0, 3)),
      Stream.fail(new TurnFailed({ message: "no" }))
    )
    const message = await read(load, await body(failing))
    expect(message.errors).toEqual(["TURN_FAILED"])
    expect(ofType(message, "data-done")).toEqual([])
  })
})
