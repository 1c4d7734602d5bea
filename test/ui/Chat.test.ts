import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Chat } from "../../src/ui/widget/Chat.ts"
import { type Client, clientOf, type Message, Refusal } from "../../src/ui/widget/Client.ts"
import { messagesFromPending } from "../../src/ui/widget/Pending.ts"
import type { Settings } from "../../src/ui/widget/Settings.ts"

const settings: Settings = {
  base: "http://spoke.example",
  key: "key",
  language: "en",
  externalEndUserId: null,
  visitorToken: null,
  position: "end",
  accent: null,
  open: true,
  widget: null
}

const messageOf = (id: string, role: Message["role"], content: string): Message => ({
  id,
  role,
  author: role === "user" ? null : "agent",
  content,
  citations: [],
  media: [],
  notice: null,
  rating: null,
  createdAt: "2026-01-01T00:00:00.000Z"
})

class Sockets extends EventTarget {
  static all: Array<Sockets> = []
  constructor() {
    super()
    Sockets.all.push(this)
  }
  close() {}
}

type Poll = Awaited<ReturnType<Client["conversation"]>>

/** A service with one conversation. A test may delay or replace its responses. */
const service = () => {
  const stored = {
    messages: new Array<Message>(),
    state: "AI_ACTIVE" as NonNullable<Poll["conversation"]>["state"],
    turn: null as Poll["turn"],
    sessions: 0,
    polls: 0
  }
  const poll = (): Poll =>
    ({
      conversation: stored.messages.length === 0 ? null : { id: "cnv_1", state: stored.state },
      turn: stored.turn,
      realtimeToken: "token",
      realtimeUrl: "ws://spoke.example"
    }) as Poll
  const client: { -readonly [Name in keyof Client]: Client[Name] } = {
    ...clientOf(settings),
    init: () => {
      stored.sessions += 1
      return Promise.resolve({
        sessionId: `ses_${stored.sessions}`,
        agent: { id: "agt_1", name: "Agent", greeting: null },
        endUserId: "usr_1",
        conversationId: null,
        realtimeToken: null,
        realtimeUrl: ""
      } as Awaited<ReturnType<Client["init"]>>)
    },
    conversation: () => {
      stored.polls += 1
      return Promise.resolve(poll())
    },
    messages: () => Promise.resolve({ messages: stored.messages, nextCursor: null, hasMore: false }),
    send: () => Promise.reject(new Error("The connection broke."))
  }
  const tell = (frame: unknown) =>
    Sockets.all.at(-1)?.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) }))
  return { client, poll, stored, tell }
}

const never = <A>() => new Promise<A>(() => undefined)

/** The storage of a site, which all of its pages share. */
const storage = () => {
  const items: Record<string, string> = {}
  const hidden = (name: string, value: unknown) => Object.defineProperty(items, name, { value })
  hidden("getItem", (key: string) => items[key] ?? null)
  hidden("setItem", (key: string, value: string) => (items[key] = value))
  hidden("removeItem", (key: string) => Reflect.deleteProperty(items, key))
  return items
}

/** The locks of a site, for requests that wait and for those that do not. */
const siteLocks = () => {
  const queues = new Map<string, Promise<unknown>>()
  type Use = (lock: object | null) => unknown
  const request = async (name: string, ...rest: readonly [Use] | readonly [object, Use]) => {
    const use = rest.length === 1 ? rest[0] : rest[1]
    const before = queues.get(name)
    if (rest.length === 2 && before !== undefined) return use(null)
    const held = Promise.resolve(before).then(() => use({}))
    queues.set(name, held)
    await held
    if (queues.get(name) === held) queues.delete(name)
    return undefined
  }
  return { request }
}

