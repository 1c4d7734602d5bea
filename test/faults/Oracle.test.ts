import { describe, expect, it } from "vitest"
import { type Asked, emptyHistory, type Found, type History, type StoredMessage } from "./History.ts"
import { judge } from "./Oracle.ts"
import { randomOf } from "./Random.ts"

const asked = (status = 200, changes: Partial<Asked> = {}): Asked => ({
  kind: "request",
  status,
  code: null,
  milliseconds: 5,
  ...changes
})

const message = (changes: Partial<StoredMessage>): StoredMessage => ({
  id: "msg_1",
  conversationId: "cnv_1",
  position: 1,
  role: "user",
  author: null,
  content: "turn-1",
  channelMessageId: null,
  answeredBy: null,
  createdAt: 1_000,
  ...changes
})

/** Some of everything, and all of it as it should be. */
const sound = (): { history: History; found: Found } => ({
  history: {
    ...emptyHistory(),
    asked: [
      asked(),
      asked(0),
      asked(503, { code: "SERVICE_UNAVAILABLE" }),
      asked(500, { code: "TURN_FAILED" })
    ],
    turns: [
      { ...asked(), mark: "turn-1", persist: true, done: true },
      { ...asked(), mark: "turn-2", persist: false, done: true },
      { ...asked(0), mark: "turn-3", persist: true, done: false }
    ],
    creations: [1, 2].map(() => ({
      ...asked(201),
      mark: "source-1",
      idempotencyKey: "key-1",
      sourceId: "src_1",
      data: "the same"
    })),
    deletions: [{ ...asked(), sourceId: "src_2", mark: "source-2" }],
    deliveries: [{ ...asked(), messageId: "wamid.1" }],
    said: [{ ...asked(201), mark: "human-1" }],
    takings: [{ ...asked(), conversationId: "cnv_1", at: 2_000 }],
    payments: [
      { ...asked(0), eventId: "evt_1", credits: 5 },
      { ...asked(), eventId: "evt_1", credits: 5 }
    ],
    plans: [
      { ...asked(), eventId: "evt_2", created: 20, plan: "large" },
      { ...asked(), eventId: "evt_3", created: 10, plan: "small" }
    ],
    revocations: [{ ...asked(), keyId: "key" }]
  },
  found: {
    messages: [
      message({}),
      message({ id: "msg_2", position: 2, role: "assistant", author: "agent", content: "Hello." }),
      message({
        id: "msg_3",
        position: 3,
        role: "assistant",
        author: "human",
        content: "human-1",
        createdAt: 3_000
      }),
      message({ id: "msg_4", conversationId: "cnv_2", channelMessageId: "wamid.1", content: "Where?" })
    ],
    runs: [
      { id: "run_1", status: "complete", messageId: "msg_2", userMessageId: "msg_1", last: "run.completed" }
    ],
    sources: [
      { id: "src_1", name: "source-1", status: "READY", lastError: null },
      { id: "src_3", name: "other", status: "FAILED", lastError: "HTTP_ERROR" }
    ],
    ingestionJobs: [{ id: "job_1", status: "FAILED", error: "HTTP_ERROR" }],
    jobs: [],
    inbox: [{ messageId: "wamid.1", state: "processed" }],
    outbox: [{ id: "out_1", state: "sent", resent: true, lastError: null }],
    taken: new Map([["out_1", 2]]),
    reserved: 2,
    counted: 2,
    granted: 5,
    plan: "large",
    revoked: new Map([["key", 401]]),
    retrievable: [],
    walked: { conversations: ["cnv_1"], messages: new Map([["cnv_1", ["msg_1", "msg_2", "msg_3"]]]) },
    listed: ["cnv_1"]
  }
})

type Change = (world: ReturnType<typeof sound>) => { history?: Partial<History>; found?: Partial<Found> }

