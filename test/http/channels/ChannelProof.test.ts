/** Proof of an account's owner by its provider, over real HTTP to a stub. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ChannelError } from "../../../src/capabilities/ChannelAdapters.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import {
  accounts,
  logins,
  mailboxes,
  outages,
  withServer,
  start,
  telegram,
  whatsapp
} from "./ChannelServer.ts"

const unreachable = () =>
  new ChannelError({ reason: "Refused", message: "The provider could not be reached.", retryable: true })

const page = { channel: "messenger", externalId: "2207", accessToken: "EAA-page" }

/** Another tenant with an agent of its own. */
const another = Effect.gen(function* () {
  const { cookie } = yield* signedIn("bob@example.com")
  const agent = yield* call("POST", "/api/agents", { cookie, body: { name: "Other" } })
  return { cookie, channels: `/api/agents/${agent.data.agent.id}/channels` }
})

const actions = (cookie: string) =>
  Effect.map(call("GET", "/api/audit", { cookie }), ({ data }) =>
    data.entries.map((entry: { readonly action: string; readonly target: string }) => entry.action)
  )

const active = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly id: string }>`select id from channels where active order by id`
).pipe(Effect.map((rows) => rows.map(({ id }) => id)))

eachEngineLive("An account of a channel", (it) => {
  it.effect("becomes active only with a token that its provider accepts for it", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        accounts.set(whatsapp.accessToken, "another number")
        accounts.set(page.accessToken, "another page")
        for (const body of [whatsapp, page, { channel: "telegram", accessToken: "99:unknown" }]) {
          const refused = yield* call("POST", channels, { cookie, body })
          expect([refused.status, refused.error.code]).toEqual([400, "VALIDATION_ERROR"])
          expect(refused.error.details.issues[0].path).toEqual(["accessToken"])
          expect(refused.text).not.toContain(body.accessToken)
        }
        expect((yield* call("GET", channels, { cookie })).data.channels).toEqual([])
        accounts.set(whatsapp.accessToken, whatsapp.externalId)
        accounts.set(page.accessToken, page.externalId)
        expect((yield* call("POST", channels, { cookie, body: whatsapp })).status).toBe(201)
        expect((yield* call("POST", channels, { cookie, body: page })).status).toBe(201)
      })
    )
  )

  it.effect("changes nothing while its provider is unreachable", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        accounts.set(page.accessToken, page.externalId)
        for (const body of [whatsapp, page]) {
          outages.push(unreachable())
          const unasked = yield* call("POST", channels, { cookie, body })
          expect([unasked.status, unasked.error.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
        }
        expect((yield* call("GET", channels, { cookie })).data.channels).toEqual([])
        const idle = yield* call("POST", channels, { cookie, body: { ...whatsapp, active: false } })
        outages.push(unreachable())
        const path = `/api/channels/${idle.data.channel.id}`
        const waking = yield* call("PATCH", path, { cookie, body: { active: true } })
        expect(waking.status).toBe(503)
        expect((yield* call("GET", channels, { cookie })).data.channels).toEqual([idle.data.channel])
      })
    )
  )

  it.effect("moves to the tenant whose token its provider accepts, if it refuses the other's", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        const other = yield* another
        for (const body of [whatsapp, page]) {
          accounts.set(body.accessToken, body.externalId)
          const first = yield* call("POST", channels, { cookie, body })
          accounts.set("EAA-owner", body.externalId)
          const owner = { ...body, accessToken: "EAA-owner" }
          const early = yield* call("POST", other.channels, { cookie: other.cookie, body: owner })
          expect([early.status, early.error.code]).toEqual([409, "CONFLICT"])

          // The provider takes the new token, and cannot be asked about the old one.
          const claims = outages.length
          accounts.set(body.accessToken, "")
          const claimed = yield* call("POST", other.channels, { cookie: other.cookie, body: owner })
          expect([claimed.status, claims]).toEqual([201, 0])
          expect(yield* active).toContain(claimed.data.channel.id)
          expect(yield* active).not.toContain(first.data.channel.id)
          const back = yield* call("PATCH", `/api/channels/${first.data.channel.id}`, {
            cookie,
            body: { active: true }
          })
          expect(back.status).toBe(400)
        }
        expect(yield* actions(other.cookie)).toContain("channel.claim")
        expect(yield* actions(cookie)).toContain("channel.lose")
      })
    )
  )

  it.effect("stays with its tenant while its provider cannot verify that tenant's token", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        const other = yield* another
        const bot = { channel: "telegram", accessToken: "4711:theirs" }
        telegram().bots.set(bot.accessToken, "helper_bot")
        const first = yield* call("POST", channels, { cookie, body: bot })
        expect(first.status).toBe(201)
        const sql = yield* SqlClient.SqlClient
        // What cannot be opened here proves nothing against its tenant.
        yield* sql`update channels set access_token = 'broken'`
        telegram().bots.set("4711:mine", "helper_bot")
        const body = { channel: "telegram", accessToken: "4711:mine" }
        const unasked = yield* call("POST", other.channels, { cookie: other.cookie, body })
        expect([unasked.status, unasked.error.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
        expect(yield* active).toEqual([first.data.channel.id])
      })
    )
  )
})

