/** Pauses as rows that all processes read, by the database's clock. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ProviderBackoff } from "../ProviderBackoff.ts"
import { hasCome, timeAfter } from "../../concurrency/DatabaseTime.ts"
import { maxRetryAfter } from "../../domain/RetryAfter.ts"

/** A failing database reports no pause. The provider will request it again. */
const orNoPause = Effect.catchAllCause((cause: unknown) =>
  Effect.as(Effect.logWarning("A provider's pause could not be shared", cause), Duration.zero)
)

/** Over the table `provider_pauses`. */
export const layerSql = Layer.effect(
  ProviderBackoff,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    left: (provider: string) =>
      sql<{ readonly left: number }>`
        select (extract(epoch from until - clock_timestamp()) * 1000)::float8 as left
        from provider_pauses where provider = ${provider} and not ${hasCome(sql, sql`until`, maxRetryAfter)}`.pipe(
        Effect.map(([row]) => Duration.millis(row?.left ?? 0)),
        orNoPause,
        Effect.withSpan("ProviderBackoff.left")
      ),
    begin: (provider: string, pause: Duration.Duration) =>
      sql`
        insert into provider_pauses as pauses (provider, until)
        values (${provider}, ${timeAfter(sql, pause)})
        on conflict (provider) do update set until = case
          when ${hasCome(sql, sql`pauses.until`, maxRetryAfter)} then excluded.until
          else greatest(pauses.until, excluded.until) end`.pipe(
        Effect.as(Duration.zero),
        orNoPause,
        Effect.asVoid,
        Effect.withSpan("ProviderBackoff.begin")
      )
  }))
)
