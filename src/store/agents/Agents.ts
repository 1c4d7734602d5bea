/** The agents of a tenant and their settings. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Actor } from "../../domain/accounts/Audit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Agent } from "../../domain/agents/Agent.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { jsonbOf } from "../Jsonb.ts"
import { deleteEventsOf } from "../channels/EventsOfConversations.ts"
import { clearAnswers, eventWrites, versionPublished } from "../events/ReportedEvents.ts"
import {
  AgentRow,
  AgentSettings,
  assignments,
  columnsOf,
  maskingColumn,
  settingsJson,
  toAgent
} from "./AgentSettings.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import * as Rows from "../Rows.ts"
import { type AgentScope } from "../../domain/accounts/Access.ts"

export type { AgentSettings }

/** A change of the settings, which creates a version. */
export interface AgentChange {
  readonly changes: Partial<AgentSettings>
  /**
   * The version that is changed; null for the published one. It must be the published one if the change is published.
   */
  readonly from: { readonly version: number; readonly settings: AgentSettings } | null
  /** If false, no turn uses the version. */
  readonly publish: boolean
  readonly note: string | null
  readonly author: Actor | null
}

const authorJson = jsonbOf(Schema.NullOr(Actor))

export class AgentStore extends Effect.Service<AgentStore>()("store/agents/Agents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = columnsOf(sql)

    /** Records the version of the row `changed`. */
    const recordVersion = (
      settings: AgentSettings,
      { author, note }: Pick<AgentChange, "author" | "note">
    ) => sql`
      recorded as (
        insert into agent_versions (tenant_id, agent_id, version, settings, note, author)
        select tenant_id, id, version, ${settingsJson(settings)}::jsonb, ${note}, nullif(${authorJson(author)}::jsonb, 'null')
        from changed
      )`

    const insert = (
      { tenantId }: TenantScope,
      agent: AgentSettings & { readonly id: AgentId },
      author: Actor | null = null
    ) =>
      sql`
        with changed as (
          insert into agents (id, tenant_id, name, instructions, model, greeting, top_k, min_score, grounding_mode,
            unsupported, context_tokens, max_searches, reply_length, reply_tone, tools, masking, stream_reasoning)
          values (${agent.id}, ${tenantId}, ${agent.name}, ${agent.instructions}, ${agent.model},
            ${agent.greeting}, ${agent.topK}, ${agent.minScore}, ${agent.mode}, ${agent.unsupported},
            ${agent.contextTokens}, ${agent.maxSearches}, ${agent.length}, ${agent.tone}, ${[...agent.tools]}::text[],
            ${maskingColumn(sql, agent)}, ${agent.streamReasoning})
          returning *
        ), ${recordVersion(agent, { author, note: null })}
        select ${columns} from changed`.pipe(Rows.one(AgentRow), Effect.map(toAgent))

    const find = (scope: TenantScope, id: AgentId) =>
      sql`select ${columns} from agents where tenant_id = ${scope.tenantId} and id = ${id}`.pipe(
        Rows.first(AgentRow),
        Effect.map(Option.map(toAgent))
      )

    /**
     * Locks the agent until the caller's transaction ends: nobody else changes its settings or published version. Turns
     * do not wait, because they only refer to the agent.
     */
    const lock = (scope: TenantScope, id: AgentId) =>
      sql`
        select ${columns} from agents where tenant_id = ${scope.tenantId} and id = ${id} for no key update`.pipe(
        Rows.first(AgentRow),
        Effect.map(Option.map(toAgent)),
        Effect.withSpan("AgentStore.lock")
      )

    /** The scope of the agent; none when the tenant has no such agent. */
    const findScope = ({ tenantId }: TenantScope, id: AgentId) =>
      Effect.map(find({ tenantId }, id), Option.as<AgentScope>({ tenantId, agentId: id }))

    /** What the agent masks. Null: nothing, or the tenant has no such agent. */
    const maskingOf = ({ agentId, tenantId }: AgentScope) =>
      sql`select masking from agents where tenant_id = ${tenantId} and id = ${agentId}`.pipe(
        Rows.first(Schema.Struct({ masking: AgentSettings.fields.masking })),
        Effect.map((found) => Option.getOrNull(found)?.masking ?? null),
        CheapSpans.span("AgentStore.maskingOf")
      )

    /** The settings of a version; none when the tenant's agent has no such version. */
    const settingsOf = (scope: TenantScope, id: AgentId, version: number) =>
      sql`
        select settings from agent_versions
        where tenant_id = ${scope.tenantId} and agent_id = ${id} and version = ${version}`.pipe(
        Rows.first(Schema.Struct({ settings: AgentSettings })),
        Effect.map(Option.map(({ settings }) => settings)),
        Effect.withSpan("AgentStore.settingsOf")
      )

    /** Newest first. */
    const list = ({ tenantId }: TenantScope, { limit, after }: PageRequest) =>
      sql`
        select ${columns} from agents
        where tenant_id = ${tenantId} and ${after === undefined ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit + 1}`.pipe(
        Rows.all(AgentRow),
        Effect.map((found) => pageOf(found.map(toAgent), limit)),
        Effect.withSpan("AgentStore.list")
      )

    /**
     * Creates a version. None when the tenant has no such agent, its newest version is not `expected`, or another one
     * is published.
     */
    const update = Effect.fn("AgentStore.update")(
      function* (
        { tenantId }: TenantScope,
        id: AgentId,
        change: AgentChange,
        expected: number | null = null
      ) {
        // A lock that does not block turns, because they only refer to the agent.
        const found = yield* sql`
          select ${columns} from agents
          where tenant_id = ${tenantId} and id = ${id} and version = coalesce(${expected}::int, version)
          for no key update`.pipe(Rows.first(AgentRow))
        if (Option.isNone(found)) return Option.none<Agent>()
        const { from, publish } = change
        if (publish && from !== null && from.version !== found.value.publishedVersion)
          return Option.none<Agent>()
        const settings = { ...(from?.settings ?? found.value), ...change.changes }
        const made = yield* sql`
          with changed as (
            update agents set updated_at = now(), version = version + 1
              ${publish ? sql`, published_version = version + 1, ${assignments(sql, settings)}` : sql``}
            where tenant_id = ${tenantId} and id = ${id}
            returning *
          ), ${recordVersion(settings, change)}
          ${publish ? sql`, ${eventWrites(sql, versionPublished(sql))}` : sql``}
          select ${columns} from changed`.pipe(Rows.one(AgentRow))
        return Option.some(toAgent(made))
      },
      sql.withTransaction,
      Effect.orDie
    )

    /**
     * Locks the agent until the caller's transaction ends, so that nothing can be added to it. False when the tenant
     * has no such agent.
     */
    const seize = (scope: TenantScope, id: AgentId) =>
      sql`select id from agents where tenant_id = ${scope.tenantId} and id = ${id} for update`.pipe(
        Effect.map((rows) => rows.length === 1)
      )

    /** Removes an agent locked by `seize`, with everything that belongs to it. */
    const remove = ({ tenantId }: TenantScope, id: AgentId) =>
      Effect.all(
        [
          clearAnswers(sql, tenantId, sql`agent_id = ${id}`),
          deleteEventsOf(sql, { tenantId }, sql`c.agent_id = ${id}`),
          sql`delete from agents where tenant_id = ${tenantId} and id = ${id}`
        ],
        { discard: true }
      )

    return { insert, find, lock, findScope, maskingOf, settingsOf, list, update, seize, remove } as const
  })
}) {}
