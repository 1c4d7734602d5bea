import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import type { AliasUpdate } from "../../../src/domain/channels/Channel.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { ConversationId, newId, UserId } from "../../../src/domain/Ids.ts"
import { InboundEvents } from "../../../src/store/channels/InboundEvents.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Inbound } from "../../../src/usecases/channels/Inbound.ts"
import { Takeover } from "../../../src/usecases/conversations/Takeover.ts"
import { counterValue } from "../../Counters.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, says, Script } from "../chat/TurnHarness.ts"
import {
  accept,
  account,
  channelOf,
  inboundLayer,
  job,
  message,
  ours,
  outbox,
  phone,
  receive,
  shown,
  states,
  transcript,
  user
} from "./InboundHarness.ts"

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, inboundLayer()))

const rows = (query: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Record<string, unknown>>(query))

const only = Effect.map(rows("select id from conversations order by id desc limit 1"), ([row]) =>
  ConversationId.make(String(row?.["id"]))
)

const member = (tenantId: AgentScope["tenantId"]) => ({
  userId: UserId.make("mbr_1"),
  tenantId,
  email: "a@b.test",
  role: "agent" as const,
  session: null
})

const asksForHuman = (reason: string, ...then: ReadonlyArray<string>) => {
  let asked = false
  return () => {
    const parts: ReadonlyArray<ModelPart> = asked
      ? then.map((delta) => ({ _tag: "TextDelta", delta }))
      : [{ _tag: "ToolCall", id: "call_1", name: "hand_off_to_human", input: { reason }, rawInput: "" }]
    const finish: ModelPart = {
      _tag: "Finish",
      reason: asked ? "stop" : "tool-calls",
      inputTokens: 1,
      outputTokens: 1
    }
    asked = true
    return Stream.fromIterable([...parts, finish])
  }
}