eachEngineLive("A Telegram bot", (it) => {
  it.effect("is identified by its token, registered at this service, and claimed with its new token", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        const stub = telegram()
        stub.bots.set("4711:first", "Helper_Bot")
        const made = yield* call("POST", channels, {
          cookie,
          body: { channel: "telegram", accessToken: "4711:first" }
        })
        expect(made.status).toBe(201)
        const webhookUrl = "https://spoke.example.com/api/webhooks/telegram/4711"
        expect(made.data.channel).toMatchObject({ externalId: "4711", webhookUrl, active: true })
        const [set] = stub.calls.filter(({ method }) => method === "setWebhook")
        expect(set?.body).toEqual({
          url: webhookUrl,
          secret_token: expect.stringMatching(/^[0-9a-f]{64}$/),
          allowed_updates: ["message"]
        })

        // The bot's owner has made another token of it: the first one is refused from now on.
        const other = yield* another
        stub.bots.delete("4711:first")
        stub.bots.set("4711:second", "Helper_Bot")
        const body = { channel: "telegram", accessToken: "4711:second" }
        const claimed = yield* call("POST", other.channels, { cookie: other.cookie, body })
        expect(claimed.status).toBe(201)
        expect(yield* active).toEqual([claimed.data.channel.id])
        const sql = yield* SqlClient.SqlClient
        expect(JSON.stringify(yield* sql`select * from channels`)).not.toContain("4711:")
        expect(yield* actions(other.cookie)).toContain("channel.claim")
      })
    )
  )

  it.effect("stays inactive while Telegram is unreachable or does not deliver here", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        const stub = telegram()
        stub.close()
        const unasked = yield* call("POST", channels, {
          cookie,
          body: { channel: "telegram", accessToken: "4711:first" }
        })
        expect([unasked.status, unasked.error.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
        expect((yield* call("GET", channels, { cookie })).data.channels).toEqual([])
      })
    )
  )
})

