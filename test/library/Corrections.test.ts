/** What a change did to answers, and corrections of what went wrong: over the routes, with all that is behind them. */
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ModelPart, ModelError, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { type Hosted, makeHosted } from "../../bench/company/Hosted.ts"
import { layerHashing } from "../HashingEmbedder.ts"

const text = (parts: Readonly<Record<string, string>>) => ({
  text: Object.entries(parts)
    .map(([heading, body]) => `# ${heading}\n\n${body}`)
    .join("\n\n")
})

const hours = { "Opening hours": "The shop opens at nine o'clock in the morning." }
const returns = { Returns: "Parcels are returned at the counter in the cellar." }

describe("A change of the sources", () => {
  let hosted: Hosted
  beforeAll(async () => {
    hosted = await makeHosted(layerHashing())
  })
  afterAll(() => hosted.close())

  it("tells which answers rested on it, most often given first, and one call replays them", async () => {
    const { chat, ended, id, path, ready, source } = await hosted.agent()
    const page = await source("TEXT", "Hours", text(hours))
    const other = await source("TEXT", "Returns", text(returns))
    await chat("When does the shop open in the morning?", "ada")
    const second = await chat("  when does the SHOP open in the morning?", "bob")
    const asked = await chat("At which counter are parcels returned?", "eve")
    expect(asked.reply).toContain("cellar")
    const impact = `${path}/impact`
    expect(await hosted.good("GET", impact)).toMatchObject({ turns: 3, isCut: false, answers: [] })
    expect((await hosted.ask("POST", `${impact}/replay`, {})).status).toBe(404)

    // The same text, read anew, changes nothing.
    await hosted.good("POST", `/api/sources/${other}/sync`, { force: true })
    await ready(other)
    expect((await hosted.good("GET", impact)).answers).toEqual([])

    await hosted.good("PATCH", `/api/sources/${page}`, {
      config: text({ "Opening hours": "The shop opens at ten o'clock in the morning." })
    })
    await ready(page)
    const changed = await hosted.good("GET", impact)
    expect(changed.answers).toMatchObject([
      {
        times: 2,
        question: expect.stringContaining("SHOP"),
        reply: expect.stringContaining("nine o'clock"),
        passages: [{ sourceId: page, sourceName: "Hours", state: "changed" }]
      }
    ])
    expect(changed.answers[0].runIds[0]).toBe(second.runId)

    await hosted.good("DELETE", `/api/sources/${other}`)
    const { answers } = await hosted.good("GET", impact)
    expect(answers.map(({ times }: { readonly times: number }) => times)).toEqual([2, 1])
    expect(answers[1].passages).toMatchObject([{ sourceId: other, state: "gone" }])
    expect((await hosted.good("GET", `${impact}?sourceId=${other}`)).answers).toHaveLength(1)
    const first = await hosted.good("GET", `${impact}?limit=1`)
    const next = await hosted.good("GET", `${impact}?limit=1&cursor=${encodeURIComponent(first.nextCursor)}`)
    expect([...first.answers, ...next.answers]).toEqual(answers)
    expect(next.nextCursor).toBe(null)

    const { experiment } = await hosted.good("POST", `${impact}/replay`, { answers: 1 })
    expect(experiment).toMatchObject({ kind: "turns", total: 1, agentId: id })
    const { experiment: done } = await ended(experiment.id)
    expect(done).toMatchObject({ status: "complete", passed: 0 })
    const { results } = await hosted.good("GET", `/api/experiments/${experiment.id}/results`)
    expect(results[0]).toMatchObject({ runId: second.runId, result: { outcome: "changed" } })
    expect(results[0].result.reply).toContain("ten o'clock")
  })

  it("is told of the agent's own turns alone", async () => {
    const one = await hosted.agent()
    const other = await hosted.agent()
    await one.source("TEXT", "Hours", text(hours))
    await one.chat("When does the shop open in the morning?")
    expect(await hosted.good("GET", `${other.path}/impact`)).toMatchObject({ turns: 0, answers: [] })
    expect((await hosted.ask("GET", "/api/agents/agt_none/impact")).status).toBe(404)
    expect(
      (await hosted.ask("GET", `${one.path}/impact?from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z`)).status
    ).toBe(400)
  })
})

