/** Deliveries to accounts that have addresses of their own, over real HTTP. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createHmac } from "node:crypto"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import { newId } from "../../../src/domain/Ids.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, webhookServer } from "./WebhookServer.ts"

const seconds = () => Math.floor(Date.now() / 1_000)

/** Each channel: its account, its signature of a body, and one message. */
const channels = {
  telegram: {
    account: "4711",
    token: "4711:AAE-canary",
    secrets: null,
    signed: (_: string) => ({
      "x-telegram-bot-api-secret-token": createHmac("sha256", "4711:AAE-canary")
        .update("spoke telegram webhook")
        .digest("hex")
    }),
    message: (id: number) => ({
      update_id: id,
      message: {
        message_id: id,
        date: seconds(),
        text: "Hello",
        chat: { id: 77, type: "private" },
        from: { id: 77, is_bot: false, first_name: "Ada" }
      }
    })
  },
  slack: {
    account: "T1.U1",
    token: "xoxb-canary",
    secrets: JSON.stringify({ signingSecret: "signing-canary" }),
    signed: (body: string) => {
      const stamp = String(seconds())
      const tag = createHmac("sha256", "signing-canary").update(`v0:${stamp}:${body}`).digest("hex")
      return { "x-slack-request-timestamp": stamp, "x-slack-signature": `v0=${tag}` }
    },
    message: (id: number) => ({
      type: "event_callback",
      team_id: "T1",
      event_id: `Ev${id}`,
      event: {
        type: "message",
        channel_type: "im",
        channel: "D1",
        user: "U2",
        text: "Hello",
        ts: `${seconds()}.000001`
      }
    })
  },
  email: {
    account: "support_example.com.0123456789ab",
    token: "password-canary",
    secrets: JSON.stringify({ signingSecret: "signing-canary" }),
    signed: (body: string) => {
      const stamp = String(seconds())
      const tag = createHmac("sha256", "signing-canary").update(`${stamp}.${body}`).digest("hex")
      return { "x-spoke-timestamp": stamp, "x-spoke-signature": `v1=${tag}` }
    },
    message: (id: number) => ({
      raw: Buffer.from(
        `From: Ada <ada@customers.example>\r\nMessage-ID: <${id}@customers.example>\r\n\r\nHello`
      ).toString("base64")
    })
  }
} as const
type Channel = keyof typeof channels

const configured = (channel: Channel, active = true) =>
  Effect.gen(function* () {
    yield* reset
    const sql = yield* SqlClient.SqlClient
    const box = yield* SecretBox
    const { account, secrets, token } = channels[channel]
    const { agentId, tenantId } = yield* Fixtures.agent()
    const sealed = secrets === null ? null : yield* box.seal("channel-secrets", secrets)
    yield* sql`
      insert into channels (id, tenant_id, agent_id, channel, external_id, access_token, secrets, profile, active)
      values (${yield* newId.channel}, ${tenantId}, ${agentId}, ${channel}, ${account},
        ${yield* box.seal("channel-token", token)}, ${sealed},
        ${JSON.stringify({ teamId: "T1", botUserId: "U1", username: "helper_bot" })}::jsonb, ${active})`
  })

