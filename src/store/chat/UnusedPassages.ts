/**
 * Removes passages that no run refers to. Deleting a run removes its passages at once, but dropping a week of runs does
 * not. So each dropped week restarts this search (`passage_sweep`).
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Rows from "../Rows.ts"

/** Maximum number of passages that one batch checks. */
const batchSize = 500

const PassageKey = Schema.Struct({ tenantId: Schema.String, hash: Schema.Uint8ArrayFromSelf })
type PassageKey = typeof PassageKey.Type

const CheckedPassage = Schema.Struct({ ...PassageKey.fields, used: Schema.Boolean })

export class UnusedPassages extends Effect.Service<UnusedPassages>()("store/chat/UnusedPassages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const isUsed = sql`exists (select from run_passages r where r.tenant_id = p.tenant_id and r.hash = p.hash)`

    const rows = (unused: ReadonlyArray<PassageKey>) => sql`
      select * from unnest(${unused.map(({ tenantId }) => tenantId)}::text[], ${unused.map(({ hash }) => hash)}::bytea[])`

    /**
     * Locks them first. If a turn settles meanwhile and refers to one of them, the second statement sees that, or the
     * turn waits and then stores the text again.
     */
    const removeUnused = (unused: ReadonlyArray<PassageKey>) =>
      Effect.gen(function* () {
        yield* sql`/* every tenant: sweep */
          select from passages p where (p.tenant_id, p.hash) in (${rows(unused)}) and tenant_is_swept(p.tenant_id) order by p.tenant_id, p.hash for update`
        yield* sql`/* every tenant: sweep */
          delete from passages p where (p.tenant_id, p.hash) in (${rows(unused)}) and tenant_is_swept(p.tenant_id) and not ${isUsed}`
      })

    /** Checks one batch. True when there are more. */
    const sweep = Effect.gen(function* () {
      // Locked until the batch commits, so that one process searches at a time.
      const position =
        yield* sql`select seen_tenant as "tenantId", seen_hash as hash from passage_sweep for update skip locked`.pipe(
          Rows.first(PassageKey)
        )
      if (Option.isNone(position)) return false
      const { hash, tenantId } = position.value
      const checked = yield* sql`/* every tenant: sweep */
        select tenant_id as "tenantId", hash, ${isUsed} as used from (
          select tenant_id, hash from passages where (tenant_id, hash) > (${tenantId}, ${hash})
          order by tenant_id, hash limit ${batchSize}
        ) p order by tenant_id, hash`.pipe(Rows.all(CheckedPassage))
      const unused = checked.filter(({ used }) => !used)
      if (unused.length > 0) yield* removeUnused(unused)
      const last = checked.length === batchSize ? checked.at(-1) : undefined
      if (last === undefined) yield* sql`delete from passage_sweep`
      else yield* sql`update passage_sweep set seen_tenant = ${last.tenantId}, seen_hash = ${last.hash}`
      return last !== undefined
    }).pipe(sql.withTransaction, Effect.orDie, Effect.withSpan("UnusedPassages.sweep"))

    return { sweep } as const
  })
}) {}
