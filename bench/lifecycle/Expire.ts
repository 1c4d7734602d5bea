/** One process of the lifecycle benchmark: removes runs past a limit, with the code of the service, and exits. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { keepsAll } from "../../src/domain/accounts/Retention.ts"
import { ExpiredRows } from "../../src/store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../../src/store/accounts/Retention.ts"
import { UnusedPassages } from "../../src/store/chat/UnusedPassages.ts"
import { layerPostgres } from "../../src/store/Database.ts"
import { InstallationRetention, RetentionLimits } from "../../src/usecases/accounts/Retention.ts"

const [url = "", days = "", by = ""] = process.argv.slice(2)

/** `weeks`: a limit of the installation; else the same limit of each tenant. */
const installation = by === "weeks" ? { ...keepsAll, runs: Number(days) } : keepsAll

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const limits = yield* RetentionLimits
  yield* sql`insert into tenant_retention (tenant_id) select id from tenants on conflict do nothing`
  if (by !== "weeks") yield* sql`update tenant_retention set runs = ${Number(days)}`
  const started = performance.now()
  if (by === "weeks") yield* limits.sweepTraces
  const dropped = performance.now()
  while (yield* limits.sweepPassages) continue
  while (yield* limits.sweep) continue
  const deleted = performance.now()
  process.send?.({ dropMs: dropped - started, deleteMs: deleted - dropped })
})

const stores = Layer.mergeAll(ExpiredRows.Default, RetentionStore.Default, UnusedPassages.Default)
const live = RetentionLimits.Default.pipe(
  Layer.provide(Layer.succeed(InstallationRetention, installation)),
  Layer.provideMerge(stores),
  Layer.provideMerge(layerPostgres({ url: Redacted.make(url), maxConnections: 4 }))
)
await Effect.runPromise(Effect.provide(program, live))
process.disconnect()
