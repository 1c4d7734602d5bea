/** {@link DedupeStore} in the table `dedupe_keys`; times are the database's. A claim joins the caller's transaction. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DedupeStore } from "../DedupeStore.ts"
import { timeAfter } from "../../concurrency/DatabaseTime.ts"
import { orUnreachable } from "./Unreachable.ts"

export const layerSql = Layer.effect(
  DedupeStore,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return DedupeStore.of({
      claim: (key, ttl) =>
        sql`
          insert into dedupe_keys as known (key, expires_at)
          values (${key}, ${timeAfter(sql, ttl)})
          on conflict (key) do update set expires_at = excluded.expires_at
            where known.expires_at <= clock_timestamp()
          returning key`.pipe(
          Effect.map((rows) => rows.length > 0),
          orUnreachable,
          Effect.withSpan("DedupeStore.claim")
        ),
      release: (key) =>
        sql`delete from dedupe_keys where key = ${key}`.pipe(
          Effect.asVoid,
          orUnreachable,
          Effect.withSpan("DedupeStore.release")
        )
    })
  })
)
