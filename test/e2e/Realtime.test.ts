import * as Effect from "effect/Effect"
import { WebSocketConstructor } from "@effect/platform/Socket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"

const webSocket = Effect.runSync(Effect.provide(WebSocketConstructor, NodeSocket.layerWebSocketConstructor))

describe("The realtime socket of a running server", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke

  beforeAll(async () => {
    spoke = await start(dataDir)
  })

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
  })

  it("tells both messages of a turn, and does not keep the server from stopping", async () => {
    const chat = async (body: Readonly<Record<string, unknown>>) =>
      (await spoke.request("POST", "/v1/chat", { body })).body.data
    const { conversationId, realtimeToken, realtimeUrl } = await chat({ message: "What is a citation?" })
    const socket = webSocket(`${realtimeUrl}?token=${realtimeToken}`)
    // oxlint-disable-next-line typescript/no-explicit-any -- looked into field by field
    const frames: Array<any> = []
    socket.addEventListener("message", ({ data }) => void frames.push(JSON.parse(String(data))))
    const closed = new Promise<number>((resolve) =>
      socket.addEventListener("close", ({ code }) => resolve(code))
    )
    await new Promise((resolve) => socket.addEventListener("open", resolve))

    const second = await chat({ conversationId, message: "What is a source?" })
    const told = () => frames.filter(({ type }) => type === "message.created").map(({ message }) => message)
    await until(
      async () => told(),
      ({ length }) => length >= 2
    )
    expect(told().map(({ content, role }) => [role, content])).toEqual([
      ["user", "What is a source?"],
      ["assistant", second.reply]
    ])
    expect(told()[1].citations).toEqual(second.citations)
    expect(frames[0]).toEqual({ type: "typing", conversationId })
    const events = frames.filter(({ type }) => type === "run.event").map(({ event }) => event)
    expect(events.at(0)).toMatchObject({ type: "run.started", label: "Started", sequence: 1 })
    expect(events.at(-1)).toMatchObject({ type: "run.completed", label: "Done" })
    expect(events.filter((event) => "payload" in event)).toEqual([])

    const begun = Date.now()
    const exit = spoke.stop()
    expect(await closed).toBe(1001)
    expect(Date.now() - begun).toBeLessThan(5_000)
    expect(await exit).toBe(0)
    // Long before the 35 seconds after which whatever is still connected would be cut.
    expect(Date.now() - begun).toBeLessThan(25_000)
  }, 120_000)
})
