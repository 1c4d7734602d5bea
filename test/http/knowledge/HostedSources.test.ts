import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { layer as layerSecretBox } from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import * as SessionAuth from "../../../src/http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../../../src/http/hosted/accounts/SessionCookie.ts"
import { SessionsApi } from "../../../src/http/hosted/accounts/SessionsApi.ts"
import { SessionsHandlers } from "../../../src/http/hosted/accounts/SessionsHandlers.ts"
import { HostedSourcesApi } from "../../../src/http/hosted/knowledge/SourcesApi.ts"
import { SourcesHandlers } from "../../../src/http/hosted/knowledge/SourcesHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { TenantsApi } from "../../../src/http/operator/TenantsApi.ts"
import { TenantsHandlers } from "../../../src/http/operator/TenantsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { appUrl, call, operatorToken, signedIn } from "../accounts/AccountsServer.ts"
import { layer as builtIn } from "../../../src/readers/connectors/Registered.ts"
import { layerSettings } from "../../usecases/knowledge/ConnectorLayers.ts"
import { openGate } from "../OpenGate.ts"

const Surface = HttpApi.make("spoke").add(TenantsApi).add(SessionsApi).add(HostedSourcesApi)

const Stores = Layer.mergeAll(
  AgentStore.Default,
  ArtifactRows.Default,
  EntitlementStore.Default,
  IdempotencyKeyStore.Default,
  IngestionJobStore.Default,
  SessionStore.Default,
  SourceStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  UserStore.Default
)

const Server = Layer.suspend(() => {
  const handlers = Layer.mergeAll(TenantsHandlers, SessionsHandlers, SourcesHandlers).pipe(
    Layer.provide(SessionAuth.layer(Surface, appUrl).pipe(Layer.provide(openGate))),
    Layer.provide(SessionCookie.layer(appUrl)),
    Layer.provide(OperatorAuth.layer(Option.some(Redacted.make(operatorToken))))
  )
  return HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(Layer.provide(HttpApiBuilder.api(Surface), handlers)),
    Layer.provide(
      Layer.mergeAll(
        Accounts.Default,
        AuditTrail.Default,
        Sources.Default.pipe(Layer.provide(layerSettings(builtIn))),
        SourceScopes.Default,
        Subscriptions.Default
      )
    ),
    Layer.provide(Artifacts.Default),
    Layer.provide(Layer.mergeAll(layerSql, SqlAudit.layerSql, QueueTable.layerTable, layerMemory)),
    Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 })),
    Layer.provide(Stores),
    Layer.provide(layerSecretBox([Redacted.make("a master secret of the tests, long enough")])),
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
  )
})

const start = Effect.gen(function* () {
  yield* reset
  const sql = yield* SqlClient.SqlClient
  const { cookie, tenantId } = yield* signedIn("ada@example.com")
  yield* sql`insert into agents (id, tenant_id, name) values ('agt_mine', ${tenantId}, 'Helper')`
  return { cookie, tenantId, sql }
})

const page = { agentId: "agt_mine", type: "URL", name: "Page", config: { url: "https://example.com/" } }

const upload = (path: string, cookie: string, fields: Readonly<Record<string, string>>) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.promise(async (signal) => {
      if (address._tag !== "TcpAddress") throw new Error("The server has no port.")
      const body = new FormData()
      for (const [name, value] of Object.entries(fields)) body.append(name, value)
      body.append("file", new Blob(["hello"]), "hello.txt")
      const headers = { cookie, origin: appUrl }
      const url = `http://127.0.0.1:${address.port}${path}`
      const response = await fetch(url, { method: "POST", signal, headers, body })
      const { data } = JSON.parse(await response.text())
      return { status: response.status, data }
    })
  )

