/** Several providers, configured without code, each asked for the models that name it. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { fromRecord } from "../../src/app/config/Config.ts"
import { chatRuntime, exchange } from "../../src/app/Providers.ts"
import { ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { createSpoke, type Spoke } from "../../src/index.ts"
import * as ModelStub from "../servers/ModelStub.ts"
import { requestOf } from "../capabilities/ModelRuntime/Harness.ts"

const read = (environment: Readonly<Record<string, string>>) =>
  Effect.runPromise(Effect.either(fromRecord(environment, false)))

const settingsOf = async (environment: Readonly<Record<string, string>>) => {
  const outcome = await read(environment)
  if (outcome._tag === "Left") throw outcome.left
  return outcome.right
}

const problemsOf = async (environment: Readonly<Record<string, string>>) => {
  const outcome = await read(environment)
  return outcome._tag === "Left"
    ? outcome.left.problems.map(({ message, variable }) => `${variable}: ${message}`)
    : []
}

const gemini = { baseUrl: "https://gemini.test/v1", apiKeyEnv: "GEMINI_API_KEY", contextWindow: 32_000 }

describe("SPOKE_PROVIDERS", () => {
  it("names providers, whose keys stand in variables of their own", async () => {
    const settings = await settingsOf({
      OPENAI_API_KEY: "sk-1",
      GEMINI_API_KEY: "sk-2",
      SPOKE_PROVIDERS: JSON.stringify({ gemini, ollama: { baseUrl: "http://127.0.0.1:11434/v1/" } }),
      SPOKE_FALLBACK_MODELS: "gemini/flash, ollama/llama3.2"
    })
    const [first, second] = [...settings.providers.values()]
    expect([...settings.providers.keys()]).toEqual(["gemini", "ollama"])
    expect([first?.api, first?.contextWindow, second?.contextWindow]).toEqual([
      "chat-completions",
      32_000,
      128_000
    ])
    expect(first && Redacted.value(first.apiKey)).toBe("sk-2")
    expect(JSON.stringify(settings.providers.get("gemini"))).not.toContain("sk-2")
    expect(settings.fallbackModels).toEqual(["gemini/flash", "ollama/llama3.2"])
    expect(settings.model?.provider).toBe("openai")
  })

  it("takes keys from files, as of every secret, and says which cannot be read", async () => {
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-providers-"))
    const file = Path.join(folder, "gemini")
    Fs.writeFileSync(file, "sk-canary\n")
    const given = {
      OPENAI_API_KEY: "sk-1",
      SPOKE_PROVIDERS: JSON.stringify({
        gemini,
        own: { baseUrl: "https://own.test/v1", apiKeyEnv: "OPENAI_API_KEY" }
      })
    }
    const { providers } = await settingsOf({ ...given, GEMINI_API_KEY_FILE: file })
    expect([...providers.values()].map(({ apiKey }) => Redacted.value(apiKey))).toEqual(["sk-canary", "sk-1"])
    expect(await problemsOf({ ...given, GEMINI_API_KEY: "sk-2", GEMINI_API_KEY_FILE: file })).toEqual([
      "GEMINI_API_KEY_FILE: Expected either this or GEMINI_API_KEY, not both"
    ])
    Fs.rmSync(folder, { recursive: true })
    expect((await problemsOf({ ...given, GEMINI_API_KEY_FILE: file }))[0]).toBe(
      "GEMINI_API_KEY_FILE: Expected the path of a readable file"
    )
  })

  it("speaks Anthropic's interface and Azure's dated one, which needs its version", async () => {
    const claude = { baseUrl: "https://api.anthropic.com/v1", api: "anthropic" }
    const azure = { baseUrl: "https://x.openai.azure.com/openai", api: "azure", apiVersion: "2024-10-21" }
    const { providers } = await settingsOf({
      OPENAI_API_KEY: "sk-1",
      SPOKE_PROVIDERS: JSON.stringify({ azure, claude })
    })
    expect([...providers.values()].map(({ api, apiVersion }) => [api, apiVersion])).toEqual([
      ["azure", "2024-10-21"],
      ["anthropic", undefined]
    ])
    const { apiVersion: _, ...unversioned } = azure
    for (const wrong of [
      unversioned,
      { ...claude, apiVersion: "2024-10-21" },
      { ...azure, apiVersion: "a&b=c" }
    ])
      expect(
        await problemsOf({ OPENAI_API_KEY: "sk", SPOKE_PROVIDERS: JSON.stringify({ wrong }) })
      ).toHaveLength(1)
  })

  it("has the default model too, where there is no OPENAI_API_KEY", async () => {
    const { embedding, model } = await settingsOf({
      GEMINI_API_KEY: "sk-2",
      SPOKE_PROVIDERS: JSON.stringify({ gemini }),
      SPOKE_CHAT_MODEL: "gemini/flash"
    })
    expect([model?.provider, model?.chatModel, model?.baseUrl, embedding]).toEqual([
      "gemini",
      "gemini/flash",
      "https://gemini.test/v1",
      null
    ])
  })

  it("is refused with what is wrong with it, and no value is repeated", async () => {
    const secret = "sk-canary"
    const wrong = [
      { SPOKE_PROVIDERS: secret },
      { SPOKE_PROVIDERS: JSON.stringify({ gemini: { ...gemini, apiKey: secret } }) },
      { SPOKE_PROVIDERS: JSON.stringify({ "a/b": gemini }) },
      { SPOKE_PROVIDERS: JSON.stringify({ gemini }), OPENAI_API_KEY: "sk" },
      { SPOKE_PROVIDERS: JSON.stringify({ openai: { baseUrl: "https://x.test/v1" } }), OPENAI_API_KEY: "sk" },
      { SPOKE_FALLBACK_MODELS: "gpt-4", OPENAI_API_KEY: "sk" },
      { SPOKE_PROVIDERS: JSON.stringify({ gemini }), GEMINI_API_KEY: "sk", SPOKE_CHAT_MODEL: "gpt-4" }
    ]
    const found = await Promise.all(wrong.map(problemsOf))
    expect(found.map((problems) => problems.length)).toEqual(wrong.map(() => 1))
    expect(found.flat().join("\n")).not.toContain("canary")
    expect(found[3]?.[0]).toContain("the name of a variable that is set")
  })
})

describe("Several providers", () => {
  const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-providers-"))
  const scope = Effect.runSync(Scope.make())
  let one: ModelStub.ModelStub
  let two: ModelStub.ModelStub
  let spoke: Spoke

  beforeAll(async () => {
    ;[one, two] = await Effect.runPromise(Scope.extend(Effect.all([ModelStub.make, ModelStub.make]), scope))
    spoke = await createSpoke({
      dataDir: Path.join(root, "data"),
      openai: { apiKey: "sk-one", baseUrl: one.url, embeddingModel: "offline" },
      env: {
        KEY_TWO: "sk-two",
        SPOKE_PROVIDERS: JSON.stringify({
          two: { baseUrl: two.url, apiKeyEnv: "KEY_TWO" },
          claude: { baseUrl: two.url, apiKeyEnv: "KEY_TWO", api: "anthropic" },
          azure: { baseUrl: two.url, apiKeyEnv: "KEY_TWO", api: "azure", apiVersion: "2024-10-21" },
          ollama: { baseUrl: two.url }
        }),
        SPOKE_FALLBACK_MODELS: "two/spare"
      }
    })
  }, 60_000)

  afterAll(async () => {
    await spoke.close()
    Fs.rmSync(root, { recursive: true, force: true })
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  beforeEach(() => {
    one.reset()
    two.reset()
  })

  const ask = async (model: string | undefined) => {
    const { id } = await spoke.agents.create({ name: "Agent", ...(model === undefined ? {} : { model }) })
    return (await spoke.agent(id).chat({ message: "Hello" })).reply
  }

  it("are asked for the models that name them, each with its own key", async () => {
    two.otherwise = { text: "I am two." }
    expect(await ask("two/big")).toBe("I am two.")
    expect([one.requests.length, two.requests[0]?.body.model]).toEqual([0, "big"])
    expect(two.requests[0]?.headers.authorization).toBe("Bearer sk-two")
    expect(await ask(undefined)).toBe("The stub says hello.")
    expect(one.requests[0]?.headers.authorization).toBe("Bearer sk-one")
  })

  it("are spoken to in their own words: Anthropic, Azure OpenAI's deployments, Ollama without a key", async () => {
    for (const model of ["claude/opus", "azure/my deployment", "ollama/llama3.2"])
      expect(await ask(model)).toBe("The stub says hello.")
    expect(
      two.requests.map(({ body, headers, path }) => [
        path,
        body.model,
        headers["x-api-key"] ?? headers["api-key"] ?? headers.authorization
      ])
    ).toEqual([
      ["/messages", "opus", "sk-two"],
      ["/deployments/my%20deployment/chat/completions?api-version=2024-10-21", "my deployment", "sk-two"],
      ["/chat/completions", "llama3.2", "Bearer none"]
    ])
  })

  it("cost what their prices say, and an unknown sum where they have none", async () => {
    const settings = await settingsOf({
      OPENAI_API_KEY: "sk",
      OPENAI_BASE_URL: one.url,
      SPOKE_CHAT_MODEL: "small",
      SPOKE_PROVIDERS: JSON.stringify({
        claude: { baseUrl: two.url, api: "anthropic" },
        spare: { baseUrl: two.url }
      }),
      SPOKE_FALLBACK_MODELS: "spare/m",
      SPOKE_MODEL_PRICES: JSON.stringify([
        { model: "claude/*", input: 1, output: 2 },
        { model: "openai/*", input: 3, output: 4 }
      ])
    })
    if (settings.model === null) throw new Error("There is no model")
    const built = Layer.build(chatRuntime(settings.model, settings).pipe(Layer.provide(exchange)))
    const runtime = Context.get(await Effect.runPromise(Scope.extend(built, scope)), ModelRuntime)
    const billOf = async (model: string | null) => {
      const parts = await Effect.runPromise(Stream.runCollect(runtime.reply(requestOf({ model }))))
      return [...parts].flatMap((part) => (part._tag === "Finish" ? [part.bill] : []))
    }
    // The stub counts 7 tokens of input and 4 of output.
    expect(await billOf("claude/opus")).toMatchObject([{ model: "claude/opus", cost: 7_000 + 8_000 }])
    expect(await billOf(null)).toMatchObject([{ model: "openai/small", cost: 21_000 + 16_000 }])
    // What another one answers instead costs what that one asks.
    one.otherwise = { status: 503 }
    expect(await billOf("small")).toMatchObject([{ model: "spare/m", cost: null }])
    expect(runtime.billedAs?.("claude/opus")).toBe("claude/opus")
  })

  it("answer once where one breaks off after its first token, and instead of one that is away", async () => {
    one.otherwise = { text: "Half an answer", breaks: "cut" }
    await expect(ask("small")).rejects.toMatchObject({ code: "TURN_FAILED" })
    expect(two.requests).toHaveLength(0)
    one.otherwise = { status: 503 }
    expect(await ask("small")).toBe("The stub says hello.")
    expect(two.requests.map(({ body }) => body.model)).toEqual(["spare"])
  })
})
