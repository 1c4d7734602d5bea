/**
 * Passages that a run's model was shown. Each distinct text of a tenant is stored once, and removed when no run refers
 * to it.
 */
import { hash } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Struct from "effect/Struct"
import { LruCache } from "../../concurrency/LruCache.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { RunPassage } from "../../domain/chat/AgentRun.ts"
import { toJsonb } from "../Jsonb.ts"
import { isDeadlock } from "../Deadlock.ts"
import { isSqlError } from "../knowledge/Sources.ts"

/** Maximum number of passages that a process remembers as stored. One takes about 200 bytes. */
const maxRemembered = 20_000

/** A passage with the hash of its text. */
export interface HashedPassage extends RunPassage {
  readonly hash: string
}

export const hashPassages = (passages: ReadonlyArray<RunPassage>): ReadonlyArray<HashedPassage> =>
  passages.map((passage) => {
    const { heading, sourceName, text, title, url } = passage
    return { ...passage, hash: hash("sha256", toJsonb([sourceName, title, heading, url, text]), "hex") }
  })

/**
 * Passages that this process has stored recently. Their texts are not sent again. If one was removed since, the foreign
 * key of its run fails (see {@link retrySettlement}).
 */
export class StoredPassages {
  readonly #known = new LruCache<true>()

  has({ tenantId }: TenantScope, passage: HashedPassage): boolean {
    return this.#known.get(`${tenantId} ${passage.hash}`) === true
  }

  /** Runs `settlement`, which refers to `passages`. Runs it again if one of them was removed. */
  settle<A extends { readonly _tag: string }, E, R>(
    { tenantId }: TenantScope,
    passages: ReadonlyArray<HashedPassage>,
    settlement: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    const keys = passages.map(({ hash }) => `${tenantId} ${hash}`)
    const forget = () => {
      for (const key of keys) this.#known.delete(key)
    }
    const remember = () => {
      for (const key of keys) this.#known.set(key, true)
      this.#known.trim(maxRemembered)
    }
    return Effect.tap(retrySettlement(settlement, forget), ({ _tag }) =>
      _tag === "Written" ? Effect.sync(remember) : Effect.void
    )
  }
}

/** What is sent of a passage whose text is stored. */
const withoutText = Struct.pick("chunkId", "documentId", "hash", "index", "score", "sourceId")

/**
 * Parts of the statement that settles the run `settled`, each followed by a comma; empty without passages. Rows are
 * written in the order of their hashes, the same order in which removal locks them.
 */
export const passageWrites = (
  sql: SqlClient.SqlClient,
  scope: TenantScope,
  passages: ReadonlyArray<HashedPassage>,
  known: StoredPassages
): Fragment => {
  const rows = passages.map((passage) => (known.has(scope, passage) ? withoutText(passage) : passage))
  return passages.length === 0
    ? sql``
    : sql`
      shown as (
        select settled.tenant_id, settled.id as run_id, decode(p.hash, 'hex') as hash, p.index as number,
          p."sourceName" as source_name, p.title, p.heading, p.url, p.text as content,
          p."sourceId" as source_id, p."documentId" as document_id, p."chunkId" as chunk_id, p.score
        from settled, jsonb_to_recordset(${toJsonb(rows)}::jsonb)
          as p (hash text, index int, "sourceName" text, title text, heading text, url text, text text,
            "sourceId" text, "documentId" text, "chunkId" text, score float8)
      ),
      stored as (
        insert into passages (tenant_id, hash, source_name, title, heading, url, content)
        select distinct on (hash) tenant_id, hash, source_name, title, heading, url, content from shown
        where content is not null order by hash
        on conflict do nothing
      ),
      referred as (
        insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
        select tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score from shown order by hash, number
      ),`
}

/** The passages of the run `r`, as JSON, sorted by number. With its id as a value, the planner reads one week. */
export const passagesOf = (sql: SqlClient.SqlClient, id: Fragment = sql`r.id`): Fragment => sql`
  select coalesce(json_agg(
    json_build_object('index', u.number, 'sourceId', u.source_id, 'sourceName', p.source_name,
      'documentId', u.document_id, 'chunkId', u.chunk_id, 'title', p.title, 'heading', p.heading, 'url', p.url,
      'text', p.content, 'score', u.score)
    order by u.number
  ), '[]')
  from run_passages u join passages p on p.tenant_id = u.tenant_id and p.hash = u.hash
  where u.tenant_id = r.tenant_id and u.run_id = ${id}`

/**
 * True when a passage was removed with its last run, after it was found to be stored and before it was referred to.
 * Nothing was written.
 */
const isMissingPassage = (error: unknown): boolean =>
  isSqlError(error) && Predicate.hasProperty(error.cause, "code") && error.cause.code === "23503"

/**
 * Retries a settlement that the database rolled back. A deadlock occurs when a failed turn returns its quota while it
 * has locked the conversation, because the conversation's next turn locks the two in the other order. A passage may
 * also have been removed: `onMissing` is then called before the next attempt.
 */
export const retrySettlement = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  onMissing: () => void = () => {},
  tries = 5
): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) => {
    const isMissing = isMissingPassage(error)
    if (tries === 0 || !(isMissing || isDeadlock(error))) return Effect.fail(error)
    if (isMissing) onMissing()
    return retrySettlement(effect, onMissing, tries - 1)
  })
