/** The AI SDK's own chat against a server, with nothing between them but an address and a key. */
import * as Client from "ai"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { ask, csrf, makeTenant, type Owner } from "../routes/RouteWorld.ts"
import { removeFolder, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const scope = Effect.runSync(Scope.make())
const dataDir = temporaryFolder()
let stub: ModelStub.ModelStub
let spoke: Spoke
let strange: Owner
let strangeKey = ""

beforeAll(async () => {
  stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
  spoke = await start(dataDir, {
    OPENAI_BASE_URL: stub.url,
    OPENAI_API_KEY: "sk-stub-4711",
    SPOKE_EMBEDDING_MODEL: "offline"
  })
  strange = await makeTenant(spoke, "strange")
  const post = async (path: string, body: unknown) =>
    JSON.parse((await ask(spoke, "POST", path, { cookie: strange.cookie, headers: csrf, body })).text).data
  const { agent } = await post("/api/agents", { name: "Other" })
  strangeKey = (await post(`/api/agents/${agent.id}/keys`, { name: "k", permissions: ["chat"] })).secret
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(dataDir)
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

beforeEach(() => stub.reset())

/** What `useChat` keeps, without a page. */
class State implements Client.ChatState<Client.UIMessage> {
  status: Client.ChatStatus = "ready"
  error: Error | undefined = undefined
  messages: Array<Client.UIMessage> = []
  pushMessage = (message: Client.UIMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: Client.UIMessage) => {
    this.messages = this.messages.with(index, message)
  }
  snapshot = <T>(thing: T): T => structuredClone(thing)
}

class Chat extends Client.AbstractChat<Client.UIMessage> {}

const chatOf = (id: string, key = spoke.apiKey, body: object = {}) =>
  new Chat({
    id,
    state: new State(),
    transport: new Client.DefaultChatTransport({
      api: `${spoke.url}/v1/chat/stream`,
      headers: { "x-api-key": key },
      body
    })
  })

const textOf = (message: Client.UIMessage | undefined) =>
  (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("")

const lastText = ({ messages }: Chat) => textOf(messages.at(-1))

const resultOf = ({ messages }: Chat): { readonly conversationId: string } => {
  const done = messages.at(-1)?.parts.find(({ type }) => type === "data-done")
  if (done === undefined || !("data" in done)) throw new Error("The turn is not settled.")
  return (done.data as { readonly result: { readonly conversationId: string } }).result
}

/** Roles and texts of a stored conversation. */
const stored = async (id: string) => {
  const { body } = await spoke.request("GET", `/v1/conversations/${id}/messages`)
  return body.data.messages.map(({ content, role }: { role: string; content: string }) => [role, content])
}

const conversations = async (): Promise<number> =>
  (await spoke.request("GET", "/v1/conversations?limit=100")).body.data.conversations.length

const asked = () => JSON.stringify(stub.requests.at(-1)?.body)

const post = async (body: unknown, key = spoke.apiKey, route = "/v1/chat") => {
  const response = await fetch(`${spoke.url}${route}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

const resume = (id: string, key = spoke.apiKey) =>
  fetch(`${spoke.url}/v1/chat/stream/${encodeURIComponent(id)}/stream`, { headers: { "x-api-key": key } })

const user = (text: string) => ({ id: "m", role: "user", parts: [{ type: "text", text }] })

describe("A chat of the AI SDK", () => {
  it("begins a conversation with its first message and continues it with the next, also after a reload", async () => {
    const before = await conversations()
    stub.otherwise = { text: "Hello Ada." }
    const chat = chatOf("chat-a")
    await chat.sendMessage({ text: "My name is Ada." })
    expect([chat.status, chat.error, lastText(chat)]).toEqual(["ready", undefined, "Hello Ada."])
    const { conversationId } = resultOf(chat)
    await chat.sendMessage({ text: "What is my name?" })
    expect(resultOf(chat).conversationId).toBe(conversationId)
    expect(asked()).toContain("My name is Ada.")
    const reloaded = chatOf("chat-a")
    await reloaded.sendMessage({ text: "And now?" })
    expect(resultOf(reloaded).conversationId).toBe(conversationId)
    expect(await conversations()).toBe(before + 1)
    expect(await stored(conversationId)).toEqual([
      ["user", "My name is Ada."],
      ["assistant", "Hello Ada."],
      ["user", "What is my name?"],
      ["assistant", "Hello Ada."],
      ["user", "And now?"],
      ["assistant", "Hello Ada."]
    ])
  })

  it("that is stopped in the middle is resumed by another page, to the whole reply", async () => {
    const { go, pause } = gate()
    stub.otherwise = { text: "One two three four.", pause }
    const chat = chatOf("chat-b")
    const sending = chat.sendMessage({ text: "Count" })
    await until(() => stub.requests.length > 0)
    await chat.stop()
    await sending
    const page = chatOf("chat-b")
    const resuming = page.resumeStream()
    // A turn that has ended by then is not resumed.
    await until(() => page.status === "streaming")
    go()
    await resuming
    expect([page.error, lastText(page)]).toEqual([undefined, "One two three four."])
    expect((await resume("chat-b")).status).toBe(204)
    await page.resumeStream()
    expect(page.error).toBeUndefined()
    expect(await stored(resultOf(page).conversationId)).toHaveLength(2)
  })

  it("has its last message answered again, without the answer before it", async () => {
    stub.otherwise = { text: "The first answer." }
    const chat = chatOf("chat-c")
    await chat.sendMessage({ text: "Which colour?" })
    const { conversationId } = resultOf(chat)
    stub.otherwise = { text: "The second answer." }
    await chat.regenerate()
    expect([chat.error, lastText(chat), chat.messages.length]).toEqual([undefined, "The second answer.", 2])
    expect(asked()).toContain("Which colour?")
    expect(asked()).not.toContain("The first answer.")
    expect(await stored(conversationId)).toEqual([
      ["user", "Which colour?"],
      ["assistant", "The first answer."],
      ["assistant", "The second answer."]
    ])
    await chat.sendMessage({ text: "Why?" })
    expect(chat.error).toBeUndefined()
    expect(asked()).toContain("The second answer.")
  })

  it("has a message answered again whose turn is still running, and one whose turn failed", async () => {
    const { go, pause } = gate()
    stub.otherwise = { text: "Too slow.", pause }
    const chat = chatOf("chat-d")
    const sending = chat.sendMessage({ text: "Are you there?" })
    await until(() => stub.requests.length > 0)
    await chat.stop()
    await sending
    const again = chat.regenerate()
    stub.otherwise = { text: "I am." }
    go()
    await again
    expect([chat.error, lastText(chat)]).toEqual([undefined, "I am."])
    expect(asked()).not.toContain("Too slow.")
    stub.otherwise = { status: 400 }
    await chat.sendMessage({ text: "Still?" })
    expect(chat.error?.message).toBe("TURN_FAILED")
    stub.otherwise = { text: "Yes." }
    await chat.regenerate()
    expect([chat.error, lastText(chat)]).toEqual([undefined, "Yes."])
    expect(await stored(resultOf(chat).conversationId)).toEqual([
      ["user", "Are you there?"],
      ["assistant", "Too slow."],
      ["assistant", "I am."],
      ["user", "Still?"],
      ["assistant", "Yes."]
    ])
  })

  it("is one conversation when its first messages come at the same time, and every message is in it", async () => {
    const before = await conversations()
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, place) => post({ id: "chat-e", message: `Message ${place}` }))
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(new Set(answers.map(({ body }) => body.data.conversationId)).size).toBe(1)
    expect(await conversations()).toBe(before + 1)
    expect(await stored(answers[0]?.body.data.conversationId)).toHaveLength(12)
  })

  it("is another one for another agent's key, which reaches nothing of it", async () => {
    stub.otherwise = { text: "Mine." }
    const mine = chatOf("shared")
    await mine.sendMessage({ text: "My secret is 4711." })
    const theirs = chatOf("shared", strangeKey)
    await theirs.sendMessage({ text: "What is the secret?" })
    expect(theirs.error).toBeUndefined()
    expect(asked()).not.toContain("4711")
    expect(resultOf(theirs).conversationId).not.toBe(resultOf(mine).conversationId)
    const { go, pause } = gate()
    stub.otherwise = { text: "Slow.", pause }
    const sending = mine.sendMessage({ text: "Go on" })
    await until(async () => (await peek("shared")) === 200)
    expect((await resume("shared", strangeKey)).status).toBe(204)
    expect((await resume("chat-nobody", strangeKey)).status).toBe(204)
    expect((await resume("shared", "spk_nobody")).status).toBe(401)
    go()
    await sending
  })

  it("of a named person is not there for a request that names another one", async () => {
    const chat = chatOf("main", spoke.apiKey, { externalEndUserId: "ada" })
    await chat.sendMessage({ text: "Hello" })
    await chat.sendMessage({ text: "Hello again" })
    expect(chat.error).toBeUndefined()
    const refused = await post({ id: "main", message: "Hello", externalEndUserId: "bob" })
    expect([refused.status, refused.body.error.code]).toEqual([404, "CONVERSATION_NOT_FOUND"])
    expect(await stored(resultOf(chat).conversationId)).toHaveLength(4)
  })

  it("stores nothing with persist: false", async () => {
    const before = await conversations()
    const { status } = await post({ id: "chat-unstored", messages: [user("Hi")], persist: false })
    expect([status, await conversations()]).toEqual([200, before])
    expect((await resume("chat-unstored")).status).toBe(204)
  })

  it("repeats nothing under one Idempotency-Key, and refuses it for another chat", async () => {
    const send = (id: string) =>
      fetch(`${spoke.url}/v1/chat`, {
        method: "POST",
        headers: {
          "x-api-key": spoke.apiKey,
          "content-type": "application/json",
          "idempotency-key": "once-and-for-all"
        },
        body: JSON.stringify({ id, messages: [user("Once")] })
      })
    const [first, second] = [await send("chat-f"), await send("chat-f")]
    const { data } = JSON.parse(await first.text())
    expect(JSON.parse(await second.text()).data.runId).toBe(data.runId)
    expect((await send("chat-g")).status).toBe(409)
    expect(await stored(data.conversationId)).toHaveLength(2)
  })

  it("is refused in clear words when it is of no form that is known, and changes nothing", async () => {
    await post({ id: "chat-h", messages: [user("Hi")] })
    const before = await conversations()
    const requests = stub.requests.length
    const file = { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA==" }
    const cases: ReadonlyArray<readonly [object, ReadonlyArray<string | number>, string]> = [
      [{}, ["message"], "is missing"],
      [{ id: "x".repeat(201), message: "Hi" }, ["id"], "Expected a string of at most 200 characters"],
      [{ id: "\u0000", message: "Hi" }, ["id"], "Expected a string of at least 1 character"],
      [{ id: 7, message: "Hi" }, ["id"], "Expected a string"],
      [{ id: "a", messages: [] }, ["messages"], "Expected an array of at least 1 item(s)"],
      [{ id: "a", messages: ["Hi"] }, ["messages", 0], "Expected a JSON object"],
      [
        { id: "a", messages: [user("Hi"), { role: "assistant", parts: [] }] },
        ["messages", 1, "role"],
        "Expected the last message to be the user's"
      ],
      [
        { id: "a", messages: [{ role: "user", parts: [file] }] },
        ["messages", 0, "parts", 0, "type"],
        "Expected a text; files are taken by POST /api/v1/chat/stream alone"
      ],
      [{ id: "a", messages: [user("  ")] }, ["messages", 0], "Expected a string of at least 1 character"],
      [{ id: "a", message: "Hi", messages: [user("Hi")] }, ["messages"], "Send message or messages"],
      [{ id: "a", message: "Hi", conversationId: "cnv_1" }, ["id"], "Send id or conversationId"],
      [
        { messages: [user("Hi")], trigger: "regenerate-message" },
        ["id"],
        "Expected the id of the chat whose last message is answered again"
      ],
      [
        { id: "a", messages: [user("Hi")], trigger: "submit-message", messageId: "m" },
        ["messageId"],
        "A sent message cannot be changed. Send a new one, or start another chat"
      ],
      [
        { id: "chat-h", messages: [user("Another one")], trigger: "regenerate-message" },
        ["messages"],
        "Expected the last message of the chat"
      ]
    ]
    for (const [body, path, message] of cases) {
      for (const route of ["/v1/chat", "/v1/chat/stream"]) {
        const refused = await post(body, spoke.apiKey, route)
        expect([refused.status, refused.body.error.code]).toEqual([400, "VALIDATION_ERROR"])
        expect([body, refused.body.error.details.issues]).toEqual([body, [{ path, message }]])
      }
    }
    for (const letter of ["x", "😀"]) expect((await resume(letter.repeat(201))).status).toBe(400)
    expect([await conversations(), stub.requests.length]).toEqual([before, requests])
  })

  it("may have a long id of any characters", async () => {
    for (const id of [`${"漢/?#%".repeat(39)} İend`, "😀".repeat(200)]) {
      const chat = chatOf(id)
      await chat.sendMessage({ text: "Hi" })
      await chat.resumeStream()
      expect([chat.status, chat.error]).toEqual(["ready", undefined])
      const first = resultOf(chat).conversationId
      await chat.sendMessage({ text: "Hi" })
      expect(resultOf(chat).conversationId).toBe(first)
    }
  })
})

const peek = async (id: string) => {
  const { body, status } = await resume(id)
  await body?.cancel()
  return status
}

const until = async (holds: () => boolean | Promise<boolean>) => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20))
}

const gate = () => {
  let go: () => void = () => undefined
  const pause = new Promise<void>((resolve) => (go = resolve))
  return { go, pause }
}