const deliver = (
  channel: Channel,
  body: string,
  {
    account = channels[channel].account,
    headers = channels[channel].signed(body)
  }: { readonly account?: string; readonly headers?: Readonly<Record<string, string>> } = {}
) =>
  request(`/api/webhooks/${channel}/${account}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body
  })

const kept = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly events: number; readonly jobs: number; readonly keys: number }>`
    select (select count(*)::int from channel_inbox) as events, (select count(*)::int from queue_jobs) as jobs,
      (select count(*)::int from dedupe_keys) as keys`
)

const hostile: ReadonlyArray<unknown> = [
  null,
  7,
  [],
  "text",
  { message: 7, event: 7 },
  { update_id: {}, event_id: {}, message: { chat: [] }, event: { type: [], channel: {} } },
  { update_id: 1, message: { chat: { id: "\u0000", type: "private" }, text: "a" } },
  {
    event_id: "\u0000",
    event: { type: "message", channel_type: "im", channel: "D", user: "U", ts: "x", text: "a" }
  },
  { update_id: "9".repeat(10_000), message: { chat: { id: 1, type: "private" }, text: "a" } }
]

eachEngineLive("Webhooks of accounts", (it) => {
  const served = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(Effect.provide(webhookServer()), Effect.scoped)

  for (const channel of ["telegram", "slack", "email"] as const) {
    const body = (id: number) => JSON.stringify(channels[channel].message(id))

    it.effect(`${channel}: a delivery answered with 200 is stored once, also if it is repeated`, () =>
      served(
        Effect.gen(function* () {
          yield* configured(channel)
          const answers = yield* Effect.all(
            Array.from({ length: 6 }, () => deliver(channel, body(1))),
            { concurrency: "unbounded" }
          )
          expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200))
          expect(answers.reduce((sum, { json }) => sum + json.data.enqueued, 0)).toBe(1)
          expect(yield* kept).toEqual([{ events: 1, jobs: 1, keys: 1 }])
          yield* deliver(channel, body(2))
          expect(yield* kept).toEqual([{ events: 2, jobs: 2, keys: 2 }])
        })
      )
    )

    it.effect(`${channel}: nothing changes without a valid signature or an existing account`, () =>
      served(
        Effect.gen(function* () {
          yield* configured(channel)
          const right = channels[channel].signed(body(1))
          const wrong = Object.fromEntries(
            Object.entries(right).map(([name, value]) => [name, `${value.slice(0, -2)}zz`])
          )
          for (const given of [
            { headers: {} },
            { headers: wrong },
            { account: "4712" },
            { account: "T1.U2" }
          ]) {
            const answer = yield* deliver(channel, body(1), given)
            expect([answer.status, answer.json.error.code]).toEqual([401, "UNAUTHORIZED"])
            expect(answer.text).not.toContain("canary")
          }
          expect(yield* kept).toEqual([{ events: 0, jobs: 0, keys: 0 }])
          yield* configured(channel, false)
          expect((yield* deliver(channel, body(1))).status).toBe(401)
        })
      )
    )

    it.effect(`${channel}: invalid bodies are refused or skipped, and never cause an internal error`, () =>
      served(
        Effect.gen(function* () {
          yield* configured(channel)
          for (const payload of hostile) {
            const answer = yield* deliver(channel, JSON.stringify(payload))
            // Without a mail there is nothing to read.
            expect([answer.status, answer.json.data?.enqueued ?? 0]).toEqual([
              channel === "email" ? 400 : 200,
              expect.any(Number)
            ])
          }
          for (const broken of ["", "{", `${"[".repeat(10_000)}${"]".repeat(10_000)}`]) {
            const answer = yield* deliver(channel, broken)
            expect([answer.status, answer.json.error.code]).toEqual([400, "VALIDATION_ERROR"])
          }
          const huge = yield* deliver(channel, " ".repeat(4 * 1_048_576 + 1))
          expect([huge.status, huge.json.error.code]).toEqual([413, "PAYLOAD_TOO_LARGE"])
          for (const account of ["%00", "4711%00", "%ED%A0%80", "a%2Fb", "x".repeat(5_000)]) {
            const answer = yield* deliver(channel, body(1), { account })
            // What is no text, or longer than any address, leads nowhere.
            const expected = account === "%ED%A0%80" || account.length > 1_800 ? 404 : 400
            expect([account.slice(0, 10), answer.status]).toEqual([account.slice(0, 10), expected])
          }
        })
      )
    )
  }

  it.effect("slack: a signed challenge is returned as the body", () =>
    served(
      Effect.gen(function* () {
        yield* configured("slack")
        const asked = JSON.stringify({ type: "url_verification", challenge: "3eZbrw1aBm2r" })
        const answer = yield* deliver("slack", asked)
        expect([answer.status, answer.text]).toEqual([200, "3eZbrw1aBm2r"])
        expect((yield* deliver("slack", asked, { headers: {} })).status).toBe(401)
        expect(yield* kept).toEqual([{ events: 0, jobs: 0, keys: 0 }])
      })
    )
  )

  it.effect("of an unknown channel, or of one without account addresses, are 404", () =>
    served(
      Effect.gen(function* () {
        yield* configured("slack")
        for (const channel of ["whatsapp", "pigeon"]) {
          const answer = yield* request(`/api/webhooks/${channel}/1`, { method: "POST", body: "{}" })
          expect([answer.status, answer.json.error.code]).toEqual([404, "NOT_FOUND"])
        }
      })
    )
  )
})