eachEngineLive("A message of a channel", (it) => {
  it.scoped(
    "is stored and answered once in the conversation of its contact, even if it is delivered repeatedly",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const inbound = yield* Inbound
        const [id] = yield* accept(yield* message({ text: "Are you open?" }))
        if (id === undefined) return expect.unreachable()
        yield* inbound.process(job(id))
        yield* inbound.process(job(id))
        expect(yield* transcript).toEqual(["1 user: Are you open?", "2 agent: Hello"])
        expect(yield* outbox).toEqual(["agent 0: Hello"])
        expect(yield* rows("select state, outcome from channel_inbox")).toEqual([
          { state: "processed", outcome: null }
        ])
        // After its claim has run out it comes again, and meanwhile the conversation is over.
        yield* rows("update conversations set state = 'CLOSED'")
        yield* rows("delete from dedupe_keys")
        const first = yield* rows("select event from channel_inbox")
        yield* rows(
          "insert into channel_inbox (id, channel, account_id, message_id, event, raw) select 'inb_again', channel, account_id, message_id, event, raw from channel_inbox"
        )
        yield* inbound.process(job(yield* Effect.sync(() => "inb_again" as typeof id)))
        expect(first).toHaveLength(1)
        expect(yield* transcript).toHaveLength(2)
        expect(yield* states).toEqual(["CLOSED"])
      }).pipe(onFreshData)
  )

  it.scoped("begins a new conversation after the last one was closed, with an empty history", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message())
      yield* rows("update conversations set state = 'CLOSED'")
      yield* receive(yield* message())
      expect(yield* states).toEqual(["CLOSED", "AI_ACTIVE"])
      const { requests } = yield* Script
      expect((yield* Ref.get(requests)).at(-1)?.prompt.content.map(({ role }) => role)).toEqual([
        "system",
        "user"
      ])
      expect(yield* rows("select count(*)::int as n from end_users")).toEqual([{ n: 1 }])
    }).pipe(onFreshData)
  )

  it.scoped("shares one reply with other messages that arrive at the same time", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(
        yield* message({ text: "Hi" }),
        yield* message({ text: "are you there?" }),
        yield* message({ text: "I need help" })
      )
      expect(yield* transcript).toEqual([
        "1 user: Hi",
        "2 user: are you there?",
        "3 user: I need help",
        "4 agent: Hello"
      ])
      const { requests } = yield* Script
      const asked = yield* Ref.get(requests)
      expect(asked.map(({ question }) => question)).toEqual(["Hi\nare you there?\nI need help"])
      expect(asked[0]?.prompt.content.map(({ role }) => role)).toEqual(["system", "user"])
      expect(
        yield* rows("select count(distinct answered_by)::int as n from messages where role = 'user'")
      ).toEqual([{ n: 1 }])
      yield* receive(yield* message({ text: "Thanks" }))
      expect((yield* Ref.get(requests)).at(-1)?.prompt.content.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "user",
        "user",
        "assistant",
        "user"
      ])
    }).pipe(onFreshData)
  )

  it.scoped("shares one reply with all messages of a burst, and none of them is answered again", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const texts = Array.from({ length: 60 }, (_, place) => `Part ${place + 1}`)
      yield* receive(...(yield* Effect.forEach(texts, (text) => message({ text }))))
      const { requests } = yield* Script
      expect((yield* Ref.get(requests)).map(({ question }) => question)).toEqual([texts.join("\n")])
      expect(yield* rows("select id from messages where role = 'user' and answered_by is null")).toEqual([])
      yield* receive(yield* message({ text: "Thanks!" }))
      expect((yield* Ref.get(requests)).at(-1)?.question).toBe("Thanks!")
    }).pipe(onFreshData)
  )

  it.scoped("is answered by its last 32,000 characters together with the messages before it", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const texts = ["a", "b", "c"].map((letter) => letter.repeat(15_000))
      yield* receive(...(yield* Effect.forEach(texts, (text) => message({ text }))))
      const { requests } = yield* Script
      const questions = (yield* Ref.get(requests)).map(({ question }) => question)
      expect(questions).toEqual([texts.join("\n").slice(-32_000)])
      expect(yield* rows("select id from messages where role = 'user' and answered_by is null")).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("of a thread that another app owns is stored and not answered", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      shown.length = 0
      yield* receive(yield* message({ text: "standby", standby: true }))
      expect(yield* transcript).toEqual(["1 user: standby"])
      expect(yield* rows("select answered_by from messages")).toEqual([{ answered_by: "standby" }])
      expect(shown).toEqual([])
      yield* receive(yield* message({ text: "new" }))
      expect((yield* transcript).at(-1)).toBe("3 agent: Hello")
      expect(shown).toEqual([yield* only])
    }).pipe(onFreshData)
  )

  it.scoped("older than 15 minutes is stored, not answered, and handed to a human", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const now = yield* DateTime.now
      shown.length = 0
      const before = yield* counterValue("spoke_handoffs_total", "service")
      yield* receive(yield* message({ text: "old", timestamp: DateTime.subtract(now, { minutes: 16 }) }))
      expect(yield* rows("select state, handoff_reason from conversations")).toEqual([
        { state: "HUMAN_REQUESTED", handoff_reason: "The message arrived too late for the agent to answer." }
      ])
      yield* receive(yield* message({ text: "new" }))
      expect(yield* counterValue("spoke_handoffs_total", "service")).toBe(before + 1)
      expect(yield* transcript).toEqual(["1 user: old", "2 user: new"])
      expect(yield* rows("select answered_by from messages order by position")).toEqual([
        { answered_by: "stale" },
        { answered_by: "human" }
      ])
      // The contact is told nothing: neither is shown as read, nor does anyone type.
      expect(shown).toEqual([])
      expect(yield* rows("select 1 from channel_outbox")).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped(
    "of an unknown contact creates one person and one conversation, also for twenty concurrent messages",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const inbound = yield* Inbound
        const events = yield* Effect.all(
          Array.from({ length: 20 }, (_, place) =>
            message({ from: place % 2 === 0 ? [user("U1"), phone("49")] : [phone("49"), user("U1")] })
          )
        )
        const ids = yield* accept(...events)
        yield* Effect.forEach(ids, (id) => inbound.process(job(id)), {
          concurrency: "unbounded",
          discard: true
        })
        expect(yield* rows("select count(*)::int as n from end_users")).toEqual([{ n: 1 }])
        expect(yield* states).toEqual(["AI_ACTIVE"])
        expect(
          yield* rows(
            "select count(*)::int as n, max(position)::int as last from messages group by conversation_id"
          )
        ).toEqual([{ n: expect.any(Number), last: expect.any(Number) }])
        expect(
          yield* rows("select count(*)::int as n from messages where role = 'user' and answered_by is null")
        ).toEqual([{ n: 0 }])
        expect(yield* rows("select count(*)::int as n from messages where role = 'user'")).toEqual([
          { n: 20 }
        ])
        // No reply without something that it answers: none was answered twice.
        expect(
          yield* rows(
            "select count(*)::int as n from messages r where r.author = 'agent' and not exists (select from messages m where m.answered_by = r.id)"
          )
        ).toEqual([{ n: 0 }])
      }).pipe(onFreshData)
  )

  it.scoped(
    "that cannot be routed fails at once with the reason, and is processed after the cause is fixed",
    () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const inbound = yield* Inbound
        const [id] = yield* accept(yield* message())
        if (id === undefined) return expect.unreachable()
        const failure = yield* Effect.flip(inbound.process(job(id)))
        expect(failure).toMatchObject({
          fatal: true,
          message: expect.stringContaining("no active configuration")
        })
        expect(yield* rows("select state, outcome from channel_inbox")).toEqual([
          { state: "failed", outcome: failure.message }
        ])
        yield* channelOf(scope)
        yield* inbound.process(job(id))
        expect(yield* transcript).toHaveLength(2)
        expect(yield* rows("select state from channel_inbox")).toEqual([{ state: "processed" }])
      }).pipe(onFreshData)
  )

  it.scoped("follows its conversation when the account has moved to another agent", () =>
    Effect.gen(function* () {
      const first = yield* Fixtures.agent()
      const old = yield* channelOf(first)
      yield* receive(yield* message())
      yield* rows(`update channels set active = false where id = '${old}'`)
      // No agent has the account now: the message goes to the conversation that the contact already has.
      yield* receive(yield* message())
      const agentId = yield* newId.agent
      yield* rows(
        `insert into agents (id, tenant_id, name) values ('${agentId}', '${first.tenantId}', 'Second')`
      )
      yield* channelOf({ ...first, agentId })
      yield* receive(yield* message())
      expect(yield* rows("select agent_id, message_count::int as n from conversations")).toEqual([
        { agent_id: first.agentId, n: 6 }
      ])
      yield* rows("update conversations set state = 'CLOSED'")
      yield* receive(yield* message())
      expect(yield* rows("select distinct agent_id as id from conversations order by 1")).toEqual(
        [first.agentId, agentId].toSorted().map((id) => ({ id }))
      )
    }).pipe(onFreshData)
  )

  it.scoped("to an account that now belongs to another tenant is visible only to that tenant", () =>
    Effect.gen(function* () {
      const former = yield* Fixtures.agent()
      const old = yield* channelOf(former)
      yield* receive(yield* message({ text: "To the former" }))
      yield* rows(`update channels set active = false where id = '${old}'`)
      const owner = yield* Fixtures.agent()
      yield* channelOf(owner)
      yield* receive(yield* message({ text: "To the owner" }))
      expect(
        yield* rows(
          "select c.tenant_id as id, m.content from messages m join conversations c on c.id = m.conversation_id where m.role = 'user' order by m.content"
        )
      ).toEqual([
        { id: former.tenantId, content: "To the former" },
        { id: owner.tenantId, content: "To the owner" }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("that arrives when the quota is used up is stored, not answered, and requests a human", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent({ turns: 1 }))
      const before = yield* counterValue("spoke_handoffs_total", "service")
      yield* receive(yield* message())
      yield* receive(yield* message())
      expect(yield* counterValue("spoke_handoffs_total", "service")).toBe(before + 1)
      expect((yield* transcript).slice(2)).toEqual([expect.stringMatching(/^3 user: /)])
      expect(yield* rows("select state, handoff_reason from conversations")).toEqual([
        { state: "HUMAN_REQUESTED", handoff_reason: expect.stringContaining("used up") }
      ])
      expect(yield* outbox).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.scoped(
    "to which the model replies without text is handed to a human, and the customer is notified",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const { reply } = yield* Script
        yield* Ref.set(reply, says(" ", "\n"))
        const inbound = yield* Inbound
        const [id] = yield* accept(yield* message({ text: "Wo ist mein Paket, bitte?" }))
        if (id === undefined) return expect.unreachable()
        const failure = yield* Effect.flip(inbound.process(job(id, { lastAttempt: true })))
        expect(failure).toMatchObject({ fatal: true, message: "TURN_FAILED" })
        expect(yield* states).toEqual(["HUMAN_REQUESTED"])
        expect(yield* outbox).toEqual([expect.stringMatching(/^system 1: Ein Mensch/)])
        expect(yield* rows("select payload from agent_run_events where type = 'run.failed'")).toEqual([
          { payload: { code: "TURN_FAILED", provider: "answer_broken" } }
        ])
      }).pipe(onFreshData)
  )

  it.scoped(
    "whose turn fails is retried; after the last attempt a human is requested and the customer is notified",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const { reply } = yield* Script
        yield* Ref.set(reply, () =>
          Stream.fail(new ModelError({ reason: "Rejected", message: "sk-canary", retryable: false }))
        )
        const inbound = yield* Inbound
        const [id] = yield* accept(yield* message({ text: "Wo ist mein Paket, bitte?" }))
        if (id === undefined) return expect.unreachable()
        expect(yield* Effect.flip(inbound.process(job(id)))).toMatchObject({
          fatal: false,
          message: "TURN_FAILED"
        })
        expect(yield* transcript).toEqual(["1 user: Wo ist mein Paket, bitte?"])
        expect(yield* Effect.flip(inbound.process(job(id, { attempt: 5, lastAttempt: true })))).toMatchObject(
          { fatal: true }
        )
        expect(yield* transcript).toEqual([
          "1 user: Wo ist mein Paket, bitte?",
          expect.stringMatching(/^2 system: Ein Mensch aus unserem Team/)
        ])
        expect(yield* states).toEqual(["HUMAN_REQUESTED"])
        expect(yield* outbox).toEqual([expect.stringMatching(/^system 1: Ein Mensch/)])
        // Secrets of the provider's failure are nowhere.
        for (const table of [
          "channel_inbox",
          "agent_run_events",
          "conversations",
          "messages",
          "channel_outbox"
        ])
          expect(JSON.stringify(yield* rows(`select * from ${table}`))).not.toContain("sk-canary")
      }).pipe(onFreshData)
  )
})

