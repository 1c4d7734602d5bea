/**
 * API keys in PostgreSQL. A found key is cached for half a second, counted from before the query, so that a revocation
 * by another process takes effect within one second. Unknown keys are not cached.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import { Permission } from "../../domain/accounts/Access.ts"
import { AgentId, KeyId, TenantId } from "../../domain/Ids.ts"
import { RateLimit } from "../../domain/accounts/RateLimit.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { Credentials } from "../Credentials.ts"
import { KeyStore, type LiveKey, type AffectedKeys } from "../KeyStore.ts"

/** Milliseconds for which a found key is cached. */
const cacheLifetimeMs = 500
/** Maximum number of cached keys. The oldest entry is evicted. */
const maxCachedKeys = 10_000
/** Longer than any generated secret, so no query is needed. */
const maxSecretCharacters = 200

const Row = Schema.Struct({
  keyId: KeyId,
  tenantId: TenantId,
  scope: Schema.Literal("agent", "org"),
  agentId: Schema.NullOr(AgentId),
  permissions: Schema.Array(Permission),
  sourceScope: Schema.NullOr(SourceScope),
  allowedOrigins: Schema.Array(Schema.String),
  publicApi: Schema.Boolean,
  rateLimit: Schema.NullOr(RateLimit),
  /** Milliseconds until the key expires. */
  remainingMs: Schema.NullOr(Schema.Number),
  /** Whether its last use was recorded more than a minute ago. */
  isUseOutdated: Schema.Boolean
})

interface Entry {
  readonly key: LiveKey
  readonly until: number
}

const isAffected = (affected: AffectedKeys, key: LiveKey): boolean => {
  if ("keyId" in affected) return key.keyId === affected.keyId
  if ("agentId" in affected) return key.agentId === affected.agentId
  return key.tenantId === affected.tenantId
}

/** Found keys by fingerprint. `epoch` prevents caching the result of a look-up that began before an invalidation. */
class KeyCache {
  private readonly entries = new Map<string, Entry>()
  epoch = 0

  get(fingerprint: string, now: number): LiveKey | undefined {
    const entry = this.entries.get(fingerprint)
    if (entry === undefined || now < entry.until) return entry?.key
    this.entries.delete(fingerprint)
    return undefined
  }

  set(fingerprint: string, entry: Entry): void {
    this.entries.delete(fingerprint)
    for (const oldest of this.entries.keys()) {
      if (this.entries.size < maxCachedKeys) break
      this.entries.delete(oldest)
    }
    this.entries.set(fingerprint, entry)
  }

  invalidate(affected: AffectedKeys): void {
    this.epoch += 1
    for (const [fingerprint, { key }] of this.entries) {
      if (isAffected(affected, key)) this.entries.delete(fingerprint)
    }
  }
}

type UsedKey = Pick<LiveKey, "tenantId" | "keyId">

const toJson = (keys: Iterable<UsedKey>) =>
  JSON.stringify(Array.from(keys, ({ keyId, tenantId }) => [tenantId, keyId]))

/** Records the last use of keys in the background. Under load, records are dropped. */
const makeUseRecorder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const used = yield* Queue.dropping<UsedKey>(1_000)

  const write = (keys: Iterable<UsedKey>) => sql`/* every tenant: batch */
    update api_keys set last_used_at = now()
    where (tenant_id, id) in (
      select tenant_id, id from api_keys
      where (tenant_id, id) in (
          select key ->> 0, key ->> 1 from jsonb_array_elements(${toJson(keys)}::jsonb) as keys (key))
        and (last_used_at is null or last_used_at < now() - interval '1 minute')
      for update skip locked
    )`

  yield* Queue.takeBetween(used, 1, 1_000).pipe(
    Effect.flatMap(write),
    Effect.catchAllCause((cause) => Effect.logWarning("The last use of API keys was not recorded.", cause)),
    Effect.forever,
    // The span of a request must not be the parent of work that outlives it.
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
  return (key: UsedKey) => Queue.offer(used, key)
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const credentials = yield* Credentials
  const recordUse = yield* makeUseRecorder
  const cache = new KeyCache()

  const select = SqlSchema.findOne({
    Request: Schema.Uint8ArrayFromSelf,
    Result: Row,
    execute: (fingerprint) => sql`/* every tenant: directory */
      select k.id as "keyId", k.tenant_id as "tenantId", k.scope, a.id as "agentId", k.permissions,
        k.source_scope as "sourceScope",
        k.allowed_origins as "allowedOrigins", coalesce(s.public_api, false) as "publicApi",
        case when k.rate_requests is not null
          then jsonb_build_object('requests', k.rate_requests, 'window', k.rate_window) end as "rateLimit",
        (extract(epoch from k.expires_at - now()) * 1000)::float8 as "remainingMs",
        (k.last_used_at is null or k.last_used_at < now() - interval '1 minute') as "isUseOutdated"
      from api_keys k
      left join agents a on a.id = k.agent_id and a.tenant_id = k.tenant_id
      left join subscriptions s on s.tenant_id = k.tenant_id
      where k.secret_hash = ${fingerprint} and k.status = 'ACTIVE'
        and (k.expires_at is null or k.expires_at > now())`
  })

  const lookUp = CheapSpans.fn("KeyStore.lookUp")(function* (
    bytes: Uint8Array,
    fingerprint: string,
    now: number
  ) {
    const { epoch } = cache
    const found = yield* Effect.orDie(select(bytes))
    if (Option.isNone(found)) return Option.none<LiveKey>()
    const { remainingMs, isUseOutdated, ...key } = found.value
    if (isUseOutdated) yield* recordUse(key)
    const until = now + Math.min(cacheLifetimeMs, remainingMs ?? cacheLifetimeMs)
    if (cache.epoch === epoch) cache.set(fingerprint, { key, until })
    return Option.some<LiveKey>(key)
  })

  const find = (secret: Redacted.Redacted) =>
    Effect.gen(function* () {
      if (Redacted.value(secret).length > maxSecretCharacters) return Option.none<LiveKey>()
      const bytes = yield* credentials.fingerprint(secret)
      const fingerprint = Buffer.from(bytes).toString("base64url")
      const now = yield* monotonicMillis
      const known = cache.get(fingerprint, now)
      return known === undefined ? yield* lookUp(bytes, fingerprint, now) : Option.some(known)
    })

  const invalidate = (affected: AffectedKeys) => Effect.sync(() => cache.invalidate(affected))

  return Context.make(KeyStore, { find, invalidate })
})

export const layerSql: Layer.Layer<KeyStore, never, SqlClient.SqlClient | Credentials> =
  Layer.scopedContext(make)
