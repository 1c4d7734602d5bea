/**
 * Measures the storage of each tenant, in `tenant_storage`. A count reads every row once, in batches in the order of
 * the primary keys. So it uses little of the database at a time, and continues where it stopped.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { hasCome } from "../../concurrency/DatabaseTime.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { noBytes, StorageBytes, type StorageUsage } from "../../domain/billing/Storage.ts"
import { TenantId } from "../../domain/Ids.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { jsonbOf } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** Time between the end of a count and the next one. */
const countInterval = Duration.hours(24)
/** How long a process holds a tenant. After a crash, another process continues its count then. */
const leaseDuration = Duration.minutes(1)
/** Maximum number of rows of one list that a batch reads. */
const batchSize = 5_000
/** Maximum number of originals of unknown size that a batch returns. */
export const maxUnsizedOriginals = 10

const Progress = Schema.Struct({
  tenantId: TenantId,
  list: Schema.Int,
  seen: Schema.String,
  sums: Schema.partialWith(StorageBytes, { exact: true })
})
type Progress = typeof Progress.Type

const Read = Schema.Struct({
  rows: Schema.Int,
  seen: Schema.String,
  first: Schema.Number,
  second: Schema.Number
})

const Counted = Schema.Struct({
  countedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  bytes: Schema.NullOr(StorageBytes)
})

const encodeBytes = jsonbOf(StorageBytes)

/** Rows to measure, with the kinds that their two sums, `first` and `second`, are added to. */
interface RowList {
  readonly kinds: readonly [keyof StorageBytes, keyof StorageBytes]
  /** `place`, `first` and `second` of the rows of `tenantId` after the place `seen`, in order. */
  readonly rows: (tenantId: TenantId, seen: string) => Fragment
}