eachEngineLive("A conversation of a channel", (it) => {
  it.scoped("is not continued over the API, whose replies would not reach the contact", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* channelOf(scope)
      yield* receive(yield* message())
      const chat = yield* ChatTurn
      const conversationId = yield* only
      expect(yield* Effect.flip(chat.complete(scope, request({ conversationId })))).toMatchObject({
        _tag: "CONVERSATION_NOT_FOUND"
      })
      expect(yield* transcript).toHaveLength(2)
    }).pipe(onFreshData)
  )

  it.scoped("counts a mail once against the limit of its sender, also for repeated attempts of its job", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent(), account, "email")
      const inbound = yield* Inbound
      const ada = {
        channel: "email",
        sender: "ada@customers.example",
        from: [user("ada@customers.example")]
      } as const
      const outcomes = rows("select outcome from channel_inbox order by received_at")
      const [stored] = yield* accept(yield* message(ada))
      if (stored === undefined) return expect.unreachable()
      for (let attempt = 1; attempt <= 20; attempt++) yield* inbound.process(job(stored, { attempt }))
      // Attempts that are rolled back do not count either.
      const [failing] = yield* accept(yield* message(ada))
      if (failing === undefined) return expect.unreachable()
      yield* rows("alter table channel_inbox rename column outcome to gone")
      for (let attempt = 1; attempt <= 20; attempt++)
        expect(yield* Effect.exit(inbound.process(job(failing, { attempt })))).toMatchObject({
          _tag: "Failure"
        })
      yield* rows("alter table channel_inbox rename column gone to outcome")
      yield* inbound.process(job(failing, { attempt: 21 }))
      expect(yield* outcomes).toEqual([{ outcome: null }, { outcome: null }])
      for (let n = 3; n <= 31; n++) yield* receive(yield* message(ada))
      expect((yield* outcomes).slice(-2)).toEqual([{ outcome: null }, { outcome: "loop" }])
    }).pipe(onFreshData)
  )

  it.scoped("is handed to a human when the contact and the agent answer each other in a loop", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message())
      yield* rows(
        "insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, author) select 'msg_' || n, c.tenant_id, c.id, c.agent_id, 2 + n, 'assistant', 'Me too.', 'agent' from conversations c, generate_series(1, 99) n"
      )
      yield* rows("update conversations set message_count = 101")
      yield* receive(yield* message())
      expect(yield* rows("select state from conversations")).toEqual([{ state: "HUMAN_REQUESTED" }])
      expect(yield* rows("select answered_by from messages where position = 102")).toEqual([
        { answered_by: "loop" }
      ])
      expect(yield* outbox).toHaveLength(1)
    }).pipe(onFreshData)
  )
})