eachEngineLive("A mailbox", (it) => {
  const mailbox = (fields: object = {}) => ({
    channel: "email",
    accessToken: "first-password-canary",
    secrets: { signingSecret: "signing-canary" },
    settings: { address: "support@example.com", server: "smtps://smtp.example.com" },
    ...fields
  })

  it.effect(
    "is a login at its mail server, reports missing settings, and is claimed with the new password",
    () =>
      withServer(
        Effect.gen(function* () {
          const { channels, cookie } = yield* start
          const refused = yield* call("POST", channels, { cookie, body: mailbox() })
          expect([refused.status, refused.error.details.issues[0].path]).toEqual([400, ["accessToken"]])
          mailboxes.set("support@example.com@smtp.example.com", "first-password-canary")
          const invalid = [
            [{ settings: { address: "support@example.com" } }, ["settings", "server"]],
            [{ settings: { ...mailbox().settings, color: "blue" } }, ["settings", "color"]],
            [{ settings: { ...mailbox().settings, senders: "friends" } }, ["settings", "senders"]],
            [{ secrets: {} }, ["secrets", "signingSecret"]]
          ] as const
          for (const [fields, path] of invalid) {
            const answer = yield* call("POST", channels, { cookie, body: mailbox(fields) })
            expect([answer.status, answer.error.details.issues[0].path]).toEqual([400, path])
          }
          const made = yield* call("POST", channels, { cookie, body: mailbox() })
          expect(made.status).toBe(201)
          const { externalId, id, settings, webhookUrl } = made.data.channel
          expect(settings).toEqual(mailbox().settings)
          expect(webhookUrl).toBe(`https://spoke.example.com/api/webhooks/email/${externalId}`)
          const sql = yield* SqlClient.SqlClient
          expect(JSON.stringify(yield* sql`select * from channels`)).not.toContain("canary")

          // Who has a server of their own has another account, whatever address they give.
          const other = yield* another
          mailboxes.set("support@example.com@smtp.evil.example", "any")
          const server = { address: "support@example.com", server: "smtps://smtp.evil.example" }
          const foreign = yield* call("POST", other.channels, {
            cookie: other.cookie,
            body: mailbox({ accessToken: "any", settings: server })
          })
          expect(foreign.data.channel.externalId).not.toBe(externalId)
          expect(yield* active).toHaveLength(2)

          // The owner of the mailbox has changed its password, and belongs to the other tenant.
          const owner = mailbox({ accessToken: "second-password-canary" })
          const early = yield* call("POST", other.channels, { cookie: other.cookie, body: owner })
          expect(early.status).toBe(400)
          mailboxes.set("support@example.com@smtp.example.com", "second-password-canary")
          const claimed = yield* call("POST", other.channels, { cookie: other.cookie, body: owner })
          expect([claimed.status, claimed.data.channel.externalId]).toEqual([201, externalId])
          expect(yield* active).not.toContain(id)
          expect(yield* actions(cookie)).toContain("channel.lose")
        })
      )
  )

  it.effect("changes the given settings, and removes empty ones", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        mailboxes.set("apikey@smtp.example.com", "first-password-canary")
        mailboxes.set("support@example.com@smtp.example.com", "first-password-canary")
        const body = mailbox({ settings: { ...mailbox().settings, user: "apikey", senders: "verified" } })
        const made = yield* call("POST", channels, { cookie, body })
        const path = `/api/channels/${made.data.channel.id}`
        const patched = yield* call("PATCH", path, { cookie, body: { settings: { senders: "any" } } })
        expect(patched.data.channel.settings).toEqual({ ...body.settings, senders: "any" })
        const bare = yield* call("PATCH", path, { cookie, body: { settings: { user: "", senders: "" } } })
        expect(bare.data.channel.settings).toEqual(mailbox().settings)
        const needed = yield* call("PATCH", path, { cookie, body: { settings: { server: "" } } })
        expect(needed.status).toBe(400)
      })
    )
  )

  it.effect("sends its password to another server only with the password itself", () =>
    withServer(
      Effect.gen(function* () {
        const { channels, cookie } = yield* start
        mailboxes.set("support@example.com@smtp.example.com", "first-password-canary")
        const made = yield* call("POST", channels, { cookie, body: mailbox() })
        const path = `/api/channels/${made.data.channel.id}`
        const settings = { server: "smtps://smtp.evil.example" }
        for (const body of [{ settings }, { settings, active: false }, { settings, secrets: {} }]) {
          const refused = yield* call("PATCH", path, { cookie, body })
          expect([refused.status, refused.error?.details.issues[0].path]).toEqual([400, ["accessToken"]])
        }
        const same = yield* call("PATCH", path, { cookie, body: { settings: mailbox().settings } })
        expect(same.status).toBe(200)
        expect(new Set(logins)).toEqual(new Set(["smtp.example.com first-password-canary"]))
        mailboxes.set("support@example.com@smtp.evil.example", "another")
        const moved = yield* call("PATCH", path, { cookie, body: { settings, accessToken: "another" } })
        expect([moved.status, moved.data?.channel.settings.server]).toEqual([200, settings.server])
      })
    )
  )
})