export class StorageStore extends Effect.Service<StorageStore>()("store/billing/Storage", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const size = (...columns: ReadonlyArray<string>) =>
      sql.literal(columns.map((column) => `coalesce(pg_column_size(${column}), 0)`).join(" + "))

    const lists: ReadonlyArray<RowList> = [
      {
        kinds: ["messages", "messages"],
        rows: (tenantId, seen) => sql`
          select id as place, ${size("content", "attachments", "citations", "channel_context")} as first, 0 as second
          from messages where tenant_id = ${tenantId} and id > ${seen} order by id limit ${batchSize}`
      },
      {
        kinds: ["runs", "runs"],
        rows: (tenantId, seen) => sql`
          select r.id as place, ${size("r.user_message", "r.attachments")} as first, coalesce((
              select sum(${size("e.type", "e.status", "e.label", "e.payload")}) from agent_run_events e
              where e.tenant_id = r.tenant_id and e.run_id = r.id
            ), 0) + coalesce((
              select sum(${size("u.hash", "u.source_id", "u.document_id", "u.chunk_id")}) from run_passages u
              where u.tenant_id = r.tenant_id and u.run_id = r.id
            ), 0) as second
          from (
            select tenant_id, id, user_message, attachments from agent_runs
            where tenant_id = ${tenantId} and id > ${seen} order by id limit ${batchSize}
          ) r`
      },
      {
        kinds: ["runs", "runs"],
        rows: (tenantId, seen) => sql`
          select encode(hash, 'hex') as place, ${size("title", "heading", "url", "content")} as first, 0 as second
          from passages where tenant_id = ${tenantId} and hash > decode(${seen}, 'hex') order by hash limit ${batchSize}`
      },
      {
        kinds: ["knowledge", "knowledge"],
        rows: (tenantId, seen) => sql`
          select id as place, ${size("uri", "title", "content_hash")} as first, 0 as second
          from documents where tenant_id = ${tenantId} and id > ${seen} order by id limit ${batchSize}`
      },
      {
        kinds: ["knowledge", "vectors"],
        rows: (tenantId, seen) => sql`
          select c.id as place, ${size("c.heading", "c.content", "c.content_hash", "c.tsv")} as first, coalesce((
              select sum(${size("v.embedding")}) from chunk_embeddings v
              where v.tenant_id = c.tenant_id and v.chunk_id = c.id
            ), 0) as second
          from (
            select tenant_id, id, heading, content, content_hash, tsv from chunks
            where tenant_id = ${tenantId} and id > ${seen} order by id limit ${batchSize}
          ) c`
      },
      {
        // A file of several conversations or sources is one row.
        kinds: ["originals", "originals"],
        rows: (tenantId) => sql`
          select a.ref as place, a.bytes as first, 0 as second from artifacts a where a.ref in (${originalsOf(tenantId)})`
      }
    ]

    const originalsOf = (tenantId: TenantId) => sql`
      select s.config ->> 'artifact' from sources s where s.tenant_id = ${tenantId} and s.config ->> 'artifact' is not null
      union select f.ref from conversation_artifacts f where f.tenant_id = ${tenantId}`

    /** Adds the row of tenants that have none. True when there were some. */
    const include = sql`/* every tenant: sweep */
      insert into tenant_storage (tenant_id)
      select t.id from tenants t
      where tenant_is_swept(t.id) and not exists (select from tenant_storage s where s.tenant_id = t.id)
      on conflict do nothing returning tenant_id`.pipe(Rows.any, Effect.withSpan("StorageStore.include"))

    /** Claims the tenant that has waited longest. Tenants take turns. */
    const claim = sql`/* every tenant: sweep */
      update tenant_storage set due_at = now() + make_interval(secs => ${Duration.toSeconds(leaseDuration)})
      where tenant_id = (
        select tenant_id from tenant_storage where ${hasCome(sql, sql`due_at`, countInterval)} and tenant_is_swept(tenant_id) order by due_at limit 1 for update skip locked)
      returning tenant_id as "tenantId", list, seen, sums`.pipe(
      Rows.first(Progress),
      Effect.withSpan("StorageStore.claim")
    )

    const read = ({ rows }: RowList, tenantId: TenantId, seen: string) =>
      sql`
        select count(*)::int as rows, coalesce(max(place), '') as seen,
          coalesce(sum(first), 0)::float8 as first, coalesce(sum(second), 0)::float8 as second
        from (${rows(tenantId, seen)}) read`.pipe(Rows.one(Read))

    /** Reads up to a batch of rows. Small tenants are counted at once. */
    const advance = Effect.fn("StorageStore.advance")(function* (progress: Progress) {
      const { tenantId } = progress
      const sums = { ...noBytes, ...progress.sums }
      let { list, seen } = progress
      let rows = 0
      for (let each = lists[list]; each !== undefined && rows < batchSize; each = lists[list]) {
        const found = yield* read(each, tenantId, seen)
        const [first, second] = each.kinds
        sums[first] += found.first
        sums[second] += found.second
        rows += found.rows
        const isOver = found.rows < batchSize || first === "originals"
        if (isOver) list += 1
        seen = isOver ? "" : found.seen
      }
      if (list < lists.length)
        yield* sql`
          update tenant_storage set list = ${list}, seen = ${seen}, sums = ${encodeBytes(sums)}::jsonb, due_at = now()
          where tenant_id = ${tenantId}`
      else
        yield* sql`
          update tenant_storage set list = 0, seen = '', sums = '{}', bytes = ${encodeBytes(sums)}::jsonb,
            counted_at = now(), due_at = now() + make_interval(secs => ${Duration.toSeconds(countInterval)})
          where tenant_id = ${tenantId}`
    }, Effect.orDie)

    /** Releases a claimed tenant. Its count is continued later. */
    const postpone = ({ tenantId }: TenantScope) =>
      sql`update tenant_storage set due_at = now() where tenant_id = ${tenantId}`.pipe(Rows.none)

    /** Some of the tenant's originals of unknown size. */
    const unsizedOriginals = (tenantId: TenantId) =>
      sql`
        select a.ref from artifacts a where a.bytes is null and a.ref in (${originalsOf(tenantId)}) limit ${maxUnsizedOriginals}`.pipe(
        Rows.all(Schema.Struct({ ref: ArtifactRef })),
        Effect.map((rows) => rows.map(({ ref }) => ref)),
        Effect.withSpan("StorageStore.unsizedOriginals")
      )

    /** Sets the size of an original that was stored without one. */
    const setSize = (ref: ArtifactRef, bytes: number) =>
      sql`update artifacts set bytes = ${bytes} where ref = ${ref}`.pipe(Rows.none)

    /** The last finished count of the tenant. */
    const find = ({ tenantId }: TenantScope) =>
      sql`select counted_at as "countedAt", bytes from tenant_storage where tenant_id = ${tenantId}`.pipe(
        Rows.first(Counted),
        Effect.map((found): StorageUsage => {
          const { bytes, countedAt } = Option.getOrElse(found, () => ({ bytes: null, countedAt: null }))
          return bytes === null || countedAt === null ? null : { bytes, countedAt }
        }),
        Effect.withSpan("StorageStore.find")
      )

    return { include, claim, advance, postpone, unsizedOriginals, setSize, find } as const
  })
}) {}