eachEngineLive("A delivery", (it) => {
  const at =
    (milliseconds: number) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.clockWith((clock) =>
        Effect.withClock(
          effect,
          Object.create(clock, { currentTimeMillis: { value: Effect.succeed(milliseconds) } })
        )
      )

  it.scoped("is deleted thirty days after its arrival if it is processed, and kept if it waits", () =>
    Effect.gen(function* () {
      const inbox = yield* InboundEvents
      const now = yield* Clock.currentTimeMillis
      const daysAgo = (days: number) => at(now - days * 86_400_000)
      const [settled, waiting] = yield* daysAgo(31)(accept(yield* message(), yield* message()))
      const [recent] = yield* daysAgo(29)(accept(yield* message()))
      if (settled === undefined || waiting === undefined || recent === undefined) return expect.unreachable()
      yield* inbox.markProcessed(settled, null)
      yield* inbox.markFailed(recent, "No channel.")
      expect(yield* inbox.prune).toBe(false)
      expect(yield* rows("select id from channel_inbox order by id")).toEqual([
        { id: waiting },
        { id: recent }
      ])
    }).pipe(onFreshData)
  )
})

eachEngineLive("A contact", (it) => {
  const update = (aliases: AliasUpdate["aliases"]) =>
    Effect.map(DateTime.now, (timestamp): AliasUpdate => ({
      _tag: "AliasUpdate",
      channel: "whatsapp",
      accountId: account,
      aliases,
      timestamp
    }))

  it.scoped("whose two aliases are linked becomes one person: the older one, with the data of both", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message({ from: [phone("49")] }))
      yield* receive(yield* message({ from: [user("U1")] }))
      const [older, younger] = yield* rows("select id from end_users order by created_at, id")
      expect(younger).toBeDefined()
      yield* receive(yield* update([user("U1"), phone("49")]))
      expect(yield* rows("select id from end_users")).toEqual([older])
      expect(yield* rows("select distinct end_user_id as id from conversations")).toEqual([older])
      expect(yield* rows("select distinct end_user_id as id from end_user_aliases")).toEqual([older])
      expect((yield* states).toSorted()).toEqual(["AI_ACTIVE", "CLOSED"])
      yield* receive(yield* message({ from: [user("U2"), phone("49")] }))
      expect(yield* rows("select count(*)::int as n from conversations")).toEqual([{ n: 2 }])
      expect(yield* rows("select kind, value from end_user_aliases order by value")).toEqual([
        { kind: "phone", value: "49" },
        { kind: "user_id", value: "U1" },
        { kind: "user_id", value: "U2" }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("is answered while only an alias update waits", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const [first] = yield* accept(
        yield* message({ from: [phone("49")] }),
        yield* update([phone("49"), user("U1")])
      )
      if (first === undefined) return expect.unreachable()
      yield* (yield* Inbound).process(job(first))
      expect(yield* outbox).toEqual(["agent 0: Hello"])
    }).pipe(onFreshData)
  )

  it.scoped("is not created by an alias update alone", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* update([user("U1"), user("U2")]))
      expect(yield* rows("select count(*)::int as n from end_users")).toEqual([{ n: 0 }])
    }).pipe(onFreshData)
  )

  it.scoped("keeps the tenant's own id in a merge, and two persons with different ids stay separate", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message({ from: [phone("49")] }))
      yield* receive(yield* message({ from: [user("U1")] }))
      yield* rows("update end_users set external_id = 'ada' where id = (select max(id) from end_users)")
      yield* receive(yield* update([user("U1"), phone("49")]))
      expect(yield* rows("select external_id from end_users")).toEqual([{ external_id: "ada" }])
      yield* receive(yield* message({ from: [phone("50")] }))
      yield* rows("update end_users set external_id = 'bob' where external_id is null")
      yield* receive(yield* message({ from: [user("U1"), phone("50")], text: "which?" }))
      expect(
        yield* rows(
          "select e.external_id from messages m join conversations c on c.id = m.conversation_id join end_users e on e.id = c.end_user_id where m.content = 'which?'"
        )
      ).toEqual([{ external_id: "ada" }])
      expect(yield* rows("select count(*)::int as n from end_users")).toEqual([{ n: 2 }])
    }).pipe(onFreshData)
  )

  it.scoped("whose ten aliases are linked concurrently in any order is one person", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const names = Array.from({ length: 10 }, (_, place) => user(`U${place}`))
      for (const name of names) yield* receive(yield* message({ from: [name] }))
      const inbound = yield* Inbound
      const meetings = yield* Effect.all(
        names.map((name, place) => message({ from: [name, names[(place + 1) % 10] ?? name] }))
      )
      const ids = (yield* accept(...meetings)).toSorted()
      yield* Effect.forEach(
        ids,
        (id) => inbound.process(job(id)).pipe(Effect.sandbox, Effect.retry({ times: 10 })),
        { concurrency: 5, discard: true }
      )
      expect(yield* rows("select count(*)::int as n from end_users")).toEqual([{ n: 1 }])
      expect((yield* states).filter((state) => state !== "CLOSED")).toEqual(["AI_ACTIVE"])
    }).pipe(onFreshData)
  )
})

