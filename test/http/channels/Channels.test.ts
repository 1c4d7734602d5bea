import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import type { TenantScope } from "../../../src/domain/accounts/Account.ts"
import { ChannelId, TenantId } from "../../../src/domain/Ids.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import { expectVersioned } from "../Versions.ts"
import { accessToken, accounts, withServer, start, whatsapp } from "./ChannelServer.ts"
const tenantOf = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [scope] = yield* sql<TenantScope>`select tenant_id as "tenantId" from channels where id = ${id}`
    return scope ?? { tenantId: TenantId.make("ten_none") }
  })

eachEngineLive("Channel configurations", (it) => {
  it.effect(
    "are listed page by page, oldest first, with cursors that are valid only for one agent's list",
    () =>
      withServer(
        Effect.gen(function* () {
          const { channels, cookie } = yield* start
          const numbers = ["11", "12", "13"]
          for (const externalId of numbers) {
            yield* call("POST", channels, { cookie, body: { ...whatsapp, externalId } })
          }
          const first = yield* call("GET", `${channels}?limit=2`, { cookie })
          const cursor = `?limit=2&cursor=${encodeURIComponent(first.data.nextCursor)}`
          const second = yield* call("GET", `${channels}${cursor}`, { cookie })
          const listed = [...first.data.channels, ...second.data.channels]
          expect(listed.map(({ externalId }) => externalId)).toEqual(numbers)
          expect([first.data.channels.length, second.data.nextCursor]).toEqual([2, null])
          const other = yield* call("POST", "/api/agents", { cookie, body: { name: "Second" } })
          const others = `/api/agents/${other.data.agent.id}/channels`
          expect((yield* call("GET", `${others}${cursor}`, { cookie })).status).toBe(400)
        })
      )
  )

  it.effect("are created, listed, changed and removed; the token is sealed and never returned", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels, agentId } = yield* start
        const made = yield* call("POST", channels, { cookie, body: whatsapp })
        expect(made.status).toBe(201)
        expect(made.data.channel).toEqual({
          id: expect.stringMatching(/^chn_/),
          agentId,
          channel: "whatsapp",
          externalId: "106540352242922",
          webhookUrl: "https://spoke.example.com/api/webhooks/whatsapp",
          settings: {},
          sourceScope: { labels: [] },
          active: true,
          version: 1,
          createdAt: expect.any(String),
          updatedAt: expect.any(String)
        })
        const path = `/api/channels/${made.data.channel.id}`
        const patched = yield* call("PATCH", path, { cookie, body: { active: false, externalId: "77" } })
        expect(patched.data.channel).toMatchObject({ active: false, externalId: "77" })
        const list = yield* call("GET", channels, { cookie })
        expect(list.data).toEqual({ channels: [patched.data.channel], nextCursor: null })
        const sql = yield* SqlClient.SqlClient
        expect(JSON.stringify(yield* sql`select * from channels`)).not.toContain(accessToken)
        for (const { text } of [made, patched, list]) expect(text).not.toContain(accessToken)
        const stored = yield* (yield* ChannelStore).findCurrent(
          yield* tenantOf(made.data.channel.id),
          ChannelId.make(made.data.channel.id)
        )
        const sealed = Option.map(stored, (row) => row.accessToken).pipe(Option.getOrElse(() => ""))
        expect(yield* (yield* SecretBox).open("channel-token", sealed)).toEqual(Option.some(accessToken))
        yield* expectVersioned(path, "channel", cookie, (place) => ({ externalId: `${place}00` }))
        const gone = yield* call("DELETE", path, { cookie })
        expect(gone.data).toEqual({ id: made.data.channel.id, deleted: true })
        expect((yield* call("DELETE", path, { cookie })).error.code).toBe("NOT_FOUND")
        const { data } = yield* call("GET", "/api/audit", { cookie })
        const actions = data.entries.map(({ action }: { readonly action: string }) => action)
        expect(actions).toEqual(
          expect.arrayContaining(["channel.create", "channel.update", "channel.delete"])
        )
      })
    )
  )

  it.effect("say which sources are read: by default those without labels, or all, or some", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels } = yield* start
        const scopeOf = (answer: {
          readonly data: { readonly channel: { readonly sourceScope: unknown } }
        }) => answer.data.channel.sourceScope
        const made = yield* call("POST", channels, { cookie, body: { ...whatsapp, sourceScope: null } })
        expect(scopeOf(made)).toBeNull()
        const path = `/api/channels/${made.data.channel.id}`
        const patch = (body: object) => call("PATCH", path, { cookie, body })
        accounts.clear()
        // The provider is not asked again.
        const some = { labels: ["partners", "staff"], sourceIds: ["src_1"] }
        expect(scopeOf(yield* patch({ sourceScope: { ...some, labels: ["staff", "partners"] } }))).toEqual(
          some
        )
        expect(scopeOf(yield* patch({ active: false }))).toEqual(some)
        expect(scopeOf(yield* patch({ externalId: "77", sourceScope: null }))).toBeNull()
        const wrong = yield* patch({ sourceScope: { labels: [""] } })
        expect([wrong.status, wrong.error.code]).toEqual([400, "VALIDATION_ERROR"])
      })
    )
  )

  it.effect("allow one active channel per account over all tenants: a second one is 409", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels } = yield* start
        accounts.set("EAA-page", whatsapp.externalId)
        const other = yield* signedIn("bob@example.com")
        const agent = yield* call("POST", "/api/agents", { cookie: other.cookie, body: { name: "Other" } })
        const theirs = `/api/agents/${agent.data.agent.id}/channels`
        expect((yield* call("POST", channels, { cookie, body: whatsapp })).status).toBe(201)
        for (const [path, session] of [
          [channels, cookie],
          [theirs, other.cookie]
        ] as const) {
          const second = yield* call("POST", path, { cookie: session, body: whatsapp })
          expect([second.status, second.error.code]).toEqual([409, "CONFLICT"])
        }
        const idle = yield* call("POST", theirs, {
          cookie: other.cookie,
          body: { ...whatsapp, active: false }
        })
        expect(idle.status).toBe(201)
        const waking = yield* call("PATCH", `/api/channels/${idle.data.channel.id}`, {
          cookie: other.cookie,
          body: { active: true }
        })
        expect([waking.status, waking.error.code]).toEqual([409, "CONFLICT"])
        const page = yield* call("POST", channels, {
          cookie,
          body: { ...whatsapp, channel: "messenger", accessToken: "EAA-page" }
        })
        expect(page.status).toBe(201)
        const found = yield* (yield* ChannelStore).byAccount("whatsapp", whatsapp.externalId)
        expect(found).toHaveLength(1)
      })
    )
  )

  it.effect(
    "pass an account's conversations on to the tenant's next channel, never to another tenant's",
    () =>
      withServer(
        Effect.gen(function* () {
          const { cookie, channels } = yield* start
          const other = yield* signedIn("bob@example.com")
          const agent = yield* call("POST", "/api/agents", { cookie: other.cookie, body: { name: "Other" } })
          const theirs = `/api/agents/${agent.data.agent.id}/channels`
          const first = yield* call("POST", channels, { cookie, body: whatsapp })
          const id: string = first.data.channel.id
          const now = Effect.map(
            Effect.flatMap(tenantOf(id), (scope) =>
              Effect.flatMap(ChannelStore, (store) => store.findCurrent(scope, ChannelId.make(id)))
            ),
            Option.match({ onNone: () => null, onSome: (row) => row.id })
          )
          expect(yield* now).toBe(id)
          yield* call("PATCH", `/api/channels/${id}`, { cookie, body: { active: false } })
          const stolen = yield* call("POST", theirs, { cookie: other.cookie, body: whatsapp })
          expect([stolen.status, yield* now]).toEqual([201, id])
          yield* call("DELETE", `/api/channels/${stolen.data.channel.id}`, { cookie: other.cookie })
          const next = yield* call("POST", channels, { cookie, body: whatsapp })
          expect(yield* now).toBe(next.data.channel.id)
        })
      )
  )

  it.effect("that are activated at the same time succeed once", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels } = yield* start
        const idle = yield* Effect.forEach(Array.from({ length: 4 }), () =>
          call("POST", channels, { cookie, body: { ...whatsapp, active: false } })
        )
        const answers = yield* Effect.all(
          [
            ...idle.map(({ data }) =>
              call("PATCH", `/api/channels/${data.channel.id}`, { cookie, body: { active: true } })
            ),
            ...Array.from({ length: 4 }, () => call("POST", channels, { cookie, body: whatsapp }))
          ],
          { concurrency: "unbounded" }
        )
        const statuses = answers.map(({ status }) => status).toSorted()
        expect(statuses.slice(1)).toEqual(Array.from({ length: 7 }, () => 409))
        expect([200, 201]).toContain(statuses[0])
      })
    )
  )

  it.effect("belong to their tenant, are read by viewers and changed by admins", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels } = yield* start
        const made = yield* call("POST", channels, { cookie, body: whatsapp })
        const path = `/api/channels/${made.data.channel.id}`
        const other = yield* signedIn("eve@example.com")
        for (const [method, address, body] of [
          ["GET", channels, undefined],
          ["POST", channels, { ...whatsapp, externalId: "2" }],
          ["PATCH", path, { active: false }],
          ["DELETE", path, undefined]
        ] as const) {
          const answer = yield* call(method, address, { cookie: other.cookie, body })
          expect([method, answer.status, answer.error.code]).toEqual([method, 404, "NOT_FOUND"])
        }
        const sql = yield* SqlClient.SqlClient
        yield* sql`update users set role = 'viewer' where email = 'ada@example.com'`
        expect((yield* call("GET", channels, { cookie })).status).toBe(200)
        expect((yield* call("PATCH", path, { cookie, body: { active: false } })).error.code).toBe("FORBIDDEN")
        expect((yield* call("GET", channels)).error.code).toBe("UNAUTHORIZED")
      })
    )
  )

  it.effect("refuse invalid input without repeating it", () =>
    withServer(
      Effect.gen(function* () {
        const { cookie, channels } = yield* start
        for (const body of [
          {},
          { ...whatsapp, channel: "pigeon" },
          { ...whatsapp, externalId: "../me" },
          { ...whatsapp, externalId: ".." },
          { ...whatsapp, externalId: "" },
          { ...whatsapp, accessToken: "" },
          { ...whatsapp, accessToken: `${accessToken}\n` + "x" },
          { ...whatsapp, active: null }
        ]) {
          const answer = yield* call("POST", channels, { cookie, body })
          expect([answer.status, answer.error.code]).toEqual([400, "VALIDATION_ERROR"])
          expect(answer.text).not.toContain(accessToken)
        }
        const made = yield* call("POST", channels, { cookie, body: whatsapp })
        const moved = yield* call("PATCH", `/api/channels/${made.data.channel.id}`, {
          cookie,
          body: { channel: "messenger" }
        })
        expect([moved.status, moved.error.code]).toEqual([400, "VALIDATION_ERROR"])
      })
    )
  )
})
