/** Calls of models that belong to no turn: counted, priced, and taken from budgets, over the routes. */
import { createServer } from "node:http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { ModelError, type ModelPart, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { TextRecognition } from "../../src/capabilities/TextRecognition.ts"
import { type Hosted, makeHosted } from "../../bench/company/Hosted.ts"
import { layerHashing } from "../HashingEmbedder.ts"

const price = 900
let refusing = false

const model = Layer.succeed(ModelRuntime, {
  defaultModel: "scripted",
  contextWindow: 32_000,
  readsPassages: false,
  acceptsImages: true,
  readable: () => [],
  reply: ({ prompt, responseSchema }) =>
    Stream.suspend(() => {
      if (refusing)
        return Stream.fail(new ModelError({ reason: "Rejected", message: "Scripted", retryable: false }))
      const text = JSON.stringify(prompt)
      const structured = text.includes("You draft")
        ? '{"answer": "A draft of the model."}'
        : '{"passed": true, "reason": "It is polite."}'
      const delta = responseSchema === undefined ? "A lighthouse on a rock." : structured
      const bill = { model: "scripted", inputTokens: 7, cachedInputTokens: 0, outputTokens: 2, cost: price }
      const parts: ReadonlyArray<ModelPart> = [
        { _tag: "TextDelta", delta },
        { _tag: "Finish", reason: "stop", inputTokens: 7, outputTokens: 2, bill }
      ]
      return Stream.fromIterable(parts)
    })
})

/** Takes every file for an image with a text. */
const recognition = Layer.succeed(TextRecognition, {
  mediaType: () => "image/png",
  recognize: () => Effect.succeed("Harbour office")
})

const used = (calls: number) => ({
  calls,
  tokens: { input: 7 * calls, output: 2 * calls },
  cost: { nanoUsd: price * calls, unpricedCalls: 0 }
})

