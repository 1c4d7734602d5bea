/**
 * Passages that a run's model was shown. Each distinct text of a tenant is stored once, and removed when no run refers
 * to it.
 */
import { hash } from "node:crypto"
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { RunPassage } from "../../domain/chat/AgentRun.ts"
import { toJsonb } from "../Jsonb.ts"
import { isDeadlock, isSqlError } from "../knowledge/Sources.ts"

const hashOf = ({ heading, sourceName, text, title, url }: RunPassage): string =>
  hash("sha256", toJsonb([sourceName, title, heading, url, text]), "hex")

/**
 * Parts of the statement that settles the run `settled`, each followed by a comma; empty without passages. Rows are
 * written in the order of their hashes, the same order in which removal locks them.
 */
export const keptPassages = (sql: SqlClient.SqlClient, passages: ReadonlyArray<RunPassage>): Fragment =>
  passages.length === 0
    ? sql``
    : sql`
      shown as (
        select settled.tenant_id, settled.id as run_id, decode(p.hash, 'hex') as hash, p.index as number,
          p."sourceName" as source_name, p.title, p.heading, p.url, p.text as content,
          p."sourceId" as source_id, p."documentId" as document_id, p."chunkId" as chunk_id, p.score
        from settled, jsonb_to_recordset(${toJsonb(passages.map((each) => ({ ...each, hash: hashOf(each) })))}::jsonb)
          as p (hash text, index int, "sourceName" text, title text, heading text, url text, text text,
            "sourceId" text, "documentId" text, "chunkId" text, score float8)
      ),
      stored as (
        insert into passages (tenant_id, hash, source_name, title, heading, url, content)
        select distinct on (hash) tenant_id, hash, source_name, title, heading, url, content from shown order by hash
        on conflict do nothing
      ),
      referred as (
        insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
        select tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score from shown order by hash, number
      ),`

/** The passages of the run `r`, as JSON, sorted by number. With its id as a value the planner reads one week. */
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
 * A passage was removed, with its last run, between the check that it is stored and the reference to it. Nothing was
 * written.
 */
const wasFreed = (error: unknown): boolean =>
  isSqlError(error) && Predicate.hasProperty(error.cause, "code") && error.cause.code === "23503"

/**
 * Retries a settlement that the database rolled back. Deadlocks occur when a failed turn returns its quota while it
 * holds the conversation, because the conversation's next turn locks the two in the other order. Passages may also be
 * removed concurrently.
 */
export const retrySettlement = <A, E, R>(effect: Effect.Effect<A, E, R>, tries = 5): Effect.Effect<A, E, R> =>
  Effect.catchAll(effect, (error) =>
    tries > 0 && (isDeadlock(error) || wasFreed(error))
      ? retrySettlement(effect, tries - 1)
      : Effect.fail(error)
  )