eachEngineLive("A human", (it) => {
  it.scoped("who writes from the provider's app takes over; an echo of our own message changes nothing", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message({ kind: "echo", origin: ours, text: "Hello" }))
      expect(yield* transcript).toEqual([])
      yield* receive(yield* message({ text: "Hi" }), yield* message({ kind: "echo", text: "Ada here." }))
      expect(yield* transcript).toEqual(["1 user: Hi", "2 human: Ada here."])
      expect(yield* states).toEqual(["HUMAN_ACTIVE"])
      yield* receive(yield* message({ text: "Thanks" }))
      expect(yield* transcript).toHaveLength(3)
      expect(yield* outbox).toEqual([])
      const { requests } = yield* Script
      expect(yield* Ref.get(requests)).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("who takes over while the agent writes prevents the agent's reply", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* channelOf(scope)
      const takeover = yield* Takeover
      const inbound = yield* Inbound
      const { reply } = yield* Script
      const asked = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      yield* Ref.set(reply, () =>
        Stream.unwrap(
          Deferred.succeed(asked, undefined).pipe(
            Effect.zipRight(Deferred.await(go)),
            Effect.as(says("Too late")({} as never))
          )
        )
      )
      const [id] = yield* accept(yield* message({ text: "Hi" }))
      if (id === undefined) return expect.unreachable()
      const answering = yield* Effect.fork(inbound.process(job(id)))
      yield* Deferred.await(asked)
      yield* takeover.say(member(scope.tenantId), yield* only, { content: "Ada here." })
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(answering)
      expect(yield* transcript).toEqual(["1 user: Hi", "2 human: Ada here."])
      expect(yield* outbox).toEqual(["human 1: Ada here."])
      expect(yield* rows("select answered_by from messages where role = 'user'")).toEqual([
        { answered_by: "human" }
      ])
      expect(yield* rows("select status from agent_runs")).toEqual([{ status: "failed" }])
      expect(yield* rows("select payload from agent_run_events where type = 'run.failed'")).toEqual([
        { payload: { code: "TAKEN_OVER" } }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("and the agent never both answer one message, on any processes (first 4)", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* channelOf(scope)
      const first = yield* Layer.build(Layer.fresh(inboundLayer()))
      const second = yield* Layer.build(Layer.fresh(inboundLayer()))
      const contacts = Array.from({ length: 24 }, (_, place) => `49${place}`)
      for (const value of contacts) {
        const [id] = yield* accept(yield* message({ from: [phone(value)] })).pipe(Effect.provide(first))
        if (id === undefined) return expect.unreachable()
        // The conversation exists, and nothing of it is answered yet.
        yield* Effect.flatMap(Inbound, (inbound) => inbound.process(job(id))).pipe(Effect.provide(first))
      }
      const [{ n: before = 0 } = {}] = yield* rows(
        "select count(*)::int as n from messages where author = 'agent'"
      )
      expect(before).toBe(contacts.length)
      const events = yield* Effect.all(
        contacts.map((value) => message({ from: [phone(value)], text: "Again?" }))
      )
      const ids = yield* accept(...events).pipe(Effect.provide(first))
      const all = yield* rows("select id from conversations order by id")
      const answer = Effect.forEach(
        ids,
        (id, place) =>
          Effect.flatMap(Inbound, (inbound) => inbound.process(job(id))).pipe(
            Effect.provide(place % 2 === 0 ? first : second)
          ),
        { concurrency: 6 }
      )
      const take = Effect.forEach(
        all,
        ({ id }) =>
          Effect.flatMap(Takeover, (takeover) =>
            takeover.say(member(scope.tenantId), ConversationId.make(String(id)), { content: "Ada here." })
          ).pipe(Effect.provide(second)),
        { concurrency: 6 }
      )
      yield* Effect.all([answer, take], { concurrency: 2 })
      // Whatever the order was: after a human's message none of the agent's follows, and none of its goes out.
      expect(
        yield* rows(
          "select m.id from messages m join messages h on h.conversation_id = m.conversation_id and h.author = 'human' where m.author = 'agent' and m.position > h.position"
        )
      ).toEqual([])
      expect(
        yield* rows(
          "select o.id from channel_outbox o where o.author = 'agent' and not exists (select from messages m where m.id = o.message_id)"
        )
      ).toEqual([])
      expect(
        yield* rows("select m.id from messages m where m.role = 'user' and m.answered_by is null")
      ).toEqual([])
      expect(new Set(yield* states)).toEqual(new Set(["HUMAN_ACTIVE"]))
    }).pipe(onFreshData)
  )

  it.scoped("releases the conversation, and the agent sees nothing from before", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* channelOf(scope)
      const takeover = yield* Takeover
      yield* receive(yield* message({ text: "A human, please" }))
      const by = member(scope.tenantId)
      const id = yield* only
      expect((yield* takeover.takeover(by, id)).state).toBe("HUMAN_ACTIVE")
      expect(yield* Effect.flip(takeover.takeover(by, id))).toMatchObject({
        _tag: "CONFLICT",
        details: { state: "HUMAN_ACTIVE" }
      })
      yield* takeover.say(by, id, { content: "Done." })
      expect((yield* takeover.release(by, id)).state).toBe("AI_ACTIVE")
      expect(yield* Effect.flip(takeover.release(by, id))).toMatchObject({ _tag: "CONFLICT" })
      yield* receive(yield* message({ text: "And another thing" }))
      const { requests } = yield* Script
      expect((yield* Ref.get(requests)).at(-1)?.prompt.content.map(({ role }) => role)).toEqual([
        "system",
        "user"
      ])
      expect((yield* takeover.close(by, id)).state).toBe("CLOSED")
      for (const act of [takeover.takeover(by, id), takeover.release(by, id), takeover.close(by, id)])
        expect(yield* Effect.flip(act)).toMatchObject({ _tag: "CONFLICT", details: { state: "CLOSED" } })
      expect(yield* Effect.flip(takeover.say(by, id, { content: "?" }))).toMatchObject({ _tag: "CONFLICT" })
      const other = member((yield* Fixtures.agent()).tenantId)
      expect(yield* Effect.flip(takeover.close(other, id))).toMatchObject({ _tag: "NOT_FOUND" })
    }).pipe(onFreshData)
  )
})