/** What is broken, and a part of the sentence that says so. */
const broken: ReadonlyArray<readonly [string, Change]> = [
  ["answered 500 INTERNAL_ERROR", () => ({ history: { asked: [asked(500, { code: "INTERNAL_ERROR" })] } })],
  ["answered 404 without an envelope", () => ({ history: { asked: [asked(404)] } })],
  ["took 70001 ms", () => ({ history: { asked: [asked(200, { milliseconds: 70_001 })] } })],
  [
    "turn turn-1 was answered and is not stored",
    ({ found }) => ({ found: { messages: found.messages.slice(1) } })
  ],
  [
    "turn turn-1 is stored 2 times",
    ({ found }) => ({ found: { messages: [...found.messages, message({ id: "msg_5", position: 4 })] } })
  ],
  [
    "turn turn-2 was not to be stored",
    ({ found }) => ({ found: { messages: [...found.messages, message({ id: "msg_5", content: "turn-2" })] } })
  ],
  [
    "turn turn-1 was answered and is not stored whole",
    ({ found }) => ({ found: { messages: found.messages.filter(({ id }) => id !== "msg_2") } })
  ],
  [
    "the trace of turn turn-1 ends with run.started",
    ({ found }) => ({ found: { runs: found.runs.map((run) => ({ ...run, last: "run.started" })) } })
  ],
  [
    "run run_1 is still running",
    ({ found }) => ({ found: { runs: found.runs.map((run) => ({ ...run, status: "running" })) } })
  ],
  [
    "source source-1 is PROCESSING",
    ({ found }) => ({ found: { sources: found.sources.map((one) => ({ ...one, status: "PROCESSING" })) } })
  ],
  [
    "source other is FAILED, without a reason",
    ({ found }) => ({ found: { sources: found.sources.map((one) => ({ ...one, lastError: null })) } })
  ],
  [
    "ingestion job job_1 is RUNNING",
    () => ({ found: { ingestionJobs: [{ id: "job_1", status: "RUNNING", error: null }] } })
  ],
  [
    "job qjb_1 of ingestion is still waiting",
    () => ({ found: { jobs: [{ id: "qjb_1", queue: "ingestion", state: "waiting" }] } })
  ],
  ["source source-1 was created and is not there", () => ({ found: { sources: [] } })],
  [
    "source source-1 is there 2 times",
    ({ found }) => ({
      found: {
        sources: [...found.sources, { id: "src_9", name: "source-1", status: "READY", lastError: null }]
      }
    })
  ],
  [
    "repeats with key key-1 were answered differently",
    ({ history }) => ({
      history: { creations: history.creations.map((one, place) => ({ ...one, data: `${place}` })) }
    })
  ],
  [
    "source src_2 was deleted and is there",
    ({ found }) => ({
      found: {
        sources: [...found.sources, { id: "src_2", name: "source-2", status: "READY", lastError: null }]
      }
    })
  ],
  ["deleted source source-2 is still found", () => ({ found: { retrievable: ["source-2"] } })],
  ["delivery wamid.1 is in the inbox 0 times", () => ({ found: { inbox: [] } })],
  ["delivery wamid.1 waits", () => ({ found: { inbox: [{ messageId: "wamid.1", state: "queued" }] } })],
  [
    "delivery wamid.1 is stored 2 times",
    ({ found }) => ({
      found: {
        messages: [...found.messages, message({ id: "msg_5", content: "", channelMessageId: "wamid.1" })]
      }
    })
  ],
  ["reply out_1 was sent 3 times", () => ({ found: { taken: new Map([["out_1", 3]]) } })],
  ["reply out_1 is marked as sent, and was not", () => ({ found: { taken: new Map() } })],
  [
    "reply out_1 is sending",
    ({ found }) => ({ found: { outbox: found.outbox.map((one) => ({ ...one, state: "sending" })) } })
  ],
  [
    "what a human said, human-1, is stored 0 times",
    ({ found }) => ({ found: { messages: found.messages.filter(({ author }) => author !== "human") } })
  ],
  [
    "the agent wrote msg_2 after a human had taken over",
    ({ history }) => ({ history: { takings: history.takings.map((one) => ({ ...one, at: 500 })) } })
  ],
  ["1 turns are counted", () => ({ found: { counted: 1, reserved: 1 } })],
  ["3 turns are reserved and 2 counted", () => ({ found: { reserved: 3 } })],
  [
    "payments evt_1 were never accepted",
    ({ history }) => ({ history: { payments: history.payments.slice(0, 1) } })
  ],
  ["10 credits are granted for 5", () => ({ found: { granted: 10 } })],
  ["the tenant is on plan small, and was last told to be on large", () => ({ found: { plan: "small" } })],
  ["revoked key key is answered 200", () => ({ found: { revoked: new Map([["key", 200]]) } })],
  [
    "the walk of conversations loses cnv_1",
    ({ found }) => ({ found: { walked: { ...found.walked, conversations: [] } } })
  ],
  [
    "the walk of conversations doubles",
    ({ found }) => ({ found: { walked: { ...found.walked, conversations: ["cnv_1", "cnv_1"] } } })
  ],
  [
    "the walk of cnv_1 loses msg_3",
    ({ found }) => ({
      found: { walked: { ...found.walked, messages: new Map([["cnv_1", ["msg_1", "msg_2"]]]) } }
    })
  ]
]

describe("The oracle of the fault suite", () => {
  it("has nothing to say where all is well", () => {
    const { found, history } = sound()
    expect(judge(history, found)).toEqual([])
  })

  it.each(broken)("notices: %s", (sentence, change) => {
    const world = sound()
    const { found, history } = change(world)
    const said = judge({ ...world.history, ...history }, { ...world.found, ...found })
    expect(said.filter((one) => one.includes(sentence))).not.toEqual([])
  })
})

it("The same seed makes the same choices, another one others", () => {
  const drawn = (seed: number) => {
    const random = randomOf(seed)
    return Array.from({ length: 20 }, () => random.below(1_000))
  }
  expect(drawn(7)).toEqual(drawn(7))
  expect(drawn(7)).not.toEqual(drawn(8))
})