describe("Calls of models outside of turns", () => {
  let hosted: Hosted
  beforeAll(async () => {
    pages.listen(0, "127.0.0.1")
    hosted = await makeHosted(layerHashing(), Layer.merge(model, recognition), { fetchAllow: ["127.0.0.1"] })
  })
  beforeEach(() => {
    refusing = false
  })
  afterAll(async () => {
    pages.close()
    await hosted.close()
  })

  const usage = () => hosted.good("GET", "/api/usage")
  /** The agent's part of the usage, by kind. */
  const kindsOf = async (id: string) => {
    const { agents } = await usage()
    const { otherCalls } = agents.find(({ agentId }: { readonly agentId: string }) => agentId === id)
    return Object.fromEntries(
      otherCalls.map(({ kind, ...calls }: { readonly kind: string }) => [kind, calls])
    )
  }
  const pages = createServer((_, response) => response.end("an image"))
  const image = () => {
    const address = pages.address()
    return { fileUrl: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/lighthouse.png` }
  }

  it("are counted with tokens and cost by agent, kind and day, beside the turns", async () => {
    const { chat, ended, id, path, source } = await hosted.agent()
    const { runId } = await chat("When is the museum open?")
    await hosted.good("POST", `${path}/corrections`, { runIds: [runId] })
    await hosted.good("POST", `${path}/replays`, { runIds: [runId] })
    await hosted.good("POST", `${path}/cases`, { question: "When?", criterion: "The reply is polite." })
    const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
    await ended(experiment.id)
    await source("FILE", "Picture", image())
    const all = { draft: used(1), experiment: used(1), image: used(1), judge: used(1), replay: used(1) }
    expect(await kindsOf(id)).toEqual(all)

    const report = await usage()
    const date = new Date().toISOString().slice(0, 10)
    expect(report.otherCalls).toEqual(
      Object.entries(all).map(([kind, calls]) => ({ kind, ...calls, days: [{ date, ...calls }] }))
    )
    // The cost of the agent and of the model is that of all calls, the turn's included.
    expect(report.models).toMatchObject([{ model: "scripted", calls: 6, cost: { nanoUsd: 6 * price } }])
    expect(report.agents.at(-1)).toMatchObject({ turns: 1, cost: { nanoUsd: 6 * price } })
    expect(report.turns.used).toBe(1)
    expect(report.days).toMatchObject([{ turns: 1, cost: { nanoUsd: price } }])
  })

  it("take from the agent's budget, and are refused once it is spent", async () => {
    const { chat, ended, id, path, source } = await hosted.agent()
    const { runId } = await chat("When is the museum open?")
    const { budget } = await hosted.good("POST", "/api/budgets", {
      agentId: id,
      period: "month",
      limitNanoUsd: 2 * price
    })
    const one = `/api/budgets/${budget.id}`
    const draft = () => hosted.ask("POST", `${path}/corrections`, { runIds: [runId] })
    expect((await draft()).status).toBe(201)
    expect((await hosted.good("GET", one)).budget).toMatchObject({ spentNanoUsd: price, reservedNanoUsd: 0 })
    expect((await hosted.ask("POST", `${path}/replays`, { runIds: [runId] })).status).toBe(200)
    expect((await hosted.good("GET", one)).budget).toMatchObject({
      spentNanoUsd: 2 * price,
      reservedNanoUsd: 0
    })

    const refused = {
      status: 429,
      error: { code: "TURN_LIMIT_EXCEEDED", details: { budget: { of: "agent" } } }
    }
    expect(await draft()).toMatchObject(refused)
    expect(await hosted.ask("POST", `${path}/replays`, { runIds: [runId] })).toMatchObject(refused)
    await hosted.good("POST", `${path}/cases`, { question: "When?" })
    const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
    expect((await ended(experiment.id)).experiment).toMatchObject({
      status: "failed",
      asked: 0,
      reason: expect.stringContaining("The budget of this agent for the month is spent.")
    })
    // The image is read by its text alone.
    const pictured = await source("FILE", "Picture", image())
    const { documents } = await hosted.good("GET", `/api/sources/${pictured}/documents`)
    expect(documents).toHaveLength(1)
    // What needs no model is not refused.
    const written = { runIds: [runId], answer: "At nine." }
    expect((await hosted.ask("POST", `${path}/corrections`, written)).status).toBe(201)
    expect(await kindsOf(id)).toEqual({ draft: used(1), replay: used(1) })
  })

  it("take from the budget of the key that asked for the source, also at its own sync", async () => {
    const { file, id, ready, sync, source } = await hosted.agent()
    const { keys } = await hosted.good("GET", `/api/agents/${id}/keys`)
    const { budget } = await hosted.good("POST", "/api/budgets", {
      keyId: keys[0].id,
      period: "month",
      limitNanoUsd: 2 * price
    })
    const spent = async () => (await hosted.good("GET", `/api/budgets/${budget.id}`)).budget
    await source("FILE", "Picture of the team", image())
    expect(await spent()).toMatchObject({ spentNanoUsd: 0, reservedNanoUsd: 0 })
    const uploaded = await file("lighthouse.png", "an image")
    expect(await spent()).toMatchObject({ spentNanoUsd: price, reservedNanoUsd: 0 })
    await sync(uploaded)
    await ready(uploaded)
    expect(await spent()).toMatchObject({ spentNanoUsd: 2 * price, reservedNanoUsd: 0 })
    // The image is read by its text alone.
    await file("harbour.png", "another image")
    expect(await spent()).toMatchObject({ spentNanoUsd: 2 * price, reservedNanoUsd: 0 })
    expect(await kindsOf(id)).toEqual({ image: used(3) })
  })

  it("cost nothing where the provider refused", async () => {
    const { chat, id, path } = await hosted.agent()
    const { runId } = await chat("When is the museum open?")
    refusing = true
    const { correction } = await hosted.good("POST", `${path}/corrections`, { runIds: [runId] })
    expect(correction).toMatchObject({ answer: "", origin: "written" })
    expect(await kindsOf(id)).toEqual({})
  })
})