layer(Server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })("/api/sources", (it) => {
  it.effect("does what the public routes do for an agent of the tenant, and every change is audited", () =>
    Effect.gen(function* () {
      const { cookie, sql } = yield* start
      const created = yield* call("POST", "/api/sources", { cookie, body: page })
      expect([created.status, created.data.source.agentId]).toEqual([201, "agt_mine"])
      const { id } = created.data.source
      const listed = yield* call("GET", "/api/sources?agentId=agt_mine&status=nonsense", { cookie })
      expect(listed.data).toMatchObject({
        sources: [{ id, latestJob: { status: "QUEUED" } }],
        nextCursor: null
      })
      const job = yield* call("GET", `/api/sources/${id}/jobs/${created.data.ingestionJob.id}`, { cookie })
      expect(job.data).toMatchObject({ sourceId: id, status: "QUEUED", progress: 0 })
      const changed = yield* call("PATCH", `/api/sources/${id}`, { cookie, body: { name: "New" } })
      expect(changed.data).toEqual({ id, agentId: "agt_mine", name: "New", type: "URL", status: "PENDING" })
      const synced = yield* call("POST", `/api/sources/${id}/sync`, { cookie, body: { force: true } })
      expect([synced.status, synced.data.sourceId]).toEqual([202, id])
      expect((yield* call("GET", `/api/sources/${id}`, { cookie })).data).toMatchObject({ id, error: null })
      expect((yield* call("DELETE", `/api/sources/${id}`, { cookie })).data).toEqual({ id, deleted: true })
      expect((yield* call("DELETE", `/api/sources/${id}`, { cookie })).status).toBe(404)
      const audited = yield* sql<{ readonly action: string }>`
        select action from audit_entries where target = ${id} order by id`
      expect(audited.map(({ action }) => action)).toEqual([
        "source.create",
        "source.update",
        "source.sync",
        "source.delete"
      ])
    })
  )

  it.effect("goes on to the next page of the longest search", () =>
    Effect.gen(function* () {
      const { cookie } = yield* start
      const name = "😀".repeat(200)
      const body = { ...page, name, autoSync: false }
      yield* Effect.repeatN(call("POST", "/api/sources", { cookie, body }), 1)
      const search = `/api/sources?agentId=agt_mine&limit=1&status=PENDING&type=URL&q=${encodeURIComponent(name)}`
      const first = yield* call("GET", search, { cookie })
      const second = yield* call("GET", `${search}&cursor=${first.data.nextCursor}`, { cookie })
      expect([second.error, second.data?.sources.length]).toEqual([undefined, 1])
      expect(second.data.sources[0].id).not.toBe(first.data.sources[0].id)
    })
  )

  it.effect("accepts one document, or one ZIP of documents, as a form with the agent's id", () =>
    Effect.gen(function* () {
      const { cookie } = yield* start
      const one = yield* upload("/api/sources/upload", cookie, { agentId: "agt_mine" })
      expect([one.status, one.data.source.type, one.data.source.name]).toEqual([201, "FILE", "hello.txt"])
      const many = yield* upload("/api/sources/bulk-upload", cookie, { agentId: "agt_mine", name: "All" })
      expect([many.status, many.data.source.type, many.data.ingestionJob.status]).toEqual([
        201,
        "BULK_UPLOAD",
        "QUEUED"
      ])
      const withContent = (artifact: string) =>
        Effect.map(
          call("GET", `/api/sources?agentId=agt_mine&artifact=${encodeURIComponent(artifact)}`, { cookie }),
          ({ data, status }) => [status, data?.sources?.map(({ id }: { readonly id: string }) => id)]
        )
      const { artifact } = one.data.source.config
      expect(yield* withContent(artifact)).toEqual([200, [many.data.source.id, one.data.source.id]])
      expect(yield* withContent(`sha256:${"0".repeat(64)}`)).toEqual([200, []])
      expect((yield* withContent("hello"))[0]).toBe(400)
      expect((yield* upload("/api/sources/upload", cookie, {})).status).toBe(400)
      expect((yield* upload("/api/sources/upload", cookie, { agentId: "agt_none" })).status).toBe(404)
    })
  )

  it.effect("needs a session, the dashboard's origin and a role, and shows nothing of another tenant", () =>
    Effect.gen(function* () {
      const { cookie, sql } = yield* start
      const created = yield* call("POST", "/api/sources", { cookie, body: page })
      const { id } = created.data.source
      const jobId = created.data.ingestionJob.id
      const routes: ReadonlyArray<readonly [string, string, unknown?]> = [
        ["GET", "/api/sources?agentId=agt_mine"],
        ["GET", `/api/sources/${id}`],
        ["GET", `/api/sources/${id}/jobs/${jobId}`],
        ["POST", "/api/sources", page],
        ["PATCH", `/api/sources/${id}`, { name: "Mine" }],
        ["DELETE", `/api/sources/${id}`],
        ["POST", `/api/sources/${id}/sync`, {}]
      ]
      const stranger = yield* signedIn("eve@example.com")
      for (const [method, path, body] of routes) {
        expect((yield* call(method, path, { body })).status).toBe(401)
        expect((yield* call(method, path, { body, cookie: stranger.cookie })).status).toBe(404)
        if (method === "GET") continue
        const headers = { origin: "https://evil.example" }
        expect((yield* call(method, path, { body, cookie, headers })).status).toBe(403)
      }
      expect((yield* upload("/api/sources/upload", stranger.cookie, { agentId: "agt_mine" })).status).toBe(
        404
      )
      for (const role of ["viewer", "agent"]) {
        yield* sql`update users set role = ${role} where email = 'ada@example.com'`
        for (const [method, path, body] of routes) {
          const { status } = yield* call(method, path, { body, cookie })
          expect(status).toBe(method === "GET" ? 200 : 403)
        }
      }
      expect((yield* upload("/api/sources/bulk-upload", cookie, { agentId: "agt_mine" })).status).toBe(403)
    })
  )
})
