/** The audit trail in PostgreSQL. Each entry is a statement of its own, so that no other work can roll it back. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { typeId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import { AuditEntry, AuditLog, type AuditRecord, AuditUnavailable } from "../AuditLog.ts"

const Row = Schema.Struct({
  ...AuditEntry.fields,
  at: Schema.DateTimeUtcFromDate
})

export const layerSql = Layer.effect(
  AuditLog,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let lastMillis = 0

    /** A distinct millisecond for each entry, so that ids sort in the order in which a process wrote them. */
    const distinctMillis = Effect.map(Clock.currentTimeMillis, (now) => {
      lastMillis = Math.max(now, lastMillis + 1)
      return lastMillis
    })

    const record = Effect.fn("AuditLog.record")(function* (entry: AuditRecord) {
      const { action, actor, requestId, target, tenantId } = entry
      const id = typeId("aud", yield* distinctMillis)
      yield* sql`
        insert into audit_entries (id, tenant_id, actor_type, actor_id, action, target, request_id)
        values (${id}, ${tenantId}, ${actor.type}, ${actor.id}, ${action}, ${target}, ${requestId})`.pipe(
        Effect.mapError((cause) => new AuditUnavailable({ cause }))
      )
    })

    /** The name of the object whose id is in `column`. An id belongs to one kind, so at most one name is found. */
    const nameOf = (column: "actor_id" | "target") => sql`
      (select name from agents n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select name from sources n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select name from tools n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select name from api_keys n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select name from access_tokens n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select email from users n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select external_id from channels n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select external_id from end_users n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select url from webhook_endpoints n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select question from test_cases n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       union all select question from corrections n where n.tenant_id = e.tenant_id and n.id = e.${sql(column)}
       limit 1)`

    const list = Effect.fn("AuditLog.list")(function* (
      tenantId: AuditRecord["tenantId"],
      { limit, after }: { readonly limit: number; readonly after?: string | undefined }
    ) {
      const found = yield* SqlSchema.findAll({
        Request: Schema.Void,
        Result: Row,
        execute: () => sql`
          select id, at, json_build_object('type', actor_type, 'id', actor_id) as actor, action, target,
            request_id as "requestId", ${nameOf("actor_id")} as "actorName", ${nameOf("target")} as "targetName"
          from audit_entries e
          where e.tenant_id = ${tenantId} ${after === undefined ? sql`` : sql`and e.id < ${after}`}
          order by e.id desc limit ${limit + 1}`
      })(undefined)
      return pageOf(found, limit)
    }, Effect.orDie)

    return { record, list }
  })
)
