/** Many turns, with sources and tools, run again: the same to the last byte, and nobody outside is asked. */
import { createServer } from "node:http"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { expect, it } from "vitest"
import { type ModelPart, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { makeHosted } from "../../bench/company/Hosted.ts"
import { layerHashing } from "../HashingEmbedder.ts"

/** `SPOKE_REPLAYS=1000 npx vitest run test/library/Replays.test.ts` replays so many. */
const count = Number(process.env["SPOKE_REPLAYS"] ?? 40)
const perRequest = 20

/** Numbers from 0 up to 1, the same for the same seed. */
const random = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
}

const finish = (reason: "stop" | "tool-calls"): ModelPart => ({
  _tag: "Finish",
  reason,
  inputTokens: 11,
  outputTokens: 3
})

/** Asks the tool about a number, and says what it was told and shown. */
const scripted = Layer.succeed(ModelRuntime, {
  defaultModel: "scripted",
  contextWindow: 32_000,
  readsPassages: false,
  acceptsImages: false,
  readable: () => [],
  reply: ({ passages, prompt, question }) =>
    Stream.suspend(() => {
      const [, number] = /order (\d+)/u.exec(question) ?? []
      const [, state] = /"(state \d+)/u.exec(JSON.stringify(prompt)) ?? []
      if (number !== undefined && state === undefined) {
        const call = { id: `call-${number}`, name: "order_status", input: { number }, rawInput: "" }
        return Stream.make<Array<ModelPart>>({ _tag: "ToolCall", ...call }, finish("tool-calls"))
      }
      const cited = passages.map(({ index, text }) => `${text.slice(0, 20)} [${index}]`).join(" ")
      return Stream.make<Array<ModelPart>>(
        { _tag: "TextDelta", delta: `${state ?? "No order"}: ${cited}` },
        finish("stop")
      )
    })
})

it(
  "seeded turns of the same version are byte-identical when they are run again, and nothing leaves",
  async () => {
    let asked = 0
    const server = createServer((request, response) => {
      asked++
      const number = new URL(request.url ?? "/", "http://shop.test").pathname.slice(1)
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ said: `state ${Number(number) % 7}` }))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const hosted = await makeHosted(layerHashing(), scripted, { fetchAllow: ["127.0.0.1/32"] })
    try {
      const agent = await hosted.agent()
      await agent.source("TEXT", "Handbook", {
        text: ["Tea", "Coffee", "Cocoa"]
          .map((drink) => `# ${drink}\n\n${drink} is served hot in the garden.`)
          .join("\n\n")
      })
      await hosted.good("POST", `${agent.path}/tools`, {
        name: "order_status",
        description: "The state of an order.",
        parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
        http: { method: "GET", url: `http://127.0.0.1:${port}/{number}` }
      })
      const next = random(14)
      const runIds: Array<string> = []
      let withTool = 0
      for (let turn = 0; turn < count; turn++) {
        const number = Math.floor(next() * 1_000)
        const isOrder = next() < 0.4
        if (isOrder) withTool++
        const drink = ["tea", "coffee", "cocoa"][Math.floor(next() * 3)] ?? ""
        const question = isOrder
          ? `Where is order ${number}?`
          : `How is ${drink} served, for guest ${number}?`
        const { runId } = await agent.chat(question, `guest-${turn % 9}`)
        runIds.push(runId)
      }
      expect([withTool > 0, asked]).toEqual([true, withTool])
      asked = 0
      for (let start = 0; start < count; start += perRequest) {
        const body = { runIds: runIds.slice(start, start + perRequest) }
        const { runs } = await hosted.good("POST", `${agent.path}/replays`, body)
        for (const { after, before, outcome, reason, runId } of runs) {
          expect([runId, outcome, reason]).toEqual([runId, "same", null])
          expect(Buffer.from(after.reply).equals(Buffer.from(before.reply))).toBe(true)
          expect(JSON.stringify(after)).toBe(JSON.stringify(before))
        }
        expect(runs).toHaveLength(body.runIds.length)
      }
      expect(asked).toBe(0)
    } finally {
      await hosted.close()
      await new Promise((resolve) => server.close(resolve))
    }
  },
  60_000 + count * 500
)
