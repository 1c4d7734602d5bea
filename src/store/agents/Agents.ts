/** The agents of a tenant and how they are set up. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Agent, GroundingMode, UnsupportedPolicy } from "../../domain/agents/Agent.ts"
import { AgentId, TenantId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"

const settings = {
  name: Schema.String,
  instructions: Schema.String,
  model: Schema.NullOr(Schema.String),
  greeting: Schema.NullOr(Schema.String),
  topK: Schema.Int,
  minScore: Schema.NullOr(Schema.Number),
  tools: Schema.Array(Schema.String),
  mode: GroundingMode,
  unsupported: UnsupportedPolicy,
  contextTokens: Schema.Int,
  maxSearches: Schema.Int
}
const Settings = Schema.Struct(settings)
/** What can be set of an agent. */
export type AgentSettings = typeof Settings.Type

const Row = Schema.Struct({
  id: AgentId,
  ...settings,
  version: Schema.Int,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})

const toAgent = ({
  topK,
  minScore,
  mode,
  unsupported,
  contextTokens,
  maxSearches,
  ...row
}: typeof Row.Type) =>
  Agent.make({
    ...row,
    retrieval: { topK, minScore },
    grounding: { mode, unsupported, contextTokens, maxSearches }
  })

const one = { tenantId: TenantId, id: AgentId }

export class AgentStore extends Effect.Service<AgentStore>()("store/agents/Agents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      id, name, instructions, model, greeting, top_k as "topK", min_score as "minScore",
      grounding_mode as mode, unsupported, context_tokens as "contextTokens", max_searches as "maxSearches", tools,
      version, created_at as "createdAt", updated_at as "updatedAt"`

    const insertRow = SqlSchema.single({
      Request: Schema.Struct({ ...one, ...settings }),
      Result: Row,
      execute: (agent) => sql`
        insert into agents (id, tenant_id, name, instructions, model, greeting, top_k, min_score, grounding_mode,
          unsupported, context_tokens, max_searches, tools)
        values (${agent.id}, ${agent.tenantId}, ${agent.name}, ${agent.instructions}, ${agent.model},
          ${agent.greeting}, ${agent.topK}, ${agent.minScore}, ${agent.mode}, ${agent.unsupported},
          ${agent.contextTokens}, ${agent.maxSearches}, ${[...agent.tools]}::text[])
        returning ${columns}`
    })

    const selectRow = SqlSchema.findOne({
      Request: Schema.Struct(one),
      Result: Row,
      execute: ({ tenantId, id }) =>
        sql`select ${columns} from agents where tenant_id = ${tenantId} and id = ${id}`
    })

    const selectPage = SqlSchema.findAll({
      Request: Schema.Struct({ tenantId: TenantId, limit: Schema.Int, after: Schema.NullOr(Schema.String) }),
      Result: Row,
      execute: ({ tenantId, limit, after }) => sql`
        select ${columns} from agents
        where tenant_id = ${tenantId} and ${after === null ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit}`
    })

    const updateRow = SqlSchema.findOne({
      Request: Schema.Struct({
        ...one,
        changes: Schema.partial(Settings),
        expected: Schema.NullOr(Schema.Int)
      }),
      Result: Row,
      execute: ({ tenantId, id, changes, expected }) => {
        const assignments = [
          sql`updated_at = now()`,
          sql`version = version + 1`,
          ...(changes.name === undefined ? [] : [sql`name = ${changes.name}`]),
          ...(changes.instructions === undefined ? [] : [sql`instructions = ${changes.instructions}`]),
          ...(changes.model === undefined ? [] : [sql`model = ${changes.model}`]),
          ...(changes.greeting === undefined ? [] : [sql`greeting = ${changes.greeting}`]),
          ...(changes.topK === undefined ? [] : [sql`top_k = ${changes.topK}`]),
          ...(changes.minScore === undefined ? [] : [sql`min_score = ${changes.minScore}`]),
          ...(changes.tools === undefined ? [] : [sql`tools = ${[...changes.tools]}::text[]`]),
          ...(changes.mode === undefined ? [] : [sql`grounding_mode = ${changes.mode}`]),
          ...(changes.unsupported === undefined ? [] : [sql`unsupported = ${changes.unsupported}`]),
          ...(changes.contextTokens === undefined ? [] : [sql`context_tokens = ${changes.contextTokens}`]),
          ...(changes.maxSearches === undefined ? [] : [sql`max_searches = ${changes.maxSearches}`])
        ]
        return sql`
          update agents set ${sql.csv(assignments)}
          where tenant_id = ${tenantId} and id = ${id} and version = coalesce(${expected}::int, version)
          returning ${columns}`
      }
    })

    const insert = (scope: TenantScope, agent: AgentSettings & { readonly id: AgentId }) =>
      insertRow({ ...agent, tenantId: scope.tenantId }).pipe(Effect.orDie, Effect.map(toAgent))

    const find = (scope: TenantScope, id: AgentId) =>
      selectRow({ tenantId: scope.tenantId, id }).pipe(Effect.orDie, Effect.map(Option.map(toAgent)))

    /** Newest first. */
    const list = Effect.fn("AgentStore.list")(function* (scope: TenantScope, { limit, after }: PageRequest) {
      const found = yield* selectPage({ tenantId: scope.tenantId, limit: limit + 1, after: after ?? null })
      const rows = found.slice(0, limit).map(toAgent)
      const page: Page<Agent> = { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
      return page
    }, Effect.orDie)

    /** Sets what `changes` names; none when the tenant has no such agent, or its version is not `expected`. */
    const update = (
      scope: TenantScope,
      id: AgentId,
      changes: Partial<AgentSettings>,
      expected: number | null = null
    ) =>
      updateRow({ tenantId: scope.tenantId, id, changes, expected }).pipe(
        Effect.orDie,
        Effect.map(Option.map(toAgent))
      )

    /**
     * Locks the agent until the caller's transaction ends: nothing can be added to it from then on. False when the tenant
     * has no such agent.
     */
    const seize = (scope: TenantScope, id: AgentId) =>
      sql`select id from agents where tenant_id = ${scope.tenantId} and id = ${id} for update`.pipe(
        Effect.map((rows) => rows.length === 1)
      )

    /** Removes a seized agent with everything that belongs to it. */
    const remove = (scope: TenantScope, id: AgentId) =>
      Effect.asVoid(sql`delete from agents where tenant_id = ${scope.tenantId} and id = ${id}`)

    return { insert, find, list, update, seize, remove } as const
  })
}) {}