eachEngineLive("A handoff", (it) => {
  it.scoped(
    "is a tool call of the model; the customer is notified in the same message, or by a fixed sentence",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const { reply, requests } = yield* Script
        yield* Ref.set(reply, asksForHuman("Wants a person"))
        yield* receive(yield* message({ text: "I want to talk to a human" }))
        expect(yield* transcript).toEqual([
          "1 user: I want to talk to a human",
          expect.stringMatching(/^2 agent: A member of our team/)
        ])
        expect(yield* rows("select state, handoff_reason from conversations")).toEqual([
          { state: "HUMAN_REQUESTED", handoff_reason: "Wants a person" }
        ])
        expect(yield* outbox).toEqual([expect.stringMatching(/^system 1: A member of our team/)])
        expect((yield* Ref.get(requests))[0]?.tools.map(({ name }) => name)).toEqual(["hand_off_to_human"])
        expect(
          yield* rows("select type from agent_run_events where type like 'tool.%' order by sequence")
        ).toEqual([{ type: "tool.started" }, { type: "tool.completed" }])
        yield* receive(yield* message({ text: "Hello?" }))
        expect(yield* transcript).toHaveLength(3)

        yield* rows("update conversations set state = 'CLOSED'")
        yield* Ref.set(reply, asksForHuman("Angry", "I am getting somebody."))
        yield* receive(yield* message({ text: "HUMAN" }))
        expect((yield* transcript).at(-1)).toBe("2 agent: I am getting somebody.")
      }).pipe(onFreshData)
  )

  it.scoped("keeps the text that was streamed before the model failed", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const { reply } = yield* Script
      const asks = asksForHuman("Wants a person")
      let hasAsked = false
      yield* Ref.set(reply, () => {
        if (hasAsked)
          return Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
        hasAsked = true
        return Stream.concat(Stream.make({ _tag: "TextDelta" as const, delta: "One moment." }), asks())
      })
      yield* receive(yield* message({ text: "I want to talk to a human" }))
      expect((yield* transcript).at(-1)).toBe("2 agent: One moment.")
      expect(yield* rows("select state from conversations")).toEqual([{ state: "HUMAN_REQUESTED" }])
      expect(yield* outbox).toEqual(["system 1: One moment."])
    }).pipe(onFreshData)
  )
})