describe("The widget's conversation", () => {
  /** The page's events, and whether it is visible. */
  let page: EventTarget & { visibilityState?: string }

  beforeEach(() => {
    vi.useFakeTimers()
    Sockets.all = []
    page = new EventTarget()
    vi.stubGlobal("WebSocket", Sockets)
    vi.stubGlobal("document", page)
    vi.stubGlobal("addEventListener", page.addEventListener.bind(page))
    vi.stubGlobal("removeEventListener", page.removeEventListener.bind(page))
  })

  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it("keeps a message that is being sent, whatever happened to the one before it", async () => {
    const { client, stored, tell } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello"), messageOf("msg_2", "assistant", "Hi")]
    const chat = new Chat(settings, client, null)
    await chat.start()
    await vi.advanceTimersByTimeAsync(0)
    await chat.send("First", [])
    expect(chat.view.live?.phase).toBe("unconfirmed")
    stored.messages = [
      ...stored.messages,
      messageOf("msg_3", "user", "First"),
      messageOf("msg_4", "assistant", "One")
    ]
    tell({ type: "message.created" })
    await vi.advanceTimersByTimeAsync(100)
    expect(chat.view.live).toBeNull()
    // It takes long, because its files are being uploaded.
    client.send = never
    void chat.send("Second", [])
    await vi.advanceTimersByTimeAsync(20_000)
    expect(chat.view.live).toMatchObject({ message: "Second", phase: "streaming" })
    expect(chat.view.problem).toBeNull()
    expect(chat.draft.text).toBe("")
  })

  it("continues to send a message while the conversation cannot be read", async () => {
    const { client, stored } = service()
    const { conversation } = client
    client.conversation = () => Promise.reject(new Error("The connection broke."))
    client.send = never
    const chat = new Chat(settings, client, null)
    await chat.start()
    void chat.send("Hello", [])
    await vi.advanceTimersByTimeAsync(100)
    client.conversation = conversation
    await vi.advanceTimersByTimeAsync(20_000)
    expect(stored.polls).toBeGreaterThan(0)
    expect(chat.view.live).toMatchObject({ message: "Hello", phase: "streaming" })
    expect([chat.view.ready, chat.draft.text]).toEqual([true, ""])
  })

  it("becomes ready if a message was lost before the conversation could be read", async () => {
    const { client } = service()
    const { conversation } = client
    client.conversation = () => Promise.reject(new Error("The connection broke."))
    const chat = new Chat(settings, client, null)
    await chat.start()
    await chat.send("Hello", [])
    client.conversation = conversation
    await vi.advanceTimersByTimeAsync(30_000)
    expect([chat.view.ready, chat.view.live, chat.draft.text]).toEqual([true, null, "Hello"])
  })

  it("neither polls nor opens a socket after it has ended", async () => {
    const { client, poll, stored } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello")]
    let answer: (found: Poll) => void = () => undefined
    client.conversation = () => {
      stored.polls += 1
      return new Promise((resolve) => {
        answer = resolve
      })
    }
    const opened = new Chat(settings, client, null)
    void opened.start()
    await vi.advanceTimersByTimeAsync(0)
    opened.end()
    answer(poll())
    await vi.advanceTimersByTimeAsync(60_000)
    expect([Sockets.all.length, stored.polls]).toEqual([0, 1])
  })

  it("stops polling for the outcome of a message after it has ended", async () => {
    const { client, stored } = service()
    const chat = new Chat(settings, client, null)
    await chat.start()
    let fail: () => void = () => undefined
    client.conversation = () => {
      stored.polls += 1
      return new Promise((_, reject) => {
        fail = () => reject(new Error("The connection broke."))
      })
    }
    await chat.send("Hello", [])
    await vi.advanceTimersByTimeAsync(2_000)
    const { polls } = stored
    chat.end()
    fail()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(stored.polls).toBe(polls)
  })

  it("shows a message at once that is sent before the session has begun, after the earlier messages", async () => {
    const { client, stored } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello"), messageOf("msg_2", "assistant", "Hi")]
    const { init } = client
    let begin: () => void = () => undefined
    client.init = (body) =>
      new Promise((resolve) => {
        begin = () => resolve(init(body))
      })
    const chat = new Chat(settings, client, null)
    void chat.send("Hello", [])
    await vi.advanceTimersByTimeAsync(0)
    expect(chat.view.live?.message).toBe("Hello")
    client.send = () => {
      stored.messages = [...stored.messages, messageOf("msg_3", "user", "Hello")]
      stored.turn = { messageId: "msg_3", status: "running" } as Poll["turn"]
      return Promise.reject(new Error("The connection broke."))
    }
    begin()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(chat.view.messages.map(({ id }) => id)).toEqual(["msg_1", "msg_2"])
    // The first message has the same text, and is not taken for it.
    expect(chat.view.live).toMatchObject({ message: "Hello", phase: "unconfirmed" })
    chat.end()
  })

  it("returns a message to the draft if the session cannot begin", async () => {
    const { client } = service()
    client.init = () => Promise.reject(new Refusal(403, "FORBIDDEN"))
    const chat = new Chat(settings, client, null)
    await chat.send("Hello", [])
    expect([chat.view.live, chat.draft.text]).toEqual([null, "Hello"])
    expect(chat.view.problem).toBe("This chat is not allowed on this website.")
  })

  it("begins another session after its own was erased", async () => {
    const { client } = service()
    const sent: Array<string> = []
    client.send = (sessionId) => {
      sent.push(sessionId)
      return sessionId === "ses_1" ? Promise.reject(new Refusal(404, "NOT_FOUND")) : never()
    }
    const chat = new Chat(settings, client, null)
    await chat.start()
    await chat.send("Hello", [])
    expect([chat.draft.text, chat.view.problem, chat.view.live]).toEqual([
      "Hello",
      "Something went wrong. Please try again.",
      null
    ])
    void chat.send("Hello", [])
    await vi.advanceTimersByTimeAsync(100)
    expect(sent).toEqual(["ses_1", "ses_2"])
  })

  it("returns a message to the draft if its session was erased while it was being sent", async () => {
    const { client, stored } = service()
    const chat = new Chat(settings, client, null)
    await chat.start()
    await chat.send("Hello", [])
    client.conversation = () => {
      stored.polls += 1
      return Promise.reject(new Refusal(404, "NOT_FOUND"))
    }
    await vi.advanceTimersByTimeAsync(2_000)
    const { polls } = stored
    await vi.advanceTimersByTimeAsync(60_000)
    expect([chat.draft.text, chat.view.live, stored.polls - polls]).toEqual(["Hello", null, 0])
  })

  it("does not show a conversation that the visitor left while it was being read", async () => {
    const { client, poll, stored, tell } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello")]
    stored.state = "CLOSED"
    const chat = new Chat(settings, client, null)
    await chat.start()
    await vi.advanceTimersByTimeAsync(0)
    let answer: (found: Poll) => void = () => undefined
    client.conversation = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    tell({ type: "message.created" })
    await vi.advanceTimersByTimeAsync(0)
    chat.startNewConversation()
    answer(poll())
    await vi.advanceTimersByTimeAsync(100)
    expect([chat.view.state, chat.view.messages]).toEqual(["AI_ACTIVE", []])
  })

  it("shows a stored message while its answer takes long, and does not return it to the draft", async () => {
    const { client, stored } = service()
    const chat = new Chat(settings, client, null)
    await chat.start()
    await chat.send("Hello", [])
    stored.messages = [messageOf("msg_1", "user", "Hello")]
    stored.turn = { messageId: "msg_1", status: "running" } as Poll["turn"]
    await vi.advanceTimersByTimeAsync(200_000)
    expect(chat.draft.text).toBe("")
    stored.messages = [...stored.messages, messageOf("msg_2", "assistant", "Hi")]
    stored.turn = { messageId: "msg_1", status: "complete" } as Poll["turn"]
    await vi.advanceTimersByTimeAsync(5_000)
    expect([chat.view.live, chat.view.messages.length, chat.draft.text]).toEqual([null, 2, ""])
  })

  it("finds a message of several lines that was sent with a file, in which lines end with CR LF", () => {
    const pending = { message: "One\ntwo", after: null, at: 0 }
    expect(messagesFromPending(pending, [messageOf("msg_1", "user", "One\r\ntwo")])).toHaveLength(1)
  })

  it("aborts a turn whose response does not begin in time, and polls for its outcome", async () => {
    const { client, stored } = service()
    vi.stubGlobal(
      "fetch",
      (_: string, { signal }: RequestInit) =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener("abort", () => reject(new Error("Aborted.")))
        )
    )
    client.send = clientOf(settings).send
    const chat = new Chat(settings, client, null)
    await chat.start()
    void chat.send("Hello", [])
    // Longer than a turn waits for the one before it.
    await vi.advanceTimersByTimeAsync(80_000)
    expect(chat.view.live?.phase).toBe("streaming")
    const { polls } = stored
    await vi.advanceTimersByTimeAsync(20_000)
    expect(stored.polls).toBeGreaterThan(polls)
    expect([chat.view.live, chat.draft.text]).toEqual([null, "Hello"])
    expect(chat.view.problem).toBe("Your message did not arrive. You can send it again.")
  })

  it("opens the socket again when the network is back, or the page is shown after a minute", async () => {
    const { client, stored } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello")]
    const chat = new Chat(settings, client, null)
    const after = async (type: string, visibilityState: string, minutes: number) => {
      await vi.advanceTimersByTimeAsync(minutes * 60_000)
      page.visibilityState = visibilityState
      page.dispatchEvent(new Event(type))
      await vi.advanceTimersByTimeAsync(100)
      return Sockets.all.length
    }
    await chat.start()
    // A socket whose connection is gone often stays open, for example after the device slept.
    expect(await after("online", "visible", 1)).toBe(2)
    expect(await after("visibilitychange", "hidden", 1)).toBe(2)
    expect(await after("visibilitychange", "visible", 2)).toBe(3)
    expect(await after("visibilitychange", "hidden", 1)).toBe(3)
    expect(await after("visibilitychange", "visible", 0.1)).toBe(3)
    // The end of a replaced socket opens no further one.
    Sockets.all[0]?.dispatchEvent(new Event("close"))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(Sockets.all.length).toBe(3)
    chat.end()
    expect(await after("online", "visible", 1)).toBe(3)
  })

  it("asks rarely for the socket of a conversation that it may not read any more", async () => {
    const { client, stored } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello")]
    const chat = new Chat(settings, client, null)
    await chat.start()
    await vi.advanceTimersByTimeAsync(100)
    const answers: ReadonlyArray<Client["conversation"]> = [
      () => Promise.reject(new Refusal(401, "UNAUTHORIZED")),
      () => Promise.resolve({ conversation: null, turn: null, realtimeToken: null, realtimeUrl: "" })
    ]
    for (const answer of answers) {
      client.conversation = () => {
        stored.polls += 1
        return answer("")
      }
      const { polls } = stored
      Sockets.all.at(-1)?.dispatchEvent(new Event("close"))
      await vi.advanceTimersByTimeAsync(600_000)
      expect(stored.polls - polls).toBeLessThan(6)
    }
    chat.end()
  })

  it("says to reload the page when the visitor's token has expired", async () => {
    const { client } = service()
    client.init = () => Promise.reject(new Refusal(401, "UNAUTHORIZED"))
    const chat = new Chat({ ...settings, visitorToken: "token" }, client, null)
    await chat.start()
    expect(chat.view.problem).toBe("Your access to this chat has expired. Please reload the page.")
  })

  it("begins another session when the page names another visitor, and shows nothing of the first", async () => {
    const { client, stored } = service()
    stored.messages = [messageOf("msg_1", "user", "Hello"), messageOf("msg_2", "assistant", "Hi")]
    const { conversation, init } = client
    const begun: Array<unknown> = []
    client.init = (body) => {
      begun.push(body)
      return init(body)
    }
    client.identify = (sessionId, id) =>
      id === (sessionId === "ses_1" ? "anna" : "ben")
        ? Promise.resolve({})
        : Promise.reject(new Refusal(409, "CONFLICT"))
    client.conversation = (sessionId) =>
      sessionId === "ses_1"
        ? conversation(sessionId)
        : Promise.resolve({ conversation: null, turn: null, realtimeToken: null, realtimeUrl: "" })
    const chat = new Chat(settings, client, null)
    await chat.identify("anna")
    expect(chat.view.messages.length).toBe(2)
    await chat.identify("ben")
    expect([chat.view.messages, chat.view.ready]).toEqual([[], true])
    expect(begun).toEqual([{}, { externalEndUserId: "ben" }])
    await chat.identify("ben")
    expect(stored.sessions).toBe(2)
    chat.end()
  })

  it("reads a stream for longer than its answer may take to begin", async () => {
    let given: AbortSignal | null | undefined
    vi.stubGlobal("fetch", (_: string, { signal }: RequestInit) => {
      given = signal
      return Promise.resolve(new Response(new ReadableStream()))
    })
    const leaving = new AbortController()
    await clientOf(settings).send("ses_1", { message: "Hello", files: [], retryOf: null }, leaving.signal)
    await vi.advanceTimersByTimeAsync(1_000_000)
    expect(given?.aborted).toBe(false)
    leaving.abort()
    expect(given?.aborted).toBe(true)
  })

  describe.each([
    ["with locks", siteLocks],
    ["without locks", () => undefined]
  ])("of several pages of one site, %s,", (_, locks) => {
    const name = "spoke.widget.test"
    /** The `pagehide` listener of each page. */
    const leaving: Array<() => void> = []

    beforeEach(() => {
      leaving.splice(0)
      vi.stubGlobal("localStorage", storage())
      vi.stubGlobal("navigator", { locks: locks() })
      vi.stubGlobal("addEventListener", (type: string, listener: () => void) => {
        if (type === "pagehide") leaving.push(listener)
      })
    })

    /** A page that sends a message, which never arrives. */
    const sending = async (message: string, said: Array<Message> = []) => {
      const { client, stored } = service()
      stored.messages = said
      client.init = () =>
        Promise.resolve({
          sessionId: "ses_1",
          agent: { id: "agt_1", name: "Agent", greeting: null }
        } as Awaited<ReturnType<Client["init"]>>)
      const chat = new Chat(settings, client, name)
      const leave = leaving.at(-1) ?? (() => chat.end())
      await chat.start()
      client.send = never
      if (message !== "") void chat.send(message, [])
      await vi.advanceTimersByTimeAsync(100)
      return { chat, leave }
    }

    it("each sends its own message", async () => {
      const first = await sending("First")
      const second = await sending("Second")
      expect(first.chat.view.live?.message).toBe("First")
      expect(second.chat.view.live?.message).toBe("Second")
      const third = await sending("")
      expect([third.chat.view.live, third.chat.draft.text]).toEqual([null, ""])
      second.leave()
      const fourth = await sending("")
      await vi.advanceTimersByTimeAsync(10_000)
      expect(fourth.chat.draft.text).toBe("Second")
      expect(first.chat.view.live).toMatchObject({ message: "First", phase: "streaming" })
      for (const { chat } of [first, third, fourth]) chat.end()
    })

    it("the next page takes over the message of a closed one, and no later page does", async () => {
      const gone = await sending("Hello")
      gone.leave()
      const next = await sending("")
      expect(next.chat.view.live).toMatchObject({ message: "Hello", phase: "unconfirmed" })
      const other = await sending("")
      await vi.advanceTimersByTimeAsync(10_000)
      expect([next.chat.draft.text, other.chat.draft.text]).toEqual(["Hello", ""])
      for (const { chat } of [next, other]) chat.end()
      const last = await sending("")
      await vi.advanceTimersByTimeAsync(10_000)
      expect([last.chat.view.live, last.chat.draft.text]).toEqual([null, ""])
      last.chat.end()
    })

    it("a page that is closed before its session has begun takes no message", async () => {
      const gone = await sending("Hello")
      gone.leave()
      const { client } = service()
      let begin: () => void = () => undefined
      const { init } = client
      client.init = (body) =>
        new Promise((resolve) => {
          begin = () => resolve(init(body))
        })
      const early = new Chat(settings, client, name)
      void early.start()
      early.end()
      begin()
      await vi.advanceTimersByTimeAsync(100)
      const next = await sending("")
      expect(next.chat.view.live?.message).toBe("Hello")
      next.chat.end()
    })

    it("the next page shows the earlier messages during the recovery and after it", async () => {
      const said = [messageOf("msg_1", "user", "Hi"), messageOf("msg_2", "assistant", "Hello.")]
      const gone = await sending("Help", said)
      gone.leave()
      const { chat } = await sending("", said)
      expect([chat.view.live?.message, chat.view.messages]).toEqual(["Help", said])
      await vi.advanceTimersByTimeAsync(10_000)
      expect([chat.view.live, chat.view.messages, chat.draft.text]).toEqual([null, said, "Help"])
      chat.end()
    })

    it("only one of two pages that open at once takes over a message", async () => {
      const gone = await sending("Hello")
      gone.leave()
      const both = await Promise.all([sending(""), sending("")])
      await vi.advanceTimersByTimeAsync(10_000)
      expect(both.map(({ chat }) => chat.draft.text).toSorted()).toEqual(["", "Hello"])
      for (const { chat } of both) chat.end()
    })
  })
})