describe("A correction", () => {
  let hosted: Hosted
  beforeAll(async () => {
    hosted = await makeHosted(layerHashing())
  })
  afterAll(() => hosted.close())

  const question = "Where is the umbrella stand of the house?"

  /** Asked twice in vain; the second time somebody of the team answers. */
  const prepared = async () => {
    const made = await hosted.agent()
    await made.source("TEXT", "Hours", text(hours))
    const { conversationId, endUserId, runId } = await made.chat(question, "ada")
    const { runId: again } = await made.chat("Where is the umbrella stand of that house?", "bob")
    const kept = await made.chat("When does the shop open in the morning?", "eve")
    await hosted.good("POST", `/api/conversations/${conversationId}/takeover`)
    await hosted.good("POST", `/api/conversations/${conversationId}/messages`, {
      content: "It stands behind the cloakroom."
    })
    return { ...made, endUserId, runId, again, kept }
  }

  it("is drafted from what the team replied, shows what it would change, and is live only once approved", async () => {
    const { again, chat, ended, id, kept, path, ready, runId } = await prepared()
    const { groups } = await hosted.good("GET", `/api/insights?agentId=${id}`)
    const { correction } = await hosted.good("POST", `${path}/corrections`, { group: groups[0].id })
    expect(correction).toMatchObject({
      agentId: id,
      answer: "It stands behind the cloakroom.",
      origin: "human",
      status: "draft",
      preview: null,
      sourceId: null,
      caseId: null
    })
    expect(correction.runIds.toSorted()).toEqual([runId, again].toSorted())
    const one = `/api/corrections/${correction.id}`
    expect(await hosted.ask("POST", `${one}/approve`)).toMatchObject({
      status: 409,
      error: { code: "CONFLICT" }
    })

    const { correction: previewed } = await hosted.good("POST", `${one}/preview`, {})
    await ended(previewed.preview.experimentId)
    const { correction: seen } = await hosted.good("GET", one)
    expect(seen.preview).toMatchObject({ isComplete: true, turns: 2, asked: 2, changed: 2 })
    // Nobody is given it yet, and the test cases are as they were.
    expect((await chat(question, "fay")).reply).not.toContain("cloakroom")
    expect((await hosted.good("GET", `${path}/cases`)).cases).toEqual([])

    const { correction: approved } = await hosted.good("POST", `${one}/approve`)
    expect(approved).toMatchObject({ status: "approved", approvedAt: expect.any(String) })
    await ready(approved.sourceId)
    expect((await chat(question, "gil")).reply).toMatch(/^It stands behind the cloakroom/u)
    expect((await chat("When does the shop open in the morning?", "eve")).reply).toBe(kept.reply)
    const { cases } = await hosted.good("GET", `${path}/cases`)
    expect(cases).toMatchObject([{ id: approved.caseId, expectSources: [correction.question] }])
    const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
    expect((await ended(experiment.id)).experiment).toMatchObject({ status: "complete", passed: 1, total: 1 })

    for (const [method, to, body] of [
      ["POST", `${one}/approve`, undefined],
      ["PATCH", one, { answer: "Elsewhere." }],
      ["POST", `${one}/preview`, {}]
    ] as const)
      expect((await hosted.ask(method, to, body)).status).toBe(409)

    // The next one joins the same source.
    const { correction: more } = await hosted.good("POST", `${path}/corrections`, {
      runIds: [kept.runId],
      question: "Is there a lift to the tower?",
      answer: "Yes, in the north wing."
    })
    const { correction: joined } = await hosted.good("POST", `/api/corrections/${more.id}/approve?force=true`)
    expect(joined.sourceId).toBe(approved.sourceId)
    await ready(joined.sourceId)
    expect((await chat("Is there a lift to the tower?", "hal")).reply).toMatch(/^Yes, in the north wing/u)
    expect((await chat(question, "ida")).reply).toMatch(/^It stands behind the cloakroom/u)
    const { entries } = await hosted.good("GET", "/api/audit")
    expect(entries.map(({ action }: { readonly action: string }) => action)).toEqual(
      expect.arrayContaining(["correction.approve", "correction.approve_forced", "correction.preview"])
    )
  })

  it("is previewed anew after a change, listed, deleted, and refused where it contradicts itself", async () => {
    const { ended, path, runId } = await prepared()
    const list = `${path}/corrections`
    const { correction } = await hosted.good("POST", list, { runIds: [runId] })
    const one = `/api/corrections/${correction.id}`
    const { correction: previewed } = await hosted.good("POST", `${one}/preview`, { turns: 1 })
    await ended(previewed.preview.experimentId)
    const { correction: changed } = await hosted.good("PATCH", one, { answer: "Beside the door." })
    expect(changed).toMatchObject({ answer: "Beside the door.", preview: null })
    expect((await hosted.ask("POST", `${one}/approve`)).status).toBe(409)
    expect((await hosted.good("GET", list)).corrections).toMatchObject([{ id: correction.id }])
    for (const body of [
      {},
      { group: "grp_1", runIds: [runId] },
      { runIds: [] },
      { runIds: [runId], answer: " " }
    ])
      expect((await hosted.ask("POST", list, body)).status).toBe(400)
    for (const body of [{ group: "grp_none" }, { runIds: ["run_none"] }])
      expect((await hosted.ask("POST", list, body)).status).toBe(404)
    // Without a model, and where nobody has replied, there is no answer to approve.
    const made = await hosted.agent()
    const { runId: silent } = await made.chat("What is the name of the cat?")
    const { correction: empty } = await hosted.good("POST", `${made.path}/corrections`, { runIds: [silent] })
    expect(empty).toMatchObject({ answer: "", origin: "written" })
    expect((await hosted.ask("POST", `/api/corrections/${empty.id}/approve?force=true`)).status).toBe(409)
    expect((await hosted.ask("POST", `/api/corrections/${empty.id}/preview`, {})).status).toBe(409)
    expect(await hosted.good("DELETE", one)).toEqual({ id: correction.id, deleted: true })
    expect((await hosted.ask("GET", one)).status).toBe(404)
  })

  it("of the same question replaces the answer that was approved before, also when its record is gone", async () => {
    const { chat, endUserId, path, ready, runId } = await prepared()
    const approved = async (answer: string) => {
      const body = { runIds: [runId, runId], question, answer }
      const { correction } = await hosted.good("POST", `${path}/corrections`, body)
      expect(correction.runIds).toEqual([runId])
      const made = await hosted.good("POST", `/api/corrections/${correction.id}/approve?force=true`)
      await ready(made.correction.sourceId)
      return made.correction
    }
    const first = await approved("It stands behind the door.")
    const second = await approved("It stands in the attic.")
    expect(second.sourceId).toBe(first.sourceId)
    const { reply } = await chat(question, "gil")
    expect([reply.includes("attic"), reply.includes("door")]).toEqual([true, false])

    // A question from the turn itself: the correction goes with the person, the approved answer stays.
    const { runId: other } = await chat("Where is the hat rack of the house?", "hal")
    const { correction } = await hosted.good("POST", `${path}/corrections`, {
      runIds: [other],
      answer: "Upstairs."
    })
    await hosted.good("POST", `/api/corrections/${correction.id}/approve?force=true`)
    for (const id of [second.id, first.id]) await hosted.good("DELETE", `/api/corrections/${id}`)
    const { endUsers } = await hosted.good("GET", "/api/end-users?externalId=hal")
    for (const { id } of endUsers) await hosted.good("DELETE", `/api/end-users/${id}`)
    expect((await hosted.good("GET", `${path}/corrections`)).corrections).toEqual([])
    expect(endUserId).not.toBe(endUsers[0].id)
    expect((await approved("It stands in the cellar.")).sourceId).toBe(first.sourceId)
  })

  it("goes to a second source, with a name of its own, when the first one is full", async () => {
    const { id: agentId, path, ready, runId } = await prepared()
    const approved = async (asked: string) => {
      const body = { runIds: [runId], question: asked, answer: "It stands behind the door." }
      const { correction } = await hosted.good("POST", `${path}/corrections`, body)
      const made = await hosted.good("POST", `/api/corrections/${correction.id}/approve?force=true`)
      await ready(made.correction.sourceId)
      return String(made.correction.sourceId)
    }
    const first = await approved(question)
    const pairs = Array.from({ length: 500 }, (_, place) => ({
      question: `Shelf ${place}?`,
      answer: "Here."
    }))
    await hosted.good("PATCH", `/api/sources/${first}`, { agentId, config: { pairs } })
    await ready(first)
    const second = await approved("Where is the hat rack?")
    expect(second).not.toBe(first)
    const nameOf = async (id: string) =>
      (await hosted.good("GET", `/api/sources/${id}?agentId=${agentId}`)).name
    expect([await nameOf(first), await nameOf(second)]).toEqual(["Corrections", "Corrections 2"])
  })

  it("of the same question replaces the earlier answer in whichever source of corrections has it", async () => {
    const { chat, id: agentId, path, ready, runId } = await prepared()
    const approved = async (asked: string, answer: string) => {
      const { correction } = await hosted.good("POST", `${path}/corrections`, {
        runIds: [runId],
        question: asked,
        answer
      })
      const made = await hosted.good("POST", `/api/corrections/${correction.id}/approve?force=true`)
      await ready(made.correction.sourceId)
      return String(made.correction.sourceId)
    }
    const answersOf = async (id: string) => {
      const { config } = await hosted.good("GET", `/api/sources/${id}?agentId=${agentId}`)
      const pairs: ReadonlyArray<{ readonly question: string; readonly answer: string }> = config.pairs
      return pairs.filter((pair) => pair.question === question).map(({ answer }) => answer)
    }
    const first = await approved(question, "It stands behind the door.")
    const fill = async (pairs: ReadonlyArray<unknown>) => {
      await hosted.good("PATCH", `/api/sources/${first}`, { agentId, config: { pairs } })
      await ready(first)
    }
    const door = { question, answer: "It stands behind the door." }
    const shelves = (count: number, answer = "Here.") =>
      Array.from({ length: count }, (_, place) => ({ question: `Shelf ${place}?`, answer }))
    await fill([door, ...shelves(499)])
    const second = await approved("Where is the hat rack?", "Upstairs.")
    expect(second).not.toBe(first)
    expect(await approved(question, "It stands in the attic.")).toBe(first)
    expect([await answersOf(first), await answersOf(second)]).toEqual([["It stands in the attic."], []])

    // The full source has no room for a longer answer: it goes to the newest one, and the earlier one is removed.
    await fill([door, ...shelves(49, "x".repeat(3_990)), { question: "Door?", answer: "y".repeat(3_900) }])
    const long = `It stands in the cellar. ${"It is made of iron. ".repeat(40)}`.trim()
    expect(await approved(question, long)).toBe(second)
    await ready(first)
    expect([await answersOf(first), await answersOf(second)]).toEqual([[], [long]])
    const { reply } = await chat(question, "gil")
    expect([reply.includes("cellar"), reply.includes("door")]).toEqual([true, false])

    // Of two that were live side by side, one is left.
    await fill([door, ...shelves(3)])
    expect(await approved(question, "It stands in the hall.")).toBe(second)
    await ready(first)
    expect([await answersOf(first), await answersOf(second)]).toEqual([[], ["It stands in the hall."]])
    await fill([door])
    expect(await approved(question, "It stands in the yard.")).toBe(second)
    await ready(first)
    const yard = ["It stands in the yard."]
    expect([await answersOf(first), await answersOf(second)]).toEqual([yard, yard])
  })

  it("goes with the person who asked", async () => {
    const { endUserId, path, runId } = await prepared()
    const { correction } = await hosted.good("POST", `${path}/corrections`, { runIds: [runId] })
    await hosted.good("DELETE", `/api/end-users/${endUserId}`)
    expect((await hosted.ask("GET", `/api/corrections/${correction.id}`)).status).toBe(404)
  })
})