eachEngineLive("A message whose turn takes too long", (it) => {
  it.scoped("keeps the text that was streamed before the human was requested", () =>
    Effect.gen(function* () {
      yield* reset
      yield* channelOf(yield* Fixtures.agent())
      const { reply } = yield* Script
      const asks = asksForHuman("Wants a person")
      let hasAsked = false
      yield* Ref.set(reply, () => {
        if (hasAsked) return Stream.never
        hasAsked = true
        return Stream.concat(Stream.make({ _tag: "TextDelta" as const, delta: "One moment." }), asks())
      })
      yield* receive(yield* message({ text: "I want to talk to a human" }))
      expect((yield* transcript).at(-1)).toBe("2 agent: One moment.")
      expect(yield* outbox).toEqual(["system 1: One moment."])
    }).pipe(Effect.provide(inboundLayer("2 seconds")))
  )
})

eachEngineLive("A stored message whose job has died", (it) => {
  it.scoped(
    "with its process is answered by the next attempt, once the lease of the dead turn has expired",
    () =>
      Effect.gen(function* () {
        yield* channelOf(yield* Fixtures.agent())
        const inbound = yield* Inbound
        const { reply } = yield* Script
        const asked = yield* Deferred.make<void>()
        yield* Ref.set(reply, () =>
          Stream.unwrap(Effect.as(Deferred.succeed(asked, undefined), Stream.never))
        )
        const [id] = yield* accept(yield* message({ text: "Hi" }))
        if (id === undefined) return expect.unreachable()
        const doomed = yield* Effect.fork(inbound.process(job(id)))
        yield* Deferred.await(asked)
        yield* Fiber.interrupt(doomed)
        // The process is gone and its lease runs out.
        yield* rows(
          "insert into instances (id, lease_until) values ('ins_dead', now() - interval '1 second')"
        )
        yield* rows("update agent_runs set instance_id = 'ins_dead'")
        yield* Ref.set(reply, says("Back again."))
        yield* inbound.process(job(id, { attempt: 2 }))
        expect(yield* transcript).toEqual(["1 user: Hi", "2 agent: Back again."])
        const { sweep } = yield* ProcessLeases
        expect(yield* sweep).toBe(1)
        // What was stored already does not join the conversation again.
        expect(yield* transcript).toHaveLength(2)
        expect(yield* rows("select message_count::int as n from conversations")).toEqual([{ n: 2 }])
        expect(yield* rows("select status from agent_runs order by id")).toEqual([
          { status: "failed" },
          { status: "complete" }
        ])
      }).pipe(onFreshData)
  )

  it.scoped("is found and answered; a human is requested if it is too old", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const { reply } = yield* Script
      yield* Ref.set(reply, () =>
        Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
      )
      const inbound = yield* Inbound
      const [one, two] = yield* accept(
        yield* message({ from: [phone("1")] }),
        yield* message({ from: [phone("2")] })
      )
      if (one === undefined || two === undefined) return expect.unreachable()
      for (const id of [one, two]) yield* Effect.flip(inbound.process(job(id)))
      yield* rows("delete from queue_jobs")
      yield* inbound.sweep
      expect(yield* rows("select count(*)::int as n from queue_jobs")).toEqual([{ n: 0 }])
      yield* rows("update messages set created_at = created_at - interval '8 minutes'")
      yield* rows(
        "update messages set created_at = created_at - interval '8 minutes' where id = (select max(id) from messages)"
      )
      yield* inbound.sweep
      expect((yield* states).toSorted()).toEqual(["AI_ACTIVE", "HUMAN_REQUESTED"])
      const [queued] = yield* rows("select payload from queue_jobs")
      yield* Ref.set(reply, says("Here I am."))
      yield* inbound.process({ ...job(one), payload: queued?.["payload"] as never })
      expect(yield* rows("select content from messages where author = 'agent'")).toEqual([
        { content: "Here I am." }
      ])
      expect(yield* rows("select id from messages where role = 'user' and answered_by is null")).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("is queued once, as work of its tenant, however often the sweep finds it", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      yield* channelOf(scope)
      const { reply } = yield* Script
      yield* Ref.set(reply, () =>
        Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
      )
      const inbound = yield* Inbound
      for (const id of yield* accept(yield* message())) yield* Effect.flip(inbound.process(job(id)))
      yield* rows("delete from queue_jobs")
      yield* rows("update conversations set state = 'AI_ACTIVE'")
      yield* rows("update messages set answered_by = null, created_at = created_at - interval '8 minutes'")
      yield* inbound.sweep
      yield* inbound.sweep
      expect(yield* rows("select queue, owner from queue_jobs")).toEqual([
        { queue: "channel-inbound", owner: scope.tenantId }
      ])
      // When it becomes too old, the job that still waits does not keep the team from hearing of it.
      yield* rows("update messages set created_at = created_at - interval '8 minutes'")
      yield* inbound.sweep
      expect(yield* states).toEqual(["HUMAN_REQUESTED"])
    }).pipe(onFreshData)
  )
})
