import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { newId } from "../../../src/domain/Ids.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { accountsServer, call, signedIn } from "../accounts/AccountsServer.ts"

const served = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, effect).pipe(Effect.provide(accountsServer()), Effect.scoped)

/** An end user of the tenant, with a conversation of that many messages. */
const person = (tenantId: string, externalId: string, messages: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [id, agentId, conversationId] = [
      yield* newId.endUser,
      yield* newId.agent,
      yield* newId.conversation
    ]
    yield* sql`insert into agents (id, tenant_id, name) values (${agentId}, ${tenantId}, 'Shop')`
    yield* sql`
      insert into end_users (id, tenant_id, external_id) values (${id}, ${tenantId}, ${externalId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count)
      values (${conversationId}, ${tenantId}, ${agentId}, ${id}, 'api', ${messages})`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
      select ${conversationId} || lpad(n::text, 6, '0'), ${tenantId}, ${conversationId}, ${agentId}, n, 'user', 'said ' || n
      from generate_series(1, ${messages}::int) n`
    return { id, conversationId }
  }).pipe(Effect.orDie)

const asRole = (tenantId: string, role: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`update users set role = ${role} where tenant_id = ${tenantId}`
  )

/** What the audit trail says of end users, oldest first. */
const audited = (cookie: string) =>
  Effect.map(call("GET", "/api/audit", { cookie }), ({ data }) =>
    data.entries
      .filter(({ action }: { action: string }) => action.startsWith("end_user."))
      .toReversed()
      .map((entry: { actor: { type: string }; action: string; target: string; requestId: string }) => [
        entry.actor.type,
        entry.action,
        entry.target,
        entry.requestId
      ])
  )

eachEngineLive("The data of an end user", (it) => {
  it.effect("is found by every id that a chat may give, written as a chat may write it", () =>
    served(
      Effect.gen(function* () {
        const { cookie, tenantId } = yield* signedIn("ada@example.com")
        const externalId = "😀".repeat(200)
        const joe = yield* person(tenantId, externalId, 1)
        const search = (text: string) =>
          call("GET", `/api/end-users?externalId=${encodeURIComponent(text)}`, { cookie })
        for (const text of [externalId, ` ${externalId}\n`]) {
          const { data, error } = yield* search(text)
          expect([error, data?.endUsers.map(({ id }: { readonly id: string }) => id)]).toEqual([
            undefined,
            [joe.id]
          ])
        }
        expect((yield* search(`${externalId}!`)).status).toBe(400)
      })
    )
  )

  it.effect("is found, exported and erased by admins, and the audit trail has both actions", () =>
    served(
      Effect.gen(function* () {
        const { cookie, tenantId } = yield* signedIn("ada@example.com")
        const joe = yield* person(tenantId, "joe@example.com", 450)
        const sue = yield* person(tenantId, "sue@example.com", 2)
        const found = yield* call("GET", "/api/end-users?externalId=joe%40example.com", { cookie })
        expect(found.data).toEqual({
          endUsers: [
            {
              id: joe.id,
              externalId: "joe@example.com",
              conversations: 1,
              createdAt: expect.stringMatching(/Z$/)
            }
          ],
          nextCursor: null
        })
        const exported = yield* call("GET", `/api/end-users/${joe.id}/export`, {
          cookie,
          headers: { "x-request-id": "export-1" }
        })
        expect([exported.status, exported.headers.get("content-type")]).toEqual([200, "application/x-ndjson"])
        expect(exported.headers.get("cache-control")).toBe("no-store")
        expect(exported.headers.get("content-disposition")).toMatch(/^attachment/)
        const lines = exported.text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        expect(lines[0]).toMatchObject({ type: "end_user", id: joe.id, externalId: "joe@example.com" })
        expect(lines[1]).toMatchObject({ type: "conversation", id: joe.conversationId })
        expect(lines.filter(({ type }) => type === "message").map(({ content }) => content)).toEqual(
          Array.from({ length: 450 }, (_, place) => `said ${place + 1}`)
        )
        expect(lines.at(-1)).toEqual({ type: "end", lines: lines.length - 1 })
        expect(exported.text).not.toContain(sue.id)
        const headers = { "x-request-id": "erasure-1" }
        const erased = yield* call("DELETE", `/api/end-users/${joe.id}`, { cookie, headers })
        expect([erased.status, erased.data]).toEqual([200, { id: joe.id, deleted: true }])
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select id from end_users`).toEqual([{ id: sue.id }])
        expect(yield* sql`select distinct conversation_id as id from messages`).toEqual([
          { id: sue.conversationId }
        ])
        for (const [method, suffix] of [
          ["GET", "/export"],
          ["DELETE", ""]
        ] as const) {
          const again = yield* call(method, `/api/end-users/${joe.id}${suffix}`, { cookie })
          expect([again.status, again.error.code]).toEqual([404, "NOT_FOUND"])
        }
        // What failed is no deed.
        expect(yield* audited(cookie)).toEqual([
          ["user", "end_user.export", joe.id, "export-1"],
          ["user", "end_user.delete", joe.id, "erasure-1"]
        ])
      })
    )
  )

  it.effect("is only for admins and owners of the tenant", () =>
    served(
      Effect.gen(function* () {
        const { cookie, tenantId } = yield* signedIn("ada@example.com")
        const stranger = yield* signedIn("bob@example.com")
        const { id } = yield* person(tenantId, "joe@example.com", 1)
        const routes = [
          ["GET", "/api/end-users"],
          ["GET", `/api/end-users/${id}/export`],
          ["DELETE", `/api/end-users/${id}`]
        ] as const
        for (const [method, path] of routes) {
          const nobody = yield* call(method, path)
          expect([path, nobody.status, nobody.error?.code]).toEqual([path, 401, "UNAUTHORIZED"])
        }
        for (const role of ["viewer", "agent"]) {
          yield* asRole(tenantId, role)
          for (const [method, path] of routes) {
            const low = yield* call(method, path, { cookie })
            expect([role, path, low.status, low.error?.code]).toEqual([role, path, 403, "FORBIDDEN"])
          }
        }
        yield* asRole(tenantId, "admin")
        expect((yield* call("GET", "/api/end-users", { cookie: stranger.cookie })).data.endUsers).toEqual([])
        for (const [method, path] of routes.slice(1)) {
          const foreign = yield* call(method, path, { cookie: stranger.cookie })
          expect([path, foreign.status, foreign.error?.code]).toEqual([path, 404, "NOT_FOUND"])
        }
        const elsewhere = yield* call("DELETE", `/api/end-users/${id}`, {
          cookie,
          headers: { origin: "https://evil.example" }
        })
        expect([elsewhere.status, elsewhere.error.code]).toEqual([403, "FORBIDDEN"])
        expect((yield* call("DELETE", `/api/end-users/${id}`, { cookie })).status).toBe(200)
      })
    )
  )

  it.effect("is not exported when the export cannot be audited", () =>
    served(
      Effect.gen(function* () {
        const { cookie, tenantId } = yield* signedIn("ada@example.com")
        const { id } = yield* person(tenantId, "joe@example.com", 1)
        const sql = yield* SqlClient.SqlClient
        const answer = yield* sql`alter table audit_entries rename to gone`.pipe(
          Effect.zipRight(call("GET", `/api/end-users/${id}/export`, { cookie })),
          Effect.ensuring(Effect.orDie(sql`alter table gone rename to audit_entries`))
        )
        expect([answer.status, answer.error?.code]).toEqual([503, "SERVICE_UNAVAILABLE"])
        expect(answer.text).not.toContain("said 1")
      })
    )
  )
})
