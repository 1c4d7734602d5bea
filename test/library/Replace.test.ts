/** Capabilities of the host's own: what can be replaced, that it then is, and what is said of anything else. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, describe, expect, it } from "vitest"
import { createSpoke } from "../../src/app/library/Library.ts"
import * as offered from "../../src/effect.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-replace-"))
afterAll(() => Fs.rmSync(root, { recursive: true, force: true }))

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )

describe("A layer in the place of ours", () => {
  it("is refused when nothing requires what it provides, in words that name what can be replaced", async () => {
    const Greeting = Context.GenericTag<never, string>("host/Greeting")
    const both = Layer.merge(Layer.succeed(Greeting, "Hello"), offered.EmbedderHashing.layerHashing(8))
    const dataDir = Path.join(root, "refused")
    const error = await rejection(createSpoke({ dataDir }, { replace: both }))
    expect(error).toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringContaining("Nothing requires host/Greeting")
    })
    const [, listed = ""] = /Replaceable tags: (.+)\.$/u.exec(String(error)) ?? []
    const tags = Object.entries(offered)
      .filter(([, value]) => Context.isTag(value) && value.key.startsWith("capabilities/"))
      .map(([name]) => name)
    expect(tags.length).toBeGreaterThan(20)
    expect(listed.split(", ").toSorted()).toEqual(tags.toSorted())
  })

  it("takes the place of ours wherever it is required: how providers are asked, and when", async () => {
    const asked: Array<string> = []
    const exchange = Layer.succeed(offered.StreamingPost, {
      post: ({ url }) => {
        asked.push(url)
        return new offered.StreamingPostError({ reason: "Broken", code: "" })
      }
    })
    const pauses = Layer.succeed(offered.ProviderBackoff, {
      left: (provider) =>
        Effect.sync(() => {
          asked.push(`pause of ${provider}`)
          return Duration.zero
        }),
      begin: () => Effect.void
    })
    const spoke = await createSpoke(
      {
        dataDir: Path.join(root, "exchange"),
        openai: { apiKey: "sk-test", baseUrl: "http://127.0.0.1:9/v1", api: "chat-completions" }
      },
      { replace: Layer.merge(exchange, pauses) }
    )
    const agent = spoke.agent((await spoke.agents.create({ name: "Asked" })).id)
    expect(await rejection(agent.chat({ message: "Hello" }))).toMatchObject({ code: "TURN_FAILED" })
    expect(asked).toContain("http://127.0.0.1:9/v1/chat/completions")
    await agent.sources.upload({ file: "Green tea is brewed at eighty degrees.", fileName: "tea.md" })
    await expect.poll(() => asked.some((each) => each.startsWith("pause of")), { timeout: 45_000 }).toBe(true)
    await spoke.close()
  })
})
