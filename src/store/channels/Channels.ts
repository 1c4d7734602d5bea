/** Accounts at messaging providers, and their agents. The caller seals tokens. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { MessagingChannel } from "../../domain/channels/Channel.ts"
import { AgentId, ChannelId, TenantId } from "../../domain/Ids.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { toJsonb } from "../Jsonb.ts"
import { violates } from "../database/Failure.ts"
import { sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import * as Rows from "../Rows.ts"

/** Details of an account from the provider. */
export const ChannelProfile = Schema.Record({ key: Schema.String, value: Schema.String })

const Row = Schema.Struct({
  id: ChannelId,
  tenantId: TenantId,
  agentId: AgentId,
  channel: MessagingChannel,
  externalId: Schema.String,
  /** Sealed. */
  accessToken: Schema.String,
  /** Sealed, as JSON; null if there are none. */
  secrets: Schema.NullOr(Schema.String),
  profile: ChannelProfile,
  /** Null: every source of the agent. */
  sourceScope: Schema.NullOr(SourceScope),
  active: Schema.Boolean,
  version: Schema.Int,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})
export type StoredChannel = typeof Row.Type

/** Fields of a channel that can be changed. */
type Changeable = Pick<
  StoredChannel,
  "externalId" | "accessToken" | "secrets" | "profile" | "sourceScope" | "active"
>
export type ChannelChanges = Partial<Changeable>

/** True when another active configuration has the account. The index decides between concurrent requests. */
const isTaken = violates("channels_account")

export class ChannelStore extends Effect.Service<ChannelStore>()("store/channels/Channels", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = sql`
      id, tenant_id as "tenantId", agent_id as "agentId", channel, external_id as "externalId",
      access_token as "accessToken", secrets, profile, source_scope as "sourceScope", active,
      version, created_at as "createdAt", updated_at as "updatedAt"`

    /** None when the tenant has no such agent, or the account already has an active configuration. */
    const insert = (
      { tenantId, agentId }: AgentScope,
      row: Changeable & Pick<StoredChannel, "id" | "channel">
    ): Effect.Effect<Option.Option<StoredChannel>> =>
      sql`
        insert into channels (
          id, tenant_id, agent_id, channel, external_id, access_token, secrets, profile, source_scope, active
        )
        select ${row.id}, tenant_id, id, ${row.channel}, ${row.externalId}, ${row.accessToken},
          ${row.secrets}, ${toJsonb(row.profile)}::jsonb, ${sourceScopeJson(row)}::jsonb, ${row.active}::boolean
        from agents where tenant_id = ${tenantId} and id = ${agentId} for key share
        on conflict (channel, external_id) where active do nothing returning ${columns}`.pipe(Rows.first(Row))

    /**
     * Sets the fields in `changes`. None when it would be the account's second active configuration, does not exist, or
     * its version is not `expected`.
     */
    const update = (
      { tenantId }: TenantScope,
      id: ChannelId,
      changes: ChannelChanges,
      expected: number | null
    ): Effect.Effect<Option.Option<StoredChannel>> => {
      const assignments = [
        sql`updated_at = now()`,
        sql`version = version + 1`,
        ...(changes.externalId === undefined ? [] : [sql`external_id = ${changes.externalId}`]),
        ...(changes.accessToken === undefined ? [] : [sql`access_token = ${changes.accessToken}`]),
        ...(changes.secrets === undefined ? [] : [sql`secrets = ${changes.secrets}`]),
        ...(changes.profile === undefined ? [] : [sql`profile = ${toJsonb(changes.profile)}::jsonb`]),
        ...(changes.sourceScope === undefined
          ? []
          : [sql`source_scope = ${sourceScopeJson({ sourceScope: changes.sourceScope })}::jsonb`]),
        ...(changes.active === undefined ? [] : [sql`active = ${changes.active}`])
      ]
      return sql`
        update channels set ${sql.csv(assignments)}
        where tenant_id = ${tenantId} and id = ${id} and version = coalesce(${expected}::int, version)
        returning ${columns}`.pipe(
        Effect.catchIf(isTaken, () => Effect.succeed([])),
        Rows.first(Row)
      )
    }

    /** False when it is not active any more, or has changed since it was read. */
    const deactivate = ({ id, tenantId, version }: Pick<StoredChannel, "id" | "tenantId" | "version">) =>
      sql`
        update channels set active = false, version = version + 1, updated_at = now()
        where tenant_id = ${tenantId} and id = ${id} and version = ${version} and active returning id`.pipe(
        Rows.any
      )

    /** None when the tenant has no such configuration. */
    const find = ({ tenantId }: TenantScope, id: ChannelId): Effect.Effect<Option.Option<StoredChannel>> =>
      sql`select ${columns} from channels where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.first(Row))

    /**
     * The configuration that workers use for messages of `id`: the active one of the same account, which the tenant may
     * have moved to another agent, else `id` itself. Its token is sealed for `channel-token`.
     */
    const findCurrent = (
      { tenantId }: TenantScope,
      id: ChannelId
    ): Effect.Effect<Option.Option<StoredChannel>> =>
      sql`
        select ${columns} from (
          select o.* from channels own
          join channels o
            on o.channel = own.channel and o.external_id = own.external_id and o.tenant_id = own.tenant_id
          where own.tenant_id = ${tenantId} and own.id = ${id} order by o.active desc, o.id = own.id desc limit 1
        ) channels`.pipe(Rows.first(Row))

    /** Every active configuration of a provider's account, of all tenants. Routing needs exactly one. */
    const byAccount = (
      channel: MessagingChannel,
      externalId: string
    ): Effect.Effect<ReadonlyArray<StoredChannel>> =>
      sql`/* every tenant: directory */
        select ${columns} from channels where channel = ${channel} and external_id = ${externalId} and active order by id`.pipe(
        Rows.all(Row)
      )

    /** Oldest first. */
    const page = (
      { tenantId, agentId }: AgentScope,
      { limit, after }: PageRequest
    ): Effect.Effect<Page<StoredChannel>> =>
      sql`
        select ${columns} from channels
        where tenant_id = ${tenantId} and agent_id = ${agentId}
          and ${after === undefined ? sql`true` : sql`id > ${after}`}
        order by id limit ${limit + 1}`.pipe(Rows.page(Row, limit))

    /** Accounts of all agents, oldest first. */
    const ofTenant = ({ tenantId }: TenantScope): Effect.Effect<ReadonlyArray<StoredChannel>> =>
      sql`select ${columns} from channels where tenant_id = ${tenantId} order by id`.pipe(Rows.all(Row))

    /** False when the tenant has no such configuration. Its conversations stay, but can no longer be answered. */
    const remove = ({ tenantId }: TenantScope, id: ChannelId) =>
      sql`delete from channels where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(Rows.any)

    return { insert, update, deactivate, find, findCurrent, byAccount, ofTenant, page, remove } as const
  })
}) {}