const scripted = (reply: (prompt: string) => string | null) =>
  Layer.succeed(ModelRuntime, {
    defaultModel: "scripted",
    contextWindow: 32_000,
    readsPassages: false,
    acceptsImages: false,
    readable: () => [],
    reply: ({ prompt, responseSchema }) =>
      Stream.suspend(() => {
        const said = reply(`${responseSchema === undefined ? "" : "JSON "}${JSON.stringify(prompt)}`)
        if (said === null)
          return Stream.fail(new ModelError({ reason: "Rejected", message: "Scripted", retryable: false }))
        const bill = { model: "scripted", inputTokens: 7, cachedInputTokens: 0, outputTokens: 2, cost: 900 }
        const parts: ReadonlyArray<ModelPart> = [
          { _tag: "TextDelta", delta: said },
          { _tag: "Finish", reason: "stop", inputTokens: 7, outputTokens: 2, bill }
        ]
        return Stream.fromIterable(parts)
      })
  })

describe("A model as judge", () => {
  let hosted: Hosted
  const prompts: Array<string> = []
  beforeAll(async () => {
    hosted = await makeHosted(
      layerHashing(),
      scripted((prompt) => {
        prompts.push(prompt)
        if (!prompt.startsWith("JSON ")) return "With pleasure: the shop opens at nine."
        if (prompt.includes("You draft")) return '{"answer": "A draft of the model."}'
        if (prompt.includes("is broken")) return null
        if (prompt.includes("is confused")) return '{"passed": "perhaps"}'
        if (prompt.includes("[email-1]")) return '{"passed": true, "reason": "It names [email-1]."}'
        return prompt.includes("is polite")
          ? '{"passed": true, "reason": "It says with pleasure."}'
          : '{"passed": false, "reason": "It does not name the day."}'
      })
    )
  })
  afterAll(() => hosted.close())

  it("passes or fails a case with a reason, counted with what it used; what it cannot judge does not pass", async () => {
    const { ended, path } = await hosted.agent()
    for (const criterion of [
      "The reply is polite.",
      "The reply names the day.",
      "It is broken.",
      "It is confused."
    ])
      await hosted.good("POST", `${path}/cases`, { question: `When? ${criterion}`, criterion })
    await hosted.good("POST", `${path}/cases`, { question: "When, without a criterion?" })
    const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
    const { experiment: done } = await ended(experiment.id)
    const { results } = await hosted.good("GET", `/api/experiments/${experiment.id}/results`)
    const told = results.map(
      ({ result }: { readonly result: { passed: boolean; verdict: unknown; problems: unknown } }) => [
        result.passed,
        result.verdict,
        result.problems
      ]
    )
    const used = { inputTokens: 7, outputTokens: 2, costNano: 900 }
    const unused = { inputTokens: 0, outputTokens: 0, costNano: null }
    expect(told).toEqual([
      [true, { passed: true, reason: "It says with pleasure.", ...used }, []],
      [
        false,
        { passed: false, reason: "It does not name the day.", ...used },
        ["does not meet the criterion: It does not name the day."]
      ],
      [
        false,
        { passed: null, reason: "the model failed", ...unused },
        ["cannot be judged: the model failed"]
      ],
      [
        false,
        { passed: null, reason: "the model's answer cannot be read", ...used },
        ["cannot be judged: the model's answer cannot be read"]
      ],
      [true, null, []]
    ])
    expect(done).toMatchObject({ passed: 2, inputTokens: 5 * 7 + 3 * 7, outputTokens: 5 * 2 + 3 * 2 })
    const { cases } = await hosted.good("GET", `${path}/cases`)
    expect(cases[0].criterion).toBe("The reply is polite.")
  })

  it("gets placeholders for the personal data of an agent that masks it", async () => {
    const { ended, path } = await hosted.agent()
    await hosted.good("PATCH", path, { masking: { kinds: ["email"] } })
    const question = "Is ada@judged.example your address?"
    await hosted.good("POST", `${path}/cases`, { question, criterion: "The reply names ada@judged.example." })
    const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
    await ended(experiment.id)
    const { results } = await hosted.good("GET", `/api/experiments/${experiment.id}/results`)
    expect(results[0].result.verdict).toMatchObject({ passed: true, reason: "It names ada@judged.example." })
    expect(prompts.at(-1)).toContain("The reply names [email-1].")
    expect(prompts.filter((prompt) => prompt.includes("ada@judged.example"))).toEqual([])
  })

  it("drafts a correction where nobody has replied", async () => {
    const { chat, path } = await hosted.agent()
    const { runId } = await chat("When is the museum open?")
    const { correction } = await hosted.good("POST", `${path}/corrections`, { runIds: [runId] })
    expect(correction).toMatchObject({ answer: "A draft of the model.", origin: "model", status: "draft" })
  })
})

it("Cases with a criterion or a schema are not passed by a server without a model", async () => {
  const hosted = await makeHosted(layerHashing())
  const { ended, path } = await hosted.agent()
  await hosted.good("POST", `${path}/cases`, { question: "When?", criterion: "The reply is polite." })
  const responseSchema = { type: "object" }
  await hosted.good("POST", `${path}/cases`, { question: "When?", responseSchema })
  const { experiment } = await hosted.good("POST", `${path}/experiments`, {})
  await ended(experiment.id)
  const { results } = await hosted.good("GET", `/api/experiments/${experiment.id}/results`)
  expect(results[0].result).toMatchObject({
    passed: false,
    problems: ["cannot be judged: no language model is configured"]
  })
  expect(results[1].result).toMatchObject({
    passed: false,
    error: expect.stringMatching(/^NOT_CONFIGURED: A responseSchema needs a language model/u)
  })
  await hosted.close()
})
